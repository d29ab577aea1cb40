//! Forward and backward over a worker's rows: the one place where layers meet the exchange.

pub mod inputs;
pub mod network;
pub mod reveal;

//! Forward and backward over a worker's rows: the one place where layers meet the exchange.

mod first;
pub mod inputs;
pub mod network;
pub mod reveal;

//! Forward and backward over a worker's rows: the one place where layers meet the exchange.

pub mod batch;
mod between;
mod by_layer;
pub mod context;
mod first;
pub mod inputs;
mod jump;
mod neighbourhood;
pub mod network;
pub mod required_rows;
pub mod reveal;
pub mod spare;
pub mod walk;

//! Before anything runs: what a run will send, and the memory that it will take.

pub mod budget;
pub mod memory;
pub mod traffic;

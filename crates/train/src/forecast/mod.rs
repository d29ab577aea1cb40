//! Before anything runs: what a run will send, to the byte, and the memory that it will take.

pub mod account;
mod amounts;
mod batches;
pub mod book;
pub mod bound;
pub mod budget;
pub mod contents;
pub mod costs;
mod fetches;
mod frames;
pub mod links;
pub mod load;
pub mod memory;
mod passes;
mod room;
pub mod spread;
pub mod stages;
pub mod traffic;
pub mod trained;
pub mod trainers;

pub(crate) use room::gigabytes;

use crate::plan::Plan;
use crate::schedule::Position;
use crate::worker::evaluate::Evaluator;

/// What a forecast is made from, besides the shapes of each worker.
#[derive(Clone, Copy)]
pub struct Forecast<'a> {
    /// The run, resolved.
    pub plan: &'a Plan,
    /// What is measured.
    pub evaluator: &'a Evaluator,
    /// Where the run goes on from.
    pub position: &'a Position,
}

//! What is told of a run while it goes on, and to whom.

use laconic_wire::{Count, PerKind};
use serde::{Deserialize, Serialize};

use super::progress::Snapshot;
use crate::error::{Result, TrainError};
use crate::saved::Saved;
use crate::worker::evaluate::Scores;

/// What is known after a round; the same on every worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundReport {
    /// The round, from 1, counted over stages.
    pub round: u32,
    /// The stage, from 0.
    pub stage: usize,
    /// The training loss before the round's step.
    pub loss: f64,
    /// The learning rate.
    pub lr: f32,
    /// Figures after the step, where the round was evaluated.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
    /// Bytes that all workers have sent so far, framing included, where the round was evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Seconds that the round took on this worker; on the link model's clock, where there is one.
    pub seconds: f64,
    /// Seconds on the link model's clock since the start, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<f64>,
}

/// Who writes a run down while it goes on; called on every worker. Worker 0 keeps log and checkpoints.
pub trait Recorder {
    /// After each round.
    ///
    /// # Errors
    /// If it cannot be written down.
    fn after_round(&mut self, report: &RoundReport) -> Result<()>;

    /// Where a checkpoint is due; `take` makes it.
    ///
    /// # Errors
    /// If it cannot be written down.
    fn checkpoint(&mut self, take: &dyn Fn() -> Snapshot) -> Result<()>;

    /// After an error, where the state may be worth keeping; `take` makes it with the bytes sent so far, as far as they
    /// are known.
    ///
    /// # Errors
    /// If it cannot be written down.
    fn rescue(&mut self, error: &TrainError, take: &dyn Fn(PerKind<Count>) -> Snapshot) -> Result<()>;

    /// Where a checkpoint is due, on every worker before it is taken: what this worker alone remembers after the round.
    ///
    /// # Errors
    /// If it cannot be written down.
    fn remember(&mut self, saved: &Saved, round: u32) -> Result<()>;

    /// The state to go on from, with what this worker alone remembers; taken once.
    ///
    /// # Errors
    /// If it cannot be read back.
    fn resume(&mut self) -> Result<Option<(Snapshot, Saved)>>;

    /// Bytes by kind of the run before it was resumed.
    fn bytes_before(&self) -> PerKind<Count>;
}

//! What is told of a run while it goes on, and to whom.

use laconic_wire::{Count, Metered, PerKind};

use super::progress::Snapshot;
pub use super::report::RoundReport;
use crate::error::{Result, TrainError};
use crate::saved::Saved;

/// Who writes a run down while it goes on; called on every worker. Worker 0 keeps log and checkpoints.
pub trait Recorder {
    /// What has crossed since the last time: after a stage's inputs, after each round, and before a checkpoint.
    ///
    /// # Errors
    /// If it cannot be written down.
    fn crossed(&mut self, transport: &mut Metered) -> Result<()>;

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
    fn remember(&mut self, saved: Saved, round: u32) -> Result<()>;

    /// The state to go on from, with what this worker alone remembers; taken once.
    ///
    /// # Errors
    /// If it cannot be read back.
    fn resume(&mut self) -> Result<Option<(Snapshot, Saved)>>;

    /// Bytes by kind of the run before it was resumed.
    fn bytes_before(&self) -> PerKind<Count>;
}

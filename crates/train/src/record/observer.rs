//! Who watches a run, and may stop it.

use std::ops::ControlFlow;
use std::path::Path;

use laconic_wire::PerKind;

use crate::config::Config;
use crate::fit::observe::RoundReport;

/// What a user sees of a run while it goes on; called on worker 0.
pub trait Observer: Send {
    /// Before anything else: the resolved configuration, the number of workers, and where an earlier run was moved to.
    fn started(&mut self, _config: &Config, _workers: usize, _moved: Option<&Path>) {}

    /// Before anything runs: something that the configuration asks for and that this run has no use for.
    fn noted(&mut self, _note: &str) {}

    /// Something that may go wrong, before anything runs.
    fn warned(&mut self, _what: &str) {}

    /// Before the first round: the rounds of each stage.
    fn stages(&mut self, _rounds: &[u32]) {}

    /// Before the first round: predicted framed bytes over all workers by kind, memory of the workers in this process,
    /// rounds in all.
    fn predicted(&mut self, _by_kind: &PerKind<u64>, _memory: u64, _rounds: u32) {}

    /// After each round, or each mean of independent trainers. `Break` stops the run as Ctrl-C does: with the next
    /// round that all workers end, or at once between means, with a checkpoint where there is a folder.
    fn round(&mut self, _report: &RoundReport) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// After a checkpoint was written.
    fn checkpoint(&mut self, _round: u32) {}

    /// What the aggregator of independent trainers is doing, again and again while it is at it.
    fn stands(&mut self, _at: Stand) {}
}

/// What the aggregator of independent trainers is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    /// It prepares a stage, for which trainers may meet meanwhile.
    Prepares,
    /// It waits for trainers to come to a stage.
    Gathers,
    /// Trainers go, and it takes means.
    Leads,
    /// No stage follows.
    Ends,
}

/// An observer that looks away.
pub struct Silent;

impl Observer for Silent {}

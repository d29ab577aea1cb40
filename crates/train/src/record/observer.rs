//! Who watches a run, and may stop it.

use std::ops::ControlFlow;
use std::path::Path;

use laconic_wire::PerKind;

use crate::config::Config;
use crate::fit::observe::RoundReport;

/// What a user sees of a run while it goes on.
///
/// Workers that are threads of one process have one observer, which hears what worker 0 does. A worker of its own
/// process ([`run_worker`](crate::run::run_worker), or one of sockets or MPI) has the one that it was given, and every
/// one of them hears of every round. Of independent trainers the aggregator's alone is called, but for
/// [`Observer::watches`].
///
/// What worker 0 alone does or knows the others' observers do not hear of: where an earlier run was moved to,
/// checkpoints, and what a resumed run had sent before. Bytes count from this start there.
pub trait Observer: Send {
    /// Before the run says anything, in a process that holds one worker of it: the number of that worker. Not called
    /// for independent trainers in processes whose means the aggregator alone evaluates.
    fn watches(&mut self, _rank: u32) {}

    /// Before the first round: the resolved configuration, the number of workers, and where an earlier run was moved
    /// to.
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

    /// After each round, or each mean of independent trainers; the same on every worker but for what
    /// [`RoundReport`] names. `Break` of any worker stops the run as Ctrl-C does: with
    /// the next round that all workers end, or at once between means, with a checkpoint where there is a folder.
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

//! `[transport]` and `[out]`: what carries the bytes, and what is written.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::pace::Span;

/// `[transport]`: what carries the bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransportConfig {
    /// `threads`, `processes`, `mpi` or `simulated`.
    pub kind: TransportKind,
    /// Seconds that a worker waits for another before it gives up and says for whom.
    pub deadline_s: f64,
    /// The same before the first round, where the other may have to read and cut its data first.
    pub start_deadline_s: f64,
    /// A link model: a named link (`wan-100mbit-40ms`) or numbers (`100mbit,40ms`). Empty: as fast as it goes.
    pub shape: String,
    /// Whether the link model really waits rather than keeping a virtual clock.
    pub shape_sleeps: bool,
    /// A fault to rehearse: `{ rank = 1, round = 3, kind = "crash" }` or `"stall"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Simulated: steps a second of each trainer, the last one's for those behind it, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speeds: Vec<f64>,
    /// Simulated: trainers that fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<TrainerFault>,
}

/// `transport.faults`: what happens to a trainer, or to the aggregator, on the simulated clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainerFault {
    /// Whom it happens to.
    pub who: Who,
    /// When; not given: at the start, so that it never comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Span>,
    /// What happens then.
    pub kind: Failing,
    /// After how long it is back; not given: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back: Option<Span>,
}

/// Whom a simulated fault happens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Who {
    /// The trainer of this part.
    Trainer(u32),
    /// The one who takes means.
    Named(NamedWho),
}

/// The one who takes means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamedWho {
    /// `"aggregator"`
    Aggregator,
}

/// How somebody fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failing {
    /// Its process ends and takes its links with it, so that the others are told. Who comes back has forgotten
    /// everything.
    Killed,
    /// Its machine is switched off: nobody is told.
    SwitchedOff,
    /// It does nothing for a while, and then goes on as if nothing had been.
    Stalled,
}

/// `transport.fault`: a rehearsal of what happens when a worker fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The worker that fails.
    pub rank: u32,
    /// The round before which it fails.
    pub round: u32,
    /// How it fails.
    pub kind: FaultKind,
}

/// How a worker fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// It ends with an error.
    Crash,
    /// It says nothing for three deadlines.
    Stall,
}

impl Default for TransportConfig {
    fn default() -> Self {
        TransportConfig {
            kind: TransportKind::Threads,
            deadline_s: 60.0,
            start_deadline_s: 600.0,
            shape: String::new(),
            shape_sleeps: false,
            fault: None,
            speeds: Vec::new(),
            faults: Vec::new(),
        }
    }
}

/// `transport.kind`: who starts workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportKind {
    /// Threads of one process.
    Threads,
    /// Processes of this machine, which the program starts and watches.
    Processes,
    /// Processes of an MPI job.
    Mpi,
    /// One thread and a clock that jumps from one event to the next; for independent trainers.
    Simulated,
}

impl TransportKind {
    /// The name in configurations and summaries.
    pub fn name(self) -> &'static str {
        match self {
            TransportKind::Threads => "threads",
            TransportKind::Processes => "processes",
            TransportKind::Mpi => "mpi",
            TransportKind::Simulated => "simulated",
        }
    }
}

/// `[out]`: what is written, and where.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutConfig {
    /// The run's folder; `runs/<configuration file's name>` if empty.
    pub dir: PathBuf,
    /// Rounds between two checkpoints; 0: only at the end of a stage and on Ctrl-C.
    pub checkpoint_every: u32,
}

//! `[transport]` and `[out]`: what carries the bytes, and what is written.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pace::Span;

/// `[transport]`: what carries the bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TransportConfig {
    /// threads | processes | mpi | simulated: workers of one process; or a process each, which the program starts and
    /// watches, or those of mpirun; or independent trainers by a clock that jumps from event to event.
    pub kind: TransportKind,
    /// Seconds a worker waits for another before it gives up and says for whom, and a step of independent trainers may
    /// take.
    pub deadline_s: f64,
    /// The same before the first round, where others may still read and cut data.
    pub start_deadline_s: f64,
    /// Link model: a named link or numbers such as "100mbit,40ms" (none).
    pub shape: String,
    /// The link model really waits (false: virtual clock).
    pub shape_sleeps: bool,
    /// Rehearse a failure: { rank, round, kind = "crash" | "stall" }.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// simulated: steps a second of each trainer, the last for those behind it ([]: 1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speeds: Vec<f64>,
    /// simulated: a list of { who = trainer or "aggregator", at, kind = "killed" | "switched_off" | "stalled", back },
    /// times such as "90 s" ([]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<TrainerFault>,
}

/// `transport.faults`: what happens to a trainer, or to the aggregator, on the simulated clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Who {
    /// The trainer of this part.
    Trainer(u32),
    /// The one who takes means.
    Named(NamedWho),
}

/// The one who takes means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NamedWho {
    /// `"aggregator"`
    Aggregator,
}

/// How somebody fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Failing {
    /// Its process ends and takes its links with it, so that the others are told. A worker that rejoins has forgotten
    /// everything.
    Killed,
    /// Its machine is switched off: nobody is told.
    SwitchedOff,
    /// It does nothing for a while, and then goes on as if nothing had been.
    Stalled,
}

/// `transport.fault`: a rehearsal of what happens when a worker fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OutConfig {
    /// Folder of the run (runs/NAME).
    pub dir: PathBuf,
    /// Rounds between two checkpoints, 0: at the end of stages and on Ctrl-C.
    pub checkpoint_every: u32,
}

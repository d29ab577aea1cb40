//! `[transport]` and `[out]`: what carries the bytes, and what is written.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `[transport]`: what carries the bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransportConfig {
    /// `threads`, `processes` or `mpi`.
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
}

impl TransportKind {
    /// The name in configurations and summaries.
    pub fn name(self) -> &'static str {
        match self {
            TransportKind::Threads => "threads",
            TransportKind::Processes => "processes",
            TransportKind::Mpi => "mpi",
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

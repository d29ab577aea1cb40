//! What can go wrong in a run.

use std::path::{Path, PathBuf};

use laconic_graph::error::GraphError;
use laconic_wire::{Content, WireError};

/// An error of a run, with what it was about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The configuration cannot be used.
    #[error("configuration: {0}")]
    Config(String),
    /// The data cannot be used.
    #[error("data: {0}")]
    Data(#[from] GraphError),
    /// A message did not come, or was not what it should be.
    #[error("network: {0}")]
    Wire(WireError),
    /// A frame may not leave, and was not sent.
    #[error("policy.deny: {0}; no such frame was sent. `laconic plan` says what a run sends")]
    Denied(WireError),
    /// What owners keep would be told without leave.
    #[error("policy: {what}, and this worker does not let {content} leave; {how}")]
    NotAllowed {
        /// What asks for it.
        what: String,
        /// What its messages hold.
        content: Content,
        /// What keeps it back, or would allow it.
        how: &'static str,
    },
    /// Another worker was not there in time when the run was to start.
    #[error("network: {source}; the run had not started: {stage} (transport.start_deadline_s)")]
    Start {
        /// Who waited for whom.
        source: WireError,
        /// What the other one was still to do.
        stage: &'static str,
    },
    /// A file of a run cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// A file of a run is not what it should be.
    #[error("{path}: {expected}")]
    File {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        expected: String,
    },
    /// Another process writes into a run's folder.
    #[error("{folder} is being written by {}", named(.process))]
    Busy {
        /// The folder.
        folder: PathBuf,
        /// The number of the process, where it is known.
        process: String,
    },
    /// Training left the numbers.
    #[error("training diverged in round {round}: {what}; a smaller train.lr or train.clip may help")]
    Diverged {
        /// The round.
        round: u32,
        /// Where the first number that is none was seen.
        what: String,
    },
    /// A worker panicked: an error of this program.
    #[error("worker {rank} panicked: {message}")]
    Panicked {
        /// The worker.
        rank: u32,
        /// What it said.
        message: String,
    },
    /// Workers hold different parameters at the end: an error of this program or of a machine.
    #[error("workers 0 and {rank} hold different parameters at the end of the run")]
    ReplicasDiffer {
        /// The first worker that differs from worker 0.
        rank: u32,
    },
    /// A stage began without rows to begin with: an error of this program.
    #[error("worker {rank} has no rows for a stage: those it had went into the one before, which handed none on")]
    NothingHanded {
        /// The worker.
        rank: u32,
    },
    /// Too few trainers were left for a mean.
    #[error("{}", too_few(*answered, *wanted, *gathering, *means))]
    NoQuorum {
        /// How many have answered.
        answered: usize,
        /// How many a mean is taken of at least.
        wanted: usize,
        /// Whether they were still to come, rather than to answer.
        gathering: bool,
        /// Means that were taken.
        means: u32,
    },
    /// Nobody takes means any more.
    #[error("the aggregator was lost; {}", from_mean(*means))]
    AggregatorLost {
        /// Means that were taken.
        means: u32,
    },
    /// A fault that the configuration asked for.
    #[error("worker {rank} stopped in round {round}, as transport.fault asks")]
    Fault {
        /// The worker.
        rank: u32,
        /// The round.
        round: u32,
        /// Whether it had been silent, so that the others' errors are what a real stall would show.
        stalled: bool,
    },
}

/// Stands for the file of what a worker alone remembers, until it is known which.
pub(crate) const STATE: &str = "state of a worker";

/// A process by its number, where it is known.
fn named(process: &str) -> String {
    if process.is_empty() { "another process".to_owned() } else { format!("process {process}") }
}

/// The result of anything in a run.
pub type Result<T> = std::result::Result<T, TrainError>;

/// That too few trainers were left for a mean.
fn too_few(answered: usize, wanted: usize, gathering: bool, means: u32) -> String {
    let (what, keys) = match gathering {
        true => ("come", "schedule.quorum, transport.start_deadline_s"),
        false => ("answered", "schedule.quorum, transport.deadline_s"),
    };
    let so_many = format!("{answered} of the {wanted} trainers that a mean is taken of");
    format!("{so_many} have {what} in time ({keys}); {}", from_mean(means))
}

/// What is left of a run of independent trainers that has ended after so many means.
fn from_mean(means: u32) -> String {
    match means {
        0 => "no mean had been taken, so the run can only begin anew".to_owned(),
        means => format!("the run goes on from mean {means} with `laconic resume`"),
    }
}

impl From<WireError> for TrainError {
    fn from(error: WireError) -> Self {
        match error {
            denied @ WireError::Denied { .. } => TrainError::Denied(denied),
            other => TrainError::Wire(other),
        }
    }
}

impl TrainError {
    /// A configuration error.
    pub fn config(what: impl Into<String>) -> Self {
        TrainError::Config(what.into())
    }

    /// An input or output error of this file.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        TrainError::Io { path: path.into(), source }
    }

    /// A malformed file.
    pub fn file(path: impl Into<PathBuf>, expected: impl Into<String>) -> Self {
        TrainError::File { path: path.into(), expected: expected.into() }
    }

    /// A checkpoint that is not what it should be.
    pub fn checkpoint<T: Into<String>>(expected: T) -> Self {
        TrainError::file("checkpoint.safetensors", expected)
    }

    /// A worker's own state that is not what it should be.
    pub fn state<T: Into<String>>(expected: T) -> Self {
        TrainError::file(STATE, expected)
    }

    /// The same error, with the whole path of a file of which only the name is known.
    #[must_use]
    pub fn within(self, folder: &Path) -> Self {
        let is_name = |path: &PathBuf| path.components().count() == 1 && path != folder;
        let whole = |path: PathBuf| if is_name(&path) { folder.join(path) } else { path };
        match self {
            TrainError::Io { path, source } => TrainError::Io { path: whole(path), source },
            TrainError::File { path, expected } => TrainError::File { path: whole(path), expected },
            other => other,
        }
    }

    /// Whether this error only says that another worker is gone, so that the other's own error says more.
    pub fn is_consequence(&self) -> bool {
        let gone = |error: &WireError| matches!(error, WireError::Gone { .. } | WireError::Interrupted { .. });
        match self {
            TrainError::Wire(WireError::WithPeer { source, .. }) => gone(source),
            TrainError::Wire(error) => gone(error),
            TrainError::Fault { stalled, .. } => *stalled,
            _ => false,
        }
    }

    /// A file of the run is not what it should be.
    pub fn is_wrong_file(&self) -> bool {
        matches!(self, TrainError::File { .. })
    }

    /// The worker that this one waited for in vain, where that is the error.
    pub fn waited_for(&self) -> Option<u32> {
        match self {
            TrainError::Wire(WireError::Deadline { peer, .. })
            | TrainError::Start { source: WireError::Deadline { peer, .. }, .. } => Some(peer.0),
            _ => None,
        }
    }

    /// The exit code of the program: 2 configuration, 3 data, 4 network, 5 files, 6 divergence, 7 a policy,
    /// 70 an error of ours.
    pub fn exit_code(&self) -> u8 {
        match self {
            TrainError::Config(_) => 2,
            TrainError::Data(_) => 3,
            TrainError::Wire(_) | TrainError::Start { .. } | TrainError::Fault { .. } => 4,
            TrainError::NoQuorum { .. } | TrainError::AggregatorLost { .. } => 4,
            TrainError::Io { .. } | TrainError::File { .. } | TrainError::Busy { .. } => 5,
            TrainError::Diverged { .. } => 6,
            TrainError::Denied(_) | TrainError::NotAllowed { .. } => 7,
            TrainError::Panicked { .. } | TrainError::ReplicasDiffer { .. } | TrainError::NothingHanded { .. } => 70,
        }
    }
}

//! How to run, and what a run ends with.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use laconic_wire::Ledger;

use crate::fit::stages::Trained;
use crate::plan::{Members, Plan};
use crate::record::observer::{Observer, Silent};
use crate::record::summary::Summary;

/// How to run.
pub struct Options {
    /// The folder to write into; nothing is written without.
    pub out: Option<PathBuf>,
    /// Whether each worker has a folder of its own, as at a site: it then holds all that a run leaves, but for the
    /// summary of all, which worker 0 has.
    pub own_folder: bool,
    /// Whether to go on from the folder's checkpoint.
    pub resume: bool,
    /// When resuming, the keys that may be other than they were, such as `train.epochs`: those that decide the rounds
    /// to come ([`Reach::Course`](crate::config::Reach)). Any other that differs is refused.
    pub changes: Vec<String>,
    /// Set by the caller to stop at the end of the round, with a checkpoint; never set here.
    pub interrupt: Arc<AtomicBool>,
    /// Set by the caller to give up at once; never set here.
    pub abort: Arc<AtomicBool>,
    /// The one who watches.
    pub observer: Box<dyn Observer>,
    /// Who the names of the configuration stand for.
    pub members: Members,
    /// Whether every account of the ledgers stays in memory until the end, as it does where there is no folder to write
    /// it into. Accounts grow with rounds, links and layers.
    pub keep_accounts: bool,
    /// Whether to start although the workers may need more memory than there is.
    pub force: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            out: None,
            own_folder: false,
            resume: false,
            changes: Vec::new(),
            interrupt: Arc::default(),
            abort: Arc::default(),
            observer: Box::new(Silent),
            members: Members::default(),
            keep_accounts: false,
            force: false,
        }
    }
}

/// What one worker ends with.
pub struct Outcome {
    /// The worker's number.
    pub rank: u32,
    /// The run as it was, with the messages that a byte budget has chosen.
    pub plan: Arc<Plan>,
    /// Parameters and figures; the same on every worker.
    pub trained: Trained,
    /// What it sent. This and the other two hold totals alone where accounts are written into a folder, and not kept
    /// ([`Options::keep_accounts`]).
    pub sent: Ledger,
    /// What it received.
    pub received: Ledger,
    /// What it was predicted to send.
    pub predicted: Ledger,
    /// The summary of the whole run, on worker 0.
    pub summary: Option<Summary>,
}

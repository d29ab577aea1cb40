//! What Ctrl-C does: the first asks the run to stop at the end of the round with a checkpoint, the second gives up at
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use signal_hook::consts::{SIGINT, SIGTERM};

/// How long the second request lets a run write down what it has.
const GRACE: std::time::Duration = std::time::Duration::from_secs(3);

/// The two requests.
pub struct Signals {
    /// Stop at the end of the round.
    pub interrupt: Arc<AtomicBool>,
    /// Give up at once.
    pub abort: Arc<AtomicBool>,
}

impl Signals {
    /// Starts to listen. Under MPI a termination signal means that another process has died: waiting for it is
    /// pointless, so the wait ends at once, and its error says for whom it was.
    pub fn install(mpi: bool) -> Result<Signals> {
        let (interrupt, abort) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let mine = Signals { interrupt: interrupt.clone(), abort: abort.clone() };
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        let listen = move || {
            for signal in signals.forever() {
                let asked_before = interrupt.swap(true, Ordering::Relaxed);
                if asked_before || (mpi && signal == SIGTERM) {
                    abort.store(true, Ordering::Relaxed);
                    // Work that looks at no flag, such as reading, is not waited for.
                    std::thread::sleep(GRACE);
                    std::process::exit(130);
                }
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(mine)
    }
}

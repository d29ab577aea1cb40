//! What Ctrl-C does: the first asks the run to stop at the end of the round with a checkpoint, the second gives up at
//! once. A command that only writes a file gives up at the first.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use laconic_graph::aside::part_of;
use signal_hook::consts::{SIGINT, SIGTERM};

/// How long the second request lets a run write down what it has.
const GRACE: std::time::Duration = std::time::Duration::from_secs(3);

/// How long the last round of a job that ends may take: `mpirun` kills after a second.
const ROUND: std::time::Duration = std::time::Duration::from_millis(300);

/// How often a folder is taken away that somebody still writes to.
const TRIES: usize = 100;

/// The exit code of what the user stopped.
pub const STOPPED: u8 = 130;

/// The two requests.
pub struct Signals {
    /// Stop at the end of the round.
    pub interrupt: Arc<AtomicBool>,
    /// Give up at once.
    pub abort: Arc<AtomicBool>,
    /// Whether it is the user who wants to give up.
    gave_up: Arc<AtomicBool>,
}

impl Signals {
    /// Starts to listen. Under MPI a termination signal means that the user has stopped the job, or that another
    /// process has died. In the first case all processes end their round together; in the second they wait for it in
    /// vain, so soon every wait ends, and its error says for whom it was.
    pub fn install(mpi: bool) -> Result<Signals> {
        let [interrupt, abort, gave_up] = std::array::from_fn(|_| Arc::new(AtomicBool::new(false)));
        let mine = Signals { interrupt: interrupt.clone(), abort: abort.clone(), gave_up: gave_up.clone() };
        listen(move |signal| {
            let asked_before = interrupt.swap(true, Ordering::Relaxed);
            let job_ends = mpi && signal == SIGTERM;
            if asked_before || job_ends {
                gave_up.store(asked_before && !job_ends, Ordering::Relaxed);
                if job_ends {
                    std::thread::sleep(ROUND);
                }
                abort.store(true, Ordering::Relaxed);
                // Work that looks at no flag, such as reading, is not waited for.
                std::thread::sleep(GRACE);
                std::process::exit(STOPPED.into());
            }
        })?;
        Ok(mine)
    }

    /// Whether the user has asked twice, so that what ended with an error did so by wish.
    pub fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }
}

/// Starts to listen while a command writes one file, or folder: stopped, it leaves nothing half-written behind.
pub fn clean_up(file: &Path) -> Result<()> {
    clean_up_and(file, || ())
}

/// The same; stopped, the command also does this at last.
pub fn clean_up_and(file: &Path, mut at_last: impl FnMut() + Send + 'static) -> Result<()> {
    let part = part_of(file);
    listen(move |_| {
        at_last();
        // What still writes may put another file into a folder while it goes, but none once it has gone.
        let gone = |_: &usize| std::fs::remove_file(&part).or_else(|_| std::fs::remove_dir_all(&part)).is_ok();
        let _ = (0..TRIES).find(gone);
        std::process::exit(STOPPED.into());
    })
}

fn listen(mut act: impl FnMut(i32) + Send + 'static) -> Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).context("cannot listen to signals")?;
    let listen = move || signals.forever().for_each(&mut act);
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread
        .spawn(listen)
        .map_err(|source| laconic_train::TrainError::io("the thread that listens to signals", source))?;
    Ok(())
}

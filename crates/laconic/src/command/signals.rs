//! What Ctrl-C does: the first asks the run to stop at the end of the round with a checkpoint, the second gives up at
//! once. A command that only writes a file gives up at the first. A scheduler says the same thing with SIGTERM, some of
//! them twice, and kills what is left some time later.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use laconic_graph::aside::part_of;
use laconic_train::run::launcher::Launcher;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;

/// How long the second request lets a run write down what it has.
const GRACE: Duration = Duration::from_secs(3);

/// How long the last round of a job that ends may take: `mpirun` kills after a second.
const ROUND: Duration = Duration::from_millis(300);

/// Within this time of the first request a second SIGTERM is the same one: at a time limit Slurm's daemon sends one to
/// each process of a step, and `srun` passes on its own.
const ONE: Duration = Duration::from_secs(2);

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

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// To stop at the end of the round.
    ToStop,
    /// The same, from a `mpirun` that kills in this time.
    ToStopWithin(Duration),
    /// What was asked before.
    Nothing,
    /// To give up.
    AtOnce,
}

/// The requests so far.
struct Requests {
    mpi: bool,
    launcher: Launcher,
    first: Option<Instant>,
    count: u32,
}

impl Requests {
    /// What a signal asks for that came now, sent by the process that has started this one or by another.
    fn next(&mut self, signal: i32, from_parent: bool, now: Instant) -> Asks {
        let first = *self.first.get_or_insert(now);
        self.count += 1;
        // Under a scheduler its own signal leaves much more time than that of a `mpirun`.
        let of_mpirun = self.launcher.scheduler.is_none() || (from_parent && self.launcher.mpirun);
        let job_ends = self.mpi && signal == SIGTERM && of_mpirun;
        match self.count {
            _ if job_ends => Asks::ToStopWithin(self.round()),
            1 => Asks::ToStop,
            2 if signal == SIGTERM && now.duration_since(first) <= ONE => Asks::Nothing,
            _ => Asks::AtOnce,
        }
    }

    /// How long a round may take where `mpirun` ends the job: two thirds of its own time where somebody has set that,
    /// under a scheduler, for a checkpoint.
    fn round(&self) -> Duration {
        let set = self.launcher.kills_after.filter(|_| self.launcher.scheduler.is_some());
        set.map_or(ROUND, |seconds| (Duration::from_secs(seconds.into()) * 2 / 3).max(ROUND))
    }
}

impl Signals {
    /// Starts to listen. Under MPI a termination signal of `mpirun` means that the user has stopped the job, or that
    /// another process has died. In the first case all processes end their round together; in the second they wait for
    /// it in vain, so soon every wait ends, and its error says for whom it was.
    pub fn install(mpi: bool) -> Result<Signals> {
        let [interrupt, abort, gave_up] = std::array::from_fn(|_| Arc::new(AtomicBool::new(false)));
        let mine = Signals { interrupt: interrupt.clone(), abort: abort.clone(), gave_up: gave_up.clone() };
        let mut requests = Requests { mpi, launcher: Launcher::of_this_process(), first: None, count: 0 };
        listen(move |signal, from_parent| {
            let asks = requests.next(signal, from_parent, Instant::now());
            interrupt.store(true, Ordering::Relaxed);
            match asks {
                Asks::ToStop | Asks::Nothing => return,
                Asks::ToStopWithin(time) => std::thread::sleep(time),
                Asks::AtOnce => gave_up.store(true, Ordering::Relaxed),
            }
            abort.store(true, Ordering::Relaxed);
            // Work that looks at no flag, such as reading, is not waited for.
            std::thread::sleep(GRACE);
            std::process::exit(STOPPED.into());
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
    listen(move |_, _| {
        at_last();
        // What still writes may put another file into a folder while it goes, but none once it has gone.
        let gone = |_: &usize| std::fs::remove_file(&part).or_else(|_| std::fs::remove_dir_all(&part)).is_ok();
        let _ = (0..TRIES).find(gone);
        std::process::exit(STOPPED.into());
    })
}

fn listen(mut act: impl FnMut(i32, bool) + Send + 'static) -> Result<()> {
    let signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM]);
    let mut signals = signals.context("cannot listen to signals")?;
    let parent = parent();
    let listen = move || {
        for origin in signals.forever() {
            act(origin.signal, origin.process.is_some_and(|sender| parent == u32::try_from(sender.pid).ok()));
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread
        .spawn(listen)
        .map_err(|source| laconic_train::TrainError::io("the thread that listens to signals", source))?;
    Ok(())
}

/// The process that has started this one, where the system says so.
fn parent() -> Option<u32> {
    #[cfg(unix)]
    {
        Some(std::os::unix::process::parent_id())
    }
    #[cfg(not(unix))]
    {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(mpi: bool, variables: &[(&str, &str)]) -> Requests {
        let value = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.to_string());
        Requests { mpi, launcher: Launcher::from(value), first: None, count: 0 }
    }

    /// What signals at these times, in milliseconds, ask for, each sent by the parent or not.
    fn asked(mut requests: Requests, signals: &[(i32, bool, u64)]) -> Vec<Asks> {
        let start = Instant::now();
        signals
            .iter()
            .map(|(signal, own, at)| requests.next(*signal, *own, start + Duration::from_millis(*at)))
            .collect()
    }

    const SLURM: (&str, &str) = ("SLURM_JOB_ID", "7");
    const OPEN: (&str, &str) = ("OMPI_COMM_WORLD_SIZE", "3");

    #[test]
    fn two_terms_within_two_seconds_are_one_and_everything_else_that_follows_is_at_once() {
        let of = |signals: &[(i32, bool, u64)]| asked(requests(false, &[]), signals);
        let term = |at| (SIGTERM, false, at);
        assert_eq!(of(&[term(0), term(100), term(200)]), [Asks::ToStop, Asks::Nothing, Asks::AtOnce]);
        assert_eq!(of(&[term(0), term(2000)]), [Asks::ToStop, Asks::Nothing]);
        assert_eq!(of(&[term(0), term(2001)]), [Asks::ToStop, Asks::AtOnce]);
        assert_eq!(of(&[term(0), (SIGINT, false, 100)]), [Asks::ToStop, Asks::AtOnce], "Ctrl-C is meant");
        assert_eq!(of(&[(SIGINT, false, 0), (SIGINT, false, 100)]), [Asks::ToStop, Asks::AtOnce]);
        assert_eq!(of(&[(SIGINT, false, 0), term(100)]), [Asks::ToStop, Asks::Nothing], "passed on by who got Ctrl-C");
    }

    #[test]
    fn a_plain_mpirun_leaves_three_tenths_of_a_second_and_a_scheduler_all_of_its_time() {
        let term = [(SIGTERM, true, 0), (SIGTERM, true, 100)];
        let soon = Asks::ToStopWithin(ROUND);
        assert_eq!(asked(requests(true, &[OPEN]), &term)[0], soon);
        assert_eq!(asked(requests(true, &[SLURM]), &term), [Asks::ToStop, Asks::Nothing], "srun");
        // Within a job `mpirun` kills as soon as elsewhere, but not whom the scheduler itself has told.
        assert_eq!(asked(requests(true, &[SLURM, OPEN]), &term)[0], soon);
        let of_scheduler = [(SIGTERM, false, 0), (SIGTERM, true, 50)];
        assert_eq!(asked(requests(true, &[SLURM, OPEN]), &of_scheduler), [Asks::ToStop, soon]);
        let patient = ("OMPI_MCA_odls_base_sigkill_timeout", "30");
        let within = Asks::ToStopWithin(Duration::from_secs(20));
        assert_eq!(asked(requests(true, &[SLURM, OPEN, patient]), &term)[0], within);
        assert_eq!(asked(requests(true, &[OPEN, patient]), &term)[0], soon, "somebody has died, and is to be named");
    }
}

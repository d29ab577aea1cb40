//! Workers as processes of an MPI job.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use laconic_wire::transport::mpi::{EAGER_BYTES, EAGER_LIMIT, MpiTransport, abort, library_version, raise_eager_limit};
use laconic_wire::{Rank, Transport};

use super::cores::{Found, Mask, Place, Share, share};
use super::launcher::Launcher;
use super::options::{Options, Outcome};
use super::process::run_on_this_machine;
use crate::config::Config;
use crate::error::{Result, TrainError};

/// How long a process waits before it ends the job: an abort kills at once, and worker 0 first gets the time to write
/// down what it had reached.
const BEFORE_ABORT: Duration = Duration::from_millis(500);

/// The exit code of errors of the network.
const EXIT_CODE: i32 = 4;

/// Once the scheduler has asked all to end no wait lasts longer, so that who waits in vain can still write down what it
/// had reached: Slurm and Kubernetes kill after 30 s.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Says to MPI what it has to know before it begins. A program calls it first of all, before it has a second thread;
/// otherwise it does nothing.
pub fn prepare_mpi() {
    raise_eager_limit();
}

/// Runs the one worker of this MPI process. Processes on one machine share its cores.
///
/// # Errors
/// As [`run_worker`](super::run_worker), and if this process cannot join the job, or is alone in one of several.
pub fn run_mpi(config: &Config, mut options: Options) -> Result<Outcome> {
    let launcher = Launcher::of_this_process();
    let (mut transport, masks) = join(config, &launcher)?;
    transport.add_interrupt(options.abort.clone());
    if launcher.scheduler.is_some() {
        transport.end_mut().hurry(options.interrupt.clone(), LONGEST_WAIT);
    }
    let share = share_of(&masks, &launcher);
    if transport.rank() == Rank(0) && transport.size() > 1 {
        let found = Found { all: transport.size(), here: masks.len(), share, asked: config.train.threads };
        options.observer.noted(&found.said(&launcher));
        eager().iter().for_each(|note| options.observer.noted(note));
    }
    run_on_this_machine(config, Box::new(transport), options, masks.len().max(1), share.threads)
}

/// This process's share of the machine's cores.
fn share_of(masks: &[Mask], launcher: &Launcher) -> Share {
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    // Under a scheduler the machine's other cores may be those of other jobs.
    let there = match launcher.scheduler {
        Some(_) => launcher.cores.map_or(0, |cores| cores as usize),
        None => Mask::of_machine().count(),
    };
    share(&Mask::of_this_process(), masks, most, there)
}

/// What is said of it where Open MPI was told something that the user had not.
fn eager() -> Option<String> {
    let set = std::env::var(EAGER_LIMIT).is_ok_and(|bytes| bytes == EAGER_BYTES.to_string());
    (set && library_version().starts_with("Open MPI")).then(|| {
        let megabytes = EAGER_BYTES >> 20;
        format!(
            "over TCP, messages of up to {megabytes} MiB go without a question first ({EAGER_LIMIT}={EAGER_BYTES}, \
             unless you set it)"
        )
    })
}

/// Joins the job, and asks who else is on this machine and where each may run. The library waits there for all other
/// processes and knows no deadline, so this process ends by itself when one of them does not come.
fn join(config: &Config, launcher: &Launcher) -> Result<(MpiTransport, Vec<Mask>)> {
    let (deadline, seconds) = (config.start_deadline(), config.transport.start_deadline_s);
    let (joined, watched) = channel::<()>();
    let watch = move || {
        if watched.recv_timeout(deadline) == Err(RecvTimeoutError::Timeout) {
            let what = "not every process of this job has joined it";
            eprintln!("laconic: network: {what} after {seconds} s (transport.start_deadline_s)");
            std::process::exit(EXIT_CODE);
        }
    };
    let thread = std::thread::Builder::new().name("watchdog".to_owned());
    thread.spawn(watch).map_err(|source| TrainError::io("a thread that watches the start", source))?;
    let mut transport = MpiTransport::init(config.deadline())?;
    launcher.refuse_alone(transport.size(), &library_version())?;
    let place = Place::of_this_process();
    let all = transport.told_by_all(&place.to_bytes())?;
    drop(joined);
    Ok((transport, place.beside(&all)))
}

/// Ends every process of this MPI job with this exit code; for errors after which the others would only wait.
pub fn abort_mpi(code: u8) -> ! {
    std::thread::sleep(BEFORE_ABORT);
    abort(code.into())
}

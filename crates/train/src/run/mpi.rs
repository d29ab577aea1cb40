//! Workers as processes of an MPI job.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use laconic_wire::Transport;
use laconic_wire::transport::mpi::{MpiTransport, abort};

use super::options::{Options, Outcome};
use super::process::run_on_this_machine;
use crate::config::Config;
use crate::error::{Result, TrainError};

/// How long a process waits before it ends the job: an abort kills at once, and worker 0 first gets the time to write
/// down what it had reached.
const BEFORE_ABORT: Duration = Duration::from_millis(500);

/// The exit code of errors of the network.
const EXIT_CODE: i32 = 4;

/// Runs the one worker of this MPI process. Processes on one machine share its cores.
///
/// # Errors
/// As [`run_worker`], and if this process cannot join the job.
pub fn run_mpi(config: &Config, options: Options) -> Result<Outcome> {
    let mut transport = join(config)?;
    transport.add_interrupt(options.abort.clone());
    let all = transport.size();
    let here = std::env::var("OMPI_COMM_WORLD_LOCAL_SIZE").ok().and_then(|v| v.parse().ok()).unwrap_or(all).max(1);
    run_on_this_machine(config, Box::new(transport), options, here)
}

/// Joins the job. The library waits there for all other processes and knows no deadline, so this process ends by itself
/// when one of them does not come.
fn join(config: &Config) -> Result<MpiTransport> {
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
    let transport = MpiTransport::init(config.deadline())?;
    drop(joined);
    Ok(transport)
}

/// Ends every process of this MPI job with this exit code; for errors after which the others would only wait.
pub fn abort_mpi(code: u8) -> ! {
    std::thread::sleep(BEFORE_ABORT);
    abort(code.into())
}

//! Workers as processes of an MPI job.

use std::time::Duration;

use laconic_wire::Transport;
use laconic_wire::transport::mpi::{MpiTransport, abort};

use super::options::{Options, Outcome};
use super::process::run_among;
use super::source::Source;
use crate::config::Config;
use crate::error::Result;

/// How long a process waits before it ends the job: an abort kills at once, and worker 0 first gets the time to write
/// down what it had reached.
const BEFORE_ABORT: Duration = Duration::from_millis(500);

/// Runs the one worker of this MPI process. Processes on one machine share its cores.
///
/// # Errors
/// As [`run_worker`], and if this process cannot join the job.
pub fn run_mpi(config: &Config, options: Options) -> Result<Outcome> {
    let mut transport = MpiTransport::init(config.deadline())?;
    transport.add_interrupt(options.abort.clone());
    let size = transport.size();
    let source = Source::open(&options.members, config, Some(size as u32))?;
    let mut config = config.clone();
    let local = std::env::var("OMPI_COMM_WORLD_LOCAL_SIZE").ok().and_then(|v| v.parse().ok()).unwrap_or(size).max(1);
    if config.train.threads == 0 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        config.train.threads = (cores / local).max(1);
    }
    run_among(&config, Box::new(transport), source, options, local)
}

/// Ends every process of this MPI job with this exit code; for errors after which the others would only wait.
pub fn abort_mpi(code: u8) -> ! {
    std::thread::sleep(BEFORE_ABORT);
    abort(code.into())
}

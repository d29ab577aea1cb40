//! Workers as processes of one machine that meet at local sockets.

use laconic_wire::transport::Patience;
use laconic_wire::{Address, SocketsTransport};

use super::options::Options;
use super::process::run_on_this_machine;
use super::trainers::processes as of_trainers;
use crate::config::Config;
use crate::error::Result;
use crate::record::summary::Summary;

/// Runs the worker of this process, which joins the others. They share the machine's cores. Only the worker of rank 0
/// has a summary.
///
/// # Errors
/// As [`run_worker`](super::run_worker), and if the others do not come.
pub fn run_process(config: &Config, address: &Address, options: Options) -> Result<Option<Summary>> {
    if options.members.has_trainers(config)? && !options.members.workers_evaluate_means(config)? {
        return of_trainers::run(config, address, options);
    }
    let mut patience = Patience::new(config.start_deadline());
    patience.add_interrupt(options.abort.clone());
    let transport = SocketsTransport::join(address, &patience, config.deadline())?;
    let (here, cores) = (address.size as usize, std::thread::available_parallelism().map_or(1, usize::from));
    Ok(run_on_this_machine(config, Box::new(transport), options, here, (cores / here).max(1))?.summary)
}

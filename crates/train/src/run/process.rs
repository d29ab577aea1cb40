//! One worker in a process of its own: whoever has a transport to the others can run it.

use laconic_wire::{Rank, Transport};

use super::options::{Options, Outcome};
use super::session::{Process, Session};
use super::source::Source;
use super::start::admit;
use super::trainers::spread;
use crate::config::Config;
use crate::error::Result;
use crate::plan::Plan;
use crate::worker::StopSignal;

/// Runs the worker at this end of `transport`, whose number is the number of its part; every process of the job calls
/// it with the same configuration. `source` need hold no part but this worker's. Compute threads are `train.threads`,
/// or all cores of the machine. Its observer hears of every round, whatever the worker's number, and may stop the run.
///
/// Of independent trainers worker 0 is the aggregator, whose `source` need hold no part at all, and the trainer of part
/// k is worker k + 1. Only the aggregator has the trained model then, and is watched; a trainer's outcome says what it
/// has sent.
///
/// # Errors
/// If the configuration or the part cannot be used, or this worker or another fails.
pub fn run_worker(config: &Config, transport: Box<dyn Transport>, source: Source, options: Options) -> Result<Outcome> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    run_among(config, transport, source, options, 1, cores)
}

/// As [`run_worker`], of the configured data, and one of so many on this machine, with so many compute threads each
/// where the configuration names no number.
pub(super) fn run_on_this_machine(
    config: &Config,
    transport: Box<dyn Transport>,
    options: Options,
    alike: usize,
    share: usize,
) -> Result<Outcome> {
    // The aggregator of independent trainers is one process more than there are parts.
    let workers = if options.members.has_trainers(config)? { None } else { Some(transport.size() as u32) };
    let source = Source::open(&options.members, config, workers)?;
    run_among(config, transport, source, options, alike, share)
}

/// As [`run_worker`], one of so many on this machine, with its share of threads.
fn run_among(
    config: &Config,
    mut transport: Box<dyn Transport>,
    mut source: Source,
    mut options: Options,
    alike: usize,
    share: usize,
) -> Result<Outcome> {
    let (rank, size) = (transport.rank(), transport.size());
    options.observer.watches(rank.0);
    let threads = if config.train.threads > 0 { config.train.threads } else { share };
    if options.members.has_trainers(config)? {
        return spread::run(config, transport, source, options, alike, threads);
    }
    let config = options.members.resolved(config, size as u32)?;
    let part = source.take(rank.0)?;
    let plan = Plan::with(&options.members, &config, &part.global)?.with_label_skew(source.label_skew());
    plan.check_workers(size)?;
    source.add_note(plan.check_weights(std::slice::from_ref(&part))?);
    if rank == Rank(0) {
        source.add_note(plan.two_sided(source.left().chain([&part])));
    }
    let Options { out, own_folder, resume, changes, interrupt, abort, mut observer, keep_accounts, force, .. } =
        options;
    transport.add_interrupt(abort);
    source.notes().iter().for_each(|note| observer.noted(note));
    let (keeps_accounts, stop) = (keep_accounts || out.is_none(), StopSignal::of(interrupt));
    let memory = admit(&plan, std::slice::from_ref(&part), alike, keeps_accounts, force, observer.as_mut())?;
    let notes = source.notes().to_vec();
    let process =
        Process { out, own_folder, resume, changes, keeps_accounts, memory, threads, is_shared: false, stop, notes };
    let mut session = Session::open(plan, transport, part, process, observer)?;
    let trained = session.train()?;
    session.close(trained)
}

//! The aggregator, or one trainer, in a process of its own.

use std::sync::Arc;
use std::time::Instant;

use laconic_graph::part::Part;
use laconic_wire::transport::Patience;
use laconic_wire::{Ledger, Rank, Seat, SocketsTransport, StarTransport, Transport};

use super::Setup;
use super::close::{Closing, Traffic, close};
use super::on_threads::{live, preside};
use crate::config::{Config, TrainersHalo};
use crate::error::{Result, TrainError};
use crate::forecast::trained::{trained, with_something_to_learn};
use crate::forecast::trainers::TrainersForecast;
use crate::plan::Plan;
use crate::record::observer::Silent;
use crate::record::summary::Summary;
use crate::run::options::Options;
use crate::run::session::Process;
use crate::run::source::Source;
use crate::worker::StopSignal;

/// Takes this process's seat: the aggregator at rank 0, behind it a trainer for each part that is not dropped. Only the
/// aggregator has a summary.
///
/// # Errors
/// If the configuration or the data cannot be used, the aggregator is gone, or too few trainers are left.
pub(in crate::run) fn take(config: &Config, seat: &Seat, options: Options) -> Result<Option<Summary>> {
    let mut source = Source::open(&options.members, config, None)?;
    if seat.rank == 0 {
        return aggregate(config, seat, source, options).map(Some);
    }
    let all = source.parts();
    let mut config = options.members.resolved(config, all)?;
    share_cores(&mut config, seat.size as usize - 1);
    // The counts of any part say what is said of all.
    let every = (0..all).map(|part| source.take(part)).collect::<Result<Vec<Part>>>()?;
    let counts = every.first().map(|part| part.global.clone()).unwrap_or_default();
    let plan = Plan::with(&options.members, &config, &counts)?;
    let trainers = plan.trainers.clone().ok_or_else(|| TrainError::config("schedule.kind: no trainers"))?;
    let parts = with_something_to_learn(&every, trainers.parts(all)?, &config);
    let index = seat.rank as usize - 1;
    if index >= parts.len() {
        return Ok(None);
    }
    let (mut data, of_epoch) = trained((&options.members, &config), every, (&trainers, &parts), Some(index))?;
    let part = data.pop().ok_or_else(|| TrainError::config("there are more trainers than parts"))?;
    let Options { interrupt, abort, .. } = options;
    let give_up = StopSignal::of(abort.clone());
    let threads = config.train.threads;
    let process = Process {
        out: None,
        resume: false,
        changes: Vec::new(),
        keeps_accounts: false,
        memory: 0,
        threads,
        is_shared: false,
        stop: StopSignal::of(interrupt),
        notes: Vec::new(),
    };
    let (plan, forecast) = (Arc::new(plan), TrainersForecast::unknown(of_epoch.len() + 1));
    let mut patience = Patience::new(config.start_deadline());
    patience.add_interrupt(abort.clone());
    let exchange = match trainers.halo {
        TrainersHalo::None => None,
        TrainersHalo::Frozen | TrainersHalo::Stale => {
            let own =
                Seat { folder: seat.folder.join("exchange"), rank: seat.rank - 1, size: seat.size - 1, ..seat.clone() };
            let mut mesh = SocketsTransport::join(&own, &patience, config.deadline())?;
            mesh.add_interrupt(abort.clone());
            Some(Box::new(mesh) as Box<dyn Transport>)
        }
    };
    let mut arm = StarTransport::arm(seat, &patience, config.deadline())?;
    arm.add_interrupt(abort);
    let setup = Setup { plan, trainers, parts, config, process, forecast, give_up };
    live(&setup, part, exchange, Box::new(arm))?;
    Ok(None)
}

/// Compute threads of one of so many processes that share this machine.
fn share_cores(config: &mut Config, processes: usize) {
    if config.train.threads == 0 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        config.train.threads = (cores / processes.max(1)).max(1);
    }
}

fn aggregate(config: &Config, seat: &Seat, source: Source, mut options: Options) -> Result<Summary> {
    let began = Instant::now();
    let observer = std::mem::replace(&mut options.observer, Box::new(Silent));
    let (setup, data, mut opened) = super::prepare(config, source, options, observer)?;
    let mut middle = StarTransport::middle(seat, setup.config.deadline())?;
    setup.give_up.flags().into_iter().for_each(|flag| middle.add_interrupt(flag));
    let (ending, chair) = preside(&setup, data.whole, &mut opened, Box::new(middle))?;
    opened.desk.note_leaves(&chair.leaves);
    let end = opened.desk.before;
    // What trainers send each other they alone know; it is as much as was predicted.
    let exchanged: Vec<Ledger> = match setup.trainers.halo {
        TrainersHalo::None => vec![Ledger::new(); setup.parts.len()],
        TrainersHalo::Frozen | TrainersHalo::Stale => setup.forecast.books[1..].iter().map(among_trainers).collect(),
    };
    let traffic = Traffic::of_chair(&chair, &exchanged);
    let outcomes =
        close(Closing { setup: &setup, opened, traffic, ending: Some(ending), end, began, leaves: chair.leaves })?;
    let summary = outcomes.into_iter().next().and_then(|outcome| outcome.summary);
    summary.ok_or_else(|| TrainError::config("a run without a summary"))
}

/// What a trainer was predicted to send others than the aggregator.
fn among_trainers(book: &Ledger) -> Ledger {
    let mut ledger = Ledger::new();
    for (laconic_wire::Entry { round, peer, kind, layer, direction }, count) in book.iter() {
        if peer != Rank(0) {
            ledger.record_count(laconic_wire::Tag { kind, direction, layer, round, step: 0 }, peer, count);
        }
    }
    ledger
}

//! The aggregator, or one trainer, in a process of its own.

use std::sync::Arc;
use std::time::Instant;

use laconic_graph::part::Part;
use laconic_wire::transport::Patience;
use laconic_wire::{Address, Hosted, Ledger, Rank, SocketsTransport, StarTransport, Transport};

use super::Setup;
use super::close::{Closing, Traffic, close};
use super::evaluators;
use super::on_threads::{Led, ThreadTrainer, lead, live};
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

/// Runs what this process is: the aggregator at rank 0, behind it a trainer for each part that is not dropped. Only the
/// aggregator has a summary.
///
/// # Errors
/// If the configuration or the data cannot be used, the aggregator is gone, or too few trainers are left.
pub(in crate::run) fn run(config: &Config, address: &Address, options: Options) -> Result<Option<Summary>> {
    let mut source = Source::open(&options.members, config, None)?;
    if address.rank == 0 {
        return aggregate(config, address, source, options).map(Some);
    }
    let all = source.parts();
    let mut config = options.members.resolved(config, all)?;
    share_cores(&mut config, address.size as usize - 1);
    // The counts of any part say what is said of all.
    let every = (0..all).map(|part| source.take(part)).collect::<Result<Vec<Part>>>()?;
    let counts = every.first().map(|part| part.global.clone()).unwrap_or_default();
    let plan = Plan::with(&options.members, &config, &counts)?;
    let trainers = plan.trainers.clone().ok_or_else(|| TrainError::config("schedule.kind: no trainers"))?;
    let could = trainers.parts(all)?;
    let parts = with_something_to_learn(&every, could.clone(), &plan);
    let hosted = trainers.hosted(&parts)?;
    let index = place_of(address.rank, (trainers.hosted(&could)?, hosted));
    if index >= parts.len() {
        return Ok(None);
    }
    let class_weights = super::weights_among(&plan, &every, &parts);
    let (mut data, of_epoch) = trained((&options.members, &config), every, &trainers, &parts, Some(index))?;
    let part = data.pop().ok_or_else(|| TrainError::config("there are more trainers than parts"))?;
    let Options { interrupt, abort, .. } = options;
    let give_up = StopSignal::of(abort.clone());
    let threads = config.train.threads;
    let process = Process { threads, stop: StopSignal::of(interrupt), ..Process::default() };
    let (plan, forecast) = (Arc::new(plan), TrainersForecast::unknown(of_epoch.len() + 1));
    let over = StopSignal::default();
    let setup = Setup {
        plan,
        trainers,
        parts,
        hosted,
        config,
        of_epoch,
        class_weights,
        process,
        forecast,
        memory: Vec::new(),
        give_up,
        over,
    };
    let exchange = meet(&setup, address, index)?;
    let address = Address { rank: index as u32 + 1, ..address.clone() };
    let mut arm = StarTransport::arm(&address, &patience(&setup), setup.config.deadline())?;
    arm.add_interrupt(abort);
    live(&setup, index, part, exchange, Box::new(arm), None)?;
    Ok(None)
}

/// The place of the trainer in the process of this number. There is none for the one that lives with the aggregator,
/// whose places are those among parts that could have a trainer, which whoever starts processes knows, and among those
/// that have one.
fn place_of(number: u32, hosted: (Option<usize>, Option<usize>)) -> usize {
    let place = number as usize - 1;
    match hosted {
        (Some(thought), Some(found)) => {
            let others = place - usize::from(place > thought);
            others + usize::from(others >= found)
        }
        _ => place,
    }
}

/// How long processes wait for each other at the start.
fn patience(setup: &Setup) -> Patience {
    let mut patience = Patience::new(setup.config.start_deadline());
    setup.give_up.flags().into_iter().for_each(|flag| patience.add_interrupt(flag));
    patience
}

/// The end of the trainer at this place on the network on which trainers meet, where they do.
///
/// # Errors
/// If the others do not come.
fn meet(setup: &Setup, address: &Address, place: usize) -> Result<Option<Box<dyn Transport>>> {
    if !setup.trainers.meet() {
        return Ok(None);
    }
    let folder = address.folder.join("exchange");
    let own = Address { folder, rank: place as u32, size: setup.parts.len() as u32, ..address.clone() };
    let mut mesh = SocketsTransport::join(&own, &patience(setup), setup.config.deadline())?;
    setup.give_up.flags().into_iter().for_each(|flag| mesh.add_interrupt(flag));
    Ok(Some(Box::new(mesh)))
}

/// Compute threads of one of so many processes that share this machine.
fn share_cores(config: &mut Config, processes: usize) {
    if config.train.threads == 0 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        config.train.threads = (cores / processes.max(1)).max(1);
    }
}

fn aggregate(config: &Config, address: &Address, source: Source, mut options: Options) -> Result<Summary> {
    let began = Instant::now();
    let observer = std::mem::replace(&mut options.observer, Box::new(Silent));
    let (setup, data, mut opened) = super::prepare(config, source, options, observer)?;
    // Of parts without anything to learn from nobody comes.
    let own = Address { size: setup.parts.len() as u32 + 1, ..address.clone() };
    let mut middle = StarTransport::middle(&own, setup.config.deadline())?;
    setup.give_up.flags().into_iter().for_each(|flag| middle.add_interrupt(flag));
    let (transport, on_threads) = take_in(&setup, address, Box::new(middle), data.parts);
    let (judge, _) = evaluators::all_here(&setup, data.evaluated);
    let Led { ending, server, .. } = lead(&setup, judge, &mut opened, transport, on_threads)?;
    opened.run_recorder.note_leaves(&server.leaves);
    let end = opened.run_recorder.before;
    // What trainers send each other they alone know; it is as much as was predicted until here: for the stages that
    // have begun, and after each mean but the last.
    let until = match setup.trainers.halo {
        TrainersHalo::Stale => opened.run_recorder.progress.done.saturating_sub(1),
        TrainersHalo::None | TrainersHalo::Frozen => opened.run_recorder.finished.len() as u32,
    };
    let exchanged: Vec<Ledger> = setup.forecast.books[1..].iter().map(|book| among_trainers(book, until)).collect();
    let traffic = Traffic::of_server(&server, &exchanged);
    let outcomes =
        close(Closing { setup: &setup, opened, traffic, ending: Some(ending), end, began, leaves: server.leaves })?;
    let summary = outcomes.into_iter().next().and_then(|outcome| outcome.summary);
    summary.ok_or_else(|| TrainError::config("a run without a summary"))
}

/// The aggregator's end of the network, and who lives with it: the trainer of the part that is here, where one is.
fn take_in<'a>(
    setup: &'a Setup,
    address: &'a Address,
    network: Box<dyn Transport>,
    mut parts: Vec<Part>,
) -> (Box<dyn Transport>, Vec<ThreadTrainer<'a>>) {
    let (Some(place), Some(part)) = (setup.hosted, parts.pop()) else { return (network, Vec::new()) };
    let (hosted, mut of_hosted) = Hosted::new(network, Rank(place as u32 + 1));
    setup.give_up.flags().into_iter().for_each(|flag| of_hosted.add_interrupt(flag));
    let exchange = Box::new(move || meet(setup, address, place));
    (Box::new(hosted), vec![ThreadTrainer { place, part, exchange, transport: Box::new(of_hosted), evaluator: None }])
}

/// What a trainer was predicted to send others than the aggregator, up to this round.
fn among_trainers(book: &Ledger, until: u32) -> Ledger {
    let mut ledger = Ledger::new();
    let among = book.iter().filter(|(entry, _)| entry.peer != Rank(0) && entry.round <= until);
    among.for_each(|(entry, count)| ledger.enter(entry, count));
    ledger
}

//! Trainers whose workers hold one part each and speak over any transport: rank 0 is the aggregator, which holds none,
//! and the trainers of the parts stand behind it.
//!
//! All start together: they agree on what they run, add up what only the owner of a part knows (steps of its epochs,
//! training nodes of each class), find whose rows whose edges need, and tell worker 0 the shapes that its forecast is
//! made from. Then the aggregator leads, trainers train, and at the end each trainer says what it has sent to others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use laconic_graph::part::Part;
use laconic_wire::{
    Channel, Channels, Count, Direction, Entry, Frame, Kind, Ledger, Metered, Rank, Transport, WireError, collectives,
};

use super::close::{Closing, Traffic, close};
use super::evaluators::AtAggregator;
use super::local_trainers::LoneWorker;
use super::on_threads::{Besides, Presided, beside_evaluator, preside, train};
use super::server::AggregatorServer;
use super::{Opening, Setup};
use crate::config::{Config, EvaluationEdges};
use crate::error::{Result, TrainError};
use crate::exchange::shapes::Shapes;
use crate::exchange::steps::Step;
use crate::fit::progress::Snapshot;
use crate::fit::stages::Trained;
use crate::forecast::contents::denied;
use crate::forecast::memory;
use crate::forecast::spread::{COUNTS, facts_len, forecast_end, forecast_start, leaving_at_start, totals_len};
use crate::forecast::trained::trained;
use crate::forecast::trainers::{Meetings, TrainersForecast};
use crate::plan::identity::Identity;
use crate::plan::{Members, Plan, TrainersPlan};
use crate::record::observer::Silent;
use crate::run::options::{Options, Outcome};
use crate::run::session::{Process, at_start};
use crate::run::source::Source;
use crate::worker::StopSignal;
use crate::worker::agree::agree;
use crate::worker::class_weights::{class_weights_of, count_classes};
use crate::worker::evaluate::Scores;

/// Runs what this process is, the aggregator at rank 0 or the trainer of a part, one of `alike` processes on its
/// machine with so many threads. Only the aggregator has a summary and the trained model; a trainer ends with what it
/// has sent.
///
/// # Errors
/// If the configuration or the data cannot be used, the aggregator is gone, or too few trainers are left.
pub(in crate::run) fn run(
    config: &Config,
    transport: Box<dyn Transport>,
    source: Source,
    options: Options,
    alike: usize,
    threads: usize,
) -> Result<Outcome> {
    let began = Instant::now();
    let channels = Channels::new(transport);
    let met = Met::new(config, &channels, source, options, alike, threads).map_err(at_start)?;
    let outcome = match met.opening {
        Some(_) => lead(met, &channels, began)?,
        None => follow(met, &channels)?,
    };
    channels.finish()?;
    Ok(outcome)
}

/// What one process holds of the run before anybody has met.
struct Own {
    plan: Plan,
    trainers: TrainersPlan,
    config: Config,
    /// The numbers of the parts that are trained on.
    parts: Vec<u32>,
    /// The part as it lies; the aggregator's has no nodes.
    part: Part,
    /// What the trainer learns from, and the steps of its epochs; nothing of the aggregator.
    trains_on: Option<(Part, u64)>,
}

impl Own {
    fn of(members: &Members, config: &Config, source: &mut Source, rank: Rank, size: usize) -> Result<Own> {
        let all = source.parts();
        let config = members.resolved(config, all)?;
        let global = source.global().cloned().unwrap_or_default();
        let plan = Plan::with(members, &config, &global)?.with_label_skew(source.label_skew());
        let trainers = plan.trainers.clone().ok_or_else(|| TrainError::config("schedule.kind: no trainers"))?;
        let parts = trainers.parts(all)?;
        check(&trainers, &config, parts.len(), all as usize, size)?;
        let place = rank.index().checked_sub(1);
        let part = match place {
            None => Part::without_nodes(0, size as u32, &global),
            Some(place) => source.take(parts[place])?,
        };
        let trains_on = match place {
            None => None,
            Some(place) => {
                let (mut own, of_epoch) =
                    trained((members, &config), vec![part.clone()], &trainers, &parts[place..=place], Some(0))?;
                own.pop().zip(of_epoch.first().copied())
            }
        };
        Ok(Own { plan, trainers, config, parts, part, trains_on })
    }

    /// What this process evaluates means on.
    fn evaluates_on(&self, rank: Rank, size: usize) -> Part {
        let part = match self.trainers.by_workers {
            Some(EvaluationEdges::Local) if rank != Rank(0) => self.part.clone().induced(),
            _ => self.part.clone(),
        };
        part.numbered(rank.0, size as u32)
    }

    /// What this process was estimated to take, of `alike` on its machine.
    fn admit(&self, evaluated: &Part, alike: usize, force: bool, note: &mut dyn FnMut(&str)) -> Result<u64> {
        let mut held = match &self.trains_on {
            None => memory::of_aggregator(&self.part, &self.plan, self.parts.len()),
            Some((part, _)) => memory::of_trainer(part, &self.plan),
        };
        if self.trains_on.is_some() {
            held.add_all(&memory::of_evaluator(evaluated, &self.plan));
        }
        if let Some(warning) = memory::admit(&held, (1, alike), force)? {
            note(&warning);
        }
        Ok(held.total())
    }
}

/// Refuses what such a run cannot do.
fn check(trainers: &TrainersPlan, config: &Config, trained: usize, all: usize, size: usize) -> Result<()> {
    let kind = &config.schedule.kind;
    let Some(edges) = trainers.by_workers else {
        let what = "each process holds its own part here, and no aggregator the whole graph; schedule.evaluator = \
            \"workers\" evaluates means so";
        return Err(TrainError::config(format!(
            "schedule.kind = {kind:?} with schedule.evaluator = \"aggregator\": {what}"
        )));
    };
    if size != trained + 1 {
        let what = format!("{trained} trainers and their aggregator: start {} processes, not {size}", trained + 1);
        return Err(TrainError::config(format!("schedule.kind = {kind:?} on {all} parts has {what}")));
    }
    if let Some(part) = trainers.hosted {
        let what = "the aggregator holds no part here, and has a process of its own";
        return Err(TrainError::config(format!("schedule.aggregator = {part}: {what}")));
    }
    let sees_others = edges == EvaluationEdges::Halo || trainers.meet();
    if trained < all && sees_others {
        let what = "edges from nodes of parts without a trainer cannot be told apart by who holds one part alone; \
            schedule.evaluate = \"local\" and schedule.halo = \"none\" need not";
        return Err(TrainError::config(format!("averaging.drop: {what}")));
    }
    Ok(())
}

/// A process that has met the others.
struct Met {
    setup: Setup,
    /// What was sent so far, and the way on which more will be said.
    start: Metered,
    evaluator: LoneWorker,
    trainer: Option<LoneWorker>,
    /// The run's folder, at the aggregator.
    opening: Option<(Opening, Watches)>,
    /// What each trainer was predicted to send besides what the aggregator sees.
    besides: Vec<Ledger>,
}

/// Who watches a run.
type Watches = Box<dyn crate::record::observer::Observer>;

impl Met {
    fn new(
        config: &Config,
        channels: &Channels,
        mut source: Source,
        options: Options,
        alike: usize,
        threads: usize,
    ) -> Result<Met> {
        let Options { out, own_folder, resume, changes, interrupt, abort, observer, members, keep_accounts, force } =
            options;
        if own_folder {
            return Err(TrainError::config("independent trainers leave a run in the aggregator's folder alone"));
        }
        let mut start = Metered::new(Box::new(channels.work())).behind(config.policy.door()?);
        start.end_mut().set_deadline(config.start_deadline());
        start.add_interrupt(abort.clone());
        let (rank, size) = (start.rank(), start.size());
        let own = Own::of(&members, config, &mut source, rank, size)?;
        source.add_note(own.plan.check_weights(std::slice::from_ref(&own.part))?);
        let is_first = rank == Rank(0);
        let mut observer = if is_first { observer } else { Box::new(Silent) };
        source.notes().iter().for_each(|note| observer.noted(note));
        let evaluated = own.evaluates_on(rank, size);
        let memory = own.admit(&evaluated, alike, force, &mut |warning| observer.warned(warning))?;
        agree(&mut start, Identity::of(&own.plan, &own.part.global)?, &own.part)?;
        let known = own.add_up(&mut start, memory)?;
        let process = Process {
            out: out.filter(|_| is_first),
            own_folder: false,
            resume: resume && is_first,
            changes,
            keeps_accounts: keep_accounts,
            memory,
            threads,
            is_shared: false,
            stop: StopSignal::of(interrupt),
            notes: source.notes().to_vec(),
        };
        let Own { plan, trainers, config, parts, part, trains_on } = own;
        let setup = Setup {
            plan: Arc::new(plan),
            trainers,
            parts,
            hosted: None,
            config,
            of_epoch: known.of_epoch,
            class_weights: known.class_weights,
            process,
            forecast: TrainersForecast::unknown(size),
            memory: known.memory,
            give_up: StopSignal::of(abort),
            over: StopSignal::default(),
        };
        Starting { setup, start, part, trains_on: trains_on.map(|(part, _)| part) }.meet(channels, evaluated, observer)
    }
}

/// A process that knows what all run, and is to meet the others for it.
struct Starting {
    setup: Setup,
    start: Metered,
    part: Part,
    trains_on: Option<Part>,
}

impl Starting {
    /// Meets the others for evaluations, and as a trainer for what trainers exchange; then makes the forecast. Who gets
    /// through this knows that nobody has refused.
    fn meet(self, channels: &Channels, evaluated: Part, observer: Watches) -> Result<Met> {
        let Starting { mut setup, mut start, part, trains_on } = self;
        let rank = start.rank();
        let end = |mut channel: Channel| -> Box<dyn Transport> {
            channel.end_mut().set_deadline(setup.config.start_deadline());
            setup.give_up.flags().into_iter().for_each(|flag| channel.add_interrupt(flag));
            Box::new(channel)
        };
        if setup.trainers.tell {
            // Before anybody waits for what is not told.
            if let Some((to, tag)) = setup.untold(rank)? {
                return Err(start.keep_back(to, tag).into());
            }
            collectives::barrier(&mut start, Step::TrainerFacts.tag(2))?;
        }
        let meets = setup.trainers.meet();
        let mut trainer = match trains_on {
            None => None,
            Some(part) => {
                let exchange = meets.then(|| end(channels.work().among_those_from(Rank(1))));
                Some(LoneWorker::trainer(&setup, part, exchange)?)
            }
        };
        let columns = trainer.as_mut().and_then(|trainer| trainer.columns.take());
        let mut evaluator = LoneWorker::evaluator(&setup, evaluated, end(channels.evaluations()), columns.as_ref())?;
        let shapes = Gathered::of(&mut start, &evaluator, trainer.as_ref().filter(|_| meets), meets)?;
        let is_first = rank == Rank(0);
        let opening = is_first.then(|| Opening::new(&setup.plan, &setup.process, &part)).transpose()?;
        let snapshot = opening.as_ref().and_then(Opening::snapshot);
        let (forecast, besides) = shapes.forecast(&setup.plan, &setup.of_epoch, &part, snapshot, start.size())?;
        setup.forecast = forecast;
        let own = setup.forecast.leaves.get(rank.index()).map_or(&[][..], |own| own);
        if let Some((to, tag)) = denied(&setup.config, own)? {
            return Err(start.keep_back(to, tag).into());
        }
        collectives::barrier(&mut start, Step::TrainerFacts.tag(1))?;
        let deadline = setup.config.deadline();
        start.end_mut().set_deadline(deadline);
        evaluator.set_deadline(deadline);
        trainer.iter_mut().for_each(|trainer| trainer.set_deadline(deadline));
        let opening = opening.map(|opening| (opening, observer));
        Ok(Met { setup, start, evaluator, trainer, opening, besides })
    }
}

/// What only the processes that hold parts know, once all have said it.
struct Known {
    /// Steps of each trainer's epoch.
    of_epoch: Vec<u64>,
    /// What classes count for over all trainers, where that follows from how many training nodes there are.
    class_weights: Option<Vec<f32>>,
    /// What each process was estimated to take, in bytes, by rank.
    memory: Vec<u64>,
}

impl Own {
    fn add_up(&self, start: &mut Metered, memory: u64) -> Result<Known> {
        let (rank, size, trainers) = (start.rank().index(), start.size(), self.parts.len());
        let mut facts = vec![0.0; facts_len(trainers)];
        let mut classes = vec![0.0; self.plan.class_counts];
        facts[rank] = memory as f64;
        if let Some((_, of_epoch)) = &self.trains_on {
            facts[size + rank - 1] = *of_epoch as f64;
            count_classes(&self.part, &mut classes);
        }
        collectives::all_reduce_f64(start, Step::TrainerFacts.tag(0), &mut facts)?;
        // Apart, so that a policy can keep them back.
        if !classes.is_empty() {
            collectives::all_reduce_f64(start, Step::ClassCounts.tag(0), &mut classes)?;
        }
        let of_epoch = facts.split_off(size).into_iter().map(|steps| steps.max(1.0) as u64).collect();
        let class_weights = class_weights_of(&self.plan, &classes, self.part.global.classes);
        Ok(Known { of_epoch, class_weights, memory: facts.into_iter().map(|bytes| bytes as u64).collect() })
    }
}

/// The shapes of all, and how many bytes it took each to tell them.
struct Gathered {
    evaluating: Vec<Shapes>,
    exchanging: Vec<Shapes>,
    told: Vec<Vec<usize>>,
}

impl Gathered {
    fn of(start: &mut Metered, evaluator: &LoneWorker, trainer: Option<&LoneWorker>, meets: bool) -> Result<Gathered> {
        let (rank, size) = (start.rank(), start.size());
        let mut told = Vec::new();
        let mut gather = |number: usize, own: Option<&Shapes>, before: usize| -> Result<Vec<Shapes>> {
            let tag = Step::Shapes.of_exchange(0, number);
            let all = collectives::all_gather(start, tag, &own.map(Shapes::to_bytes).unwrap_or_default())?;
            told.push(all.iter().map(Vec::len).collect());
            let read = |(at, bytes): (usize, &Vec<u8>)| {
                Shapes::from_bytes(bytes, at - before, size - before).ok_or_else(|| {
                    WireError::malformed("shapes of another form").from_peer(rank, Rank(at as u32), tag).into()
                })
            };
            all.iter().enumerate().skip(before).map(read).collect()
        };
        let evaluating = gather(0, Some(&evaluator.worker.shapes), 0)?;
        let exchanging = if meets { gather(1, trainer.map(LoneWorker::shapes), 1)? } else { Vec::new() };
        Ok(Gathered { evaluating, exchanging, told })
    }

    /// What all will send; and by rank what of it the aggregator does not see.
    fn forecast(
        &self,
        plan: &Plan,
        of_epoch: &[u64],
        part: &Part,
        snapshot: Option<&Snapshot>,
        size: usize,
    ) -> Result<(TrainersForecast, Vec<Ledger>)> {
        let global = &part.global;
        let meetings = Meetings { exchanging: &self.exchanging, evaluating: &self.evaluating, global };
        let mut all = TrainersForecast::of(plan, of_epoch, None, &meetings, snapshot)?;
        let models = Meetings { exchanging: &[], evaluating: &[], global };
        let models = TrainersForecast::of(plan, of_epoch, None, &models, snapshot)?;
        let mut besides = Vec::with_capacity(size);
        for (rank, models) in Rank::all(size).zip(&models.books) {
            let book = &mut all.books[rank.index()];
            let told: Vec<usize> = self.told.iter().map(|told| told[rank.index()]).collect();
            let mut start = Ledger::new().noting_waits();
            forecast_start((plan, of_epoch.len()), rank, size, &told, &mut start);
            all.waits.join(&start.take_waits());
            book.add_times(&start, 1);
            all.leaves[rank.index()].extend(leaving_at_start(plan, rank, size));
            besides.push(without(book, models));
            forecast_end(rank, size, book);
        }
        Ok((all, besides))
    }
}

/// The accounts of a ledger without what another, all of which is in it, has in them.
fn without(ledger: &Ledger, less: &Ledger) -> Ledger {
    let less: BTreeMap<Entry, Count> = less.iter().collect();
    let mut rest = Ledger::new();
    for (entry, count) in ledger.iter() {
        let of = less.get(&entry).copied().unwrap_or_default();
        let [frames, payload, framed] =
            [(count.frames, of.frames), (count.payload, of.payload), (count.framed, of.framed)].map(|(a, b)| a - b);
        rest.enter(entry, Count { frames, payload, framed });
    }
    rest
}

/// The aggregator's life.
fn lead(met: Met, channels: &Channels, began: Instant) -> Result<Outcome> {
    let Met { setup, start, evaluator, opening, besides, .. } = met;
    let (opening, observer) = opening.expect("the aggregator has opened the run's folder");
    let mut opened = opening.begin(&setup, observer)?;
    let mut work = channels.work();
    setup.give_up.flags().into_iter().for_each(|flag| work.add_interrupt(flag));
    let presided = preside(&setup, AtAggregator::Started(Box::new(evaluator)), &mut opened, Box::new(work));
    let Presided { ending, mut server, mut evaluations } = presided?;
    evaluations.add_times(start.sent(), 1);
    let mut all = vec![evaluations];
    for trainer in 0..setup.parts.len() {
        let told = what_it_sent(&mut server, trainer);
        let ledger = told.unwrap_or_else(|| {
            let part = setup.parts[trainer];
            opened
                .run_recorder
                .say(format!("trainer {part} has not said what it sent to others: its bytes are those predicted"));
            besides[trainer + 1].clone()
        });
        let is_as_predicted = totals(&ledger, besides.len()) == totals(&besides[trainer + 1], besides.len());
        all.push(if is_as_predicted { besides[trainer + 1].clone() } else { ledger });
    }
    opened.run_recorder.note_leaves(&server.leaves);
    let end = opened.run_recorder.before;
    let traffic = Traffic::of_server(&server, &[]).with_evaluations(&all);
    let leaves = server.leaves;
    let outcomes = close(Closing { setup: &setup, opened, traffic, ending: Some(ending), end, began, leaves })?;
    outcomes.into_iter().next().ok_or_else(|| TrainError::config("a run without a summary"))
}

/// What a trainer that has taken its leave says that it has sent to others.
fn what_it_sent(server: &mut AggregatorServer, trainer: usize) -> Option<Ledger> {
    let (peer, size) = (Rank(trainer as u32 + 1), server.transport.size());
    server.leaves[trainer]?;
    let bytes = match server.sent_besides[trainer].take() {
        Some(bytes) => bytes,
        None => {
            let tag = Step::TrainerSent.tag(0);
            let frame = server.transport.recv(peer, tag).ok()?;
            server.from[trainer].record(tag, Rank(0), frame.payload().len());
            frame.payload().to_vec()
        }
    };
    from_totals(&bytes, peer, size)
}

/// A trainer's life, with the evaluator beside it.
fn follow(met: Met, channels: &Channels) -> Result<Outcome> {
    let Met { setup, mut start, evaluator, trainer, .. } = met;
    let (rank, size) = (start.rank(), start.size());
    let trainer = trainer.expect("every other rank trains");
    let mut work = channels.work();
    setup.give_up.flags().into_iter().for_each(|flag| work.add_interrupt(flag));
    let place = rank.index() - 1;
    let Besides { models, exchanged, evaluations } =
        beside_evaluator(&setup, place, Some(move || Ok(evaluator)), || train(&setup, trainer, Box::new(work)))?;
    let mut sent = start.sent().clone();
    sent.add_times(&exchanged, 1);
    sent.add_times(&evaluations, 1);
    let mut frame = Frame::new(Step::TrainerSent.tag(0), start.buffer());
    totals(&sent, size).iter().for_each(|value| frame.payload_mut().extend(value.to_le_bytes()));
    start.send(Rank(0), frame)?;
    sent.add_times(&models, 1);
    sent.record(Step::TrainerSent.tag(0), Rank(0), totals_len(size));
    let predicted = setup.forecast.books.get(rank.index()).cloned().unwrap_or_default();
    let trained = Trained {
        chosen: Vec::new(),
        last: Vec::new(),
        best_round: 0,
        scores: Scores::default(),
        rounds: 0,
        interrupted: false,
    };
    let plan = Arc::clone(&setup.plan);
    Ok(Outcome { rank: rank.0, plan, trained, sent, received: Ledger::new(), predicted, summary: None })
}

/// What was sent to each worker, of each kind: frames, bytes of payload and with framing.
fn totals(ledger: &Ledger, size: usize) -> Vec<u64> {
    let mut all = vec![0u64; COUNTS * Kind::ALL.len() * size];
    for (entry, count) in ledger.iter() {
        let at = COUNTS * (entry.peer.index() * Kind::ALL.len() + entry.kind as usize);
        for (sum, value) in all[at..at + COUNTS].iter_mut().zip([count.frames, count.payload, count.framed]) {
            *sum += value;
        }
    }
    all
}

/// A ledger of such totals of this worker; `None` if they are none.
fn from_totals(bytes: &[u8], rank: Rank, size: usize) -> Option<Ledger> {
    if bytes.len() != totals_len(size) {
        return None;
    }
    let values: Vec<u64> = bytes.as_chunks().0.iter().map(|value| u64::from_le_bytes(*value)).collect();
    let mut ledger = Ledger::new();
    for (at, counts) in values.chunks_exact(COUNTS).enumerate() {
        let (peer, kind) = (Rank((at / Kind::ALL.len()) as u32), Kind::ALL[at % Kind::ALL.len()]);
        let count = Count { frames: counts[0], payload: counts[1], framed: counts[2] };
        // More than that is no run's, and sums stay numbers.
        if counts.iter().any(|count| *count > u64::MAX >> 16) || (peer == rank && count != Count::default()) {
            return None;
        }
        let direction = Direction::Forward;
        ledger.enter(Entry { round: 0, peer, kind, layer: 0, direction }, count);
    }
    Some(ledger)
}

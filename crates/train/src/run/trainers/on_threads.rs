//! Trainers and aggregator as threads of this process.

use std::time::Instant;

use laconic_graph::part::Part;
use laconic_wire::{Ledger, Metered, Rank, Transport, threads};

use super::client::TrainerClient;
use super::close::{Closing, Traffic, close};
use super::evaluators::{self, AtAggregator, Evaluator, end_at_changed_file};
use super::local_trainers::{LoneWorker, after, exchanges, meeting};
use super::server::{AGGREGATOR, AggregatorServer};
use super::{Data, Opened, Setup};
use crate::averaging::Ending;
use crate::error::{Result, TrainError};
use crate::fit::local::{LocalTrainer, MeansJudge};
use crate::fit::trainer::StageRun;
use crate::record::observer::Stand;
use crate::run::options::Outcome;
use crate::run::panic::panicked;

/// A trainer's life: every stage as long as the aggregator says, beside an evaluator of means where it has one.
///
/// # Errors
/// If training leaves the numbers, or somebody it waits for is gone.
pub(super) fn live(
    setup: &Setup,
    place: usize,
    part: Part,
    exchange: Option<Box<dyn Transport>>,
    transport: Box<dyn Transport>,
    evaluator: Option<Evaluator>,
) -> Result<Besides> {
    let mut trainer = LoneWorker::trainer(setup, part, exchange)?;
    let columns = trainer.columns.take();
    let start = evaluator.map(|own| move || own.start(setup, columns.as_ref()));
    beside_evaluator(setup, place, start, || train(setup, trainer, transport))
}

/// Lets the trainer of this place train while an evaluator, where there is one, evaluates beside it.
///
/// # Errors
/// What the trainer fails by; and the evaluator, unless another one is gone: then means have no figures, which the
/// aggregator says.
pub(super) fn beside_evaluator(
    setup: &Setup,
    place: usize,
    evaluator: Option<impl FnOnce() -> Result<LoneWorker> + Send>,
    train: impl FnOnce() -> Result<Besides>,
) -> Result<Besides> {
    std::thread::scope(|scope| {
        let evaluating = evaluator.map(|start| evaluators::spawn(scope, setup, place, start)).transpose()?;
        let trained = train();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Ledger>>| {
            thread.join().unwrap_or_else(|panic| Err(panicked(place as u32 + 1, panic.as_ref())))
        };
        let evaluations = match evaluating.map(join) {
            Some(Err(error)) if !matches!(error, TrainError::Wire(_)) => return Err(error),
            Some(evaluated) => evaluated.unwrap_or_default(),
            None => Ledger::new(),
        };
        Ok(Besides { evaluations, ..trained? })
    })
}

/// Trains every stage as long as the aggregator says.
///
/// # Errors
/// If training leaves the numbers, or somebody it waits for is gone.
pub(super) fn train(setup: &Setup, mut lone: LoneWorker, transport: Box<dyn Transport>) -> Result<Besides> {
    let (give_up, over) = (setup.give_up.clone(), setup.over.clone());
    let transport = Metered::new(transport).behind(setup.config.policy.door()?);
    let mut client = TrainerClient { transport, give_up, over, steps: 0 };
    let stages = setup.plan.stages.clone();
    for (index, stage) in stages.iter().enumerate() {
        let inputs = lone.inputs(meeting(stage, index))?;
        lone.stays_in_touch(false);
        let at = after(stage, index, client.steps);
        let mut learner = LocalTrainer::new(&mut lone.worker, at, inputs)?;
        match client.train(setup, index, &mut learner)? {
            Some(chosen) if index + 1 < stages.len() => learner.hand_on(&chosen)?,
            _ => break,
        }
    }
    client.transport.finish()?;
    lone.finish()?;
    let (models, exchanged) = (client.transport.sent().clone(), lone.exchanged());
    Ok(Besides { models, exchanged, evaluations: Ledger::new() })
}

/// The aggregator's life: leads every stage to its end.
///
/// # Errors
/// If a mean cannot be judged or written down, or the user gives up.
pub(super) fn preside(
    setup: &Setup,
    judge: AtAggregator,
    opened: &mut Opened,
    transport: Box<dyn Transport>,
) -> Result<Presided> {
    let transport = Metered::new(transport).behind(setup.config.policy.door()?);
    let mut server = AggregatorServer::new(transport, setup.give_up.clone());
    if let Some(out) = &setup.process.out {
        opened.run_recorder.ledgers.open(out, opened.start, setup.parts.len() + 1)?;
    }
    let mut lone = judge.start(setup)?;
    let stages = setup.plan.stages.clone();
    let mut snapshot = opened.snapshot.clone();
    let mut ending = Ending::Limit;
    for (index, stage) in stages.iter().enumerate() {
        let run_recorder = &mut opened.run_recorder;
        let at = StageRun { stage, index, rounds_before: run_recorder.rounds_of_finished() };
        run_recorder.recorder.observer().stands(Stand::Prepares);
        let inputs = lone.inputs(at)?;
        run_recorder.begin(index);
        if let Some((chosen, rounds)) = snapshot.as_ref().and_then(|of| of.finished.get(index)).cloned() {
            server.pass(setup, index, &chosen)?;
            let judge = MeansJudge::new(&mut lone.worker, at, inputs)?;
            judge.hand_on(&chosen, run_recorder.rounds_of_finished() + rounds)?;
            run_recorder.pass((chosen, rounds));
            continue;
        }
        if let Some(snapshot) = snapshot.take() {
            run_recorder.restore(snapshot)?;
        }
        run_recorder.sent_besides = setup.exchanged_until(index);
        run_recorder.told = setup.told();
        let began = Instant::now();
        ending = server.lead(setup, &mut lone.worker, at, inputs, run_recorder, index + 1 < stages.len())?;
        run_recorder.spent(began.elapsed());
        server.write_down(run_recorder)?;
        if !lone.worker.has_handed() {
            break;
        }
    }
    server.transport.finish()?;
    // Who is gone takes nothing more, which a run without figures has said.
    let _ = lone.worker.transport.finish();
    Ok(Presided { ending, server, evaluations: lone.worker.transport.sent().clone() })
}

/// How an aggregator ended.
pub(super) struct Presided {
    pub ending: Ending,
    pub server: AggregatorServer,
    /// What it has sent of evaluations that it meets others for.
    pub evaluations: Ledger,
}

/// A way to meet the other trainers, which may take a while: the end of their network, where they have one.
type Meets<'a> = Box<dyn FnOnce() -> Result<Option<Box<dyn Transport>>> + Send + 'a>;

/// A trainer that is a thread of the aggregator's process.
pub(super) struct ThreadTrainer<'a> {
    /// Its place among trainers.
    pub place: usize,
    pub part: Part,
    /// Its end of the network on which trainers meet, once they have, where they do.
    pub exchange: Meets<'a>,
    pub transport: Box<dyn Transport>,
    /// Who evaluates means beside it, where all workers do.
    pub evaluator: Option<Evaluator>,
}

/// How the aggregator's process ended.
pub(super) struct Led {
    pub ending: Ending,
    pub server: AggregatorServer,
    /// What trainers of this process have sent to each other, in their order.
    pub exchanged: Vec<Ledger>,
    /// What the aggregator and trainers of this process have sent of evaluations that they meet for, in their order.
    pub evaluations: Vec<Ledger>,
}

/// What a trainer has sent: models to the aggregator, rows to others, and what evaluations take that it meets them for.
#[derive(Default)]
pub(super) struct Besides {
    pub models: Ledger,
    pub exchanged: Ledger,
    pub evaluations: Ledger,
}

/// Leads the run, with these trainers on threads beside the aggregator. One of them that fails is missed, as one that
/// is elsewhere would be, and what it failed by is said at the end; unless a file has changed that this process reads,
/// which ends the run.
///
/// # Errors
/// As [`preside`], or what a trainer failed by where that is why.
pub(super) fn lead(
    setup: &Setup,
    judge: AtAggregator,
    opened: &mut Opened,
    transport: Box<dyn Transport>,
    on_threads: Vec<ThreadTrainer<'_>>,
) -> Result<Led> {
    let places: Vec<usize> = on_threads.iter().map(|trainer| trainer.place).collect();
    let (led, lives) = std::thread::scope(|scope| {
        let mut lives = Vec::new();
        for ThreadTrainer { place, part, exchange, transport, evaluator } in on_threads {
            let thread = std::thread::Builder::new().name(format!("trainer-{}", setup.parts[place]));
            let live = move || {
                let lived = exchange().and_then(|met| live(setup, place, part, met, transport, evaluator));
                lived.inspect_err(|error| end_at_changed_file(setup, error))
            };
            match thread.spawn_scoped(scope, live) {
                Ok(life) => lives.push(life),
                Err(source) => {
                    setup.give_up.set();
                    return (Err(TrainError::io("thread of a trainer", source)), Vec::new());
                }
            }
        }
        let led = preside(setup, judge, opened, transport);
        if led.is_err() {
            setup.give_up.set();
        }
        setup.over.set();
        let join = |(place, life): (&usize, std::thread::ScopedJoinHandle<'_, Result<Besides>>)| {
            life.join().unwrap_or_else(|panic| Err(panicked(*place as u32 + 1, panic.as_ref())))
        };
        (led, places.iter().zip(lives).map(join).collect::<Vec<Result<Besides>>>())
    });
    if let Some(changed) = lives.iter().position(|life| life.as_ref().is_err_and(TrainError::is_wrong_file)) {
        return Err(lives.into_iter().nth(changed).and_then(Result::err).expect("it has failed"));
    }
    let mut failed = places.iter().zip(&lives).filter_map(|(place, life)| Some((place, life.as_ref().err()?)));
    let first = failed.find(|(_, error)| !error.is_consequence()).map(|(place, error)| (*place, error.to_string()));
    let Presided { ending, server, evaluations } = match led {
        Ok(led) => led,
        Err(error) => return Err(lives.into_iter().find_map(|life| cause(life, &error)).unwrap_or(error)),
    };
    if let Some((place, error)) = &first {
        opened.run_recorder.say(format!("trainer {} failed: {error}", setup.parts[*place]));
    }
    if let Ending::NoQuorum { .. } = ending
        && let Some(error) = lives.iter().position(|life| life.as_ref().is_err_and(|error| !error.is_consequence()))
    {
        return Err(lives.into_iter().nth(error).and_then(Result::err).expect("it has failed"));
    }
    let mut all = vec![evaluations];
    let mut exchanged = Vec::new();
    for besides in lives.into_iter().map(Result::unwrap_or_default) {
        all.push(besides.evaluations);
        exchanged.push(besides.exchanged);
    }
    Ok(Led { ending, server, exchanged, evaluations: all })
}

/// Runs everybody as threads of this process.
///
/// # Errors
/// If too few trainers are left, or the aggregator fails.
pub(super) fn run(setup: &Setup, data: Data, mut opened: Opened) -> Result<Vec<Outcome>> {
    let began = Instant::now();
    let mut ends = threads(setup.parts.len() + 1, setup.config.deadline());
    ends.iter_mut().for_each(|end| setup.give_up.flags().into_iter().for_each(|flag| end.add_interrupt(flag)));
    if let Some(hosted) = setup.hosted {
        ends[0].end_mut().set_same_process(Rank(hosted as u32 + 1));
        ends[hosted + 1].end_mut().set_same_process(AGGREGATOR);
    }
    let mut ends = ends.into_iter().map(|end| Box::new(end) as Box<dyn Transport>);
    let of_aggregator = ends.next().expect("the aggregator has an end");
    let mut on_threads = Vec::with_capacity(setup.parts.len());
    let (judge, evaluators) = evaluators::all_here(setup, data.evaluated);
    let trainers = data.parts.into_iter().zip(exchanges(setup)).zip(ends.zip(evaluators));
    for (place, ((part, exchange), (transport, evaluator))) in trainers.enumerate() {
        on_threads.push(ThreadTrainer { place, part, exchange: Box::new(move || Ok(exchange)), transport, evaluator });
    }
    let Led { ending, server, exchanged, evaluations } = lead(setup, judge, &mut opened, of_aggregator, on_threads)?;
    opened.run_recorder.note_leaves(&server.leaves);
    let end = opened.run_recorder.before;
    let traffic = Traffic::of_server(&server, &exchanged).with_evaluations(&evaluations);
    close(Closing { setup, opened, traffic, ending: Some(ending), end, began, leaves: Vec::new() })
}

/// What a trainer failed by, where the aggregator's error follows from it.
fn cause(life: Result<Besides>, of_aggregator: &TrainError) -> Option<TrainError> {
    life.err().filter(|error| of_aggregator.is_consequence() && !error.is_consequence())
}

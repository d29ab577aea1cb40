//! Trainers and aggregator as threads of this process.

use std::time::Instant;

use laconic_graph::part::Part;
use laconic_wire::{Ledger, Metered, Transport, threads};

use super::close::{Closing, Traffic, close};
use super::crew::{Hand, after, exchanges, meeting};
use super::real::{Chair, Post};
use super::{Data, Opened, Setup};
use crate::averaging::Ending;
use crate::error::{Result, TrainError};
use crate::fit::local::LocalTrainer;
use crate::fit::trainer::StageRun;
use crate::run::options::Outcome;
use crate::run::threads::panicked;

/// A trainer's life: every stage as long as the aggregator says. Returns what it has sent to other trainers.
///
/// # Errors
/// If training leaves the numbers, or somebody it waits for is gone.
pub(super) fn live(
    setup: &Setup,
    part: Part,
    exchange: Option<Box<dyn Transport>>,
    transport: Box<dyn Transport>,
) -> Result<Ledger> {
    let mut post = Post { transport: Metered::new(transport), give_up: setup.give_up.clone(), steps: 0 };
    let mut hand = Hand::trainer(setup, part, exchange)?;
    let stages = setup.plan.stages.clone();
    for (index, stage) in stages.iter().enumerate() {
        let inputs = hand.inputs(meeting(stage, index))?;
        hand.stays_in_touch(false);
        let at = after(stage, index, post.steps);
        let mut learner = LocalTrainer::new(&mut hand.worker, at, inputs)?;
        match post.train(setup, index, &mut learner)? {
            Some(chosen) if index + 1 < stages.len() => hand.x = learner.hand_on(&chosen)?,
            _ => break,
        }
    }
    post.transport.finish()?;
    hand.finish()?;
    Ok(hand.exchanged())
}

/// The aggregator's life: leads every stage to its end.
///
/// # Errors
/// If a mean cannot be judged or written down, or the user gives up.
pub(super) fn preside(
    setup: &Setup,
    whole: Part,
    opened: &mut Opened,
    transport: Box<dyn Transport>,
) -> Result<(Ending, Chair)> {
    let mut chair = Chair::new(Metered::new(transport), setup.give_up.clone());
    if let Some(out) = &setup.process.out {
        opened.desk.open_ledgers(out, opened.start)?;
    }
    let mut hand = Hand::judge(setup, whole)?;
    let stages = setup.plan.stages.clone();
    let mut snapshot = opened.snapshot.clone();
    let mut ending = Ending::Limit;
    for (index, stage) in stages.iter().enumerate() {
        let desk = &mut opened.desk;
        let at = StageRun { stage, index, rounds_before: desk.finished.iter().map(|(_, rounds)| rounds).sum() };
        let inputs = hand.inputs(at)?;
        desk.begin(index);
        if let Some((chosen, rounds)) = snapshot.as_ref().and_then(|of| of.finished.get(index)).cloned() {
            chair.pass(setup, index, &chosen)?;
            hand.x = crate::fit::local::WholeJudge::new(&mut hand.worker, at, inputs)?.hand_on(&chosen)?;
            desk.pass((chosen, rounds));
            continue;
        }
        if let Some(snapshot) = snapshot.take() {
            desk.restore(snapshot)?;
        }
        desk.sent_besides = setup.exchanged_until(index);
        desk.told = setup.told();
        let began = Instant::now();
        let (how, handed) = chair.lead(setup, (&mut hand.worker, at, inputs), desk, index + 1 < stages.len())?;
        desk.spent(began.elapsed());
        chair.write_down(desk)?;
        (ending, hand.x) = (how, handed);
        if hand.x.is_none() {
            break;
        }
    }
    chair.transport.finish()?;
    Ok((ending, chair))
}

/// Runs everybody as threads of this process.
///
/// # Errors
/// If too few trainers are left, or the aggregator fails.
pub(super) fn run(setup: &Setup, data: Data, mut opened: Opened) -> Result<Vec<Outcome>> {
    let began = Instant::now();
    let trainers = setup.parts.len();
    let mut ends = threads(trainers + 1, setup.config.deadline());
    ends.iter_mut().for_each(|end| setup.give_up.flags().into_iter().for_each(|flag| end.add_interrupt(flag)));
    let mut ends = ends.into_iter().map(|end| Box::new(end) as Box<dyn Transport>);
    let of_aggregator = ends.next().expect("the aggregator has an end");
    let (led, lives) = std::thread::scope(|scope| {
        let mut lives = Vec::new();
        for (((index, part), exchange), end) in data.parts.into_iter().enumerate().zip(exchanges(setup)).zip(ends) {
            let thread = std::thread::Builder::new().name(format!("trainer-{}", setup.parts[index]));
            match thread.spawn_scoped(scope, move || live(setup, part, exchange, end)) {
                Ok(life) => lives.push(life),
                Err(source) => {
                    setup.give_up.set();
                    return (Err(TrainError::io("thread of a trainer", source)), Vec::new());
                }
            }
        }
        let led = preside(setup, data.whole, &mut opened, of_aggregator);
        if led.is_err() {
            setup.give_up.set();
        }
        let join = |(index, life): (usize, std::thread::ScopedJoinHandle<'_, Result<Ledger>>)| {
            life.join().unwrap_or_else(|panic| Err(panicked(index as u32 + 1, panic.as_ref())))
        };
        (led, lives.into_iter().enumerate().map(join).collect::<Vec<Result<Ledger>>>())
    });
    let mut failed = lives.iter().enumerate().filter_map(|(index, life)| Some((index, life.as_ref().err()?)));
    let first = failed.find(|(_, error)| !error.is_consequence()).map(|(index, error)| (index, error.to_string()));
    let (ending, chair) = match led {
        Ok(led) => led,
        Err(error) => return Err(lives.into_iter().find_map(|life| cause(life, &error)).unwrap_or(error)),
    };
    if let Some((index, error)) = &first {
        opened.desk.say(format!("trainer {} failed: {error}", setup.parts[*index]));
    }
    if let Ending::NoQuorum { .. } = ending
        && let Some(error) = lives.iter().position(|life| life.as_ref().is_err_and(|error| !error.is_consequence()))
    {
        return Err(lives.into_iter().nth(error).and_then(Result::err).expect("it has failed"));
    }
    let exchanged: Vec<Ledger> = lives.into_iter().map(Result::unwrap_or_default).collect();
    opened.desk.note_leaves(&chair.leaves);
    let end = opened.desk.before;
    let traffic = Traffic::of_chair(&chair, &exchanged);
    close(Closing { setup, opened, traffic, ending: Some(ending), end, began, leaves: Vec::new() })
}

/// What a trainer failed by, where the aggregator's error follows from it.
fn cause(life: Result<Ledger>, of_aggregator: &TrainError) -> Option<TrainError> {
    life.err().filter(|error| of_aggregator.is_consequence() && !error.is_consequence())
}

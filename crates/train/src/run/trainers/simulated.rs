//! Trainers and aggregator on one thread, by a clock that jumps from one event to the next.

use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use laconic_wire::{Ledger, LinkShape};

use super::close::{Closing, Traffic, close};
use super::columns::Columns;
use super::evaluators::{self, Evaluator};
use super::local_trainers::{LocalTrainers, after, meeting};
use super::run_recorder::RunRecorder;
use super::{Data, Opened, Setup};
use crate::averaging::conditions::{Conditions, Fault};
use crate::averaging::simulated::{Start, run};
use crate::averaging::{Changes, Ending, Played};
use crate::config::{Failing, Who};
use crate::error::{Result, TrainError};
use crate::fit::StageInputs;
use crate::fit::local::{LocalTrainer, MeansJudge};
use crate::fit::trainer::StageRun;
use crate::run::options::Outcome;
use crate::run::panic::panicked;

/// How fast a trainer steps where nothing is said.
const SPEED: f64 = 1.0;

/// A link that costs nothing.
const NO_LINK: LinkShape = LinkShape { latency: Duration::ZERO, bits_per_second: f64::INFINITY };

/// What the configuration says of speeds, links and faults.
///
/// # Errors
/// If a fault is nobody's, or a value makes no sense.
pub(super) fn conditions(setup: &Setup) -> Result<Conditions> {
    let transport = &setup.config.transport;
    let speed = |part: &u32| {
        let at = (*part as usize).min(transport.speeds.len().saturating_sub(1));
        transport.speeds.get(at).copied().unwrap_or(SPEED)
    };
    let speeds: Vec<f64> = setup.parts.iter().map(speed).collect();
    let link = match transport.shape.is_empty() {
        true => NO_LINK,
        false => transport.shape.parse::<LinkShape>()?,
    };
    let mut faults = Vec::new();
    for fault in &transport.faults {
        let trainer = match fault.who {
            Who::Named(_) if fault.kind == Failing::Stalled => {
                let what = "the aggregator is killed or switched off; the run can then be resumed";
                return Err(TrainError::config(format!("transport.faults: {what}")));
            }
            Who::Named(_) if fault.back.is_some() => {
                let what = "the aggregator is not back by itself, so back says nothing of it; `laconic resume` goes on";
                return Err(TrainError::config(format!("transport.faults: {what}")));
            }
            Who::Named(_) => None,
            Who::Trainer(part) => match setup.parts.iter().position(|own| *own == part) {
                Some(trainer) if setup.hosted == Some(trainer) && fault.kind != Failing::Stalled => {
                    let what = "lives in the aggregator's process (schedule.aggregator) and fails with it: who = \
                        \"aggregator\"; alone it can be stalled";
                    return Err(TrainError::config(format!("transport.faults: the trainer of part {part} {what}")));
                }
                Some(trainer) => Some(trainer),
                None => return Err(TrainError::config(format!("transport.faults: no trainer has part {part}"))),
            },
        };
        if fault.kind == Failing::Stalled && fault.back.is_none() {
            return Err(TrainError::config("transport.faults: who stalls is back after a time: back = \"30 s\""));
        }
        let at = fault.at.map_or(Duration::ZERO, |at| at.0);
        faults.push(Fault { trainer, at, kind: fault.kind, back: fault.back.map(|back| back.0) });
    }
    let fastest = speeds.iter().copied().fold(SPEED.min(speeds[0]), f64::max);
    Ok(Conditions {
        correction_speed: fastest,
        verdict: Duration::ZERO,
        links: vec![link; speeds.len() + 1],
        speeds,
        hosted: setup.hosted,
        faults,
    })
}

/// Plays the run and writes down what comes of it.
///
/// # Errors
/// If training leaves the numbers, too few trainers are left, or something cannot be written down.
pub(super) fn play(setup: &Setup, data: Data, mut opened: Opened) -> Result<Vec<Outcome>> {
    let began = Instant::now();
    let (judge, evaluators) = evaluators::all_here(setup, data.evaluated);
    let mut trainers = LocalTrainers::start(setup, data.parts)?;
    let columns: Vec<Option<Columns>> = trainers.iter_mut().map(|lone| lone.columns.take()).collect();
    let (went, evaluated) = std::thread::scope(|scope| {
        let columns = &columns;
        let spawn = |(place, own): (usize, Option<Evaluator>)| {
            let own = own?;
            Some(evaluators::spawn(scope, setup, place, move || own.start(setup, columns[place].as_ref())))
        };
        let evaluating = evaluators.into_iter().enumerate().filter_map(spawn).collect::<Result<Vec<_>>>()?;
        let went = judge.start(setup).and_then(|judge| go(setup, &mut LocalTrainers { trainers, judge }, &mut opened));
        // Whatever has happened, nobody asks them any more.
        setup.over.set();
        let join = |(place, thread): (usize, ScopedJoinHandle<'_, Result<Ledger>>)| {
            thread.join().unwrap_or_else(|panic| Err(panicked(place as u32 + 1, panic.as_ref())))
        };
        Ok::<_, TrainError>((went, evaluating.into_iter().enumerate().map(join).collect::<Vec<_>>()))
    })?;
    // Why an evaluator has failed is why there were no figures, unless it has only missed the others.
    let failed = evaluated.iter().position(|own| own.as_ref().is_err_and(|error| !error.is_consequence()));
    let Went { ending, played, exchanged, evaluations } = match (went, failed) {
        (Err(error), Some(place)) if error.is_consequence() => {
            return Err(evaluated.into_iter().nth(place).and_then(Result::err).unwrap_or(error));
        }
        (went, _) => went?,
    };
    let evaluations: Vec<Ledger> =
        std::iter::once(evaluations).chain(evaluated.into_iter().map(Result::unwrap_or_default)).collect();
    let traffic = Traffic::of_stages(&played, &exchanged).with_evaluations(&evaluations);
    let end = opened.run_recorder.before;
    close(Closing { setup, opened, traffic, ending, end, began, leaves: Vec::new() })
}

/// What a simulated run has come to.
struct Went {
    ending: Option<Ending>,
    played: Vec<Played>,
    /// What trainers have sent each other, by rank.
    exchanged: Vec<Ledger>,
    /// What the aggregator has sent of evaluations that it meets others for.
    evaluations: Ledger,
}

fn go(setup: &Setup, local_trainers: &mut LocalTrainers, opened: &mut Opened) -> Result<Went> {
    let conditions = conditions(setup)?;
    let mut snapshot = opened.snapshot.clone();
    let mut origin = snapshot.is_none().then_some(Duration::ZERO);
    let (mut played, mut ending) = (Vec::<Played>::new(), None);
    let stages = setup.plan.stages.clone();
    for (index, stage) in stages.iter().enumerate() {
        let run_recorder = &mut opened.run_recorder;
        let rounds_before = run_recorder.rounds_of_finished();
        let at = StageRun { stage, index, rounds_before };
        let (inputs, of_judge) = meet(local_trainers, at, &conditions, run_recorder)?;
        let exchanged = sum(&local_trainers.exchanged());
        let steps = |trainer: usize| played.iter().map(|of| of.steps[trainer]).sum();
        let mut learners = Vec::with_capacity(setup.parts.len());
        for (trainer, (lone, inputs)) in local_trainers.trainers.iter_mut().zip(inputs).enumerate() {
            learners.push(LocalTrainer::new(&mut lone.worker, after(stage, index, steps(trainer)), inputs)?);
        }
        let mut judge = MeansJudge::new(&mut local_trainers.judge.worker, at, of_judge)?;
        run_recorder.begin(index);
        let hands_on = index + 1 < stages.len();
        let chosen = if let Some(known) = snapshot.as_ref().and_then(|snapshot| snapshot.finished.get(index)) {
            run_recorder.pass(known.clone());
            played.push(Played::passed(&conditions, &known.0.as_slice().into()));
            known.0.clone()
        } else {
            snapshot.take().map_or(Ok(()), |snapshot| run_recorder.restore(snapshot))?;
            let reached = run_recorder.reached();
            // Faults are timed from the beginning, or from when the run went on.
            let origin = *origin.get_or_insert(run_recorder.lasted());
            let conditions = conditions.since(run_recorder.lasted().saturating_sub(origin));
            run_recorder.sent_besides = played.iter().map(|of| sum(&of.sent)).sum::<u64>() + exchanged;
            // That it can be made is known since the run was predicted.
            let coding = |own| Changes::of(&setup.plan, index, own).ok().flatten();
            let (terms, start) = (setup.terms(index), Start { reached: &reached, hands_on });
            let mut went = run(terms, &conditions, &mut learners, &mut judge, start, &coding, run_recorder)?;
            run_recorder.note_played(&went.lanes, &went.steps);
            run_recorder.spent(went.end);
            ending = went.ending;
            let goes_on = hands_on && matches!(ending, Some(Ending::Limit | Ending::Patience));
            let chosen = if goes_on { run_recorder.finish_stage()? } else { Vec::new() };
            if goes_on {
                went.dismiss(&chosen.as_slice().into());
            }
            played.push(went);
            if !goes_on {
                judge.dismiss();
                break;
            }
            chosen
        };
        learners.into_iter().try_for_each(|learner| learner.hand_on(&chosen))?;
        judge.hand_on(&chosen, opened.run_recorder.rounds_of_finished())?;
    }
    let evaluations = local_trainers.judge.worker.transport.sent().clone();
    Ok(Went { ending, played, exchanged: local_trainers.exchanged(), evaluations })
}

/// Lets trainers exchange the inputs of a stage, which takes its time: theirs, and the judge's.
fn meet(
    local_trainers: &mut LocalTrainers,
    at: StageRun<'_>,
    conditions: &Conditions,
    run_recorder: &mut RunRecorder,
) -> Result<(Vec<StageInputs>, StageInputs)> {
    let before = local_trainers.exchanged();
    let inputs = local_trainers.inputs(meeting(at.stage, at.index), at)?;
    local_trainers.trainers.iter_mut().for_each(|lone| lone.stays_in_touch(true));
    run_recorder.before += longest(&before, &local_trainers.exchanged(), conditions);
    Ok(inputs)
}

/// Bytes of all together, framing included.
fn sum(sent: &[Ledger]) -> u64 {
    sent.iter().map(|ledger| ledger.total().framed).sum()
}

/// How long the slowest uplink took for what trainers have sent each other since.
fn longest(before: &[Ledger], now: &[Ledger], conditions: &Conditions) -> Duration {
    let takes = |((before, now), link): ((&Ledger, &Ledger), &LinkShape)| {
        let bytes = now.total().framed - before.total().framed;
        if bytes > 0 { link.transfer(bytes as usize).saturating_add(link.latency) } else { Duration::ZERO }
    };
    before.iter().zip(now).zip(&conditions.links[1..]).map(takes).max().unwrap_or_default()
}

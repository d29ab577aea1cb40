//! Trainers and aggregator on one thread, by a clock that jumps from one event to the next.

use std::time::Duration;

use laconic_nn::Operand;
use laconic_wire::LinkShape;

use super::close::{Closing, close};
use super::{Data, Opened, Setup, alone};
use crate::averaging::Ending;
use crate::averaging::simulated::{Conditions, Fault, Played, run};
use crate::config::{Failing, Who};
use crate::error::{Result, TrainError};
use crate::fit::local::{LocalTrainer, WholeJudge};
use crate::fit::trainer::StageRun;
use crate::fit::{Handed, StageInputs};
use crate::plan::Plan;
use crate::record::report::WorkerReport;
use crate::run::options::Outcome;
use crate::worker::Worker;

/// How fast a trainer steps where nothing is said.
const SPEED: f64 = 1.0;

/// A link that costs nothing.
const NO_LINK: LinkShape = LinkShape { latency: Duration::ZERO, bits_per_second: f64::INFINITY };

/// What the configuration says of speeds, links and faults.
fn conditions(setup: &Setup) -> Result<Conditions> {
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
            Who::Named(_) => None,
            Who::Trainer(part) => match setup.parts.iter().position(|own| *own == part) {
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
        report: WorkerReport::bytes(speeds.len() + 1),
        speeds,
        faults,
    })
}

/// Everybody's worker, with the rows that the next stage begins with.
struct Crew {
    trainers: Vec<(Worker, Option<Handed>)>,
    judge: (Worker, Option<Handed>),
}

impl Crew {
    fn start(setup: &Setup, data: Data) -> Result<Crew> {
        let handed = |(worker, x): (Worker, Operand)| (worker, Some(Handed::from(x)));
        let trainer = |part| -> Result<(Worker, Option<Handed>)> {
            let part: laconic_graph::part::Part = part;
            let plan = Plan::with(&setup.plan.members, &setup.config, &part.global)?.alone();
            alone(plan, part, setup).map(handed)
        };
        let trainers = data.parts.into_iter().map(trainer).collect::<Result<Vec<_>>>()?;
        let judge = alone(Plan::clone(&setup.plan), data.whole, setup).map(handed)?;
        Ok(Crew { trainers, judge })
    }
}

/// A stage's inputs on one worker.
fn inputs(worker: &mut Worker, x: &mut Option<Handed>, at: StageRun<'_>) -> Result<StageInputs> {
    let x = x.take().expect("every stage but the last hands rows on");
    worker.begin(at.stage);
    StageInputs::fetch(worker, at.stage, x, at.rounds_before)
}

/// Plays the run and writes down what comes of it.
///
/// # Errors
/// If training leaves the numbers, too few trainers are left, or something cannot be written down.
pub(super) fn play(setup: &Setup, data: Data, opened: Opened) -> Result<Vec<Outcome>> {
    let began = std::time::Instant::now();
    let conditions = conditions(setup)?;
    let mut crew = Crew::start(setup, data)?;
    let Opened { mut desk, card, earlier, snapshot, forecast, by_kind, start } = opened;
    let after_round = snapshot.as_ref().map_or(0, |snapshot| snapshot.rounds());
    let (mut snapshot, mut played, mut last) = (snapshot, Vec::<Played>::new(), None);
    let stages = setup.plan.stages.clone();
    for (index, stage) in stages.iter().enumerate() {
        let at = StageRun { stage, index, rounds_before: desk.finished.iter().map(|(_, rounds)| rounds).sum() };
        let mut learners = Vec::new();
        for (worker, x) in &mut crew.trainers {
            let inputs = inputs(worker, x, at)?;
            learners.push(LocalTrainer::new(worker, at, inputs)?);
        }
        let (worker, x) = &mut crew.judge;
        let inputs = inputs(worker, x, at)?;
        let mut judge = WholeJudge::new(worker, at, inputs)?;
        desk.begin(index);
        let known = snapshot.as_ref().and_then(|snapshot| snapshot.finished.get(index)).cloned();
        let chosen = match known {
            Some((chosen, rounds)) => {
                desk.finished.push((chosen.clone(), rounds));
                chosen
            }
            None => {
                if let Some(snapshot) = snapshot.take() {
                    snapshot.restore(&mut desk.progress)?;
                }
                let (kept, best) = desk.kept();
                let faults = if played.is_empty() { conditions.faults.clone() } else { Vec::new() };
                let conditions = Conditions { faults, ..conditions.clone() };
                let went =
                    run(setup.terms(index), &conditions, &mut learners, &mut judge, (kept.as_ref(), best), &mut desk)?;
                desk.note_lanes(&went.lanes, &went.steps);
                desk.before += went.end;
                let ending = went.ending;
                played.push(went);
                last = Some(ending);
                if ending != Some(Ending::Limit) && ending != Some(Ending::Patience) || index + 1 == stages.len() {
                    break;
                }
                desk.finish_stage()?
            }
        };
        let handed: Vec<Option<Handed>> =
            learners.into_iter().map(|learner| learner.hand_on(&chosen)).collect::<Result<_>>()?;
        let of_judge = judge.hand_on(&chosen)?;
        crew.trainers.iter_mut().zip(handed).for_each(|((_, x), handed)| *x = handed);
        crew.judge.1 = of_judge;
    }
    let ending = last.ok_or_else(|| TrainError::checkpoint("the run had come to its end"))?;
    close(Closing { setup, desk, card, earlier, forecast, by_kind, start, after_round, played, ending, began })
}

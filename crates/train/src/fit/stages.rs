//! Training stages one after the other, and running trained ones.

use laconic_nn::{Matrix, Operand, Precision};
use laconic_wire::{Count, Kind, PerKind, collectives};

use super::inputs::{StageInputs, folds_in_pieces};
use super::observe::{Recorder, RoundReport};
use super::progress::{Finished, Progress, Snapshot};
use super::propagated;
use super::task;
use super::trainer::{Fit, RoundEnd, StageRun};
use crate::error::Result;
use crate::exchange::steps::Step;
use crate::pass::inputs::Inputs;
use crate::pass::network::Pass;
use crate::saved::Saved;
use crate::schedule::{HandOn, Stage};
use crate::selection::Scope;
use crate::worker::by_id::ById;
use crate::worker::evaluate::{Evaluated, Scores};
use crate::worker::parts;
use crate::worker::{Handed, Worker};

/// What training ends with.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// Per stage the chosen parameters.
    pub chosen: Vec<Vec<f32>>,
    /// The last stage's parameters after its last round.
    pub last: Vec<f32>,
    /// The best round, counted over stages.
    pub best_round: u32,
    /// The figures of each split in that round.
    pub scores: Scores,
    /// Rounds done in all.
    pub rounds: u32,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

/// Trains the plan's stages one after the other; called on every worker at once.
///
/// # Errors
/// If another worker does not answer, training leaves the numbers, or something cannot be written down.
pub fn train(worker: &mut Worker, recorder: &mut dyn Recorder) -> Result<Trained> {
    let stages = worker.plan.stages.clone();
    let mut resumed = recorder.resume()?;
    if let Some((snapshot, _)) = &resumed {
        snapshot.check_fits(&stages)?;
    }
    let (mut finished, mut rounds_before): (Vec<Finished>, u32) = (Vec::new(), 0);
    for (index, stage) in stages.iter().enumerate() {
        // What reading, cutting, or the stage before has freed has other sizes than what this one asks for.
        laconic_graph::memory::give_back();
        let at = StageRun { stage, index, rounds_before };
        let known = resumed.as_ref().and_then(|(snapshot, _)| snapshot.finished.get(index)).cloned();
        let goes_on = if known.is_none() { resumed.take() } else { None };
        let (mut fit, mut progress) = open(worker, at, goes_on, known.as_ref().map_or(0, |(_, rounds)| *rounds))?;
        recorder.crossed(&mut worker.transport)?;
        let (parameters, rounds) = match known {
            Some(known) => known,
            None => {
                let interrupted = finish(worker, &mut fit, &mut progress, &finished, recorder);
                let interrupted = interrupted.map_err(|error| fit.cause(error))?;
                worker.settle_late()?;
                let rounds = rounds_before + progress.done;
                if interrupted || index + 1 == stages.len() {
                    worker.told = progress.best.as_ref().map(|best| best.parts.all().to_vec()).unwrap_or_default();
                    return Ok(trained(finished, progress, rounds, interrupted));
                }
                (progress.chosen().to_vec(), progress.done)
            }
        };
        rounds_before += rounds;
        hand_on(worker, fit, stage, &parameters, rounds_before)?;
        finished.push((parameters, rounds));
    }
    unreachable!("a schedule has at least one stage, and the last returns")
}

/// A stage with its inputs, as far as `revealed` rounds (or the snapshot's) have revealed them, and its progress.
///
/// # Errors
/// If another worker does not answer, or the snapshot is of something else.
pub fn open<'a>(
    worker: &mut Worker,
    at: StageRun<'a>,
    goes_on: Option<(Snapshot, Saved)>,
    revealed: u32,
) -> Result<(Fit<'a>, Progress)> {
    let mut progress = Progress::new(&worker.plan, &at.stage.network, at.index);
    worker.begin(at.stage);
    let material = StageInputs::fetch(worker, at.stage, at.rounds_before)?;
    let mut fit = Fit::new(worker, at, material)?;
    match goes_on {
        Some((snapshot, saved)) => {
            snapshot.restore(&mut progress)?;
            fit.restore(worker, &mut progress, saved)?;
            fit.catch_up(worker, progress.done)?;
        }
        None => fit.catch_up(worker, revealed)?,
    }
    Ok((fit, progress))
}

/// Trains a stage to its end; whether the user stopped it before.
fn finish(
    worker: &mut Worker,
    fit: &mut Fit<'_>,
    progress: &mut Progress,
    finished: &[Finished],
    recorder: &mut dyn Recorder,
) -> Result<bool> {
    if let Some(mut report) = fit.settle(worker, progress)? {
        count_before(&mut report, recorder);
        recorder.after_round(&report)?;
    }
    let take = |progress: &Progress, bytes| Snapshot::take(finished.len(), progress, finished.to_vec(), bytes);
    while !progress.is_over(fit.rounds()) {
        let end = match recorded_round(worker, fit, progress, recorder, &take) {
            Ok(end) => end,
            Err(error) => {
                // What was reached survives the failure of others, where worker 0 alone knows all of it.
                if !worker.plan.remembers() {
                    recorder.rescue(&error, &|bytes| take(progress, bytes))?;
                }
                return Err(error);
            }
        };
        if end.interrupted && !progress.is_over(fit.rounds()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Adds what was sent before the run was resumed.
fn count_before(report: &mut RoundReport, recorder: &dyn Recorder) {
    if let Some(bytes) = &mut report.bytes {
        *bytes += recorder.bytes_before().iter().map(|(_, count)| count.framed).sum::<u64>();
    }
}

/// One round with what follows it: the log, and a checkpoint where one is due.
fn recorded_round(
    worker: &mut Worker,
    fit: &mut Fit<'_>,
    progress: &mut Progress,
    recorder: &mut dyn Recorder,
    take: &dyn Fn(&Progress, PerKind<Count>) -> Snapshot,
) -> Result<RoundEnd> {
    let mut end = fit.train_round(worker, progress)?;
    count_before(&mut end.report, recorder);
    // Every worker's rows are written down before any of them can take part in a checkpoint.
    recorder.crossed(&mut worker.transport)?;
    recorder.after_round(&end.report)?;
    let due = worker.plan.cadence.writes(progress.done, fit.rounds());
    if due || end.interrupted || progress.is_over(fit.rounds()) {
        if worker.plan.remembers() {
            worker.settle_late()?;
            let mut saved = Saved::default();
            fit.save(worker, progress, &mut saved);
            recorder.remember(saved, end.report.round)?;
        }
        // What a finished stage hands on is its parameters.
        let goes_on = !progress.is_over(fit.rounds()) || fit.is_last(worker);
        if let Some(shape) = worker.evaluator.parts().filter(|_| goes_on) {
            let known = progress.best.as_mut().map(|best| &mut best.parts);
            parts::gather(&mut worker.transport, shape, known, end.report.round)?;
        }
        let bytes = total_bytes(worker, end.report.round, &recorder.bytes_before())?;
        recorder.crossed(&mut worker.transport)?;
        recorder.checkpoint(&|| take(progress, bytes))?;
    }
    Ok(end)
}

/// Keeps in the worker what a finished stage hands on to the next, if it does, of these parameters. The rows are moved,
/// and what only rounds need has gone before they are made.
///
/// # Errors
/// If another worker does not answer.
pub fn hand_on(worker: &mut Worker, mut fit: Fit<'_>, stage: &Stage, parameters: &[f32], round: u32) -> Result<()> {
    if stage.hand_on == HandOn::Nothing {
        return Ok(());
    }
    fit.end_rounds();
    // What evaluations alone may see must not reach the next stage's training.
    let training = fit.infer_as_trained(worker, parameters, round)?.map(|pass| handed(pass, stage));
    let seen = handed(fit.infer(worker, parameters, round)?, stage);
    worker.keep_handed(match training {
        Some(training) => Handed { training, evaluation: Some(seen) },
        None => Handed::from(seen),
    });
    Ok(())
}

fn handed(pass: &mut Pass, stage: &Stage) -> Operand {
    Operand::Dense(match stage.hand_on {
        HandOn::Hidden => {
            pass.take_last_hidden().expect("a stage that hands on hidden rows has a classifier that reads them")
        }
        _ => pass.take_logits(),
    })
}

/// What a trained model says about own rows.
pub struct Inferred {
    /// Logits; rows × classes.
    pub logits: Matrix,
    /// What the last layer reads: the embedding of each row. `None` for a model of one layer.
    pub embedding: Option<Matrix>,
}

impl Inferred {
    /// The same with rows in the order of ids.
    #[must_use]
    pub fn by_id(mut self, by_id: &ById) -> Inferred {
        if let Some(order) = by_id.order() {
            for rows in std::iter::once(&mut self.logits).chain(&mut self.embedding) {
                let width = rows.columns();
                order.move_rows(rows.data_mut(), width);
            }
        }
        self
    }
}

/// Runs trained stages without training, on all rows of all workers.
///
/// # Errors
/// If another worker does not answer, or the worker has run stages before.
pub fn infer(worker: &mut Worker, parameters: &[Vec<f32>]) -> Result<Inferred> {
    let stages = worker.plan.stages.clone();
    let mut apart = false;
    for (index, (stage, parameters)) in stages.iter().zip(parameters).enumerate() {
        let round = index as u32;
        let own = match stage.propagation {
            Some(propagation) => propagated::rows(worker, stage, propagation, round)?,
            None => worker.take_handed()?,
        };
        let own = own.training.converted(worker.plan.precision());
        // An inductive run's evaluations have inputs of their own, whatever a run without training nodes says here.
        apart |= worker.plan.evaluates_apart(stage) || (worker.plan.config.data.inductive && stage.freezes());
        let inputs = inputs(worker, stage, apart, own, round)?;
        let embedding = match &inputs.x {
            Operand::Dense(rows) if index > 0 && stage.propagation.is_none() => {
                Some(rows.clone().converted(Precision::F32))
            }
            _ => None,
        };
        let at = StageRun { stage, index, rounds_before: round };
        let mut fit = Fit::without_rounds(worker, at, StageInputs::of(inputs))?;
        if index + 1 == stages.len() {
            let pass = fit.infer(worker, parameters, round)?;
            let hidden = pass.take_last_hidden().map(|rows| rows.converted(Precision::F32));
            let embedding = hidden.or(embedding);
            return Ok(Inferred { logits: pass.take_logits(), embedding });
        }
        hand_on(worker, fit, stage, parameters, round)?;
    }
    unreachable!("a schedule has at least one stage, and the last returns")
}

/// The figures of held-out edges over all workers, from what [`infer`] made of own rows; `None` where nothing is
/// measured, or this model learns something else.
///
/// # Errors
/// If another worker does not answer.
pub fn judge(worker: &mut Worker, parameters: &[Vec<f32>], inferred: &Inferred) -> Result<Option<Scores>> {
    let plan = worker.plan.clone();
    let last = plan.stages.iter().zip(parameters).next_back();
    let Some((stage, parameters)) = last.filter(|_| plan.task.of_pairs && !plan.metrics.is_empty()) else {
        return Ok(None);
    };
    let Evaluated { scores, .. } = task::of(&plan, stage)?.evaluate(worker, parameters, &inferred.logits, 0)?;
    Ok(Some(scores))
}

/// The inputs of a trained stage, as it was judged on them: those of evaluations, or where these had training's and
/// that does not depend on chance, as it was trained on them.
fn inputs(worker: &mut Worker, stage: &Stage, apart: bool, x: Operand, round: u32) -> Result<Inputs> {
    let layer = stage.first();
    let in_pieces = worker.plan.reads_own_inputs(stage) && folds_in_pieces(worker, &x);
    if layer.facts().message_width > 0 && (in_pieces || !stage.freezes()) {
        return Ok(Inputs::unfolded(x));
    }
    let tag = stage.input_tag(round);
    let by_chance = worker.plan.messages.coding(tag).kind.draws;
    let tag = if apart || by_chance { stage.evaluation_input_tag(round) } else { tag };
    let alone = worker.plan.evaluation == Scope::Nothing && worker.plan.frozen_scope(stage) == Scope::Nothing;
    let scope = if alone { Scope::Nothing } else { Scope::Whole };
    let (mut peers, graph) = worker.split();
    Inputs::freeze(&mut peers, graph, layer, x, (tag, scope))
}

/// The end of a run in its last stage, or in the one that was interrupted.
fn trained(finished: Vec<Finished>, progress: Progress, rounds: u32, interrupted: bool) -> Trained {
    let mut chosen: Vec<Vec<f32>> = finished.into_iter().map(|(parameters, _)| parameters).collect();
    chosen.push(progress.chosen().to_vec());
    let (best_round, scores) = match progress.best {
        Some(best) => (best.round, best.scores),
        None => (rounds, Scores::default()),
    };
    Trained { chosen, last: progress.parameters, best_round, scores, rounds, interrupted }
}

/// Bytes sent so far by kind, over all workers.
fn total_bytes(worker: &mut Worker, round: u32, before: &PerKind<Count>) -> Result<PerKind<Count>> {
    let mut totals = worker.transport.sent().totals_by_kind();
    // What this very sum will send.
    totals[Kind::Control] += collectives::all_reduce_f64_bytes(worker.size(), 3 * Kind::ALL.len());
    let numbers = |count: &Count| [count.frames as f64, count.payload as f64, count.framed as f64];
    let mut flat: Vec<f64> = totals.iter().flat_map(|(_, count)| numbers(count)).collect();
    collectives::all_reduce_f64(&mut worker.transport, Step::SentBytes.tag(round), &mut flat)?;
    let mut sums = *before;
    for ((_, sum), flat) in sums.iter_mut().zip(flat.as_chunks::<3>().0) {
        let [frames, payload, framed] = flat.map(|v| v as u64);
        *sum += Count { frames, payload, framed };
    }
    Ok(sums)
}

//! Running and predicting a sequence of stages.

use laconic_nn::{Matrix, Operand};
use laconic_wire::{Count, Direction, Kind, Ledger, Rank, Tag, Transport, collectives};

use super::{Forecast, Stage};
use crate::checkpoint::Checkpoint;
use crate::discover::{Shapes, control};
use crate::error::{Result, TrainError};
use crate::evaluate::Scores;
use crate::fit::{Fit, HandOn, Lesson, Progress, RoundEnd, RoundReport, gradient_tag, is_evaluated, reduced_len};
use crate::halo::{Codecs, Halo};
use crate::inputs::{Inputs, Neighbours};
use crate::worker::Worker;

/// What happens around rounds: progress, logs and checkpoints on worker 0, nothing elsewhere.
pub trait Hooks {
    /// After each round.
    fn round(&mut self, report: &RoundReport) -> Result<()>;

    /// Where a checkpoint is due; `make` takes it.
    fn checkpoint(&mut self, make: &dyn Fn() -> Checkpoint) -> Result<()>;

    /// After an error, where the state may be worth keeping; `make` takes it with the bytes sent so far, as far as they are known.
    fn rescue(&mut self, error: &TrainError, make: &dyn Fn([Count; 7]) -> Checkpoint) -> Result<()>;

    /// The state to go on from; taken once.
    fn resume(&mut self) -> Option<Checkpoint>;

    /// Bytes by kind of the run before it was resumed.
    fn bytes_before(&self) -> [Count; Kind::ALL.len()];
}

/// What training ends with.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// Per stage the chosen parameters.
    pub chosen: Vec<Vec<f32>>,
    /// The last stage's parameters after its last round.
    pub last: Vec<f32>,
    /// The best round, counted over stages.
    pub best_round: u32,
    /// Its figures.
    pub scores: Scores,
    /// Rounds done in all.
    pub rounds: u32,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

/// Trains the stages one after the other.
pub fn run(worker: &mut Worker, stages: &[Stage], x: Operand, hooks: &mut dyn Hooks) -> Result<Trained> {
    let mut resumed = hooks.resume();
    if let Some(checkpoint) = &resumed {
        checkpoint.check_fits(stages)?;
    }
    let (mut finished_stages, mut rounds_before): (Vec<(Vec<f32>, u32)>, u32) = (Vec::new(), 0);
    let mut x = Some(x);
    for (index, stage) in stages.iter().enumerate() {
        let lesson =
            Lesson { stage: index, first_layer: stage.first_layer, rounds_before, rounds: stage.rounds, lr: stage.lr };
        let mut progress = Progress::new(&worker.config.train, &stage.network, index)?;
        let finished = resumed.as_ref().and_then(|checkpoint| checkpoint.finished.get(index)).cloned();
        if finished.is_none()
            && let Some(checkpoint) = resumed.take()
        {
            checkpoint.restore(&mut progress)?;
        }
        let own = x.take().expect("every stage but the last hands rows on");
        let inputs = freeze(worker, stage, own, rounds_before)?;
        let mut fit = Fit::new(worker, &stage.network, lesson, &inputs);
        if let Some((parameters, rounds)) = finished {
            rounds_before += rounds;
            x = hand_on(worker, &mut fit, stage, &parameters, rounds_before)?;
            finished_stages.push((parameters, rounds));
            continue;
        }
        fit.settle(worker, &mut progress)?;
        while !is_over(&progress, stage.rounds) {
            let take = |progress: &Progress, bytes| Checkpoint::take(index, progress, finished_stages.clone(), bytes);
            let end = match round(worker, &mut fit, &mut progress, hooks, &take) {
                Ok(end) => end,
                Err(error) => {
                    // What was reached survives the failure of others.
                    hooks.rescue(&error, &|bytes| take(&progress, bytes))?;
                    return Err(error);
                }
            };
            if end.interrupted && !is_over(&progress, stage.rounds) {
                return Ok(trained(finished_stages, progress, end.report.round, true));
            }
        }
        rounds_before += progress.done;
        let parameters = progress.chosen().to_vec();
        if index + 1 == stages.len() {
            return Ok(trained(finished_stages, progress, rounds_before, false));
        }
        x = hand_on(worker, &mut fit, stage, &parameters, rounds_before)?;
        finished_stages.push((parameters, progress.done));
    }
    unreachable!("a schedule has at least one stage, and the last returns")
}

/// Whether a stage has done its rounds, or patience has ended it.
fn is_over(progress: &Progress, rounds: u32) -> bool {
    progress.done >= rounds || progress.stopped
}

/// One round with what follows it: the log, and a checkpoint where one is due.
fn round(
    worker: &mut Worker,
    fit: &mut Fit<'_>,
    progress: &mut Progress,
    hooks: &mut dyn Hooks,
    take: &dyn Fn(&Progress, [Count; 7]) -> Checkpoint,
) -> Result<RoundEnd> {
    let mut end = fit.round(worker, progress)?;
    if let Some(bytes) = &mut end.report.bytes {
        *bytes += hooks.bytes_before().iter().map(|count| count.framed).sum::<u64>();
    }
    hooks.round(&end.report)?;
    let every = worker.config.out.checkpoint_every;
    let due = every > 0 && progress.done.is_multiple_of(every);
    if due || end.interrupted || is_over(progress, fit.rounds()) {
        let bytes = total_bytes(worker, end.report.round, &hooks.bytes_before())?;
        hooks.checkpoint(&|| take(progress, bytes))?;
    }
    Ok(end)
}

fn freeze(worker: &mut Worker, stage: &Stage, x: Operand, rounds_before: u32) -> Result<Inputs> {
    let layer = stage.network.units()[0].layer.as_ref();
    if !stage.cache_inputs && layer.message_width() > 0 {
        return Ok(Inputs { x, neighbours: Neighbours::Exchanged });
    }
    let tag = input_tag(stage, rounds_before);
    let (mut links, ground) = worker.split();
    Inputs::freeze(&mut links, ground, layer, x, tag)
}

/// Features cross before the first layer, hidden rows before later ones.
fn input_tag(stage: &Stage, rounds_before: u32) -> Tag {
    let kind = if stage.first_layer == 0 { Kind::Features } else { Kind::Activations };
    Tag { kind, direction: Direction::Forward, layer: stage.first_layer, round: rounds_before, step: 1 }
}

fn hand_on(
    worker: &mut Worker,
    fit: &mut Fit<'_>,
    stage: &Stage,
    parameters: &[f32],
    round: u32,
) -> Result<Option<Operand>> {
    if stage.hand_on == HandOn::Nothing {
        return Ok(None);
    }
    let pass = fit.infer(worker, parameters, round)?;
    let rows = if stage.hand_on == HandOn::Hidden { pass.hidden() } else { pass.logits() };
    Ok(Some(Operand::Dense(rows.clone())))
}

/// What a trained model says about own rows.
pub struct Inferred {
    /// Logits; rows × classes.
    pub logits: Matrix,
    /// What the last layer reads: the embedding of each row. `None` for a model of one layer.
    pub embedding: Option<Matrix>,
}

/// Runs trained stages without training.
pub fn infer(worker: &mut Worker, stages: &[Stage], parameters: &[Vec<f32>], x: Operand) -> Result<Inferred> {
    let mut x = Some(x);
    for (index, (stage, parameters)) in stages.iter().zip(parameters).enumerate() {
        let own = x.take().expect("every stage but the last hands rows on");
        let inputs = freeze(worker, stage, own, index as u32)?;
        let lesson =
            Lesson { stage: index, first_layer: stage.first_layer, rounds_before: index as u32, rounds: 0, lr: 0.0 };
        let mut fit = Fit::new(worker, &stage.network, lesson, &inputs);
        x = hand_on(worker, &mut fit, stage, parameters, index as u32)?;
        if index + 1 == stages.len() {
            let pass = fit.infer(worker, parameters, index as u32)?;
            let embedding = match (pass.last_hidden(), &inputs.x) {
                (Some(hidden), _) => Some(hidden.clone()),
                (None, Operand::Dense(rows)) if index > 0 => Some(rows.clone()),
                _ => None,
            };
            return Ok(Inferred { logits: pass.logits().clone(), embedding });
        }
    }
    unreachable!("a schedule has at least one stage, and the last returns")
}

/// The end of a run in its last stage, or in the one that was interrupted.
fn trained(finished: Vec<(Vec<f32>, u32)>, progress: Progress, rounds: u32, interrupted: bool) -> Trained {
    let mut chosen: Vec<Vec<f32>> = finished.into_iter().map(|(parameters, _)| parameters).collect();
    chosen.push(progress.chosen().to_vec());
    let (best_round, scores) = match progress.best {
        Some(best) => (best.round, best.scores),
        None => (rounds, Scores::default()),
    };
    Trained { chosen, last: progress.parameters, best_round, scores, rounds, interrupted }
}

/// Bytes sent so far by kind, over all workers.
fn total_bytes(worker: &mut Worker, round: u32, before: &[Count; 7]) -> Result<[Count; 7]> {
    let mut flat = Vec::with_capacity(3 * Kind::ALL.len());
    let totals = worker.channel.sent().totals_by_kind();
    for kind in Kind::ALL {
        let mut count = totals.get(&kind).copied().unwrap_or_default();
        if kind == Kind::Control {
            // What this very sum will send.
            count += collectives::all_reduce_f64_bytes(worker.channel.size(), 3 * Kind::ALL.len());
        }
        flat.extend([count.frames as f64, count.payload as f64, count.framed as f64]);
    }
    collectives::all_reduce_f64(&mut worker.channel, control(round, 4), &mut flat)?;
    let mut sums = *before;
    for (sum, flat) in sums.iter_mut().zip(flat.as_chunks::<3>().0) {
        let [frames, payload, framed] = flat.map(|v| v as u64);
        *sum += Count { frames, payload, framed };
    }
    Ok(sums)
}

/// What [`run`] sends from a worker of these shapes. Exact for codecs whose size depends on shapes alone, as long as neither patience
/// nor the user ends a stage early; else a bound.
pub fn predict(forecast: &Forecast<'_>, shapes: &Shapes) -> Result<Ledger> {
    let Forecast { config, stages, evaluator, position } = *forecast;
    let mut ledger = Ledger::new();
    let (rank, size) = (Rank(shapes.rank), shapes.workers());
    let codecs = Codecs::new(&config.messages)?;
    let mut rounds_before = 0;
    for (number, stage) in stages.iter().enumerate() {
        let units = stage.network.units();
        let first = units[0].layer.as_ref();
        let halo = |ledger: &mut Ledger, tag: Tag, width: usize| {
            if width > 0 {
                Halo::predict(&shapes.links, codecs.of(tag.layer, tag.direction), tag, width, ledger);
            }
        };
        if stage.cache_inputs && first.message_width() > 0 {
            halo(&mut ledger, input_tag(stage, rounds_before), first.inputs());
        }
        if let Some(rounds) = position.finished.get(number) {
            rounds_before += rounds;
            continue;
        }
        let current = number == position.finished.len();
        let done_before = if current { position.done } else { 0 };
        if current && position.stopped {
            rounds_before += done_before;
            continue;
        }
        for done in done_before + 1..=stage.rounds {
            let round = rounds_before + done;
            let evaluated = is_evaluated(&config.train, done, stage.rounds);
            for (index, unit) in units.iter().enumerate() {
                if index == 0 && stage.cache_inputs {
                    continue;
                }
                let (width, layer) = (unit.layer.message_width(), stage.first_layer + index as u16);
                let tag = |kind, direction| Tag { kind, direction, layer, round, step: 0 };
                let kind = if index == 0 { Kind::Features } else { Kind::Activations };
                halo(&mut ledger, tag(kind, Direction::Forward), width);
                if index > 0 || first.message_has_parameters() {
                    halo(&mut ledger, tag(Kind::ActivationGradients, Direction::Reverse), width);
                }
                if evaluated {
                    halo(&mut ledger, tag(Kind::Evaluation, Direction::Forward), width);
                }
            }
            let tag = gradient_tag(stage.first_layer, round);
            collectives::predict_all_reduce_sum(&mut ledger, tag, size, rank, reduced_len(&stage.network));
            if evaluated {
                evaluator.predict(shapes, round, &mut ledger);
            }
            let every = config.out.checkpoint_every;
            if done == stage.rounds || (every > 0 && done.is_multiple_of(every)) {
                collectives::predict_all_reduce_f64(&mut ledger, control(round, 4), size, rank, 3 * Kind::ALL.len());
            }
        }
        rounds_before += stage.rounds;
    }
    Ok(ledger)
}

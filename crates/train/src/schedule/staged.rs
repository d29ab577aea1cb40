//! Running and predicting a sequence of stages.

use laconic_nn::{Matrix, Operand};
use laconic_wire::{Count, Direction, Kind, Ledger, Rank, Tag, Transport, collectives};

use super::{Forecast, Stage};
use crate::config::ramp::Reading;
use crate::error::{Result, TrainError};
use crate::exchange::halo::{Halo, Route, Scope};
use crate::exchange::late::{self, Late};
use crate::exchange::skip::Skipper;
use crate::exchange::widths;
use crate::fit::cadence::{extras_len, is_due, is_evaluated, is_synced, live_exchanges, reducer, reduction_tag};
use crate::fit::progress::Progress;
use crate::fit::{Fit, HandOn, Lesson, Material, RoundEnd, RoundReport};
use crate::messages::codecs::Codecs;
use crate::pass::inputs::{Inputs, Neighbours, can_freeze};
use crate::pass::reveal::{self, Reveal};
use crate::record::checkpoint::Checkpoint;
use crate::record::state::Saved;
use crate::worker::Worker;
use crate::worker::discover::{Shapes, control};
use crate::worker::evaluate::Scores;

/// What happens around rounds: progress, logs and checkpoints on worker 0, nothing elsewhere.
pub trait Hooks {
    /// After each round.
    fn round(&mut self, report: &RoundReport) -> Result<()>;

    /// Where a checkpoint is due; `make` takes it.
    fn checkpoint(&mut self, make: &dyn Fn() -> Checkpoint) -> Result<()>;

    /// After an error, where the state may be worth keeping; `make` takes it with the bytes sent so far, as far as they are known.
    fn rescue(&mut self, error: &TrainError, make: &dyn Fn([Count; 7]) -> Checkpoint) -> Result<()>;

    /// Where a checkpoint is due, on every worker before it is taken: what this worker alone remembers after the round.
    fn remember(&mut self, saved: &Saved, round: u32) -> Result<()>;

    /// The state to go on from, with what this worker alone remembers; taken once.
    fn resume(&mut self) -> Result<Option<(Checkpoint, Saved)>>;

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
    let mut resumed = hooks.resume()?;
    if let Some((checkpoint, _)) = &resumed {
        checkpoint.check_fits(stages)?;
    }
    let (mut finished_stages, mut rounds_before): (Vec<(Vec<f32>, u32)>, u32) = (Vec::new(), 0);
    let mut x = Some(x);
    for (index, stage) in stages.iter().enumerate() {
        let lesson =
            Lesson { stage: index, first_layer: stage.first_layer, rounds_before, rounds: stage.rounds, lr: stage.lr };
        let mut progress = Progress::new(&worker.config.train, &stage.network, index)?;
        let finished = resumed.as_ref().and_then(|(checkpoint, _)| checkpoint.finished.get(index)).cloned();
        let mut saved = None;
        if finished.is_none()
            && let Some((checkpoint, own)) = resumed.take()
        {
            checkpoint.restore(&mut progress)?;
            saved = Some(own);
        }
        let own = x.take().expect("every stage but the last hands rows on");
        begin(worker, stage);
        let material = material(worker, stage, own, rounds_before)?;
        let mut fit = Fit::new(worker, &stage.network, lesson, material)?;
        if let Some((parameters, rounds)) = finished {
            fit.catch_up(worker, rounds)?;
            rounds_before += rounds;
            x = hand_on(worker, &mut fit, stage, &parameters, rounds_before)?;
            finished_stages.push((parameters, rounds));
            continue;
        }
        if let Some(saved) = saved {
            fit.restore(worker, &mut progress, &saved)?;
            fit.catch_up(worker, progress.done)?;
        }
        fit.settle(worker, &mut progress)?;
        while !is_over(&progress, stage.rounds) {
            let take = |progress: &Progress, bytes| Checkpoint::take(index, progress, finished_stages.clone(), bytes);
            let end = match round(worker, &mut fit, &mut progress, hooks, &take) {
                Ok(end) => end,
                Err(error) => {
                    // What was reached survives the failure of others, where worker 0 alone knows all of it.
                    if !worker.config.has_own_state() {
                        hooks.rescue(&error, &|bytes| take(&progress, bytes))?;
                    }
                    return Err(error);
                }
            };
            if end.interrupted && !is_over(&progress, stage.rounds) {
                late::settle(&mut worker.halo, &mut worker.channel)?;
                return Ok(trained(finished_stages, progress, end.report.round, true));
            }
        }
        late::settle(&mut worker.halo, &mut worker.channel)?;
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
    let due = is_due(&worker.config.train, worker.config.out.checkpoint_every, progress.done, fit.rounds());
    if due || end.interrupted || is_over(progress, fit.rounds()) {
        if worker.config.has_own_state() {
            late::settle(&mut worker.halo, &mut worker.channel)?;
            let mut saved = Saved::default();
            fit.save(worker, progress, &mut saved);
            hooks.remember(&saved, end.report.round)?;
        }
        let bytes = total_bytes(worker, end.report.round, &hooks.bytes_before())?;
        hooks.checkpoint(&|| take(progress, bytes))?;
    }
    Ok(end)
}

/// Forgets what the messages of another stage have left behind.
fn begin(worker: &mut Worker, stage: &Stage) {
    worker.halo.late = stage.late.map(Late::new);
    worker.halo.skipper = worker.config.messages.skip.map(Skipper::new);
}

/// Whether the first layer's halo crosses once.
fn freezes(stage: &Stage) -> bool {
    stage.cache_inputs && can_freeze(stage.network.units()[0].layer.as_ref())
}

/// Which rows cross for frozen inputs while training.
fn frozen_scope(config: &crate::Config, stage: &Stage) -> Scope {
    match config.messages.selection.config().kind.as_str() {
        "none" => Scope::Nothing,
        _ if stage.sample_inputs => Scope::Selected,
        _ => Scope::Whole,
    }
}

/// Whether evaluations fetch the rows that training went without.
fn evaluates_whole(config: &crate::Config, stage: &Stage) -> bool {
    freezes(stage) && frozen_scope(config, stage) == Scope::Nothing && config.evaluation_scope() == Scope::Whole
}

/// What a stage trains on.
fn material(worker: &mut Worker, stage: &Stage, x: Operand, rounds_before: u32) -> Result<Material> {
    let layer = stage.network.units()[0].layer.as_ref();
    if layer.message_width() > 0 && !freezes(stage) {
        let inputs = Inputs { x, neighbours: Neighbours::Exchanged, presence: None };
        return Ok(Material { inputs, reveal: None, eval_inputs: None });
    }
    let (tag, scope) = (input_tag(stage, rounds_before), frozen_scope(&worker.config, stage));
    let whole = evaluates_whole(&worker.config, stage);
    let (mut links, ground) = worker.split();
    let eval_inputs = match whole {
        true => Some(Inputs::freeze(&mut links, ground, layer, x.clone(), (evaluation_tag(tag), Scope::Whole))?),
        false => None,
    };
    if layer.message_width() > 0 && scope != Scope::Nothing && reveal::reveals(&links.halo.codecs.choice(tag)) {
        let mut reveal = Reveal::new(&mut links, layer, &ground.nodes, &x, (tag, scope))?;
        let inputs = reveal.inputs(links.compute, ground, layer, x);
        return Ok(Material { inputs, reveal: Some(reveal), eval_inputs });
    }
    links.halo.codecs.turn(Reading { rounds: stage.rounds, ..Reading::default() });
    let inputs = Inputs::freeze(&mut links, ground, layer, x, (tag, scope))?;
    Ok(Material { inputs, reveal: None, eval_inputs })
}

/// The tag under which inputs cross for evaluation alone.
fn evaluation_tag(tag: Tag) -> Tag {
    Tag { kind: Kind::Evaluation, step: 4, ..tag }
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

/// Runs trained stages without training, on all rows of all workers.
pub fn infer(worker: &mut Worker, stages: &[Stage], parameters: &[Vec<f32>], x: Operand) -> Result<Inferred> {
    let mut x = Some(x);
    for (index, (stage, parameters)) in stages.iter().zip(parameters).enumerate() {
        let own = x.take().expect("every stage but the last hands rows on");
        let tag = input_tag(stage, index as u32);
        // As the model was trained and judged, where that does not depend on chance.
        let chance = !matches!(worker.halo.codecs.choice(tag).codec.as_str(), "exact" | "half");
        let tag = if chance { evaluation_tag(tag) } else { tag };
        let layer = stage.network.units()[0].layer.as_ref();
        let (mut links, ground) = worker.split();
        let inputs = match freezes(stage) || layer.message_width() == 0 {
            true => Inputs::freeze(&mut links, ground, layer, own, (tag, Scope::Whole))?,
            false => Inputs { x: own, neighbours: Neighbours::Exchanged, presence: None },
        };
        let embedding = match &inputs.x {
            Operand::Dense(rows) if index > 0 => Some(rows.clone()),
            _ => None,
        };
        let lesson =
            Lesson { stage: index, first_layer: stage.first_layer, rounds_before: index as u32, rounds: 0, lr: 0.0 };
        let material = Material { inputs, reveal: None, eval_inputs: None };
        let mut fit = Fit::new(worker, &stage.network, lesson, material)?;
        x = hand_on(worker, &mut fit, stage, parameters, index as u32)?;
        if index + 1 == stages.len() {
            let pass = fit.infer(worker, parameters, index as u32)?;
            let embedding = pass.last_hidden().cloned().or(embedding);
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

/// What [`run`] sends from a worker of these shapes. Exact for messages whose size follows from shapes and the round, as long as
/// neither patience nor the user ends a stage early; else a bound that is kept.
pub fn predict(forecast: &Forecast<'_>, shapes: &Shapes) -> Result<Ledger> {
    let Forecast { config, stages, position, .. } = *forecast;
    let mut ledger = Ledger::new();
    let selection = config.selection();
    let messages = config.messages.at_most();
    let mut codecs = Codecs::new(&messages, config.train.seed, stages);
    if config.messages.is_adaptive() {
        widths::predict_scores(&shapes.links, Rank(shapes.rank), &mut ledger);
        if config.messages.costs == "measured" {
            widths::predict_measure(Rank(shapes.rank), shapes.workers(), &mut ledger);
        }
    }
    let mut rounds_before = 0;
    for (number, stage) in stages.iter().enumerate() {
        let route = Route {
            rank: Rank(shapes.rank),
            links: &shapes.links,
            selection: selection.as_deref(),
            seed: config.train.seed,
            late: stage.late.is_some(),
        };
        let mut at =
            Outlook { forecast, shapes, route, codecs: &mut codecs, ledger: &mut ledger, stage, rounds_before };
        let finished = position.finished.get(number).copied();
        let current = number == position.finished.len();
        let done_before = finished.unwrap_or(if current { position.done } else { 0 });
        let last = if finished.is_some() || (current && position.stopped) { done_before } else { stage.rounds };
        at.inputs(last)?;
        for done in done_before + 1..=last {
            at.round(done)?;
        }
        rounds_before += last;
    }
    Ok(ledger)
}

/// Predicting one stage.
struct Outlook<'a> {
    forecast: &'a Forecast<'a>,
    shapes: &'a Shapes,
    route: Route<'a>,
    codecs: &'a mut Codecs,
    ledger: &'a mut Ledger,
    stage: &'a Stage,
    rounds_before: u32,
}

impl Outlook<'_> {
    fn reading(&self, done: u32) -> Reading {
        Reading { done, rounds: self.stage.rounds, ..Reading::default() }
    }

    /// What crosses once, or bit by bit until round `last`. What a resumed run has revealed crosses again.
    fn inputs(&mut self, last: u32) -> Result<()> {
        let config = self.forecast.config;
        let first = self.stage.network.units()[0].layer.as_ref();
        if !freezes(self.stage) {
            return Ok(());
        }
        let (tag, scope) = (input_tag(self.stage, self.rounds_before), frozen_scope(config, self.stage));
        let at = (tag, first.inputs());
        self.codecs.turn(self.reading(0));
        if evaluates_whole(config, self.stage) {
            let at = (evaluation_tag(tag), first.inputs());
            Halo::predict(&self.route, self.codecs, Scope::Whole, at, self.ledger)?;
        }
        if scope != Scope::Nothing && reveal::reveals(&config_choice(config, self.forecast.stages, tag)) {
            let rounds_before = self.rounds_before;
            let rounds = (1..=last).map(|done| (rounds_before + done, self.reading(done - 1)));
            let rounds: Vec<_> = rounds.collect();
            let count = |rows: usize| self.route.count(scope, rows);
            let choice = config_choice(config, self.forecast.stages, tag);
            return reveal::predict((self.route.links, &count), &choice, at, rounds.into_iter(), self.ledger);
        }
        if scope != Scope::Nothing && config_choice(config, self.forecast.stages, tag).is_adaptive() {
            widths::predict_assign(self.route.links, self.route.rank, &[at], tag.round, self.ledger);
        }
        Halo::predict(&self.route, self.codecs, scope, at, self.ledger)
    }

    fn round(&mut self, done: u32) -> Result<()> {
        let Forecast { config, evaluator, stages, .. } = *self.forecast;
        let (rank, size) = (Rank(self.shapes.rank), self.shapes.workers());
        let (stage, round) = (self.stage, self.rounds_before + done);
        self.codecs.turn(self.reading(done - 1));
        let evaluated = is_evaluated(&config.train, done, stage.rounds);
        let live = live_exchanges(&stage.network, stage.first_layer, !freezes(stage));
        let due = |(tag, _): &&(Tag, usize)| {
            let choice = config_choice(config, stages, *tag);
            choice.is_adaptive() && widths::is_due(done - 1, choice.period(stage.rounds))
        };
        let due: Vec<(Tag, usize)> = live.iter().filter(due).copied().collect();
        widths::predict_assign(self.route.links, rank, &due, round, self.ledger);
        for (tag, width) in live {
            let tag = Tag { round, ..tag };
            Halo::predict(&self.route, self.codecs, Scope::Selected, (tag, width), self.ledger)?;
            if evaluated && tag.direction == Direction::Forward {
                let tag = Tag { kind: Kind::Evaluation, ..tag };
                Halo::predict(&self.route, self.codecs, config.evaluation_scope(), (tag, width), self.ledger)?;
            }
        }
        if is_synced(&config.train, done, stage.rounds) {
            let tag = reduction_tag(&config.train, stage.first_layer, round);
            let (len, extras) = (stage.network.len(), extras_len(config));
            collectives::predict_all_reduce(self.ledger, tag, size, rank, len, extras, &reducer(config)?);
        }
        if evaluated {
            evaluator.predict(self.shapes, round, self.ledger);
        }
        let due = is_due(&config.train, config.out.checkpoint_every, done, stage.rounds);
        if done == stage.rounds || due {
            collectives::predict_all_reduce_f64(self.ledger, control(round, 4), size, rank, 3 * Kind::ALL.len());
        }
        Ok(())
    }
}

/// What the configuration itself says of these messages, rather than the most that they may send.
fn config_choice(config: &crate::Config, stages: &[Stage], tag: Tag) -> crate::config::CodecConfig {
    Codecs::new(&config.messages, config.train.seed, stages).choice(tag)
}

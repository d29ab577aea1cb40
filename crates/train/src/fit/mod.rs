//! Full-batch training of one network: rounds, evaluation, best-validation selection, patience.

pub mod cadence;
pub mod progress;

use std::time::{Duration, Instant};

use laconic_nn::Network;
use laconic_nn::loss::loss;
use laconic_nn::optimiser::{self, RateSchedule};
use laconic_wire::collectives::{self, Reducer};
use laconic_wire::{Tag, Transport, WireError};
use serde::{Deserialize, Serialize};

use crate::config::TrainConfig;
use crate::config::ramp::Reading;
use crate::error::{Result, TrainError};
use crate::exchange::late;
use crate::exchange::timeline::Phase;
use crate::exchange::widths;
use crate::fit::cadence::{extras_len, is_evaluated, is_synced, live_exchanges, reducer, reduction_tag};
use crate::fit::progress::{Best, Clocks, Progress};
use crate::pass::inputs::{Inputs, Neighbours};
use crate::pass::network::{Pass, Purposed};
use crate::pass::reveal::Reveal;
use crate::record::state::Saved;
use crate::worker::Worker;
use crate::worker::evaluate::Scores;
use crate::worker::local::{SPLITS, Subset};

/// What one stage trains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lesson {
    /// The stage's number.
    pub stage: usize,
    /// The number of the network's first layer, counted over stages.
    pub first_layer: u16,
    /// Rounds of all stages before this one.
    pub rounds_before: u32,
    /// Rounds at most.
    pub rounds: u32,
    /// Base learning rate.
    pub lr: f32,
}

/// What is known after a round; the same on every worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundReport {
    /// The round, from 1, counted over stages.
    pub round: u32,
    /// The stage, from 0.
    pub stage: usize,
    /// The training loss before the round's step.
    pub loss: f64,
    /// The learning rate.
    pub lr: f32,
    /// Figures after the step, where the round was evaluated.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
    /// Bytes that all workers have sent so far, framing included, where the round was evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Seconds that the round took on this worker; on the link model's clock, where there is one.
    pub seconds: f64,
    /// Seconds on the link model's clock since the start, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<f64>,
}

/// Trains one network on frozen inputs.
pub struct Fit<'a> {
    network: &'a Network,
    lesson: Lesson,
    inputs: Inputs,
    reveal: Option<Reveal>,
    /// The inputs with all neighbours, for evaluations of a model that is trained without them.
    eval_inputs: Option<Inputs>,
    /// Training rows with their inputs, where no layer reads neighbours any more.
    subset: Option<(Subset, Inputs)>,
    train_pass: Pass,
    /// A pass over all rows; `None` where training runs over all rows itself and lends its memory.
    eval_pass: Option<Pass>,
    gradient: Vec<f32>,
    reducer: Reducer,
    /// Exchanges whose bits the assigner chooses, with their widths.
    adaptive: Vec<(Tag, usize)>,
    /// Parameters as they were when workers last agreed, where local steps lie in between.
    agreed: Vec<f32>,
    /// What has happened since then.
    since: Since,
    started: Duration,
    /// Seconds of the stage before the run was resumed.
    elapsed_before: f64,
}

/// What a stage trains on.
pub struct Material {
    /// Inputs.
    pub inputs: Inputs,
    /// What is still to be revealed of them.
    pub reveal: Option<Reveal>,
    /// Inputs of evaluations, if they are others.
    pub eval_inputs: Option<Inputs>,
}

/// What a round ended with.
pub struct RoundEnd {
    /// What is known after it.
    pub report: RoundReport,
    /// Whether any worker was asked to stop.
    pub interrupted: bool,
}

impl<'a> Fit<'a> {
    /// Prepares the memory of a stage.
    pub fn new(worker: &Worker, network: &'a Network, lesson: Lesson, material: Material) -> Result<Fit<'a>> {
        let Material { inputs, reveal, eval_inputs } = material;
        let reads_graph = network.units()[1..].iter().any(|unit| unit.layer.message_width() > 0);
        let subset = (!reads_graph)
            .then(|| {
                let subset = Subset::new(&worker.local, &worker.local.masks[0]);
                inputs.gather(&subset.rows).map(|inputs| (subset, inputs))
            })
            .flatten();
        let live = live_exchanges(network, lesson.first_layer, matches!(inputs.neighbours, Neighbours::Exchanged));
        let adaptive = live.into_iter().filter(|(tag, _)| worker.halo.codecs.choice(*tag).is_adaptive()).collect();
        Ok(Fit {
            network,
            lesson,
            inputs,
            reveal,
            eval_inputs,
            eval_pass: subset.is_some().then(Pass::default),
            subset,
            train_pass: Pass::default(),
            gradient: Vec::with_capacity(network.len()),
            reducer: reducer(&worker.config)?,
            adaptive,
            agreed: Vec::new(),
            since: Since::default(),
            started: worker.now(),
            elapsed_before: 0.0,
        })
    }

    /// Rounds at most.
    pub fn rounds(&self) -> u32 {
        self.lesson.rounds
    }

    fn what(&self, worker: &Worker, round: u32, training: bool) -> Purposed {
        Purposed { round, first_layer: self.lesson.first_layer, training, seed: worker.config.train.seed }
    }

    /// Puts what this worker alone remembers of the stage into `saved`.
    pub fn save(&self, worker: &Worker, progress: &Progress, saved: &mut Saved) {
        worker.halo.save(saved);
        for (name, residual) in ["reducer.own", "reducer.sum"].into_iter().zip(self.reducer.residuals()) {
            if !residual.is_empty() {
                saved.put(name, residual);
            }
        }
        if worker.config.train.sync_every > 1 {
            for (index, (_, slot)) in progress.optimiser.state().1.into_iter().enumerate() {
                saved.put(&crate::record::state::name("optimiser", &[index as u32]), slot);
            }
        }
    }

    /// Takes it back.
    pub fn restore(&mut self, worker: &mut Worker, progress: &mut Progress, saved: &Saved) -> Result<()> {
        worker.halo.restore(saved)?;
        let residual = |name: &str| saved.get(name).map(<[f32]>::to_vec).unwrap_or_default();
        self.reducer.restore([residual("reducer.own"), residual("reducer.sum")]);
        self.elapsed_before = progress.clocks.elapsed;
        let slots: Vec<Vec<f32>> = saved.under("optimiser").map(|(_, slot)| slot).collect();
        let (steps, mine) = progress.optimiser.state();
        if slots.len() == mine.len() && slots.iter().all(|slot| slot.len() == progress.parameters.len()) {
            progress.optimiser.restore(steps, slots);
        }
        Ok(())
    }

    /// Reveals again what this many rounds had revealed before the run broke off.
    pub fn catch_up(&mut self, worker: &mut Worker, rounds: u32) -> Result<()> {
        for done in 0..rounds {
            let reading = Clocks::default().reading(done, self.lesson.rounds);
            self.reveal(worker, self.lesson.rounds_before + done + 1, &reading)?;
        }
        Ok(())
    }

    fn reveal(&mut self, worker: &mut Worker, round: u32, reading: &Reading) -> Result<()> {
        let Some(reveal) = &mut self.reveal else { return Ok(()) };
        let layer = self.network.units()[0].layer.as_ref();
        let (mut links, ground) = worker.split();
        if reveal.advance(&mut links, ground, layer, (round, reading), &mut self.inputs)?
            && let Some((subset, inputs)) = &mut self.subset
            && let Some(gathered) = self.inputs.gather(&subset.rows)
        {
            *inputs = gathered;
        }
        Ok(())
    }

    /// What happens before a round's pass: controllers turn, bits are assigned, frozen inputs are revealed further.
    fn prepare(&mut self, worker: &mut Worker, progress: &Progress, round: u32) -> Result<()> {
        let rounds = self.lesson.rounds;
        let reading = progress.clocks.reading(progress.done, rounds);
        worker.halo.codecs.turn(reading);
        let due =
            |(tag, _): &&(Tag, usize)| widths::is_due(progress.done, worker.halo.codecs.choice(*tag).period(rounds));
        let due: Vec<(Tag, usize)> = self.adaptive.iter().filter(due).copied().collect();
        if let Some((tag, _)) = due.first() {
            let lambda = worker.halo.codecs.choice(*tag).lambda;
            // What is under way was coded with the bits of before.
            late::settle(&mut worker.halo, &mut worker.channel)?;
            widths::assign_widths(&mut worker.halo, &mut worker.channel, &due, round, lambda)?;
        }
        self.reveal(worker, round, &reading)
    }

    /// One round: forward, backward, all-reduce, step, and an evaluation where one is due.
    pub fn round(&mut self, worker: &mut Worker, progress: &mut Progress) -> Result<RoundEnd> {
        let start = worker.now();
        let round = self.lesson.rounds_before + progress.done + 1;
        worker.rehearse_fault(round)?;
        if progress.done + 1 == self.lesson.rounds.div_ceil(2) {
            worker.halo.timeline.start(round);
        }
        self.prepare(worker, progress, round)?;
        let config = worker.config.clone();
        let synced = is_synced(&config.train, progress.done + 1, self.lesson.rounds);
        let averaging = config.train.sync_every > 1;
        let value = self.gradient(worker, &progress.parameters, round)?;
        self.since.add(value, worker.channel.sent().total_of_round(round).framed);
        let mut extras = self.since.extras(worker, worker.now().saturating_sub(self.started));
        extras.seconds += self.elapsed_before;
        if extras_len(&config) > 2 && synced {
            let (size, rank, len) = (worker.channel.size(), worker.rank(), self.network.len());
            let own = collectives::all_reduce_bytes(size, rank, len, extras_len(&config), &self.reducer);
            extras.bytes += own.framed as f64;
        }
        if !averaging {
            self.reduce(worker, round, &mut extras)?;
            progress.clocks.note_gradient(&self.gradient);
        }
        if config.train.clip > 0.0 {
            optimiser::clip(&mut self.gradient, config.train.clip);
        }
        let lr = self.lesson.lr
            * rate_schedule(&config.train).factor(progress.done, self.lesson.rounds, config.train.warmup);
        if averaging && self.agreed.is_empty() {
            self.agreed.clone_from(&progress.parameters);
        }
        progress.optimiser.step(&mut progress.parameters, &mut self.gradient, lr);
        progress.done += 1;
        if averaging && synced {
            self.average(worker, progress, round, &mut extras)?;
        }
        if synced {
            self.since = Since::default();
            progress.clocks.bytes += extras.bytes;
            progress.clocks.elapsed = extras.seconds / worker.channel.size() as f64;
        }
        worker.halo.timeline.end();
        progress.unjudged = is_evaluated(&config.train, progress.done, self.lesson.rounds);
        let took = worker.now().saturating_sub(start);
        worker.times.rounds.push(took);
        let mut report = RoundReport {
            round,
            stage: self.lesson.stage,
            loss: extras.loss,
            lr,
            scores: None,
            bytes: None,
            seconds: took.as_secs_f64(),
            clock: worker.simulated(),
        };
        if progress.unjudged {
            let (scores, bytes) = self.judge(worker, progress, round)?;
            report.scores = Some(scores);
            report.bytes = Some(bytes);
        }
        Ok(RoundEnd { report, interrupted: synced && extras.stop > 0.0 })
    }

    /// Adds up over workers what is in `gradient`, and the values that ride along.
    fn reduce(&mut self, worker: &mut Worker, round: u32, extras: &mut Extras) -> Result<()> {
        let tag = reduction_tag(&worker.config.train, self.lesson.first_layer, round);
        let mut values = extras.values(extras_len(&worker.config));
        let from = worker.halo.timeline.now();
        collectives::all_reduce(&mut worker.channel, tag, &mut self.gradient, &mut values, &mut self.reducer).map_err(
            |error| match error {
                WireError::NotFinite { .. } => TrainError::Diverged { round, what: format!("{tag}: {error}") },
                error => error.into(),
            },
        )?;
        worker.halo.timeline.note(Phase::Reduce, tag, from);
        extras.take(&values);
        if !extras.loss.is_finite() {
            return Err(TrainError::Diverged { round, what: format!("the loss is {}", extras.loss) });
        }
        Ok(())
    }

    /// Replaces every worker's parameters by the mean over workers, weighted by their training rows. What travels is how far each
    /// has moved since they last agreed.
    fn average(&mut self, worker: &mut Worker, progress: &mut Progress, round: u32, extras: &mut Extras) -> Result<()> {
        let weight = worker.weight();
        self.gradient.clear();
        let moved = progress.parameters.iter().zip(&self.agreed).map(|(now, then)| (now - then) * weight);
        self.gradient.extend(moved);
        extras.loss *= f64::from(weight);
        self.reduce(worker, round, extras)?;
        progress.clocks.note_gradient(&self.gradient);
        self.agreed.iter_mut().zip(&self.gradient).for_each(|(agreed, moved)| *agreed += moved);
        progress.parameters.copy_from_slice(&self.agreed);
        Ok(())
    }

    /// Sets `gradient` to that over own training rows and returns their loss: shares of the mean over all workers' rows, or, where
    /// models are averaged, means over own rows.
    fn gradient(&mut self, worker: &mut Worker, parameters: &[f32], round: u32) -> Result<f64> {
        self.gradient.clear();
        self.gradient.resize(self.network.len(), 0.0);
        let rows = match worker.config.train.sync_every {
            1 => worker.global_rows[0],
            _ => (worker.shapes.split_rows[0] as f64).max(1.0),
        };
        let (what, scale) = (self.what(worker, round, true), (1.0 / rows) as f32);
        let (pass, g) = (&mut self.train_pass, &mut self.gradient[..]);
        match &self.subset {
            Some((subset, inputs)) => {
                let (mut links, ground) = worker.split_subset(subset);
                pass.forward(&mut links, ground, self.network, parameters, inputs, what)?;
                let (gradient, logits) = pass.logits_gradient();
                let value = loss(links.compute, Some(gradient), logits, subset.targets(), &subset.all, scale);
                pass.backward(&mut links, ground, self.network, (parameters, g), inputs, what)?;
                Ok(value)
            }
            None => {
                let (mut links, ground) = worker.split();
                pass.forward(&mut links, ground, self.network, parameters, &self.inputs, what)?;
                let (gradient, logits) = pass.logits_gradient();
                let (targets, mask) = worker.training_targets();
                let value = loss(&worker.compute, Some(gradient), logits, targets, mask, scale);
                let (mut links, ground) = worker.split();
                pass.backward(&mut links, ground, self.network, (parameters, g), &self.inputs, what)?;
                Ok(value)
            }
        }
    }

    /// Loss and gradient of one training pass without a step, for comparisons with other programs; the gradient is that of the
    /// mean loss over all workers, the logits are those of own rows.
    pub fn probe(&mut self, worker: &mut Worker, parameters: &[f32], round: u32) -> Result<(f64, Vec<f32>)> {
        let mut extras = Extras { loss: self.gradient(worker, parameters, round)?, ..Extras::default() };
        self.reduce(worker, round, &mut extras)?;
        Ok((extras.loss, self.gradient.clone()))
    }

    /// Logits of all own rows without dropout.
    pub fn infer(&mut self, worker: &mut Worker, parameters: &[f32], round: u32) -> Result<&Pass> {
        let what = self.what(worker, round, false);
        let pass = self.eval_pass.as_mut().unwrap_or(&mut self.train_pass);
        let (mut links, ground) = worker.split();
        let inputs = self.eval_inputs.as_ref().unwrap_or(&self.inputs);
        pass.forward(&mut links, ground, self.network, parameters, inputs, what)?;
        Ok(pass)
    }

    /// Evaluates the parameters after a round and keeps them if they are the best.
    fn judge(&mut self, worker: &mut Worker, progress: &mut Progress, round: u32) -> Result<(Scores, u64)> {
        let (scores, bytes) = self.evaluate(worker, &progress.parameters, round)?;
        refuse_infinite(&scores, round)?;
        self.select(worker, progress, round, &scores);
        progress.unjudged = false;
        Ok((scores, bytes))
    }

    /// Makes up for the evaluation that a broken-off run still owes.
    pub fn settle(&mut self, worker: &mut Worker, progress: &mut Progress) -> Result<()> {
        if progress.unjudged {
            let round = self.lesson.rounds_before + progress.done;
            self.judge(worker, progress, round)?;
        }
        Ok(())
    }

    fn evaluate(&mut self, worker: &mut Worker, parameters: &[f32], round: u32) -> Result<(Scores, u64)> {
        let (start, aside) = (Instant::now(), worker.aside());
        self.infer(worker, parameters, round)?;
        let pass = self.eval_pass.as_ref().unwrap_or(&self.train_pass);
        let result = worker.evaluate(pass.logits(), round);
        worker.times.evaluation += start.elapsed().saturating_sub(worker.aside() - aside);
        result
    }

    /// Keeps the parameters if they are the best so far by the validation metric, ties to the earlier. Without validation nodes
    /// the latest are the best.
    fn select(&self, worker: &Worker, progress: &mut Progress, round: u32, scores: &Scores) {
        let metric = worker.evaluator.first().name();
        let better = match (&progress.best, scores.val.get(metric)) {
            (None, _) | (_, None) => true,
            (Some(best), Some(figure)) => best.scores.val.get(metric).is_none_or(|old| figure > old),
        };
        if better {
            let parameters = match progress.best.take() {
                Some(mut best) => {
                    best.parameters.copy_from_slice(&progress.parameters);
                    best.parameters
                }
                None => progress.parameters.clone(),
            };
            progress.best = Some(Best { round, scores: scores.clone(), parameters });
            progress.since_best = 0;
        } else {
            progress.since_best += 1;
            let patience = worker.config.train.patience;
            progress.stopped = patience > 0 && progress.since_best >= patience;
        }
    }
}

/// What rides along with a reduction; sums over workers afterwards.
#[derive(Debug, Clone, Copy, Default)]
struct Extras {
    loss: f64,
    stop: f64,
    bytes: f64,
    seconds: f64,
}

/// What has happened on this worker since workers last agreed.
#[derive(Debug, Clone, Copy, Default)]
struct Since {
    loss: f64,
    rounds: u32,
    bytes: u64,
}

impl Since {
    fn add(&mut self, loss: f64, bytes: u64) {
        (self.loss, self.rounds, self.bytes) = (self.loss + loss, self.rounds + 1, self.bytes + bytes);
    }

    fn extras(&self, worker: &Worker, elapsed: Duration) -> Extras {
        Extras {
            loss: self.loss / f64::from(self.rounds),
            stop: f64::from(u8::from(worker.is_interrupted())),
            bytes: self.bytes as f64,
            seconds: elapsed.as_secs_f64(),
        }
    }
}

impl Extras {
    fn values(&self, count: usize) -> Vec<f64> {
        [self.loss, self.stop, self.bytes, self.seconds][..count].to_vec()
    }

    fn take(&mut self, values: &[f64]) {
        (self.loss, self.stop) = (values[0], values[1]);
        (self.bytes, self.seconds) = (values.get(2).copied().unwrap_or(0.0), values.get(3).copied().unwrap_or(0.0));
    }
}

fn rate_schedule(config: &TrainConfig) -> RateSchedule {
    match config.lr_schedule.as_str() {
        "linear" => RateSchedule::Linear,
        "cosine" => RateSchedule::Cosine,
        "step" => RateSchedule::Step { every: config.lr_step, factor: config.lr_factor },
        _ => RateSchedule::Constant,
    }
}

/// Figures that are no numbers can neither be compared nor written down.
fn refuse_infinite(scores: &Scores, round: u32) -> Result<()> {
    for (split, figures) in SPLITS.iter().zip([&scores.train, &scores.val, &scores.test]) {
        if let Some((name, figure)) = figures.iter().find(|(_, figure)| !figure.is_finite()) {
            return Err(TrainError::Diverged { round, what: format!("{name} of the {split} nodes is {figure}") });
        }
    }
    Ok(())
}

/// Which rows of a finished stage go on to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandOn {
    /// The rows after the first layer's norm and ReLU; the classifier on top is thrown away.
    Hidden,
    /// The class scores.
    Scores,
    /// Nothing follows.
    Nothing,
}

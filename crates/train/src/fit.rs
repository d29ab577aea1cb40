//! Full-batch training of one network: rounds, evaluation, best-validation selection, patience.

use std::time::{Duration, Instant};

use laconic_key::{Key, Purpose};
use laconic_nn::Network;
use laconic_nn::loss::loss;
use laconic_nn::optimiser::{self, Optimiser, OptimiserSpec, RateSchedule};
use laconic_wire::{Direction, Kind, Tag, collectives};
use serde::{Deserialize, Serialize};

use crate::config::TrainConfig;
use crate::error::{Result, TrainError};
use crate::evaluate::Scores;
use crate::inputs::Inputs;
use crate::local::{SPLITS, Subset};
use crate::pass::{Pass, Purposed};
use crate::worker::Worker;

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

/// The best parameters so far, by the validation metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The round after which they stood.
    pub round: u32,
    /// Their figures.
    pub scores: Scores,
    /// The parameters.
    pub parameters: Vec<f32>,
}

/// The state of training one network: all that a checkpoint must keep.
pub struct Progress {
    /// Rounds of this stage that are done.
    pub done: u32,
    /// Parameters.
    pub parameters: Vec<f32>,
    /// Optimiser.
    pub optimiser: Box<dyn Optimiser>,
    /// The best so far; `None` before the first evaluation.
    pub best: Option<Best>,
    /// Evaluations since the best.
    pub since_best: u32,
    /// Whether patience has run out.
    pub stopped: bool,
    /// Whether the last round still has to be evaluated: the run broke off in between.
    pub unjudged: bool,
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
    /// Seconds that the round took on this worker.
    pub seconds: f64,
}

impl Progress {
    /// A fresh start. Every worker draws the same initial values from the key.
    pub fn new(config: &TrainConfig, network: &Network, stage: usize) -> Result<Progress> {
        let key = Key::new(config.seed, Purpose::Initialise).with(stage as u64);
        let spec = OptimiserSpec { weight_decay: config.weight_decay, momentum: config.momentum };
        let optimiser = optimiser::build(&config.optimiser, network.len(), spec)
            .ok_or_else(|| TrainError::config(format!("train.optimiser = {:?} is unknown", config.optimiser)))?;
        let parameters = network.initial(key);
        Ok(Progress { done: 0, parameters, optimiser, best: None, since_best: 0, stopped: false, unjudged: false })
    }

    /// The parameters that the stage hands on: the best by validation, or the last where nothing was evaluated.
    pub fn chosen(&self) -> &[f32] {
        self.best.as_ref().map_or(&self.parameters, |best| &best.parameters)
    }
}

/// Whether round `done` of `rounds` (from 1) is evaluated.
pub fn is_evaluated(config: &TrainConfig, done: u32, rounds: u32) -> bool {
    done == rounds || (config.eval_every > 0 && done.is_multiple_of(config.eval_every))
}

/// How many values each round's all-reduce adds up: gradients, the loss, and how many workers were asked to stop.
pub fn reduced_len(network: &Network) -> usize {
    network.len() + 2
}

/// The tag of a round's gradient all-reduce.
pub fn gradient_tag(layer: u16, round: u32) -> Tag {
    Tag { kind: Kind::ParameterGradients, direction: Direction::Forward, layer, round, step: 0 }
}

/// Trains one network on frozen inputs.
pub struct Fit<'a> {
    network: &'a Network,
    lesson: Lesson,
    inputs: &'a Inputs,
    /// Training rows with their inputs, where no layer reads neighbours any more.
    subset: Option<(Subset, Inputs)>,
    train_pass: Pass,
    /// A pass over all rows; `None` where training runs over all rows itself and lends its memory.
    eval_pass: Option<Pass>,
    reduced: Vec<f32>,
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
    pub fn new(worker: &Worker, network: &'a Network, lesson: Lesson, inputs: &'a Inputs) -> Fit<'a> {
        let reads_graph = network.units()[1..].iter().any(|unit| unit.layer.message_width() > 0);
        let subset = (!reads_graph)
            .then(|| {
                let subset = Subset::new(&worker.local, &worker.local.masks[0]);
                inputs.gather(&subset.rows).map(|inputs| (subset, inputs))
            })
            .flatten();
        let eval_pass = subset.is_some().then(Pass::default);
        let reduced = Vec::with_capacity(reduced_len(network));
        Fit { network, lesson, inputs, subset, train_pass: Pass::default(), eval_pass, reduced }
    }

    /// Rounds at most.
    pub fn rounds(&self) -> u32 {
        self.lesson.rounds
    }

    fn what(&self, worker: &Worker, round: u32, training: bool) -> Purposed {
        Purposed { round, first_layer: self.lesson.first_layer, training, seed: worker.config.train.seed }
    }

    /// One round: forward, backward, all-reduce, step, and an evaluation where one is due.
    pub fn round(&mut self, worker: &mut Worker, progress: &mut Progress) -> Result<RoundEnd> {
        let start = Instant::now();
        let round = self.lesson.rounds_before + progress.done + 1;
        worker.rehearse_fault(round)?;
        self.gradient(worker, &progress.parameters, round)?;
        let (gradients, &mut [loss_sum, stop]) = self.reduced.split_last_chunk_mut::<2>().expect("two sums at the end");
        if !loss_sum.is_finite() {
            return Err(TrainError::Diverged { round, what: format!("the loss is {loss_sum}") });
        }
        let config = worker.config.clone();
        if config.train.clip > 0.0 {
            optimiser::clip(gradients, config.train.clip);
        }
        let schedule = match config.train.lr_schedule.as_str() {
            "linear" => RateSchedule::Linear,
            "cosine" => RateSchedule::Cosine,
            "step" => RateSchedule::Step { every: config.train.lr_step, factor: config.train.lr_factor },
            _ => RateSchedule::Constant,
        };
        let lr = self.lesson.lr * schedule.factor(progress.done, self.lesson.rounds, config.train.warmup);
        progress.optimiser.step(&mut progress.parameters, gradients, lr);
        progress.done += 1;
        progress.unjudged = is_evaluated(&config.train, progress.done, self.lesson.rounds);
        let took = start.elapsed();
        worker.times.rounds.push(took);
        let mut report = RoundReport {
            round,
            stage: self.lesson.stage,
            loss: loss_sum.into(),
            lr,
            scores: None,
            bytes: None,
            seconds: took.as_secs_f64(),
        };
        if progress.unjudged {
            let (scores, bytes) = self.judge(worker, progress, round)?;
            report.scores = Some(scores);
            report.bytes = Some(bytes);
        }
        Ok(RoundEnd { report, interrupted: stop > 0.0 })
    }

    /// Sets `reduced` to the gradient over all workers' training rows, the loss and the number of stop requests.
    fn gradient(&mut self, worker: &mut Worker, parameters: &[f32], round: u32) -> Result<()> {
        self.reduced.clear();
        self.reduced.resize(reduced_len(self.network), 0.0);
        let (what, scale) = (self.what(worker, round, true), (1.0 / worker.global_rows[0]) as f32);
        let (pass, g) = (&mut self.train_pass, &mut self.reduced[..self.network.len()]);
        let value = match &self.subset {
            Some((subset, inputs)) => {
                let (mut links, ground) = worker.split_subset(subset);
                pass.forward(&mut links, ground, self.network, parameters, inputs, what)?;
                let (gradient, logits) = pass.logits_gradient();
                let value = loss(links.compute, Some(gradient), logits, subset.targets(), &subset.all, scale);
                pass.backward(&mut links, ground, self.network, (parameters, g), inputs, what)?;
                value
            }
            None => {
                let (mut links, ground) = worker.split();
                pass.forward(&mut links, ground, self.network, parameters, self.inputs, what)?;
                let (gradient, logits) = pass.logits_gradient();
                let (targets, mask) = worker.training_targets();
                let value = loss(&worker.compute, Some(gradient), logits, targets, mask, scale);
                let (mut links, ground) = worker.split();
                pass.backward(&mut links, ground, self.network, (parameters, g), self.inputs, what)?;
                value
            }
        };
        let len = self.network.len();
        self.reduced[len] = value as f32;
        self.reduced[len + 1] = f32::from(u8::from(worker.is_interrupted()));
        let tag = gradient_tag(self.lesson.first_layer, round);
        collectives::all_reduce_sum(&mut worker.channel, tag, &mut self.reduced)?;
        Ok(())
    }

    /// Gradient and logits of one training pass without a step, for comparisons with other programs; the gradient is that of the
    /// mean loss over all workers, the logits are those of own rows.
    pub fn probe(&mut self, worker: &mut Worker, parameters: &[f32], round: u32) -> Result<(f64, Vec<f32>)> {
        self.gradient(worker, parameters, round)?;
        let len = self.network.len();
        Ok((self.reduced[len].into(), self.reduced[..len].to_vec()))
    }

    /// Logits of all own rows without dropout.
    pub fn infer(&mut self, worker: &mut Worker, parameters: &[f32], round: u32) -> Result<&Pass> {
        let what = self.what(worker, round, false);
        let pass = self.eval_pass.as_mut().unwrap_or(&mut self.train_pass);
        let (mut links, ground) = worker.split();
        pass.forward(&mut links, ground, self.network, parameters, self.inputs, what)?;
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

/// The median of durations in seconds; 0 of none.
pub fn median_seconds(times: &[Duration]) -> f64 {
    let mut sorted: Vec<Duration> = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).map_or(0.0, Duration::as_secs_f64)
}

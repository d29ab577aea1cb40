//! Training of one stage: rounds, evaluation, best-validation selection, patience. Which rows a round runs over and
//! what is learned from them stand in `batch/` and `task/`.

mod solved;

use std::time::{Duration, Instant};

use laconic_nn::Network;
use laconic_nn::kernels::batch_norm::MOMENTUM;
use laconic_nn::kernels::elementwise::blend;
use laconic_nn::optimiser;
use laconic_wire::Tag;

use super::agreement::{self, Agreement, Extras, Reduction, Turn};
use super::batch::{self, Batches, Round, Training};
use super::choice::{refuse_infinite, select};
use super::inputs::StageInputs;
use super::observe::RoundReport;
use super::progress::{Clocks, Progress};
use super::since::Since;
use super::task::{self, Task};
use crate::config::TrainConfig;
use crate::config::ramp::Reading;
use crate::error::{Result, TrainError};
use crate::exchange::widths;
use crate::pass::context::PassContext;
use crate::pass::inputs::Inputs;
use crate::pass::network::Pass;
use crate::pass::required_rows::RequiredRows;
use crate::pass::reveal::Reveal;
use crate::pass::walk::Walk;
use crate::plan::Reader;
use crate::saved::{Remembers, Saved};
use crate::schedule::Stage;
use crate::worker::Worker;
use crate::worker::evaluate::Evaluated;
use crate::worker::parts::Known;

/// Which stage is trained, and when.
#[derive(Clone, Copy)]
pub struct StageRun<'a> {
    /// What is trained.
    pub stage: &'a Stage,
    /// The stage's number, from 0.
    pub index: usize,
    /// Rounds of all stages before this one.
    pub rounds_before: u32,
}

/// Trains one stage on frozen inputs.
pub struct Fit<'a> {
    at: StageRun<'a>,
    inputs: Inputs,
    reveal: Option<Reveal>,
    /// The inputs with all neighbours, for evaluations of a model that is trained without them.
    eval_inputs: Option<Inputs>,
    /// The rows that rounds run over.
    batches: Box<dyn Batches>,
    task: Box<dyn Task>,
    /// Which rows evaluations output, where not all.
    asked: Option<RequiredRows>,
    /// The memory of passes over all own rows: evaluations, and rounds of full batches.
    pass: Pass,
    gradient: Vec<f32>,
    /// The round's own statistics, where the network has running ones.
    seen: Vec<f32>,
    reduction: Reduction,
    agreement: Box<dyn Agreement>,
    /// Exchanges whose bits the assigner chooses, with their widths.
    adaptive: Vec<(Tag, usize)>,
    /// Which share of the stage is over for the learning rate, where rounds do not say so.
    share: Option<f64>,
    /// What has happened since workers last agreed.
    since: Since,
    started: Duration,
    /// Seconds of the stage before the run was resumed.
    elapsed_before: f64,
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
    ///
    /// # Errors
    /// If the codec of parameters cannot be made, or the system starts no thread for making batches.
    pub fn new(worker: &Worker, at: StageRun<'a>, material: StageInputs) -> Result<Fit<'a>> {
        let batches = match at.stage.solves {
            Some(_) => batch::nothing_kept(),
            None => batch::of(worker, at.stage, &material.inputs)?,
        };
        let graph = worker.whole_graph();
        let rows = graph.nodes.ids.len();
        let rows = worker.plan.rows_put_out(at.stage, Reader::Figures, rows, &worker.within.evaluation);
        let asked = RequiredRows::new(graph, &rows, false);
        Ok(Fit { batches, asked, ..Fit::without_rounds(worker, at, material)? })
    }

    /// A stage that is only run, of which no training rows are kept apart.
    ///
    /// # Errors
    /// If the codec of parameters cannot be made.
    pub fn without_rounds(worker: &Worker, at: StageRun<'a>, material: StageInputs) -> Result<Fit<'a>> {
        let StageInputs { inputs, reveal, eval_inputs } = material;
        let network = &at.stage.network;
        let is_adaptive = |(tag, _): &(Tag, usize)| worker.plan.messages.coding(*tag).is_adaptive();
        Ok(Fit {
            at,
            batches: batch::nothing_kept(),
            task: task::of(&worker.plan, at.stage)?,
            inputs,
            reveal,
            eval_inputs,
            asked: None,
            pass: Pass::default(),
            gradient: Vec::with_capacity(network.len()),
            seen: Vec::new(),
            reduction: Reduction::new(&worker.plan, at.stage)?,
            agreement: agreement::of(&worker.plan, at.stage)?,
            adaptive: at.stage.live_exchanges().into_iter().filter(is_adaptive).collect(),
            share: None,
            since: Since::default(),
            started: worker.now(),
            elapsed_before: 0.0,
        })
    }

    /// Counts rounds of the run on from those of stages before.
    pub fn count_from(&mut self, rounds_before: u32) {
        self.at.rounds_before = rounds_before;
    }

    /// Takes the learning rate from now on by which share of the stage is over, or by rounds.
    pub fn rate_by_share(&mut self, share: Option<f64>) {
        self.share = share;
    }

    /// Whether no stage follows.
    pub fn is_last(&self, worker: &Worker) -> bool {
        self.at.index + 1 == worker.plan.stages.len()
    }

    fn network(&self) -> &'a Network {
        &self.at.stage.network
    }

    /// Rounds at most.
    pub fn rounds(&self) -> u32 {
        self.at.stage.rounds
    }

    fn context(&self, worker: &Worker, round: u32, training: bool) -> PassContext {
        let TrainConfig { seed, recompute, .. } = worker.plan.config.train;
        // What is put together for the last layer is read throughout the backward pass; without one nothing is kept.
        let recompute = recompute && training && self.network().joined().is_none();
        PassContext {
            round,
            inputs: self.at.stage.inputs,
            first_layer: self.at.stage.first_layer,
            training,
            tells: false,
            seed,
            recompute,
            precision: worker.plan.precision(),
        }
    }

    /// Puts what this worker alone remembers of the stage into `saved`.
    pub fn save(&self, worker: &Worker, progress: &Progress, saved: &mut Saved) {
        worker.halo.save(saved);
        if let Some(late) = &worker.late {
            late.save(saved);
        }
        self.reduction.save(saved);
        self.agreement.save(progress, saved);
    }

    /// Takes it back.
    ///
    /// # Errors
    /// If it does not fit this run.
    pub fn restore(&mut self, worker: &mut Worker, progress: &mut Progress, mut saved: Saved) -> Result<()> {
        worker.halo.restore(&mut saved)?;
        if let Some(late) = &mut worker.late {
            late.restore(&mut saved)?;
        }
        self.reduction.restore(&mut saved)?;
        self.agreement.restore(progress, &mut saved)?;
        self.elapsed_before = progress.clocks.elapsed;
        saved.finish()
    }

    /// Reveals again what this many rounds had revealed before the run broke off.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn catch_up(&mut self, worker: &mut Worker, rounds: u32) -> Result<()> {
        for done in 0..rounds {
            let reading = Clocks::default().reading(done, self.at.stage.span);
            self.reveal(worker, self.at.rounds_before + done + 1, &reading)?;
        }
        Ok(())
    }

    fn reveal(&mut self, worker: &mut Worker, round: u32, reading: &Reading) -> Result<()> {
        let Some(reveal) = &mut self.reveal else { return Ok(()) };
        let (mut peers, graph) = worker.split();
        if reveal.advance(&mut peers, graph, self.at.stage.first(), round, reading, &mut self.inputs)? {
            self.batches.refresh(&self.inputs);
        }
        Ok(())
    }

    /// What happens before a round's pass: controllers turn, bits are assigned, frozen inputs are revealed further.
    fn prepare(&mut self, worker: &mut Worker, progress: &Progress, round: u32) -> Result<()> {
        let span = self.at.stage.span;
        let bytes = worker.plan.bytes_before(self.at.index).get(progress.done as usize).copied().unwrap_or(0.0);
        let reading = Reading { bytes, ..progress.clocks.reading(progress.done, span) };
        worker.turn(reading);
        let messages = &worker.plan.messages;
        let is_due = |(tag, _): &&(Tag, usize)| widths::is_due(progress.done, messages.coding(*tag).period(span));
        let due: Vec<(Tag, usize)> = self.adaptive.iter().filter(is_due).copied().collect();
        if !due.is_empty() {
            // What is under way was coded with the bits of before.
            worker.settle_late()?;
            widths::assign_widths(&mut worker.halo, &mut worker.transport, &due, round)?;
        }
        self.reveal(worker, round, &reading)
    }

    /// One round: forward, backward, agreement, step, and an evaluation where one is due.
    ///
    /// # Errors
    /// If another worker does not answer, or training has left the numbers.
    pub fn train_round(&mut self, worker: &mut Worker, progress: &mut Progress) -> Result<RoundEnd> {
        let (report, stop) = self.advance(worker, progress)?;
        let evaluates = worker.plan.cadence.evaluates(progress.done, self.rounds());
        progress.unjudged = evaluates.then(|| report.clone());
        let report = self.settle(worker, progress)?.unwrap_or(report);
        Ok(RoundEnd { report, interrupted: stop })
    }

    /// A round without evaluation; and whether workers agree that any of them was asked to stop.
    ///
    /// # Errors
    /// As [`Fit::train_round`].
    pub fn advance(&mut self, worker: &mut Worker, progress: &mut Progress) -> Result<(RoundReport, bool)> {
        let start = worker.now();
        let round = self.at.rounds_before + progress.done + 1;
        worker.rehearse_fault(round)?;
        if progress.done + 1 == self.rounds().div_ceil(2) {
            worker.halo.timeline.start(round);
        }
        self.prepare(worker, progress, round)?;
        let (extras, lr, agrees) = match self.at.stage.solves {
            Some(ridge) => {
                let agrees = worker.plan.cadence.agrees(progress.done + 1, self.rounds());
                (self.solve(worker, progress, ridge, round)?, 0.0, agrees)
            }
            None => {
                let value = self.gradient(worker, &progress.parameters, round)?;
                self.since.add(value);
                let mut extras = self.extras(worker);
                let (lr, agrees) = self.step(worker, progress, &mut extras, round)?;
                (extras, lr, agrees)
            }
        };
        if agrees || worker.plan.cadence.is_alone() {
            self.since = Since::default();
        }
        if agrees {
            progress.clocks.elapsed = extras.seconds / worker.size() as f64;
        }
        worker.halo.timeline.end();
        let took = worker.now().saturating_sub(start);
        if !worker.plan.cadence.is_alone() {
            worker.times.rounds.push(took);
        }
        let report = RoundReport {
            round,
            stage: self.at.index,
            loss: extras.loss,
            lr,
            scores: None,
            bytes: None,
            seconds: took.as_secs_f64(),
            members: Vec::new(),
            clock: worker.simulated(),
            judged: None,
        };
        Ok((report, agrees && extras.stop > 0.0))
    }

    /// What rides along with the round's reduction.
    fn extras(&self, worker: &Worker) -> Extras {
        let mut extras = self.since.extras(worker, worker.now().saturating_sub(self.started));
        extras.seconds += self.elapsed_before;
        extras
    }

    /// Agrees on the gradient, or after the step on the parameters, and takes the step; returns its learning rate, and
    /// whether workers have agreed.
    fn step(
        &mut self,
        worker: &mut Worker,
        progress: &mut Progress,
        extras: &mut Extras,
        round: u32,
    ) -> Result<(f32, bool)> {
        let (plan, rounds) = (worker.plan.clone(), self.rounds());
        let (span, share) = (self.at.stage.span, self.share);
        let Fit { gradient, seen, reduction, agreement, .. } = self;
        let mut turn = Turn { worker, progress, gradient, extras, reduction, round };
        agreement.before_step(&mut turn)?;
        if plan.config.train.clip > 0.0 {
            optimiser::clip(turn.gradient, plan.config.train.clip);
        }
        let progress = &mut *turn.progress;
        let (done, warmup) = (progress.done, plan.config.train.warmup);
        let lr = self.at.stage.lr
            * match share {
                Some(share) => plan.rate.factor_at(done, share, warmup),
                None => plan.rate.factor(done, span, warmup),
            };
        let (parameters, running) = progress.parameters.split_at_mut(self.at.stage.network.trained());
        progress.optimiser.step(parameters, turn.gradient, lr);
        blend(&turn.worker.compute, running, seen, 1.0 - MOMENTUM);
        progress.done += 1;
        let done = progress.done;
        let agrees =
            plan.cadence.agrees(done, rounds) || (plan.cadence.asks(done, rounds) && agreement.is_due(&mut turn)?);
        if agrees {
            agreement.after_step(&mut turn)?;
        }
        Ok((lr, agrees))
    }

    /// Sets `gradient` to that over the round's own training rows and returns their loss: shares of the mean over all
    /// workers' rows, or, where models are averaged, means over own rows.
    fn gradient(&mut self, worker: &mut Worker, parameters: &[f32], round: u32) -> Result<f64> {
        let network = self.network();
        self.gradient.clear();
        self.gradient.resize(network.len(), 0.0);
        let at = Round { number: round, done: round.saturating_sub(self.at.rounds_before + 1) };
        let own = self.batches.turn(worker, at, &self.inputs)?;
        self.since.rows = own;
        let training = Training {
            network,
            p: parameters,
            inputs: &self.inputs,
            context: self.context(worker, round, true),
            scale: (1.0 / self.agreement.rows(worker, own)) as f32,
            pass: &mut self.pass,
            task: &mut *self.task,
        };
        let loss = self.batches.gradient(worker, training, &mut self.gradient);
        let loss = self.unless_files_changed(loss)?;
        network.idle().iter().for_each(|range| self.gradient[range.clone()].fill(0.0));
        // In the place of gradients, which running statistics have none of, stands what they were in this round.
        self.seen.clear();
        self.seen.extend(self.gradient.drain(network.trained()..));
        Ok(loss)
    }

    /// Loss and gradient of one training pass without a step, for comparisons with other programs; the gradient is that
    /// of the mean loss over all workers, the logits are those of own rows.
    ///
    /// # Errors
    /// As [`Fit::train_round`].
    pub fn probe(&mut self, worker: &mut Worker, parameters: &[f32], round: u32) -> Result<(f64, Vec<f32>)> {
        let mut extras = Extras { loss: self.gradient(worker, parameters, round)?, ..Extras::default() };
        self.reduction.sum(worker, round, &mut self.gradient, &mut extras)?;
        Ok((extras.loss, [&self.gradient[..], &self.seen].concat()))
    }

    /// Gives back what only rounds need: none follow.
    pub fn end_rounds(&mut self) {
        (self.batches, self.reveal) = (batch::nothing_kept(), None);
    }

    /// Logits of all own rows without dropout, as evaluations see them.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn infer(&mut self, worker: &mut Worker, parameters: &[f32], round: u32) -> Result<&mut Pass> {
        if self.asked.is_some() {
            // What evaluations have left is too small.
            self.pass = Pass::default();
        }
        self.infer_rows(worker, parameters, round, false)?;
        Ok(&mut self.pass)
    }

    /// Logits of all own rows, or only of those that are `asked` for.
    fn infer_rows(&mut self, worker: &mut Worker, p: &[f32], round: u32, asked: bool) -> Result<()> {
        let (network, context) = (self.network(), self.context(worker, round, false));
        let (pass, in_batches) = (&mut self.pass, worker.plan.batching.is_some());
        if in_batches {
            self.batches.rest();
        }
        let (mut peers, graph) = worker.split_whole();
        let inputs = self.eval_inputs.as_ref().unwrap_or(&self.inputs);
        let required_rows = self.asked.as_ref().filter(|_| asked);
        let mut walk = Walk { peers: &mut peers, graph, required_rows, network, p, inputs, context };
        // Where training is in batches for its memory's sake, evaluations must not ask for more.
        let result = if in_batches { pass.infer(&mut walk) } else { pass.forward(&mut walk) };
        self.unless_files_changed(result)
    }

    /// The same as training sees them; `None` where evaluations see no more.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn infer_as_trained(
        &mut self,
        worker: &mut Worker,
        parameters: &[f32],
        round: u32,
    ) -> Result<Option<&mut Pass>> {
        if self.eval_inputs.is_none() {
            return Ok(None);
        }
        let (network, context) = (self.network(), self.context(worker, round, false));
        let (pass, inputs) = (&mut self.pass, &self.inputs);
        let (mut peers, graph) = worker.split();
        let walk = &mut Walk { peers: &mut peers, graph, required_rows: None, network, p: parameters, inputs, context };
        let result = pass.forward(walk);
        self.unless_files_changed(result)?;
        Ok(Some(&mut self.pass))
    }

    /// Evaluates the parameters after a round that still has to be, keeps them if they are the best, and returns all
    /// that is known after it. Where a run broke off in between, that is what it does first when it goes on.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn settle(&mut self, worker: &mut Worker, progress: &mut Progress) -> Result<Option<RoundReport>> {
        let Some(report) = progress.unjudged.clone() else { return Ok(None) };
        let Evaluated { scores, bytes, parts } = self.evaluate(worker, &progress.parameters, report.round)?;
        refuse_infinite(&scores, report.round)?;
        let own = parts.into_iter().next().map_or_else(Known::default, Known::Own);
        select(&worker.plan, progress, report.round, &scores, own);
        progress.unjudged = None;
        Ok(Some(RoundReport { scores: Some(scores), bytes: Some(bytes), ..report }))
    }

    /// What these parameters come to.
    ///
    /// # Errors
    /// If another worker does not answer, or they are no numbers.
    pub fn judge(&mut self, worker: &mut Worker, parameters: &[f32], round: u32) -> Result<Evaluated> {
        let evaluated = self.evaluate(worker, parameters, round)?;
        refuse_infinite(&evaluated.scores, round)?;
        Ok(evaluated)
    }

    fn evaluate(&mut self, worker: &mut Worker, parameters: &[f32], round: u32) -> Result<Evaluated> {
        let (start, aside) = (Instant::now(), worker.aside());
        self.infer_rows(worker, parameters, round, true)?;
        let result = self.task.evaluate(worker, parameters, self.pass.logits(), round);
        if worker.plan.batching.is_some() {
            self.pass = Pass::default();
        }
        worker.times.evaluation += start.elapsed().saturating_sub(worker.aside() - aside);
        result
    }

    /// What was computed from features in a file that has changed since reaches nobody: neither sums over workers nor a
    /// checkpoint.
    fn refuse_changed_files(&self) -> Result<()> {
        let inputs = std::iter::once(&self.inputs).chain(&self.eval_inputs);
        let what = "the file has changed since it was opened, and features are read from it (data.features_in = \
                    \"file\"); where it is as it was, `laconic resume` goes on";
        let changed = inputs.filter_map(|inputs| inputs.x.changed_file()).next();
        changed.map_or(Ok(()), |path| Err(TrainError::file(path, what)))
    }

    /// Why the stage has ended so: a file that has changed goes before what came of it.
    pub(super) fn cause(&self, error: TrainError) -> TrainError {
        self.refuse_changed_files().err().unwrap_or(error)
    }

    /// What a pass has come to, unless a file has changed: then that is why a pass has failed, too.
    fn unless_files_changed<T>(&self, result: Result<T>) -> Result<T> {
        self.refuse_changed_files()?;
        result
    }
}

//! The aggregator's run recorder: what it writes down, and what it remembers to sum up in the end.

mod lanes;
mod ledgers;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use laconic_wire::{Count, PerKind};

use self::ledgers::Ledgers;
use crate::averaging::lane::Span;
use crate::averaging::{Kept, Leave, Model, Noted, Reached, Watch};
use crate::config::MeansEvaluator;
use crate::error::Result;
use crate::fit::choice::{keep_best, worth};
use crate::fit::observe::{Recorder, RoundReport};
use crate::fit::progress::{Averaged, Best, Finished, Progress, Snapshot};
use crate::fit::stages::Trained;
use crate::plan::Plan;
use crate::record::observer::Stand;
use crate::record::recorder::FolderRecorder;
use crate::record::trainers::{AveragingSummary, Curve, TrainerSummary};
use crate::worker::StopSignal;
use crate::worker::evaluate::{Evaluated, Scores};
use crate::worker::parts::{Known, PartCounts};

/// What is written down of a run while it goes on.
pub(super) struct RunRecorder {
    plan: Arc<Plan>,
    pub recorder: FolderRecorder,
    /// The number of the part of each trainer.
    parts: Vec<u32>,
    /// Steps of each trainer's epoch.
    of_epoch: Vec<u64>,
    pub finished: Vec<Finished>,
    /// The state of the stage: the last mean, the best that was judged.
    pub progress: Progress,
    rounds_before: u32,
    /// Means whose lines are not written yet, because their verdicts or later ones may still come; with the models of
    /// those that are judged.
    unwritten: VecDeque<(RoundReport, Option<Model>)>,
    /// When the mean before was taken.
    last: Duration,
    /// Time of stages before this one.
    pub before: Duration,
    /// How long this stage had gone on when the run was resumed.
    resumed: Duration,
    /// When trainers first went, on the stage's clock: none of that has passed on the run's. They have not at first.
    begun: Duration,
    /// The same, once another stage has begun.
    gathered: Duration,
    /// Whether trainers have gone in this stage.
    pub has_begun: bool,
    /// By finished stage, the time of its last mean, in a run that was resumed.
    ends: Vec<Duration>,
    /// Bytes sent before the run was resumed, by kind.
    sent_before: PerKind<Count>,
    /// Bytes that this start has sent beside those of the stage, as the stage counts them.
    pub sent_besides: u64,
    /// The same that trainers have told each other until each mean; the last for all that follow.
    pub told: Vec<u64>,
    stop: StopSignal,
    /// Worth of the best so far by judged means: time, worth.
    curve: Vec<(Duration, Option<f64>)>,
    pub trainers: Vec<TrainerSummary>,
    /// What each of them did when, over all stages.
    lanes: Vec<Vec<Span>>,
    means: u32,
    /// Whether nobody can judge means any more.
    goes_unjudged: bool,
    notes: Vec<String>,
    /// Steps of each trainer that have entered means of finished stages.
    entered: Vec<u64>,
    /// What everybody has sent, as it is written down.
    pub ledgers: Ledgers,
}

/// More notes than that are said, and not kept for the summary.
const NOTES_MAX: usize = 1000;

impl RunRecorder {
    /// A recorder for trainers of these parts, with epochs of so many steps.
    pub fn new(
        plan: Arc<Plan>,
        mut recorder: FolderRecorder,
        parts: Vec<u32>,
        of_epoch: Vec<u64>,
        stop: StopSignal,
    ) -> RunRecorder {
        let earlier = recorder.earlier();
        let progress = Progress::new(&plan, &plan.stages[0].network, 0);
        let trainers = parts.iter().map(|part| TrainerSummary { part: *part, ..TrainerSummary::default() }).collect();
        let (sent_before, lanes) = (recorder.bytes_before(), vec![Vec::new(); parts.len()]);
        let ledgers = Ledgers::new(plan.stages.len() == 1);
        let mut run_recorder = RunRecorder {
            plan,
            recorder,
            parts,
            of_epoch,
            finished: Vec::new(),
            progress,
            rounds_before: 0,
            unwritten: VecDeque::new(),
            last: Duration::ZERO,
            before: Duration::ZERO,
            resumed: Duration::ZERO,
            begun: Duration::MAX,
            has_begun: false,
            gathered: Duration::ZERO,
            ends: Vec::new(),
            sent_before,
            sent_besides: 0,
            told: Vec::new(),
            stop,
            curve: Vec::new(),
            trainers,
            lanes,
            means: 0,
            goes_unjudged: false,
            notes: Vec::new(),
            entered: Vec::new(),
            ledgers,
        };
        earlier.iter().for_each(|report| run_recorder.recall(report));
        run_recorder
    }

    /// Goes on counting behind a mean of an earlier start.
    fn recall(&mut self, report: &RoundReport) {
        self.count(&report.members);
        let at = report.clock.and_then(|clock| Duration::try_from_secs_f64(clock).ok()).unwrap_or_default();
        if report.stage < self.plan.stages.len() {
            self.ends.resize(self.ends.len().max(report.stage + 1), Duration::ZERO);
            self.ends[report.stage] = at;
        }
        if let Some(scores) = &report.scores {
            let judged = report.judged.and_then(|at| Duration::try_from_secs_f64(at).ok()).unwrap_or(at);
            self.curve.push((judged, worth(&self.plan, scores)));
        }
    }

    /// The learning rate of the last step before a mean, of the trainer that has taken most.
    fn rate(&self, kept: &Kept) -> f32 {
        let (index, warmup) = (self.finished.len(), self.plan.config.train.warmup);
        let stage = &self.plan.stages[index];
        let furthest = (0..self.parts.len()).max_by_key(|of| kept.steps.get(*of)).unwrap_or_default();
        let steps = kept.steps.get(furthest).copied().unwrap_or_default();
        let before = u32::try_from(steps.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = match self.plan.steps_of(index, &self.of_epoch, furthest) {
            Some(span) => self.plan.rate.factor(before, span, warmup),
            None => self.plan.rate.factor_at(before, kept.share, warmup),
        };
        stage.lr * factor
    }

    /// Counts a mean, which trainers of these parts took part in.
    fn count(&mut self, members: &[u32]) {
        self.means += 1;
        let took_part = |trainer: &&mut TrainerSummary| members.contains(&trainer.part);
        self.trainers.iter_mut().filter(took_part).for_each(|trainer| trainer.means += 1);
    }

    /// Passes a stage that had been finished before the run was resumed.
    pub fn pass(&mut self, finished: Finished) {
        self.before = self.ends.get(self.finished.len()).copied().unwrap_or(self.before);
        self.finished.push(finished);
    }

    /// A moment of the stage's clock on the run's, which counts from when trainers first went.
    fn at(&self, now: Duration) -> Duration {
        self.elapsed() + now.saturating_sub(self.begun)
    }

    /// How long the stage had gone on when the run was resumed, and those before it.
    pub fn elapsed(&self) -> Duration {
        self.before + self.resumed
    }

    /// The same with what had passed before trainers went.
    pub fn lasted(&self) -> Duration {
        self.elapsed() + self.gathered
    }

    /// Enters how long this start has spent on the stage.
    pub fn spent(&mut self, time: Duration) {
        self.before = self.at(time);
        self.resumed = Duration::ZERO;
    }

    /// Rounds of the stages that have been finished.
    pub fn rounds_of_finished(&self) -> u32 {
        self.finished.iter().map(|(_, rounds)| rounds).sum()
    }

    /// Begins a stage.
    pub fn begin(&mut self, stage: usize) {
        self.progress = Progress::new(&self.plan, &self.plan.stages[stage].network, stage);
        let before = self.entered.clone();
        self.progress.averaged = (!before.is_empty()).then(|| Averaged { before, ..Averaged::default() });
        self.rounds_before = self.rounds_of_finished();
        (self.last, self.has_begun) = (Duration::ZERO, false);
        if self.begun != Duration::MAX {
            // Trainers have gone, and whatever passes now passes on the run's clock.
            self.gathered += std::mem::take(&mut self.begun);
        }
    }

    /// Goes on from what a checkpoint says of the stage. Means that were not written are now, but for the last, on
    /// which the verdict may still come: of the others no model is left to judge.
    ///
    /// # Errors
    /// If the checkpoint is of another model, or the operating system refuses.
    pub fn restore(&mut self, snapshot: Snapshot) -> Result<()> {
        self.ledgers.known = snapshot.bytes;
        snapshot.restore(&mut self.progress)?;
        let done = self.rounds_before + self.progress.done;
        let Some(averaged) = &mut self.progress.averaged else { return Ok(()) };
        // One a trainer, whatever a file says.
        self.entered = (0..self.parts.len()).map(|of| averaged.before.get(of).copied().unwrap_or(0)).collect();
        self.last = Duration::try_from_secs_f64(averaged.elapsed).unwrap_or_default();
        self.resumed = self.last;
        let model: Model = self.progress.parameters.as_slice().into();
        let unwritten: Vec<RoundReport> = averaged.unwritten.drain(..).filter(|report| report.round <= done).collect();
        for report in unwritten {
            self.count(&report.members);
            self.unwritten.push_back((report, Some(model.clone())));
        }
        (0..self.parts.len()).for_each(|of| self.trainers[of].steps = self.known_steps(of));
        self.write(done.saturating_sub(1), None)
    }

    /// What the stage goes on from.
    pub fn reached(&self) -> Reached {
        let Progress { done, parameters, averaged, best, since_best, .. } = &self.progress;
        let worth = best.as_ref().and_then(|best| worth(&self.plan, &best.scores));
        let kept = averaged.as_ref().filter(|_| *done > 0).map(|averaged| Kept {
            mean: crate::averaging::Mean {
                number: *done,
                members: Vec::new(),
                loss: 0.0,
                model: parameters.as_slice().into(),
            },
            elapsed: Duration::try_from_secs_f64(averaged.elapsed).unwrap_or_default(),
            // One a trainer, whatever a file says.
            steps: (0..self.parts.len()).map(|of| averaged.steps.get(of).copied().unwrap_or(0)).collect(),
            share: 0.0,
            last: false,
        });
        let owes = !self.unwritten.is_empty();
        Reached { kept, owes, best: (worth, *since_best), entered: self.entered.clone() }
    }

    fn by_workers(&self) -> bool {
        self.plan.trainers.as_ref().is_some_and(|trainers| trainers.by_workers.is_some())
    }

    /// What trainers' parts come to, by the numbers of all parts; nothing of parts without a trainer.
    fn by_number(&self, of_trainers: &[PartCounts]) -> Vec<PartCounts> {
        let of = |part: u32| self.parts.iter().position(|own| *own == part).and_then(|place| of_trainers.get(place));
        let all = if of_trainers.is_empty() { 0 } else { self.plan.config.partition.parts };
        (0..all).map(|part| of(part).cloned().unwrap_or_default()).collect()
    }

    /// Ends a stage: what it has chosen, and its means.
    pub fn finish_stage(&mut self) -> Result<Vec<f32>> {
        self.write(u32::MAX, None)?;
        let chosen = self.progress.chosen().to_vec();
        self.finished.push((chosen.clone(), self.progress.done));
        self.entered = (0..self.parts.len()).map(|trainer| self.known_steps(trainer)).collect();
        self.progress.averaged = None;
        Ok(chosen)
    }

    /// What the run has come to; in the last stage, or the one in which it was interrupted.
    pub fn trained(&mut self, interrupted: bool) -> Result<Trained> {
        self.write(u32::MAX, None)?;
        self.save()?;
        let mut chosen: Vec<Vec<f32>> = self.finished.iter().map(|(parameters, _)| parameters.clone()).collect();
        chosen.push(self.progress.chosen().to_vec());
        let rounds = self.rounds_before + self.progress.done;
        let (best_round, scores) = match &self.progress.best {
            Some(Best { round, scores, .. }) => (*round, scores.clone()),
            None => (rounds, Scores::default()),
        };
        Ok(Trained { chosen, last: self.progress.parameters.clone(), best_round, scores, rounds, interrupted })
    }

    /// Nobody will judge this mean after all.
    pub fn goes_unjudged(&mut self, number: u32) {
        let round = self.rounds_before + number;
        self.unwritten.iter_mut().filter(|(report, _)| report.round == round).for_each(|(_, model)| *model = None);
    }

    /// Writes the lines of means up to this one, which has these figures.
    fn write(&mut self, number: u32, mut scores: Option<(Scores, Duration)>) -> Result<()> {
        while self.unwritten.front().is_some_and(|(report, _)| report.round <= number) {
            let Some((mut report, _)) = self.unwritten.pop_front() else { break };
            if let Some((scores, at)) = scores.take_if(|_| report.round == number) {
                (report.scores, report.judged) = (Some(scores), Some(at.as_secs_f64()));
            }
            if report.scores.is_none() {
                report.bytes = None;
            }
            self.recorder.after_round(&report)?;
        }
        Ok(())
    }

    /// Writes down what the run can go on from.
    fn save(&mut self) -> Result<()> {
        if let Some(averaged) = &mut self.progress.averaged {
            averaged.unwritten = self.unwritten.iter().map(|(report, _)| report.clone()).collect();
        }
        self.ledgers.enter_until(self.progress.done);
        let (stage, finished) = (self.finished.len(), self.finished.clone());
        self.recorder.checkpoint(&|| Snapshot::take(stage, &self.progress, finished.clone(), self.ledgers.known))
    }

    /// Steps of a trainer that have entered means.
    fn known_steps(&self, trainer: usize) -> u64 {
        let of_stage = self.progress.averaged.as_ref().and_then(|averaged| averaged.steps.get(trainer));
        self.entered.get(trainer).unwrap_or(&0) + of_stage.unwrap_or(&0)
    }

    /// What trainers left with. Who was started again counted anew, and of one that did not take its leave the steps
    /// are known that entered means.
    pub fn note_leaves(&mut self, leaves: &[Option<Leave>]) {
        for (index, leave) in leaves.iter().enumerate() {
            self.trainers[index].steps = self.known_steps(index).max(leave.map_or(0, |leave| leave.steps));
        }
    }

    /// The run's averaging in figures; `ending` in words.
    pub fn summary(&self, ending: &str) -> AveragingSummary {
        let best = self.curve.iter().filter_map(|(_, worth)| *worth).fold(f64::NEG_INFINITY, f64::max);
        // 99 % of the best, also where worth is a loss that is negative.
        let enough = best - 0.01 * best.abs();
        let converged = self.curve.iter().find(|(_, worth)| worth.is_some_and(|worth| worth >= enough));
        AveragingSummary {
            trainers: self.trainers.clone(),
            hosted_part: None,
            evaluator: MeansEvaluator::default(),
            means: self.means,
            means_predicted: None,
            ending: ending.to_owned(),
            convergence_seconds: converged.map(|(at, _)| at.as_secs_f64()),
            curve: self.curve.iter().map(|(at, worth)| Curve { seconds: at.as_secs_f64(), worth: *worth }).collect(),
            notes: self.notes.clone(),
        }
    }

    /// Gives a sign of life, in a stage.
    pub fn stands(&mut self) {
        self.recorder.observer().stands(if self.has_begun { Stand::Leads } else { Stand::Gathers });
    }

    /// Something to be said at the end as well.
    pub fn say(&mut self, what: String) {
        self.recorder.observer().noted(&what);
        if self.notes.len() < NOTES_MAX {
            self.notes.push(what);
        }
    }
}

impl Watch<Evaluated> for RunRecorder {
    fn began(&mut self, now: Duration) {
        self.has_begun = true;
        if self.begun == Duration::MAX {
            self.begun = now;
        }
    }

    fn kept(&mut self, now: Duration, kept: &Kept, sent: u64) -> Result<()> {
        let Kept { mean, elapsed, steps, .. } = kept;
        self.ledgers.has_taken = true;
        self.progress.done = mean.number;
        self.progress.parameters.copy_from_slice(&mean.model);
        let members: Vec<u32> = mean.members.iter().map(|(trainer, _)| self.parts[*trainer]).collect();
        self.count(&members);
        let before: u64 = self.sent_before.iter().map(|(_, count)| count.framed).sum();
        let told = self.told.get(mean.number as usize).or(self.told.last()).copied().unwrap_or_default();
        let report = RoundReport {
            round: self.rounds_before + mean.number,
            stage: self.finished.len(),
            loss: mean.loss,
            lr: self.rate(kept),
            scores: None,
            bytes: Some(before + self.sent_besides + told + sent),
            seconds: elapsed.saturating_sub(self.last).as_secs_f64(),
            members,
            clock: Some(self.at(now).as_secs_f64()),
            judged: None,
        };
        self.last = *elapsed;
        let (round, every) = (report.round, self.plan.config.train.eval_every);
        let is_judged = kept.last || (every > 0 && mean.number.is_multiple_of(every));
        self.unwritten.push_back((report, is_judged.then(|| mean.model.clone())));
        if !is_judged && self.unwritten.len() == 1 {
            // No verdict will come.
            self.write(round, None)?;
        }
        let (elapsed, steps) = (elapsed.as_secs_f64(), steps.clone());
        let before = self.entered.clone();
        self.progress.averaged = Some(Averaged { elapsed, steps, before, unwritten: Vec::new() });
        self.save()
    }

    fn judged(&mut self, now: Duration, number: u32, evaluated: &Evaluated) -> Result<()> {
        let Evaluated { scores, parts, bytes } = evaluated;
        let parts = if self.by_workers() { self.by_number(parts) } else { parts.clone() };
        let round = self.rounds_before + number;
        let found = self.unwritten.iter().find(|(report, _)| report.round == round);
        let Some(model) = found.and_then(|(_, model)| model.clone()) else { return Ok(()) };
        let best = &mut self.progress.best;
        let is_best = keep_best(&self.plan, best, round, &model, scores, Known::All(parts));
        self.progress.since_best = if is_best { 0 } else { self.progress.since_best + 1 };
        let at = self.at(now);
        self.curve.push((at, worth(&self.plan, scores)));
        if let Some((report, _)) = self.unwritten.iter_mut().find(|(report, _)| report.round == round) {
            // What workers have sent to evaluate it is known only now.
            report.bytes = report.bytes.map(|sent| sent + bytes);
        }
        self.write(round, Some((scores.clone(), at)))?;
        // The best is kept at once: its model stands nowhere else when the next mean has been taken.
        if is_best { self.save() } else { Ok(()) }
    }

    fn stays_unjudged(&mut self, number: u32) -> Result<()> {
        let round = self.rounds_before + number;
        if !std::mem::replace(&mut self.goes_unjudged, true) {
            self.say(format!(
                "means from {number} on have no figures: one of the workers that evaluate them together is gone \
                 (schedule.evaluator = \"workers\"), and figures of the others would be those of another graph"
            ));
        }
        self.write(round, None)
    }

    fn noted(&mut self, now: Duration, trainer: usize, what: Noted) {
        let (part, waited, now) = (self.parts[trainer], now.as_secs_f64(), self.at(now));
        let after = format!("{:.1} s", now.as_secs_f64());
        let text = match what {
            Noted::NotCome => {
                self.trainers[trainer].lost.push(now.as_secs_f64());
                format!("trainer {part} had not come after {waited:.1} s; the others began")
            }
            Noted::Came(mean) => format!("trainer {part} came after {after}, to go on from mean {mean}"),
            Noted::Lost(mean) => {
                self.trainers[trainer].lost.push(now.as_secs_f64());
                format!("trainer {part} was lost after {after} and mean {mean}")
            }
            Noted::Missing(mean) => {
                format!("trainer {part} had not answered when mean {mean} was taken, after {after}")
            }
            Noted::Late(mean) => format!("trainer {part} answered after mean {mean} was taken, after {after}"),
        };
        self.say(text);
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }
}

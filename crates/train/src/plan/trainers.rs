//! Independent trainers, as a configuration asks for them.

use std::sync::Arc;
use std::time::Duration;

use laconic_graph::links::NegativeScope;

use super::inputs::ModelInputs;
use super::{Cadence, Members, Plan};
use crate::config::{
    AggregatorPlace, Config, EvaluationEdges, MeansEvaluator, Pace, TrainersHalo, TransportKind, Weighting,
};
use crate::error::{Result, TrainError};
use crate::selection::Scope;

/// When trainers' models are averaged, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainersPlan {
    /// How far one mean is from the next.
    pub interval: Pace,
    /// What each model counts for.
    pub weighting: Weighting,
    /// Models that a mean is taken of at least, 0 for more than half of the trainers.
    pub quorum: u32,
    /// How long the others have once so many have answered.
    pub grace: Duration,
    /// Steps of correction after each mean.
    pub corrections: u32,
    /// Over which edges workers evaluate means, where they do and the aggregator holds no part; else it holds the whole
    /// graph.
    pub by_workers: Option<EvaluationEdges>,
    /// What trainers know of each other's nodes.
    pub halo: TrainersHalo,
    /// Whether they tell each other, once, what models read besides features.
    pub tell: bool,
    /// With stale rows: after how many means they tell each other rows again.
    pub refresh: u32,
    /// Parts whose trainers never start.
    pub drop: Vec<u32>,
    /// The part whose trainer lives in the aggregator's process, where one does.
    pub hosted: Option<u32>,
}

impl TrainersPlan {
    /// `None` where workers are not independent trainers.
    ///
    /// # Errors
    /// If a value makes no sense, or belongs to something else.
    pub(super) fn of(members: &Members, config: &Config) -> Result<Option<TrainersPlan>> {
        let kind = members.schedule(config)?;
        check_transport(config, kind.trainers)?;
        if !kind.trainers {
            return Ok(None);
        }
        let by_workers = members.workers_evaluate_means(config)?;
        check_others(config, by_workers)?;
        let tell = members.told_inputs(config).next().is_some();
        check_told(members, config, by_workers)?;
        let schedule = &config.schedule;
        let reads = |option: &str| kind.options.contains(&option);
        let halo = if reads("halo") { schedule.halo } else { TrainersHalo::None };
        if halo != TrainersHalo::Frozen {
            let lazy = [("hand_on", schedule.hand_on.is_some()), ("rounds", !schedule.rounds.is_empty())];
            if let Some((key, _)) = lazy.iter().find(|(_, given)| *given) {
                let what = "belongs to stages, which there are with schedule.halo = \"frozen\"";
                return Err(TrainError::config(format!("schedule.{key} {what}")));
            }
        }
        if halo != TrainersHalo::Stale && schedule.refresh != 1 {
            let what = "belongs to rows that trainers tell each other, schedule.halo = \"stale\"";
            return Err(TrainError::config(format!("schedule.refresh {what}")));
        }
        Ok(Some(TrainersPlan {
            interval: schedule.interval,
            weighting: if reads("mean") { schedule.mean } else { Weighting::Uniform },
            quorum: schedule.quorum,
            grace: schedule.grace.0,
            corrections: if reads("corrections") { schedule.corrections } else { 0 },
            by_workers: by_workers.then_some(schedule.evaluate),
            halo,
            tell,
            refresh: schedule.refresh,
            drop: config.averaging.drop.clone(),
            hosted: match schedule.aggregator {
                AggregatorPlace::Own => None,
                AggregatorPlace::Part(part) => Some(part),
            },
        }))
    }

    /// Whether trainers know rows of each other's nodes, for which they meet before every stage.
    pub fn exchange(&self) -> bool {
        self.halo != TrainersHalo::None
    }

    /// Whether trainers meet before they train: to exchange rows, or to tell each other what models read.
    pub fn meet(&self) -> bool {
        self.exchange() || self.tell
    }

    /// The parts that are trained on, of so many.
    ///
    /// # Errors
    /// If none is left, or one is dropped, or to live with the aggregator, that there is not.
    pub fn parts(&self, all: u32) -> Result<Vec<u32>> {
        if let Some(part) = self.drop.iter().find(|part| **part >= all) {
            return Err(TrainError::config(format!("averaging.drop = {part}: there are parts 0 to {}", all - 1)));
        }
        if let Some(part) = self.hosted.filter(|part| *part >= all) {
            return Err(TrainError::config(format!("schedule.aggregator = {part}: there are parts 0 to {}", all - 1)));
        }
        let parts: Vec<u32> = (0..all).filter(|part| !self.drop.contains(part)).collect();
        match (parts.is_empty(), self.quorum as usize > parts.len()) {
            (true, _) => Err(TrainError::config("averaging.drop leaves no part to train on")),
            (_, true) => {
                let what = format!("there are {} trainers", parts.len());
                Err(TrainError::config(format!("schedule.quorum = {}: {what}", self.quorum)))
            }
            _ => Ok(parts),
        }
    }

    /// The place, among the trainers of these parts, of the one that lives in the aggregator's process.
    ///
    /// # Errors
    /// If its part is none of theirs.
    pub fn hosted(&self, parts: &[u32]) -> Result<Option<usize>> {
        let Some(hosted) = self.hosted else { return Ok(None) };
        if let Some(place) = parts.iter().position(|part| *part == hosted) {
            return Ok(Some(place));
        }
        let why =
            if self.drop.contains(&hosted) { "averaging.drop leaves it out" } else { "no node of it is to learn from" };
        Err(TrainError::config(format!("schedule.aggregator = {hosted}: part {hosted} has no trainer: {why}")))
    }

    /// Who evaluates means.
    pub fn evaluator(&self) -> MeansEvaluator {
        if self.by_workers.is_some() { MeansEvaluator::Workers } else { MeansEvaluator::Aggregator }
    }

    /// Models that a mean of so many trainers is taken of at least.
    pub fn quorum(&self, trainers: usize) -> usize {
        if self.quorum > 0 { self.quorum as usize } else { trainers / 2 + 1 }
    }
}

/// The means that are left of a stage of which a trainer has gone so many steps and so long, where steps decide how
/// many there are, by the steps of its epoch; at most so many where time does. `None` where one is a time and the other
/// is not.
pub fn means_left(
    (interval, limit): (Pace, Pace),
    of_epoch: u64,
    steps: u64,
    elapsed: Duration,
) -> Option<(u64, bool)> {
    match (interval, limit) {
        // An interval begins when the mean before has been handed out.
        (Pace::Time(every), Pace::Time(limit)) => {
            let left = limit.saturating_sub(elapsed).as_nanos().div_ceil(every.as_nanos().max(1));
            Some((u64::try_from(left).unwrap_or(u64::MAX), false))
        }
        (every, limit) => {
            let (every, limit) = (every.steps(of_epoch)?, limit.steps(of_epoch)?);
            let left = limit.saturating_sub(steps).div_ceil(every.max(1));
            Some((if steps == 0 { left.max(1) } else { left }, true))
        }
    }
}

/// The steps that a trainer with epochs of `own` steps takes until a pace that all run towards, where epochs of all
/// take so many: whole intervals, as many as whoever is there first has. `None` where time decides.
fn steps_until(interval: Pace, end: Pace, of_epoch: &[u64], own: u64) -> Option<u64> {
    let steps = end.steps(own)?;
    let Some(every) = interval.steps(own) else { return Some(steps) };
    let left = |&of_epoch: &u64| means_left((interval, end), of_epoch, 0, Duration::ZERO).map(|(means, _)| means);
    let means = of_epoch.iter().filter_map(left).min()?;
    Some(means.saturating_mul(every))
}

/// Refuses a simulated network of workers that exchange rows, and what belongs to it elsewhere.
fn check_transport(config: &Config, trainers: bool) -> Result<()> {
    let transport = &config.transport;
    let simulated = transport.kind == TransportKind::Simulated;
    if simulated && !trainers {
        let what = "plays independent trainers (schedule.kind = \"averaging\"); workers that exchange rows have \
            transport.shape";
        return Err(TrainError::config(format!("transport.kind = \"simulated\" {what}")));
    }
    if trainers && !simulated && !transport.shape.is_empty() {
        let what =
            "shapes links of workers that exchange rows, and those of trainers with transport.kind = \"simulated\"";
        return Err(TrainError::config(format!("transport.shape {what}")));
    }
    let speed = |speed: &&f64| !(speed.is_finite() && **speed > 1e-6 && **speed < 1e9);
    if let Some(speed) = transport.speeds.iter().find(speed) {
        return Err(TrainError::config(format!("transport.speeds: expected steps a second, found {speed}")));
    }
    for (key, given) in [("speeds", !transport.speeds.is_empty()), ("faults", !transport.faults.is_empty())] {
        if given && !simulated {
            let what = "belongs to transport.kind = \"simulated\"";
            return Err(TrainError::config(format!("transport.{key} {what}")));
        }
    }
    Ok(())
}

/// Refuses what independent trainers have no use for.
fn check_others(config: &Config, by_workers: bool) -> Result<()> {
    let refuse = |key: &str, what: &str| {
        let kind = &config.schedule.kind;
        Err(TrainError::config(format!("{key} with schedule.kind = {kind:?}: {what}")))
    };
    if config.train.sync_every > 1 {
        return refuse("train.sync_every", "schedule.interval says when models are averaged");
    }
    if config.transport.fault.is_some() {
        return refuse("transport.fault", "transport.faults of the simulated transport rehearses failures");
    }
    if config.transport.kind == TransportKind::Mpi && !by_workers {
        let what = "over MPI each process holds its own part, and no aggregator the whole graph, on which it could \
            evaluate, or correct, means";
        return refuse("transport.kind = \"mpi\"", what);
    }
    let messages = &config.messages;
    if !messages.budget.is_empty() {
        let what = match config.schedule.halo {
            TrainersHalo::None => "no rows cross that it could make smaller",
            _ => "what trainers tell each other is only bounded beforehand",
        };
        return refuse("messages.budget", what);
    }
    Ok(())
}

/// Refuses inputs that are told where somebody would read others than trainers do: an aggregator that evaluates on the
/// whole graph makes its columns alone, and who has no trainer tells nothing.
fn check_told(members: &Members, config: &Config, by_workers: bool) -> Result<()> {
    let Some(first) = members.told_inputs(config).next() else { return Ok(()) };
    let answers = config.policy.response()?.is_some();
    let lossy = members.told_inputs(config).find(|kind| kind.loses || (answers && kind.tells_labels));
    if let (Some(kind), false) = (lossy, by_workers) {
        let what = "an aggregator that evaluates means on the whole graph would make other columns than trainers are \
            told; schedule.evaluator = \"workers\" (with schedule.kind = \"averaging\" or \"psgd_pa\") evaluates \
            on theirs";
        return Err(TrainError::config(format!("model.inputs has {:?}: {what}", kind.name)));
    }
    if !config.averaging.drop.is_empty() {
        let what = "a part without a trainer has nobody who tells";
        return Err(TrainError::config(format!("averaging.drop with model.inputs = {:?}: {what}", first.name)));
    }
    Ok(())
}

impl Plan {
    /// The plan by which a trainer that meets the others once tells them what models read, and hears them. What classes
    /// count for it is told otherwise.
    #[must_use]
    pub fn telling_once(self) -> Plan {
        Plan { class_weights: None, class_counts: 0, ..self }
    }

    /// The plan of who has the rows that the first layer reads in the place of features.
    #[must_use]
    pub fn reading_given_rows(self) -> Plan {
        Plan { inputs: ModelInputs { given: true, ..self.inputs }, ..self }
    }

    /// The plan of one trainer, whose data this plan was made for: it agrees with nobody and judges nothing.
    #[must_use]
    pub fn alone(self) -> Plan {
        Plan { cadence: Cadence::alone(self.cadence), evaluation: Scope::Nothing, ..self }
    }

    /// Spreads the learning rate over the steps that the trainer at this place, whose plan this is, will take, where
    /// epochs of all take so many.
    pub fn run_towards(&mut self, of_epoch: &[u64], place: usize) {
        let steps: Vec<Option<u32>> =
            (0..self.stages.len()).map(|stage| self.steps_of(stage, of_epoch, place)).collect();
        if let Some(stages) = Arc::get_mut(&mut self.stages) {
            stages.iter_mut().zip(steps).for_each(|(stage, steps)| stage.span = steps.unwrap_or(stage.span));
        }
    }

    /// The steps that the rate of a stage is spread over at the trainer of this place; `None` where time decides.
    pub fn steps_of(&self, stage: usize, of_epoch: &[u64], place: usize) -> Option<u32> {
        let (interval, end) = (self.config.schedule.interval, self.config.horizon_of(stage));
        let own = of_epoch.get(place).copied().unwrap_or(1);
        steps_until(interval, end, of_epoch, own).map(|steps| u32::try_from(steps).unwrap_or(u32::MAX))
    }

    /// Refuses messages that depend on those before them, which a trainer may not have read, or on a round, of which
    /// each trainer has its own.
    fn check_told_rows(&self) -> Result<()> {
        let refuse =
            |key: &str, what: &str| Err(TrainError::config(format!("{key} with schedule.halo = \"stale\": {what}")));
        if self.trainers.as_ref().is_some_and(|trainers| trainers.refresh == 0) {
            return refuse("schedule.refresh = 0", "expected a number of means, from 1 on");
        }
        if let Some(what) = self.messages.same_rows() {
            return refuse(what, "rows that nobody waits for may be left unread, and later ones must make sense alone");
        }
        if self.messages.are_adaptive() {
            return refuse("adaptive bits", "trainers do not meet to choose them");
        }
        if !self.messages.have_constant_sizes() {
            return refuse("a ramp of messages", "each trainer counts its own rounds");
        }
        Ok(())
    }

    /// Refuses pairs with nodes that an independent trainer does not have, and what trainers would have to meet for
    /// after a stage has begun.
    pub(super) fn check_trainers(&self) -> Result<()> {
        let Some(trainers) = &self.trainers else { return Ok(()) };
        if trainers.exchange() && self.stages.iter().any(|stage| self.reveals(stage)) {
            let what = "columns of frozen inputs would cross in later rounds, and independent trainers meet only \
                before a stage";
            return Err(TrainError::config(format!("messages.forward: {what}")));
        }
        if trainers.halo == TrainersHalo::Stale {
            self.check_told_rows()?;
        }
        let global = self.links.as_ref().is_some_and(|links| links.scope == NegativeScope::Global);
        if global {
            let what = "a trainer knows its own nodes alone; task.negatives = \"local\" draws from them";
            return Err(TrainError::config(format!("task.negatives = \"global\": {what}")));
        }
        Ok(())
    }
}

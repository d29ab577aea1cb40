//! What can be checked of a configuration without data.

use laconic_graph::order::{ORDERS, OrderKind};
use laconic_graph::part::GlobalCounts;
use laconic_graph::partition::{Objective, RULES, clusterers};
use laconic_nn::after::{NORM_KINDS, NormKind, by_name};
use laconic_wire::{LinkShape, WireError};

use super::cadence::{Cadence, ROUNDS_MAX};
use super::covers::check_covers;
use super::inputs::{ModelInputs, check_propagation};
use super::kinds::TaskKind;
use super::links::LinkPlan;
use super::members::Members;
use super::power_sgd::check_power_sgd;
use super::solved::check_solved;
use super::trainers::TrainersPlan;
use crate::config::ramp::Clock;
use crate::config::{ClassWeights, Config, HandOnChoice, Pace, SplitChoice, one_of};
use crate::error::{Result, TrainError};
use crate::messages::{ColumnsLeftOut, Messages};
use crate::schedule::Blueprint;

fn positive(key: &str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(TrainError::config(format!("{key} = {value}: expected a number above 0")))
}

fn at_least_0(key: &str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(TrainError::config(format!("{key} = {value}: expected 0 or a number above")))
}

/// How long somebody waits: not so short that an ordinary pause of the system ends a run.
fn seconds(key: &str, value: f64) -> Result<()> {
    if (0.1..=1e6).contains(&value) {
        return Ok(());
    }
    Err(TrainError::config(format!("{key} = {value}: expected 0.1 to 1000000 seconds")))
}

fn within(key: &str, value: usize, range: std::ops::RangeInclusive<usize>) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(TrainError::config(format!("{key} = {value}: expected {} to {}", range.start(), range.end())))
}

/// Refuses what `messages.auto` chooses itself, and a target that nobody goes for.
fn check_auto(config: &Config) -> Result<()> {
    let messages = &config.messages;
    let refuse = |what: String| Err(TrainError::config(what));
    match messages.target {
        Some(_) if !config.is_several() => {
            refuse("messages.target: messages.auto = true goes for it, and is not set".into())
        }
        Some(target) if !(target > 0.0 && target <= 1.0) => {
            refuse(format!("messages.target = {target}: expected a figure above 0, at most 1, such as 0.66"))
        }
        _ if messages.auto && !messages.leave_all_to_auto() => {
            let what = "it chooses codecs itself, and reads messages.budget and messages.target alone";
            refuse(format!("messages.auto: {what}; leave the other keys of [messages] out"))
        }
        _ if messages.auto && config.schedule.hand_on == Some(HandOnChoice::Auto) => {
            refuse("schedule.hand_on = \"auto\": messages = \"auto\" chooses that, too; leave one out".into())
        }
        _ => messages.budget_bytes().map(drop),
    }
}

impl Members {
    /// Checks everything that does not depend on data.
    ///
    /// # Errors
    /// If a name is unknown or a value makes no sense.
    pub fn check(&self, config: &Config) -> Result<()> {
        self.task(config)?;
        self.batching(config)?;
        config.policy.list()?;
        config.policy.allowed().map(drop)?;
        ModelInputs::of(self, config, [1, 1].into())?;
        config.model.check(self.layer(config)?)?;
        check_norm(config)?;
        self.check_train(config)?;
        LinkPlan::of(self, config, 0)?;
        self.check_partition(config)?;
        self.check_schedule(config)?;
        TrainersPlan::of(self, config)?;
        self.check_messages(config)?;
        self.check_propagation(config)?;
        self.check_learned(config)?;
        self.check_part(config)?;
        config.batch.check(config.model.layers)?;
        seconds("transport.deadline_s", config.transport.deadline_s)?;
        seconds("transport.start_deadline_s", config.transport.start_deadline_s)?;
        if let SplitChoice::Random(split) = &config.data.split {
            split.spec()?;
        }
        if !config.transport.shape.is_empty() {
            let shape = config.transport.shape.parse::<LinkShape>();
            shape.map_err(|e| TrainError::config(format!("transport.shape: {e}")))?;
        }
        Ok(())
    }

    fn check_train(&self, config: &Config) -> Result<()> {
        let train = &config.train;
        positive("train.lr", train.lr.into())?;
        at_least_0("train.weight_decay", train.weight_decay.into())?;
        at_least_0("train.momentum", train.momentum.into())?;
        positive("train.epsilon", train.epsilon.into())?;
        at_least_0("train.clip", train.clip.into())?;
        at_least_0("train.lr_factor", train.lr_factor.into())?;
        within("train.epochs", train.epochs as usize, 0..=ROUNDS_MAX)?;
        within("train.threads", train.threads, 0..=1024)?;
        within("train.sync_every", train.sync_every as usize, 1..=ROUNDS_MAX)?;
        Cadence::check(config)?;
        self.optimiser(config)?;
        self.rate(config)?;
        if let Some(ClassWeights::Given(weights)) = &train.class_weights {
            weights.iter().try_for_each(|&weight| positive("train.class_weights", weight.into()))?;
        }
        let metrics: Vec<&str> = laconic_nn::metric::Metric::ALL.iter().map(|m| m.name()).collect();
        train.metrics.iter().try_for_each(|metric| one_of("train.metrics", metric, &metrics))
    }

    fn check_partition(&self, config: &Config) -> Result<()> {
        within("partition.parts", config.partition.parts as usize, 0..=4096)?;
        at_least_0("partition.imbalance", config.partition.imbalance)?;
        one_of("partition.objective", &config.partition.objective, &Objective::ALL.map(Objective::name))?;
        within("partition.passes", config.partition.passes as usize, 1..=1000)?;
        one_of("partition.clusterer", &config.partition.clusterer, &clusterers().map(|(name, _)| name))?;
        one_of("partition.rule", &config.partition.rule, &RULES)?;
        order(config)?;
        self.partitioner(config).map(drop)
    }

    fn check_schedule(&self, config: &Config) -> Result<()> {
        let schedule = &config.schedule;
        self.schedule(config)?;
        schedule.lr.iter().try_for_each(|&lr| positive("schedule.lr", lr.into()))?;
        within("schedule.steps", schedule.steps.into(), 1..=1000)?;
        positive("schedule.ridge", schedule.ridge)?;
        if !(schedule.alpha > 0.0 && schedule.alpha <= 1.0) {
            return Err(TrainError::config(format!(
                "schedule.alpha = {}: expected above 0, at most 1",
                schedule.alpha
            )));
        }
        let (horizon, trainers) = (&config.train.horizon, self.schedule(config)?.trainers);
        if let Some(pace) = horizon.iter().find(|pace| !trainers && !matches!(pace, Pace::Epochs(_))) {
            let what = "expected epochs such as \"200 epochs\"; times and steps are those of independent trainers";
            return Err(TrainError::config(format!("train.horizon = \"{pace}\": {what}")));
        }
        schedule.rounds.iter().try_for_each(|&r| within("schedule.rounds", r as usize, 0..=ROUNDS_MAX))?;
        if let Some(HandOnChoice::Columns(columns)) = schedule.hand_on {
            let hidden = config.model.architecture([1, 1].into()).hidden_width(self.layer(config)?);
            if columns == 0 || columns >= hidden {
                let what = format!("expected 1 to {}, fewer than hidden rows have", hidden.saturating_sub(1));
                return Err(TrainError::config(format!("schedule.hand_on.columns = {columns}: {what}")));
            }
        }
        let redraws = self.selection(config)?.redraws;
        let columns = Messages::of(&config.messages, &self.codecs, &[])?.drop_columns();
        for (key, share) in [
            ("schedule.smooth_features", schedule.smooth_features),
            ("schedule.smooth_gradients", schedule.smooth_gradients),
        ] {
            if !(0.0..1.0).contains(&share) {
                return Err(TrainError::config(format!("{key} = {share}: expected 0 or more, below 1")));
            }
            if share > 0.0 && redraws {
                let what = "an average over rows that are drawn anew in every round stands for nothing";
                return Err(TrainError::config(format!("{key} with {}: {what}", selection_of(config))));
            }
            if share > 0.0 && columns == Some(ColumnsLeftOut::Random) {
                let what = "an average over columns that are drawn anew in every round stands for nothing; \
                    columns = \"prefix\" keeps the same ones";
                return Err(TrainError::config(format!("{key} with a mask: {what}")));
            }
        }
        Ok(())
    }

    fn check_propagation(&self, config: &Config) -> Result<()> {
        let (schedule, kind) = (self.schedule(config)?, self.layer(config)?);
        if schedule.propagates.is_none() && !self.selection(config)?.covers {
            return Ok(());
        }
        let architecture = config.model.architecture([1, 1].into());
        let stages = (schedule.stages)(&Blueprint { config, kind, architecture: &architecture });
        let messages = Messages::of(&config.messages, &self.codecs, &stages)?;
        check_covers(self, config, &stages, &messages)?;
        check_propagation((config, kind), &stages, &messages)
    }

    fn check_learned(&self, config: &Config) -> Result<()> {
        let architecture = config.model.architecture([1, 1].into());
        let blueprint = Blueprint { config, kind: self.layer(config)?, architecture: &architecture };
        let stages = (self.schedule(config)?.stages)(&blueprint);
        check_solved(self, config, &stages)?;
        check_power_sgd(self, config, &stages)
    }

    /// A worker that meets nobody knows how many edges it goes without, and nothing else of them.
    fn check_part(&self, config: &Config) -> Result<()> {
        let Some(part) = config.data.part else { return Ok(()) };
        let selection = self.selection(config)?;
        let made = (selection.build)(&config.messages.selection.config().options).map_err(refused_selection)?;
        if !selection.cuts || made.is_none_or(|made| made.deletes_edges()) {
            return Ok(());
        }
        let why = match (config.data.inductive, self.layer(config)?.is_relational) {
            (true, _) => "which of them data.inductive leaves",
            (_, true) => "of which relation they are",
            _ => return Ok(()),
        };
        let what = "messages.selection.degrees = \"global\" counts edges from other parts, and nobody tells";
        Err(TrainError::config(format!("data.part = {part}: {what} {why}")))
    }

    fn check_messages(&self, config: &Config) -> Result<()> {
        check_auto(config)?;
        let messages = Messages::of(&config.messages, &self.codecs, &[])?;
        let trainers = self.schedule(config)?.trainers;
        if (trainers || config.train.sync_every > 1) && messages.round_parameters() && has_batch_norm(config) {
            // Running variances are averaged with the parameters, and one that is rounded can end below 0.
            let (norm, every) = (&config.model.norm, config.train.sync_every);
            let (averages, cure) = match trainers {
                true => (format!("schedule.kind = {:?}", config.schedule.kind), "\"layer\" has none"),
                false => (
                    format!("train.sync_every = {every}"),
                    "\"layer\" has none, and train.sync_every = 1 sends gradients",
                ),
            };
            let how = format!("model.norm = {norm:?} with {averages} and a codec for messages.parameters");
            let what = "running variances would be rounded with the parameters that are averaged";
            return Err(TrainError::config(format!("{how}: {what}; {cure}")));
        }
        if trainers && messages.round_parameters() && messages.remember_parameters() {
            let kind = &config.schedule.kind;
            let what = "a codec that remembers makes no sense of a change without those before it, and a trainer that \
                joins, or rejoins, has not had them";
            return Err(TrainError::config(format!("messages.parameters with schedule.kind = {kind:?}: {what}")));
        }
        let (selection, given) = (self.selection(config)?, config.messages.selection.config().options);
        (selection.build)(&given).map_err(refused_selection)?;
        if let Some((option, _)) = given.iter().find(|(option, _)| !selection.options.contains(option)) {
            let reader = self.selections.iter().find(|other| other.options.contains(&option));
            let hint = reader.map(|other| format!("; {:?} does", other.name)).unwrap_or_default();
            let what = format!("messages.selection.{option}: {:?} does not read it{hint}", selection.name);
            return Err(TrainError::config(what));
        }
        if config.train.sync_every > 1 && messages.follow(Clock::GradientNorm) {
            // What workers add up then is how far parameters moved, which grows with the rate and the rounds between.
            let what = "no gradient is summed over workers there; expected clock = \"epoch\", \"elapsed\" or \"bytes\"";
            let every = config.train.sync_every;
            return Err(TrainError::config(format!(
                "clock = \"gradient_norm\" with train.sync_every = {every}: {what}"
            )));
        }
        if messages.skip.is_some() && messages.drop_columns().is_some() {
            let what = "a message that is skipped stands for whole rows, and only some of their columns have crossed";
            return Err(TrainError::config(format!("messages.skip with a mask: {what}")));
        }
        match messages.same_rows() {
            Some(key) if selection.redraws => {
                let what = "rows that are drawn anew in every round cannot stand in for one another";
                Err(TrainError::config(format!("{key} with {}: {what}", selection_of(config))))
            }
            _ => Ok(()),
        }
    }
}

/// Refuses what follows from counts of all parts where sites have built theirs and nobody has counted.
pub(super) fn refuse_uncounted(config: &Config, task: &TaskKind, counts: &GlobalCounts) -> Result<()> {
    let name = match counts.are_counted() {
        true => return Ok(()),
        false => &counts.dataset,
    };
    let what = "how many nodes all sites have is known to nobody who has one part alone";
    if config.batch.size > 0 {
        let size = config.batch.size;
        return Err(TrainError::config(format!("batch.size = {size}: {name}: {what}; rounds over all nodes need not")));
    }
    if task.of_pairs {
        let kind = task.name;
        return Err(TrainError::config(format!("task.kind = {kind:?}: {name}: {what}; learning classes needs not")));
    }
    Ok(())
}

/// The order of own rows that a configuration names.
pub(super) fn order(config: &Config) -> Result<&'static OrderKind> {
    let name = &config.partition.order;
    one_of("partition.order", name, &ORDERS.map(|kind| kind.name))?;
    OrderKind::from_name(name).ok_or_else(|| TrainError::config(format!("partition.order = {name:?} is unknown")))
}

fn has_batch_norm(config: &Config) -> bool {
    by_name(&NORM_KINDS, &config.model.norm) == Some(NormKind::Batch)
}

/// Refuses statistics of rows where it is open which rows these are.
fn check_norm(config: &Config) -> Result<()> {
    if !has_batch_norm(config) {
        return Ok(());
    }
    let refuse = |with: String, why: &str| {
        let what = format!("model.norm = {:?} with {with}: {why}; \"layer\" needs no other rows", config.model.norm);
        Err(TrainError::config(what))
    };
    if config.batch.size > 0 {
        let why =
            "its statistics are those of all rows, and a node would count once for each worker whose batch reads it";
        return refuse(format!("batch.size = {}", config.batch.size), why);
    }
    if config.data.inductive {
        return refuse("data.inductive = true".to_owned(), "nodes that training does not see would count");
    }
    Ok(())
}

fn selection_of(config: &Config) -> String {
    format!("messages.selection = {}", config.messages.selection.config().kind)
}

/// What a selection says of its options.
pub(super) fn refused_selection(error: WireError) -> TrainError {
    TrainError::config(format!("messages.selection: {error}"))
}

//! What can be checked of a configuration without data.

use super::{Config, RandomSplit, SplitChoice, keys};
use crate::error::{Result, TrainError};

/// Rounds of a stage at most: predictions and ledgers hold an account a round and link.
const ROUNDS_MAX: usize = 1_000_000;

impl Config {
    /// Checks everything that does not depend on data.
    pub fn check(&self) -> Result<()> {
        let positive = |key: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                return Ok(());
            }
            Err(TrainError::config(format!("{key} = {value}: expected a number above 0")))
        };
        let at_least_0 = |key: &str, value: f64| {
            if value.is_finite() && value >= 0.0 {
                return Ok(());
            }
            Err(TrainError::config(format!("{key} = {value}: expected 0 or a number above")))
        };
        let within = |key: &str, value: usize, range: std::ops::RangeInclusive<usize>| {
            if range.contains(&value) {
                return Ok(());
            }
            Err(TrainError::config(format!("{key} = {value}: expected {} to {}", range.start(), range.end())))
        };
        let known = |key: &str, value: &str, names: &[&str]| one_of(key, value, names);
        self.model.check()?;
        positive("train.lr", self.train.lr.into())?;
        self.schedule.lr.iter().try_for_each(|&lr| positive("schedule.lr", lr.into()))?;
        at_least_0("train.weight_decay", self.train.weight_decay.into())?;
        at_least_0("train.momentum", self.train.momentum.into())?;
        at_least_0("train.clip", self.train.clip.into())?;
        at_least_0("train.lr_factor", self.train.lr_factor.into())?;
        positive("transport.deadline_s", self.transport.deadline_s)?;
        within("transport.deadline_s", self.transport.deadline_s as usize, 0..=1_000_000)?;
        within("train.epochs", self.train.epochs as usize, 0..=ROUNDS_MAX)?;
        self.schedule.rounds.iter().try_for_each(|&r| within("schedule.rounds", r as usize, 0..=ROUNDS_MAX))?;
        within("train.threads", self.train.threads, 0..=1024)?;
        within("partition.parts", self.partition.parts as usize, 0..=4096)?;
        at_least_0("partition.imbalance", self.partition.imbalance)?;
        known("partition.objective", &self.partition.objective, &["cut", "volume"])?;
        let methods = laconic_graph::partition::PartitionerRegistry::default().names();
        known("partition.method", &self.partition.method, &methods)?;
        let optimisers: Vec<&str> = laconic_nn::optimiser::OptimiserRegistry::default().names().collect();
        known("train.optimiser", &self.train.optimiser, &optimisers)?;
        let rates: Vec<&str> = laconic_nn::optimiser::RateRegistry::default().names().collect();
        known("train.lr_schedule", &self.train.lr_schedule, &rates)?;
        known("schedule.kind", &self.schedule.kind, &crate::schedule::names())?;
        known("schedule.start", &self.schedule.start, &["features", "mlp"])?;
        known("transport.kind", &self.transport.kind, &["threads", "mpi"])?;
        self.messages.check()?;
        for (key, share) in [
            ("schedule.smooth_features", self.schedule.smooth_features),
            ("schedule.smooth_gradients", self.schedule.smooth_gradients),
        ] {
            if !(0.0..1.0).contains(&share) {
                return Err(TrainError::config(format!("{key} = {share}: expected 0 or more, below 1")));
            }
            if share > 0.0 && self.messages.selection.config().kind == "boundary_sample" {
                let what = "an average over rows that are drawn anew in every round stands for nothing";
                return Err(TrainError::config(format!("{key} with messages.selection = boundary_sample: {what}")));
            }
        }
        within("train.sync_every", self.train.sync_every as usize, 1..=ROUNDS_MAX)?;
        let metrics: Vec<&str> = laconic_nn::metric::Metric::ALL.iter().map(|m| m.name()).collect();
        self.train.metrics.iter().try_for_each(|metric| known("train.metrics", metric, &metrics))?;
        if let SplitChoice::Random(split) = &self.data.split {
            split.spec()?;
        }
        if !self.transport.shape.is_empty() {
            self.transport
                .shape
                .parse::<laconic_wire::LinkShape>()
                .map_err(|e| TrainError::config(format!("transport.shape: {e}")))?;
        }
        Ok(())
    }
}

/// Checks that a value is one of the known names, and suggests the nearest if not.
pub(crate) fn one_of(key: &str, value: &str, names: &[&str]) -> Result<()> {
    if names.contains(&value) {
        return Ok(());
    }
    let hint =
        keys::nearest(value, names.iter().copied()).map(|n| format!("; did you mean {n:?}?")).unwrap_or_default();
    Err(TrainError::config(format!("{key} = {value:?}: expected one of {}{hint}", names.join(", "))))
}

impl RandomSplit {
    /// The split as the graph crate draws it.
    pub fn spec(&self) -> Result<laconic_graph::prepare::SplitSpec> {
        use laconic_graph::prepare::Amount;
        let amount = |key: &str, value: &toml::Value, count: fn(usize) -> Amount| match *value {
            toml::Value::Float(share) if share > 0.0 && share < 1.0 => Ok(Amount::Fraction(share)),
            toml::Value::Integer(number) if (0..=i64::from(u32::MAX)).contains(&number) => Ok(count(number as usize)),
            _ => {
                Err(TrainError::config(format!("data.split.{key} = {value}: expected a fraction in (0, 1) or a count")))
            }
        };
        Ok(laconic_graph::prepare::SplitSpec {
            train: amount("train", &self.train, Amount::PerClass)?,
            val: amount("val", &self.val, Amount::Count)?,
        })
    }
}

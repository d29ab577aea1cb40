//! The configuration: one TOML file is one run. What was typed, section by section.
//!
//! What a key means stands at its field. [`KEYS`] lists all keys from there, and [`schema`] says it for other programs.
//! Names of members are only names here; [`mod@crate::plan`] finds out what they stand for.

pub(crate) mod batch;
mod data;
mod keys;
mod messages;
mod model;
mod named;
mod overrides;
mod pace;
mod partition;
mod policy;
pub mod ramp;
mod reach;
mod schedule;
mod suggest;
mod task;
mod train;
mod transport;
pub(crate) mod typed;
mod usual;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use batch::{BatchConfig, BatchKind};
pub use data::{DataConfig, FeaturePreparation, FeaturesPlace, NamedSplit, RandomSplit, SplitChoice};
#[cfg(test)]
pub(crate) use keys::serialised as serialised_keys;
pub use keys::{KEYS, KeyDoc, schema};
pub use messages::{
    BitsChoice, CodecChoice, CodecConfig, CostsChoice, EachMessage, EvaluationInputs, LayerMessages, MessagesConfig,
    Period, SelectionChoice, SelectionConfig, SkipConfig, WIDTHS, parse_bytes,
};
pub use model::{ModelConfig, Widths};
pub(crate) use overrides::{apply, culprit, write_out};
pub use pace::{Pace, Span};
pub use partition::PartitionConfig;
pub use policy::PolicyConfig;
pub use reach::Reach;
pub use schedule::{
    AggregatorPlace, AveragingConfig, Carried, EvaluationEdges, HandOnChoice, MeansEvaluator, Normalise,
    ScheduleConfig, Start, TrainersHalo, Weighting,
};
pub use suggest::{Meant, meant, suggested};
pub(crate) use suggest::{one_of, refuse_unknown};
pub use task::{EvalNegatives, LinkSplit, LinkSplitChoice, Replacement, TaskChoice, TaskConfig};
pub use train::{
    ClassWeights, Correction, CountedWeights, NamedRank, OuterConfig, PowerSgdConfig, Rank, SelectBy, Stored,
    TrainConfig,
};
pub use transport::{Failing, Fault, FaultKind, OutConfig, TrainerFault, TransportConfig, TransportKind, Who};

/// A whole run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the graph comes from.
    pub data: DataConfig,
    /// Where nodes live.
    pub partition: PartitionConfig,
    /// The layers and their widths.
    pub model: ModelConfig,
    /// What is learned.
    pub task: TaskConfig,
    /// How it is trained.
    pub train: TrainConfig,
    /// On how much at once.
    pub batch: BatchConfig,
    /// When workers exchange.
    pub schedule: ScheduleConfig,
    /// What befalls trainers on purpose.
    #[serde(skip_serializing_if = "is_default")]
    pub averaging: AveragingConfig,
    /// How rows become bytes.
    pub messages: MessagesConfig,
    /// What carries the bytes.
    pub transport: TransportConfig,
    /// What may not leave.
    #[serde(skip_serializing_if = "is_default")]
    pub policy: PolicyConfig,
    /// What is written.
    pub out: OutConfig,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Config {
    /// The seconds that any wait may take.
    pub fn deadline(&self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.transport.deadline_s)
    }

    /// How long a worker waits for another before the first round.
    pub fn start_deadline(&self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.transport.start_deadline_s)
    }

    /// Rounds of stage `index`.
    pub fn rounds_of(&self, index: usize) -> u32 {
        self.schedule.rounds.get(index).copied().unwrap_or(self.train.epochs)
    }

    /// The end of stage `index`: trainers' own, or so many epochs as belong to it.
    pub fn end_of(&self, index: usize) -> Pace {
        self.schedule.limit.unwrap_or(Pace::Epochs(self.rounds_of(index).into()))
    }

    /// Whether it stands for several runs, of which the one that is worth its bytes is kept: `messages = "auto"`, or
    /// `schedule.hand_on = "auto"`.
    pub fn is_several(&self) -> bool {
        self.messages.auto || self.schedule.hand_on == Some(HandOnChoice::Auto)
    }

    /// The key by which it is, as it is written.
    pub fn several_by(&self) -> &'static str {
        if self.messages.auto { "messages = \"auto\"" } else { "schedule.hand_on = \"auto\"" }
    }

    /// The end that the learning rate and ramps of stage `index` run towards.
    pub fn horizon_of(&self, index: usize) -> Pace {
        let given = &self.train.horizon;
        given.get(index).or(given.last()).copied().unwrap_or_else(|| self.end_of(index))
    }

    /// The same run, which continues from where `before` would have ended, with the rates and ramps of that one: they
    /// stay as they ended, since spread anew they would jump.
    #[must_use]
    pub fn keeping_horizon(mut self, before: &Config) -> Config {
        // A stage a layer, and one before them.
        let stages = 0..self.model.layers + 1;
        let is_other = |index| self.end_of(index) != before.horizon_of(index);
        // What has never gone has no rates to keep.
        if stages.clone().any(is_other) && stages.clone().all(|index| before.horizon_of(index) != Pace::Epochs(0)) {
            self.train.horizon = stages.map(|index| before.horizon_of(index)).collect();
            while self.train.horizon.len() > 1 && self.train.horizon.iter().nth_back(1) == self.train.horizon.last() {
                self.train.horizon.pop();
            }
        }
        self
    }

    /// Learning rate of stage `index`.
    pub fn lr_of(&self, index: usize) -> f32 {
        self.schedule.lr.get(index).copied().unwrap_or(self.train.lr)
    }
}

//! The configuration: one TOML file is one run. What was typed, section by section.
//!
//! What a key means and defaults to stands at its field, and [`keys::KEYS`] lists all keys for the command's help.
//! Names of members are only names here; [`mod@crate::plan`] finds out what they stand for.

pub(crate) mod batch;
mod data;
mod keys;
mod messages;
mod model;
mod overrides;
mod pace;
mod partition;
pub mod ramp;
mod reach;
mod schedule;
mod suggest;
mod task;
mod train;
mod transport;
pub(crate) mod typed;
mod usual;

use serde::{Deserialize, Serialize};

pub use batch::{BatchConfig, BatchKind};
pub use data::{DataConfig, FeaturePreparation, FeaturesPlace, NamedSplit, RandomSplit, SplitChoice};
#[cfg(test)]
pub(crate) use keys::serialised as serialised_keys;
pub use keys::{KEYS, KeyDoc};
pub use messages::{
    BitsChoice, CodecChoice, CodecConfig, CostsChoice, EachMessage, EvaluationInputs, LayerMessages, MessagesConfig,
    SelectionChoice, SelectionConfig, SkipConfig, WIDTHS, parse_bytes,
};
pub use model::{ModelConfig, Widths};
pub(crate) use overrides::{apply, culprit};
pub use pace::{Pace, Span};
pub use partition::PartitionConfig;
pub use reach::Reach;
pub use schedule::{
    AggregatorPlace, AveragingConfig, Carried, HandOnChoice, ScheduleConfig, Start, TrainersHalo, Weighting,
};
pub use suggest::{Meant, meant};
pub(crate) use suggest::{one_of, refuse_unknown};
pub use task::{EvalNegatives, LinkSplit, LinkSplitChoice, Replacement, TaskChoice, TaskConfig};
pub use train::{ClassWeights, CountedWeights, SelectBy, Stored, TrainConfig};
pub use transport::{Failing, Fault, FaultKind, OutConfig, TrainerFault, TransportConfig, TransportKind, Who};

/// A whole run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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

    /// Learning rate of stage `index`.
    pub fn lr_of(&self, index: usize) -> f32 {
        self.schedule.lr.get(index).copied().unwrap_or(self.train.lr)
    }
}

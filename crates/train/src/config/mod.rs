//! The configuration: one TOML file is one run.
//!
//! [`Config::load`] reads the file, applies `--set key=value` overrides, refuses unknown keys with a suggestion, and checks what can
//! be checked without data. What a key means and defaults to stands at its field, and [`keys::KEYS`] lists all keys for the command's help.

mod check;
mod keys;
mod messages;
mod model;
mod overrides;
pub mod ramp;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};
use crate::selection::Scope;
use crate::selection::Selection;

pub(crate) use check::one_of;
pub use keys::{KEYS, KeyDoc};
pub use messages::{
    BitsChoice, CodecChoice, CodecConfig, LayerMessages, MessagesConfig, SelectionChoice, SelectionConfig, SkipConfig,
    WIDTHS,
};

/// A whole run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the graph comes from.
    pub data: DataConfig,
    /// Where nodes live.
    pub partition: PartitionConfig,
    /// The model.
    pub model: ModelConfig,
    /// How it is trained.
    pub train: TrainConfig,
    /// When workers exchange.
    pub schedule: ScheduleConfig,
    /// How rows become bytes.
    pub messages: MessagesConfig,
    /// What carries the bytes.
    pub transport: TransportConfig,
    /// What is written.
    pub out: OutConfig,
}

/// `[data]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataConfig {
    /// A dataset in any format that is recognised, or a folder of parts. Relative to the current folder or, if it is not there,
    /// to the configuration file's.
    pub path: PathBuf,
    /// Features from another file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features_path: Option<PathBuf>,
    /// A node table for an edge list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes_path: Option<PathBuf>,
    /// Whether every edge also gets its reverse.
    pub symmetrise: bool,
    /// How features are prepared.
    pub features: FeaturePreparation,
    /// Which nodes train, validate and test.
    pub split: SplitChoice,
    /// Which of the data's splits, where it has several.
    pub split_index: usize,
}

impl Default for DataConfig {
    fn default() -> Self {
        DataConfig {
            path: PathBuf::new(),
            features_path: None,
            nodes_path: None,
            symmetrise: false,
            features: FeaturePreparation::Given,
            split: SplitChoice::Named(NamedSplit::Given),
            split_index: 0,
        }
    }
}

/// `data.features`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeaturePreparation {
    /// As they are.
    Given,
    /// Each row divided by its sum.
    RowNormalised,
    /// Each column with mean 0 and standard deviation 1 over the training rows.
    Standardised,
}

/// `data.split`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SplitChoice {
    /// The data's own.
    Named(NamedSplit),
    /// Drawn at random.
    Random(RandomSplit),
}

/// `data.split = "given"`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedSplit {
    /// The data's own split.
    Given,
}

/// `data.split = { train = …, val = …, seed = … }`; what is left over tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomSplit {
    /// A fraction of the labelled nodes (0.6), or a number of nodes of each class (20).
    pub train: toml::Value,
    /// A fraction of the labelled nodes (0.2), or a number of nodes in all (500).
    pub val: toml::Value,
    /// The seed of the draw.
    #[serde(default)]
    pub seed: u64,
}

/// `[partition]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PartitionConfig {
    /// The number of parts, one worker each; 0 stands for 4, or under MPI for the number of processes.
    pub parts: u32,
    /// `random`, `multilevel`, `given`.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// What `multilevel` minimises: `cut` or `volume`.
    pub objective: String,
    /// Whether `multilevel` also balances training nodes.
    pub balance_train: bool,
    /// How much larger than the mean `multilevel` may make a part (0.05: 5 %).
    pub imbalance: f64,
    /// The assignment for `given`: one part number a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

impl Default for PartitionConfig {
    fn default() -> Self {
        PartitionConfig {
            parts: 0,
            method: "random".to_owned(),
            seed: 0,
            objective: "cut".to_owned(),
            balance_train: false,
            imbalance: laconic_graph::partition::IMBALANCE_DEFAULT,
            file: None,
        }
    }
}

/// `[model]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// `gcn`, `sage`, `gin`, `gat`, `mlp`.
    pub arch: String,
    /// Number of layers.
    pub layers: usize,
    /// Width between layers; for gat all heads together.
    pub hidden: usize,
    /// Attention heads.
    pub heads: usize,
    /// `concat` (hidden layers concatenate heads, the last has one) or `mean` (every layer averages its heads).
    pub head_merge: String,
    /// `mean` or `max`, for sage.
    pub aggregator: String,
    /// Whether gin learns ε.
    pub learn_epsilon: bool,
    /// The share of each layer's input values that is dropped in training.
    pub dropout: f32,
    /// `none` or `layer`: LayerNorm after each hidden layer.
    pub norm: String,
    /// Whether every node is its own neighbour; by default for gcn and gat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_loops: Option<bool>,
}

impl Default for ModelConfig {
    fn default() -> Self {
        ModelConfig {
            arch: "sage".to_owned(),
            layers: 2,
            hidden: 256,
            heads: 8,
            head_merge: "concat".to_owned(),
            aggregator: "mean".to_owned(),
            learn_epsilon: true,
            dropout: 0.3,
            norm: "layer".to_owned(),
            self_loops: None,
        }
    }
}

/// `[train]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Rounds; per stage when lazy. One round is one full-batch step.
    pub epochs: u32,
    /// Learning rate.
    pub lr: f32,
    /// L2 penalty, or decoupled decay with adamw.
    pub weight_decay: f32,
    /// `adam`, `adamw`, `sgd`.
    pub optimiser: String,
    /// Momentum of sgd.
    pub momentum: f32,
    /// `constant`, `linear`, `cosine`, `step`.
    pub lr_schedule: String,
    /// Rounds between two falls of `step`.
    pub lr_step: u32,
    /// What `step` multiplies the rate by.
    pub lr_factor: f32,
    /// Rounds over which the rate first rises.
    pub warmup: u32,
    /// The largest norm of the gradient; 0 for none.
    pub clip: f32,
    /// Rounds between two reductions: with 1 gradients are added up every round, with more each worker trains on its own rows in
    /// between and then parameters are averaged, weighted by training rows.
    pub sync_every: u32,
    /// The seed of initial values, dropout and everything else but data and partition.
    pub seed: u64,
    /// Rounds between two evaluations; 0 evaluates only after the last.
    pub eval_every: u32,
    /// Evaluations without a better one after which a stage ends; 0 for never.
    pub patience: u32,
    /// The metrics; the first chooses the best round. Empty: accuracy, or micro_f1 with several labels a node.
    pub metrics: Vec<String>,
    /// Compute threads of a worker; 0 divides the machine's cores between the workers on it.
    pub threads: usize,
}

impl Default for TrainConfig {
    fn default() -> Self {
        TrainConfig {
            epochs: 200,
            lr: 0.01,
            weight_decay: 5e-4,
            optimiser: "adam".to_owned(),
            momentum: 0.9,
            lr_schedule: "constant".to_owned(),
            lr_step: 100,
            lr_factor: 0.1,
            warmup: 0,
            clip: 0.0,
            sync_every: 1,
            seed: 0,
            eval_every: 1,
            patience: 0,
            metrics: Vec::new(),
            threads: 0,
        }
    }
}

/// `[schedule]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleConfig {
    /// `synchronous`, `pipelined`, `lazy`.
    pub kind: String,
    /// Synchronous: whether the first layer's halo, which never changes, is fetched once and kept.
    pub cache_inputs: bool,
    /// Whether work goes on while messages travel. Changes the speed and not one bit of the result.
    pub overlap: bool,
    /// Pipelined: the share of the average in what stands for last round's rows; 0 takes them as they are.
    pub smooth_features: f32,
    /// Pipelined: the same for gradients of halo rows.
    pub smooth_gradients: f32,
    /// Lazy: `features` (features cross once, then hidden rows) or `mlp` (only class scores cross).
    pub start: String,
    /// Lazy: rounds of each stage; stages beyond the list take `train.epochs`.
    pub rounds: Vec<u32>,
    /// Lazy: learning rate of each stage; stages beyond the list take `train.lr`.
    pub lr: Vec<f32>,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        ScheduleConfig {
            kind: "synchronous".to_owned(),
            cache_inputs: true,
            overlap: true,
            smooth_features: 0.0,
            smooth_gradients: 0.0,
            start: "features".to_owned(),
            rounds: Vec::new(),
            lr: Vec::new(),
        }
    }
}

/// `[transport]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransportConfig {
    /// `threads` or `mpi`.
    pub kind: String,
    /// Seconds that a worker waits for another before it gives up and says for whom.
    pub deadline_s: f64,
    /// A link model: a named link (`wan-100mbit-40ms`) or numbers (`100mbit,40ms`). Empty: as fast as it goes.
    pub shape: String,
    /// Whether the link model really waits rather than keeping a virtual clock.
    pub shape_sleeps: bool,
    /// A fault to rehearse: `{ rank = 1, round = 3, kind = "crash" }` or `"stall"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// `transport.fault`: a rehearsal of what happens when a worker fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The worker that fails.
    pub rank: u32,
    /// The round before which it fails.
    pub round: u32,
    /// How it fails.
    pub kind: FaultKind,
}

/// How a worker fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// It ends with an error.
    Crash,
    /// It says nothing for three deadlines.
    Stall,
}

impl Default for TransportConfig {
    fn default() -> Self {
        TransportConfig {
            kind: "threads".to_owned(),
            deadline_s: 60.0,
            shape: String::new(),
            shape_sleeps: false,
            fault: None,
        }
    }
}

/// `[out]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutConfig {
    /// The run's folder; `runs/<configuration file's name>` if empty.
    pub dir: PathBuf,
    /// Rounds between two checkpoints; 0: only at the end of a stage and on Ctrl-C.
    pub checkpoint_every: u32,
}

impl Config {
    /// Reads a configuration file and applies overrides of the form `key=value`.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Config> {
        const BYTES_MAX: u64 = 1 << 20;
        let size = std::fs::metadata(path).map_err(|source| TrainError::io(path, source))?.len();
        if size > BYTES_MAX {
            return Err(TrainError::file(
                path,
                format!("expected a configuration of at most {BYTES_MAX} bytes, found {size}"),
            ));
        }
        let text = std::fs::read_to_string(path).map_err(|source| TrainError::io(path, source))?;
        let mut config = Config::parse(&text, overrides).map_err(|error| {
            TrainError::config(format!("{}: {error}", path.display()).replace("configuration: ", ""))
        })?;
        if config.out.dir.as_os_str().is_empty() {
            config.out.dir = Path::new("runs").join(path.file_stem().unwrap_or_default());
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        for named in [
            Some(&mut config.data.path),
            config.data.features_path.as_mut(),
            config.data.nodes_path.as_mut(),
            config.partition.file.as_mut(),
        ]
        .into_iter()
        .flatten()
        {
            if named.as_os_str().is_empty() {
                continue;
            }
            if !named.exists() && folder.join(&*named).exists() {
                *named = folder.join(&*named);
            }
            // So that the run can be resumed, predicted and exported from any folder.
            *named = std::path::absolute(&*named).map_err(|source| TrainError::io(&*named, source))?;
        }
        Ok(config)
    }

    /// Reads a configuration from its text and applies overrides.
    pub fn parse(text: &str, overrides: &[String]) -> Result<Config> {
        let mut table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| TrainError::config(error.to_string().trim_end()))?;
        for text in overrides {
            overrides::apply(&mut table, text)?;
        }
        keys::refuse_unknown(&table)?;
        let config: Config =
            table.try_into().map_err(|error: toml::de::Error| TrainError::config(error.to_string().trim_end()))?;
        config.check()?;
        Ok(config)
    }

    /// The configuration with what the number of workers and the model decide filled in, so that the run can be repeated from it.
    pub fn resolved(&self, parts: u32) -> Config {
        let mut config = self.clone();
        config.partition.parts = parts;
        config.model.self_loops = Some(self.model.has_self_loops());
        config
    }

    /// The configuration as TOML.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| TrainError::config(format!("cannot be written as TOML: {error}")))
    }

    /// A digest of what a checkpoint depends on: everything that decides shapes or numbers, but neither paths nor the number of rounds.
    pub fn fingerprint(&self) -> String {
        let data = DataConfig { path: PathBuf::new(), features_path: None, nodes_path: None, ..self.data.clone() };
        let partition = PartitionConfig { file: None, ..self.partition.clone() };
        let schedule = (&self.schedule.kind, &self.schedule.start);
        let schedule = (schedule, self.schedule.smooth_features, self.schedule.smooth_gradients);
        let train = (self.train.seed, &self.train.optimiser, self.train.sync_every);
        let messages = MessagesConfig { costs: String::new(), ..self.messages.clone() };
        let text = format!("{data:?} {partition:?} {:?} {schedule:?} {train:?} {messages:?}", self.model);
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// Which rows evaluations exchange.
    pub fn evaluation_scope(&self) -> Scope {
        if self.messages.evaluation == CodecChoice::named("none") { Scope::Nothing } else { Scope::Whole }
    }

    /// The selection; `None` where every row travels.
    pub fn selection(&self) -> Option<Box<dyn Selection>> {
        let SelectionConfig { kind, rate } = self.messages.selection.config();
        let whole = kind == "all" || (kind == "boundary_sample" && rate >= 1.0);
        if whole { None } else { crate::selection::named(&kind, rate) }
    }

    /// The seconds that any wait may take.
    pub fn deadline(&self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.transport.deadline_s)
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

#[cfg(test)]
mod tests;

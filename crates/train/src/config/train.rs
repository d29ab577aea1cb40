//! `[train]`: how the model is trained.

use laconic_nn::Precision;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::pace::Pace;

/// `[train]`: how the model is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Rounds over all training nodes, or with batch.size epochs of batches; per stage when lazy.
    pub epochs: u32,
    /// Learning rate of a step, before train.lr_schedule.
    pub lr: f32,
    /// L2 penalty; decoupled decay with adamw.
    pub weight_decay: f32,
    /// adam | adamw | sgd.
    pub optimiser: String,
    /// sgd: share of the last step that is taken once more.
    pub momentum: f32,
    /// adam, adamw: what is added to the size of gradients that a step is divided by.
    pub epsilon: f32,
    /// constant | linear | cosine | step.
    pub lr_schedule: String,
    /// step: rounds between two falls of the rate.
    pub lr_step: u32,
    /// step: what multiplies the rate then.
    pub lr_factor: f32,
    /// Rounds over which the rate first rises.
    pub warmup: u32,
    /// The end, of each stage, that train.lr_schedule and ramps of messages run towards, such as ["200 epochs"]; behind
    /// it they stay as they ended; `resume` with another end keeps that of before, and train.horizon=[] spreads them
    /// anew ([]: the end of the stage: train.epochs, schedule.rounds or schedule.limit).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub horizon: Vec<Pace>,
    /// Largest norm of the gradient, 0 for none.
    pub clip: f32,
    /// Without batches: make rows, folds and messages that the backward pass reads again rather than keep them
    /// (activation checkpointing): less memory, more time, same bits.
    pub recompute: bool,
    /// f32 | bf16: how features, rows between layers and their gradients are stored; bf16 takes little more than half
    /// the memory, and where the processor multiplies it half to two thirds of the time (gat: five sixths). Parameters,
    /// logits and the optimiser stay f32; one worker and several then differ by the rounding of sums to 8 bits, in
    /// losses by some per cent.
    pub precision: Stored,
    /// Rounds between two reductions; above 1 models are averaged, weighted by training rows, instead of gradients
    /// added.
    pub sync_every: u32,
    /// With train.sync_every above 1: models are averaged earlier, too, where one of them has moved this far since the
    /// last mean, by norm and as a share of that mean's, such as 0.05; train.sync_every is then the most rounds between
    /// two means (averaged at train.sync_every alone).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_drift: Option<f64>,
    /// With train.sync_drift: rounds after which workers ask each other whether a model has moved so far, and so the
    /// fewest between two means; train.sync_every is a multiple of it.
    pub sync_least: u32,
    /// { lr = 0.7, momentum = 0.9 }: with train.sync_every above 1, what models have moved since the last mean is the
    /// gradient of a step of SGD with Nesterov's momentum (the mean is taken as it is).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer: Option<OuterConfig>,
    /// scaffold: with train.sync_every above 1, each worker's gradients are corrected by how its own mean gradient has
    /// differed from that of all; a mean sends twice as much (none).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<Correction>,
    /// { rank = 4 }: gradients of matrices are added up as two factors of that many columns, a number or "classes"
    /// (PowerSGD), with error feedback; with train.sync_every = 1, where messages.parameters are exact (as they are).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_sgd: Option<PowerSgdConfig>,
    /// Seed of initial values, dropout and everything else but the data, their splits and the partition.
    pub seed: u64,
    /// Rounds between two evaluations, 0: only after the last.
    pub eval_every: u32,
    /// Evaluations without a better one that end a stage (early stopping), 0: never.
    pub patience: u32,
    /// metric | loss: which of the validation nodes' chooses the best round; patience waits for it; where the metric is
    /// not defined, the loss does.
    pub select_by: SelectBy,
    /// What classes count for in the loss of training: balanced (all alike together, by how many training nodes of each
    /// all workers have), or a number a class in the order of their numbers; with several labels a node, a label that
    /// is there against one that is not (all 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_weights: Option<ClassWeights>,
    /// accuracy | micro_f1 | macro_f1 | roc_auc | roc_auc_exact; of links mrr | hits@10, 20, 50, 100 | recall@10, … |
    /// ndcg@10, … | roc_auc | roc_auc_exact; the first is the one that may choose the best round. Ranks are those of
    /// each held-out edge among pairs of its own source: mrr is the mean of 1 by the rank, recall@k the share of ranks
    /// up to k, ndcg@k the mean of 1 by log2(1 + rank) of those; hits@K is the share of edges above the K-th best of
    /// one pool for all (its size is printed beside it, and fewer than K leave it undefined). macro_f1 is the mean over
    /// classes that occur or are predicted; roc_auc is from counts in bins of the score (a note says how far off it may
    /// be), roc_auc_exact sends every labelled node's scores and labels, of links the scores of every held-out edge and
    /// its pair, to every worker; one may stand alone, without a list ([]: accuracy; micro_f1 with several labels a
    /// node; mrr and hits@50 of links).
    #[serde(deserialize_with = "one_or_several")]
    #[schemars(with = "Words")]
    pub metrics: Vec<String>,
    /// Tell worker 0 the figures of each part's own validation and test nodes, and how many of each class were taken
    /// for which, with each checkpoint and at the end: what summary.json has of parts and classes (true).
    #[serde(skip_serializing_if = "is_true")]
    pub part_figures: bool,
    /// Compute threads of a worker, 0: share the machine.
    pub threads: usize,
}

/// What earlier programs did without saying so.
fn is_true(value: &bool) -> bool {
    *value
}

/// A word, or a list of words.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Words {
    /// One.
    One(String),
    /// A list of them.
    Several(Vec<String>),
}

/// Words, of which one may stand alone.
fn one_or_several<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match Words::deserialize(from)? {
        Words::One(word) => vec![word],
        Words::Several(words) => words,
    })
}

impl Default for TrainConfig {
    fn default() -> Self {
        TrainConfig {
            epochs: 200,
            lr: 0.01,
            weight_decay: 5e-4,
            optimiser: "adam".to_owned(),
            momentum: 0.9,
            epsilon: 1e-8,
            lr_schedule: "constant".to_owned(),
            lr_step: 100,
            lr_factor: 0.1,
            warmup: 0,
            horizon: Vec::new(),
            clip: 0.0,
            recompute: false,
            precision: Stored::F32,
            sync_every: 1,
            sync_drift: None,
            sync_least: 1,
            outer: None,
            correction: None,
            power_sgd: None,
            seed: 0,
            eval_every: 1,
            patience: 0,
            select_by: SelectBy::Metric,
            class_weights: None,
            metrics: Vec::new(),
            part_figures: true,
            threads: 0,
        }
    }
}

/// `train.outer`: the step that is taken from one mean of models to the next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OuterConfig {
    /// How much of the step is taken; with 1 and no momentum it leads to the mean.
    pub lr: f32,
    /// Share of the steps before that is taken once more.
    pub momentum: f32,
}

impl Default for OuterConfig {
    fn default() -> Self {
        OuterConfig { lr: 0.7, momentum: 0.9 }
    }
}

/// `train.correction`: what is added to the gradients of workers whose models are averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Correction {
    /// Control variates (Karimireddy et al., 2020).
    Scaffold,
}

/// `train.power_sgd`: gradients of matrices as products of two factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PowerSgdConfig {
    /// Columns of each factor.
    pub rank: Rank,
}

impl Default for PowerSgdConfig {
    fn default() -> Self {
        PowerSgdConfig { rank: Rank::Number(4) }
    }
}

/// `train.power_sgd.rank`: how many directions are left of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, try_from = "toml::Value")]
#[schemars(!try_from)]
pub enum Rank {
    /// So many.
    Number(u32),
    /// By what is learned.
    Named(NamedRank),
}

/// `train.power_sgd.rank = "classes"`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NamedRank {
    /// As many as the last layer has outputs.
    Classes,
}

impl Rank {
    /// Ranks that can be asked for.
    const ALL: std::ops::RangeInclusive<i64> = 1..=1024;

    /// How many directions it is where the last layer has so many outputs.
    pub fn of(self, outputs: usize) -> usize {
        match self {
            Rank::Number(rank) => rank as usize,
            Rank::Named(NamedRank::Classes) => outputs,
        }
    }
}

impl TryFrom<toml::Value> for Rank {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, Self::Error> {
        match (value.as_integer(), value.as_str()) {
            (Some(rank), _) if Rank::ALL.contains(&rank) => Ok(Rank::Number(rank as u32)),
            (_, Some("classes")) => Ok(Rank::Named(NamedRank::Classes)),
            _ => Err(format!("rank = {value}: expected a whole number from 1 to 1024, or \"classes\"")),
        }
    }
}

/// `train.class_weights`: what each class counts for in the loss of training. Figures do not know of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, try_from = "toml::Value")]
#[schemars(!try_from)]
pub enum ClassWeights {
    /// By how many training nodes there are.
    Counted(CountedWeights),
    /// A number a class.
    Given(Vec<f32>),
}

/// `train.class_weights = "balanced"`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CountedWeights {
    /// All classes count for as much together. With several labels a node: a label's nodes that have it count for as
    /// much as those that have it not.
    Balanced,
}

impl TryFrom<toml::Value> for ClassWeights {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, Self::Error> {
        let number = |value: &toml::Value| match value {
            toml::Value::Integer(number) => Some(*number as f32),
            value => value.as_float().map(|number| number as f32),
        };
        let given = value.as_array().and_then(|list| list.iter().map(number).collect::<Option<Vec<f32>>>());
        match (value.as_str(), given) {
            (Some("balanced"), _) => Ok(ClassWeights::Counted(CountedWeights::Balanced)),
            (_, Some(given)) => Ok(ClassWeights::Given(given)),
            _ => Err(format!("expected \"balanced\" or a number for each class, found {value}")),
        }
    }
}

/// `train.precision`: how features, rows between layers and their gradients are stored. Parameters, their gradients,
/// logits and the optimiser's moments are `f32` either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stored {
    /// As `f32`.
    F32,
    /// As bfloat16, in half the memory.
    Bf16,
}

impl From<Stored> for Precision {
    fn from(stored: Stored) -> Precision {
        match stored {
            Stored::F32 => Precision::F32,
            Stored::Bf16 => Precision::Bf16,
        }
    }
}

/// `train.select_by`: what chooses the best round by validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SelectBy {
    /// The first of the metrics, the largest.
    Metric,
    /// The loss, the smallest.
    Loss,
}

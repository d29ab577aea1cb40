//! `[train]`: how the model is trained.

use laconic_nn::Precision;
use serde::{Deserialize, Deserializer, Serialize};

use super::pace::Pace;

/// `[train]`: how the model is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Rounds; per stage when lazy. One round is one full-batch step.
    pub epochs: u32,
    /// The base learning rate.
    pub lr: f32,
    /// L2 penalty, or decoupled decay with adamw.
    pub weight_decay: f32,
    /// `adam`, `adamw`, `sgd`.
    pub optimiser: String,
    /// Momentum of sgd.
    pub momentum: f32,
    /// What adam and adamw add to the size of gradients before they divide by it.
    pub epsilon: f32,
    /// `constant`, `linear`, `cosine`, `step`.
    pub lr_schedule: String,
    /// Rounds between two falls of `step`.
    pub lr_step: u32,
    /// What `step` multiplies the rate by.
    pub lr_factor: f32,
    /// Rounds over which the rate first rises.
    pub warmup: u32,
    /// The end that falling rates and ramps of messages run towards, of each stage, the last for all further ones:
    /// epochs, and of independent trainers steps or a time as well. Empty: the end of the stage. A run that is resumed
    /// with another end keeps that of before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub horizon: Vec<Pace>,
    /// The largest norm of the gradient; 0 for none.
    pub clip: f32,
    /// Whether rows and folds that the backward pass could read are recomputed rather than kept (activation
    /// checkpointing): less memory, more time, and the same bits.
    pub recompute: bool,
    /// How features, rows between layers and their gradients are stored.
    pub precision: Stored,
    /// Rounds between two reductions: with 1 gradients are added up every round, with more each worker trains on its
    /// own rows in between and then parameters are averaged, weighted by training rows.
    pub sync_every: u32,
    /// The seed of initial values, dropout and everything else but data and partition.
    pub seed: u64,
    /// Rounds between two evaluations; 0 evaluates only after the last.
    pub eval_every: u32,
    /// Evaluations without a better one after which a stage ends; 0 for never.
    pub patience: u32,
    /// What chooses the best round by validation, and what patience waits for.
    pub select_by: SelectBy,
    /// What each class counts for in the loss; nothing: all alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_weights: Option<ClassWeights>,
    /// The metrics; the first chooses the best round, unless the loss does. Empty: accuracy, or micro_f1 with several
    /// labels a node. One may stand alone, without a list.
    #[serde(deserialize_with = "one_or_several")]
    pub metrics: Vec<String>,
    /// Whether worker 0 is told the figures of each part's own validation and test nodes, and how many of each class
    /// were taken for which.
    #[serde(skip_serializing_if = "is_true")]
    pub part_figures: bool,
    /// Compute threads of a worker; 0 divides the machine's cores between the workers on it.
    pub threads: usize,
}

/// What earlier programs did without saying so.
fn is_true(value: &bool) -> bool {
    *value
}

/// A word, or a list of words.
fn one_or_several<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        One(String),
        Several(Vec<String>),
    }
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

/// `train.class_weights`: what each class counts for in the loss of training. Figures do not know of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, try_from = "toml::Value")]
pub enum ClassWeights {
    /// By how many training nodes there are.
    Counted(CountedWeights),
    /// A number a class.
    Given(Vec<f32>),
}

/// `train.class_weights = "balanced"`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectBy {
    /// The first of the metrics, the largest.
    Metric,
    /// The loss, the smallest.
    Loss,
}

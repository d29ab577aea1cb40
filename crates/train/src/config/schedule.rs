//! `[schedule]`: when workers exchange.

use std::time::Duration;

use laconic_nn::architecture::Handed;
use laconic_wire::codec::Options;
use serde::{Deserialize, Serialize};

use super::pace::{Pace, Span};

/// `[schedule]`: when workers exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleConfig {
    /// `synchronous`, `pipelined`, `lazy`; `averaging`, `psgd_pa`, `llcg` with independent trainers; `ggs`.
    pub kind: String,
    /// Synchronous: whether the first layer's halo, which never changes, is fetched once and kept.
    pub cache_inputs: bool,
    /// Whether work goes on while messages travel. Changes the speed and not one bit of the result.
    pub overlap: bool,
    /// Pipelined, and trainers with stale rows: what crosses where messages are products with weights.
    pub late: Carried,
    /// Pipelined: the share of the average in what stands for last round's rows; 0 takes them as they are.
    pub smooth_features: f32,
    /// Pipelined: the same for gradients of halo rows.
    pub smooth_gradients: f32,
    /// Lazy: `features` (features cross once, then what stages hand on) or `mlp` (only what stages hand on crosses).
    pub start: Start,
    /// Lazy: what a stage hands on to the next, `scores`, `hidden` or `{ columns = k }`. Not given: `hidden` from
    /// features, `scores` from an mlp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hand_on: Option<HandOnChoice>,
    /// Lazy: rounds of each stage; stages beyond the list take `train.epochs`.
    pub rounds: Vec<u32>,
    /// Lazy: learning rate of each stage; stages beyond the list take `train.lr`.
    pub lr: Vec<f32>,
    /// Trainers: how far the mean of one time is from the next.
    pub interval: Pace,
    /// Trainers: when the run ends; `train.epochs` epochs if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Pace>,
    /// Trainers: what each model counts for in a mean.
    pub mean: Weighting,
    /// Trainers: models that a mean is taken of at least; 0 for more than half.
    pub quorum: u32,
    /// Trainers: how long the others have once so many have answered.
    pub grace: Span,
    /// Trainers: what they know of each other's nodes.
    pub halo: TrainersHalo,
    /// Trainers with stale rows: after how many means they tell each other rows again.
    pub refresh: u32,
    /// Trainers: whether the aggregator has a process of its own, or the trainer of a part lives in it.
    pub aggregator: AggregatorPlace,
    /// Trainers: who evaluates means, `aggregator` or `workers`. Not given: the workers where the data are a folder of
    /// parts, so that nobody reads more than its own, else the aggregator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluator: Option<MeansEvaluator>,
    /// Trainers that evaluate means: over which edges.
    pub evaluate: EvaluationEdges,
    /// LLCG: steps of correction after each mean, on the whole graph.
    pub corrections: u32,
    /// Keys of members from outside.
    #[serde(flatten)]
    pub own: Options,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        ScheduleConfig {
            kind: "synchronous".to_owned(),
            cache_inputs: true,
            overlap: true,
            late: Carried::Rows,
            smooth_features: 0.0,
            smooth_gradients: 0.0,
            start: Start::Features,
            hand_on: None,
            rounds: Vec::new(),
            lr: Vec::new(),
            interval: Pace::Epochs(1),
            limit: None,
            mean: Weighting::Uniform,
            quorum: 0,
            grace: Span(Duration::from_secs(10)),
            halo: TrainersHalo::None,
            refresh: 1,
            aggregator: AggregatorPlace::Own,
            evaluator: None,
            evaluate: EvaluationEdges::Halo,
            corrections: 2,
            own: Options::default(),
        }
    }
}

impl ScheduleConfig {
    /// What lazy stages hand on.
    pub fn hand_on(&self) -> Handed {
        match (self.hand_on, self.start) {
            (Some(HandOnChoice::Hidden), _) | (None, Start::Features) => Handed::Hidden,
            (Some(HandOnChoice::Scores), _) | (None, Start::Mlp) => Handed::Scores,
            (Some(HandOnChoice::Columns(columns)), _) => Handed::Columns(columns),
        }
    }
}

/// `schedule.late`: what crosses late where messages are products of rows with weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carried {
    /// The rows, of which the receiver makes messages with the weights of now.
    Rows,
    /// The messages, made with the weights of the round that they were sent in: narrower, and staler.
    Products,
}

/// `schedule.mean`: what a trainer's model counts for in a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weighting {
    /// All count alike, as in RandomTMA and SuperTMA.
    #[default]
    Uniform,
    /// By training rows, as in LLCG.
    Rows,
    /// By the steps since the last mean.
    Steps,
}

/// `schedule.halo`: what trainers know of each other's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrainersHalo {
    /// Nothing: each trains on the graph of its own nodes.
    None,
    /// The aggregates of each stage's inputs, exchanged once before the stage, as in lazy training.
    Frozen,
    /// Rows of all layers: of the first one's inputs once, of the others whenever they come, told again every so many
    /// means and never waited for.
    Stale,
}

/// `schedule.evaluator`: who evaluates means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeansEvaluator {
    /// The aggregator, which holds the whole graph.
    #[default]
    Aggregator,
    /// All workers together, each for its own nodes; the aggregator holds no part.
    Workers,
}

/// `schedule.evaluate`: over which edges workers evaluate means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationEdges {
    /// All: rows of other workers' nodes cross for it.
    Halo,
    /// Those between a worker's own nodes; counts alone cross.
    Local,
}

/// `schedule.aggregator`: in whose process models are averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "toml::Value", into = "toml::Value")]
pub enum AggregatorPlace {
    /// In one of its own.
    Own,
    /// In that of the trainer of this part.
    Part(u32),
}

impl TryFrom<toml::Value> for AggregatorPlace {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, Self::Error> {
        match (value.as_str(), value.as_integer().map(u32::try_from)) {
            (Some("own"), _) => Ok(AggregatorPlace::Own),
            (_, Some(Ok(part))) => Ok(AggregatorPlace::Part(part)),
            _ => Err(format!("expected \"own\" or the number of a part, found {value}")),
        }
    }
}

impl From<AggregatorPlace> for toml::Value {
    fn from(place: AggregatorPlace) -> toml::Value {
        match place {
            AggregatorPlace::Own => toml::Value::String("own".to_owned()),
            AggregatorPlace::Part(part) => toml::Value::Integer(part.into()),
        }
    }
}

/// `schedule.start`: what lazy training starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Features cross once, then hidden rows.
    Features,
    /// A perceptron on own features; raw features never cross.
    Mlp,
}

/// `schedule.hand_on`: what a stage of lazy training hands on to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", try_from = "toml::Value")]
pub enum HandOnChoice {
    /// The class scores of its throw-away classifier.
    Scores,
    /// Its hidden rows.
    Hidden,
    /// So many columns, a linear map of the hidden rows that is trained with the stage.
    Columns(usize),
}

impl TryFrom<toml::Value> for HandOnChoice {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, Self::Error> {
        let columns = match &value {
            toml::Value::Table(table) if table.len() == 1 => table.get("columns").and_then(toml::Value::as_integer),
            _ => None,
        };
        match (value.as_str(), columns.map(usize::try_from)) {
            (Some("scores"), _) => Ok(HandOnChoice::Scores),
            (Some("hidden"), _) => Ok(HandOnChoice::Hidden),
            (_, Some(Ok(columns))) => Ok(HandOnChoice::Columns(columns)),
            _ => Err(format!("expected \"scores\", \"hidden\" or {{ columns = k }}, found {value}")),
        }
    }
}

/// `[averaging]`: what befalls trainers on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AveragingConfig {
    /// Parts whose trainers never start, so that nobody ever sees their nodes: the published protocol of failed
    /// trainers.
    pub drop: Vec<u32>,
}

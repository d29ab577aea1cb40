//! `[schedule]`: when workers exchange.

use std::time::Duration;

use laconic_nn::architecture::Handed;
use laconic_wire::codec::Options;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::batch::NameOrNumber;
use super::pace::{Pace, Span};

/// `[schedule]`: when workers exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ScheduleConfig {
    /// synchronous | pipelined | lazy | ggs: workers exchange rows; averaging | psgd_pa | llcg: independent trainers,
    /// whose models are averaged; label_propagation: no model, training labels pass along edges; correct_and_smooth:
    /// they do so after a model was trained; ridge: a linear model, solved in one round from sums over all workers.
    pub kind: String,
    /// synchronous, pipelined, ggs, correct_and_smooth: fetch the first layer's halo once.
    pub cache_inputs: bool,
    /// Work while messages travel; same bits either way.
    pub overlap: bool,
    /// averaging, pipelined: what crosses where messages are products with weights: rows, products.
    pub late: Carried,
    /// pipelined: share of the moving average in late rows, 0: none; the paper has 0.95.
    pub smooth_features: f32,
    /// pipelined: the same for late gradients.
    pub smooth_gradients: f32,
    /// lazy, averaging: features | mlp: features cross once, then what stages hand on; or never, only what stages hand
    /// on does.
    pub start: Start,
    /// lazy, averaging: what a stage hands on: scores | hidden | { columns = k }, a learned map of the hidden rows to k
    /// columns | auto: several runs, from what sends least up, of which that is kept which is worth its bytes by
    /// validation (start = features: hidden; mlp: scores).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hand_on: Option<HandOnChoice>,
    /// lazy, averaging: rounds of each stage ([]: train.epochs).
    pub rounds: Vec<u32>,
    /// lazy, averaging: learning rate of each stage ([]: train.lr).
    pub lr: Vec<f32>,
    /// label_propagation, correct_and_smooth: how often rows of numbers a class are replaced by what neighbours have of
    /// them; correct_and_smooth does so for errors and then for corrected scores. Rows cross each time.
    pub steps: u16,
    /// label_propagation, correct_and_smooth: what neighbours count for in each step; a node's own start counts for
    /// the rest.
    pub alpha: f32,
    /// label_propagation, correct_and_smooth: symmetric | divided: sums over edges are divided by the roots of both
    /// degrees; then each row also by its sum and 0.05, so that neighbours of whom much is known count for no more than
    /// others. Errors are not divided.
    pub normalise: Normalise,
    /// ridge: what squares of weights count for beside squared errors, which are added up over training nodes; the bias
    /// has no penalty.
    pub ridge: f64,
    /// averaging, psgd_pa, llcg: from one mean to the next: a time ("2min"), or steps or epochs of each trainer ("500
    /// steps", "1 epoch").
    pub interval: Pace,
    /// averaging, psgd_pa, llcg: the end: a time, or steps or epochs of whichever trainer has had them first
    /// (train.epochs epochs).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Pace>,
    /// averaging, llcg: what a model counts for: uniform | rows | steps: alike, by training rows, by steps since the
    /// last mean.
    pub mean: Weighting,
    /// averaging, psgd_pa, llcg: models that a mean is taken of at least (0: more than half).
    pub quorum: u32,
    /// averaging, psgd_pa, llcg: how long other trainers have once a quorum has answered; by steps who is not ready
    /// then gives the steps that it has.
    pub grace: Span,
    /// averaging: none | frozen | stale: what trainers know of each other's nodes: nothing; the aggregates of a stage's
    /// inputs, exchanged once; or rows of all layers, told every so many means and never waited for.
    pub halo: TrainersHalo,
    /// averaging: with halo = stale, after how many means trainers tell each other rows again.
    pub refresh: u32,
    /// averaging, psgd_pa, llcg: own, or the number of a part whose trainer lives in the aggregator's process: nothing
    /// crosses between the two.
    #[schemars(with = "NameOrNumber")]
    pub aggregator: AggregatorPlace,
    /// averaging, psgd_pa: who evaluates means, the aggregator (it holds the whole graph) or the workers (each for its
    /// own nodes) (workers for a folder of parts, else aggregator).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluator: Option<MeansEvaluator>,
    /// averaging, psgd_pa: over which edges workers evaluate means, halo (all; rows of other workers' nodes cross for
    /// it) or local (those between own nodes; only counts cross).
    pub evaluate: EvaluationEdges,
    /// llcg: steps on the whole graph after each mean.
    pub corrections: u32,
    /// Keys of members from outside.
    #[serde(flatten)]
    #[schemars(skip)]
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
            steps: 3,
            alpha: 0.9,
            normalise: Normalise::Symmetric,
            ridge: 1.0,
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
            (Some(HandOnChoice::Hidden), _) | (None | Some(HandOnChoice::Auto), Start::Features) => Handed::Hidden,
            (Some(HandOnChoice::Scores), _) | (None | Some(HandOnChoice::Auto), Start::Mlp) => Handed::Scores,
            (Some(HandOnChoice::Columns(columns)), _) => Handed::Columns(columns),
        }
    }
}

/// `schedule.late`: what crosses late where messages are products of rows with weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Carried {
    /// The rows, of which the receiver makes messages with the weights of now.
    Rows,
    /// The messages, made with the weights of the round that they were sent in: narrower, and staler.
    Products,
}

/// `schedule.normalise`: what sums over neighbours are divided by where labels or errors pass along edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Normalise {
    /// The roots of both degrees (Zhou et al., 2003).
    Symmetric,
    /// The same, and then each row by its sum and 0.05.
    Divided,
}

/// `schedule.mean`: what a trainer's model counts for in a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeansEvaluator {
    /// The aggregator, which holds the whole graph.
    #[default]
    Aggregator,
    /// All workers together, each for its own nodes; the aggregator holds no part.
    Workers,
}

/// `schedule.evaluate`: over which edges workers evaluate means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Features cross once, then hidden rows.
    Features,
    /// A perceptron on own features; raw features never cross.
    Mlp,
}

/// `schedule.hand_on`: what a stage of lazy training hands on to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", try_from = "toml::Value")]
#[schemars(!try_from)]
pub enum HandOnChoice {
    /// The class scores of its throw-away classifier.
    Scores,
    /// Its hidden rows.
    Hidden,
    /// So many columns, a linear map of the hidden rows that is trained with the stage.
    Columns(usize),
    /// What validation nodes say is worth its bytes: several runs, from the one that sends least up.
    Auto,
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
            (Some("auto"), _) => Ok(HandOnChoice::Auto),
            (_, Some(Ok(columns))) => Ok(HandOnChoice::Columns(columns)),
            _ => Err(format!("expected \"scores\", \"hidden\", \"auto\" or {{ columns = k }}, found {value}")),
        }
    }
}

/// `[averaging]`: what befalls trainers on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AveragingConfig {
    /// Parts whose trainers never start, as if they had failed, so that nobody sees their nodes.
    pub drop: Vec<u32>,
}

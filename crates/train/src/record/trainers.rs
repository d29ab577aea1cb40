//! What independent trainers did, as `summary.json` says it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::MeansEvaluator;

/// `averaging`: what independent trainers did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AveragingSummary {
    /// Each trainer, by its part.
    pub trainers: Vec<TrainerSummary>,
    /// (`schedule.aggregator`) The part whose trainer lived in the aggregator's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosted_part: Option<u32>,
    /// Who evaluated means: `aggregator`, which held the whole graph, or `workers`.
    pub evaluator: MeansEvaluator,
    /// Means that were taken, those before the run was resumed among them.
    pub means: u32,
    /// (independent trainers, unless nobody could know) Means that were foreseen when it was started, at most where
    /// `bytes.is_bound`; not there where one of interval and limit is a time and the other is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub means_predicted: Option<u64>,
    /// Why it ended: `limit`, `patience` or `stopped`.
    pub ending: String,
    /// (independent trainers that were judged) When a mean first came to 99 % of the best worth of all, in seconds
    /// since trainers went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convergence_seconds: Option<f64>,
    /// What judged means were worth, by time.
    pub curve: Vec<Curve>,
    /// Who was late, lost or came back, and when.
    pub notes: Vec<String>,
}

/// `averaging.trainers`: one of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TrainerSummary {
    /// The number of its part; worker 0 is the aggregator.
    pub part: u32,
    /// Steps that it took; of those before the run was resumed, or the trainer came back, as many as entered means.
    /// Its seconds, and when it was lost, are told since the run was started or resumed alone.
    pub steps: u64,
    /// Means that it took part in.
    pub means: u32,
    /// Seconds in which it took steps.
    pub working_seconds: f64,
    /// Seconds in which it waited for a mean.
    pub averaging_seconds: f64,
    /// Seconds in which it did nothing although it was there, where that is known.
    pub stalled_seconds: f64,
    /// Seconds in which it was not there.
    pub absent_seconds: f64,
    /// When it was lost, in seconds since trainers went.
    pub lost: Vec<f64>,
}

/// `averaging.curve`: a mean that was judged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// When its verdict came, in seconds since trainers went.
    pub seconds: f64,
    /// What chooses the best: the validation metric, or the negative loss; null where it is not defined.
    pub worth: Option<f64>,
}

//! What is known after a round.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::worker::evaluate::Scores;

/// What is known after a round; the same on every worker, but for its seconds and clock, the loss of rounds after which
/// workers do not agree, and in a resumed run the bytes, of which worker 0 alone knows those before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-where" = "where the round was evaluated"))]
pub struct RoundReport {
    /// The round, from 1, counted over stages.
    pub round: u32,
    /// The stage, from 0.
    pub stage: usize,
    /// The training loss before the round's step.
    pub loss: f64,
    /// The learning rate.
    pub lr: f32,
    /// Figures after the step, where the round was evaluated.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
    /// (where the round was evaluated) Bytes that all workers have sent so far, framing included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Seconds that the round took on this worker; on the link model's clock, where there is one.
    pub seconds: f64,
    /// (independent trainers) Whose models this is the mean of: the numbers of their parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<u32>,
    /// (a link model, or independent trainers) Seconds on the link model's clock since the start; of independent
    /// trainers, since these went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<f64>,
    /// (independent trainers) On the same clock, when the verdict on a mean came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<f64>,
}

//! What is known after a round.

use serde::{Deserialize, Serialize};

use crate::worker::evaluate::Scores;

/// What is known after a round; the same on every worker, but for its seconds and the loss of rounds after which
/// workers do not agree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Bytes that all workers have sent so far, framing included, where the round was evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Seconds that the round took on this worker; on the link model's clock, where there is one.
    pub seconds: f64,
    /// Whose models this is the mean of, where trainers are independent: the numbers of their parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<u32>,
    /// Seconds on the link model's clock since the start, where there is one; of independent trainers, since these
    /// went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<f64>,
    /// On the same clock, when the verdict on a mean of independent trainers came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<f64>,
}

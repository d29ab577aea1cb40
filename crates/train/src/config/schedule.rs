//! `[schedule]`: when workers exchange.

use laconic_wire::codec::Options;
use serde::{Deserialize, Serialize};

/// `[schedule]`: when workers exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
    pub start: Start,
    /// Lazy: rounds of each stage; stages beyond the list take `train.epochs`.
    pub rounds: Vec<u32>,
    /// Lazy: learning rate of each stage; stages beyond the list take `train.lr`.
    pub lr: Vec<f32>,
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
            smooth_features: 0.0,
            smooth_gradients: 0.0,
            start: Start::Features,
            rounds: Vec::new(),
            lr: Vec::new(),
            own: Options::default(),
        }
    }
}

/// `schedule.start`: what lazy training starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Features cross once, then hidden rows.
    Features,
    /// A perceptron on own features; only class scores ever cross.
    Mlp,
}

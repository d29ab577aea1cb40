//! Standard full-graph training: exact, every layer exchanged forward and backward in every round.
//!
//! Bytes of a worker that sends S rows and receives R: once 4·S·d for the features (whose halo never changes and is kept, unless
//! `schedule.cache_inputs` is off), then per round 4·(S + R)·w for each further layer with messages of width w, 4·S·w for an
//! evaluation, and the gradients.

use laconic_nn::layer::LayerKind;
use laconic_nn::network::Architecture;

use super::{HandOn, Schedule, Stage};
use crate::config::Config;

pub(super) struct Synchronous;

impl Schedule for Synchronous {
    fn name(&self) -> &'static str {
        "synchronous"
    }

    fn stages(&self, config: &Config, kind: &LayerKind, architecture: &Architecture) -> Vec<Stage> {
        vec![Stage {
            network: architecture.end_to_end(kind),
            cache_inputs: config.schedule.cache_inputs,
            sample_inputs: false,
            late: None,
            hand_on: HandOn::Nothing,
            first_layer: 0,
            rounds: config.train.epochs,
            lr: config.train.lr,
        }]
    }
}

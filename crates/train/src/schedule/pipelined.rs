//! Pipelined training (PipeGCN, Wan et al., 2022): as synchronous, but each round uses the halo rows and the halo gradients of the
//! round before, so that a whole round of work hides the wire. Staleness is exactly one round; nothing is used in the first.
//!
//! Bytes are those of synchronous training. Memory holds one more copy of the halo's rows a layer and direction.

use laconic_nn::layer::LayerKind;
use laconic_nn::network::Architecture;

use super::synchronous::Synchronous;
use super::{Schedule, Stage};
use crate::config::Config;

pub(super) struct Pipelined;

impl Schedule for Pipelined {
    fn name(&self) -> &'static str {
        "pipelined"
    }

    fn stages(&self, config: &Config, kind: &LayerKind, architecture: &Architecture) -> Vec<Stage> {
        let smoothing = [config.schedule.smooth_features, config.schedule.smooth_gradients];
        let mut stages = Synchronous.stages(config, kind, architecture);
        stages.iter_mut().for_each(|stage| stage.late = Some(smoothing));
        stages
    }
}

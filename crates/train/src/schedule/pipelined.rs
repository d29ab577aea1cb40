//! Pipelined training (PipeGCN, Wan et al., 2022): as synchronous, but each round uses the halo rows and the halo
//! gradients of the round before, so that a whole round of work hides the wire. Staleness is exactly one round; nothing
//! is used in the first.
//!
//! Bytes are those of synchronous training. Memory holds one more copy of the halo's rows a layer and direction.

use super::{Blueprint, ScheduleKind, Stage, synchronous};

pub(super) const KIND: ScheduleKind =
    ScheduleKind { name: "pipelined", options: &["cache_inputs", "smooth_features", "smooth_gradients"], stages };

fn stages(blueprint: &Blueprint<'_>) -> Vec<Stage> {
    let schedule = &blueprint.config.schedule;
    let mut stages = synchronous::stages(blueprint);
    stages.iter_mut().for_each(|stage| stage.late = Some([schedule.smooth_features, schedule.smooth_gradients]));
    stages
}

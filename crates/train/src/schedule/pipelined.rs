//! Pipelined training (PipeGCN, Wan et al., 2022): as synchronous, but each round uses the halo rows and the halo
//! gradients of the round before, so that a whole round of work hides the wire. Staleness is exactly one round; nothing
//! is used in the first.
//!
//! Bytes are those of synchronous training where messages are rows. Where they are products with weights, narrower than
//! rows, late ones would be products with the weights of the round before; so rows cross, as in the paper, and a worker
//! that sends S rows and receives R sends 4·(S + R)·w for them, w being the width of what the layer reads. With
//! `schedule.late = "products"` the products do. Memory holds one more copy of the halo's rows a layer and direction.

use super::{Blueprint, Lateness, ScheduleKind, Stage, synchronous};

pub(super) const KIND: ScheduleKind = ScheduleKind {
    name: "pipelined",
    options: &["cache_inputs", "late", "smooth_features", "smooth_gradients"],
    trainers: false,
    propagates: None,
    stages,
};

fn stages(blueprint: &Blueprint<'_>) -> Vec<Stage> {
    let schedule = &blueprint.config.schedule;
    let mut stages = synchronous::stages(blueprint);
    let smoothing = [schedule.smooth_features, schedule.smooth_gradients];
    let late = Lateness { smoothing, carries: schedule.late, refresh: None };
    stages.iter_mut().for_each(|stage| stage.late = Some(late));
    stages
}

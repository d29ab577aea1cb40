//! Ridge regression: the model that is linear in what it reads, `mlp` of one layer, with the least squares of errors of
//! one-hot labels and a penalty on its weights. It is convex, so one round finds it: workers add up two sums over their
//! training nodes and solve the same equations.
//!
//! Bytes of a worker that reads d columns, of C classes: an all-reduce of (d + 1)(d + 2)/2 + (d + 1)·C sums in `f32`,
//! whatever the graph is; and what is told once for `model.inputs`.

use laconic_nn::architecture::Architecture;

use super::{Blueprint, Ridge, ScheduleKind, Stage, synchronous};

pub(super) const KIND: ScheduleKind =
    ScheduleKind { name: "ridge", options: &["ridge"], trainers: false, propagates: None, stages };

fn stages(blueprint: &Blueprint<'_>) -> Vec<Stage> {
    let architecture = Architecture { layers: 1, ..blueprint.architecture.clone() };
    let solves = Some(Ridge { penalty: blueprint.config.schedule.ridge });
    let stages = synchronous::stages(&Blueprint { architecture: &architecture, ..*blueprint }).into_iter();
    stages.map(|stage| Stage { solves, rounds: 1, span: 1, ..stage }).collect()
}

//! Correct and smooth (Huang et al., 2021): a model is trained as by `synchronous`, best one that reads own rows alone
//! (`model.arch = "mlp"`), so that no row crosses for it. By how much its scores miss the labels of training nodes then
//! passes along edges and corrects the others' scores, and these do so with training labels in place of theirs.
//!
//! Bytes of a worker that sends S rows: those of training, and 4·S·classes for each of twice `schedule.steps` steps, or
//! what the codec of `messages.forward` makes of them.

use super::{Blueprint, HandOn, Propagated, ScheduleKind, Stage, label_propagation, synchronous};

pub(super) const KIND: ScheduleKind = ScheduleKind {
    name: "correct_and_smooth",
    options: &["cache_inputs", "steps", "alpha", "normalise"],
    trainers: false,
    propagates: Some(Propagated::Scores),
    stages,
};

fn stages(blueprint: &Blueprint<'_>) -> Vec<Stage> {
    let trained = synchronous::stages(blueprint).into_iter();
    let mut stages: Vec<Stage> = trained.map(|stage| Stage { hand_on: HandOn::Scores, ..stage }).collect();
    let behind = stages.last().map_or(0, |stage| stage.last_layer() + 1);
    stages.push(label_propagation::stage(blueprint, Propagated::Scores, behind));
    stages
}

//! Standard full-graph training: exact, every layer exchanged forward and backward in every round.
//!
//! Bytes of a worker that sends S rows and receives R: once 4·S·d for the features (whose halo never changes and is
//! kept, unless
//! `schedule.cache_inputs` is off), then per round 4·(S + R)·w for each further layer with messages of width w, 4·S·w
//! for an evaluation, and the gradients.

use laconic_wire::Content;

use super::{Blueprint, HandOn, ScheduleKind, Stage};

pub(super) const KIND: ScheduleKind =
    ScheduleKind { name: "synchronous", options: &["cache_inputs"], trainers: false, propagates: None, stages };

/// Global graph sampling, as RandomTMA's authors compare with it: batches whose neighbours are drawn from the whole
/// graph, and gradients added up in every step. It is this schedule with batches.
pub(super) const GGS: ScheduleKind =
    ScheduleKind { name: "ggs", options: &["cache_inputs"], trainers: false, propagates: None, stages };

pub(super) fn stages(blueprint: &Blueprint<'_>) -> Vec<Stage> {
    let Blueprint { config, kind, architecture } = *blueprint;
    vec![Stage {
        network: architecture.end_to_end(kind),
        propagation: None,
        solves: None,
        cache_inputs: config.schedule.cache_inputs,
        redraws: config.schedule.cache_inputs,
        sample_inputs: false,
        late: None,
        hand_on: HandOn::Nothing,
        inputs: Content::Features,
        first_layer: 0,
        rounds: config.train.epochs,
        span: config.train.epochs,
        lr: config.train.lr,
    }]
}

//! Independent trainers, whose models are averaged every so often, by time in the first place: RandomTMA and SuperTMA
//! (Zhu et al., 2023), by how their parts are made; PSGD-PA, their mean of parts that were cut by METIS; LLCG
//! (Ramezani et al., 2022), in which the aggregator corrects each mean by steps on the whole graph.
//!
//! Bytes of a mean of M trainers and P parameters: 4·P·M up, and 4·P·M down unless it is the last, whatever the graph
//! is, or what a lossy codec makes of so many values; 4·P·(M−1) where a trainer lives in the aggregator's process
//! (`schedule.aggregator`). With `halo = "frozen"` come those of lazy training's frozen inputs, once a stage; with
//! `halo = "stale"` the first layer's inputs once, and the rows of each further layer after every `refresh` means.

use super::{Blueprint, Lateness, ScheduleKind, Stage, lazy, synchronous};
use crate::config::TrainersHalo;

pub(super) const KIND: ScheduleKind = ScheduleKind {
    name: "averaging",
    options: &[
        "interval",
        "limit",
        "mean",
        "quorum",
        "grace",
        "aggregator",
        "evaluator",
        "evaluate",
        "halo",
        "refresh",
        "late",
        "start",
        "hand_on",
        "rounds",
        "lr",
    ],
    trainers: true,
    propagates: None,
    stages,
};

pub(super) const PSGD_PA: ScheduleKind = ScheduleKind {
    name: "psgd_pa",
    options: &["interval", "limit", "quorum", "grace", "aggregator", "evaluator", "evaluate"],
    trainers: true,
    propagates: None,
    stages: synchronous::stages,
};

pub(super) const LLCG: ScheduleKind = ScheduleKind {
    name: "llcg",
    options: &["interval", "limit", "mean", "quorum", "grace", "aggregator", "corrections"],
    trainers: true,
    propagates: None,
    stages: synchronous::stages,
};

fn stages(blueprint: &Blueprint<'_>) -> Vec<Stage> {
    match blueprint.config.schedule.halo {
        TrainersHalo::None => synchronous::stages(blueprint),
        TrainersHalo::Frozen => lazy::stages(blueprint),
        TrainersHalo::Stale => {
            let schedule = &blueprint.config.schedule;
            let late = Lateness { smoothing: [0.0; 2], carries: schedule.late, refresh: Some(schedule.refresh) };
            let stages = synchronous::stages(blueprint).into_iter();
            stages.map(|stage| Stage { late: Some(late), ..stage }).collect()
        }
    }
}

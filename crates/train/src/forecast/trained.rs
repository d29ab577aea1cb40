//! What trainers on their own learn from, as far as it can be known before they start.

use laconic_graph::dataset::Split;
use laconic_graph::part::{GlobalCounts, Part};

use crate::config::{Config, TaskChoice, TrainersHalo};
use crate::error::{Result, TrainError};
use crate::exchange::shapes::Shapes;
use crate::plan::{Members, Plan, TrainersPlan};

/// What is said about the whole, with the rows and edges that a trainer learns from: its batches are its own.
pub fn own_counts(part: &Part) -> GlobalCounts {
    let train = part.roles.iter().filter(|&&roles| roles & Split::TRAIN != 0).count() as u64;
    GlobalCounts { train, edges: part.edges.edges() as u64, ..part.global.clone() }
}

/// Those of these parts in which a node is to learn from; all where links are learned, or no node has a label.
pub fn with_something_to_learn(every: &[Part], parts: Vec<u32>, config: &Config) -> Vec<u32> {
    if config.task.kind == TaskChoice::LinkPrediction {
        return parts;
    }
    let learns = |part: &Part| {
        let mut roles = part.roles.iter().enumerate();
        roles.any(|(row, roles)| roles & Split::TRAIN != 0 && part.labels.known(row) > 0)
    };
    let some: Vec<u32> =
        every.iter().filter(|part| parts.contains(&part.index) && learns(part)).map(|part| part.index).collect();
    if some.is_empty() { parts } else { some }
}

/// What is said of parts that could have a trainer and have none.
pub fn without_trainer(could: &[u32], parts: &[u32]) -> impl Iterator<Item = String> {
    let none = could.iter().filter(|part| !parts.contains(part));
    none.map(|part| format!("part {part} has no trainer: no node of it is to learn from"))
}

/// What the trainers of these parts see, or the one at the place `only`, and the steps of each one's epoch: the graph
/// of its own nodes, or its part with the edges that come from nodes that somebody trains on.
///
/// # Errors
/// If a part cannot be trained on.
pub fn trained(
    (members, config): (&Members, &Config),
    every: Vec<Part>,
    (trainers, parts): (&TrainersPlan, &[u32]),
    only: Option<usize>,
) -> Result<(Vec<Part>, Vec<u64>)> {
    let meets = trainers.halo != TrainersHalo::None;
    let is_trained = |part: &&Part| parts.contains(&part.index);
    let there = (meets && parts.len() < every.len()).then(|| {
        let nodes = every.iter().filter(is_trained).flat_map(|part| part.nodes.iter().copied());
        let mut nodes: Vec<u64> = nodes.collect();
        nodes.sort_unstable();
        nodes
    });
    let wanted = |part: &u32| only.is_none_or(|only| parts.get(only) == Some(part));
    let (mut own, mut of_epoch) = (Vec::new(), Vec::new());
    for part in every.into_iter().filter(|part| parts.contains(&part.index) && wanted(&part.index)) {
        let index = part.index;
        let part = match (meets, &there) {
            (false, _) => Part { index, ..part.induced() },
            (true, Some(there)) => part.keeping(&|id| there.binary_search(&id).is_ok()),
            (true, None) => part,
        };
        let plan = Plan::with(members, config, &own_counts(&part))
            .map_err(|error| TrainError::config(format!("the trainer of part {index}: {error}")))?;
        of_epoch.push(plan.batching.as_ref().map_or(1, |batching| u64::from(batching.batches)));
        own.push(part);
    }
    Ok((own, of_epoch))
}

/// The shapes of trainers that meet, by their places among each other.
///
/// # Errors
/// If parts contradict each other.
pub fn shapes_among(parts: &[Part], plan: &Plan) -> Result<Vec<Shapes>> {
    let count = parts.len() as u32;
    // Edges that are held out pass no messages.
    let seen = |(index, part): (u32, &Part)| Ok(plan.take_links(Part { index, parts: count, ..part.clone() })?.0);
    let among = (0..count).zip(parts).map(seen).collect::<Result<Vec<Part>>>()?;
    Shapes::of_all(&among, plan)
}

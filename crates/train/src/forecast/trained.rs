//! What independent trainers learn from, as far as it can be known before they start.

use laconic_graph::dataset::Split;
use laconic_graph::given::GivenCounts;
use laconic_graph::part::{GlobalCounts, Part};

use crate::config::{Config, EvaluationEdges, Pace};
use crate::error::{Result, TrainError};
use crate::exchange::shapes::Shapes;
use crate::inputs::Found;
use crate::plan::{Members, Plan, TrainersPlan, has_labels_to_learn};

/// What is said about the whole, with the rows and edges that a trainer learns from: its batches are its own.
pub fn own_counts(part: &Part) -> GlobalCounts {
    let train = part.roles.iter().filter(|&&roles| roles & Split::TRAIN != 0).count() as u64;
    // Who judges nothing needs no pairs to rank among: that the data give some has been checked for the whole.
    let some = |given: GivenCounts| GivenCounts { pairs: given.pairs.max(1), ..given };
    let negatives = part.global.negatives.map(|given| given.map(some));
    GlobalCounts { train, edges: part.edges.edges() as u64, negatives, ..part.global.clone() }
}

/// Those of these parts in which a node is to learn from; all where links are learned, or no node has a label.
pub fn with_something_to_learn(every: &[Part], parts: Vec<u32>, plan: &Plan) -> Vec<u32> {
    if !plan.task.of_labels {
        return parts;
    }
    let some: Vec<u32> = every
        .iter()
        .filter(|part| parts.contains(&part.index) && has_labels_to_learn(part))
        .map(|part| part.index)
        .collect();
    if some.is_empty() { parts } else { some }
}

/// What is said of parts that could have a trainer and have none.
pub fn without_trainer(could: &[u32], parts: &[u32]) -> impl Iterator<Item = String> {
    let none = could.iter().filter(|part| !parts.contains(part));
    none.map(|part| format!("part {part} has no trainer: no node of it is to learn from"))
}

/// What is said of trainers, with epochs of so many steps, that learn in batches or end by epochs.
pub fn unlike_epochs(plan: &Plan, of_epoch: &[u64]) -> Vec<String> {
    let Some(trainers) = &plan.trainers else { return Vec::new() };
    let mut notes = Vec::new();
    if plan.batching.is_some() && of_epoch.len() > 1 {
        let (size, count) = (plan.config.batch.size, of_epoch.len());
        let what = format!("is of each trainer's own, so that {count} of them read {count} times as much in a step");
        notes.push(format!("batch.size = {size} {what} as workers that agree on every step (synchronous, ggs)"));
    }
    let (least, most) = (of_epoch.iter().min().copied().unwrap_or(1), of_epoch.iter().max().copied().unwrap_or(1));
    for stage in 0..plan.stages.len() {
        if let (Pace::Epochs(epochs), Pace::Steps(_), true) =
            (plan.config.end_of(stage), trainers.interval, least < most)
        {
            let of_largest = epochs as f64 * least as f64 / most as f64;
            notes.push(format!(
                "the run ends when the first trainer has had {epochs} epochs: of {least} steps with the fewest to \
                 learn from, and of {most} with the most, which then has had about {of_largest:.1}; schedule.interval \
                 in epochs lets each have as many"
            ));
            break;
        }
    }
    notes
}

/// What the trainers of these parts see, or the one at the place `only`, and the steps of everybody's epoch: the graph
/// of its own nodes, or its part with the edges that come from nodes that somebody trains on; and where they meet to
/// tell each other what models read, the part as it is, of which they then train on the graph of own nodes.
///
/// # Errors
/// If a part cannot be trained on.
pub fn trained(
    (members, config): (&Members, &Config),
    every: Vec<Part>,
    trainers: &TrainersPlan,
    parts: &[u32],
    only: Option<usize>,
) -> Result<(Vec<Part>, Vec<u64>)> {
    let exchange = trainers.exchange();
    if trainers.tell
        && let Some(part) = every.iter().find(|part| !parts.contains(&part.index))
    {
        let what = "no node of it is to learn from, so it has no trainer, and nobody who tells others what models read";
        return Err(TrainError::config(format!("model.inputs: part {}: {what}", part.index)));
    }
    let is_trained = |part: &&Part| parts.contains(&part.index);
    let there = (exchange && parts.len() < every.len()).then(|| {
        let nodes = every.iter().filter(is_trained).flat_map(|part| part.nodes.iter().copied());
        let mut nodes: Vec<u64> = nodes.collect();
        nodes.sort_unstable();
        nodes
    });
    let (mut own, mut of_epoch) = (Vec::new(), Vec::new());
    for part in every.into_iter().filter(|part| parts.contains(&part.index)) {
        let index = part.index;
        let is_wanted = only.is_none_or(|only| parts.get(only) == Some(&index));
        if !is_wanted && config.batch.size == 0 {
            of_epoch.push(1);
            continue;
        }
        // Who tells others what models read does so along the edges between them.
        let told = (trainers.tell && !exchange && is_wanted).then(|| part.clone());
        let part = match (exchange, &there) {
            (false, _) => part.induced().numbered(index, 1),
            (true, Some(there)) => part.keeping(&|id| there.binary_search(&id).is_ok()),
            (true, None) => part,
        };
        let plan = Plan::with(members, config, &own_counts(&part))
            .map_err(|error| TrainError::config(format!("the trainer of part {index}: {error}")))?;
        of_epoch.push(u64::from(plan.batches_of_epoch()));
        if is_wanted {
            check_learns(&plan, &part)?;
            own.push(told.unwrap_or(part));
        }
    }
    Ok((own, of_epoch))
}

/// Refuses a part that its trainer could learn nothing from.
fn check_learns(plan: &Plan, part: &Part) -> Result<()> {
    if plan.learns_from(part)? {
        return Ok(());
    }
    let what = "no training node with a label that is known, or no edge, is among its nodes; averaging.drop leaves it \
        out";
    Err(TrainError::config(format!("part {} has nothing to train on: {what}", part.index)))
}

/// What workers hold to evaluate means over these edges, in the order of ranks: the aggregator nothing, and behind it
/// each trainer of these parts its own nodes, with the edges from nodes of trainers.
pub fn evaluated_by_workers(every: &[Part], parts: &[u32], edges: EvaluationEdges) -> Vec<Part> {
    let trained: Vec<&Part> = every.iter().filter(|part| parts.contains(&part.index)).collect();
    let mut there: Vec<u64> = trained.iter().flat_map(|part| part.nodes.iter().copied()).collect();
    there.sort_unstable();
    let own = |part: &&Part| match edges {
        EvaluationEdges::Local => (*part).clone().induced(),
        EvaluationEdges::Halo if parts.len() < every.len() => {
            (*part).clone().keeping(&|id| there.binary_search(&id).is_ok())
        }
        EvaluationEdges::Halo => (*part).clone(),
    };
    let global = every.first().map(|part| part.global.clone()).unwrap_or_default();
    let none = Part::without_nodes(0, 0, &global);
    let all = std::iter::once(none).chain(trained.iter().map(own));
    (0..).zip(all).map(|(index, part)| part.numbered(index, parts.len() as u32 + 1)).collect()
}

/// The shapes of these workers, which evaluate means together.
///
/// # Errors
/// If parts contradict each other.
pub fn shapes_of_evaluators(parts: &[Part], plan: &Plan) -> Result<Vec<Shapes>> {
    let plan = &plan.of_evaluators();
    let seen = |part: &Part| -> Result<_> {
        let (part, sets) = plan.take_links(part.clone())?;
        Ok((part, sets))
    };
    let (parts, sets): (Vec<Part>, Vec<_>) = parts.iter().map(seen).collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let mut shapes = Shapes::of_all(&parts, plan, &Found::default())?;
    for (shapes, sets) in shapes.iter_mut().zip(&sets) {
        if let Some(sets) = sets {
            shapes.count_links(sets);
        }
    }
    Ok(shapes)
}

/// The shapes of trainers that meet, by their places among each other.
///
/// # Errors
/// If parts contradict each other.
pub fn shapes_among(parts: &[Part], plan: &Plan) -> Result<Vec<Shapes>> {
    let count = parts.len() as u32;
    // Edges that are held out pass no messages.
    let seen = |(index, part): (u32, &Part)| Ok(plan.take_links(part.clone().numbered(index, count))?.0);
    let among = (0..count).zip(parts).map(seen).collect::<Result<Vec<Part>>>()?;
    Shapes::of_all(&among, plan, &Found::default())
}

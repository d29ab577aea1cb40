//! What classes count for in the loss, the same on every worker.

use std::sync::Arc;

use laconic_graph::dataset::{Labels, Split};
use laconic_graph::part::Part;
use laconic_wire::{Ledger, Rank, Transport, collectives};

use super::local::Local;
use crate::config::ClassWeights;
use crate::error::Result;
use crate::exchange::steps::Step;
use crate::plan::Plan;

/// What each class counts for, nothing where all count alike. Where that follows from how many training nodes there
/// are, workers add up their counts.
///
/// # Errors
/// If another worker does not answer.
pub(super) fn class_weights(plan: &Plan, transport: &mut dyn Transport, local: &Local) -> Result<Arc<[f32]>> {
    match &plan.class_weights {
        None => Ok(Arc::default()),
        Some(ClassWeights::Given(weights)) => Ok(weights.as_slice().into()),
        Some(ClassWeights::Counted(_)) => {
            let mut counts = vec![0.0; plan.class_counts];
            count(&local.labels, &local.masks[0], &mut counts);
            collectives::all_reduce_f64(transport, Step::ClassCounts.tag(0), &mut counts)?;
            Ok(balanced(&counts, local.classes).into())
        }
    }
}

/// What each class counts for over all these parts together, where that follows from how many training nodes there are:
/// for workers that each start alone with one of them.
pub fn class_weights_over(plan: &Plan, parts: &[&Part]) -> Option<Vec<f32>> {
    let mut counts = vec![0.0; plan.class_counts];
    parts.iter().for_each(|part| count_classes(part, &mut counts));
    class_weights_of(plan, &counts, parts.first().map_or(0, |part| part.global.classes))
}

/// The same from counts over all of them ([`count_classes`]) of so many classes.
pub fn class_weights_of(plan: &Plan, counts: &[f64], classes: usize) -> Option<Vec<f32>> {
    matches!(plan.class_weights, Some(ClassWeights::Counted(_))).then(|| balanced(counts, classes))
}

/// Adds the training nodes of each class of a part to counts, of which there are as many as the plan has
/// (`class_counts`).
pub fn count_classes(part: &Part, counts: &mut [f64]) {
    if counts.is_empty() {
        return;
    }
    let roles = part.roles.iter().enumerate();
    let learns = roles.map(|(row, roles)| roles & Split::TRAIN != 0 && part.labels.known(row) > 0);
    count(&part.labels, &learns.collect::<Vec<bool>>(), counts);
}

/// Adds the training nodes of each class; or those that have each label, and after them those that have it not.
fn count(labels: &Labels, learns: &[bool], counts: &mut [f64]) {
    for row in (0..learns.len()).filter(|&row| learns[row]) {
        match labels {
            Labels::Single { values, .. } => counts[values[row] as usize] += 1.0,
            Labels::Multi { classes, values } => {
                for (class, &label) in values[row * classes..][..*classes].iter().enumerate() {
                    if label != Labels::UNKNOWN {
                        counts[class + if label == 0 { *classes } else { 0 }] += 1.0;
                    }
                }
            }
            Labels::None => {}
        }
    }
}

/// All / (classes · those of the class), or without / with; 1 where there are none to weigh.
fn balanced(counts: &[f64], classes: usize) -> Vec<f32> {
    let (with, without) = counts.split_at(classes.min(counts.len()));
    let all: f64 = with.iter().sum();
    let weight = |class: usize| match without.get(class) {
        Some(&without) => (without, with[class]),
        None => (all, classes as f64 * with[class]),
    };
    let ratio = |(of, by): (f64, f64)| if of > 0.0 && by > 0.0 { (of / by) as f32 } else { 1.0 };
    (0..with.len()).map(weight).map(ratio).collect()
}

/// Enters what `class_weights` sends.
pub fn forecast_class_weights(plan: &Plan, size: usize, rank: Rank, ledger: &mut Ledger) {
    if plan.class_counts > 0 {
        collectives::forecast_all_reduce_f64(ledger, Step::ClassCounts.tag(0), size, rank, plan.class_counts);
    }
}

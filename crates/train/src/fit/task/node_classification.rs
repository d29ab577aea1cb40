//! Node classification: rows are scores of classes, the loss is cross entropy over training nodes, or binary cross
//! entropy where a node may have several classes.

use laconic_nn::Matrix;
use laconic_nn::loss::loss;

use super::{Learning, Task, makes};
use crate::error::Result;
use crate::plan::{Plan, TaskKind, Words};
use crate::worker::Worker;
use crate::worker::evaluate::Evaluated;

pub(super) const KIND: TaskKind = TaskKind {
    name: "node_classification",
    options: &[],
    of_pairs: false,
    of_labels: true,
    words: Words {
        noun: "nodes",
        rows: "hidden rows or class scores of nodes that others have edges from",
        gradients: "gradients of the model, summed over training nodes",
        draws: "ids of nodes that batches reach, and neighbours that were drawn",
        figures: "for evaluations: counts and summed losses of its labelled nodes",
        scored: |nodes| format!("for evaluations: class scores and labels of all its {nodes} labelled nodes"),
        evaluation: "evaluation: rows, counts, scores and labels of labelled nodes",
        parts: "figures of its own validation and test nodes, and how many of each class were taken for which",
        unlearned: "no node of the training split has a label that is known",
        unvalidated: "nothing is labelled in validation",
    },
    check: Plan::check_labels,
    resolve: Plan::on_labels,
    build: || makes(|_, _| Box::new(NodeClassification)),
};

/// The classes of nodes, from scores of each.
struct NodeClassification;

impl Task for NodeClassification {
    fn loss(
        &mut self,
        worker: &mut Worker,
        learning: Learning<'_>,
        outputs: &Matrix,
        gradient: &mut Matrix,
        _g: &mut [f32],
    ) -> Result<f64> {
        let weights = worker.class_weights.as_ref();
        let (targets, mask) = match learning.rows {
            Some(subset) => (subset.targets(), &subset.all[..]),
            None => worker.training_targets(),
        };
        Ok(loss(&worker.compute, Some(gradient), outputs, (targets, weights), mask, learning.scale))
    }

    fn evaluate(&mut self, worker: &mut Worker, _p: &[f32], outputs: &Matrix, round: u32) -> Result<Evaluated> {
        worker.evaluate(outputs, round)
    }
}

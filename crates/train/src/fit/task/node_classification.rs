//! Node classification: rows are scores of classes, the loss is cross entropy over training nodes, or binary cross
//! entropy where a node may have several classes.

use laconic_nn::Matrix;
use laconic_nn::loss::loss;

use super::{Learning, Task};
use crate::error::Result;
use crate::worker::Worker;
use crate::worker::evaluate::Evaluated;

/// The classes of nodes, from scores of each.
pub(in crate::fit) struct NodeClassification;

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

//! Training rows alone, where no layer reads neighbours any more: rounds that touch no graph.

use super::{Batches, Training};
use crate::error::Result;
use crate::fit::task::Learning;
use crate::pass::inputs::Inputs;
use crate::pass::network::Pass;
use crate::pass::walk::Walk;
use crate::schedule::Stage;
use crate::worker::Worker;
use crate::worker::local::Subset;

/// Training rows with their inputs.
pub(super) struct TrainingRows {
    subset: Subset,
    inputs: Inputs,
    pass: Pass,
}

impl TrainingRows {
    /// `None` where the stage reads neighbours.
    pub fn new(worker: &Worker, stage: &Stage, inputs: &Inputs) -> Option<TrainingRows> {
        let reads_graph = stage.network.units()[1..].iter().any(|unit| unit.layer.message_width() > 0);
        // An edge to learn from may be at any node.
        if reads_graph || worker.plan.links.is_some() {
            return None;
        }
        let subset = Subset::new(&worker.local, &worker.local.masks[0]);
        let inputs = inputs.gather(&subset.rows)?;
        Some(TrainingRows { subset, inputs, pass: Pass::default() })
    }
}

impl Batches for TrainingRows {
    fn turn(&mut self, worker: &mut Worker, _round: u32) -> Result<f64> {
        Ok(worker.own_rows[0])
    }

    fn gradient(&mut self, worker: &mut Worker, training: Training<'_>, g: &mut [f32]) -> Result<f64> {
        let TrainingRows { subset, inputs, pass } = self;
        let Training { network, p, task, context, scale, .. } = training;
        let (mut peers, graph) = worker.split_subset(subset);
        pass.forward(&mut Walk { peers: &mut peers, graph, network, p, inputs, context })?;
        let (gradient, outputs) = pass.logits_gradient();
        let learning = Learning { rows: Some(subset), p, round: context.round, scale };
        let value = task.loss(worker, learning, outputs, gradient, g)?;
        let (mut peers, graph) = worker.split_subset(subset);
        pass.backward(&mut Walk { peers: &mut peers, graph, network, p, inputs, context }, g)?;
        Ok(value)
    }

    fn refresh(&mut self, inputs: &Inputs) {
        if let Some(gathered) = inputs.gather(&self.subset.rows) {
            self.inputs = gathered;
        }
    }
}

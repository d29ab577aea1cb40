//! Full batches: all own rows, with the exchange of boundary rows in every layer.

use super::{Batches, Round, Training};
use crate::error::Result;
use crate::fit::task::Learning;
use crate::pass::inputs::Inputs;
use crate::pass::walk::Walk;
use crate::worker::Worker;

/// All own rows in every round.
pub(super) struct AllRows;

impl Batches for AllRows {
    fn turn(&mut self, worker: &mut Worker, _: Round, _: &Inputs) -> Result<f64> {
        Ok(worker.own_rows[0])
    }

    fn gradient(&mut self, worker: &mut Worker, training: Training<'_>, g: &mut [f32]) -> Result<f64> {
        let Training { network, p, inputs, pass, task, context, scale } = training;
        let (mut peers, graph) = worker.split();
        pass.forward(&mut Walk { peers: &mut peers, graph, network, p, inputs, context })?;
        let (gradient, outputs) = pass.logits_gradient();
        let learning = Learning { rows: None, pairs: None, p, round: context.round, scale };
        let value = task.loss(worker, learning, outputs, gradient, g)?;
        let (mut peers, graph) = worker.split();
        pass.backward(&mut Walk { peers: &mut peers, graph, network, p, inputs, context }, g)?;
        Ok(value)
    }
}

//! Full batches: all own rows, with the exchange of boundary rows in every layer. The last layers output only what
//! somebody reads.

use super::{Batches, Round, Training};
use crate::error::Result;
use crate::fit::task::Learning;
use crate::pass::inputs::Inputs;
use crate::pass::required_rows::RequiredRows;
use crate::pass::walk::Walk;
use crate::plan::Reader;
use crate::schedule::Stage;
use crate::worker::Worker;

/// All own rows in every round.
#[derive(Default)]
pub(super) struct AllRows {
    required_rows: Option<RequiredRows>,
    /// A copy of what the first layer reads, where it leaves out rows, too, and reads sparse ones.
    inputs: Option<Inputs>,
}

impl AllRows {
    /// All rows, without those that nobody reads.
    pub fn new(worker: &Worker, stage: &Stage, inputs: &Inputs) -> AllRows {
        let (all, graph) = (worker.local.ids.len(), worker.local.graph());
        let rows = worker.plan.rows_put_out(stage, Reader::Loss, all, &worker.within.training);
        // The gradient of weights reads sparse rows by column, where all are together.
        let first = rows.first().copied().filter(|&first| first < all && inputs.has_sparse());
        let inputs = first.and_then(|first| inputs.gather(&(0..first as u32).collect::<Vec<u32>>()));
        AllRows { required_rows: RequiredRows::new(graph, &rows, true), inputs }
    }
}

impl Batches for AllRows {
    fn turn(&mut self, worker: &mut Worker, _: Round, _: &Inputs) -> Result<f64> {
        Ok(worker.own_rows[0])
    }

    fn gradient(&mut self, worker: &mut Worker, training: Training<'_>, g: &mut [f32]) -> Result<f64> {
        let Training { network, p, inputs, pass, task, context, scale } = training;
        let (required_rows, inputs) = (self.required_rows.as_ref(), self.inputs.as_ref().unwrap_or(inputs));
        let (mut peers, graph) = worker.split();
        pass.forward(&mut Walk { peers: &mut peers, graph, required_rows, network, p, inputs, context })?;
        let (gradient, outputs) = pass.logits_gradient();
        let learning = Learning { rows: None, pairs: None, p, round: context.round, scale };
        let value = task.loss(worker, learning, outputs, gradient, g)?;
        let (mut peers, graph) = worker.split();
        pass.backward(&mut Walk { peers: &mut peers, graph, required_rows, network, p, inputs, context }, g)?;
        Ok(value)
    }
}

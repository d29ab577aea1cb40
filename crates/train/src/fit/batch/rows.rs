//! Training rows alone, where no layer reads neighbours any more: rounds that touch no graph, over all of them or in
//! batches.

use super::sampled::rows_of_batch;
use super::{Batches, Round, Training};
use crate::error::Result;
use crate::fit::task::Learning;
use crate::pass::inputs::Inputs;
use crate::pass::network::Pass;
use crate::pass::walk::Walk;
use crate::plan::batching::Batching;
use crate::schedule::Stage;
use crate::worker::Worker;
use crate::worker::local::Subset;

/// Training rows with their inputs.
pub(super) struct TrainingRows {
    subset: Subset,
    inputs: Inputs,
    pass: Pass,
    batching: Option<Batching>,
    /// Where there are batches: the epoch that they were drawn for and the places of each one's rows among all.
    drawn: (Option<u32>, Vec<Vec<u32>>),
    /// The batch at work.
    current: Option<(Subset, Inputs)>,
}

impl TrainingRows {
    /// `None` where the stage reads neighbours.
    pub fn new(worker: &Worker, stage: &Stage, inputs: &Inputs, batching: Option<Batching>) -> Option<TrainingRows> {
        // An edge to learn from may be at any node.
        if !stage.reads_no_further() || !worker.plan.reads_own_outputs() {
            return None;
        }
        let subset = Subset::new(&worker.local, &worker.local.masks[0]);
        let inputs = inputs.gather(&subset.rows)?;
        let (pass, drawn) = (Pass::default(), (None, Vec::new()));
        Some(TrainingRows { subset, inputs, pass, batching, drawn, current: None })
    }

    /// The places of a round's rows among all training rows.
    fn places(&mut self, worker: &Worker, batching: &Batching, round: Round) -> Vec<u32> {
        let epoch = Some(round.first_of_epoch(batching.batches));
        if self.drawn.0 != epoch {
            let place = |row: u32| self.subset.rows.binary_search(&row).map_or(0, |place| place as u32);
            let batches = rows_of_batch(worker, &self.subset.rows, batching, round).into_iter();
            self.drawn = (epoch, batches.map(|rows| rows.into_iter().map(place).collect()).collect());
        }
        self.drawn.1[(round.done % batching.batches) as usize].clone()
    }
}

impl Batches for TrainingRows {
    fn turn(&mut self, worker: &mut Worker, round: Round, _: &Inputs) -> Result<f64> {
        let Some(batching) = self.batching.clone() else { return Ok(worker.own_rows[0]) };
        let places = self.places(worker, &batching, round);
        let subset = Subset::of(&worker.local, places.iter().map(|&place| self.subset.rows[place as usize]).collect());
        let weight = subset.weight(&worker.class_weights);
        self.current = self.inputs.gather(&places).map(|inputs| (subset, inputs));
        Ok(weight)
    }

    fn gradient(&mut self, worker: &mut Worker, training: Training<'_>, g: &mut [f32]) -> Result<f64> {
        let (subset, inputs) = match &self.current {
            Some((subset, inputs)) => (subset, inputs),
            None => (&self.subset, &self.inputs),
        };
        let (pass, Training { network, p, task, context, scale, .. }) = (&mut self.pass, training);
        let (mut peers, graph) = worker.split_subset(subset);
        pass.forward(&mut Walk { peers: &mut peers, graph, required_rows: None, network, p, inputs, context })?;
        let (gradient, outputs) = pass.logits_gradient();
        let learning = Learning { rows: Some(subset), pairs: None, p, round: context.round, scale };
        let value = task.loss(worker, learning, outputs, gradient, g)?;
        let (mut peers, graph) = worker.split_subset(subset);
        pass.backward(&mut Walk { peers: &mut peers, graph, required_rows: None, network, p, inputs, context }, g)?;
        Ok(value)
    }

    fn refresh(&mut self, inputs: &Inputs) {
        if let Some(gathered) = inputs.gather(&self.subset.rows) {
            self.inputs = gathered;
        }
    }
}

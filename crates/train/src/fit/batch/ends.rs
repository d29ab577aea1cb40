//! Batches of edges where no layer reads neighbours any more, by independent trainers: both ends of a pair are own
//! nodes, and a pass runs over the kept rows of these.

use std::collections::VecDeque;

use super::links::EdgeBatches;
use super::{Batches, Round, Training};
use crate::error::Result;
use crate::fit::pairs::{Pairs, weights};
use crate::fit::task::Learning;
use crate::pass::inputs::Inputs;
use crate::pass::network::Pass;
use crate::pass::walk::Walk;
use crate::plan::batching::Batching;
use crate::sample::{Job, Known, WINDOW};
use crate::worker::Worker;
use crate::worker::local::Subset;

/// The ends of pairs, batch after batch.
pub(super) struct EndRows {
    edges: EdgeBatches,
    batches: u32,
    known: Known,
    /// The batches of the window that are still to come, of which the first is for round `next`.
    jobs: VecDeque<Job>,
    next: u32,
    /// The batch at work.
    current: Option<Current>,
    pass: Pass,
}

struct Current {
    subset: Subset,
    inputs: Inputs,
    pairs: Pairs,
    /// What edges weigh, and what the loss of a pair is multiplied by.
    how: (f32, f32),
}

impl EndRows {
    /// Batches of a stage that reads no neighbours, by a trainer whose pairs are of own nodes; `None` where targets are
    /// no edges.
    pub fn new(worker: &Worker, batching: &Batching) -> Option<EndRows> {
        let (edges, known) = (EdgeBatches::of(&worker.plan, batching)?, Known::own(&worker.local));
        let (jobs, current, pass) = Default::default();
        Some(EndRows { edges, batches: batching.batches, known, jobs, next: 0, current, pass })
    }
}

impl Batches for EndRows {
    fn turn(&mut self, worker: &mut Worker, round: Round, inputs: &Inputs) -> Result<f64> {
        if self.next != round.number || self.jobs.is_empty() {
            let first = round.done % self.batches;
            let drawn = self.edges.draw(worker, round, first..self.batches.min(first + WINDOW))?;
            self.jobs = self.edges.begin(worker, &self.known, round, drawn).into();
        }
        self.next = round.number + 1;
        let (job, pairs) = (self.jobs.pop_front(), self.edges.next());
        let (count, seeds) = (pairs.counts[0] as f64, job.map(|job| job.seeds).unwrap_or_default());
        let how = weights(worker, pairs.counts, round.number)?;
        let gathered = inputs.gather(&seeds).filter(|_| !seeds.is_empty());
        let subset = Subset::of(&worker.local, seeds);
        self.current = gathered.map(|inputs| Current { subset, inputs, pairs, how });
        Ok(count)
    }

    fn gradient(&mut self, worker: &mut Worker, training: Training<'_>, g: &mut [f32]) -> Result<f64> {
        let Some(Current { subset, inputs, pairs, how }) = &self.current else { return Ok(0.0) };
        let (pass, Training { network, p, task, context, scale, .. }) = (&mut self.pass, training);
        let (mut peers, graph) = worker.split_subset(subset);
        pass.forward(&mut Walk { peers: &mut peers, graph, required_rows: None, network, p, inputs, context })?;
        let (gradient, outputs) = pass.logits_gradient();
        let learning = Learning { rows: None, pairs: Some((pairs, *how)), p, round: context.round, scale };
        let value = task.loss(worker, learning, outputs, gradient, g)?;
        let (mut peers, graph) = worker.split_subset(subset);
        pass.backward(&mut Walk { peers: &mut peers, graph, required_rows: None, network, p, inputs, context }, g)?;
        Ok(value)
    }

    fn rest(&mut self) {
        self.pass = Pass::default();
    }
}

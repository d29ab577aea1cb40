//! Batches of edges to predict: each with its pairs that are none, and the ends of all of them to begin from.
//!
//! An edge's batch of an epoch is drawn by key from its two ends whatever its relation, so the owner of any node knows
//! which of its in-edges are predicted in a batch, and leaves them out of what it draws there.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use laconic_graph::links::Links;
use laconic_graph::sample::batch_of_edge;

use super::Round;
use crate::error::Result;
use crate::fit::pairs::{Drawn, Pairs};
use crate::plan::batching::Batching;
use crate::plan::{LinkPlan, Plan};
use crate::sample::{Job, Known, LeftOut, Window};
use crate::worker::Worker;

/// The edges of an epoch, batch after batch.
pub(super) struct EdgeBatches {
    plan: Arc<LinkPlan>,
    batches: u32,
    /// The pairs of the window's batches that are still to come.
    pairs: VecDeque<Pairs>,
}

impl EdgeBatches {
    /// `None` where targets are no edges.
    pub fn of(plan: &Plan, batching: &Batching) -> Option<EdgeBatches> {
        let plan = plan.links.clone()?;
        Some(EdgeBatches { plan, batches: batching.batches, pairs: VecDeque::new() })
    }

    /// The pairs of the next batch.
    pub fn next(&mut self) -> Pairs {
        self.pairs.pop_front().unwrap_or_default()
    }

    /// These batches of the round's epoch; the round is the first of them. Numbers nodes together with the other
    /// workers.
    ///
    /// # Errors
    /// If another worker does not answer, or a node is owned by nobody.
    pub fn open(
        &mut self,
        worker: &mut Worker,
        window: &mut Window,
        round: Round,
        batches: Range<u32>,
    ) -> Result<Vec<Job>> {
        let drawn = self.draw(worker, round, batches)?;
        let ends = drawn.iter().flat_map(|(_, pairs)| pairs.sources.iter().chain(&pairs.targets));
        window.number(worker, ends.copied().collect(), round.number)?;
        Ok(self.begin(worker, window.known(), round, drawn))
    }

    /// The edges of each of these batches, and the pairs that they are learned with.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn draw(&self, worker: &mut Worker, round: Round, batches: Range<u32>) -> Result<Vec<(Links, Drawn)>> {
        let links = worker.links.as_ref().map(|sets| &sets.train);
        let edges = links.map_or_else(Vec::new, |links| self.edges(links, worker, round, &batches));
        let pairs = edges.iter().zip(round.number..);
        let pairs: Vec<Drawn> = pairs.map(|(edges, round)| Drawn::of(worker, &self.plan, edges, round)).collect();
        let pairs = Drawn::filtered(worker, &self.plan, pairs, round.number)?;
        Ok(edges.into_iter().zip(pairs).collect())
    }

    /// What each of them begins from, where all ends have numbers.
    pub fn begin(&mut self, worker: &Worker, known: &Known, round: Round, drawn: Vec<(Links, Drawn)>) -> Vec<Job> {
        self.pairs.clear();
        let leaves_out = worker.plan.leaves_out_targets();
        let jobs = drawn.into_iter().zip(round.number..).map(|((edges, drawn), round)| {
            let edges = if leaves_out { edges } else { Links::default() };
            // Both directions are among these edges, each at the owner of its target.
            let numbers = edges.iter().map(|(source, target)| (number(known, source), number(known, target)));
            let left_out = LeftOut::new(&worker.local, numbers);
            let (seeds, pairs) = begin(known, drawn);
            self.pairs.push_back(pairs);
            Job::new(round, seeds, left_out)
        });
        jobs.collect()
    }

    /// The own edges of each of these batches.
    fn edges(&self, links: &Links, worker: &Worker, round: Round, batches: &Range<u32>) -> Vec<Links> {
        let (seed, epoch) = (worker.plan.config.train.seed, u64::from(round.first_of_epoch(self.batches)));
        let mut of = vec![Links::default(); batches.len()];
        for edge in links.pairs() {
            let ends = (edge.source, edge.target);
            let batch = batch_of_edge(seed, epoch, ends, self.batches.into()) as u32;
            if batches.contains(&batch) {
                of[(batch - batches.start) as usize].push(edge);
            }
        }
        of
    }
}

fn number(known: &Known, id: u64) -> u32 {
    known.number(id).expect("every end of a pair has been asked for")
}

/// The ends of pairs, each once, and the pairs by their places among these.
fn begin(known: &Known, drawn: Drawn) -> (Vec<u32>, Pairs) {
    let (mut seeds, mut places) = (Vec::new(), HashMap::new());
    for &id in drawn.sources.iter().chain(&drawn.targets) {
        places.entry(id).or_insert_with(|| {
            seeds.push(number(known, id));
            seeds.len() as u32 - 1
        });
    }
    let pairs = drawn.rows(|id| places[&id]);
    (seeds, pairs)
}

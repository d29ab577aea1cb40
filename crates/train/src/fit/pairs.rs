//! The pairs that a round of link prediction learns from: edges, and pairs that are none.

use laconic_graph::links::{Links, Negatives, Pair};
use laconic_nn::links::{PairRows, positive_weight};
use laconic_wire::collectives;

use crate::error::Result;
use crate::exchange::steps::Step;
use crate::plan::LinkPlan;
use crate::worker::Worker;
use crate::worker::edges::EdgesAmong;

/// Pairs by global ids: edges first, then pairs that are none.
#[derive(Default)]
pub(super) struct Drawn {
    pub sources: Vec<u64>,
    pub targets: Vec<u64>,
    /// The relation of each, that of its edge; empty where they are not told apart.
    relations: Vec<u16>,
    pub edges: usize,
}

impl Drawn {
    /// These edges, and what is drawn in a round to stand beside them.
    pub fn of(worker: &Worker, plan: &LinkPlan, edges: &Links, round: u32) -> Drawn {
        let LinkPlan { scope, number, nodes, .. } = *plan;
        let negatives = Negatives { scope, number, own: worker.local.ascending_ids(), nodes };
        let key = Negatives::of_round(worker.plan.config.train.seed, round);
        let Links { sources, targets, relations } = edges.clone();
        let mut drawn = Drawn { sources, targets, relations, edges: edges.len() };
        for edge in edges.pairs() {
            negatives.targets(key, edge).for_each(|target| drawn.push(Pair { target, ..edge }));
        }
        drawn
    }

    fn push(&mut self, pair: Pair) {
        self.sources.push(pair.source);
        self.targets.push(pair.target);
        self.relations.extend(pair.relation);
    }

    /// The same without pairs that are edges, where these are left out; called on every worker at once, with as many
    /// lists.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn filtered(worker: &mut Worker, plan: &LinkPlan, lists: Vec<Drawn>, round: u32) -> Result<Vec<Drawn>> {
        if !plan.filters {
            return Ok(lists);
        }
        let steps = [Step::EdgeQuestions, Step::EdgeAnswers];
        let sets = worker.links.take().unwrap_or_default();
        let edges = EdgesAmong::of((worker, &sets), lists.iter().flat_map(Drawn::none), (steps, round), false);
        worker.links = Some(sets);
        let edges = edges?;
        let filter = |drawn: Drawn| {
            let mut kept = Drawn {
                sources: drawn.sources[..drawn.edges].to_vec(),
                targets: drawn.targets[..drawn.edges].to_vec(),
                relations: drawn.relations.iter().copied().take(drawn.edges).collect(),
                edges: drawn.edges,
            };
            drawn.none().filter(|&pair| !edges.has(pair, plan)).for_each(|pair| kept.push(pair));
            kept
        };
        Ok(lists.into_iter().map(filter).collect())
    }

    /// Pairs that stand for none.
    fn none(&self) -> impl Iterator<Item = Pair> {
        let pair = |at: usize| {
            let relation = self.relations.get(at).copied();
            Pair { source: self.sources[at], target: self.targets[at], relation }
        };
        (self.edges..self.sources.len()).map(pair)
    }

    /// How many are edges, and how many none.
    pub fn counts(&self) -> [usize; 2] {
        [self.edges, self.sources.len() - self.edges]
    }

    /// The same by the rows of embeddings.
    pub fn rows(self, row: impl Fn(u64) -> u32) -> Pairs {
        let counts = self.counts();
        let rows = |ids: Vec<u64>| ids.into_iter().map(&row).collect::<Vec<u32>>();
        let relations = self.relations.into_iter().map(u32::from).collect();
        let rows = PairRows { sources: rows(self.sources), destinations: rows(self.targets), relations };
        Pairs { rows, counts }
    }
}

/// Pairs by the rows of their embeddings.
#[derive(Default)]
pub struct Pairs {
    /// Edges first, then pairs that are none.
    pub rows: PairRows,
    /// How many are edges, and how many none.
    pub counts: [usize; 2],
}

impl Pairs {
    /// 1 for edges, 0 for others.
    pub fn truth(&self) -> Vec<u8> {
        let mut truth = vec![1; self.counts[0]];
        truth.resize(self.rows.len(), 0);
        truth
    }
}

/// What pairs of a round weigh and what the loss of one is multiplied by, so that it is a mean over all workers',
/// or where models are averaged over own ones.
pub(super) fn weights(worker: &mut Worker, counts: [usize; 2], round: u32) -> Result<(f32, f32)> {
    let mut counts = counts.map(|count| count as f64);
    if !worker.plan.cadence.is_local() {
        collectives::all_reduce_f64(&mut worker.transport, Step::PairCounts.tag(round), &mut counts)?;
    }
    let [edges, others] = counts;
    Ok((positive_weight(edges, others) as f32, (1.0 / (edges + others).max(1.0)) as f32))
}

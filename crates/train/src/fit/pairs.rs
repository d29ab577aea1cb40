//! The pairs that a round of link prediction learns from: edges, and pairs that are none.

use laconic_graph::links::{Links, Negatives, Pair, TRIES};
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
    /// These edges, and what is drawn in a round to stand beside them; nothing where [`Drawn::filtered`] does it.
    pub fn of(worker: &Worker, plan: &LinkPlan, edges: &Links, round: u32) -> Drawn {
        let Links { sources, targets, relations } = edges.clone();
        let mut drawn = Drawn { sources, targets, relations, edges: edges.len() };
        if !plan.filters {
            let key = Negatives::of_round(worker.plan.config.train.seed, round);
            plan.negatives(worker.local.ascending_ids(), |negatives| {
                for edge in edges.pairs() {
                    negatives.targets(key, edge).for_each(|target| drawn.push(Pair { target, ..edge }));
                }
            });
        }
        drawn
    }

    fn push(&mut self, pair: Pair) {
        self.sources.push(pair.source);
        self.targets.push(pair.target);
        self.relations.extend(pair.relation);
    }

    /// Draws what stands beside edges where none of it may be one: again and again, as [`TRIES`] say, where it is.
    /// `lists` are for rounds from `round` on; called on every worker at once, with as many lists.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn filtered(worker: &mut Worker, plan: &LinkPlan, lists: Vec<Drawn>, round: u32) -> Result<Vec<Drawn>> {
        if !plan.filters {
            return Ok(lists);
        }
        let seed = worker.plan.config.train.seed;
        let steps = [Step::EdgeQuestions, Step::EdgeAnswers];
        let mut edges = EdgesAmong::default();
        for tries in &TRIES {
            let mut wanted = Vec::new();
            plan.negatives(worker.local.ascending_ids(), |negatives| {
                for (list, round) in lists.iter().zip(round..) {
                    for edge in list.learned() {
                        let stands = |target| !edges.has(Pair { target, ..edge }, plan);
                        let drawn = negatives.candidates(Negatives::of_round(seed, round), edge, tries, stands);
                        wanted.extend(drawn.into_iter().map(|target| Pair { target, ..edge }));
                    }
                }
            });
            let found = worker
                .with_links(|worker, sets| EdgesAmong::of((worker, sets), wanted.into_iter(), (steps, round), false));
            edges.add(found?);
        }
        let mut lists = lists;
        plan.negatives(worker.local.ascending_ids(), |negatives| {
            for (list, round) in lists.iter_mut().zip(round..) {
                for edge in list.learned().collect::<Vec<Pair>>() {
                    let stands = |target| !edges.has(Pair { target, ..edge }, plan);
                    let drawn = negatives.standing(Negatives::of_round(seed, round), edge, stands);
                    drawn.into_iter().for_each(|target| list.push(Pair { target, ..edge }));
                }
            }
        });
        Ok(lists)
    }

    /// The edges.
    fn learned(&self) -> impl Iterator<Item = Pair> {
        let pair = |at: usize| {
            let relation = self.relations.get(at).copied();
            Pair { source: self.sources[at], target: self.targets[at], relation }
        };
        (0..self.edges).map(pair)
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

//! Which drawn pairs are edges after all: the owner of a pair's target knows.

use laconic_graph::links::Pair;

use super::Worker;
use super::discover::{Known, ask};
use crate::error::{Result, TrainError};
use crate::exchange::steps::Step;
use crate::plan::{LinkPlan, LinkSets};

/// Pairs of nodes that are edges, as numbers that ascend. Of several relations that a decoder tells apart a pair is an
/// edge only with its own: the filtered setting of Bordes et al. (2013).
#[derive(Debug, Clone, Default)]
pub struct EdgesAmong(Vec<u64>);

/// Pairs as numbers, which the plan has seen to it that 64 bits are enough for.
#[derive(Clone, Copy)]
struct Numbers {
    nodes: u64,
    relations: u64,
}

impl Numbers {
    fn of(plan: &LinkPlan) -> Numbers {
        Numbers { nodes: plan.nodes.max(1), relations: plan.relations as u64 }
    }

    /// `None` where ids are not below their number.
    fn number(self, Pair { source, target, relation }: Pair) -> Option<u64> {
        let (nodes, relation) = (self.nodes, u64::from(relation.unwrap_or(0)));
        let is_one = source < nodes && target < nodes && relation < self.relations;
        is_one.then(|| (target * nodes + source) * self.relations + relation)
    }

    fn pair(self, number: u64) -> Pair {
        let (ends, relation) = (number / self.relations, number % self.relations);
        let relation = (self.relations > 1).then_some(relation as u16);
        Pair { source: ends % self.nodes, target: ends / self.nodes, relation }
    }
}

/// No smaller than the bytes of so many pairs, as they are asked for or answered.
pub fn pairs_bytes(pairs: u64) -> usize {
    10 * (pairs as usize + 1)
}

impl Worker {
    /// Has its edges at hand while something else of the worker changes.
    pub fn with_links<T>(&mut self, run: impl FnOnce(&mut Worker, &LinkSets) -> T) -> T {
        let sets = self.links.take().unwrap_or_default();
        let result = run(self, &sets);
        self.links = Some(sets);
        result
    }
}

impl EdgesAmong {
    /// Those of the pairs that are edges of anybody, own edges being `sets`; called on every worker at once. Edges that
    /// are held out count where `counts_held`.
    ///
    /// # Errors
    /// If another worker does not answer, or ids are not below the number of nodes.
    pub fn of(
        (worker, sets): (&mut Worker, &LinkSets),
        pairs: impl Iterator<Item = Pair>,
        (steps, round): ([Step; 2], u32),
        counts_held: bool,
    ) -> Result<EdgesAmong> {
        let plan = worker.plan.links.as_ref();
        let of = plan.map_or(Numbers { nodes: 1, relations: 1 }, |plan| Numbers::of(plan));
        let nodes = of.nodes;
        let numbers: Option<Vec<u64>> = pairs.map(|pair| of.number(pair)).collect();
        let mut wanted = numbers.ok_or_else(|| {
            TrainError::config(format!("task.filter_negatives = true needs ids below {nodes}, the number of nodes"))
        })?;
        wanted.sort_unstable();
        wanted.dedup();
        let is_edge = |number: &u64| {
            let pair = of.pair(*number);
            let held = || sets.held.val.has(pair) || sets.held.test.has(pair);
            sets.train.has(pair) || (counts_held && held())
        };
        let mine = |asked: &[u64]| asked.iter().copied().filter(is_edge).collect();
        let mut edges: Vec<u64> = mine(&wanted);
        let Known { owned_by, .. } = ask(&mut worker.transport, steps, round, &wanted, mine)?;
        edges.extend(owned_by.into_iter().flatten());
        edges.sort_unstable();
        Ok(EdgesAmong(edges))
    }

    /// Takes up what was found of others.
    pub fn add(&mut self, more: EdgesAmong) {
        self.0.extend(more.0);
        self.0.sort_unstable();
    }

    /// Whether a pair, of those that were asked for, is an edge.
    pub fn has(&self, pair: Pair, plan: &LinkPlan) -> bool {
        Numbers::of(plan).number(pair).is_some_and(|number| self.0.binary_search(&number).is_ok())
    }
}

//! Which drawn pairs are edges after all: the owner of a pair's target knows.

use super::Worker;
use super::discover::{Known, ask};
use crate::error::{Result, TrainError};
use crate::exchange::steps::Step;
use crate::plan::LinkSets;

/// Pairs of nodes that are edges, as numbers that ascend.
#[derive(Debug, Clone, Default)]
pub struct EdgesAmong(Vec<u64>);

/// A pair as a number, of 2^32 nodes at most; `None` where ids are not below their number.
fn number((source, target): (u64, u64), nodes: u64) -> Option<u64> {
    (source < nodes && target < nodes).then(|| target * nodes + source)
}

/// No smaller than the bytes of so many pairs, as they are asked for or answered.
pub fn pairs_bytes(pairs: u64) -> usize {
    10 * (pairs as usize + 1)
}

impl EdgesAmong {
    /// Those of the pairs that are edges of anybody, own edges being `sets`; called on every worker at once. Edges that
    /// are held out count where `counts_held`.
    ///
    /// # Errors
    /// If another worker does not answer, or ids are not below the number of nodes.
    pub fn of(
        (worker, sets): (&mut Worker, &LinkSets),
        pairs: impl Iterator<Item = (u64, u64)>,
        (steps, round): ([Step; 2], u32),
        counts_held: bool,
    ) -> Result<EdgesAmong> {
        let nodes = worker.plan.links.as_ref().map_or(1, |links| links.nodes.max(1));
        let numbers: Option<Vec<u64>> = pairs.map(|pair| number(pair, nodes)).collect();
        let mut wanted = numbers.ok_or_else(|| {
            TrainError::config(format!("task.filter_negatives = true needs ids below {nodes}, the number of nodes"))
        })?;
        wanted.sort_unstable();
        wanted.dedup();
        let is_edge = |pair: &u64| {
            let (source, target) = (pair % nodes, pair / nodes);
            let held = || sets.held.val.has(source, target) || sets.held.test.has(source, target);
            sets.train.has(source, target) || (counts_held && held())
        };
        let mine = |asked: &[u64]| asked.iter().copied().filter(is_edge).collect();
        let mut edges: Vec<u64> = mine(&wanted);
        let Known { owned_by, .. } = ask(&mut worker.transport, steps, round, &wanted, mine)?;
        edges.extend(owned_by.into_iter().flatten());
        edges.sort_unstable();
        Ok(EdgesAmong(edges))
    }

    /// Whether a pair, of those that were asked for, is an edge.
    pub fn has(&self, pair: (u64, u64), nodes: u64) -> bool {
        number(pair, nodes).is_some_and(|number| self.0.binary_search(&number).is_ok())
    }
}

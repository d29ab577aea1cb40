//! Node after node to the part of most neighbours, less so the fuller it is.

use std::ops::RangeInclusive;

use laconic_key::{Key, Purpose};

use super::balance::Balance;
use super::loads::{Loads, Tally, mean};
use super::{NOWHERE, kept};
use crate::error::Result;
use crate::partition::RowsInput;

/// What a part is worth to a node.
#[derive(Clone, Copy)]
pub(super) enum Score {
    /// Its neighbours there, times the share of the part that is free.
    Ldg { capacity: f64 },
    /// Its neighbours there, less what one more node adds to `alpha · size^1.5`.
    Fennel { alpha: f64 },
}

impl Score {
    pub(super) fn ldg(balance: &Balance) -> Score {
        Score::Ldg { capacity: balance.nodes_most as f64 }
    }

    /// With the weight that the authors derive for an exponent of 1.5, for undirected edges. Where edges are balanced,
    /// half of it is for each of nodes and edges, as in PowerLyra (Chen et al., 2015).
    pub(super) fn fennel(input: &RowsInput, balance: &Balance) -> Score {
        let (nodes, edges) = (input.rows.nodes() as f64, input.rows.edges() as f64 / 2.0);
        let alpha = edges * f64::from(input.parts).sqrt() / nodes.powf(1.5);
        Score::Fennel { alpha: if balance.by_edges() { alpha / 2.0 } else { alpha } }
    }

    /// For a node whose edges count for `demand` nodes, of a part whose nodes and edges come to so many nodes each.
    fn of(self, neighbours: u32, sizes: [f64; 2], demand: f64) -> f64 {
        match self {
            Score::Ldg { capacity } => f64::from(neighbours) * (1.0 - mean(sizes, demand) / capacity),
            Score::Fennel { alpha } => {
                let [nodes, edges] = sizes.map(f64::sqrt);
                f64::from(neighbours) - 1.5 * alpha * (nodes + demand * edges)
            }
        }
    }
}

/// Bytes for so many nodes.
pub(super) fn memory(nodes: u64, parts: u32) -> u64 {
    4 * nodes + 24 * u64::from(parts)
}

/// The parts after the passes that are these steps. Of equal parts a node stays where it is, or else a key decides.
pub(super) fn assign(
    input: &RowsInput,
    score: Score,
    balance: &Balance,
    steps: RangeInclusive<u32>,
) -> Result<Vec<u32>> {
    let key = Key::new(input.seed, Purpose::Partition);
    let (first, passes) = (*steps.start(), steps.end() + 1 - steps.start());
    let (done, mut of) = match kept(input, steps, input.parts as usize)? {
        Some(kept) => kept,
        None => (0, vec![NOWHERE; input.rows.nodes()]),
    };
    let mut loads = Loads::new(input.parts, balance);
    of.iter().enumerate().filter(|(_, part)| **part != NOWHERE).for_each(|(node, &part)| loads.put(part, node));
    let mut near = Tally::new(input.parts as usize);
    for pass in done + 1..=passes {
        (input.tell)(&format!("pass {pass} of {passes}"));
        let mut moved = 0u64;
        input.rows.pass(&mut |rows| {
            for (node, neighbours) in rows.iter() {
                let old = of[node];
                if old != NOWHERE {
                    loads.take(old, node);
                }
                near.count(node, neighbours, &of);
                let mover = Mover { node, demand: balance.demand(node), old, key: key.with(node as u64) };
                let best = best(score, &near, &loads, mover);
                moved += u64::from(best != old);
                of[node] = best;
                loads.put(best, node);
            }
            Ok(())
        })?;
        if moved == 0 {
            break;
        }
        input.kept.keep(first + pass - 1, &of)?;
    }
    Ok(of)
}

/// A node that a part is sought for.
struct Mover {
    node: usize,
    /// How many nodes its edges make it count for besides itself.
    demand: f64,
    /// The part that it was in.
    old: u32,
    /// What decides between equal parts.
    key: Key,
}

/// The best part with room. A part without any neighbours is best where it is the emptiest.
fn best(score: Score, near: &Tally, loads: &Loads, mover: Mover) -> u32 {
    let Mover { node, demand, old, key } = mover;
    let (mut best, mut best_score) = (NOWHERE, f64::NEG_INFINITY);
    for part in loads.emptiest().chain(near.seen().iter().copied()) {
        if part == best || !loads.has_room(part, node) {
            continue;
        }
        let its_score = score.of(near.at(part), loads.sizes(part), demand);
        let wins_tie = || part == old || best != old && key.with(part.into()).bits() < key.with(best.into()).bits();
        if best == NOWHERE || its_score > best_score || its_score == best_score && wins_tie() {
            (best, best_score) = (part, its_score);
        }
    }
    // Where no part has room for a hub, all have as many edges as they may: nodes are still within their bound.
    if best == NOWHERE { loads.emptiest().next().unwrap_or(0) } else { best }
}

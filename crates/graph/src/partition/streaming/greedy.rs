//! Node after node to the part of most neighbours, less so the fuller it is.

use laconic_key::{Key, Purpose};

use super::NOWHERE;
use super::loads::{Loads, Tally};
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
    pub(super) fn ldg(capacity: u64) -> Score {
        Score::Ldg { capacity: capacity as f64 }
    }

    /// With the weight that the authors derive for an exponent of 1.5, for undirected edges.
    pub(super) fn fennel(input: &RowsInput) -> Score {
        let (nodes, edges) = (input.rows.nodes() as f64, input.rows.edges() as f64 / 2.0);
        Score::Fennel { alpha: edges * f64::from(input.parts).sqrt() / nodes.powf(1.5) }
    }

    fn of(self, neighbours: u32, size: u64) -> f64 {
        match self {
            Score::Ldg { capacity } => f64::from(neighbours) * (1.0 - size as f64 / capacity),
            Score::Fennel { alpha } => f64::from(neighbours) - 1.5 * alpha * (size as f64).sqrt(),
        }
    }
}

/// Bytes for so many nodes.
pub(super) fn memory(nodes: u64, parts: u32) -> u64 {
    4 * nodes + 24 * u64::from(parts)
}

/// The parts after so many passes. Of equal parts a node stays where it is, or else a key decides.
pub(super) fn assign(input: &RowsInput, score: Score, capacity: u64, passes: u32) -> Result<Vec<u32>> {
    let key = Key::new(input.seed, Purpose::Partition);
    let mut of = vec![NOWHERE; input.rows.nodes()];
    let mut loads = Loads::new(input.parts, capacity);
    let mut near = Tally::new(input.parts as usize);
    for pass in 1..=passes {
        (input.tell)(&format!("pass {pass} of {passes}"));
        let mut moved = 0u64;
        input.rows.pass(&mut |rows| {
            for (node, neighbours) in rows.iter() {
                let old = of[node];
                if old != NOWHERE {
                    loads.take(old);
                }
                near.count(node, neighbours, &of);
                let best = best(score, &near, &loads, (old, key.with(node as u64)));
                moved += u64::from(best != old);
                of[node] = best;
                loads.put(best);
            }
            Ok(())
        })?;
        if moved == 0 {
            break;
        }
    }
    Ok(of)
}

/// The best part with room. A part without any neighbours is best where it is the smallest.
fn best(score: Score, near: &Tally, loads: &Loads, (old, key): (u32, Key)) -> u32 {
    let mut best = loads.smallest();
    let mut best_score = score.of(near.at(best), loads.size(best));
    for &part in near.seen() {
        if part == best || !loads.has_room(part) {
            continue;
        }
        let its_score = score.of(near.at(part), loads.size(part));
        let wins_tie = || part == old || best != old && key.with(part.into()).bits() < key.with(best.into()).bits();
        if its_score > best_score || its_score == best_score && wins_tie() {
            (best, best_score) = (part, its_score);
        }
    }
    best
}

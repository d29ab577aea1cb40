//! What batches of sampled neighbourhoods fetch, at most: what they draw follows from the seed and the graph, not from
//! shapes.

use laconic_wire::{Ledger, Rank};

use crate::exchange::shapes::Shapes;
use crate::exchange::steps::Step;
use crate::plan::Plan;
use crate::schedule::Stage;

/// An id, or a count, as it travels, at most.
const ID: usize = 10;
/// An edge as it is told, at most: id, owner, weight, relation.
const EDGE: usize = ID + 5 + 4 + 3;
/// Two degrees.
const DEGREES: usize = 8;

/// What the batches of a round of a stage fetch between this worker and one peer, at most.
pub struct FetchBounds {
    /// How many own rows a batch of the peer's reads.
    pub rows: usize,
    /// Bytes of ids, draws and degrees, by what they are for.
    bytes: Vec<(Step, usize)>,
}

/// How many training nodes, or edges, a batch of a worker has of so many in all: a binomial number, so this is kept but
/// once in 10^15 batches.
pub fn learned(plan: &Plan, train: usize) -> usize {
    let size = plan.batching.as_ref().map_or(0, |batching| batching.size) as f64;
    // Both directions of an edge come together.
    let slack = if plan.links.is_some() { 2.0 } else { 1.0 };
    ((size + slack * (8.0 * size.sqrt() + 32.0)) as usize).min(train)
}

/// How many nodes a batch of a worker begins from: training nodes, or the ends of edges and of pairs that are none.
pub fn seeds(plan: &Plan, train: usize) -> usize {
    let ends = plan.links.as_ref().map_or(1, |links| 2 + links.number as usize);
    learned(plan, train).saturating_mul(ends)
}

/// How many nodes the layers of a batch of so many seeds read, first layer first, and the seeds; at most `nodes` each.
pub fn widths(fanouts: &[Option<usize>], seeds: usize, nodes: usize) -> Vec<usize> {
    let mut widths = vec![seeds.min(nodes)];
    for fanout in fanouts.iter().rev() {
        let each = fanout.map_or(usize::MAX, |fanout| fanout.saturating_add(1));
        widths.insert(0, widths[0].saturating_mul(each).min(nodes));
    }
    widths
}

impl FetchBounds {
    /// The bounds of a stage that fetches. What a peer reads of here is no more than there is; what this worker reads
    /// elsewhere, no more than the graph has.
    pub fn of(plan: &Plan, stage: &Stage, shapes: &Shapes) -> FetchBounds {
        let fanouts = plan.fanouts(stage);
        let nodes = plan.batching.as_ref().map_or(0, |batching| batching.nodes);
        let asked = widths(&fanouts, seeds(plan, shapes.split_rows[0]), nodes);
        // A peer's training nodes are not known here.
        let answered = widths(&fanouts, seeds(plan, usize::MAX), shapes.rows);
        let edges: usize = shapes.edges.iter().sum();
        let ids = |count: usize| count.saturating_add(1).saturating_mul(ID);
        // What the last layer's are for are own nodes, or ends of pairs.
        let layers = 1..fanouts.len() + usize::from(plan.links.is_some());
        let questions = layers.clone().map(|layer| ids(asked[layer])).sum();
        let drawn = |layer: usize| match fanouts[layer - 1] {
            Some(fanout) => answered[layer].saturating_mul(fanout).min(edges),
            None => edges,
        };
        let answers =
            layers.map(|layer| answered[layer].saturating_mul(2 * ID + 7).saturating_add(drawn(layer) * EDGE));
        let rows = answered.first().copied().unwrap_or(0);
        let read = ids(asked.first().copied().unwrap_or(0));
        let mut bytes = vec![
            (Step::DrawQuestions, questions),
            (Step::DrawAnswers, answers.sum()),
            (Step::RowQuestions, 2 * read),
            (Step::RowAnswers, DEGREES * rows),
        ];
        if plan.leaves_out_targets() {
            bytes.push((Step::DegreeQuestions, read));
            bytes.push((Step::DegreeAnswers, ids(rows).saturating_add(DEGREES * rows)));
        }
        FetchBounds { rows, bytes }
    }

    /// Enters ids, draws and degrees.
    pub fn enter(&self, shapes: &Shapes, round: u32, ledger: &mut Ledger) {
        for peer in Rank(shapes.rank).others(shapes.workers()) {
            for (step, bytes) in &self.bytes {
                ledger.record(step.tag(round), peer, *bytes);
            }
        }
    }
}

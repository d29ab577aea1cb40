//! What batches of sampled neighbourhoods fetch, at most: what they draw follows from the seed and the graph, not from
//! shapes.

use laconic_wire::{Ledger, Rank, Tag};

use crate::exchange::shapes::Shapes;
use crate::exchange::steps::Step;
use crate::plan::Plan;
use crate::schedule::Stage;

/// The weight and the relation of an edge, at most.
const EDGE_DATA: usize = 4 + 3;
/// Two degrees.
const DEGREES: usize = 8;

/// How many bytes a number up to `most` takes as it travels (LEB128), at most.
fn number(most: usize) -> usize {
    (usize::BITS - most.leading_zeros()).div_ceil(7).max(1) as usize
}

/// What is sent between this worker and one peer, at most.
#[derive(Default)]
pub struct FetchBounds {
    /// Of how many own nodes the peer asks.
    pub nodes: usize,
    /// How many own rows.
    pub rows: usize,
    /// Bytes of a message that has rows which are counted elsewhere, where there is one.
    rest: Option<usize>,
    /// Bytes of ids, draws and degrees, by what they are for.
    bytes: Vec<(Step, usize)>,
}

/// How many training nodes, or edges, a batch of a worker has of so many in all: a binomial number, so this is kept but
/// once in 10^15 batches.
pub fn learned(plan: &Plan, train: usize) -> usize {
    let size = plan.batching.as_ref().map_or(0, |batching| batching.size) as f64;
    // Both directions of an edge come together, and those of all relations.
    let slack = if plan.links.is_some() { 2.0 * plan.relations.max(1) as f64 } else { 1.0 };
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
    /// The bounds of all rounds of a stage together, and of each besides. What a peer reads of here is no more than
    /// there is; what this worker reads elsewhere, no more than the graph has. Where there is room for all rows, each
    /// crosses once, and then in any round.
    pub fn of(plan: &Plan, stage: &Stage, shapes: &Shapes) -> [FetchBounds; 2] {
        let fanouts = plan.fanouts(stage);
        let (nodes, cache) = plan.batching.as_ref().map_or((0, 0), |batching| (batching.nodes, batching.cache));
        let asked = widths(&fanouts, seeds(plan, shapes.split_rows[0]), nodes);
        // A peer's training nodes are not known here.
        let answered = widths(&fanouts, seeds(plan, usize::MAX), shapes.rows);
        let edges: usize = shapes.edges.iter().sum();
        let id = number(nodes);
        let ids = |count: usize| count.saturating_add(1).saturating_mul(id);
        // What the last layer's are for are own nodes, or ends of pairs.
        let layers = 1..fanouts.len() + usize::from(plan.links.is_some());
        let questions = layers.clone().map(|layer| ids(asked[layer])).sum();
        let drawn = |layer: usize| match fanouts[layer - 1] {
            Some(fanout) => answered[layer].saturating_mul(fanout).min(edges),
            None => edges,
        };
        // A node with its degree, how many were drawn, and what is known of its loop; edges with their sources' owners.
        let (node, edge) = (number(edges) + id + EDGE_DATA, id + number(shapes.workers()) + EDGE_DATA);
        let answers = layers.map(|layer| answered[layer].saturating_mul(node).saturating_add(drawn(layer) * edge));
        let rows = answered.first().copied().unwrap_or(0);
        let read = asked.first().copied().unwrap_or(0);
        let mut each = vec![(Step::DrawQuestions, questions), (Step::DrawAnswers, answers.sum())];
        if plan.leaves_out_targets() {
            each.push((Step::DegreeQuestions, ids(read)));
            each.push((Step::DegreeAnswers, ids(rows).saturating_add(DEGREES * rows)));
        }
        let row = 4 * stage.first().inputs();
        let alike = plan.messages.at_most().have_constant_sizes();
        let keeps_all = alike && cache / row.max(1) as u64 >= nodes as u64;
        // Nobody asks for a degree twice.
        let degrees = [(Step::RowQuestions, ids(nodes)), (Step::RowAnswers, DEGREES * shapes.rows)];
        if keeps_all {
            let once = [&degrees[..], &[(Step::RowQuestions, ids(nodes))]].concat();
            each.push((Step::RowQuestions, 2 * id));
            let once = FetchBounds { nodes: shapes.rows, rows: shapes.rows, rest: None, bytes: once };
            // A codec says no more of a message than a row takes.
            return [once, FetchBounds { nodes: rows, rows: 0, rest: Some(row), bytes: each }];
        }
        each.push((Step::RowQuestions, ids(read).saturating_add(id)));
        let once = FetchBounds { nodes: shapes.rows, bytes: degrees.to_vec(), ..FetchBounds::default() };
        [once, FetchBounds { nodes: rows, rows, rest: None, bytes: each }]
    }

    /// Enters all but rows, which have this tag.
    pub fn enter(&self, shapes: &Shapes, tag: Tag, ledger: &mut Ledger) {
        let round = tag.round;
        for peer in Rank(shapes.rank).others(shapes.workers()) {
            if let Some(rest) = self.rest {
                ledger.record(tag, peer, rest);
            }
            for &(step, bytes) in &self.bytes {
                ledger.record(step.tag(round), peer, bytes);
            }
        }
    }
}

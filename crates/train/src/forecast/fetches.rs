//! What batches of sampled neighbourhoods fetch, at most: what they draw follows from the seed and the graph, not from
//! shapes.
//!
//! What is asked for travels in lists, one for each batch and peer: ids ascend, so they cost a byte each and more only
//! where they are far from each other, and of a whole epoch it is known how many nodes its batches begin from.

use laconic_wire::{Ledger, Rank, Tag};

use crate::exchange::shapes::Shapes;
use crate::exchange::steps::Step;
use crate::plan::Plan;
use crate::plan::batching::Batching;
use crate::sample::WINDOW;
use crate::schedule::Stage;

/// Two degrees.
const DEGREES: usize = 8;
/// The weight of an edge.
const WEIGHT: usize = 4;

/// How many bytes numbers take as they travel (LEB128), at most: so many of them, which add up to no more than `sum`.
fn numbers(count: usize, sum: usize) -> usize {
    let more = (1..9).map(|byte| count.min(sum >> (7 * byte)));
    more.fold(count, usize::saturating_add)
}

/// The same of ids below `nodes`, in so many ascending lists, with the lengths of these.
fn ids(count: usize, lists: usize, nodes: usize) -> usize {
    numbers(count, lists.saturating_mul(nodes)).saturating_add(numbers(lists, count))
}

/// What is sent from this worker to its peers together, at most.
#[derive(Default)]
pub struct FetchBounds {
    /// Of how many own nodes a peer asks.
    pub nodes: usize,
    /// How many own rows go to each peer.
    pub rows: usize,
    /// Bytes of a message that has rows which are counted elsewhere, where there is one.
    rest: Option<usize>,
    /// Bytes of ids, draws and degrees, by what they are for and the layer they are for.
    bytes: Vec<(Step, usize, usize)>,
}

/// How many of a worker's training nodes, or edges, so many batches of an epoch have: of all of them, all; else a
/// binomial number, so this is kept but once in 10^15 windows.
pub fn learned(plan: &Plan, train: usize, batches: u32) -> usize {
    let all = plan.batches_of_epoch();
    if batches >= all {
        return train;
    }
    let mean = train as f64 * f64::from(batches) / f64::from(all);
    ((mean + slack(plan, mean)) as usize).min(train)
}

/// What chance adds at most.
fn slack(plan: &Plan, mean: f64) -> f64 {
    plan.targets_drawn_together() as f64 * (8.0 * mean.sqrt() + 32.0)
}

/// The same of all other workers, one of which this is.
fn learned_elsewhere(plan: &Plan, batching: &Batching, (own, batches): (usize, u32)) -> usize {
    let all = (batching.size as u64).saturating_mul(batching.batches.into());
    // How many edges are not held out is only about known.
    if !plan.counts_targets() {
        let mean = batching.size as f64 * f64::from(batches);
        return (mean + slack(plan, mean)) as usize;
    }
    learned(plan, usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(own), batches)
}

/// How many nodes a worker's batches begin from that learn from so much: training nodes, or the ends of edges and of
/// pairs that are none.
fn seeds(plan: &Plan, learned: usize) -> usize {
    learned.saturating_mul(plan.seeds_of_target())
}

/// How many foreign nodes the pairs of a worker have at their ends that learns from so many edges: its own are targets.
pub fn foreign_ends(plan: &Plan, learned: usize) -> usize {
    learned.saturating_mul(plan.foreign_seeds_of_target())
}

/// How many nodes are read in a window of batches over the workers' borders: by the first layer, by the second, and so
/// on, and what the last one is for.
struct Border {
    /// Lists of nodes, one for each batch and peer.
    lists: usize,
    /// Others' nodes that are read here.
    asked: Vec<usize>,
    /// Own nodes that others read.
    answered: Vec<usize>,
}

impl Border {
    fn of(plan: &Plan, (stage, batching): (&Stage, &Batching), shapes: &Shapes, batches: u32) -> Border {
        let (train, window) = (shapes.split_rows[0], batches as usize);
        let lists = window.saturating_mul(shapes.workers().saturating_sub(1));
        let foreign = batching.nodes.saturating_sub(shapes.rows);
        let elsewhere = learned_elsewhere(plan, batching, (train, batches));
        let links = shapes.training_links();
        let fanouts = plan.fanouts(stage);
        let read = |seeds: usize, neighbours: usize, most: usize| {
            let is_last = |layer: usize| layer == fanouts.len();
            let mut read = vec![0; fanouts.len() + 1];
            let mut width = seeds;
            for layer in (0..=fanouts.len()).rev() {
                let fanout = fanouts.get(layer).map(|fanout| fanout.unwrap_or(batching.nodes));
                width = width.saturating_mul(fanout.map_or(1, |fanout| fanout.saturating_add(1)));
                // Batches of nodes begin from own ones, whose neighbours are those of the halo.
                read[layer] = match plan.reads_own_outputs() {
                    true if is_last(layer) => 0,
                    true if is_last(layer + 1) => width.min(window.saturating_mul(neighbours)).min(most),
                    _ => width.min(most),
                };
            }
            read
        };
        let [sent, received] = [links.iter().map(|link| link.send).sum(), links.iter().map(|link| link.receive).sum()];
        Border {
            lists,
            asked: read(seeds(plan, learned(plan, train, batches)), received, window.saturating_mul(foreign)),
            answered: read(seeds(plan, elsewhere), sent, lists.saturating_mul(shapes.rows)),
        }
    }
}

/// How many of a peer's rows, or rows to each peer, where so many go to all of them.
fn each(all: usize, shapes: &Shapes) -> usize {
    all.div_ceil(shapes.workers().saturating_sub(1).max(1))
}

impl FetchBounds {
    /// Of all rounds of a stage together. What a peer reads of here is no more than there is; what this worker reads
    /// elsewhere, no more than the graph has. Where there is room for all rows, each crosses once, and then in any
    /// round.
    pub fn of_stage(plan: &Plan, stage: &Stage, shapes: &Shapes) -> FetchBounds {
        let Some(batching) = &plan.batching else { return FetchBounds::default() };
        let lists = shapes.workers().saturating_sub(1);
        let foreign = batching.nodes.saturating_sub(shapes.rows);
        // Nobody asks for a degree twice, nor for a row that is kept; each list may have one of them.
        let once = foreign.saturating_mul(numbers(1, batching.nodes));
        let keeps_all = keeps_all(plan, stage, batching);
        let times = 1 + usize::from(keeps_all);
        let bytes = vec![
            (Step::RowQuestions, 0, once.saturating_mul(times)),
            (Step::RowAnswers, 0, lists.saturating_mul(DEGREES * shapes.rows)),
        ];
        let rows = if keeps_all { shapes.rows } else { 0 };
        FetchBounds { nodes: shapes.rows, rows, rest: None, bytes }
    }

    /// Of a window of so many batches, but for their rows.
    pub fn of_window(plan: &Plan, stage: &Stage, shapes: &Shapes, batches: u32) -> FetchBounds {
        let Some(batching) = &plan.batching else { return FetchBounds::default() };
        let Border { lists, asked, answered } = Border::of(plan, (stage, batching), shapes, batches);
        let (fanouts, nodes, edges) = (plan.fanouts(stage), batching.nodes, shapes.edges.iter().sum::<usize>());
        let relation = if plan.relations > 0 { numbers(1, plan.relations) } else { 0 };
        let data = relation + if batching.weighted { WEIGHT } else { 0 };
        let of_loops = if plan.self_loops && data > 0 { WEIGHT + relation.max(1) } else { 0 };
        let owner = numbers(1, shapes.workers());
        let mut bytes = Vec::new();
        // What the last layer's are for are own nodes, or ends of pairs.
        for layer in 1..fanouts.len() + usize::from(!plan.reads_own_outputs()) {
            bytes.push((Step::DrawQuestions, layer - 1, ids(asked[layer], lists, nodes)));
            let (answered, all) = (answered[layer], lists.saturating_mul(edges));
            let drawn = fanouts
                .get(layer - 1)
                .copied()
                .flatten()
                .map_or(all, |fanout| answered.saturating_mul(fanout).min(all));
            // Each with its degree; edges with their sources' owners.
            let of_nodes = numbers(answered, all).saturating_add(answered.saturating_mul(of_loops));
            let of_edges = ids(drawn, answered, nodes).saturating_add(drawn.saturating_mul(owner + data));
            bytes.push((Step::DrawAnswers, layer - 1, of_nodes.saturating_add(of_edges)));
        }
        let (read, told) = (asked[0], answered[0]);
        if plan.leaves_out_targets() {
            // Own nodes that lack edges are the targets of some.
            let told = told.min(lists.saturating_mul(learned(plan, shapes.split_rows[0], 1)));
            bytes.push((Step::DegreeQuestions, 0, ids(read, lists, nodes)));
            bytes.push((Step::DegreeAnswers, 0, ids(told, lists, nodes).saturating_add(DEGREES * told)));
        }
        // A list more for degrees.
        let peers = shapes.workers().saturating_sub(1);
        let wanted = if keeps_all(plan, stage, batching) { 0 } else { ids(read, lists, nodes) };
        let lengths = numbers(lists + peers, lists.saturating_mul(nodes));
        bytes.push((Step::RowQuestions, 0, wanted.saturating_add(lengths)));
        bytes.push((Step::RowAnswers, 0, 0));
        FetchBounds { nodes: answered.iter().copied().max().unwrap_or(0).min(shapes.rows), rows: 0, rest: None, bytes }
    }

    /// Of the rows of a round.
    pub fn of_round(plan: &Plan, stage: &Stage, shapes: &Shapes) -> FetchBounds {
        let Some(batching) = &plan.batching else { return FetchBounds::default() };
        let border = Border::of(plan, (stage, batching), shapes, 1);
        let rows = each(border.answered[0], shapes).min(shapes.rows);
        match keeps_all(plan, stage, batching) {
            // A codec says no more of a message than a row takes.
            true => FetchBounds { nodes: rows, rest: Some(4 * stage.first().facts().inputs), ..FetchBounds::default() },
            false => FetchBounds { nodes: rows, rows, ..FetchBounds::default() },
        }
    }

    /// Enters all but rows, which have this tag.
    pub fn enter(&self, shapes: &Shapes, tag: Tag, ledger: &mut Ledger) {
        for peer in Rank(shapes.rank).others(shapes.workers()) {
            if let Some(rest) = self.rest {
                ledger.record(tag, peer, rest);
            }
            for &(step, layer, bytes) in &self.bytes {
                ledger.record(step.of_exchange(tag.round, layer), peer, each(bytes, shapes));
            }
        }
    }
}

/// Whether there is room for all rows, which then cross once.
fn keeps_all(plan: &Plan, stage: &Stage, batching: &Batching) -> bool {
    let row = 4 * stage.first().facts().inputs as u64;
    plan.messages.at_most().have_constant_sizes() && batching.cache / row.max(1) >= batching.nodes as u64
}

/// The batches of the window that begins with the round after so many, where one does, in a run that went on after
/// `begun` rounds of the stage.
pub fn window(plan: &Plan, stage: &Stage, (done, begun): (u32, u32)) -> Option<u32> {
    let batches = plan.batching.as_ref().filter(|_| plan.samples(stage))?.batches;
    let place = done % batches;
    let first = if done / batches == begun / batches { begun % batches } else { 0 };
    let is_first = place.checked_sub(first)?.is_multiple_of(WINDOW);
    is_first.then(|| WINDOW.min(batches - place).min(stage.rounds.saturating_sub(done)))
}

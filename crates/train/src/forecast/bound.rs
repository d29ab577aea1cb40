//! What a full-graph round has to do at least, as amounts that a machine's measured rates turn into seconds.
//!
//! Everything follows from the plan: layers, widths, nodes, edges. Nothing is taken from the program's own timings, and
//! nothing is counted that a better program would not have to do. For each unit of a network over n rows and E edges
//! (self-loops among them), with i inputs, o outputs, messages of width m and folds of width f, values of 4 bytes, or
//! of 2 where rows are stored as bf16 (`train.precision`):
//!
//! - **products** ([`laconic_nn::Facts::products`]), each of a matrix of v values: 2·n·v flops forward, 2·n·v for the
//!   matrix's gradient, and 2·n·v for the gradient of what it multiplies, which nobody wants of a network's inputs.
//! - **gathered rows** at width w = min(m, f): a fold reads a row and its number for each edge and writes one for each
//!   row, 4·(E·w + n·f) + 4·E bytes; its adjoint the same in the other direction, 4·(E·w + n·m) + 4·E. The first layer
//!   has neither where its fold is kept, no adjoint where its messages have no parameters, and no fold where layers
//!   read no neighbours. The adjoint of a maximum touches what was taken alone, whatever the edges: it streams the
//!   gradient, whose each value was, and the gradient of messages, 4·n·(2·f + m).
//! - **scores** of attention, s an edge ([`laconic_nn::Facts::scores`]), which are made again backward rather than
//!   kept: 4·E·s bytes gathered forward, the half of each that the other end has; three times as many backward, since
//!   what the scores of its destination came to and how much they want to change belong to each; and the gradient of
//!   each is written where one end finds it and read where the other does, 8·E·s bytes in order. Exponentials are not
//!   counted.
//! - **streams**, rows that are read and written once in a pass that joins all that is done row by row: norm,
//!   activation and dropout behind a unit read and write n·o values forward, and read the gradient and what they had
//!   read and write a gradient backward (3·n·o). Norms over columns need their sums first, one reading more forward
//!   and two backward. Rows of several layers that are put together are read and written once in each direction.
//!   The loss reads scores and writes their gradient (2·n·o), and a step reads parameters and gradient and writes
//!   parameters (3 values each). What a product reads and writes passes while it computes: dropout of what it reads,
//!   and a number or a bias for what it writes, can be done on the way.
//!
//! Rows and edges are those without which the loss could not be computed: of the last layer training nodes and the
//! edges into them, of the one before these and what they read, and so on, as far as the schedule and norms over all
//! rows allow ([`Plan::layers_that_narrow`]); where no layer reads neighbours in a round, as in most stages of lazy
//! training, those of training nodes alone. What training does not see is not counted ([`Seen`]).

use laconic_graph::dataset::Split;
use laconic_graph::part::Part;
use laconic_nn::after::After;
use laconic_nn::network::Network;
use laconic_nn::{Absence, Layer};

use super::amounts::FLOAT;
use crate::error::{Result, TrainError};
use crate::plan::{Plan, Reader};
use crate::schedule::Stage;

/// What a machine has to be good at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Floating-point operations of dense products.
    Products,
    /// Bytes of rows at random places, each as long as so many `f32`.
    Gathered(usize),
    /// Bytes that are read and written in order.
    Streamed,
}

/// When it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// On the way to the loss.
    Forward,
    /// In the backward pass.
    Backward,
    /// Once for the whole network: the loss, and the step.
    Step,
}

/// An amount of work that a round cannot do without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Item {
    /// The stage that the round is of.
    pub stage: usize,
    /// The unit of its network.
    pub unit: usize,
    /// When it is done.
    pub moment: Moment,
    /// What is done.
    pub work: Work,
    /// How much of it, in flops or bytes.
    pub amount: f64,
}

/// The sizes that a layer runs over in a round.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Rows that it reads.
    read: f64,
    /// Rows that it outputs.
    rows: f64,
    /// Edges into these.
    edges: f64,
}

/// Nodes and the edges that end there, self-loops that layers add among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// How many nodes.
    pub nodes: u64,
    /// How many directed edges.
    pub edges: u64,
}

/// What rounds see of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// All that rounds may run over.
    pub all: Count,
    /// Training nodes among them.
    pub train: u64,
    /// For each number of edges from 0 on, what training nodes read over so many at most; all behind the last.
    pub within: Vec<Count>,
}

impl Seen {
    /// What rounds see of the graph in these parts, all of them: training nodes and the edges between them where
    /// training is inductive; and of edges between parts none where a selection leaves out any, since which of them a
    /// round has is drawn.
    pub fn of(plan: &Plan, parts: &[Part]) -> Seen {
        let trains = |part: &Part, row: usize| part.roles.get(row).is_some_and(|role| role & Split::TRAIN != 0);
        let training = |part: &Part| (0..part.rows()).filter(|&row| trains(part, row)).count() as u64;
        let has = |part: &Part, id: u64| part.nodes.binary_search(&id).ok().map(|row| (part.index, trains(part, row)));
        let (inductive, alone) = (plan.inductive, plan.selection.is_some());
        let sees = |part: &Part, row: usize, source: u64| {
            // Where all edges are seen, nobody is looked up.
            let found = (inductive || alone).then(|| parts.iter().find_map(|other| has(other, source))).flatten();
            let is_loop = plan.self_loops && part.nodes.get(row) == Some(&source);
            !is_loop && found.is_none_or(|(of, is)| (!inductive || is) && (!alone || of == part.index))
        };
        let rows = |part: &'_ Part| (0..part.rows()).filter(|&row| !inductive || trains(part, row)).collect::<Vec<_>>();
        let sources = |part: &'_ Part, row: usize| {
            let sources = part.edges.in_edges(row).map(|edge| part.edges.sources[edge]);
            sources.filter(|&source| sees(part, row, source)).collect::<Vec<u64>>()
        };
        let count = |part: &Part, row: usize| sources(part, row).len() as u64 + u64::from(plan.self_loops);
        let mut seen = Seen { all: Count::default(), train: parts.iter().map(training).sum(), within: Vec::new() };
        for part in parts {
            for row in rows(part) {
                seen.all.nodes += 1;
                seen.all.edges += count(part, row);
            }
        }
        let Some(most) = plan.steps_to(Reader::Loss) else { return seen };
        // By id, over how many edges a node is read by one that trains.
        let ids = || parts.iter().flat_map(|part| part.nodes.iter().map(|&id| id as usize));
        let mut steps = vec![u16::MAX; ids().max().map_or(0, |last| last + 1)];
        let mut within = Count::default();
        for step in 0..=most {
            for part in parts {
                for row in rows(part) {
                    let is_new = match step {
                        0 => trains(part, row),
                        step => steps[part.nodes[row] as usize] == step,
                    };
                    if is_new {
                        steps[part.nodes[row] as usize] = step;
                        within.nodes += 1;
                        within.edges += count(part, row);
                        for source in sources(part, row) {
                            // Whoever is reached already stays.
                            if let Some(of_source) = steps.get_mut(source as usize) {
                                *of_source = (*of_source).min(step + 1);
                            }
                        }
                    }
                }
            }
            seen.within.push(within);
        }
        seen
    }

    /// What the layers of a stage run over, first to last.
    fn sizes(&self, plan: &Plan, stage: &Stage) -> Vec<Size> {
        let layers = stage.network.units().len();
        if plan.trains_on_rows_alone(stage) {
            let train = self.train as f64;
            return vec![Size { read: train, rows: train, edges: self.all.edges as f64 }; layers];
        }
        let narrow = plan.layers_that_narrow(stage, Reader::Loss);
        let of = |steps: usize| self.within.get(steps).copied().filter(|_| steps < narrow).unwrap_or(self.all);
        let size = |layer: usize| {
            let (steps, first) = (layers - 1 - layer, layer == 0);
            // Of inputs that no other layer has output nothing is counted but what is read of them.
            let read = if first && keeps_fold(stage) { of(steps) } else { of(steps + 1) };
            let Count { nodes, edges } = of(steps);
            Size { read: read.nodes as f64, rows: nodes as f64, edges: edges as f64 }
        };
        (0..layers).map(size).collect()
    }
}

/// What one round of each stage has to do on what training sees of a graph, whatever the number of workers; without
/// what crosses between them.
///
/// # Errors
/// If a round is not a pass over all rows: in batches, of links, or of independent trainers.
pub fn of(plan: &Plan, seen: &Seen) -> Result<Vec<Item>> {
    let refused = [
        (plan.batching.is_some(), "batch.size: a round is a batch"),
        (plan.task.of_pairs, "task.kind: a round scores pairs of nodes"),
        (plan.trainers.is_some(), "schedule.kind: independent trainers have no rounds together"),
    ];
    if let Some((_, why)) = refused.iter().find(|(is, _)| *is) {
        return Err(TrainError::config(format!("{why}, and the bound is that of passes over all rows")));
    }
    let mut items = Vec::new();
    for (index, stage) in plan.stages.iter().enumerate() {
        let (sizes, value) = (seen.sizes(plan, stage), plan.precision().bytes());
        RoundOf { stage, index, sizes, value, items: &mut items }.all();
    }
    Ok(items)
}

/// Whether the first layer's fold is computed once.
fn keeps_fold(stage: &Stage) -> bool {
    stage.freezes() && !stage.first().facts().message_has_parameters
}

/// One round of a stage, whose work is being put down.
struct RoundOf<'a> {
    stage: &'a Stage,
    index: usize,
    /// Of each layer.
    sizes: Vec<Size>,
    /// Bytes of a value of rows.
    value: usize,
    items: &'a mut Vec<Item>,
}

impl RoundOf<'_> {
    fn put(&mut self, unit: usize, moment: Moment, work: Work, amount: f64) {
        if amount > 0.0 {
            self.items.push(Item { stage: self.index, unit, moment, work, amount });
        }
    }

    /// So many values a row, read or written in order.
    fn stream(&mut self, unit: usize, moment: Moment, values: usize) {
        self.put(unit, moment, Work::Streamed, self.sizes[unit].rows * (self.value * values) as f64);
    }

    fn all(&mut self) {
        let network = &self.stage.network;
        for (index, unit) in network.units().iter().enumerate() {
            self.products(index, unit.layer.as_ref());
            self.folds(index, unit.layer.as_ref());
            self.passes(index, network);
        }
        let last = network.units().len() - 1;
        let scores = self.sizes[last].rows * (2 * FLOAT * self.stage.outputs()) as f64;
        self.put(last, Moment::Step, Work::Streamed, scores);
        self.put(last, Moment::Step, Work::Streamed, (3 * FLOAT * network.trained()) as f64);
    }

    fn products(&mut self, index: usize, layer: &dyn Layer) {
        let (mut forward, mut backward) = (0.0, 0.0);
        for product in &layer.facts().products {
            // Of rows that are output, though many a layer makes messages of all that it reads: sums of these can be
            // multiplied as well.
            let flops = 2.0 * self.sizes[index].rows * product.values as f64;
            forward += flops;
            backward += if index > 0 || !product.of_inputs { 2.0 * flops } else { flops };
        }
        self.put(index, Moment::Forward, Work::Products, forward);
        self.put(index, Moment::Backward, Work::Products, backward);
    }

    fn folds(&mut self, index: usize, layer: &dyn Layer) {
        let (message, fold) = (layer.facts().message_width, layer.facts().fold_width);
        let width = message.min(fold);
        let (Size { read, rows, edges }, value) = (self.sizes[index], self.value);
        let bytes = |(out, of): (usize, f64)| value as f64 * (edges * width as f64 + of * out as f64) + 4.0 * edges;
        let long = (value * width).div_ceil(FLOAT);
        if message > 0 && (index > 0 || !keeps_fold(self.stage)) {
            self.put(index, Moment::Forward, Work::Gathered(long), bytes((fold, rows)));
        }
        if message > 0 && (index > 0 || layer.facts().message_has_parameters) {
            if layer.facts().absence == Absence::Skipped {
                return self.stream(index, Moment::Backward, 2 * fold + message);
            }
            self.put(index, Moment::Backward, Work::Gathered(long), bytes((message, read)));
        }
        let scores = layer.facts().scores;
        let of_scores = edges * (FLOAT * scores) as f64;
        self.put(index, Moment::Forward, Work::Gathered(scores), of_scores);
        self.put(index, Moment::Backward, Work::Gathered(scores), 3.0 * of_scores);
        self.put(index, Moment::Backward, Work::Streamed, 2.0 * of_scores);
    }

    fn passes(&mut self, index: usize, network: &Network) {
        let unit = &network.units()[index];
        let is_last = index + 1 == network.units().len();
        if !is_last && unit.after != After::Nothing {
            let sums = usize::from(unit.after.normalises_columns());
            self.stream(index, Moment::Forward, (2 + sums) * unit.layer.facts().outputs);
            self.stream(index, Moment::Backward, (3 + 2 * sums) * unit.layer.facts().outputs);
        }
        if is_last && network.joined().is_some() {
            self.stream(index, Moment::Forward, 2 * unit.layer.facts().inputs);
            self.stream(index, Moment::Backward, 2 * unit.layer.facts().inputs);
        }
    }
}

#[cfg(test)]
mod tests;

//! Memory of stages in batches. What batches draw follows from the seed and the graph, so their sizes are estimates: as
//! many different nodes as that many draws from all nodes alike would give, which is more than draws along edges do.

use laconic_nn::network::Unit;

use super::amounts::{FLOAT, Memory, input_values};
use crate::exchange::shapes::Shapes;
use crate::plan::Plan;
use crate::sample::WINDOW;
use crate::schedule::Stage;

/// What a stage in batches holds: what is there all the time, and evaluations layer by layer over all rows or, where
/// that is more, the batches at work and ahead. Evaluations begin with the memory of batches given back.
pub(super) fn memory(shapes: &Shapes, plan: &Plan, stage: &Stage, trains: bool) -> Memory {
    let (rows, halo) = (shapes.rows, shapes.halo_rows());
    let mut memory = Memory::default();
    let first = stage.network.units()[0].layer.as_ref();
    let is_dense = input_values(shapes, plan) == rows * first.facts().inputs || stage.first_layer > 0;
    let mut floats = |name, count: usize| memory.add(name, (count as u64).saturating_mul(FLOAT as u64));
    // Rows handed on; features have been counted.
    let handed_on = if stage.first_layer > 0 { first.facts().inputs * rows } else { 0 };
    let keeps_folds = first.facts().message_width > 0 && !(shapes.workers() == 1 && is_dense);
    let is_told = plan.keeps_halo_apart(stage);
    let kept = if first.facts().message_has_parameters || is_told { halo } else { rows };
    floats("frozen inputs", handed_on + if keeps_folds { first.facts().inputs * kept } else { 0 });
    // In-edges in the order of ids, and what is known of nodes.
    floats("draws", shapes.edges.iter().sum::<usize>() + 6 * (rows + halo));
    floats("parameters and optimiser", stage.network.len().saturating_mul(6 + 16));
    // Inputs cross for evaluations or once, and so do the messages of further layers in each evaluation; frames stay.
    let further = stage.network.units().iter().skip(1).map(|unit| unit.layer.facts().message_width);
    let once = if first.facts().message_width > 0 { first.facts().inputs } else { 0 };
    let exchanged = shapes.links.iter().map(|link| link.send + link.receive).sum::<usize>();
    floats("frames", further.fold(once, usize::max) * exchanged);
    if is_told {
        // Others' rows as they are used, as they count, and two refreshes on their way.
        let told: usize = stage.live_exchanges().iter().map(|(_, width)| width).sum();
        floats("late rows", 4 * told * halo);
    }
    let evaluation = ("activations of evaluations", of_evaluation(shapes, stage));
    let batches = if trains { of_batches(shapes, plan, stage) } else { Memory::default() };
    if evaluation.1 >= batches.total() {
        memory.add(evaluation.0, evaluation.1);
    } else {
        memory.add_all(&batches);
    }
    memory
}

/// Of each layer the rows into it and out of it, and messages that are no rows; of the layer with most.
fn of_evaluation(shapes: &Shapes, stage: &Stage) -> u64 {
    let (rows, halo) = (shapes.rows, shapes.halo_rows());
    let of = |(index, unit): (usize, &Unit)| {
        let layer = unit.layer.as_ref();
        let own = if layer.facts().messages_are_rows() { 0 } else { layer.facts().message_width };
        // Of the first layer, the inputs are there all the time.
        let inputs = if index > 0 { layer.facts().inputs } else { 0 };
        // Rows that are told in the place of messages, as they are sent and as they have come.
        let crosses = index > 0 && stage.late.is_some_and(|late| late.carries.rows_of(layer));
        let told = if crosses { (rows + halo) * inputs } else { 0 };
        rows * (inputs + layer.facts().outputs + own) + halo * layer.facts().message_width + told
    };
    let widest = stage.network.units().iter().enumerate().map(of).max().unwrap_or(0);
    (widest as u64).saturating_mul(FLOAT as u64)
}

/// How many nodes the layers of a worker's batch read, first layer first, and its seeds.
fn widths(fanouts: &[Option<usize>], seeds: usize, (nodes, edges): (usize, usize)) -> Vec<usize> {
    let mut widths = vec![seeds];
    for fanout in fanouts.iter().rev() {
        let of_each = fanout.unwrap_or(usize::MAX).min(edges);
        let drawn = widths[0].saturating_mul(of_each).min(edges) as f64;
        let others = nodes.saturating_sub(widths[0]) as f64;
        let found = others * -(-drawn / nodes.max(1) as f64).exp_m1();
        widths.insert(0, widths[0] + found as usize);
    }
    widths
}

fn of_batches(shapes: &Shapes, plan: &Plan, stage: &Stage) -> Memory {
    let mut memory = Memory::default();
    let Some(batching) = &plan.batching else { return memory };
    let mut floats = |name, count: usize| memory.add(name, (count as u64).saturating_mul(FLOAT as u64));
    let (rows, units) = (shapes.rows, stage.network.units());
    let (nodes, fetches) = (batching.nodes.max(rows), plan.fetches(stage) && shapes.workers() > 1);
    // Those of other workers' nodes are not known here; they are taken to have as many as own ones.
    let edges = shapes.edges.iter().sum::<usize>();
    let beside = if plan.keeps_halo_apart(stage) { shapes.halo_rows() } else { 0 };
    let reached = if fetches { (nodes, edges.saturating_mul(nodes / rows.max(1))) } else { (rows + beside, edges) };
    let share = shapes.split_rows[0] as f64 / f64::from(batching.batches.max(1));
    let seeds = ((share + 3.0 * share.sqrt()) as usize * plan.seeds_of_target()).min(reached.0);
    let levels = widths(&plan.fanouts(stage), seeds, reached);
    let fanouts = plan.fanouts(stage);
    let drawn_by = |fanout: Option<usize>, rows: usize| rows.saturating_mul(fanout.unwrap_or(reached.1)).min(reached.1);
    let mut level = 0;
    // Own rows of inputs stay as sparse as they are, as values and columns; others' come dense.
    let is_sparse =
        stage.first_layer == 0 && input_values(shapes, plan) != rows * units[0].layer.facts().inputs && !fetches;
    let of_inputs =
        if is_sparse { 2 * input_values(shapes, plan).div_ceil(rows.max(1)) } else { units[0].layer.facts().inputs };
    for (index, unit) in units.iter().enumerate() {
        let layer = unit.layer.as_ref();
        let read = if index == 0 { of_inputs } else { layer.facts().inputs };
        let (inputs, outputs) = (levels[level], if layer.facts().message_width > 0 { level + 1 } else { level });
        let edges = if outputs > level { drawn_by(fanouts.get(level).copied().flatten(), levels[outputs]) } else { 0 };
        floats(
            "batches",
            layer.facts().state_columns * levels[outputs] + layer.facts().kept_values(levels[outputs], edges),
        );
        let messages = if layer.facts().messages_are_rows() { 0 } else { layer.facts().message_width };
        floats(
            "batches",
            inputs * (read + messages) + levels[outputs] * (layer.facts().fold_width + layer.facts().outputs),
        );
        if index > 0 {
            // Gradients of rows, of messages and of folds.
            floats("batches", (inputs + levels[outputs]) * (layer.facts().inputs + layer.facts().message_width));
        }
        level = outputs;
    }
    // Gradients by what goes into a layer and by what came out of it change places, so the widest is there twice.
    let reads = |index: &usize| units[*index].layer.facts().message_width > 0;
    let into = |index: usize| levels[(0..index).filter(reads).count().min(levels.len() - 1)];
    floats("batches", (1..units.len()).map(|index| into(index) * units[index].layer.facts().inputs).max().unwrap_or(0));
    let drawn = fanouts.iter().zip(&levels[1..]).map(|(fanout, rows)| drawn_by(*fanout, *rows)).sum::<usize>();
    floats("batches ahead", (batching.ahead + 2) * (4 * drawn + 6 * levels[0]));
    if fetches {
        let width = units[0].layer.facts().inputs;
        let foreign = levels[0] * (nodes - rows) / nodes.max(1);
        let kept = (batching.cache / FLOAT as u64) as usize;
        floats("kept rows", ((nodes - rows) * width).min(kept));
        floats("rows on their way", (batching.ahead + 1) * foreign * width);
        floats("draws of other workers", WINDOW as usize * (levels.iter().sum::<usize>() + drawn));
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws of distinct neighbours on a ring, whose rows overlap as little as any graph's, reach no more.
    #[test]
    fn batches_of_a_graph_reach_no_more_nodes_than_are_predicted() {
        let key = laconic_key::Key::new(5, laconic_key::Purpose::Test);
        let (nodes, degree, fanout) = (3000u64, 12, 4usize);
        let mut level: Vec<u64> = (0..60).map(|seed| key.with(seed).below(nodes)).collect();
        let predicted = widths(&[Some(fanout), Some(fanout)], level.len(), (nodes as usize, nodes as usize * degree));
        for expected in predicted[..2].iter().rev() {
            let of = |node: u64| (0..fanout as u64).map(move |edge| key.with(node).with(edge).below(nodes));
            let mut next: Vec<u64> = level.iter().flat_map(|&node| of(node).chain([node])).collect();
            next.sort_unstable();
            next.dedup();
            let (found, expected) = (next.len() as f64, *expected as f64);
            assert!(found <= 1.05 * expected && expected < 1.2 * found, "{found} nodes, {expected} predicted");
            level = next;
        }
    }
}

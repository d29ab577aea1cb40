//! Folds along the edges of a graph, and attention.

use anyhow::Result;
use laconic_graph::graph::Graph;
use laconic_nn::kernels::Store;
use laconic_nn::kernels::attention::{
    ScoreGradients, Scores, Softmax, attention_adjoint, attention_close, attention_fold,
};
use laconic_nn::kernels::fold::{sum_fold, sum_fold_adjoint};
use laconic_nn::{Block, Matrix};

use super::{Against, Bench};
use crate::command::bench::roofline::{WIDTHS, gathered};

/// Heads of attention and columns of each.
const HEADS: [usize; 2] = [8, 32];

const FOLDS: [&str; 2] = ["fold", "fold adjoint"];
const ATTENTION: [&str; 2] = ["attention fold", "attention adjoint"];

/// Measures sums of neighbours' rows by width, and attention.
pub(super) fn measure(bench: &mut Bench<'_>, graph: Graph) -> Result<()> {
    if !bench.wants(&FOLDS) && !bench.wants(&ATTENTION) {
        return Ok(());
    }
    let nodes = graph.nodes();
    let offsets = graph.offsets.iter().map(|&offset| offset as usize).collect();
    let block = Block::new(nodes, offsets, graph.sources, None);
    for width in WIDTHS {
        folds(bench, &block, width);
    }
    if bench.wants(&ATTENTION) {
        attention(bench, &block);
    }
    Ok(())
}

/// What a fold of rows of this width has to gather, against random rows from as many.
fn against(bench: &Bench<'_>, block: &Block, width: usize) -> Against {
    let (nodes, edges) = (block.sources(), block.edges());
    let rows = nodes.min((bench.array / width as u64) as usize).max(1);
    let [copied, read] = gathered(&bench.compute, (rows, rows), width, bench.seconds);
    let amount = 4.0 * ((edges * width) as f64 + (nodes * width) as f64 + edges as f64);
    let (rate, bound) = match copied.bytes_per_second > read.bytes_per_second {
        true => (copied.bytes_per_second, "random rows copied"),
        false => (read.bytes_per_second, "random rows read"),
    };
    Against { unit: "bytes", amount, rate, bound }
}

fn folds(bench: &mut Bench<'_>, block: &Block, width: usize) {
    if !bench.wants(&FOLDS) {
        return;
    }
    let (nodes, against) = (block.sources(), against(bench, block, width));
    let rows = Matrix::filled(nodes, width, 0.5);
    let mut out = Matrix::zeros(nodes, width);
    bench.kernel(FOLDS[0], width, against, &mut |compute| sum_fold(compute, &mut out, Store::Set, block, &rows));
    bench.kernel(FOLDS[1], width, against, &mut |compute| {
        sum_fold_adjoint(compute, &mut out, Store::Set, block, &rows);
    });
}

fn attention(bench: &mut Bench<'_>, block: &Block) {
    let [heads, width] = HEADS;
    let (nodes, columns) = (block.sources(), heads * width);
    let against = against(bench, block, columns);
    let messages = Matrix::filled(nodes, columns, 0.5);
    let (source, vector) = (Matrix::filled(nodes, heads, 0.25), vec![-1.0 / 64.0; columns]);
    let scores = Scores { block, messages: &messages, source: &source, weight: &[] };
    let (mut sums, mut softmax) = (Matrix::zeros(nodes, columns), Softmax::default());
    let shape = format!("{heads}x{width}");
    let mut halves = Matrix::default();
    let mut fold = |compute: &mut laconic_nn::Compute| {
        softmax.reset(compute, &mut halves, (&messages, 0..nodes), [&vector, &vector], heads);
        attention_fold(compute, &mut sums, &mut softmax, scores);
        attention_close(compute, &mut sums, &mut softmax, None);
    };
    // The adjoint reads what the fold leaves.
    fold(&mut bench.compute);
    bench.kernel(ATTENTION[0], &shape, against, &mut fold);
    let (mut out, mut gradients) = (Matrix::default(), ScoreGradients::default());
    bench.kernel(ATTENTION[1], &shape, against, &mut |compute| {
        attention_adjoint(compute, &mut out, &mut gradients, scores, &softmax, (&sums, &vector));
    });
}

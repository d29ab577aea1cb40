//! Dense products of all rows, against what the library reaches for the shape.

use laconic_nn::Precision;

use super::{Against, Bench};
use crate::command::bench::measure::Times;
use crate::command::bench::roofline::{Multiplied, ROWS, SHAPES, multiplied};

/// The names of the three products, in the order in which they are measured, by how rows are stored.
const NAMES: [(Precision, [&str; 3]); 2] = [
    (Precision::F32, ["dense", "dense input gradient", "dense weight gradient"]),
    (Precision::Bf16, ["dense bf16", "dense input gradient bf16", "dense weight gradient bf16"]),
];

/// Measures them by shape. The bound is the fastest of the three on rows that stay in caches, or on these themselves.
pub(super) fn measure(bench: &mut Bench<'_>, nodes: usize) {
    let wanted: Vec<_> = NAMES.iter().filter(|(_, names)| bench.wants(names)).collect();
    for (shape, (precision, names)) in SHAPES.into_iter().flat_map(|shape| wanted.iter().map(move |of| (shape, *of))) {
        let threads = bench.compute.threads();
        let in_caches = multiplied(&mut bench.compute, (ROWS * threads, *precision), shape, bench.seconds);
        let all = multiplied(&mut bench.compute, (nodes, *precision), shape, bench.seconds);
        let fastest = in_caches.iter().chain(&all).map(|product| product.flops_per_second).fold(0.0, f64::max);
        for (name, product) in names.iter().zip(&all).filter(|(name, _)| name.contains(bench.filter)) {
            let amount = 2.0 * nodes as f64 * shape[0] as f64 * shape[1] as f64;
            let against = Against { unit: "flops", amount, rate: fastest, bound: "the shape's fastest product" };
            bench.kernels.push(entry(name, product, against));
        }
    }
}

fn entry(name: &'static str, product: &Multiplied, against: Against) -> super::Kernel {
    let Against { unit, amount, rate: bound_rate, bound } = against;
    let times: Times = product.times;
    let rate = product.flops_per_second;
    super::Kernel {
        name,
        shape: format!("{}x{}", product.inputs, product.outputs),
        threads: product.threads,
        unit,
        amount,
        times,
        rate,
        bound_rate,
        share: rate / bound_rate,
        bound,
    }
}

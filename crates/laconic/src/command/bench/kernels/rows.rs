//! Passes over rows: norm, activation and dropout in one, their adjoint, and a copy with dropout, as batches make it.

use std::cell::RefCell;

use laconic_key::{Key, Purpose};
use laconic_nn::kernels::elementwise::gather;
use laconic_nn::kernels::normalise::{
    Activated, Activation, Affine, Gradients, Norm, Statistics, activate, activate_adjoint,
};
use laconic_nn::{Dropout, Matrix};

use super::Bench;

/// The width of hidden rows.
const WIDTH: usize = 256;

/// Name of the pass and of its adjoint, whether it has a norm, whether dropout.
const PASSES: [([&str; 2], bool, bool); 3] = [
    (["relu", "relu adjoint"], false, false),
    (["relu dropout", "relu dropout adjoint"], false, true),
    (["norm relu dropout", "norm relu dropout adjoint"], true, true),
];

const DROPOUT: &str = "dropout";

/// Measures the passes against a copy: each reads and writes its rows once, an adjoint reads twice as many.
pub(super) fn measure(bench: &mut Bench<'_>, nodes: usize) {
    let names: Vec<&str> = PASSES.iter().flat_map(|(names, ..)| *names).chain([DROPOUT]).collect();
    if !bench.wants(&names) {
        return;
    }
    let bytes = (4 * nodes * WIDTH) as f64;
    let (once, back) = (bench.streamed(2.0 * bytes), bench.streamed(3.0 * bytes));
    let key = Key::new(1, Purpose::Dropout);
    let z: Vec<f32> = (0..nodes * WIDTH).map(|value| (value % 17) as f32 - 8.0).collect();
    let (z, ids) = (Matrix::from_vec(nodes, WIDTH, z), (0..nodes as u64).collect::<Vec<u64>>());
    let (ones, zeros) = (vec![1.0; WIDTH], vec![0.0; WIDTH]);
    let half = Dropout { probability: 0.5, key };
    for ([name, adjoint], has_norm, drops) in PASSES {
        let norm = has_norm.then_some(Norm::Rows(Affine { weight: &ones, bias: &zeros }));
        let between = Activation { norm, slope: None, dropout: drops.then_some(half), weight: None };
        let (mut out, mut statistics) = (Matrix::default(), Statistics::default());
        activate(&bench.compute, &mut out, &z, between, &ids, &mut statistics);
        bench.kernel(name, WIDTH, once, &mut |compute| activate(compute, &mut out, &z, between, &ids, &mut statistics));
        // The gradient is turned into another in its place, again and again smaller.
        let gradient = RefCell::new(Matrix::zeros(nodes, WIDTH));
        let (mut weight, mut bias) = (zeros.clone(), zeros.clone());
        let done = Activated { out: Some(&out), z: &z, statistics: &statistics };
        let mut prepare = || gradient.borrow_mut().data_mut().fill(0.5);
        bench.kernel_after(adjoint, WIDTH, back, &mut prepare, &mut |compute| {
            let gradients = Gradients { weight: &mut weight, bias: &mut bias, slope: &mut [] };
            activate_adjoint(compute, &mut gradient.borrow_mut(), between, done, &ids, gradients);
        });
    }
    let mut out = Matrix::zeros(nodes, WIDTH);
    bench.kernel(DROPOUT, WIDTH, once, &mut |compute| gather(compute, &mut out, |row| z.row(row), Some(half), &ids));
}

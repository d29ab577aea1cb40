//! Products of rounded rows against nested loops, and against those of `f32`.

use super::*;
use crate::kernels::affine::{Left, add_affine_gradients, affine, times_weight_onto, times_weight_through_relu};
use crate::kernels::product::tests::random;
use crate::kernels::product::{add_weight_gradient, times_weight, times_weight_transposed};
use crate::matrix::{Matrix, Precision, Rows};
use crate::threads::Compute;

/// Rows, columns of the left side, columns that come out: odd and even, below and above a tile and a panel, and a
/// square and a half.
const SHAPES: [(usize, usize, usize); 9] = [
    (2100, 37, 11),
    (1, 1, 1),
    (1025, 5, 3),
    (0, 4, 2),
    (300, 256, 40),
    (131, 64, 70),
    (97, 130, 256),
    (97, 50, 24),
    (65, 31, 17),
];

/// The values of a matrix, stored so, as f64 row after row.
fn exact(m: &Matrix) -> Vec<f64> {
    m.clone().converted(Precision::F32).data().iter().map(|value| f64::from(*value)).collect()
}

/// Whether two sums of products of bfloat16 agree, of which one may have rounded the weights and the sum.
fn close(a: f64, b: f64, size: f64) -> bool {
    (a - b).abs() <= 1e-2 * size.max(1e-3)
}

struct Case {
    n: usize,
    inputs: usize,
    outputs: usize,
    x: Matrix,
    dz: Matrix,
    weight: Matrix,
}

fn cases() -> impl Iterator<Item = Case> {
    let precisions = Precision::ALL.into_iter().flat_map(|x| Precision::ALL.map(|dz| (x, dz)));
    let both = precisions.flat_map(|precisions| SHAPES.map(|shape| (precisions, shape)));
    both.map(|((of_x, of_dz), (n, inputs, outputs))| Case {
        n,
        inputs,
        outputs,
        x: random(n, inputs, 1).converted(of_x),
        dz: random(n, outputs, 2).converted(of_dz),
        weight: random(outputs, inputs, 3),
    })
}

#[test]
fn products_of_rounded_rows_agree_with_nested_loops() {
    for Case { n, inputs, outputs, x, dz, weight } in cases() {
        let mut compute = Compute::new(2);
        let (mut z, mut dx) = (Matrix::stored(dz.precision()), Matrix::stored(x.precision()));
        z.reshape(n, outputs);
        dx.reshape(n, inputs);
        times_weight_transposed(&mut compute, &mut z, Store::Set, Rows::Dense(&x), weight.data());
        times_weight_transposed(&mut compute, &mut z, Store::Add, Rows::Dense(&x), weight.data());
        times_weight(&mut compute, &mut dx, Store::Set, &dz, weight.data());
        let mut dw = vec![0.5; outputs * inputs];
        add_weight_gradient(&mut compute, &mut dw, &dz, Rows::Dense(&x));
        let [x, dz, z, dx, weight] = [&x, &dz, &z, &dx, &weight].map(exact);
        for row in (0..n).step_by(41) {
            for output in 0..outputs {
                let terms = (0..inputs).map(|i| 2.0 * x[row * inputs + i] * weight[output * inputs + i]);
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                assert!(close(z[row * outputs + output], sum, size), "{} {sum}", z[row * outputs + output]);
            }
            for input in 0..inputs {
                let terms = (0..outputs).map(|o| dz[row * outputs + o] * weight[o * inputs + input]);
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                assert!(close(dx[row * inputs + input], sum, size), "{} {sum}", dx[row * inputs + input]);
            }
        }
        for (at, value) in dw.iter().enumerate().step_by(7) {
            let (output, input) = (at / inputs, at % inputs);
            let terms = (0..n).map(|row| dz[row * outputs + output] * x[row * inputs + input]);
            let (sum, size) = terms.fold((0.5, 0.5), |(sum, size), term| (sum + term, size + term.abs()));
            assert!(close(f64::from(*value), sum, size), "{value} {sum}");
        }
    }
}

#[test]
fn fused_products_of_rounded_rows_agree_with_those_of_f32() {
    for Case { n, inputs, outputs, x, dz, weight } in cases() {
        let (y, bias, v) = (random(n, inputs, 4), random(1, outputs, 5), random(outputs, inputs, 6));
        let wide = |m: &Matrix| m.clone().converted(Precision::F32);
        let run = |x: &Matrix, y: &Matrix, dz: &Matrix| {
            let mut compute = Compute::new(2);
            let mut out = Matrix::stored(dz.precision());
            out.reshape(n, outputs);
            let sum = Left::sum(Rows::Dense(x), 1.5, Rows::Dense(y)).expect("both are dense");
            let terms = [(Left::Rows(Rows::Dense(x)), weight.data()), (sum, v.data())];
            affine(&mut compute, &mut out, &terms, bias.data(), |first, rows| {
                rows.chunks_exact_mut(outputs).enumerate().for_each(|(row, values)| {
                    values.iter_mut().for_each(|value| *value *= ((first + row) % 7) as f32);
                });
            });
            let values = outputs * inputs;
            let mut gradient = vec![0.25; 2 * values + outputs];
            let terms = [(Left::Rows(Rows::Dense(x)), values + outputs), (sum, 0)];
            add_affine_gradients(&mut compute, &mut gradient, values, dz, &terms);
            let (mut hidden, mut through) = (x.clone(), dz.clone());
            times_weight_through_relu(&mut compute, &mut hidden, dz, weight.data());
            let in_place = inputs == outputs;
            let onto = times_weight_onto(&mut compute, &mut through, weight.data(), Rows::Dense(x), in_place);
            [exact(&out), gradient.iter().map(|g| f64::from(*g)).collect(), exact(&hidden), vec![f64::from(onto)]]
        };
        let rounded = y.clone().converted(x.precision());
        let (plain, short) = (run(&wide(&x), &wide(&rounded), &wide(&dz)), run(&x, &rounded, &dz));
        for (part, (plain, short)) in plain.iter().zip(&short).enumerate() {
            let scale = (plain.iter().map(|v| v * v).sum::<f64>() / plain.len().max(1) as f64).sqrt();
            for (plain, short) in plain.iter().zip(short) {
                assert!((plain - short).abs() <= 2e-2 * plain.abs().max(scale).max(1.0), "{part}: {plain} {short}");
            }
        }
    }
}

#[test]
fn products_of_rounded_rows_have_the_same_bits_on_any_number_of_threads() {
    for Case { n, inputs, outputs, x, dz, weight } in cases() {
        let run = |threads| {
            let mut compute = Compute::new(threads);
            let (mut z, mut dw) = (Matrix::stored(Precision::Bf16), vec![0.0; outputs * inputs]);
            z.reshape(n, outputs);
            times_weight_transposed(&mut compute, &mut z, Store::Set, Rows::Dense(&x), weight.data());
            add_weight_gradient(&mut compute, &mut dw, &dz, Rows::Dense(&x));
            (z, dw)
        };
        let one = run(1);
        assert!(run(2) == one && run(3) == one);
    }
}

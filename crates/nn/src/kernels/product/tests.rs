//! Products against nested loops.

use laconic_key::{Key, Purpose};

use super::*;
use crate::dropout::Dropout;
use crate::kernels::affine::{Left, add_affine_gradients, affine, times_weight_onto};
use crate::kernels::attention::{Transformed, transformed_adjoint};
use crate::kernels::elementwise::{copy_scaled, copy_shifted, drop_out_in_place};
use crate::matrix::Operand;

/// The library's products too, which the others leave to processors without these instructions.
#[test]
fn products_by_the_library_and_in_tiles_agree_with_nested_loops() {
    let tiles = [Words::F32x16, Words::F32x8].into_iter().filter(|words| words.are_multiplied()).map(By::Tiles);
    let ways: Vec<By> = std::iter::once(By::Library).chain(tiles).collect();
    let rooms = Compute::new(1).rooms();
    for (n, inputs, outputs) in [(200, 37, 11), (1, 1, 1), (97, 130, 70), (49, 256, 40), (0, 3, 2), (5, 0, 3)] {
        let (x, dz, w) = (random(n, inputs, 1), random(n, outputs, 2), random(outputs, inputs, 3));
        let exact = |a: &[f32], b: &mut dyn Iterator<Item = f32>| -> f64 {
            a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(b)).sum()
        };
        for &by in &ways {
            let multiply = |weight: Weight<'_>, x: &Matrix, store: Store, columns: usize| {
                let (mut ready, mut out) = (vec![0.0; weight.room(by)], random(n, columns, 4));
                weight.make_ready(by, &mut ready);
                let factor = weight.made_ready(by, &ready);
                factor.multiply(&rooms, (out.data_mut(), store), Values::F32(x.data()), Coming::default());
                out
            };
            let z = multiply(Weight::transposed(w.data(), outputs), &x, Store::Set, outputs);
            let dx = multiply(Weight::new(w.data(), inputs), &dz, Store::Add, inputs);
            let mut dw = vec![0.25; outputs * inputs];
            with_left(&rooms, (dz.values(), outputs), by, |dz| {
                with_right(&rooms, (x.values(), inputs), by, |x| add_to_gradient(&mut dw, dz, x, Coming::default()));
            });
            let begun = random(n, inputs, 4);
            for row in 0..n {
                for output in 0..outputs {
                    assert!(close(z.row(row)[output], exact(x.row(row), &mut w.row(output).iter().copied())));
                }
                for input in 0..inputs {
                    let sum = exact(dz.row(row), &mut (0..outputs).map(|output| w.row(output)[input]));
                    assert!(close(dx.row(row)[input], f64::from(begun.row(row)[input]) + sum));
                }
            }
            for (at, value) in dw.iter().enumerate() {
                let (output, input) = (at / inputs, at % inputs);
                let of_output: Vec<f32> = (0..n).map(|row| dz.row(row)[output]).collect();
                let sum = exact(&of_output, &mut (0..n).map(|row| x.row(row)[input]));
                assert!(close(*value, 0.25 + sum), "{by:?}: {value} {sum}");
            }
        }
    }
}

pub(in crate::kernels) fn random(rows: usize, columns: usize, stream: u64) -> Matrix {
    let key = Key::new(stream, Purpose::Test);
    let value = |i: usize| (key.with(i as u64).unit() - 0.5) as f32;
    Matrix::from_vec(rows, columns, (0..rows * columns).map(value).collect())
}

pub(in crate::kernels) fn close(a: f32, b: f64) -> bool {
    (f64::from(a) - b).abs() < 2e-4 * (1.0 + b.abs())
}

/// Every product against three nested loops in f64, for dense and sparse rows and on one and two threads.
#[test]
fn products_agree_with_nested_loops() {
    let (n, inputs, outputs) = (2100, 37, 11);
    let mut x = random(n, inputs, 1);
    for (i, v) in x.data_mut().iter_mut().enumerate() {
        if Key::new(5, Purpose::Test).with(i as u64).unit() < 0.9 {
            *v = 0.0;
        }
    }
    let (w, dz) = (random(outputs, inputs, 2), random(n, outputs, 3));
    for (operand, threads) in [(Operand::Dense(x.clone()), 1), (Operand::compact(x.clone()), 2)] {
        let mut compute = Compute::new(threads);
        let mut z = Matrix::from_vec(n, outputs, vec![1.0; n * outputs]);
        times_weight_transposed(&mut compute, &mut z, Store::Add, operand.view(), w.data());
        let mut dx = Matrix::from_vec(n, inputs, vec![9.0; n * inputs]);
        times_weight(&mut compute, &mut dx, Store::Set, &dz, w.data());
        let mut dw = vec![0.5; outputs * inputs];
        add_weight_gradient(&mut compute, &mut dw, &dz, operand.view());
        for r in (0..n).step_by(97) {
            for o in 0..outputs {
                let sum: f64 = (0..inputs).map(|i| f64::from(x.row(r)[i]) * f64::from(w.row(o)[i])).sum();
                assert!(close(z.row(r)[o], 1.0 + sum));
            }
            for i in 0..inputs {
                let sum: f64 = (0..outputs).map(|o| f64::from(dz.row(r)[o]) * f64::from(w.row(o)[i])).sum();
                assert!(close(dx.row(r)[i], sum));
            }
        }
        for o in 0..outputs {
            for i in 0..inputs {
                let sum: f64 = (0..n).map(|r| f64::from(dz.row(r)[o]) * f64::from(x.row(r)[i])).sum();
                assert!(close(dw[o * inputs + i], 0.5 + sum));
            }
        }
    }
}

#[test]
fn products_have_the_same_bits_on_any_number_of_threads() {
    let (x, w, dz) = (random(3000, 64, 1), random(48, 64, 2), random(3000, 48, 3));
    let run = |threads| {
        let mut compute = Compute::new(threads);
        let (mut z, mut dw, mut db) = (Matrix::zeros(3000, 48), vec![0.0; 48 * 64], vec![0.0; 48]);
        times_weight_transposed(&mut compute, &mut z, Store::Set, Rows::Dense(&x), w.data());
        add_weight_gradient(&mut compute, &mut dw, &dz, Rows::Dense(&x));
        add_bias_gradient(&mut compute, &mut db, &dz);
        z.data().iter().chain(&dw).chain(&db).map(|v| v.to_bits()).collect::<Vec<_>>()
    };
    let one = run(1);
    assert!(run(2) == one && run(3) == one);
}

/// By whatever multiplies here, and by the library, of which small and large shapes take different kernels.
#[cfg(target_arch = "x86_64")]
#[test]
fn products_leave_the_vector_registers_clean() {
    use crate::kernels::dispatch::vector_registers_are_dirty;
    if vector_registers_are_dirty().is_none() {
        println!("skipped: this processor does not tell which registers are in use");
        return;
    }
    for (n, inputs, outputs) in [(3, 2, 1), (60, 8, 5), (1024, 64, 40), (2100, 200, 130)] {
        let (x, w, dz) = (random(n, inputs, 1), random(outputs, inputs, 2), random(n, outputs, 3));
        let mut compute = Compute::new(1);
        let (mut z, mut dx) = (Matrix::zeros(n, outputs), Matrix::zeros(n, inputs));
        let mut dw = vec![0.0; outputs * inputs];
        times_weight_transposed(&mut compute, &mut z, Store::Set, Rows::Dense(&x), w.data());
        let after_forward = vector_registers_are_dirty();
        times_weight(&mut compute, &mut dx, Store::Set, &dz, w.data());
        let after_backward = vector_registers_are_dirty();
        add_weight_gradient(&mut compute, &mut dw, &dz, Rows::Dense(&x));
        let after_gradient = vector_registers_are_dirty();
        let (rooms, factor) = (compute.rooms(), Weight::transposed(w.data(), outputs).made_ready(By::Library, &[]));
        factor.multiply(&rooms, (z.data_mut(), Store::Set), Values::F32(x.data()), Coming::default());
        let dirty = [after_forward, after_backward, after_gradient, vector_registers_are_dirty()];
        assert_eq!(dirty, [Some(false); 4], "{n} x {inputs} x {outputs}");
    }
}

#[test]
fn products_of_no_rows_are_empty() {
    let mut compute = Compute::new(2);
    let x = Matrix::zeros(0, 3);
    let (mut z, mut dw) = (Matrix::zeros(0, 2), vec![1.0; 6]);
    times_weight_transposed(&mut compute, &mut z, Store::Set, Rows::Dense(&x), &[0.0; 6]);
    add_weight_gradient(&mut compute, &mut dw, &z, Rows::Dense(&x));
    assert_eq!(dw, [1.0; 6]);
}

/// Dense rows of the same values have kernels of their own.
#[test]
fn some_rows_of_a_sparse_matrix_count_as_the_same_dense_ones() {
    let (n, inputs, outputs) = (30, 40, 7);
    let mut dense = Matrix::zeros(n, inputs);
    (0..n).for_each(|row| dense.row_mut(row)[row * 7 % inputs] = row as f32 - 11.5);
    let sparse = Operand::compact(dense.clone());
    assert!(matches!(sparse, Operand::Sparse(_)));
    let compute = &mut Compute::new(2);
    for rows in [0..30, 0..12, 5..5, 9..30, 29..30] {
        let both = [sparse.view().span(rows.clone()), Rows::Span(dense.span(rows.clone()))];
        let (weight, dz) = (random(outputs, inputs, 1), random(rows.len(), outputs, 2));
        let [found, expected] = both.map(|x| {
            let mut z = random(rows.len(), outputs, 3);
            times_weight_transposed(compute, &mut z, Store::Add, x, weight.data());
            let mut of_weight = vec![0.5; outputs * inputs];
            add_weight_gradient(compute, &mut of_weight, &dz, x);
            let mut of_product = vec![0.5; outputs * inputs];
            add_product_gradient(compute, &mut of_product, x, &dz);
            [z.data(), &of_weight, &of_product].concat()
        });
        assert!(found.iter().zip(&expected).all(|(a, b)| close(*a, f64::from(*b))), "{rows:?}");
        assert_eq!(found.len(), expected.len());
    }
}

/// A copy that has been dropped out or put in order beforehand takes the same way through the same kernels, so every
/// bit is the same.
#[test]
fn rows_that_are_made_as_they_are_read_count_as_a_copy_of_which_that_was_made() {
    let (n, inputs, outputs) = (700, 37, 21);
    let (dropout, nodes) = (Dropout { probability: 0.4, key: Key::new(3, Purpose::Dropout) }, 100..100 + n as u64);
    let (nodes, compute) = (nodes.collect::<Vec<u64>>(), &mut Compute::new(2));
    for precision in Precision::ALL {
        let [x, y] = [1, 2].map(|seed| Operand::Dense(random(n, inputs, seed).converted(precision)));
        let mut copy = x.clone().converted(Precision::F32);
        drop_out_in_place(compute, &mut copy, dropout, &nodes);
        let copy = copy.converted(precision);
        let lazy = Rows::Made(x.view().dense().expect("a matrix").with_dropout(dropout, &nodes));
        // Every other row of twice as many, from behind.
        let places: Vec<u32> = (0..n as u32).map(|row| 2 * (n as u32 - 1 - row) + 1).collect();
        let twice = Operand::Dense(random(2 * n, inputs, 9).converted(precision));
        let (gathered, placed) = (twice.gather(&places), twice.placed(places));
        let mut ordered = gathered.clone().converted(Precision::F32);
        drop_out_in_place(compute, &mut ordered, dropout, &nodes);
        let ordered = ordered.converted(precision);
        let all = [
            (lazy, copy.view()),
            (placed.view(), gathered.view()),
            (Rows::Made(placed.view().dense().expect("dense").with_dropout(dropout, &nodes)), ordered.view()),
        ];
        for ((made, copied), rows) in all.iter().flat_map(|both| [0..n, 5..5, 3..650].map(|rows| (both, rows))) {
            let both = [made.span(rows.clone()), copied.span(rows.clone())];
            let (y, count) = (y.view().span(rows.clone()), rows.len());
            let [found, expected] = both.map(|x| all_that_reads(compute, x, y, outputs));
            assert!(found.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()), "{rows:?} {precision:?}");
            assert_eq!(found.len(), expected.len());
            assert!(count == 0 || expected.iter().any(|value| *value != 0.0));
        }
    }
}

/// What the kernels that read rows make of these, one after the other.
fn all_that_reads(compute: &mut Compute, x: Rows<'_>, y: Rows<'_>, outputs: usize) -> Vec<f32> {
    let (n, inputs) = (x.rows(), x.columns());
    let (weight, dz, bias) = (random(outputs, inputs, 3), random(n, outputs, 4), random(1, outputs, 5));
    let square = random(inputs, inputs, 6);
    let [mut z, mut across, mut affine_z] = [(); 3].map(|()| random(n, outputs, 7));
    let [mut scaled, mut shifted] = [(); 2].map(|()| random(n, inputs, 8));
    times_weight_transposed(compute, &mut z, Store::Add, x, weight.data());
    times(compute, &mut across, Store::Set, x, weight.data());
    copy_scaled(compute, &mut scaled, Store::Add, x, 0.5, None);
    copy_shifted(compute, &mut shifted, x, &square.data()[..inputs]);
    let [mut of_weight, mut of_product] = [(); 2].map(|()| vec![0.5; outputs * inputs]);
    add_weight_gradient(compute, &mut of_weight, &dz, x);
    add_product_gradient(compute, &mut of_product, x, &dz);
    let sum = Left::sum(y, 1.5, x).expect("both are dense");
    let terms = [(Left::Rows(x), weight.data()), (sum, weight.data())];
    affine(compute, &mut affine_z, &terms, bias.data(), |_, _| {});
    let values = outputs * inputs;
    let mut of_affine = vec![0.5; 2 * values + outputs];
    let terms = [(Left::Rows(x), 0), (sum, values + outputs)];
    add_affine_gradients(compute, &mut of_affine, values, &dz, &terms);
    let onto = times_weight_onto(compute, &mut dz.clone(), weight.data(), x, false);
    let mut of_back = vec![0.5; values + outputs];
    let (heads, destination) = (random(n, 1, 9), random(1, outputs, 10));
    let of = Transformed {
        x: x.dense().expect("they are dense"),
        weight: weight.data(),
        messages: &z,
        destination: destination.data(),
    };
    transformed_adjoint(compute, (&mut of_back, values), of, &heads, &dz, None);
    let row_by_row = (0..n).flat_map(|row| {
        let mut of_row = vec![f32::NAN; inputs];
        x.copy_row(row, &mut of_row);
        of_row
    });
    let made = [z.data(), across.data(), affine_z.data(), scaled.data(), shifted.data()].concat();
    let gradients = [&of_weight[..], &of_product, &of_affine, &of_back, &[onto]].concat();
    made.into_iter().chain(gradients).chain(row_by_row).collect()
}

//! What stands between two layers against its definition, and its adjoint against finite differences.

use super::*;
use crate::kernels::Store;
use crate::kernels::elementwise::copy_scaled;
use crate::matrix::{Precision, Rows};
use laconic_key::{Key, Purpose};

fn random(rows: usize, columns: usize, stream: u64) -> Matrix {
    let key = Key::new(stream, Purpose::Test);
    let value = |i: usize| key.with(i as u64).normal() as f32;
    Matrix::from_vec(rows, columns, (0..rows * columns).map(value).collect())
}

#[test]
fn what_is_no_number_stays_none_in_its_row_and_in_no_other() {
    let mut z = random(3, 40, 1);
    z.row_mut(1)[17] = f32::NAN;
    let (ones, zeros) = (vec![1.0; 40], vec![0.0; 40]);
    for norm in [None, Some(Norm::Rows(Affine { weight: &ones, bias: &zeros }))] {
        let (mut out, mut statistics) = (Matrix::default(), Statistics::default());
        let between = Activation { norm, slope: None, dropout: None, weight: None };
        activate(&Compute::new(1), &mut out, &z, between, &[0, 1, 2], &mut statistics);
        let broken = |row: usize| out.row(row).iter().filter(|value| value.is_nan()).count();
        let all = if norm.is_some() { 40 } else { 1 };
        assert_eq!([0, 1, 2].map(broken), [0, all, 0]);
        assert!(out.row(1)[17].is_nan());
    }
}

/// A norm over rows or none, and a slope or none; the values go through [`activate`].
#[derive(Clone)]
struct Subject {
    with_norm: bool,
    /// z, γ, β and the slope.
    values: [Matrix; 4],
    dropout: Option<Dropout>,
    is_prelu: bool,
    weight: Option<Vec<f32>>,
    nodes: Vec<u64>,
}

impl Subject {
    fn between(&self) -> Activation<'_> {
        let [_, weight, bias, slope] = &self.values;
        let norm = self.with_norm.then_some(Norm::Rows(Affine { weight: weight.data(), bias: bias.data() }));
        let slope = self.is_prelu.then_some(slope.data()[0]);
        Activation { norm, slope, dropout: self.dropout, weight: self.weight.as_deref() }
    }

    fn run(&self, compute: &Compute) -> (Matrix, Statistics) {
        let (mut out, mut statistics) = (Matrix::default(), Statistics::default());
        activate(compute, &mut out, &self.values[0], self.between(), &self.nodes, &mut statistics);
        (out, statistics)
    }

    /// The same with one of the values moved.
    fn moved(&self, which: usize, d: &Matrix, e: f32) -> Subject {
        let mut subject = self.clone();
        subject.values[which].data_mut().iter_mut().zip(d.data()).for_each(|(value, d)| *value += e * d);
        subject
    }
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// ⟨g, f(z + εd) − f(z − εd)⟩ / 2ε against ⟨f'(z)ᵀ g, d⟩, for the input, γ, β and the slope, which may be
/// negative; with rows that are multiplied by something, and by nothing.
#[test]
fn adjoint_agrees_with_finite_differences() {
    let (rows, width) = (40, 21);
    let g = random(rows, width, 2);
    let dropout = Some(Dropout { probability: 0.4, key: Key::new(9, Purpose::Dropout) });
    let mut compute = Compute::new(2);
    let slopes = [None, Some(0.25), Some(-0.5), Some(0.0)];
    let some: Vec<f32> = (0..rows).map(|row| (row % 4) as f32 / 2.0).collect();
    let cases = slopes.into_iter().flat_map(|slope| [false, true].map(|with_norm| (with_norm, slope)));
    for ((with_norm, slope), weight) in cases.flat_map(|case| [None, Some(some.clone())].map(|w| (case, w))) {
        let sloped = Matrix::from_vec(1, 1, vec![slope.unwrap_or(0.0)]);
        let values = [random(rows, width, 1), random(1, width, 3), random(1, width, 4), sloped];
        let nodes = (100..100 + rows as u64).collect();
        let subject = Subject { with_norm, values, dropout, is_prelu: slope.is_some(), weight, nodes };
        let (out, statistics) = subject.run(&compute);
        let mut found = [g.clone(), Matrix::zeros(1, width), Matrix::zeros(1, width), Matrix::zeros(1, 1)];
        let [dz, dw, db, ds] = &mut found;
        let done = Activated { out: Some(&out), z: &subject.values[0], statistics: &statistics };
        let gradients = Gradients { weight: dw.data_mut(), bias: db.data_mut(), slope: ds.data_mut() };
        activate_adjoint(&mut compute, dz, subject.between(), done, &subject.nodes, gradients);
        let e = 1e-3;
        for (which, gradient) in found.iter().enumerate() {
            if [true, with_norm, with_norm, slope.is_some()][which] {
                let d = random(gradient.rows(), gradient.columns(), 7 + which as u64);
                let at = |e: f32| product(subject.moved(which, &d, e).run(&compute).0.data(), g.data());
                let numeric = (at(e) - at(-e)) / (2.0 * f64::from(e));
                let exact = product(gradient.data(), d.data());
                assert!(
                    (numeric - exact).abs() < 2e-2 * (1.0 + exact.abs()),
                    "{which} with {slope:?}: {numeric} against {exact}"
                );
            }
        }
    }
}

/// The same bits in place, whatever is dropped and whatever rows are multiplied by, stored in full or in short; and the
/// same gradient without what went in.
#[test]
fn a_relu_in_place_gives_and_returns_what_it_does_beside_its_input() {
    let (rows, width) = (70, 21);
    let nodes: Vec<u64> = (5..5 + rows as u64).collect();
    let weight: Vec<f32> = (0..rows).map(|row| (row % 4) as f32 / 2.0).collect();
    let dropout = Dropout { probability: 0.4, key: Key::new(9, Purpose::Dropout) };
    let mut compute = Compute::new(2);
    let cases = [None, Some(dropout)].map(|dropout| [None, Some(&weight[..])].map(|weight| (dropout, weight)));
    for ((dropout, weight), precision) in cases
        .into_iter()
        .flatten()
        .flat_map(|case| [Precision::F32, Precision::Bf16].map(|precision| (case, precision)))
    {
        let between = Activation { norm: None, slope: None, dropout, weight };
        let (mut z, mut out, mut statistics) = (Matrix::default(), Matrix::default(), Statistics::default());
        [&mut z, &mut out].into_iter().for_each(|matrix| matrix.store_as(precision));
        let mut value = random(rows, width, 1);
        value.row_mut(3)[2] = f32::NAN;
        z.reshape(rows, width);
        copy_scaled(&compute, &mut z, Store::Set, Rows::Dense(&value), 1.0, None);
        activate(&compute, &mut out, &z, between, &nodes, &mut statistics);
        let mut gradients = [0; 2].map(|_| random(rows, width, 2));
        let [beside, in_place] = &mut gradients;
        let done = Activated { out: Some(&out), z: &z, statistics: &statistics };
        activate_adjoint(&mut compute, beside, between, done, &nodes, Gradients::default());
        activate_in_place(&compute, &mut z, between, &nodes);
        let bits = |matrix: &Matrix| {
            let mut row = vec![0.0; width];
            let mut of = |line| {
                Rows::Dense(matrix).copy_row(line, &mut row);
                row.iter().map(|value| value.to_bits()).collect::<Vec<u32>>()
            };
            (0..rows).map(&mut of).collect::<Vec<_>>()
        };
        assert_eq!(bits(&z), bits(&out), "{between:?} {precision:?}");
        let done = Activated { out: Some(&z), z: &Matrix::default(), statistics: &statistics };
        activate_adjoint(&mut compute, in_place, between, done, &nodes, Gradients::default());
        assert_eq!(bits(in_place), bits(beside), "{between:?} {precision:?}");
    }
}

/// Columns are normalised by what is given, whatever the rows: the definition, value by value.
#[test]
fn columns_are_normalised_by_their_statistics_before_the_activation() {
    let (rows, width) = (5, 3);
    let z = random(rows, width, 1);
    let (weight, bias) = ([1.5, -0.5, 2.0], [0.1, 0.2, -0.3]);
    let mut statistics = Statistics::default();
    let (means, variances) = ([0.5, -1.0, 0.0], [4.0, 0.25, 1.0]);
    statistics.columns.set_running([&means, &variances], EPSILON);
    let norm = Some(Norm::Columns(Affine { weight: &weight, bias: &bias }));
    let between = Activation { norm, slope: Some(0.25), dropout: None, weight: None };
    let mut out = Matrix::default();
    activate(&Compute::new(1), &mut out, &z, between, &[0, 1, 2, 3, 4], &mut statistics);
    for row in 0..rows {
        for column in 0..width {
            let value = (z.row(row)[column] - means[column]) / (variances[column] + EPSILON).sqrt();
            let value = value * weight[column] + bias[column];
            let expected = if value > 0.0 { value } else { 0.25 * value };
            assert!((out.row(row)[column] - expected).abs() < 1e-6, "{} {expected}", out.row(row)[column]);
        }
    }
}

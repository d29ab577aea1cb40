//! What stands between two layers, in one pass over the rows: a norm, an activation and dropout.
//!
//! Norms are LayerNorm (Ba, Kiros and Hinton, 2016), or BatchNorm once the statistics of columns are known
//! ([`super::batch_norm`]); activations ReLU and PReLU (He et al., 2015).

use super::batch_norm::Columns;
use super::dispatch::per_processor;
use super::elementwise::{Dropout, NodeIds, column_bits, open_piece, positive_part};
use crate::matrix::Matrix;
use crate::threads::{Compute, ROWS_PER_PIECE, row_pieces};

/// PyTorch's default ε of LayerNorm and BatchNorm.
pub const EPSILON: f32 = 1e-5;

/// The affine part of a norm.
#[derive(Debug, Clone, Copy)]
pub struct Affine<'a> {
    /// γ, one value a column.
    pub weight: &'a [f32],
    /// β, one value a column.
    pub bias: &'a [f32],
}

/// A norm by what it is over, with its affine part.
#[derive(Debug, Clone, Copy)]
pub enum Norm<'a> {
    /// Over the values of each row: LayerNorm.
    Rows(Affine<'a>),
    /// Over the rows in each column, by statistics that are known: BatchNorm.
    Columns(Affine<'a>),
}

/// What stands between two layers.
#[derive(Debug, Clone, Copy)]
pub struct Activation<'a> {
    /// The norm before the activation; `None` for none.
    pub norm: Option<Norm<'a>>,
    /// What PReLU multiplies values below 0 by; `None` for ReLU.
    pub slope: Option<f32>,
    /// Dropout after it; `None` for none.
    pub dropout: Option<Dropout>,
}

/// What values are normalised by.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Statistics {
    /// Mean and reciprocal standard deviation of each row; rows × 2. [`activate`] sets it.
    pub rows: Matrix,
    /// Those of each column, for whom [`activate`] normalises columns.
    pub columns: Columns,
}

/// What [`activate`] read and wrote, for its adjoint.
#[derive(Debug, Clone, Copy)]
pub struct Activated<'a> {
    /// Its output; rows × width.
    pub out: &'a Matrix,
    /// Its input; rows × width.
    pub z: &'a Matrix,
    /// What it normalised by.
    pub statistics: &'a Statistics,
}

/// Where gradients of parameters are added; each empty where there is no such parameter.
#[derive(Debug, Default)]
pub struct Gradients<'a> {
    /// That of γ.
    pub weight: &'a mut [f32],
    /// That of β.
    pub bias: &'a mut [f32],
    /// That of PReLU's slope.
    pub slope: &'a mut [f32],
}

/// `out = dropout(activation(norm(z)))`; without norm or dropout that part is left out. `nodes` has one id a row.
///
/// `statistics` gets mean and reciprocal standard deviation of each row of z, which [`activate_adjoint`] reads.
pub fn activate(
    compute: &Compute,
    out: &mut Matrix,
    z: &Matrix,
    between: Activation<'_>,
    nodes: NodeIds<'_>,
    Statistics { rows: statistics, columns }: &mut Statistics,
) {
    let width = z.columns().max(1);
    out.reshape(z.rows(), z.columns());
    statistics.reshape(z.rows(), 2);
    let between = Resolved { between, columns };
    let out = (out.data_mut(), ROWS_PER_PIECE * width);
    compute.chunks2(out, (statistics.data_mut(), ROWS_PER_PIECE * 2), |piece, out, statistics| {
        let first = piece * ROWS_PER_PIECE;
        let rows = statistics.len() / 2;
        let z = &z.data()[first * width..(first + rows) * width];
        activate_piece(out, z, width, &between, &nodes[first..first + rows], statistics);
    });
}

/// What stands between two layers, with the statistics of columns.
#[derive(Clone, Copy)]
struct Resolved<'a> {
    between: Activation<'a>,
    columns: &'a Columns,
}

per_processor! {
    fn activate_piece(
        out: &mut [f32], z: &[f32], width: usize, between: &Resolved<'_>, nodes: &[u64], statistics: &mut [f32],
    ) {
        match between.between.slope {
            None => activate_rows(out, z, width, between, nodes, statistics, positive_part),
            Some(slope) => {
                let sloped = |value: f32| if value <= 0.0 { slope * value } else { value };
                activate_rows(out, z, width, between, nodes, statistics, sloped);
            }
        }
    }
}

#[inline(always)]
fn activate_rows(
    out: &mut [f32],
    z: &[f32],
    width: usize,
    Resolved { between: Activation { norm, dropout, .. }, columns }: &Resolved<'_>,
    nodes: &[u64],
    statistics: &mut [f32],
    activation: impl Fn(f32) -> f32,
) {
    let rows = out.chunks_exact_mut(width).zip(z.chunks_exact(width)).zip(nodes);
    let rows = rows.zip(statistics.chunks_exact_mut(2));
    for (((out, z), &node), statistics) in rows {
        match norm {
            Some(Norm::Rows(Affine { weight, bias })) => {
                let mean = lane_sum(z, |v| v) / width as f32;
                let variance = lane_sum(z, |v| (v - mean) * (v - mean)) / width as f32;
                let reciprocal = 1.0 / (variance + EPSILON).sqrt();
                statistics.copy_from_slice(&[mean, reciprocal]);
                for (((out, z), weight), bias) in out.iter_mut().zip(z).zip(*weight).zip(*bias) {
                    *out = activation((z - mean) * reciprocal * weight + bias);
                }
            }
            Some(Norm::Columns(Affine { weight, bias })) => {
                let scales = columns.means.iter().zip(&columns.reciprocals);
                let values = out.iter_mut().zip(z).zip(scales).zip(weight.iter().zip(*bias));
                for (((out, z), (mean, reciprocal)), (weight, bias)) in values {
                    *out = activation((z - mean) * reciprocal * weight + bias);
                }
            }
            None => out.iter_mut().zip(z).for_each(|(out, z)| *out = activation(*z)),
        }
        if let Some(dropout) = dropout {
            let (threshold, scale, bits) = (dropout.threshold(), dropout.scale(), dropout.row(node));
            for (column, out) in out.iter_mut().enumerate() {
                *out = if column_bits(bits, column as u32) >= threshold { *out * scale } else { 0.0 };
            }
        }
    }
}

/// The adjoint of [`activate`], in place: `gradient` holds the gradient of `out` and gets that of `z`; where columns
/// are normalised, that of the normalised, scaled and shifted values, since what follows takes all workers' rows
/// ([`super::batch_norm::normalise_adjoint`]).
///
/// A value of `out` above 0 tells that a ReLU was open and dropout kept it, so no mask is stored or drawn again; after
/// a PReLU it is drawn again. The gradients of γ (but those of columns), β and the slope are added to `gradients`.
pub fn activate_adjoint(
    compute: &mut Compute,
    gradient: &mut Matrix,
    between: Activation<'_>,
    done: Activated<'_>,
    nodes: NodeIds<'_>,
    gradients: Gradients<'_>,
) {
    let is_prelu = between.slope.is_some();
    if is_prelu {
        let sum = slope_adjoint(compute, gradient, between, done, nodes);
        gradients.slope.iter_mut().for_each(|slope| *slope += sum);
    }
    let scale = between.dropout.map_or(1.0, |d| d.scale());
    match between.norm {
        Some(Norm::Rows(norm)) => {
            let open = if is_prelu { None } else { Some(scale) };
            rows_adjoint(compute, gradient, (norm, open), done, [gradients.weight, gradients.bias]);
        }
        _ if is_prelu => {}
        _ => {
            let size = ROWS_PER_PIECE * done.z.columns().max(1);
            compute.chunks(gradient.data_mut(), size, |piece, gradient| {
                let out = &done.out.data()[piece * size..];
                open_piece(gradient, &out[..gradient.len()], scale);
            });
        }
    }
}

/// The adjoint of LayerNorm and, where dropout's scale is given, of ReLU and dropout.
fn rows_adjoint(
    compute: &mut Compute,
    gradient: &mut Matrix,
    (norm, open): (Affine<'_>, Option<f32>),
    Activated { out, z, statistics }: Activated<'_>,
    [weight_gradient, bias_gradient]: [&mut [f32]; 2],
) {
    let (rows, width) = (z.rows(), z.columns().max(1));
    let pieces = row_pieces(rows);
    let size = rows.div_ceil(pieces).max(1);
    let mut lent = compute.lend(pieces * 2 * width);
    let partials = &mut lent[..pieces * 2 * width];
    partials.fill(0.0);
    compute.chunks2((gradient.data_mut(), size * width), (&mut *partials, 2 * width), |piece, gradient, partial| {
        let (first, count) = (piece * size, gradient.len() / width);
        let span = first * width..(first + count) * width;
        let statistics = &statistics.rows.data()[first * 2..(first + count) * 2];
        let (out, z) = (&out.data()[span.clone()], &z.data()[span]);
        let rows = Normalised { out, z, statistics, width, weight: norm.weight };
        adjoint_piece(gradient, rows, open, partial);
    });
    for partial in partials.chunks_exact(2 * width) {
        for (sum, value) in weight_gradient.iter_mut().zip(&partial[..width]) {
            *sum += value;
        }
        for (sum, value) in bias_gradient.iter_mut().zip(&partial[width..]) {
            *sum += value;
        }
    }
    compute.give_back(lent);
}

/// The rows of one piece, as [`activate`] read and wrote them.
#[derive(Clone, Copy)]
struct Normalised<'a> {
    out: &'a [f32],
    z: &'a [f32],
    statistics: &'a [f32],
    width: usize,
    weight: &'a [f32],
}

per_processor! {
    fn adjoint_piece(gradient: &mut [f32], piece: Normalised<'_>, open: Option<f32>, partial: &mut [f32]) {
        match open {
            Some(scale) => {
                let through = |gradient: f32, out: f32| if out > 0.0 { gradient * scale } else { 0.0 };
                adjoint_rows(gradient, piece, partial, through);
            }
            None => adjoint_rows(gradient, piece, partial, |gradient, _| gradient),
        }
    }
}

/// `open(gradient, out)` is the gradient by the normalised, scaled and shifted value.
#[inline(always)]
fn adjoint_rows(gradient: &mut [f32], piece: Normalised<'_>, partial: &mut [f32], open: impl Fn(f32, f32) -> f32) {
    let Normalised { out, z, statistics, width, weight } = piece;
    let (weight_sum, bias_sum) = partial.split_at_mut(width);
    let rows = gradient.chunks_exact_mut(width).zip(out.chunks_exact(width)).zip(z.chunks_exact(width));
    for (((gradient, out), z), statistics) in rows.zip(statistics.chunks_exact(2)) {
        let (mean, reciprocal) = (statistics[0], statistics[1]);
        let sums = weight_sum.iter_mut().zip(bias_sum.iter_mut());
        let columns = gradient.iter_mut().zip(out).zip(z).zip(weight).zip(sums);
        for ((((g, out), z), weight), (of_weight, of_bias)) in columns {
            let open = open(*g, *out);
            *of_weight += open * (z - mean) * reciprocal;
            *of_bias += open;
            *g = open * weight;
        }
        let average = lane_sum(gradient, |g| g) / width as f32;
        let slope = lane_sum2(gradient, z, |g, z| g * (z - mean) * reciprocal) / width as f32;
        for (g, z) in gradient.iter_mut().zip(z) {
            *g = reciprocal * (*g - average - (z - mean) * reciprocal * slope);
        }
    }
}

/// The adjoint of dropout and PReLU: turns the gradient of `out` into that of what went into PReLU, and returns the
/// slope's.
fn slope_adjoint(
    compute: &mut Compute,
    gradient: &mut Matrix,
    between: Activation<'_>,
    Activated { z, statistics, .. }: Activated<'_>,
    nodes: NodeIds<'_>,
) -> f32 {
    let (rows, width) = (z.rows(), z.columns().max(1));
    let pieces = row_pieces(rows);
    let size = rows.div_ceil(pieces).max(1);
    let mut partials = vec![0.0f64; pieces];
    let between = Resolved { between, columns: &statistics.columns };
    compute.chunks2((gradient.data_mut(), size * width), (&mut partials, 1), |piece, gradient, partial| {
        let (first, count) = (piece * size, gradient.len() / width);
        let statistics = &statistics.rows.data()[first * 2..(first + count) * 2];
        let z = &z.data()[first * width..(first + count) * width];
        slope_piece(gradient, z, &between, &nodes[first..first + count], statistics, &mut partial[0]);
    });
    partials.iter().sum::<f64>() as f32
}

per_processor! {
    fn slope_piece(
        gradient: &mut [f32], z: &[f32], between: &Resolved<'_>, nodes: &[u64], statistics: &[f32], sum: &mut f64,
    ) {
        let Resolved { between: Activation { norm, slope, dropout }, columns } = between;
        let (slope, width) = (slope.unwrap_or(0.0), z.len() / nodes.len().max(1));
        let rows = gradient.chunks_exact_mut(width.max(1)).zip(z.chunks_exact(width.max(1))).zip(nodes);
        for (((gradient, z), &node), statistics) in rows.zip(statistics.chunks_exact(2)) {
            if let Some(dropout) = dropout {
                let (threshold, scale, bits) = (dropout.threshold(), dropout.scale(), dropout.row(node));
                for (column, gradient) in gradient.iter_mut().enumerate() {
                    *gradient = if column_bits(bits, column as u32) >= threshold { *gradient * scale } else { 0.0 };
                }
            }
            for (column, (gradient, z)) in gradient.iter_mut().zip(z).enumerate() {
                let value = match norm {
                    None => *z,
                    Some(Norm::Rows(Affine { weight, bias })) => {
                        (z - statistics[0]) * statistics[1] * weight[column] + bias[column]
                    }
                    Some(Norm::Columns(Affine { weight, bias })) => {
                        (z - columns.means[column]) * columns.reciprocals[column] * weight[column] + bias[column]
                    }
                };
                if value <= 0.0 {
                    *sum += f64::from(*gradient * value);
                    *gradient *= slope;
                }
            }
        }
    }
}

/// The sum of `f` over a row in sixteen lanes, in a fixed order.
#[inline(always)]
fn lane_sum(row: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    lane_sum2(row, row, |v, _| f(v))
}

#[inline(always)]
fn lane_sum2(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; 16];
    let (a_runs, b_runs) = (a.chunks_exact(16), b.chunks_exact(16));
    let mut sum = 0.0;
    for (a, b) in a_runs.remainder().iter().zip(b_runs.remainder()) {
        sum += f(*a, *b);
    }
    for (a, b) in a_runs.zip(b_runs) {
        for lane in 0..16 {
            lanes[lane] += f(a[lane], b[lane]);
        }
    }
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
    }
    sum + lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let between = Activation { norm, slope: None, dropout: None };
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
        nodes: Vec<u64>,
    }

    impl Subject {
        fn between(&self) -> Activation<'_> {
            let [_, weight, bias, slope] = &self.values;
            let norm = self.with_norm.then_some(Norm::Rows(Affine { weight: weight.data(), bias: bias.data() }));
            Activation { norm, slope: self.is_prelu.then_some(slope.data()[0]), dropout: self.dropout }
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
    /// negative.
    #[test]
    fn adjoint_agrees_with_finite_differences() {
        let (rows, width) = (40, 21);
        let g = random(rows, width, 2);
        let dropout = Some(Dropout { probability: 0.4, key: Key::new(9, Purpose::Dropout) });
        let mut compute = Compute::new(2);
        for (with_norm, slope) in [
            (false, None),
            (true, None),
            (false, Some(0.25)),
            (true, Some(0.25)),
            (true, Some(-0.5)),
            (true, Some(0.0)),
        ] {
            let sloped = Matrix::from_vec(1, 1, vec![slope.unwrap_or(0.0)]);
            let values = [random(rows, width, 1), random(1, width, 3), random(1, width, 4), sloped];
            let nodes = (100..100 + rows as u64).collect();
            let subject = Subject { with_norm, values, dropout, is_prelu: slope.is_some(), nodes };
            let (out, statistics) = subject.run(&compute);
            let mut found = [g.clone(), Matrix::zeros(1, width), Matrix::zeros(1, width), Matrix::zeros(1, 1)];
            let [dz, dw, db, ds] = &mut found;
            let done = Activated { out: &out, z: &subject.values[0], statistics: &statistics };
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
        let between = Activation { norm, slope: Some(0.25), dropout: None };
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
}

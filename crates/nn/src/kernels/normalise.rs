//! What stands between two layers, in one pass over the rows: LayerNorm (Ba, Kiros and Hinton, 2016), ReLU and dropout.

use super::dispatch::per_processor;
use super::elementwise::{Dropout, NodeIds, column_bits, positive_part};
use crate::matrix::Matrix;
use crate::threads::{Compute, ROWS_PER_PIECE, row_pieces};

/// PyTorch's default ε of LayerNorm.
pub const EPSILON: f32 = 1e-5;

/// The affine part of a LayerNorm.
#[derive(Debug, Clone, Copy)]
pub struct Affine<'a> {
    /// γ, one value a column.
    pub weight: &'a [f32],
    /// β, one value a column.
    pub bias: &'a [f32],
}

/// What stands between two layers.
#[derive(Debug, Clone, Copy)]
pub struct Activation<'a> {
    /// LayerNorm before the ReLU; `None` for none.
    pub norm: Option<Affine<'a>>,
    /// Dropout after it; `None` for none.
    pub dropout: Option<Dropout>,
}

/// What [`activate`] read and wrote, for its adjoint.
#[derive(Debug, Clone, Copy)]
pub struct Activated<'a> {
    /// Its output; rows × width.
    pub out: &'a Matrix,
    /// Its input; rows × width.
    pub z: &'a Matrix,
    /// Mean and reciprocal standard deviation of each row of z; rows × 2.
    pub statistics: &'a Matrix,
}

/// `out = dropout(ReLU(LayerNorm(z)))`; without norm or dropout that part is left out. `nodes` has one id a row.
///
/// `statistics` gets mean and reciprocal standard deviation of each row of z, which [`activate_adjoint`] reads.
pub fn activate(
    compute: &Compute,
    out: &mut Matrix,
    z: &Matrix,
    Activation { norm, dropout }: Activation<'_>,
    nodes: NodeIds<'_>,
    statistics: &mut Matrix,
) {
    let width = z.columns().max(1);
    out.reshape(z.rows(), z.columns());
    statistics.reshape(z.rows(), 2);
    let out = (out.data_mut(), ROWS_PER_PIECE * width);
    compute.chunks2(out, (statistics.data_mut(), ROWS_PER_PIECE * 2), |piece, out, statistics| {
        let first = piece * ROWS_PER_PIECE;
        let rows = statistics.len() / 2;
        let z = &z.data()[first * width..(first + rows) * width];
        activate_piece(out, z, width, &norm, &dropout, &nodes[first..first + rows], statistics);
    });
}

per_processor! {
    fn activate_piece(
        out: &mut [f32], z: &[f32], width: usize, norm: &Option<Affine<'_>>, dropout: &Option<Dropout>,
        nodes: &[u64], statistics: &mut [f32],
    ) {
        let rows = out.chunks_exact_mut(width).zip(z.chunks_exact(width)).zip(nodes);
        let rows = rows.zip(statistics.chunks_exact_mut(2));
        for (((out, z), &node), statistics) in rows {
            match norm {
                Some(Affine { weight, bias }) => {
                    let mean = lane_sum(z, |v| v) / width as f32;
                    let variance = lane_sum(z, |v| (v - mean) * (v - mean)) / width as f32;
                    let reciprocal = 1.0 / (variance + EPSILON).sqrt();
                    statistics.copy_from_slice(&[mean, reciprocal]);
                    for (((out, z), weight), bias) in out.iter_mut().zip(z).zip(*weight).zip(*bias) {
                        *out = positive_part((z - mean) * reciprocal * weight + bias);
                    }
                }
                None => out.iter_mut().zip(z).for_each(|(out, z)| *out = positive_part(*z)),
            }
            if let Some(dropout) = dropout {
                let (threshold, scale, bits) = (dropout.threshold(), dropout.scale(), dropout.row(node));
                for (column, out) in out.iter_mut().enumerate() {
                    *out = if column_bits(bits, column as u32) >= threshold { *out * scale } else { 0.0 };
                }
            }
        }
    }
}

/// The adjoint of [`activate`], in place: `gradient` holds the gradient of `out` and gets that of `z`.
///
/// A value of `out` above 0 tells that the ReLU was open and dropout kept it, so no mask is stored or drawn again.
/// The gradients of γ and β are added to `weight_gradient` and `bias_gradient` (empty without a norm).
pub fn activate_adjoint(
    compute: &mut Compute,
    gradient: &mut Matrix,
    Activation { norm, dropout }: Activation<'_>,
    Activated { out, z, statistics }: Activated<'_>,
    (weight_gradient, bias_gradient): (&mut [f32], &mut [f32]),
) {
    let (rows, width) = (z.rows(), z.columns().max(1));
    let scale = dropout.map_or(1.0, |d| d.scale());
    let Some(norm) = norm else {
        let size = ROWS_PER_PIECE * width;
        compute.chunks(gradient.data_mut(), size, |piece, gradient| {
            for (g, o) in gradient.iter_mut().zip(&out.data()[piece * size..]) {
                *g = if *o > 0.0 { *g * scale } else { 0.0 };
            }
        });
        return;
    };
    let pieces = row_pieces(rows);
    let size = rows.div_ceil(pieces).max(1);
    let mut lent = compute.lend(pieces * 2 * width);
    let partials = &mut lent[..pieces * 2 * width];
    partials.fill(0.0);
    compute.chunks2((gradient.data_mut(), size * width), (&mut *partials, 2 * width), |piece, gradient, partial| {
        let (first, count) = (piece * size, gradient.len() / width);
        let span = first * width..(first + count) * width;
        let statistics = &statistics.data()[first * 2..(first + count) * 2];
        let (out, z) = (&out.data()[span.clone()], &z.data()[span]);
        let rows = Normalised { out, z, statistics, width, weight: norm.weight };
        adjoint_piece(gradient, rows, scale, partial);
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
    fn adjoint_piece(gradient: &mut [f32], piece: Normalised<'_>, scale: f32, partial: &mut [f32]) {
        let Normalised { out, z, statistics, width, weight } = piece;
        let (weight_sum, bias_sum) = partial.split_at_mut(width);
        let rows = gradient.chunks_exact_mut(width).zip(out.chunks_exact(width)).zip(z.chunks_exact(width));
        for (((gradient, out), z), statistics) in rows.zip(statistics.chunks_exact(2)) {
            let (mean, reciprocal) = (statistics[0], statistics[1]);
            let sums = weight_sum.iter_mut().zip(bias_sum.iter_mut());
            let columns = gradient.iter_mut().zip(out).zip(z).zip(weight).zip(sums);
            for ((((g, out), z), weight), (of_weight, of_bias)) in columns {
                let open = if *out > 0.0 { *g * scale } else { 0.0 };
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
        for norm in [None, Some(Affine { weight: &ones, bias: &zeros })] {
            let (mut out, mut statistics) = (Matrix::default(), Matrix::default());
            let between = Activation { norm, dropout: None };
            activate(&Compute::new(1), &mut out, &z, between, &[0, 1, 2], &mut statistics);
            let broken = |row: usize| out.row(row).iter().filter(|value| value.is_nan()).count();
            let all = if norm.is_some() { 40 } else { 1 };
            assert_eq!([0, 1, 2].map(broken), [0, all, 0]);
            assert!(out.row(1)[17].is_nan());
        }
    }

    /// ⟨g, f(z + εd) − f(z − εd)⟩ / 2ε against ⟨f'(z)ᵀ g, d⟩, for the input, γ and β.
    #[test]
    fn adjoint_agrees_with_finite_differences() {
        let (rows, width) = (40, 21);
        let (z, g) = (random(rows, width, 1), random(rows, width, 2));
        let (weight, bias) = (random(1, width, 3), random(1, width, 4));
        let nodes: Vec<u64> = (100..100 + rows as u64).collect();
        let dropout = Some(Dropout { probability: 0.4, key: Key::new(9, Purpose::Dropout) });
        let mut compute = Compute::new(2);
        for with_norm in [false, true] {
            let value = |compute: &Compute, z: &Matrix, weight: &Matrix, bias: &Matrix| {
                let norm = with_norm.then_some(Affine { weight: weight.data(), bias: bias.data() });
                let (mut out, mut statistics) = (Matrix::default(), Matrix::default());
                activate(compute, &mut out, z, Activation { norm, dropout }, &nodes, &mut statistics);
                let sum: f64 = out.data().iter().zip(g.data()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                (sum, out, statistics)
            };
            let (_, out, statistics) = value(&compute, &z, &weight, &bias);
            let (mut dz, mut dw, mut db) = (g.clone(), vec![0.0; width], vec![0.0; width]);
            let norm = with_norm.then_some(Affine { weight: weight.data(), bias: bias.data() });
            let done = Activated { out: &out, z: &z, statistics: &statistics };
            activate_adjoint(&mut compute, &mut dz, Activation { norm, dropout }, done, (&mut dw, &mut db));
            let shifted = |m: &Matrix, d: &Matrix, e: f32| {
                Matrix::from_vec(m.rows(), m.columns(), m.data().iter().zip(d.data()).map(|(m, d)| m + e * d).collect())
            };
            let e = 1e-3;
            for (which, gradient) in [dz.data(), &dw[..], &db[..]].into_iter().enumerate() {
                if which > 0 && !with_norm {
                    continue;
                }
                let base = [&z, &weight, &bias][which];
                let d = random(base.rows(), base.columns(), 7 + which as u64);
                let at = |e: f32| {
                    let moved = shifted(base, &d, e);
                    let mut inputs = [&z, &weight, &bias];
                    inputs[which] = &moved;
                    value(&compute, inputs[0], inputs[1], inputs[2]).0
                };
                let numeric = (at(e) - at(-e)) / (2.0 * f64::from(e));
                let exact: f64 = gradient.iter().zip(d.data()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                assert!((numeric - exact).abs() < 2e-2 * (1.0 + exact.abs()), "{which}: {numeric} against {exact}");
            }
        }
    }
}

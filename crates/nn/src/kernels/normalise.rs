//! What stands between two layers, in one pass over the rows: a norm, an activation and dropout.
//!
//! Norms are LayerNorm (Ba, Kiros and Hinton, 2016), or BatchNorm once the statistics of columns are known
//! ([`super::batch_norm`]); activations ReLU and PReLU (He et al., 2015).

use super::batch_norm::Columns;
use super::dispatch::per_processor;
use super::elementwise::{NodeIds, open_piece, positive_part};
use super::long::{LONG, in_blocks};
use super::stored::{Access, blocks, pieces, pieces2, read};
use crate::dropout::Dropout;
use crate::matrix::{Matrix, each_value};
use crate::threads::{Compute, row_pieces};

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
    /// What each row is multiplied by in the end, one value a row, none of them negative; `None` for 1.
    pub weight: Option<&'a [f32]>,
}

impl Activation<'_> {
    /// The same for some of the rows.
    fn of_rows(self, rows: std::ops::Range<usize>) -> Self {
        Activation { weight: self.weight.map(|weight| &weight[rows]), ..self }
    }
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
    /// Its output; rows × width. `None` where the gradient of it is 0 already wherever it is not above 0.
    pub out: Option<&'a Matrix>,
    /// Its input; rows × width. A ReLU without a norm does not read it: it may be empty then.
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

/// `out = weight · dropout(activation(norm(z)))`; without norm, dropout or weight that part is left out. `nodes` has
/// one id a row.
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
    let rooms = compute.rooms();
    pieces2(compute, (out, Access::Write), (statistics.data_mut(), 2), |first, out, statistics| {
        let rows = first..first + statistics.len() / 2;
        let between = Resolved { between: between.of_rows(rows.clone()), columns };
        read(&rooms, z.all(), rows.clone(), |z| {
            activate_piece(out, z, width, &between, &nodes[rows], statistics);
        });
    });
}

/// [`activate`] in place, for a ReLU without a norm: [`activate_adjoint`] reads what it wrote, and not what it read.
///
/// # Panics
///
/// If there is a norm or a slope.
pub fn activate_in_place(compute: &Compute, rows: &mut Matrix, between: Activation<'_>, nodes: NodeIds<'_>) {
    assert!(between.norm.is_none() && between.slope.is_none(), "the adjoint reads what went in");
    let width = rows.columns().max(1);
    pieces(compute, rows, Access::Update, |first, rows| {
        let which = first..first + rows.len() / width;
        open_rows(rows, width, between.of_rows(which.clone()), &nodes[which]);
    });
}

per_processor! {
    /// [`activate_in_place`] of some rows.
    fn open_rows(rows: &mut [f32], width: usize, between: Activation<'_>, nodes: &[u64]) {
        for (row, (values, &node)) in rows.chunks_exact_mut(width).zip(nodes).enumerate() {
            match between.dropout.map(|dropout| dropout.of_row(node)) {
                Some(kept) => {
                    let columns = values.iter_mut().enumerate();
                    columns.for_each(|(column, value)| *value = kept(column, positive_part(*value)));
                }
                None => values.iter_mut().for_each(|value| *value = positive_part(*value)),
            }
            if let Some(factors) = between.weight {
                values.iter_mut().for_each(|value| *value *= factors[row]);
            }
        }
    }
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
    Resolved { between: Activation { norm, dropout, weight: factors, .. }, columns }: &Resolved<'_>,
    nodes: &[u64],
    statistics: &mut [f32],
    activation: impl Fn(f32) -> f32,
) {
    let rows = out.chunks_exact_mut(width).zip(z.chunks_exact(width)).zip(nodes);
    let rows = rows.zip(statistics.chunks_exact_mut(2));
    for (row, (((out, z), &node), statistics)) in rows.enumerate() {
        let kept = dropout.map(|dropout| dropout.of_row(node));
        match norm {
            Some(Norm::Rows(Affine { weight, bias })) => {
                let mean = lane_sum(z, |v| v) / width as f32;
                let variance = lane_sum(z, |v| (v - mean) * (v - mean)) / width as f32;
                let reciprocal = 1.0 / (variance + EPSILON).sqrt();
                statistics.copy_from_slice(&[mean, reciprocal]);
                let values = z.iter().zip(*weight).zip(*bias);
                let of = |((z, weight), bias): ((&f32, &f32), &f32)| (z - mean) * reciprocal * weight + bias;
                set_row(out, values.map(|value| activation(of(value))), kept);
            }
            Some(Norm::Columns(Affine { weight, bias })) => {
                let scales = columns.means.iter().zip(&columns.reciprocals);
                let values = z.iter().zip(scales).zip(weight.iter().zip(*bias)).map(|values| {
                    let ((z, (mean, reciprocal)), (weight, bias)) = values;
                    activation((z - mean) * reciprocal * weight + bias)
                });
                set_row(out, values, kept);
            }
            None => set_row(out, z.iter().map(|z| activation(*z)), kept),
        }
        if let Some(factors) = factors {
            let factor = factors[row];
            out.iter_mut().for_each(|out| *out *= factor);
        }
    }
}

/// Sets a row, with dropout where there is one.
#[inline(always)]
fn set_row(out: &mut [f32], values: impl Iterator<Item = f32>, kept: Option<impl Fn(usize, f32) -> f32>) {
    let row = out.iter_mut().zip(values);
    match kept {
        Some(kept) => row.enumerate().for_each(|(column, (out, value))| *out = kept(column, value)),
        None => row.for_each(|(out, value)| *out = value),
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
            let around = Around { norm, open, factors: between.weight };
            rows_adjoint(compute, gradient, around, done, gradients);
        }
        _ if is_prelu => {}
        _ => {
            let (width, rooms) = (gradient.columns().max(1), compute.rooms());
            let opened = |row: usize, gradient: &mut [f32], out: Option<&[f32]>| {
                let factor = between.weight.map_or(scale, |factors| scale * factors[row]);
                match out {
                    Some(out) => open_piece(gradient, out, factor),
                    None => gradient.iter_mut().for_each(|gradient| *gradient *= factor),
                }
            };
            pieces(compute, gradient, Access::Update, |first, gradient| {
                let rows = first..first + gradient.len() / width;
                let each = if between.weight.is_some() { width } else { gradient.len().max(1) };
                let pieces = gradient.chunks_mut(each).enumerate();
                match done.out {
                    Some(out) => read(&rooms, out.all(), rows, |out| {
                        let pieces = pieces.zip(out.chunks(each));
                        pieces.for_each(|((row, gradient), out)| opened(first + row, gradient, Some(out)));
                    }),
                    None => pieces.for_each(|(row, gradient)| opened(first + row, gradient, None)),
                }
            });
        }
    }
}

/// LayerNorm's affine part, and what follows it.
#[derive(Clone, Copy)]
struct Around<'a> {
    norm: Affine<'a>,
    /// Dropout's scale where ReLU and dropout follow and are yet to be turned back.
    open: Option<f32>,
    /// What each row is multiplied by in the end.
    factors: Option<&'a [f32]>,
}

/// The adjoint of LayerNorm and, where dropout's scale is given, of ReLU, dropout and what rows are multiplied by.
fn rows_adjoint(
    compute: &mut Compute,
    gradient: &mut Matrix,
    Around { norm, open, factors }: Around<'_>,
    Activated { out, z, statistics }: Activated<'_>,
    gradients: Gradients<'_>,
) {
    let (rows, width) = (z.rows(), z.columns().max(1));
    let pieces = row_pieces(rows);
    let size = rows.div_ceil(pieces).max(1);
    let mut lent = compute.lend(pieces * 2 * width);
    let partials = &mut lent[..pieces * 2 * width];
    partials.fill(0.0);
    let (statistics, rooms) = (statistics.rows.data(), compute.rooms());
    let adjoint = |first: usize, gradient: &mut [f32], partial: &mut [f32]| {
        in_blocks(&rooms, 0..gradient.len() / width, LONG, partial, |lines, partial| {
            let rows = first + lines.start..first + lines.end;
            let factors = factors.map(|factors| &factors[rows.clone()]);
            let statistics = &statistics[rows.start * 2..rows.end * 2];
            let gradient = &mut gradient[lines.start * width..lines.end * width];
            let mut piece = |out: Option<&[f32]>| {
                read(&rooms, z.all(), rows.clone(), |z| {
                    let rows = Normalised { out, z, statistics, width, weight: norm.weight, factors };
                    adjoint_piece(gradient, rows, open, partial);
                });
            };
            match out {
                Some(out) => read(&rooms, out.all(), rows.clone(), |out| piece(Some(out))),
                None => piece(None),
            }
        });
    };
    each_value!(gradient.values_mut(), |gradient| {
        compute.chunks2((gradient, size * width), (&mut *partials, 2 * width), |piece, gradient, partial| {
            blocks(&rooms, gradient, width, Access::Update, |first, gradient| {
                adjoint(piece * size + first, gradient, partial);
            });
        });
    });
    for partial in partials.chunks_exact(2 * width) {
        for (sum, value) in gradients.weight.iter_mut().zip(&partial[..width]) {
            *sum += value;
        }
        for (sum, value) in gradients.bias.iter_mut().zip(&partial[width..]) {
            *sum += value;
        }
    }
    compute.give_back(lent);
}

/// The rows of one piece, as [`activate`] read and wrote them.
#[derive(Clone, Copy)]
struct Normalised<'a> {
    /// `None` where the gradient is 0 already wherever it is not above 0.
    out: Option<&'a [f32]>,
    z: &'a [f32],
    statistics: &'a [f32],
    width: usize,
    weight: &'a [f32],
    factors: Option<&'a [f32]>,
}

per_processor! {
    fn adjoint_piece(gradient: &mut [f32], piece: Normalised<'_>, open: Option<f32>, partial: &mut [f32]) {
        let factor = |row: usize| {
            let scale = open.unwrap_or(1.0);
            piece.factors.map_or(scale, |factors| scale * factors[row])
        };
        match (open, piece.out) {
            (Some(_), Some(out)) => {
                let through = |gradient: f32, out: f32, factor: f32| if out > 0.0 { gradient * factor } else { 0.0 };
                adjoint_rows(gradient, out, piece, partial, (factor, through));
            }
            (Some(_), None) => {
                adjoint_rows(gradient, piece.z, piece, partial, (factor, |gradient, _, factor| gradient * factor));
            }
            (None, _) => adjoint_rows(gradient, piece.z, piece, partial, (|_| 1.0, |gradient, _, _| gradient)),
        }
    }
}

/// `open(gradient, out, factor(row))` is the gradient by the normalised, scaled and shifted value.
#[inline(always)]
fn adjoint_rows(
    gradient: &mut [f32],
    out: &[f32],
    piece: Normalised<'_>,
    partial: &mut [f32],
    (factor, open): (impl Fn(usize) -> f32, impl Fn(f32, f32, f32) -> f32),
) {
    let Normalised { z, statistics, width, weight, .. } = piece;
    let (weight_sum, bias_sum) = partial.split_at_mut(width);
    let rows = gradient.chunks_exact_mut(width).zip(out.chunks_exact(width)).zip(z.chunks_exact(width));
    for (row, (((gradient, out), z), statistics)) in rows.zip(statistics.chunks_exact(2)).enumerate() {
        let (mean, reciprocal, factor) = (statistics[0], statistics[1], factor(row));
        let sums = weight_sum.iter_mut().zip(bias_sum.iter_mut());
        let columns = gradient.iter_mut().zip(out).zip(z).zip(weight).zip(sums);
        for ((((g, out), z), weight), (of_weight, of_bias)) in columns {
            let open = open(*g, *out, factor);
            *of_weight += open * (z - mean) * reciprocal;
            *of_bias += open;
            *g = open * weight;
        }
        let average = lane_sum2(gradient, gradient, |g, _| g) / width as f32;
        let slope = lane_sum2(gradient, z, |g, z| g * (z - mean) * reciprocal) / width as f32;
        for (g, z) in gradient.iter_mut().zip(z) {
            *g = reciprocal * (*g - average - (z - mean) * reciprocal * slope);
        }
    }
}

/// The adjoint of PReLU and of what follows it: turns the gradient of `out` into that of what went into PReLU, and
/// returns the slope's.
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
    let rooms = compute.rooms();
    let adjoint = |first: usize, gradient: &mut [f32], partial: &mut f64| {
        let rows = first..first + gradient.len() / width;
        let between = Resolved { between: between.of_rows(rows.clone()), columns: &statistics.columns };
        let statistics = &statistics.rows.data()[rows.start * 2..rows.end * 2];
        read(&rooms, z.all(), rows.clone(), |z| {
            slope_piece(gradient, z, &between, &nodes[rows], statistics, partial);
        });
    };
    each_value!(gradient.values_mut(), |gradient| {
        compute.chunks2((gradient, size * width), (&mut partials, 1), |piece, gradient, partial| {
            blocks(&rooms, gradient, width, Access::Update, |first, gradient| {
                adjoint(piece * size + first, gradient, &mut partial[0]);
            });
        });
    });
    partials.iter().sum::<f64>() as f32
}

per_processor! {
    fn slope_piece(
        gradient: &mut [f32], z: &[f32], between: &Resolved<'_>, nodes: &[u64], statistics: &[f32], sum: &mut f64,
    ) {
        let Resolved { between: Activation { norm, slope, dropout, weight: factors }, columns } = between;
        let (slope, width) = (slope.unwrap_or(0.0), z.len() / nodes.len().max(1));
        let rows = gradient.chunks_exact_mut(width.max(1)).zip(z.chunks_exact(width.max(1))).zip(nodes);
        for (row, (((gradient, z), &node), statistics)) in rows.zip(statistics.chunks_exact(2)).enumerate() {
            if let Some(factors) = factors {
                gradient.iter_mut().for_each(|gradient| *gradient *= factors[row]);
            }
            if let Some(dropout) = dropout {
                let kept = dropout.of_row(node);
                gradient.iter_mut().enumerate().for_each(|(column, gradient)| *gradient = kept(column, *gradient));
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

/// The sum of `f` over a row in 64 lanes, and over what is left in sixteen, in a fixed order: an addition takes as long
/// as several take to begin, so several vectors have to be on their way.
#[inline(always)]
fn lane_sum(row: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let (mut lanes, runs) = ([0.0f32; 64], row.chunks_exact(64));
    let rest = lane_sum2(runs.remainder(), runs.remainder(), |v, _| f(v));
    for run in runs {
        for lane in 0..64 {
            lanes[lane] += f(run[lane]);
        }
    }
    for half in [32, 16, 8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
    }
    rest + lanes[0]
}

/// The same of two rows, in sixteen lanes: the adjoint, which waits for memory as well, is slower with more.
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
mod tests;

//! Losses: softmax cross-entropy for one class a node, binary cross-entropy for any number of classes a node.
//!
//! A loss is a sum over own rows divided by a *global* count, so that gradients summed over workers are those of one
//! process.

use std::ops::Range;

use crate::kernels::cross_entropy::cross_entropies;
use crate::kernels::exponential::exponentials;
use crate::matrix::Matrix;
use crate::threads::{Compute, ROWS_PER_PIECE};

/// What the rows should say.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a> {
    /// The class of each row, −1 where unknown.
    Classes(&'a [i32]),
    /// 0 or 1 for each row and class, row-major; whatever else stands there is unknown and has no part in anything.
    Sets(&'a [u8]),
}

/// The summed loss over the rows that `counts` selects, times `scale`; `gradient`, if given, is set to its gradient (0
/// in other rows). For sets, a row's loss is the sum over its known classes, divided by the number of classes: where
/// all are known the mean over classes, as in PyTorch's `BCEWithLogitsLoss`. With a `scale` of one by the sum of what
/// rows count for ([`crate::metric::Tally::rows`]) it is the mean over all known entries.
///
/// `weights` is empty, or has a number for each class. For classes it is what a row of that class counts for, so that
/// with a `scale` of one by the sum of these it is PyTorch's `CrossEntropyLoss(weight)`; for sets what a class that is
/// there counts for against one that is not, PyTorch's `BCEWithLogitsLoss(pos_weight)`.
///
/// # Panics
///
/// If there are targets or counts for fewer rows than there are, or weights for other classes.
pub fn loss(
    compute: &Compute,
    gradient: Option<&mut Matrix>,
    logits: &Matrix,
    (targets, weights): (Targets<'_>, &[f32]),
    counts: &[bool],
    scale: f32,
) -> f64 {
    let (classes, rooms) = (logits.columns(), compute.rooms());
    assert!(weights.is_empty() || weights.len() == classes, "a weight for each class");
    let rows_of = |piece: usize| piece * ROWS_PER_PIECE..((piece + 1) * ROWS_PER_PIECE).min(logits.rows());
    // Rows that count and follow each other are made together, since what stands in them follows, too.
    let of_piece = |gradient: &mut [f32], piece: usize| {
        let (mut first, mut rest, mut sum) = (rows_of(piece).start, gradient, 0.0);
        for alike in counts[rows_of(piece)].chunk_by(|a, b| a == b) {
            let rows = first..first + alike.len();
            let (gradient, behind) = rest.split_at_mut(rows.len() * classes);
            (first, rest) = (rows.end, behind);
            match alike[0] {
                true => sum += loss_of_rows(gradient, logits, (targets, weights), rows, scale),
                false => gradient.fill(0.0),
            }
        }
        sum
    };
    // Partial sums of fixed pieces, added in order.
    let mut sums = vec![0.0f64; logits.rows().div_ceil(ROWS_PER_PIECE)];
    match gradient {
        Some(gradient) => {
            gradient.reshape(logits.rows(), classes);
            let gradients = (gradient.data_mut(), ROWS_PER_PIECE * classes);
            compute.chunks2(gradients, (&mut sums, 1), |piece, gradient, sum| sum[0] = of_piece(gradient, piece));
        }
        None => compute.chunks(&mut sums, 1, |piece, sum| {
            rooms.lend(|room| {
                let values = rows_of(piece).len() * classes;
                room.resize(room.len().max(values));
                sum[0] = of_piece(&mut room[..values], piece);
            });
        }),
    }
    sums.iter().sum::<f64>() * f64::from(scale)
}

/// The loss of rows that follow each other, all of which count, and its gradient times `scale`.
fn loss_of_rows(
    gradient: &mut [f32],
    logits: &Matrix,
    (targets, weights): (Targets<'_>, &[f32]),
    rows: Range<usize>,
    scale: f32,
) -> f64 {
    let width = logits.columns();
    let share = scale / width as f32;
    let of_rows = rows.clone().zip(gradient.chunks_exact_mut(width.max(1)));
    match targets {
        Targets::Classes(classes) => of_rows
            .map(|(row, gradient)| loss_of_class(gradient, logits.row(row), classes[row] as usize, weights, scale))
            .sum(),
        // Where classes count differently each row has the weights of all of them.
        Targets::Sets(sets) if weights.len() > 1 => {
            let of_row = |(row, gradient): (usize, _)| {
                loss_of_sets(gradient, logits.row(row), &sets[row * width..(row + 1) * width], weights, share)
            };
            of_rows.map(of_row).sum::<f64>() / width as f64
        }
        Targets::Sets(sets) => {
            let values = rows.start * width..rows.end * width;
            let (weights, logits) = (if weights.is_empty() { &[1.0] } else { weights }, &logits.data()[values.clone()]);
            loss_of_sets(gradient, logits, &sets[values], weights, share) / width as f64
        }
    }
}

/// The loss of a row of that class, and its gradient times `scale`.
fn loss_of_class(gradient: &mut [f32], logits: &[f32], class: usize, weights: &[f32], scale: f32) -> f64 {
    let weight = weights.get(class).copied().unwrap_or(1.0);
    let (mut sum, mut largest) = (0.0, 0.0);
    exponentials(gradient, &mut sum, &mut largest, logits);
    let factor = scale * weight / sum as f32;
    gradient.iter_mut().for_each(|g| *g *= factor);
    gradient[class] -= scale * weight;
    f64::from(weight) * (sum.ln() - f64::from(logits[class] - largest))
}

/// The loss of some entries, summed, and its gradient times `scale`.
fn loss_of_sets(gradient: &mut [f32], logits: &[f32], truths: &[u8], weights: &[f32], scale: f32) -> f64 {
    let mut sum = 0.0;
    cross_entropies(gradient, &mut sum, logits, truths, weights);
    gradient.iter_mut().for_each(|g| *g *= scale);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_logits_cost_the_logarithm_of_the_number_of_classes() {
        let logits = Matrix::zeros(3, 4);
        let value =
            loss(&Compute::new(1), None, &logits, (Targets::Classes(&[0, -1, 3]), &[]), &[true, false, true], 0.5);
        assert!((value - 4f64.ln()).abs() < 1e-6);
        let value = loss(&Compute::new(1), None, &logits, (Targets::Sets(&[1; 12]), &[]), &[true; 3], 1.0 / 3.0);
        assert!((value - 2f64.ln()).abs() < 1e-6);
    }

    #[test]
    fn the_loss_of_sets_is_the_mean_over_known_entries_and_their_logits_alone_matter() {
        let logits = [0.3f32, -1.2, 2.0, 0.0, 0.5, -0.25, 5.0, -3.0, 1.0];
        let sets = [1, 255, 0, 255, 255, 255, 0, 1, 255];
        let counts = [true, false, true];
        let at = |logits: &[f32], gradient: Option<&mut Matrix>| {
            let matrix = Matrix::from_vec(3, 3, logits.to_vec());
            let rows = crate::metric::Tally::of(&matrix, Targets::Sets(&sets), &counts, 0.0, false).rows;
            loss(&Compute::new(1), gradient, &matrix, (Targets::Sets(&sets), &[]), &counts, (1.0 / rows) as f32)
        };
        let mut gradient = Matrix::default();
        let found = at(&logits, Some(&mut gradient));
        // Entry by entry, in the words of the definition.
        let known: Vec<usize> = (0..9).filter(|&i| sets[i] <= 1).collect();
        let probability = |i: usize| 1.0 / (1.0 + (-f64::from(logits[i])).exp());
        let entry = |&i: &usize| -(if sets[i] == 1 { probability(i) } else { 1.0 - probability(i) }).ln();
        let expected = known.iter().map(entry).sum::<f64>() / known.len() as f64;
        assert!((found - expected).abs() < 1e-6, "{found} against {expected}");
        for i in 0..9 {
            let derivative = (probability(i) - f64::from(sets[i])) / known.len() as f64;
            let expected = if known.contains(&i) { derivative } else { 0.0 };
            assert!((f64::from(gradient.data()[i]) - expected).abs() < 1e-6, "{i}");
            let mut changed = logits;
            changed[i] += 1.0;
            assert_eq!(at(&changed, None) != found, known.contains(&i), "{i}");
        }
    }

    /// PyTorch's definitions, in double precision: `CrossEntropyLoss(weight)` divides by the weights of the rows that
    /// count, `BCEWithLogitsLoss(pos_weight)` by the number of entries.
    #[test]
    fn weighted_losses_are_those_that_pytorch_defines() {
        let logits = Matrix::from_vec(4, 3, vec![0.3, -1.2, 2.0, 0.0, 0.5, -0.25, 5.0, -3.0, 1.0, 0.1, 0.2, 0.4]);
        let (weights, counts) = ([0.25f32, 2.0, 1.5], [true, true, false, true]);
        let (classes, sets) = ([2, 1, 0, 0], [1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0]);
        let at = |row: usize, class: usize| f64::from(logits.row(row)[class]);
        let rows = [0, 1, 3];
        let weight = |row: usize| f64::from(weights[classes[row] as usize]);
        let cost = |row: usize| {
            let all: f64 = (0..3).map(|class| at(row, class).exp()).sum();
            -(at(row, classes[row] as usize).exp() / all).ln()
        };
        let all: f64 = rows.iter().map(|&row| weight(row)).sum();
        let expected = rows.iter().map(|&row| weight(row) * cost(row)).sum::<f64>() / all;
        let scale = (1.0 / all) as f32;
        let compute = Compute::new(1);
        let found = loss(&compute, None, &logits, (Targets::Classes(&classes), &weights), &counts, scale);
        assert!((found - expected).abs() < 1e-6, "{found} against {expected}");
        let entry = |row: usize, class: usize| {
            let p = 1.0 / (1.0 + (-at(row, class)).exp());
            if sets[row * 3 + class] == 1 { -f64::from(weights[class]) * p.ln() } else { -(1.0 - p).ln() }
        };
        let entries = rows.iter().flat_map(|&row| (0..3).map(move |class| (row, class)));
        let expected = entries.map(|(row, class)| entry(row, class)).sum::<f64>() / 9.0;
        let found = loss(&compute, None, &logits, (Targets::Sets(&sets), &weights), &counts, 1.0 / 3.0);
        assert!((found - expected).abs() < 1e-6, "{found} against {expected}");
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let values = [0.3f32, -1.2, 2.0, 0.0, 0.5, -0.25, 30.0, -30.0, 1.0];
        let counts = [true, false, true];
        let sets = Targets::Sets(&[1, 0, 1, 0, 0, 0, 0, 1, 1]);
        let known = Targets::Sets(&[1, 255, 1, 0, 0, 0, 255, 255, 1]);
        let each = [Targets::Classes(&[2, -1, 0]), sets, known].into_iter();
        for targets in each.flat_map(|targets| [(targets, &[][..]), (targets, &[0.5f32, 3.0, 1.7])]) {
            let compute = Compute::new(1);
            let mut gradient = Matrix::default();
            let at = |values: &[f32], gradient: Option<&mut Matrix>| {
                loss(&compute, gradient, &Matrix::from_vec(3, 3, values.to_vec()), targets, &counts, 0.7)
            };
            at(&values, Some(&mut gradient));
            for i in 0..9 {
                let (mut up, mut down) = (values, values);
                up[i] += 1e-2;
                down[i] -= 1e-2;
                let numeric = (at(&up, None) - at(&down, None)) / f64::from(up[i] - down[i]);
                assert!((numeric - f64::from(gradient.data()[i])).abs() < 1e-4, "{i}");
            }
        }
    }
}

//! Attention against plain arithmetic in `f64`.

use laconic_key::{Key, Purpose};

use super::adjoint::add_and_multiply_picked;
use super::*;
use crate::kernels::Store;
use crate::kernels::dispatch::Instructions;
use crate::kernels::product::{add_weight_gradient, times_weight};
use crate::matrix::{Precision, Rows};

/// The closed form of softmax attention and its adjoint over all edges at once, in `f64`.
struct Plain {
    closed: Vec<f64>,
    messages: [Vec<f64>; 2],
    source: [Vec<f64>; 2],
    destination: Vec<f64>,
}

/// One block with its sources' rows, halves and weights.
type Part = (Block, Matrix, Matrix, Vec<f32>);

fn random(rows: usize, columns: usize, stream: u64, scale: f64) -> Matrix {
    let key = Key::new(stream, Purpose::Test);
    let value = |i: usize| (scale * (key.with(i as u64).unit() - 0.5)) as f32;
    Matrix::from_vec(rows, columns, (0..rows * columns).map(value).collect())
}

fn plain(parts: &[Part; 2], destination: &Matrix, gradient: &Matrix, heads: usize) -> Plain {
    let (rows, columns) = (gradient.rows(), gradient.columns());
    let width = columns / heads;
    let mut plain = Plain {
        closed: vec![0.0; rows * columns],
        messages: [0, 1].map(|p| vec![0.0; parts[p].0.sources() * columns]),
        source: [0, 1].map(|p| vec![0.0; parts[p].0.sources() * heads]),
        destination: vec![0.0; rows * heads],
    };
    for (row, head) in (0..rows).flat_map(|row| (0..heads).map(move |head| (row, head))) {
        let mut edges = vec![];
        for (part, (block, _, halves, weight)) in parts.iter().enumerate() {
            let csr = block.forward();
            for &source in &csr.columns[csr.offsets[row]..csr.offsets[row + 1]] {
                let source = source as usize;
                let score = f64::from(halves.row(source)[head] + destination.row(row)[head]);
                let score_after = if score > 0.0 { score } else { 0.2 * score };
                let weight = weight.get(source).map_or(1.0, |&w| f64::from(w));
                if weight > 0.0 {
                    edges.push((part, source, score, weight * score_after.exp()));
                }
            }
        }
        let total: f64 = edges.iter().map(|edge| edge.3).sum();
        let at = |part: usize, source: usize, d: usize| f64::from(parts[part].1.row(source)[head * width + d]);
        let g = |d: usize| f64::from(gradient.row(row)[head * width + d]);
        let mut inner = 0.0;
        for &(part, source, _, e) in &edges {
            for d in 0..width {
                plain.closed[row * columns + head * width + d] += e / total * at(part, source, d);
                inner += e / total * at(part, source, d) * g(d);
            }
        }
        for &(part, source, score, e) in &edges {
            let along: f64 = (0..width).map(|d| g(d) * at(part, source, d)).sum();
            let of_score = e / total * (along - inner) * if score > 0.0 { 1.0 } else { 0.2 };
            plain.source[part][source * heads + head] += of_score;
            plain.destination[row * heads + head] += of_score;
            for d in 0..width {
                plain.messages[part][source * columns + head * width + d] += e / total * g(d);
            }
        }
    }
    plain
}

fn assert_near(ours: &Matrix, plain: &[f64], what: &str) {
    assert_eq!(ours.data().len(), plain.len(), "{what}");
    for (i, (a, b)) in ours.data().iter().zip(plain).enumerate() {
        assert!((f64::from(*a) - b).abs() <= 2e-5 * (1.0 + b.abs()), "{what} {i}: {a}, not {b}");
    }
}

/// Sums of columns, and so much more.
fn totals(of: &Matrix, more: f64) -> Vec<f64> {
    let sum = |column: usize| (0..of.rows()).map(|row| f64::from(of.row(row)[column])).sum::<f64>();
    (0..of.columns()).map(|column| more + sum(column)).collect()
}

/// No edges seen, by destinations with these halves.
fn begun(halves: &Matrix) -> Softmax {
    let state = |row: usize| {
        let nothing = [f32::NEG_INFINITY, 0.0, 0.0].map(|value| vec![value; halves.columns()]);
        [halves.row(row).to_vec(), nothing.concat()].concat()
    };
    let state: Vec<f32> = (0..halves.rows()).flat_map(state).collect();
    Softmax { state: Matrix::from_vec(halves.rows(), 4 * halves.columns(), state) }
}

#[test]
fn two_blocks_agree_with_plain_softmax_attention_and_its_gradients() {
    for (heads, width) in [1, 8, 11, 64].into_iter().flat_map(|heads| [1, 3, 16, 33, 64].map(|width| (heads, width))) {
        let (rows, columns) = (300, heads * width);
        let part = |sources: usize, stream: u64, weight: Vec<f32>| -> Part {
            let key = Key::new(stream, Purpose::Test);
            let (mut offsets, mut to) = (vec![0], vec![]);
            for row in 0..rows as u64 {
                // Every seventh row has no edges at all; the first of others have few.
                let chance = if row % 7 == 0 { 0.0 } else { 0.3 * row as f64 / rows as f64 };
                to.extend((0..sources as u32).filter(|&s| key.with(row).with(s.into()).unit() < chance));
                offsets.push(to.len());
            }
            let mut messages = random(sources, columns, stream + 1, 2.0);
            let mut halves = random(sources, heads, stream + 2, 8.0);
            for absent in (0..weight.len()).filter(|&s| weight[s] == 0.0) {
                messages.row_mut(absent).fill(f32::NAN);
                halves.row_mut(absent).fill(f32::NAN);
            }
            (Block::new(sources, offsets, to, None), messages, halves, weight)
        };
        let parts = [part(40, 10, vec![]), part(30, 20, (0..30).map(|s| (s % 3) as f32).collect())];
        let (destination, gradient) = (random(rows, heads, 30, 8.0), random(rows, columns, 40, 2.0));
        let mut plain = plain(&parts, &destination, &gradient, heads);
        let vector = random(1, columns, 60, 2.0);
        for (messages, halves) in plain.messages.iter_mut().zip(&plain.source) {
            for (i, of_message) in messages.iter_mut().enumerate() {
                let (source, column) = (i / columns, i % columns);
                *of_message += halves[source * heads + column / width] * f64::from(vector.data()[column]);
            }
        }
        let mut bits = vec![];
        for threads in [1, 2] {
            let mut compute = Compute::new(threads);
            let scores =
                parts.each_ref().map(|(block, messages, source, weight)| Scores { block, messages, source, weight });
            let (mut sums, mut softmax) = (random(rows, columns, 50, 1.0), begun(&destination));
            for scores in scores {
                attention_fold(&compute, &mut sums, &mut softmax, scores);
            }
            attention_close(&compute, &mut sums, &mut softmax, None);
            assert_near(&sums, &plain.closed, "sums");
            let (mut of_destinations, mut total) = (Matrix::zeros(rows, heads), vec![1.0; columns]);
            softmax.take_up(&mut compute, &gradient, (&sums, None), &mut total);
            assert_near(&Matrix::from_vec(1, columns, total), &totals(&gradient, 1.0), "the gradient's rows together");
            let (mut out, mut back) = (Matrix::default(), ScoreGradients::default());
            bits.push(sums.data().to_vec());
            for (part, scores) in scores.into_iter().enumerate() {
                attention_adjoint(&compute, &mut out, &mut back, scores, &softmax, (&gradient, vector.data()));
                add_destination_gradient(&compute, &mut of_destinations, &back, scores.block);
                assert_near(&out, &plain.messages[part], "messages");
                assert_near(&back.source, &plain.source[part], "sources' halves");
                bits.extend([out.data().to_vec(), back.source.data().to_vec()]);
            }
            assert_near(&of_destinations, &plain.destination, "destinations' halves");
            bits.push(of_destinations.into_vec());
        }
        let (one, two) = bits.split_at(bits.len() / 2);
        assert_eq!(one, two, "the same on one thread and two");
    }
}

/// What the processor's widest vectors make of picked rows, and plain loops.
#[test]
fn picked_rows_have_the_same_bits_by_the_widest_vectors_and_by_plain_loops() {
    const SHAPES: [(usize, usize); 15] = [
        (8, 32),
        (8, 16),
        (16, 16),
        (1, 256),
        (1, 64),
        (2, 32),
        (4, 64),
        (2, 128),
        (64, 16),
        (3, 16),
        (8, 8),
        (1, 40),
        (3, 24),
        (5, 48),
        (2, 56),
    ];
    let mut compared = 0;
    for (heads, width) in SHAPES.into_iter().chain([(1, 41), (2, 3), (1, 65)]) {
        let columns = heads * width;
        let (rows, other) = (random(40, columns, 1, 2.0), random(1, columns, 2, 2.0));
        for precision in Precision::ALL {
            let rows = rows.clone().converted(precision);
            for count in [0, 1, 2, 16] {
                let which: Vec<u32> = (0..count).map(|i| (i * 7 + 3) % 40).collect();
                let factors = random(1, which.len() * heads, 3, 2.0);
                let begun = random(1, columns, 4, 2.0);
                each_value!(rows.values(), |rows| {
                    let picked =
                        Picked { rows, columns, which: &which, coming: &[1, 39], factors: factors.data(), heads };
                    let [mut plain, mut wide_sums] = [begun.data().to_vec(), begun.data().to_vec()];
                    let [mut along, mut wide_along] = [vec![0.0; which.len() * heads], vec![0.0; which.len() * heads]];
                    add_picked(&mut plain, picked);
                    add_and_multiply_picked(&mut plain, &mut along, other.data(), picked);
                    if wide::add_picked(&mut wide_sums, picked) {
                        assert!(wide::add_and_multiply_picked(&mut wide_sums, &mut wide_along, other.data(), picked));
                        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                        assert_eq!(bits(&plain), bits(&wide_sums), "{heads} heads of {width}, {count} rows");
                        assert_eq!(bits(&along), bits(&wide_along), "{heads} heads of {width}, {count} rows");
                        compared += 1;
                    }
                });
            }
        }
    }
    let expected = match Instructions::in_use() {
        Instructions::Avx512 | Instructions::Amx => SHAPES.len(),
        // Heads wider than 64 columns are for the longest vectors.
        Instructions::Avx2 => SHAPES.iter().filter(|(_, width)| *width <= 64).count(),
        Instructions::Portable => 0,
    };
    assert_eq!(compared, expected * 8, "all others, where there are such vectors");
}

/// In one reading as one after the other, rows beyond the destinations and odd widths among them, and wherever rows are
/// stored in few digits.
#[test]
fn what_is_left_of_the_way_back_is_the_same_in_one_reading() {
    for (rows, first, heads, width, inputs) in
        [(900, 900, 8, 32, 48), (1100, 700, 3, 5, 7), (1, 1, 1, 1, 1), (5, 0, 2, 3, 4)]
    {
        let columns = heads * width;
        let (x, messages, dmessages) =
            (random(rows, inputs, 1, 1.0), random(rows, columns, 2, 1.0), random(rows, columns, 3, 1.0));
        let halves = random(first, heads, 5, 1.0);
        let (weight, destination) = (random(columns, inputs, 6, 1.0), random(1, columns, 7, 1.0));
        let begun = random(rows, inputs, 8, 1.0);
        let (mut expected, mut dx, mut changed) = (vec![0.5; columns * (inputs + 1)], begun.clone(), dmessages.clone());
        let mut compute = Compute::new(1);
        add_score_gradient(&compute, &mut changed, &halves, destination.data());
        let (of_weight, of_vector) = expected.split_at_mut(columns * inputs);
        add_weight_gradient(&mut compute, of_weight, &changed, Rows::Dense(&x));
        add_vector_gradient(&mut compute, of_vector, &halves, &messages);
        times_weight(&mut compute, &mut dx, Store::Add, &changed, weight.data());
        let mut bits = vec![];
        for (precision, threads, tolerance) in
            [(Precision::F32, 1, 1e-4), (Precision::F32, 2, 1e-4), (Precision::Bf16, 2, 2e-2)]
        {
            let [x, messages, dmessages, mut into] =
                [&x, &messages, &dmessages, &begun].map(|matrix| matrix.clone().converted(precision));
            let of = Transformed {
                x: x.all().into(),
                weight: weight.data(),
                messages: &messages,
                destination: destination.data(),
            };
            let mut gradient = vec![0.5; expected.len()];
            let (mut compute, vector) = (Compute::new(threads), columns * inputs);
            let wanted = Some((&mut into, Store::Add));
            transformed_adjoint(&mut compute, (&mut gradient, vector), of, &halves, &dmessages, wanted);
            let into = into.converted(Precision::F32);
            let made: Vec<f32> = gradient.iter().chain(into.data()).copied().collect();
            let scale = expected.iter().fold(1.0f32, |most, value| most.max(value.abs()));
            for (a, b) in made.iter().zip(expected.iter().chain(dx.data())) {
                assert!((a - b).abs() <= tolerance * scale, "{precision:?}: {a}, not {b}");
            }
            let mut without = vec![0.5; expected.len()];
            transformed_adjoint(&mut compute, (&mut without, vector), of, &halves, &dmessages, None);
            assert!(without == gradient, "the same where nobody wants the gradient of rows");
            bits.push(made);
        }
        assert_eq!(bits[0], bits[1], "the same on one thread and two");
    }
}

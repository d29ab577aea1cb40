//! Sums of one addend and of millions, of equal and of unequal ones, by every kernel that makes any, against `f64`.

use laconic_key::{Key, Purpose};

use super::*;
use crate::block::{Block, EdgeData};
use crate::kernels::Store;
use crate::kernels::attention::{self, ScoreGradients, Scores, Softmax};
use crate::kernels::normalise::{
    Activated, Activation, Affine, Gradients, Norm, Statistics, activate, activate_adjoint,
};
use crate::kernels::relation::{Along, Mix, gather, spread};
use crate::kernels::{fold, product};
use crate::matrix::{Matrix, Rows};
use crate::threads::Compute;

/// Up to and beyond one block, and as many as take a moment.
const COUNTS: [usize; 7] = [1, LONG, LONG + 1, 1000, 10_007, 100_000, 1_000_003];

/// So many rows of one value: all 0.1, or between 0 and 1.
fn addends(count: usize, equal: bool) -> Matrix {
    let key = Key::new(5, Purpose::Test);
    let value = |at: usize| if equal { 0.1 } else { key.with(at as u64).unit() as f32 };
    Matrix::from_vec(count, 1, (0..count).map(value).collect())
}

fn exact(of: &Matrix) -> f64 {
    of.data().iter().map(|&value| f64::from(value)).sum()
}

#[track_caller]
fn assert_right(found: f32, exact: f64, what: &str) {
    assert!((f64::from(found) / exact - 1.0).abs() < 1e-6, "{what}: {found}, not {exact}");
}

/// So many edges into one row, or out of one.
fn hub(count: usize, into: bool, data: EdgeData) -> Block {
    match into {
        true => Block::new(count, vec![0, count], (0..count as u32).collect(), data),
        false => Block::new(1, (0..=count).collect(), vec![0; count], data),
    }
}

fn each_case(mut case: impl FnMut(usize, &Matrix, f64, &mut Compute)) {
    for (count, equal) in COUNTS.into_iter().flat_map(|count| [(count, true), (count, false)]) {
        let values = addends(count, equal);
        case(count, &values, exact(&values), &mut Compute::new(2));
    }
}

#[test]
fn folds_and_their_adjoints_are_right_to_a_millionth_at_any_number_of_edges() {
    each_case(|count, values, exact, compute| {
        let mut one = Matrix::zeros(1, 1);
        fold::sum_fold(compute, &mut one, Store::Set, &hub(count, true, None.into()), values);
        assert_right(one.data()[0], exact, "sum");
        fold::sum_fold_adjoint(compute, &mut one, Store::Set, &hub(count, false, None.into()), values);
        assert_right(one.data()[0], exact, "its adjoint");
        let weighted = |into| hub(count, into, Some(values.data().to_vec()).into());
        let ones = Matrix::from_vec(count, 1, vec![1.0; count]);
        fold::sum_fold(compute, &mut one, Store::Set, &weighted(true), &ones);
        assert_right(one.data()[0], exact, "weighted sum");
        fold::sum_fold_adjoint(compute, &mut one, Store::Set, &weighted(false), &ones);
        assert_right(one.data()[0], exact, "adjoint of a weighted sum");
        let winner = vec![0; count];
        fold::max_fold_adjoint(compute, &mut one, &hub(count, false, None.into()), values, &winner);
        assert_right(one.data()[0], exact, "adjoint of a maximum");
        let mut degree = [0.0];
        weighted(true).add_in_degrees(&mut degree);
        assert_right(degree[0], exact, "degree");
    });
}

#[test]
fn attention_is_right_to_a_millionth_at_any_number_of_edges() {
    each_case(|count, values, exact, compute| {
        // All scores are 0, so that the sum is the mean, and its denominator how many there are.
        let (block, zeros) = (hub(count, true, None.into()), [0.0]);
        let (mut source, mut softmax, mut sums) = (Matrix::default(), Softmax::default(), Matrix::zeros(1, 1));
        softmax.reset(compute, &mut source, (values, 0..1), [&zeros, &zeros], 1);
        let scores = Scores { block: &block, messages: values, source: &source, weight: &[] };
        attention::attention_fold(compute, &mut sums, &mut softmax, scores);
        attention::attention_close(compute, &mut sums, &mut softmax, None);
        assert_right(sums.data()[0], exact / count as f64, "attention");
        // Back from as many sums of one source's message each.
        let (block, message) = (hub(count, false, None.into()), Matrix::from_vec(1, 1, vec![0.5]));
        let (mut halves, mut closed, mut out) = (Matrix::default(), Matrix::zeros(count, 1), Matrix::default());
        let many = Matrix::from_vec(count, 1, vec![0.5; count]);
        softmax.reset(compute, &mut halves, (&many, 0..count), [&zeros, &zeros], 1);
        let source = Matrix::zeros(1, 1);
        let scores = Scores { block: &block, messages: &message, source: &source, weight: &[] };
        attention::attention_fold(compute, &mut closed, &mut softmax, scores);
        attention::attention_close(compute, &mut closed, &mut softmax, None);
        let mut total = [0.0];
        softmax.take_up(compute, values, (&closed, None), &mut total);
        assert_right(total[0], exact, "the gradient of attention's shift");
        let mut gradients = ScoreGradients::default();
        attention::attention_adjoint(compute, &mut out, &mut gradients, scores, &softmax, (values, &zeros));
        assert_right(out.data()[0], exact, "attention's adjoint");
        let mut of_vector = [0.0];
        attention::add_vector_gradient(compute, &mut of_vector, values, &many);
        assert_right(of_vector[0], exact / 2.0, "the gradient of attention's vector");
    });
}

#[test]
fn folds_by_relation_are_right_to_a_millionth_at_any_number_of_edges() {
    each_case(|count, values, exact, compute| {
        let data = || EdgeData { weights: Some(values.data().to_vec()), relations: Some(vec![0; count]) };
        let [block] = Block::share_relations([hub(count, true, data())]);
        let (ones, mut one) = (Matrix::from_vec(count, 1, vec![1.0; count]), Matrix::zeros(1, 1));
        let mix = Mix { bases: 1, proportions: None };
        spread(compute, &mut one, Store::Set, Along::forward(&block, mix), &ones);
        assert_right(one.data()[0], 1.0, "shares of a relation");
        let [block] = Block::share_relations([hub(count, false, data())]);
        gather(compute, &mut one, Store::Set, Along::reverse(&block, mix), values);
        assert_right(one.data()[0], exact, "adjoint by relation");
    });
}

#[test]
fn gradients_of_biases_weights_and_norms_are_right_at_any_number_of_rows() {
    each_case(|count, values, exact, compute| {
        let (mut one, ones) = ([0.0], Matrix::from_vec(count, 1, vec![1.0; count]));
        product::add_bias_gradient(compute, &mut one, values);
        assert_right(one[0], exact, "bias");
        let mut of_weight = [0.0];
        product::add_weight_gradient(compute, &mut of_weight, values, Rows::Dense(&ones));
        // Sums of 128 rows' products are made in registers: twice the bound of others.
        assert!((f64::from(of_weight[0]) / exact - 1.0).abs() < 2e-6, "weight: {}, not {exact}", of_weight[0]);
        // Rows (-1, 1) are normalised as they are, and the second column passes ReLU.
        let z = Matrix::from_vec(count, 2, [-1.0, 1.0].repeat(count));
        let mut gradient = Matrix::from_vec(count, 2, values.data().iter().flat_map(|&value| [0.0, value]).collect());
        let (nodes, affine) = ((0..count as u64).collect::<Vec<_>>(), Affine { weight: &[1.0; 2], bias: &[0.0; 2] });
        let between = Activation { norm: Some(Norm::Rows(affine)), slope: None, dropout: None, weight: None };
        let (mut out, mut statistics) = (Matrix::default(), Statistics::default());
        activate(compute, &mut out, &z, between, &nodes, &mut statistics);
        let [mut weight, mut bias] = [[0.0; 2]; 2];
        let done = Activated { out: Some(&out), z: &z, statistics: &statistics };
        let into = Gradients { weight: &mut weight, bias: &mut bias, slope: &mut [] };
        activate_adjoint(compute, &mut gradient, between, done, &nodes, into);
        assert_right(bias[1], exact, "the norm's bias");
    });
}

#[test]
fn a_long_sum_that_is_infinite_or_no_number_stays_so_and_one_block_has_the_bits_of_the_plain_loop() {
    let rooms = Compute::new(1).rooms();
    for broken in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
        let mut rows = vec![1.0f32; 500];
        rows[123] = broken;
        let mut sum = [0.0];
        add_rows(&rooms, &mut sum, &rows);
        assert!(sum[0] == broken || (sum[0].is_nan() && broken.is_nan()), "{} of {broken}", sum[0]);
    }
    let few = addends(LONG, false);
    let mut sum = [0.25];
    add_rows(&rooms, &mut sum, few.data());
    let plain = few.data().iter().fold(0.25f32, |sum, value| sum + value);
    assert_eq!(sum[0].to_bits(), plain.to_bits());
}

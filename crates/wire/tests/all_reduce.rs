//! The laws of compressed sums: what error feedback keeps, what stochastic rounding does not shift, what a reducer
//! remembers.

use laconic_key::{Key, Purpose};
#[path = "foreign_codecs.rs"]
mod foreign_codecs;

use foreign_codecs::{POWER, SCALE, SPARSE};
use laconic_wire::codec::{Bits, CodecKind, Level, Options};
use laconic_wire::collectives::{Reducer, all_reduce, chunk, forecast_all_reduce};
use laconic_wire::*;
use std::thread;
use std::time::Duration;

const SIZE: usize = 3;
const LEN: usize = 1000;

fn tag(round: u32) -> Tag {
    Tag { round, ..Tag::new(Content::ParameterGradients, FramePurpose::Training) }
}

fn reducer(name: &str, bits: u8, feedback: bool) -> Reducer {
    let kind = CodecRegistry::default().get(name).copied().unwrap();
    reducer_of(&kind, Level { ratio: 1.0, bits: Bits::Uniform(bits) }, feedback)
}

fn reducer_of(kind: &CodecKind, level: Level<'static>, feedback: bool) -> Reducer {
    let codec = (kind.build)(&Options::default(), &CodecRegistry::default()).unwrap();
    let coder = VectorCoder::new(codec, kind, level, 11).of_matrices(SHAPES);
    Reducer::new(if feedback { coder.with_feedback() } else { coder })
}

/// The matrices that the values are of, for codecs that take them: of very different size, one without values.
const SHAPES: [[usize; 2]; 6] = [[20, 30], [1, 30], [0, 7], [12, 25], [1, 40], [3, 10]];

/// What one rank sends in a round, by the forecast.
fn forecast(size: usize, rank: Rank, len: usize, extras: usize, reducer: &Reducer) -> Count {
    let mut ledger = Ledger::new();
    forecast_all_reduce(&mut ledger, tag(0), size, rank, len, extras, reducer);
    ledger.total()
}

/// A rank's gradients in a round: a slope that lasts and noise.
fn gradient(rank: Rank, round: u32) -> Vec<f32> {
    let key = Key::new(4, Purpose::Test).with(rank.0.into()).with(round.into());
    (0..LEN).map(|i| 0.01003 * (i % 7) as f32 + 0.1 * key.with(i as u64).normal() as f32).collect()
}

/// What each rank computes.
fn on_ranks<R: Send>(run: impl Fn(&mut ThreadsTransport) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let ends = threads(SIZE, Duration::from_secs(30));
        let run = &run;
        let workers: Vec<_> = ends.into_iter().map(|mut end| scope.spawn(move || run(&mut end))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    })
}

/// The root of the mean square of what the sums of all rounds together lack.
fn drift(name: &str, bits: u8, feedback: bool, rounds: u32) -> f64 {
    drift_of(|| reducer(name, bits, feedback), rounds)
}

fn drift_of(reducer: impl Fn() -> Reducer + Sync, rounds: u32) -> f64 {
    let drifts = on_ranks(|end| {
        let mut reducer = reducer();
        let mut lacking = vec![0.0; LEN];
        for round in 0..rounds {
            for rank in Rank::all(SIZE) {
                lacking.iter_mut().zip(gradient(rank, round)).for_each(|(lacking, value)| *lacking += f64::from(value));
            }
            let mut values = gradient(end.rank(), round);
            all_reduce(end, tag(round), &mut values, &mut [], &mut reducer).unwrap();
            lacking.iter_mut().zip(values).for_each(|(lacking, sum)| *lacking -= f64::from(sum));
        }
        (lacking.iter().map(|lacking| lacking * lacking).sum::<f64>() / LEN as f64).sqrt()
    });
    assert!(drifts.iter().all(|&drift| drift == drifts[0]), "every rank has the same sums");
    drifts[0]
}

#[test]
fn with_feedback_the_sums_of_all_rounds_lack_no_more_than_those_of_a_few() {
    for (name, bits) in [("half", 32), ("quantised", 8), ("quantised", 4), ("quantised", 2), ("quantised", 1)] {
        let (few, many) = (drift(name, bits, true, 10), drift(name, bits, true, 400));
        assert!(many < 2.0 * few, "{name} with {bits} bits: {few:e} after 10 rounds, {many:e} after 400");
        let without = drift(name, bits, false, 400);
        // A random walk of 400 steps is √400 as long as one of them.
        assert!(without > 5.0 * many, "{name} with {bits} bits: {without:e} without feedback, {many:e} with it");
    }
}

#[test]
fn one_sum_is_as_near_as_its_codec_says() {
    let spread = |values: &[f32]| {
        let (least, most) = values.iter().fold((f32::MAX, f32::MIN), |(a, b), &v| (a.min(v), b.max(v)));
        f64::from(most - least)
    };
    let gradients: Vec<Vec<f32>> = Rank::all(SIZE).map(|rank| gradient(rank, 0)).collect();
    let exact: Vec<f32> = (0..LEN).map(|i| gradients.iter().fold(0.0, |sum, own| sum + own[i])).collect();
    for (name, bits) in [("exact", 32), ("half", 32), ("quantised", 16), ("quantised", 8), ("quantised", 4)] {
        let most = |i: usize| match name {
            "exact" => 0.0,
            // A bfloat16 has eight bits, so half of the last is 2⁻⁸ at most: of each term, and of their sum.
            "half" => {
                let terms = gradients.iter().map(|own| f64::from(own[i].abs())).sum::<f64>();
                (1.01 * terms + f64::from(exact[i].abs())) / 256.0
            }
            // A step of each term and one of their sum, each a little widened.
            _ => {
                (gradients.iter().map(|own| spread(own)).sum::<f64>() + spread(&exact)) * 1.05 / (2f64.powi(bits) - 1.0)
            }
        };
        assert!((0..LEN).any(|i| f64::from(exact[i].abs()) > 2.0 * most(i)), "{name}: zeros are not near");
        for sums in on_ranks(|end| {
            let mut values = gradient(end.rank(), 0);
            all_reduce(end, tag(0), &mut values, &mut [], &mut reducer(name, bits as u8, false)).unwrap();
            values
        }) {
            for (i, (sum, exact)) in sums.iter().zip(&exact).enumerate() {
                let error = f64::from(sum - exact).abs();
                assert!(error <= most(i), "{name} with {bits} bits: {sum} instead of {exact}, {error:e} apart");
            }
        }
    }
}

#[test]
fn a_quantised_sum_is_unbiased() {
    let rounds = 4000;
    let worst = on_ranks(|end| {
        let mut reducer = reducer("quantised", 4, false);
        let mut means = vec![0.0; LEN];
        for round in 0..rounds {
            let mut values = gradient(end.rank(), 0);
            all_reduce(end, tag(round), &mut values, &mut [], &mut reducer).unwrap();
            means.iter_mut().zip(values).for_each(|(mean, sum)| *mean += f64::from(sum) / f64::from(rounds));
        }
        let exact = |i: usize| Rank::all(SIZE).map(|rank| f64::from(gradient(rank, 0)[i])).sum::<f64>();
        let errors = means.iter().enumerate().map(|(i, mean)| (mean - exact(i)).abs());
        errors.fold(0.0, f64::max)
    });
    // Steps of at most 0.05 of two terms and 0.1 of their sum: a standard deviation of at most 0.061 a round; the
    // largest of a thousand errors.
    assert!(worst[0] < 4.5 * 0.061 / f64::from(rounds).sqrt(), "{worst:?}");
}

#[test]
fn residuals_are_what_rounding_took_and_nothing_of_the_own_chunk() {
    on_ranks(|end| {
        let (rank, mut reducer) = (end.rank(), reducer("half", 32, true));
        assert_eq!(reducer.residuals(), [&[0.0f32; 0][..]; 2]);
        let mut values = gradient(rank, 0);
        all_reduce(end, tag(0), &mut values, &mut [], &mut reducer).unwrap();
        let own = chunk(LEN, SIZE, rank);
        let [residual, sum_residual] = reducer.residuals();
        assert_eq!((residual.len(), sum_residual.len()), (LEN, own.len()));
        assert!(residual[own.clone()].iter().all(|&left| left == 0.0));
        assert!(residual.iter().zip(gradient(rank, 0)).all(|(left, value)| left.abs() <= value.abs() / 256.0));
        assert!(residual.iter().any(|&left| left != 0.0) && sum_residual.iter().any(|&left| left != 0.0));
    });
}

#[test]
fn a_reducer_goes_on_from_the_residuals_of_another() {
    let run = |interrupted: bool| {
        on_ranks(|end| {
            let mut one = reducer("quantised", 4, true);
            let mut sums = Vec::new();
            for round in 0..6 {
                if interrupted && round == 3 {
                    let residuals = one.residuals().map(<[f32]>::to_vec);
                    one = reducer("quantised", 4, true);
                    one.restore(residuals);
                }
                sums = gradient(end.rank(), round);
                all_reduce(end, tag(round), &mut sums, &mut [], &mut one).unwrap();
            }
            sums.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        })
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn one_rank_alone_rounds_nothing() {
    let mut end = threads(1, Duration::from_secs(1)).remove(0);
    let (mut values, mut extras) = (gradient(Rank(0), 0), [0.1]);
    let mut reducer = reducer("quantised", 1, true);
    all_reduce(&mut end, tag(0), &mut values, &mut extras, &mut reducer).unwrap();
    assert_eq!((values, extras), (gradient(Rank(0), 0), [0.1]));
    assert_eq!(reducer.residuals(), [&[0.0f32; 0][..]; 2]);
    assert_eq!(forecast(1, Rank(0), 1000, 1, &reducer), Count::default());
}

#[test]
fn exact_sums_pass_on_what_is_not_finite_and_compressed_ones_name_its_place() {
    let results = on_ranks(|end| {
        let mut values = vec![1.0; LEN];
        values[700] = if end.rank() == Rank(0) { f32::NAN } else { 1.0 };
        all_reduce(end, tag(0), &mut values, &mut [], &mut Reducer::exact()).unwrap();
        assert!(values[700].is_nan() && values.iter().filter(|value| value.is_nan()).count() == 1);

        let mut values = vec![1.0; LEN];
        values[700] = f32::INFINITY;
        all_reduce(end, tag(1), &mut values, &mut [], &mut reducer("half", 32, false))
    });
    // Who fails first names the value; for the others a peer may be gone before they look at their own.
    let place = WireError::NotFinite { codec: "half", row: 0, column: 700, value: f32::INFINITY };
    assert!(results.contains(&Err(place)), "{results:?}");
    assert!(results.iter().all(Result::is_err), "{results:?}");
}

#[test]
fn eight_bits_send_a_quarter_of_the_bytes() {
    let bytes = |reducer: &Reducer| forecast(4, Rank(1), 1 << 20, 0, reducer).payload as f64;
    let share = bytes(&reducer("quantised", 8, true)) / bytes(&Reducer::exact());
    assert!((share - 260.0 / 1024.0).abs() < 1e-4, "{share}");
}

/// An end without peers.
fn alone() -> ThreadsTransport {
    threads(1, Duration::from_secs(1)).remove(0)
}

#[test]
fn a_codec_that_leaves_zeros_away_adds_up_to_the_last_bit_and_sends_less() {
    let sparse = |rank: Rank, round: u32| {
        let mut values = gradient(rank, round);
        values
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| !(i + round as usize).is_multiple_of(3))
            .for_each(|(_, v)| *v = 0.0);
        values
    };
    let sent = on_ranks(|end| {
        let (rank, mut end) = (end.rank(), Metered::new(Box::new(std::mem::replace(end, alone()))));
        let (mut exact, mut coded) = (Reducer::exact(), reducer_of(&SPARSE, Level::WHOLE, true));
        let exactly = 4 * forecast(SIZE, rank, LEN, 0, &exact).payload;
        for round in 0..4 {
            let (mut one, mut two, mut extras) = (sparse(rank, round), sparse(rank, round), [1.0, f64::from(rank.0)]);
            all_reduce(&mut end, tag(2 * round), &mut one, &mut [], &mut exact).unwrap();
            all_reduce(&mut end, tag(2 * round + 1), &mut two, &mut extras, &mut coded).unwrap();
            assert!(one.iter().zip(&two).all(|(one, two)| one == two), "round {round}");
            assert_eq!(extras, [3.0, 3.0]);
        }
        (end.sent().total().payload - exactly, 4 * forecast(SIZE, rank, LEN, 2, &coded).payload)
    });
    // A third of the values in two words; five ninths of the sums' are not zero.
    for (coded, bound) in sent {
        assert!(coded < bound / 2, "{coded} bytes, {bound} at most");
    }
}

#[test]
fn matrices_are_never_cut() {
    let starts: Vec<usize> = SHAPES
        .iter()
        .scan(0, |at, [rows, columns]| {
            *at += rows * columns;
            Some(*at - rows * columns)
        })
        .collect();
    for (len, size) in [(LEN, 2), (LEN, 3), (LEN, 9), (970, 4)] {
        let coder = VectorCoder::new(
            (POWER.build)(&Options::default(), &CodecRegistry::default()).unwrap(),
            &POWER,
            Level::WHOLE,
            1,
        )
        .of_matrices(SHAPES);
        let chunks: Vec<_> = Rank::all(size).map(|rank| coder.without_cuts(chunk(len, size, rank), len)).collect();
        assert_eq!(chunks.iter().cloned().flatten().collect::<Vec<_>>(), (0..len).collect::<Vec<_>>());
        assert!(chunks.iter().all(|chunk| starts.contains(&chunk.start) || chunk.start == len), "{chunks:?}");
        let bytes: usize = chunks.into_iter().map(|chunk| coder.bytes(chunk)).sum();
        let whole = SHAPES.iter().filter(|[rows, columns]| rows * columns > 0).map(|[rows, columns]| rows + columns);
        let last = if len == LEN { 0 } else { SHAPES[5][0] + SHAPES[5][1] };
        assert_eq!(bytes, 4 * (whole.sum::<usize>() - last), "{size} ranks");
    }
}

#[test]
fn a_low_rank_sum_lacks_no_more_after_many_rounds_and_is_exact_for_such_matrices() {
    let of = |rounds| drift_of(|| reducer_of(&POWER, Level::WHOLE, true), rounds);
    let (few, many) = (of(20), of(400));
    assert!(many < 2.0 * few, "{few:e} after 20 rounds, {many:e} after 400");
    let sums = on_ranks(|end| {
        let mut values: Vec<f32> = SHAPES
            .iter()
            .flat_map(|[rows, columns]| {
                (0..rows * columns).map(move |at| ((at / columns + 1) * (at % columns + 1)) as f32)
            })
            .collect();
        let expected: Vec<f32> = values.iter().map(|value| SIZE as f32 * value).collect();
        all_reduce(end, tag(0), &mut values, &mut [], &mut reducer_of(&POWER, Level::WHOLE, false)).unwrap();
        values.iter().zip(expected).map(|(sum, exact)| (sum - exact).abs() / exact).fold(0.0, f32::max)
    });
    assert!(sums.iter().all(|&worst| worst < 1e-5), "{sums:?}");
}

#[test]
fn what_a_codec_remembers_of_sums_goes_on_in_another_reducer() {
    for kind in [&POWER, &SCALE] {
        let run = |interrupted: bool| {
            on_ranks(|end| {
                let new = || reducer_of(kind, Level::WHOLE, true);
                let (mut one, mut sums) = (new(), Vec::new());
                for round in 0..6 {
                    if interrupted && round == 3 {
                        let (residuals, memories) = (one.residuals().map(<[f32]>::to_vec), one.memories());
                        one = new();
                        one.restore(residuals);
                        one.remember(&memories).expect("memories of the same codec");
                        let short = (memories.0[..memories.0.len() - 1].to_vec(), memories.1.clone());
                        assert!(new().remember(&short).is_none());
                        assert!(new().remember(&(memories.0, Vec::new())).is_none());
                    }
                    sums = gradient(end.rank(), round);
                    all_reduce(end, tag(round), &mut sums, &mut [], &mut one).unwrap();
                }
                sums.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            })
        };
        assert_eq!(run(true), run(false), "{}", kind.name);
    }
}

#[test]
fn random_columns_with_feedback_lack_no_more_after_many_rounds() {
    let masked = CodecRegistry::default().get("masked").copied().unwrap();
    let of = |rounds| drift_of(|| reducer_of(&masked, Level { ratio: 4.0, ..Level::WHOLE }, true), rounds);
    let (few, many) = (of(20), of(400));
    assert!(many < 2.0 * few, "{few:e} after 20 rounds, {many:e} after 400");
}

#[test]
fn the_largest_values_with_feedback_lack_no_more_after_many_rounds() {
    let largest = CodecRegistry::default().get("largest").copied().unwrap();
    let of = |rounds| drift_of(|| reducer_of(&largest, Level::WHOLE, true), rounds);
    // Each value has its turn about every fiftieth round.
    let (few, many) = (of(200), of(800));
    assert!(many < 2.0 * few, "{few:e} after 200 rounds, {many:e} after 800");
}

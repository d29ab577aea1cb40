//! What rounds at random or leaves out at random is right on average, wherever what follows is linear: sums of what
//! arrives, and the gradients of the first layer, into which returned gradients enter linearly. (Forward rows go
//! through ReLU and softmax; there the rows are unbiased and what is made of them is not.) Means of what was drawn are
//! none of this: `sage`'s is one over equally likely draws, `rgcn`'s over as many of a relation as chance has drawn.

use std::time::Duration;

use laconic_graph::plan::{HaloPlan, Link};
use laconic_nn::{Compute, Matrix};
use laconic_train::config::Config;
use laconic_train::exchange::halo::{Halo, Request};
use laconic_train::messages::Messages;
use laconic_train::messages::coders::Coders;
use laconic_train::plan::{Members, Plan};
use laconic_train::selection::Scope;
use laconic_wire::{Content, Direction, FramePurpose, Tag, ThreadsTransport, threads};

use crate::fixture::{PLAIN, config, draw, graph, run};

/// Standard errors that a mean may be from what it estimates: beyond five lies one in two million, and some hundred are
/// looked at.
const SIGMAS: f64 = 5.0;

/// How many standard errors the mean of these samples is from 0.
fn z_score(samples: &[f64]) -> f64 {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (n - 1.0);
    mean / (variance / n).sqrt()
}

const PROJECTIONS: usize = 6;

/// For each method errors of the first gradient over seeds, projected on the exact gradient and on fixed random
/// vectors.
fn gradient_errors(keys: &[&str], methods: &[&str], seeds: u64) -> Vec<Vec<Vec<f64>>> {
    let dataset = graph(120, 4);
    let mut samples = vec![vec![Vec::new(); PROJECTIONS]; methods.len()];
    for seed in 0..seeds {
        let seed = format!("train.seed={seed}");
        let after = |more: &[&str]| {
            let keys = [&PLAIN, keys, &[seed.as_str(), "train.epochs=1"], more].concat();
            run(&config(&keys), &dataset, 3).swap_remove(0).trained.last
        };
        let (before, exact) = (after(&["train.epochs=0"]), after(&[]));
        for (method, samples) in methods.iter().zip(&mut samples) {
            let rounded = after(&[method]);
            for (p, samples) in samples.iter_mut().enumerate() {
                let along = |i: usize| match p {
                    0 => f64::from(before[i] - exact[i]),
                    p => draw(50).with(p as u64).with(i as u64).normal(),
                };
                // A step of rate 1 goes along the gradient's negative.
                let errors = exact.iter().zip(&rounded).map(|(a, b)| f64::from(a - b));
                samples.push(errors.enumerate().map(|(i, error)| along(i) * error).sum());
            }
        }
    }
    samples
}

fn assert_right_on_average(keys: &[&str], methods: &[&str], seeds: u64) {
    for (method, errors) in methods.iter().zip(gradient_errors(keys, methods, seeds)) {
        let scores: Vec<f64> = errors.iter().map(|samples| z_score(samples)).collect();
        assert!(scores.iter().all(|z| z.abs() < SIGMAS), "{keys:?} {method}: {scores:?}");
    }
}

const UNBIASED: [&str; 6] = [
    r#"messages.backward={codec="quantised",bits=1}"#,
    r#"messages.backward={codec="quantised",bits=2}"#,
    r#"messages.backward={codec="quantised",bits=4}"#,
    r#"messages.backward={codec="quantised",bits="random",period=1}"#,
    r#"messages.backward={codec="masked",ratio=4,rescale=true,whole_last=false}"#,
    r#"messages.backward={codec="masked",ratio=2,rescale=true,inner="quantised",bits=2,whole_last=false}"#,
];

#[test]
fn gradients_that_return_rounded_or_masked_are_right_on_average() {
    for arch in ["model.arch=gcn", "model.arch=gin", "model.arch=gat"] {
        assert_right_on_average(&[arch, "model.layers=3"], &UNBIASED, 120);
    }
}

/// The control: what falls away and is not made up for is missed.
#[test]
fn gradients_that_return_masked_and_not_rescaled_are_too_short() {
    let method = r#"messages.backward={codec="masked",ratio=4,whole_last=false}"#;
    let along_exact = &gradient_errors(&["model.arch=gin"], &[method], 120)[0][0];
    assert!(z_score(along_exact) < -SIGMAS, "{}", z_score(along_exact));
}

/// The same goes for gradients of parameters that travel rounded, on their way to the sum and back from it.
#[test]
fn gradients_that_are_summed_rounded_are_right_on_average() {
    let methods = [1, 2, 8].map(|bits| format!("messages.parameters={{codec=\"quantised\",bits={bits}}}"));
    // With feedback, coarse codes are fitted, not drawn.
    let keys = ["model.arch=gin", "messages.error_feedback=false"];
    assert_right_on_average(&keys, &methods.each_ref().map(String::as_str), 200);
}

const ROWS: usize = 9;
const COLUMNS: usize = 8;
/// No row of normal values here is wider.
const RANGE: f64 = 6.0;

/// Sums over rounds and, of squares, of what a worker receives of another's rows in one direction, each row weighed by
/// its presence.
fn received(config: &Config, direction: Direction, rounds: u32) -> (Matrix, Vec<f64>, Vec<f64>) {
    let every: Vec<u32> = (0..ROWS as u32).collect();
    let links = |rank: usize| {
        let link = Link { send: every.clone(), receive: 0..ROWS as u32 };
        if rank == 0 { vec![Link::default(), link] } else { vec![link, Link::default()] }
    };
    let rows = |rank: u64| {
        let value = |i: usize| draw(51).with(rank).with(i as u64).normal() as f32;
        Matrix::from_vec(ROWS, COLUMNS, (0..ROWS * COLUMNS).map(value).collect())
    };
    let one = |rank: usize, mut channel: ThreadsTransport| {
        let plan = HaloPlan { rank: rank as u32, links: links(rank) };
        let codecs = Coders::new(&Messages::of(&config.messages, &Default::default(), &[]).expect("messages"), 7);
        let selection = Plan::for_model(&Members::default(), config, [1, 1]).expect("a plan").selection;
        let mut halo = Halo::new(plan, ROWS, codecs, 7, selection);
        let (compute, mut sums) = (Compute::new(1), vec![0.0; ROWS * COLUMNS]);
        let mut squares = sums.clone();
        for round in 1..=rounds {
            let tag = Tag { direction, layer: 1, round, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
            let presence = halo.presence(Request::now(tag, Scope::Selected));
            let weight = |row: usize| presence.as_ref().map_or(1.0, |weights| weights[row]);
            let mut sent = rows(rank as u64);
            if direction == Direction::Reverse {
                // As a fold's adjoint does: a row that counted for several gets several times the gradient.
                (0..ROWS).for_each(|row| sent.row_mut(row).iter_mut().for_each(|value| *value *= weight(row)));
            }
            let pending = halo.start(&compute, &mut channel, Request::now(tag, Scope::Selected), &sent).expect("sent");
            let mut into = Matrix::zeros(ROWS, COLUMNS);
            pending.finish(&mut halo, &compute, &mut channel, &mut into).expect("received");
            for row in 0..ROWS {
                let factor = if direction == Direction::Forward { f64::from(weight(row)) } else { 1.0 };
                for (column, value) in into.row(row).iter().enumerate() {
                    sums[row * COLUMNS + column] += factor * f64::from(*value);
                    squares[row * COLUMNS + column] += (factor * f64::from(*value)).powi(2);
                }
            }
        }
        (sums, squares)
    };
    let ends = threads(2, Duration::from_secs(30));
    std::thread::scope(|scope| {
        let handles: Vec<_> =
            ends.into_iter().enumerate().map(|(rank, end)| scope.spawn(move || one(rank, end))).collect();
        let (sums, squares) = handles.into_iter().map(|handle| handle.join().expect("a rank")).next().expect("rank 0");
        (rows(1), sums, squares)
    })
}

/// The largest distance of a mean from its row, in standard errors. The ends of a row are nearly always sent as they
/// are, and what was not seen in n rounds may still happen once in n: so the variance is taken as that much larger.
fn worst(config: &Config, direction: Direction) -> f64 {
    let rounds = 4000;
    let (rows, sums, squares) = received(config, direction, rounds);
    let n = f64::from(rounds);
    let distance = |(value, (sum, square)): (&f32, (&f64, &f64))| {
        let (mean, apart) = (sum / n, (sum / n - f64::from(*value)).abs());
        let variance = (square / n - mean * mean).max(0.0) + RANGE * RANGE / n;
        apart / (variance / n).sqrt()
    };
    rows.data().iter().zip(sums.iter().zip(&squares)).map(distance).fold(0.0, f64::max)
}

/// Every value of every row, in both directions: 72 means of 4,000 rounds each.
#[test]
fn rows_that_cross_at_random_are_right_on_average() {
    for method in [
        r#"messages.selection={kind="boundary_sample",rate=0.5}"#,
        r#"messages.selection={kind="boundary_sample",rate=0.05}"#,
        r#"messages.forward={codec="quantised",bits=1}"#,
        r#"messages.forward={codec="quantised",bits=2}"#,
        r#"messages.forward={codec="masked",ratio=4,rescale=true}"#,
    ] {
        let backward = method.replace("forward", "backward");
        let both = [method, backward.as_str()];
        for direction in [Direction::Forward, Direction::Reverse] {
            let worst = worst(&config(&both), direction);
            assert!(worst < SIGMAS, "{both:?} {direction:?}: {worst:.1} standard errors");
        }
    }
    let biased = config(&[r#"messages.forward={codec="masked",ratio=4}"#]);
    assert!(worst(&biased, Direction::Forward) > 2.0 * SIGMAS, "columns that are missed");
}

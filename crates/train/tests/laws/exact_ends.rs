//! Where a method is turned up until nothing is left out, it is the exact run, bit by bit, and so the same on one
//! worker and on many.

use laconic_graph::dataset::Dataset;

use crate::fixture::{PLAIN, config, graph, losses, run, waiting};
use crate::methods::{ARCHS, SCHEDULES, go_together};
use crate::one_is_many::compare;
use crate::same_bits::assert_same;

/// Methods that leave nothing out.
const EXACT: [&[&str]; 11] = [
    &[r#"messages.forward={codec="quantised",bits=32}"#, r#"messages.backward={codec="quantised",bits=32}"#],
    &[r#"messages.forward={codec="quantised",bits={from=32,to=32}}"#],
    &[
        r#"messages.forward={codec="masked",ratio=1,whole_last=false}"#,
        r#"messages.backward={codec="masked",ratio=1,whole_last=false}"#,
    ],
    &[r#"messages.forward={codec="masked",ratio=1,rescale=true,whole_last=false}"#],
    &[
        r#"messages.forward={codec="masked",ratio=1,inner="quantised",bits=32,whole_last=false}"#,
        r#"messages.backward={codec="masked",ratio=1,columns="prefix",whole_last=false}"#,
    ],
    &[r#"messages.selection={kind="boundary_sample",rate=1}"#],
    &["messages.skip={change=0.0,staleness=1}"],
    // Rows that have not moved at all need not be sent again.
    &["messages.skip={change=0.0,staleness=1000}"],
    &[r#"messages.parameters={codec="quantised",bits=32}"#],
    &[r#"messages.evaluation={codec="quantised",bits=32}"#],
    &[r#"messages.budget="1 TB""#],
];

#[test]
fn a_method_that_leaves_nothing_out_is_the_exact_run_bit_by_bit() {
    let dataset = graph(150, 4);
    for schedule in SCHEDULES {
        for arch in ARCHS {
            let keys = [schedule, arch].concat();
            let variants = EXACT.into_iter().filter(|method| go_together(&[schedule, method].concat()));
            assert_same(&dataset, 3, &keys, &variants.collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_method_that_leaves_nothing_out_is_the_same_on_one_worker_and_on_many() {
    let dataset = graph(180, 4);
    for (m, method) in EXACT.into_iter().enumerate() {
        // Late rows on one worker are none, so that a pipelined run is another on many.
        let schedule = [SCHEDULES[0], SCHEDULES[1], SCHEDULES[4], SCHEDULES[5]][m % 4];
        let worst = compare(&dataset, &[schedule, ARCHS[m % ARCHS.len()], method].concat(), &[2, 4]);
        println!("{method:?} {schedule:?}: {worst:.1e}");
    }
}

/// And the other way round: a method that leaves something out is not the exact run, or these laws would say nothing.
#[test]
fn a_method_that_leaves_something_out_is_another_run() {
    let dataset = graph(150, 4);
    let exact = run(&config(&["model.arch=gin"]), &dataset, 3);
    for method in [
        &[r#"messages.forward={codec="quantised",bits=8}"#][..],
        &[r#"messages.backward={codec="masked",ratio=2,whole_last=false}"#],
        &[r#"messages.selection={kind="boundary_sample",rate=0.9}"#],
        &["messages.skip={change=10.0,staleness=3}"],
        &[r#"messages.parameters={codec="quantised",bits=8}"#],
        &["train.sync_every=2"],
    ] {
        let other = run(&config(&[&["model.arch=gin"], method].concat()), &dataset, 3);
        assert!(exact[0].trained.last != other[0].trained.last, "{method:?}");
    }
}

/// Rows that never change and arrive bit by bit.
const REVEALED: [&[&str]; 4] = [
    &[r#"messages.forward={codec="masked",ratio={from=12}}"#],
    &[r#"messages.forward={codec="masked",ratio={law="columns",from=12,slope=1.5},columns="prefix"}"#],
    &[r#"messages.forward={codec="masked",ratio={law="staircase",from=8,steps=3}}"#],
    &[r#"messages.forward={codec="masked",ratio={from=12},inner="quantised",bits=32}"#],
];

/// Schedules whose masks touch frozen inputs alone: of two layers, masks leave the last one whole.
const FROZEN: [&[&str]; 3] = [
    &["schedule.kind=synchronous"],
    &["schedule.kind=lazy", "schedule.start=features"],
    &["schedule.kind=lazy", "schedule.start=mlp"],
];

/// A run that waits until all is there and then learns ends where the exact run does, up to what the waiting itself
/// moves.
#[test]
fn what_was_revealed_column_by_column_is_what_was_there() {
    let dataset = graph(150, 4);
    let waiting = waiting(10);
    let waiting: Vec<&str> = waiting.iter().map(String::as_str).collect();
    for schedule in FROZEN {
        for arch in [ARCHS[0], ARCHS[1], &["model.arch=sage", "model.aggregator=max"], &["model.arch=gat"]] {
            let keys = [&PLAIN[..], schedule, arch, &waiting, &["train.epochs=12", "model.norm=none"]].concat();
            let exact = run(&config(&keys), &dataset, 3);
            for method in REVEALED {
                let revealed = run(&config(&[&keys[..], method].concat()), &dataset, 3);
                let pairs = revealed[0].trained.chosen.iter().flatten().zip(exact[0].trained.chosen.iter().flatten());
                // Ten steps of 1e-30 along gradients below 1e3.
                let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(apart <= 1e-26, "{schedule:?} {arch:?} {method:?}: {apart:e}");
            }
        }
    }
}

/// Losses of rounds in which nothing is learned: they tell what is known of the neighbours.
fn still_losses(dataset: &Dataset, keys: &[&str]) -> Vec<f64> {
    losses(&[&PLAIN[..], &["train.lr=1e-30", "train.epochs=12", "model.norm=none"], keys].concat(), dataset, 3)
}

/// What is known gets better until the ramp is through and then stays: columns to the last bit, bits down to what
/// single precision leaves of a residual.
#[test]
fn what_is_revealed_stays_and_ends_exact() {
    let dataset = graph(150, 4);
    let bits = r#"messages.forward={codec="quantised",bits={law="exponential",from=1,to=32}}"#;
    for arch in [ARCHS[0], ARCHS[1], &["model.arch=gat"]] {
        let exact = still_losses(&dataset, arch)[0];
        for (method, tolerance) in [(REVEALED[0][0], 0.0), (REVEALED[1][0], 0.0), (bits, 1e-6)] {
            let found = still_losses(&dataset, &[arch, &[method][..]].concat());
            let errors: Vec<f64> = found.iter().map(|loss| (loss - exact).abs() / exact).collect();
            assert!(errors[0] > 1e-4, "{arch:?} {method}: {errors:?}");
            assert!(errors[10..].iter().all(|error| *error <= tolerance), "{arch:?} {method}: {errors:?}");
        }
    }
}

/// A residual ranges over two steps, so that with b bits more the step shrinks to 2/(2^b − 1) of what it was, and what
/// is known gets better each time.
#[test]
fn refined_rows_are_known_to_the_finer_step() {
    let dataset = graph(150, 4);
    let error = |bits: &str| {
        let method = format!("messages.forward={{codec=\"quantised\",bits={bits}}}");
        let of_seed = |seed: u64| {
            let seed = format!("train.seed={seed}");
            let keys = ["model.arch=gin", seed.as_str()];
            let exact = still_losses(&dataset, &keys)[0];
            let found = still_losses(&dataset, &[&keys[..], &[method.as_str()]].concat());
            ((found[11] - exact) / exact).powi(2)
        };
        ((0..20).map(of_seed).sum::<f64>() / 20.0).sqrt()
    };
    let (one, eight) = (error("1"), error("8"));
    let (to_two, to_four, to_eight) = (error("{from=1,to=2}"), error("{from=1,to=4}"), error("{from=1,to=8}"));
    println!("{one:.1e} {to_two:.1e} {to_four:.1e} {to_eight:.1e}, at once {eight:.1e}");
    assert!(one > 2.0 * to_two && to_two > to_four && to_four > 4.0 * to_eight, "each refinement refines");
    // From 1 bit over 2 and 4 to 8: 2/3 · 2/3 · 2/15 of the range instead of 1/255 of it. Losses of 20 seeds say so
    // within a factor of two.
    assert!(to_eight < 2.0 * 15.2 * eight, "{to_eight:e} after refining, {eight:e} at once");
}

//! Rows that are stored as bf16: the same training within what rounding to eight bits of fraction leaves, and every law
//! of bits and bytes as it is for `f32`.

use laconic_nn::layer::LAYERS;
use laconic_train::Members;
use laconic_train::TrainError;
use laconic_train::plan::Plan;

use crate::fixture::{config, first_gradient, graph, losses, multi_label, parts, run, try_run};
use crate::ledger_is_prediction::{assert_exact, assert_predicted};
use crate::methods::SCHEDULES;
use crate::same_bits::{assert_goes_on, assert_same};

const BF16: &str = "train.precision=bf16";

/// A rounding moves a value by 2^-9 of it at most. Those of rows are as random as signs; those of weights, which are
/// rounded where the processor multiplies bf16, are the same for all rows, and a first gradient, in which most of what
/// rows want cancels, is moved by several times as much.
const TOLERANCE: f64 = 0.06;

const ARCHS: [&[&str]; 7] = [
    &["model.arch=gcn"],
    &["model.arch=sage"],
    &["model.arch=sage", "model.residual=true", "model.hidden=15"],
    &["model.arch=gin"],
    &["model.arch=gat"],
    &["model.arch=gat", "model.head_merge=mean", "model.residual=true"],
    &["model.arch=mlp"],
];

/// ‖found − expected‖ / ‖expected‖.
fn distance(found: &[f64], expected: &[f64]) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    assert_eq!(found.len(), expected.len());
    norm(&mut found.iter().zip(expected).map(|(a, b)| a - b)) / norm(&mut expected.iter().copied())
}

#[test]
fn a_gradient_of_rows_in_bf16_is_that_of_rows_in_f32_within_rounding() {
    let dataset = graph(300, 4);
    for arch in ARCHS {
        for others in [&["model.layers=3"][..], &["model.layers=3", "model.norm=none", "model.activation=prelu"]] {
            for workers in [1, 3] {
                let keys = [arch, others].concat();
                let exact = first_gradient(&keys, &dataset, workers);
                let found = first_gradient(&[&keys[..], &[BF16]].concat(), &dataset, workers);
                let distance = distance(&found, &exact);
                assert!(distance > 0.0, "{keys:?}: bf16 is not f32");
                assert!(distance < TOLERANCE, "{keys:?}, {workers} workers: {distance:.4}");
            }
        }
    }
}

/// Folds of own and of others' rows are rounded one after the other, so that here many are one within rounding.
#[test]
fn a_gradient_of_many_workers_is_that_of_one_within_rounding() {
    let dataset = graph(300, 4);
    for arch in ARCHS {
        for schedule in ["schedule.cache_inputs=true", "schedule.cache_inputs=false"] {
            let keys = [arch, &["model.layers=3", schedule, BF16]].concat();
            let one = first_gradient(&keys, &dataset, 1);
            for workers in [2, 4] {
                let distance = distance(&first_gradient(&keys, &dataset, workers), &one);
                assert!(distance < TOLERANCE, "{keys:?}, {workers} workers: {distance:.4}");
            }
        }
    }
}

/// Every schedule learns as it does with `f32`: the losses of rounds differ by little.
#[test]
fn every_schedule_learns_as_much() {
    let dataset = graph(300, 4);
    let apart: [&[&str]; 5] = [
        &["schedule.kind=averaging"],
        &["schedule.kind=averaging", "schedule.halo=frozen"],
        &["schedule.kind=psgd_pa"],
        &["schedule.kind=llcg"],
        &["schedule.kind=ggs"],
    ];
    for schedule in SCHEDULES.into_iter().chain(apart) {
        for arch in [&["model.arch=sage"][..], &["model.arch=gat"]] {
            let keys = [arch, schedule, &["train.epochs=6"]].concat();
            let exact = losses(&keys, &dataset, 3);
            let found = losses(&[&keys[..], &[BF16]].concat(), &dataset, 3);
            let distance = distance(&found, &exact);
            assert!(distance < TOLERANCE, "{keys:?}: {distance:.4}\n{found:?}\n{exact:?}");
        }
    }
}

/// 2,500 rows a worker: kernels cut them into several pieces, which threads share.
#[test]
fn threads_overlap_and_rows_made_again_change_no_bit() {
    let dataset = graph(5000, 4);
    for arch in ARCHS {
        let keys = [arch, &["train.epochs=2", "model.layers=3", BF16]].concat();
        let variants: [&[&str]; 4] =
            [&["train.threads=2"], &["train.threads=3"], &["schedule.overlap=false"], &["train.recompute=true"]];
        assert_same(&dataset, 2, &keys, &variants);
    }
}

#[test]
fn a_resumed_run_goes_on_with_the_same_bits() {
    for schedule in ["schedule.kind=synchronous", "schedule.kind=pipelined", "schedule.kind=lazy"] {
        assert_goes_on(&graph(120, 3), &["model.arch=sage", schedule, BF16], &[1, 3]);
    }
}

/// Rows that are bf16 lose nothing in messages that are, too: what arrives is what arrives of `f32` messages, which are
/// widened, and rounded where they arrive.
#[test]
fn messages_of_halves_change_no_bit() {
    let dataset = graph(180, 4);
    let half = &["messages.forward=half", "messages.backward=half", "messages.evaluation=half"][..];
    for arch in ARCHS {
        for schedule in SCHEDULES {
            let keys = [arch, schedule, &["train.epochs=3", "model.layers=3", BF16]].concat();
            assert_same(&dataset, 3, &keys, &[half]);
        }
    }
}

/// What crosses is coded as ever, so bytes are those of `f32`.
#[test]
fn bytes_are_predicted_and_those_of_rows_in_f32() {
    let dataset = graph(180, 4);
    let codecs: [&[&str]; 4] = [
        &[],
        &["messages.forward=half", "messages.backward=half", "messages.evaluation=half"],
        &[r#"messages.forward={codec="quantised",bits=4}"#, r#"messages.parameters={codec="quantised",bits=8}"#],
        &[r#"messages.backward={codec="masked",ratio=3}"#, "messages.selection={kind=\"boundary_sample\",rate=0.5}"],
    ];
    for arch in ARCHS {
        for codec in codecs {
            let keys = [arch, codec, &[BF16]].concat();
            assert_predicted(&dataset, &keys, 3);
            let of = |keys: &[&str]| {
                let outcomes = run(&config(keys), &dataset, 3);
                assert_exact(&outcomes, &format!("{keys:?}"));
                outcomes[0].summary.as_ref().expect("worker 0 sums up").bytes.total
            };
            assert_eq!(of(&keys), of(&[arch, codec].concat()), "{keys:?}");
        }
    }
}

#[test]
fn several_labels_and_links_are_learned_as_well() {
    for (dataset, keys) in [
        (multi_label(180, 5), &["model.arch=sage"][..]),
        (graph(180, 4), &["model.arch=gcn", "task.kind=link_prediction", "task.eval_negatives=10"]),
    ] {
        let exact = losses(keys, &dataset, 2);
        let found = losses(&[keys, &[BF16]].concat(), &dataset, 2);
        assert!(distance(&found, &exact) < TOLERANCE, "{keys:?}: {found:?} {exact:?}");
    }
}

/// What is computed in `f32` alone is named, and no run starts with it.
#[test]
fn what_takes_f32_alone_is_refused() {
    let dataset = graph(60, 3);
    for (refused, named) in [
        (&["batch.size=8"][..], "batch.size = 8"),
        (&["model.norm=batch"], "model.norm = \"batch\""),
        (&["model.jumping_knowledge=cat"], "model.jumping_knowledge = \"cat\""),
        (&["model.aggregator=max"], "model.aggregator = \"max\""),
        (&["model.arch=rgcn"], "model.arch = \"rgcn\""),
        (&[r#"messages.forward={codec="masked",ratio={from=4}}"#], "reveal"),
    ] {
        let keys = [refused, &[BF16]].concat();
        match try_run(&config(&keys), &dataset, 2, Default::default()) {
            Err(error @ TrainError::Config(_)) => {
                let text = error.to_string();
                assert!(text.contains("train.precision = \"bf16\"") && text.contains(named), "{keys:?}: {text}");
            }
            other => panic!("{keys:?}: {:?}", other.map(|_| "a run")),
        }
    }
}

/// Whatever layer says that it takes bf16 is tried above; the others are refused by their names.
#[test]
fn every_layer_is_tried_or_refused() {
    let dataset = graph(60, 3);
    for kind in LAYERS {
        let arch = format!("model.arch={}", kind.name);
        let config = config(&[&arch, BF16]);
        let counts = parts(&config, &dataset, 1).swap_remove(0).global;
        let plan = Plan::with(&Members::default(), &config, &counts);
        let is_tried = ARCHS.iter().any(|keys| keys.contains(&arch.as_str()));
        assert_eq!(plan.is_ok(), is_tried, "{arch}");
    }
}

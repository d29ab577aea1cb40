//! Own rows may stand in another order: what is learned is the same but for the order of sums, what comes out belongs
//! to the node that it is of, and what is sent does not change.

use std::sync::Arc;

use laconic_array::{Array, Lend};
use laconic_graph::dataset::{Dataset, Features, Labels};
use laconic_graph::order::OrderKind;
use laconic_graph::plan::plan_all;
use laconic_train::Config;
use laconic_train::record::weights;
use laconic_train::run::Outcome;
use laconic_train::run::predict::predict_parts;
use laconic_train::run::source::Source;
use laconic_train::run::verify::{largest_difference, relative_difference};

use crate::averaging::{self, simulated, trainers};
use crate::batches::assert_close;
use crate::fixture::{config, folder, graph, into_folder, losses, multi_label, parts, related, run, try_run, weighted};
use crate::ledger_is_prediction::assert_predicted;
use crate::links;
use crate::same_bits::{assert_goes_on, assert_same, bits};

const ORDERED: &str = "partition.order=locality";

const SHUFFLED: &str = "partition.order=random";

/// Single precision rounds at 6e-8, and ten steps multiply that by less than a thousand.
const TOLERANCE: f64 = 1e-4;

/// Losses and parameters with rows as they are given and in the other order.
fn assert_learns_the_same(dataset: &Dataset, keys: &[&str], workers: u32, tolerance: f64) {
    assert_learns_the_same_in(ORDERED, dataset, keys, workers, tolerance);
}

fn assert_learns_the_same_in(order: &str, dataset: &Dataset, keys: &[&str], workers: u32, tolerance: f64) {
    let keys = [keys, &["train.eval_every=0"]].concat();
    let ordered = [&keys[..], &[order]].concat();
    let what = (workers, &ordered);
    assert_close(&losses(&ordered, dataset, workers), &losses(&keys, dataset, workers), tolerance, &what);
    let [found, expected] = [&ordered, &keys].map(|keys| run(&config(keys), dataset, workers).swap_remove(0).trained);
    assert_eq!(found.chosen.len(), expected.chosen.len());
    for (found, expected) in found.chosen.iter().zip(&expected.chosen) {
        let difference = relative_difference(found, expected);
        assert!(difference <= tolerance, "{what:?}: {difference:.1e}");
    }
    for (name, figure) in &expected.scores.val {
        // A figure that counts nodes may count one more or less.
        let [found, figure] = [found.scores.val[name], *figure].map(|figure| figure.expect("a figure"));
        assert!((found - figure).abs() <= 0.05, "{what:?}: {name}");
    }
}

/// All of these laws would hold of an order that changes nothing.
#[test]
fn the_other_order_is_another_one() {
    let dataset = graph(180, 4);
    for kind in ["locality", "random"].map(|name| OrderKind::from_name(name).expect("an order")) {
        for workers in [1, 3] {
            for (_, topology) in plan_all(&parts(&config(&[]), &dataset, workers), false).expect("plans") {
                let order = kind.of(&topology).expect("an order of rows");
                let stay = order.rows().iter().zip(0..).filter(|&(&row, place)| row == place).count();
                assert!(stay < order.rows().len() / 4, "{stay} of {} rows stay", order.rows().len());
            }
        }
    }
    assert!(
        OrderKind::from_name("given")
            .expect("an order")
            .of(&plan_all(&parts(&config(&[]), &dataset, 1), false).expect("plans")[0].1)
            .is_none()
    );
}

#[test]
fn rows_in_another_order_learn_the_same() {
    const SCHEDULES: [&[&str]; 6] = [
        &["schedule.kind=synchronous"],
        &["schedule.kind=synchronous", "schedule.cache_inputs=false", "data.inductive=true"],
        &["schedule.kind=pipelined", "schedule.smooth_gradients=0.5"],
        &["schedule.kind=lazy", "schedule.start=features"],
        &["schedule.kind=lazy", "schedule.start=mlp", "schedule.hand_on=hidden"],
        &["messages.selection={kind=\"boundary_sample\",rate=0.5}", "model.norm=batch"],
    ];
    const ARCHS: [&[&str]; 5] = [
        &["model.arch=gcn"],
        &["model.arch=sage", "model.aggregator=max"],
        &["model.arch=sage", "model.layers=3", "train.class_weights=balanced"],
        &["model.arch=gin", "model.learn_epsilon=false"],
        &["model.arch=gat"],
    ];
    let (plain, weights, sets) = (graph(180, 4), weighted(180, 4), multi_label(180, 4));
    for (turn, arch) in ARCHS.iter().enumerate() {
        for schedule in SCHEDULES {
            for workers in [1, 3] {
                let keys = [*arch, schedule, &["train.epochs=6"]].concat();
                assert_learns_the_same([&plain, &weights][turn % 2], &keys, workers, TOLERANCE);
            }
        }
        assert_learns_the_same(&sets, &[*arch, &["train.epochs=6"]].concat(), 3, TOLERANCE);
        assert_learns_the_same_in(SHUFFLED, &plain, &[*arch, &["train.epochs=6"]].concat(), 3, TOLERANCE);
    }
    for workers in [1, 3] {
        let keys = ["model.arch=rgcn", "model.bases=2", "train.epochs=6"];
        assert_learns_the_same(&related(180, 4), &keys, workers, TOLERANCE);
    }
}

/// Where rounding by chance falls to the other side, a value is a step of 255 from where it was.
#[test]
fn rows_in_another_order_learn_the_same_from_quantised_messages() {
    const CODECS: [&[&str]; 3] = [
        &[r#"messages.forward={codec="quantised",bits=8}"#, r#"messages.backward={codec="quantised",bits=8}"#],
        &["messages.forward=half", "messages.backward=half", "messages.skip={change=0.01}"],
        &[r#"messages.forward={codec="masked",ratio={from=4},whole_last=false}"#],
    ];
    for codec in CODECS {
        for arch in ["model.arch=gcn", "model.arch=gat"] {
            assert_learns_the_same(&graph(180, 4), &[codec, &[arch, "train.epochs=6"]].concat(), 3, 5e-3);
        }
    }
}

/// A batch has its own rows in the order of their ids, however they stand, so not even sums have another order.
#[test]
fn batches_of_rows_in_another_order_have_the_same_bits() {
    const BATCHES: [&[&str]; 5] = [
        &["batch.size=30", "batch.fanouts=[3, 2]"],
        &["batch.size=30", "batch.fanouts=[-1, 3]", "batch.cache=\"2 kB\"", "batch.redraw=2"],
        &["batch.size=30", "batch.kind=clusters", "batch.clusters=12"],
        &["batch.size=30", "batch.kind=clusters", "batch.clusters=12", "train.sync_every=3"],
        &["batch.size=30", "batch.fanouts=[3, 2]", "train.sync_every=3"],
    ];
    let datasets = [graph(200, 4), weighted(200, 4)];
    for (turn, batch) in BATCHES.iter().enumerate() {
        for arch in ["model.arch=sage", "model.arch=gcn", "model.arch=gat"] {
            for workers in [1, 3] {
                let keys = [*batch, &[arch, "train.epochs=2", "train.eval_every=0"]].concat();
                let ordered = [&keys[..], &[ORDERED]].concat();
                let ends = [&keys, &ordered]
                    .map(|keys| run(&config(keys), &datasets[turn % 2], workers).swap_remove(0).trained.last);
                let [expected, found] = ends.map(|end| end.iter().map(|value| value.to_bits()).collect::<Vec<_>>());
                assert_eq!(found, expected, "{workers} workers, {keys:?}");
            }
        }
    }
}

#[test]
fn links_of_rows_in_another_order_are_learned_the_same() {
    const MORE: [&[&str]; 5] = [
        &["model.arch=gcn", "task.negatives=local"],
        &["model.arch=sage", "task.decoder=mlp", "task.filter_negatives=true"],
        &["model.arch=gat", "schedule.kind=lazy"],
        &["model.arch=gcn", "batch.size=60", "batch.fanouts=[2, 3]", "task.negatives=local"],
        &["model.arch=sage", "batch.size=60", "batch.fanouts=[2, 3]", "task.exclude_targets=false"],
    ];
    for more in MORE {
        for workers in [1, 3] {
            let keys = links::keys(&[more, &["train.epochs=3"]].concat());
            assert_learns_the_same(&graph(180, 4), &keys, workers, TOLERANCE);
        }
    }
}

/// Independent trainers and the judge of their means each have an order of theirs.
#[test]
fn trainers_whose_rows_stand_in_another_order_learn_the_same() {
    for keys in averaging::KINDS.iter().filter(|keys| !keys.iter().any(|key| key.contains("quantised"))) {
        let dataset = averaging::dataset(keys);
        for count in [1, 3] {
            let ordered = [*keys, &[ORDERED]].concat();
            let [found, expected] = [&ordered[..], keys].map(|keys| averaging::run(&simulated(keys), &dataset, count));
            let last = |outcomes: &[Outcome]| outcomes[0].trained.last.clone();
            let difference = averaging::close(&last(&found), &last(&expected));
            assert!(f64::from(difference) <= 20.0 * TOLERANCE, "{keys:?} with {count} trainers: {difference:.1e}");
            let really = averaging::run(&trainers(&ordered), &dataset, count);
            assert_eq!(bits(&really), bits(&found), "{keys:?}: a simulated run is the run");
        }
    }
}

/// Each node's features and label say which it is, so that a row in another's place shows.
fn told_apart() -> Dataset {
    let mut dataset = graph(180, 4);
    let Features::Dense { columns, values } = &mut dataset.features else { panic!("dense features") };
    for (node, row) in values.chunks_exact_mut(*columns).enumerate() {
        row[0] = 0.1 * node as f32;
    }
    dataset
}

#[test]
fn predictions_come_out_by_node() {
    let dataset = told_apart();
    for keys in [&["model.arch=gat"][..], &["schedule.kind=lazy"], &["model.arch=sage", "schedule.cache_inputs=false"]]
    {
        for workers in [1, 3] {
            let (place, config) = (folder(), config(&[keys, &["train.epochs=2", ORDERED]].concat()));
            let out = place.path().join("run");
            try_run(&config, &dataset, workers, into_folder(&out)).expect("a run");
            let given = Config { partition: Default::default(), ..config.clone() };
            let weights = weights::read(&out.join(weights::FILE)).expect("a model").weights;
            let of = |config: &Config| {
                let widths = [dataset.features.columns(), dataset.labels.classes()];
                let source = Source::of(parts(config, &dataset, workers));
                let names = (&Default::default(), config);
                predict_parts(names, source, &weights, widths).expect("predictions")
            };
            for (found, expected) in of(&config).iter().zip(&of(&given)) {
                assert_eq!((&found.nodes, &found.labels), (&expected.nodes, &expected.labels));
                let Labels::Single { values, .. } = &dataset.labels else { panic!("classes") };
                let Labels::Single { values: labels, .. } = &found.labels else { panic!("classes") };
                assert!(found.nodes.iter().zip(labels).all(|(&node, label)| values[node as usize] == *label));
                let difference = largest_difference(found.inferred.logits.data(), expected.inferred.logits.data());
                assert!(difference < 1e-5, "{keys:?} with {workers} workers: logits differ by {difference:.1e}");
                let [found, expected] = [found, expected].map(|of| of.inferred.embedding.as_ref().expect("rows"));
                let difference = largest_difference(found.data(), expected.data());
                assert!(difference < 1e-5, "{keys:?} with {workers} workers: embeddings differ by {difference:.1e}");
                let differ = (1..found.rows()).all(|row| found.row(row) != found.row(row - 1));
                assert!(differ, "rows that are alike could be in each other's place");
            }
        }
    }
}

#[test]
fn ordered_rows_send_what_was_predicted_and_what_they_sent_before() {
    let dataset = graph(150, 4);
    for keys in [
        &["model.arch=gcn"][..],
        &["schedule.kind=lazy", "model.arch=gat"],
        &["schedule.kind=pipelined", r#"messages.forward={codec="quantised",bits=4}"#],
        &["messages.selection={kind=\"boundary_sample\",rate=0.5}", "data.inductive=true"],
    ] {
        let ordered = [keys, &[ORDERED]].concat();
        assert_predicted(&dataset, &ordered, 3);
        let [found, expected] = [&ordered[..], keys].map(|keys| run(&config(keys), &dataset, 3));
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.sent == expected.sent, "{keys:?}: worker {}", found.rank);
        }
    }
}

#[test]
fn ordered_rows_go_on_after_a_stop_to_the_same_bits() {
    let dataset = graph(180, 4);
    for keys in [
        &["model.arch=gcn"][..],
        &["schedule.kind=pipelined", "schedule.smooth_features=0.5", "schedule.smooth_gradients=0.5"],
        &["schedule.kind=lazy", "schedule.start=mlp"],
        &["batch.size=20", "batch.fanouts=[3, 2]"],
        &["messages.skip={change=0.3}", "train.sync_every=2"],
    ] {
        assert_goes_on(&dataset, &[keys, &[ORDERED]].concat(), &[1, 3]);
    }
}

#[test]
fn threads_change_no_bit_of_ordered_rows() {
    let dataset = graph(5000, 4);
    for arch in ["model.arch=gat", "model.arch=sage"] {
        let keys = [arch, "train.epochs=2", ORDERED];
        assert_same(&dataset, 2, &keys, &[&["train.threads=2"], &["train.threads=3"]]);
    }
}

/// The rows of a program that lends them.
struct Kept(Array<f32>);

impl Lend<f32> for Kept {
    fn values(&self) -> &[f32] {
        &self.0
    }
}

/// Features that a program lends stay where they are while own rows have another order, and count as those that move
/// with these, to the last bit.
#[test]
fn features_that_are_lent_have_the_same_bits_as_features_that_move() {
    const RUNS: [&[&str]; 9] = [
        &["model.arch=sage", "train.precision=bf16"],
        &["model.arch=sage", "schedule.cache_inputs=false", "model.norm=none"],
        &["model.arch=gcn"],
        &["model.arch=gat"],
        &["model.arch=gin", "data.inductive=true"],
        &["schedule.kind=lazy", "schedule.start=features"],
        &["batch.size=30", "batch.fanouts=[3, 2]"],
        &["batch.size=30", "batch.kind=clusters", "batch.clusters=12"],
        &["model.inputs=[\"features\",\"labels\"]", "policy.allow=[\"training_labels\"]", "model.arch=sage"],
    ];
    for own in RUNS {
        let keys = [own, &["train.epochs=3", ORDERED]].concat();
        for workers in [1, 2] {
            let held = graph(200, 4);
            let mut lent = held.clone();
            if let Features::Dense { values, .. } = &mut lent.features {
                *values = Array::lent(Arc::new(Kept(std::mem::take(values))));
            }
            let [found, expected] = [&lent, &held].map(|dataset| {
                let mut outcomes = run(&config(&keys), dataset, workers);
                (bits(&outcomes), outcomes.swap_remove(0).trained.scores)
            });
            assert_eq!(found.0, expected.0, "{keys:?}, {workers} workers");
            assert_eq!(format!("{:?}", found.1), format!("{:?}", expected.1), "{keys:?}");
        }
    }
}

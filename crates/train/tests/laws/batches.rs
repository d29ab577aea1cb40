//! Batches: of all nodes with all neighbours they are full-graph training; drawn ones are the same on any number of
//! workers, whatever is kept of fetched rows, and to the bit on any number of threads and after a resumed run.

use laconic_graph::dataset::{Features, Split};
use laconic_train::plan::{Members, Plan};
use laconic_train::record::weights::weights;
use laconic_train::run::Outcome;
use laconic_wire::Kind;

use crate::defects_of_retexo::{accuracy, logits};
use crate::fixture::{FEATURES, config, first_gradient, graph, losses, parts, related, run, try_run, weighted};
use crate::same_bits::{assert_goes_on, assert_same, bits};

const ARCHS: [&[&str]; 10] = [
    &["model.arch=gcn"],
    &["model.arch=gcn", "model.self_loops=false"],
    &["model.arch=sage"],
    &["model.arch=sage", "model.aggregator=max"],
    &["model.arch=gin"],
    &["model.arch=gat"],
    &["model.arch=mlp"],
    &["model.arch=gcn", "model.residual=true"],
    &["model.arch=sage", "model.residual=true"],
    &["model.arch=gcn", "model.activation=prelu"],
];

fn is_mlp(arch: &[&str]) -> bool {
    arch.contains(&"model.arch=mlp")
}

pub fn assert_close(found: &[f64], expected: &[f64], tolerance: f64, what: &dyn std::fmt::Debug) {
    assert_eq!(found.len(), expected.len(), "{what:?}");
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f64::max);
    assert!(worst <= tolerance, "{what:?}: {worst:e}\n{found:?}\n{expected:?}");
}

fn fanouts(arch: &[&str], layers: usize, fanout: i64) -> String {
    if is_mlp(arch) { "batch.fanouts=[]".to_owned() } else { format!("batch.fanouts={:?}", vec![fanout; layers]) }
}

const RELATIONAL: [&[&str]; 2] = [&["model.arch=rgcn"], &["model.arch=rgcn", "model.bases=2"]];

#[test]
fn one_batch_of_all_nodes_with_all_neighbours_has_the_gradient_of_the_whole_graph() {
    let cases = [(graph(150, 4), 2, &ARCHS[..]), (weighted(150, 4), 3, &ARCHS), (related(150, 4), 2, &RELATIONAL)];
    for (dataset, layers, archs) in cases {
        let layers_key = format!("model.layers={layers}");
        for &arch in archs {
            for workers in [1, 3] {
                let apart = ["messages.selection=none", "messages.evaluation=none"];
                let [together, lazy] = ["schedule.kind=synchronous", "schedule.kind=lazy"];
                for schedule in [&[together][..], &[lazy], &[&[together][..], &apart].concat(), &[lazy, apart[0]]] {
                    let keys = [arch, &[layers_key.as_str()], schedule].concat();
                    let all = fanouts(arch, layers, -1);
                    let batch = [&keys[..], &["batch.size=1000", &all]].concat();
                    let whole = first_gradient(&keys, &dataset, workers);
                    assert_close(&first_gradient(&batch, &dataset, workers), &whole, 1e-5, &(workers, &batch));
                }
            }
        }
    }
}

#[test]
fn drawn_batches_are_the_same_on_one_worker_and_on_many() {
    let cases = [(graph(200, 4), 2, &ARCHS[..]), (weighted(200, 4), 3, &ARCHS), (related(200, 4), 3, &RELATIONAL)];
    for (dataset, fanout, archs) in cases {
        for &arch in archs {
            for more in ["schedule.kind=synchronous", "schedule.kind=lazy", "batch.redraw=3"] {
                let drawn = fanouts(arch, 3, fanout);
                let keys = [arch, &["model.layers=3", "batch.size=20", "train.epochs=4", &drawn, more]].concat();
                let one = losses(&keys, &dataset, 1);
                assert!(one.len() >= 10, "{} batches", one.len());
                for workers in [2, 3, 5] {
                    assert_close(&losses(&keys, &dataset, workers), &one, 1e-4, &(workers, &keys));
                }
            }
        }
    }
}

/// Every third feature of a node, and the same stored as a sparse matrix.
fn dense_and_sparse(nodes: usize) -> [laconic_graph::dataset::Dataset; 2] {
    let mut dense = graph(nodes, 4);
    let Features::Dense { columns, values } = &mut dense.features else { unreachable!("generated features are dense") };
    let columns = *columns;
    let (mut offsets, mut indices, mut stored) = (vec![0], Vec::new(), Vec::new());
    for (node, row) in values.chunks_mut(columns).enumerate() {
        for (column, value) in row.iter_mut().enumerate() {
            if (node + column) % 3 == 0 && *value != 0.0 {
                indices.push(column as u32);
                stored.push(*value);
            } else {
                *value = 0.0;
            }
        }
        offsets.push(indices.len() as u64);
    }
    let mut sparse = dense.clone();
    sparse.features = Features::Sparse { columns, offsets, indices, values: stored };
    [dense, sparse]
}

#[test]
fn batches_of_sparse_rows_are_those_of_the_same_rows_in_full() {
    let [dense, sparse] = dense_and_sparse(150);
    for arch in ARCHS {
        for more in [
            &["schedule.kind=synchronous"][..],
            &["schedule.kind=lazy"],
            &["schedule.kind=lazy", "schedule.start=mlp"],
            &["batch.kind=clusters"],
            &["model.layers=1"],
        ] {
            for workers in [1, 3] {
                let keys = [arch, &["batch.size=20", "train.epochs=2", "model.dropout=0.3"], more].concat();
                let expected = losses(&keys, &dense, workers);
                assert_close(&losses(&keys, &sparse, workers), &expected, 1e-5, &(workers, &keys));
            }
        }
    }
}

/// The last layer reads the seeds' rows of every layer, of which the earlier ones have more.
#[test]
fn what_the_last_layer_reads_of_all_layers_is_that_of_the_whole_graph_and_the_same_on_many_workers() {
    let dataset = graph(150, 4);
    for arch in [["model.arch=sage", "model.jumping_knowledge=cat"], ["model.arch=gin", "model.jumping_knowledge=max"]]
    {
        let keys = [&arch[..], &["model.layers=3"]].concat();
        let all = [&keys[..], &["batch.size=1000", "batch.fanouts=[-1, -1, -1]"]].concat();
        let drawn = [&keys[..], &["batch.size=20", "batch.fanouts=[2, 3, 2]", "train.epochs=2"]].concat();
        let one = losses(&drawn, &dataset, 1);
        for workers in [1, 3] {
            let whole = first_gradient(&keys, &dataset, workers);
            assert_close(&first_gradient(&all, &dataset, workers), &whole, 1e-5, &(workers, &all));
            assert_close(&losses(&drawn, &dataset, workers), &one, 1e-4, &(workers, &drawn));
        }
    }
}

/// The control: draws matter, so that agreeing on them is something.
#[test]
fn another_seed_draws_other_batches() {
    let keys = ["batch.size=20", "batch.fanouts=[2, 2]", "train.epochs=1", "model.dropout=0.0"];
    let dataset = graph(200, 4);
    let first = |keys: &[&str]| losses(keys, &dataset, 1)[0];
    let all = ["batch.size=20", "batch.fanouts=[-1, -1]", "train.epochs=1", "model.dropout=0.0"];
    assert!((first(&keys) - first(&all)).abs() > 1e-3);
}

fn sampled(more: &[&'static str]) -> Vec<&'static str> {
    [&["batch.size=20", "batch.fanouts=[2, 3, 2]", "model.layers=3", "train.epochs=4"], more].concat()
}

#[test]
fn what_is_kept_of_fetched_rows_changes_what_crosses_and_no_bit() {
    let dataset = graph(200, 4);
    let of = |cache: &'static str, more: &[&'static str]| {
        run(&config(&[&sampled(more)[..], &["train.epochs=8", cache]].concat()), &dataset, 3)
    };
    for more in [&["model.arch=gcn"][..], &["model.arch=sage"], &["messages.forward=half"]] {
        let (without, with) = (of("batch.cache=0", more), of("batch.cache=\"2 kB\"", more));
        assert_eq!(bits(&without), bits(&with), "{more:?}");
        let bytes = |outcomes: &[Outcome]| {
            let summary = outcomes[0].summary.as_ref().expect("worker 0 sums up");
            summary.bytes.by_kind["features"]
        };
        assert!(bytes(&with) < bytes(&without), "{more:?}: {} and {}", bytes(&with), bytes(&without));
    }
}

/// Nothing comes back from whom rows were fetched, so how it would be coded is all the same.
#[test]
fn a_codec_of_gradients_of_rows_changes_nothing_in_batches() {
    let dataset = graph(200, 4);
    let of = |more: &[&'static str]| run(&config(&sampled(more)), &dataset, 3);
    let plain = of(&[]);
    for codec in ["half", "quantised", "masked"] {
        let key: &'static str = format!("messages.backward={codec}").leak();
        let coded = of(&[key]);
        assert_eq!(bits(&coded), bits(&plain), "{codec}");
        let total = |outcomes: &[Outcome]| outcomes[0].summary.as_ref().map(|summary| summary.bytes.total);
        assert_eq!(total(&coded), total(&plain), "{codec}");
    }
}

/// With a rate near nothing only draws change the loss of a batch of all training nodes.
#[test]
fn neighbours_are_drawn_anew_as_often_as_is_said() {
    let keys = ["batch.size=1000", "batch.fanouts=[2, 2]", "train.epochs=9", "model.dropout=0.0", "train.lr=1e-12"];
    let dataset = graph(200, 4);
    for (workers, redraw, changes) in [(1, 1, 8), (1, 3, 2), (3, 4, 2), (1, 9, 0)] {
        let redraw = format!("batch.redraw={redraw}");
        let losses = losses(&[&keys[..], &[&redraw]].concat(), &dataset, workers);
        let found = losses.windows(2).filter(|pair| (pair[0] - pair[1]).abs() > 1e-6).count();
        assert_eq!((losses.len(), found), (9, changes), "{redraw}: {losses:?}");
    }
}

#[test]
fn what_batches_send_stays_within_what_is_predicted() {
    let dataset = graph(200, 4);
    for more in [&["model.arch=gat"][..], &["model.arch=gcn"], &["messages.forward=half"], &["schedule.kind=lazy"]] {
        for workers in [1, 2, 4] {
            let outcomes = run(&config(&sampled(more)), &dataset, workers);
            for outcome in &outcomes {
                let (sent, predicted) = (outcome.sent.totals_by_kind(), outcome.predicted.totals_by_kind());
                for ((kind, sent), (_, predicted)) in sent.iter().zip(predicted.iter()) {
                    let fits = match kind {
                        Kind::Features | Kind::Draws => sent.framed <= predicted.framed,
                        _ => sent == predicted,
                    };
                    assert!(fits, "{more:?}, {workers} workers, {kind:?}: {sent:?}, predicted {predicted:?}");
                }
            }
        }
    }
}

/// Where there is room for all, rows cross once: each to all others, whatever the number of epochs.
#[test]
fn a_cache_with_room_for_all_rows_bounds_what_crosses_by_the_graph() {
    let dataset = graph(200, 4);
    let features = |more: &[&'static str]| {
        let summary = run(&config(&sampled(more)), &dataset, 4)[0].summary.clone().expect("worker 0 sums up");
        let rounds = u64::from(summary.rounds);
        (rounds, summary.bytes.by_kind["features"], summary.bytes.predicted_by_kind["features"])
    };
    let (rounds, sent, predicted) = features(&["model.arch=sage", "train.epochs=8"]);
    let columns = dataset.features.columns() as u64;
    // Twelve links, with a header and a row's worth of slack a round; evaluations read all neighbours' once more.
    let most = 3 * 200 * 4 * columns + 12 * (rounds + 2) * (24 + 4 * columns);
    assert!(sent <= predicted && predicted <= most, "{sent}, predicted {predicted}, expected {most}");
    let (_, sent, predicted) = features(&["model.arch=sage", "train.epochs=8", "batch.cache=\"2 kB\""]);
    assert!(sent <= predicted && predicted > most, "{sent}, predicted {predicted}");
}

#[test]
fn batches_have_the_same_bits_on_any_number_of_threads_and_after_a_stop_in_mid_epoch() {
    let dataset = graph(200, 4);
    for more in [&["model.arch=gcn"][..], &["model.arch=gat"], &["schedule.kind=lazy", "schedule.start=mlp"]] {
        for workers in [1, 3] {
            assert_same(&dataset, workers, &sampled(more), &[&["train.threads=3", "batch.ahead=1"]]);
        }
        assert_goes_on(&dataset, &sampled(more), &[1, 4, 5]);
    }
}

/// Where features are small, all classes are as likely whatever is drawn, so the gradient of one layer is linear in
/// what the draws add up to.
#[test]
fn gradients_of_drawn_sums_are_right_on_average() {
    for (mut dataset, arch) in [
        (graph(120, 4), &["model.arch=gcn"][..]),
        (weighted(120, 4), &["model.arch=gcn", "model.self_loops=false"]),
        (weighted(120, 4), &["model.arch=sage"]),
    ] {
        let Features::Dense { values, .. } = &mut dataset.features else { unreachable!("features are dense") };
        values.iter_mut().for_each(|value| *value *= 1e-3);
        let of = |seed: usize, more: &[&str]| {
            let seed = format!("train.seed={seed}");
            first_gradient(
                &[arch, &["model.layers=1", "schedule.cache_inputs=false", seed.as_str()], more].concat(),
                &dataset,
                2,
            )
        };
        let along: Vec<f64> = (0..200)
            .map(|seed| {
                let (exact, drawn) = (of(seed, &[]), of(seed, &["batch.size=1000", "batch.fanouts=[2]"]));
                drawn.iter().zip(&exact).map(|(drawn, exact)| (drawn - exact) * exact).sum()
            })
            .collect();
        let count = along.len() as f64;
        let mean = along.iter().sum::<f64>() / count;
        let variance = along.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let z = mean / (variance / count).sqrt();
        assert!(variance > 0.0 && z.abs() < 5.0, "{arch:?}: {z}");
    }
}

/// One batch of all clusters of one worker is the whole graph; of several workers, each one's part of it.
#[test]
fn one_batch_of_all_clusters_has_the_gradient_of_the_graph_without_edges_between_workers() {
    let dataset = weighted(150, 4);
    for arch in ARCHS {
        for workers in [1, 3] {
            let alone = [arch, &["messages.selection=none", "messages.evaluation=none"]].concat();
            let batch = [arch, &["batch.size=1000", "batch.kind=clusters"]].concat();
            let whole = first_gradient(&alone, &dataset, workers);
            assert_close(&first_gradient(&batch, &dataset, workers), &whole, 1e-5, &(workers, &batch));
        }
    }
}

/// What a stage hands on has seen no other worker's rows either.
#[test]
fn batches_of_all_clusters_train_layer_by_layer_on_the_graph_without_edges_between_workers() {
    let dataset = graph(150, 4);
    for arch in ARCHS {
        for workers in [1, 3] {
            let keys = ["schedule.kind=lazy", "messages.selection=none", "train.epochs=3", "model.dropout=0.0"];
            let alone = [&keys[..], arch].concat();
            let batch = [&alone[..], &["batch.size=1000", "batch.kind=clusters"]].concat();
            let whole = losses(&alone, &dataset, workers);
            assert_close(&losses(&batch, &dataset, workers), &whole, 1e-4, &(workers, &batch));
        }
    }
}

#[test]
fn batches_of_clusters_have_the_same_bits_after_a_stop_and_send_what_is_predicted() {
    let dataset = graph(200, 4);
    let keys = ["batch.size=20", "batch.kind=clusters", "train.epochs=3", "model.arch=gcn"];
    // Their ledger is compared with the prediction account by account.
    assert_goes_on(&dataset, &keys, &[1, 4]);
}

#[test]
fn what_batches_cannot_be_combined_with_is_refused_by_name() {
    let dataset = graph(60, 3);
    for (key, word) in [
        ("schedule.kind=pipelined", "late rows"),
        ("messages.selection=boundary_sample", "selection"),
        ("messages.forward={ codec = \"quantised\", bits = \"adaptive\" }", "adaptive"),
        ("messages.forward=masked", "mask"),
        ("messages.forward={ codec = \"quantised\", bits = 4 }", "batch.cache"),
        ("messages.skip={ change = 0.1 }", "messages.skip"),
        ("messages.budget=\"1 GB\"", "messages.budget"),
    ] {
        let options = Default::default();
        let error = try_run(&config(&["batch.size=10", key]), &dataset, 2, options).err().expect(key);
        assert!(error.exit_code() == 2 && error.to_string().contains(word), "{key}: {error}");
        assert!(error.to_string().contains("batch.size = 10"), "{key}: {error}");
    }
}

#[test]
fn predictions_of_a_run_in_batches_have_its_figures() {
    let dataset = graph(100, 3);
    for arch in [&["model.arch=sage"][..], &["model.arch=gat"], &["model.arch=gcn", "schedule.kind=lazy"]] {
        let keys = config(&[arch, &["batch.size=15", "batch.fanouts=[2, 2]", "train.epochs=3"]].concat());
        let outcome = run(&keys, &dataset, 2).swap_remove(0);
        let plan = Plan::for_model(&Members::default(), &keys, [FEATURES, 3]).expect("a plan");
        let weights = weights(&plan.stages, &outcome.trained.chosen);
        let found = accuracy(&dataset, &logits(&keys, parts(&keys, &dataset, 3), &weights), Split::TEST).0;
        assert_eq!(found, outcome.trained.scores.test["accuracy"].expect("a figure"), "{arch:?}");
        let summary = outcome.summary.as_ref().expect("worker 0 sums up");
        assert!(Some(summary.bytes.total) <= summary.bytes.predicted, "{arch:?}");
    }
}

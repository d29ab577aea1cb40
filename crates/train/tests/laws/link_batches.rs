//! Batches of edges: one of all edges is full-graph training; drawn ones are the same on any number of workers, and to
//! the bit on any number of threads and after a resumed run; what they predict passes no messages in them.

use std::collections::BTreeSet;

use laconic_graph::dataset::Dataset;
use laconic_graph::graph::Graph;
use laconic_graph::links::{EdgeSplit, LinkRole, NegativeScope, Negatives};
use laconic_graph::part::{Provenance, open_part, write_parts};
use laconic_graph::sample::{batch_of_edge, batches};
use laconic_train::run::{Data, Options, Outcome, predict, train};

use crate::averaging::{assert_as_predicted, dealt, run_on, simulated};
use crate::batches::assert_close;
use crate::fixture::{PLAIN, config, first_gradient, folder, graph, losses, parts, related, run, try_run, weighted};
use crate::links::{assert_within, keys, unlabelled};
use crate::same_bits::{assert_goes_on, assert_same, bits};

const ARCHS: [&[&str]; 4] =
    [&["model.arch=gcn"], &["model.arch=sage"], &["model.arch=gin"], &["model.arch=gat", "task.decoder=mlp"]];

#[test]
fn one_batch_of_all_edges_with_all_neighbours_has_the_gradient_of_the_whole_graph() {
    for dataset in [graph(150, 4), weighted(150, 4)] {
        for arch in ARCHS {
            let keys = keys(arch);
            let all = ["batch.size=100000", "batch.fanouts=[-1, -1]", "task.exclude_targets=false"];
            for workers in [1, 3] {
                let whole = first_gradient(&keys, &dataset, workers);
                let batch = first_gradient(&[&keys[..], &all].concat(), &dataset, workers);
                assert!(whole.iter().any(|value| value.abs() > 1e-3), "{keys:?}: nothing is learned");
                assert_close(&batch, &whole, 1e-5, &(workers, &keys));
            }
        }
    }
}

#[test]
fn batches_of_edges_are_the_same_on_one_worker_and_on_many() {
    for dataset in [graph(200, 4), weighted(200, 4)] {
        for arch in ARCHS {
            for more in [
                &["batch.fanouts=[2, 3]", "task.negatives_per_edge=2"][..],
                &["batch.fanouts=[3, -1, 2]", "model.layers=3", "task.exclude_targets=false", "batch.cache=\"2 kB\""],
            ] {
                let keys = keys(&[arch, more, &["batch.size=60", "train.epochs=2", "train.eval_every=0"]].concat());
                let one = losses(&keys, &dataset, 1);
                assert!(one.len() >= 10, "{} batches", one.len());
                for workers in [2, 3, 5] {
                    assert_close(&losses(&keys, &dataset, workers), &one, 1e-4, &(workers, &keys));
                }
            }
        }
    }
}

/// Independent trainers learn pairs of own nodes, from what each stage keeps: one batch of all edges is the full local
/// graph, and batches send what was predicted.
#[test]
fn trainers_with_frozen_aggregates_learn_links_in_batches() {
    let dataset = graph(150, 4);
    for arch in ARCHS {
        for halo in [&["schedule.halo=frozen", "schedule.rounds=[3,3]"][..], &["schedule.halo=frozen"]] {
            let steps = ["schedule.interval=1 step", "schedule.limit=3 steps", "train.lr=0.1"];
            let keys =
                [&PLAIN[..], arch, halo, &steps, &["task.kind=link_prediction", "task.negatives=local"]].concat();
            let run = |batches: &[&str]| run_on(&simulated(&[&keys[..], batches].concat()), dealt(&dataset, 3));
            let values = |outcomes: &[Outcome]| -> Vec<f64> {
                outcomes[0].trained.last.iter().map(|value| f64::from(*value)).collect()
            };
            let whole = values(&run(&[]));
            let batch = values(&run(&["batch.size=100000", "batch.fanouts=[-1, -1]"]));
            assert_close(&batch, &whole, 1e-4, &keys);
            let few = run(&["batch.size=30"]);
            assert_as_predicted(&few, &keys);
            let apart = values(&few).iter().zip(&whole).any(|(few, whole)| (few - whole).abs() > 1e-3);
            assert!(apart, "{keys:?}: batches of some edges are as one of all");
        }
    }
}

/// A split that the data give is the same as one that draws the same edges.
#[test]
fn edges_that_the_data_hold_out_are_held_out() {
    for dataset in [unlabelled(), related(180, 4)] {
        let split = EdgeSplit { val: 0.1, test: 0.2, seed: 0 };
        let role = |source: u32, target: usize| match split.role(source.into(), target as u64) {
            LinkRole::Train => 0,
            LinkRole::Val => 1,
            LinkRole::Test => 2,
        };
        let graph = &dataset.graph;
        let into = |target: usize| graph.in_neighbours(target).iter().map(move |&source| role(source, target));
        let held: Vec<u8> = (0..graph.rows()).flat_map(into).collect();
        assert!((1..3).all(|role| held.iter().filter(|&&of| of == role).count() > 40));
        let mut given = dataset.clone();
        given.graph.data.held = Some(held);
        let drawn = keys(&["train.epochs=3", "task.split={ val = 0.1, test = 0.2, seed = 0 }"]);
        let by_data = keys(&["train.epochs=3", "task.split=given"]);
        for workers in [1, 3] {
            let (expected, found) = (run(&config(&drawn), &dataset, workers), run(&config(&by_data), &given, workers));
            assert_eq!(bits(&found), bits(&expected), "{workers} workers");
            assert_eq!(found[0].trained.scores, expected[0].trained.scores);
        }
        // Parts in a folder know what they hold out.
        let (place, parts) = (folder(), parts(&config(&by_data), &given, 2));
        let provenance = Provenance { method: "random".to_owned(), seed: 0 };
        write_parts(&place.path().join("parts"), &parts, &provenance, false).expect("a folder");
        for (index, part) in parts.iter().enumerate() {
            assert!(part.edges.data.held.is_some());
            assert_eq!(open_part(&place.path().join("parts"), index as u32).expect("a part"), *part);
        }
        let error = try_run(&config(&by_data), &dataset, 2, Options::default()).err().expect("nothing is held out");
        assert!(error.to_string().contains("task.split") && error.exit_code() == 2, "{error}");
    }
}

/// Where pairs that are edges are left out, one worker and several leave out the same, and what is left is not among
/// the edges of the graph.
#[test]
fn pairs_that_are_edges_are_left_out_by_all_alike() {
    let dataset = unlabelled();
    let nodes = dataset.graph.rows() as u64;
    let split = EdgeSplit { val: 0.1, test: 0.2, seed: 3 };
    let is_edge =
        |source: u64, target: u64| dataset.graph.in_neighbours(target as usize).binary_search(&(source as u32)).is_ok();
    let many = ["task.negatives_per_edge=20", "task.filter_negatives=true", "model.dropout=0.0", "model.arch=sage"];
    let keys = keys(&[&many[..], &["train.lr=1e-30", "train.weight_decay=0.0", "train.epochs=1"]].concat());
    // The loss of a model that has learned nothing, over training edges and drawn pairs that are no training edges.
    let trains = |source: u64, target: u64| split.role(source, target) == LinkRole::Train;
    let rows = embeddings(&keys, &thinned(&dataset, trains));
    let score = |a: u64, b: u64| -> f64 {
        let pairs = rows[a as usize].iter().zip(&rows[b as usize]);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let draw = Negatives { scope: NegativeScope::Global, number: 20, own: &[], nodes, types: None };
    let (mut are, mut are_not, mut left_out) = (Vec::new(), Vec::new(), 0);
    let (mut reciprocal, mut judged) = (0.0, 0.0);
    for target in 0..nodes {
        for &source in dataset.graph.in_neighbours(target as usize) {
            let source = u64::from(source);
            let learned = |other: u64| is_edge(source, other) && trains(source, other);
            if source != target && trains(source, target) {
                are.push((1.0 + (-score(source, target)).exp()).ln());
                let key = Negatives::of_round(0, 1);
                left_out += draw.targets(key, (source, target)).filter(|&other| learned(other)).count();
                // Those are drawn again.
                let others = draw.standing(key, (source, target), |other| !learned(other));
                are_not.extend(others.into_iter().map(|other| (1.0 + score(source, other).exp()).ln()));
            }
            if split.role(source, target) == LinkRole::Test {
                let others =
                    draw.filled(Negatives::of_evaluation(3), (source, target), |other| !is_edge(source, other));
                let is_above = |other: &&u64| score(source, **other) >= score(source, target);
                let above = others.iter().filter(is_above).count();
                reciprocal += 1.0 / (1 + above) as f64;
                judged += 1.0;
            }
        }
    }
    assert!(left_out > 50, "{left_out} pairs are edges");
    let weight = are_not.len() as f64 / are.len() as f64;
    let sum = weight * are.iter().sum::<f64>() + are_not.iter().sum::<f64>();
    let expected = sum / (are.len() + are_not.len()) as f64;
    for workers in [1, 3] {
        assert_close(&losses(&keys, &dataset, workers), &[expected], 1e-4, &workers);
        let outcomes = run(&config(&keys), &dataset, workers);
        let found = outcomes[0].trained.scores.test["mrr"].expect("a figure");
        assert!((found - reciprocal / judged).abs() < 2e-3, "{found} against {}", reciprocal / judged);
        assert_within(&outcomes, "filtered");
    }
    let batches = [&keys[..], &["batch.size=100", "batch.fanouts=[3, 2]"]].concat();
    let one = losses(&batches, &dataset, 1);
    for workers in [2, 4] {
        assert_close(&losses(&batches, &dataset, workers), &one, 1e-4, &workers);
        assert_within(&run(&config(&batches), &dataset, workers), "filtered batches");
    }
}

/// The edges of a graph that `keep` keeps, with their weights.
fn thinned(dataset: &Dataset, keep: impl Fn(u64, u64) -> bool) -> Dataset {
    let graph = &dataset.graph;
    let (mut edges, mut weights) = (Vec::new(), Vec::new());
    for target in 0..graph.rows() as u32 {
        for at in graph.in_edges(target as usize) {
            if keep(graph.sources[at].into(), target.into()) {
                edges.push((graph.sources[at], target));
                weights.extend(graph.data.weights.as_ref().map(|weights| weights[at]));
            }
        }
    }
    let mut kept = Graph::from_edges(graph.rows(), &edges).expect("sound edges");
    kept.data.weights = graph.data.weights.as_ref().map(|_| weights);
    Dataset { graph: kept, ..dataset.clone() }
}

/// Everybody's embeddings by a model that has learned nothing yet.
pub fn embeddings(keys: &[&str], dataset: &Dataset) -> Vec<Vec<f32>> {
    let config = config(&[keys, &["train.epochs=0", "task.split={ val = 0.0, test = 0.0 }"]].concat());
    let run = train(&config, dataset.clone(), Options::default()).expect("a run");
    let mut rows = vec![Vec::new(); dataset.graph.rows()];
    for part in predict(&run, Data::from(dataset.clone())).expect("embeddings") {
        for (row, &node) in part.nodes.iter().enumerate() {
            rows[node as usize] = part.inferred.logits.row(row).to_vec();
        }
    }
    rows
}

/// Batch by batch on the whole graph without what the batch predicts, in words that share nothing with batches but the
/// keys of what is drawn.
#[test]
fn what_a_batch_predicts_passes_no_messages_in_it() {
    let split = EdgeSplit { val: 0.1, test: 0.2, seed: 3 };
    for dataset in [unlabelled(), weighted(150, 4)] {
        let nodes = dataset.graph.rows() as u64;
        let trains = |source: u64, target: u64| split.role(source, target) == LinkRole::Train;
        let edges: Vec<(u64, u64)> = (0..nodes)
            .flat_map(|target| dataset.graph.in_neighbours(target as usize).iter().map(move |&s| (s.into(), target)))
            .filter(|&(source, target)| source != target && trains(source, target))
            .collect();
        let count = batches((dataset.graph.edges() as f64 * 0.7) as u64, 100);
        assert!(count > 3, "{count} batches");
        for arch in [&["model.arch=gcn"][..], &["model.arch=sage"], &["model.arch=gin"], &["model.arch=gat"]] {
            let keys = keys(&[arch, &["model.dropout=0.0", "train.lr=1e-30", "train.weight_decay=0.0"]].concat());
            let in_batches = ["batch.size=100", "batch.fanouts=[-1, -1]", "train.epochs=1", "train.eval_every=0"];
            let expected: Vec<f64> = (0..count)
                .map(|batch| {
                    let is_in = |edge: (u64, u64)| batch_of_edge(0, 1, edge, count) == batch;
                    let keep = |s: u64, t: u64| trains(s, t) && (s == t || !is_in((s, t)));
                    let rows = embeddings(&keys, &thinned(&dataset, keep));
                    let score = |a: u64, b: u64| -> f64 {
                        let pairs = rows[a as usize].iter().zip(&rows[b as usize]);
                        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
                    };
                    let draw = Negatives { scope: NegativeScope::Global, number: 1, own: &[], nodes, types: None };
                    let key = Negatives::of_round(0, 1 + batch as u32);
                    let (mut are, mut are_not) = (Vec::new(), Vec::new());
                    for &(source, target) in edges.iter().filter(|&&edge| is_in(edge)) {
                        are.push((1.0 + (-score(source, target)).exp()).ln());
                        let others = draw.targets(key, (source, target));
                        are_not.extend(others.map(|other| (1.0 + score(source, other).exp()).ln()));
                    }
                    let weight = are_not.len() as f64 / are.len() as f64;
                    let sum = weight * are.iter().sum::<f64>() + are_not.iter().sum::<f64>();
                    sum / (are.len() + are_not.len()) as f64
                })
                .collect();
            for workers in [1, 3] {
                let found = losses(&[&keys[..], &in_batches].concat(), &dataset, workers);
                assert_close(&found, &expected, 1e-4, &(workers, &keys));
            }
            let with = losses(&[&keys[..], &in_batches, &["task.exclude_targets=false"]].concat(), &dataset, 1);
            let apart = with.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(apart > 1e-3, "{arch:?}: {apart:e}, so leaving edges out is nothing");
        }
    }
}

fn sampled(more: &[&'static str]) -> Vec<&'static str> {
    keys(&[&["batch.size=90", "batch.fanouts=[2, 3]", "train.epochs=2"], more].concat())
}

#[test]
fn batches_of_edges_have_the_same_bits_on_any_number_of_threads_and_after_a_stop_in_mid_epoch() {
    let dataset = graph(200, 4);
    for more in [&["model.arch=gcn"][..], &["model.arch=gat", "task.decoder=mlp"]] {
        let keys = sampled(more);
        assert_same(&dataset, 3, &keys, &[&["train.threads=3", "batch.ahead=1"], &["batch.cache=0"]]);
        assert_goes_on(&dataset, &keys, &[1, 4]);
    }
}

#[test]
fn batches_of_edges_send_no_more_than_predicted_and_one_worker_sends_nothing() {
    let dataset = unlabelled();
    for more in [
        &["model.arch=gcn"][..],
        &["model.arch=sage", "task.negatives=local", "task.negatives_per_edge=3"],
        &["messages.forward=half", "task.exclude_targets=false"],
        &["task.negatives=local", "messages.selection=none"],
        &["train.sync_every=2"],
    ] {
        let keys = sampled(more);
        for workers in [2, 4] {
            assert_within(&run(&config(&keys), &dataset, workers), &format!("{keys:?} on {workers}"));
        }
        assert_eq!(run(&config(&keys), &dataset, 1)[0].sent.total().framed, 0);
    }
}

/// Evaluations go layer by layer and see all edges but those held out, whatever batches see.
#[test]
fn figures_of_a_run_in_batches_are_those_of_a_run_on_all_edges() {
    let dataset = unlabelled();
    let still = ["train.lr=1e-30", "train.weight_decay=0.0", "train.epochs=1", "model.arch=gcn"];
    let whole = run(&config(&keys(&still)), &dataset, 2).swap_remove(0).trained.scores;
    let batches = run(&config(&sampled(&still)), &dataset, 3).swap_remove(0).trained.scores;
    assert!(whole.val["mrr"].is_some_and(|mrr| mrr > 0.0));
    let names: BTreeSet<&String> = whole.test.keys().collect();
    assert_eq!(names, batches.test.keys().collect());
    for (name, expected) in &whole.test {
        let [found, expected] = [batches.test[name], *expected].map(|figure| figure.expect("a figure"));
        assert!((found - expected).abs() < 2e-3, "{name}: {found} against {expected}");
    }
}

#[test]
fn what_batches_of_edges_cannot_be_combined_with_is_refused_by_name() {
    let dataset = graph(180, 4);
    for (more, word) in [
        (&["batch.kind=clusters"][..], "batch.kind"),
        (&["schedule.kind=lazy"], "schedule.kind"),
        (&["schedule.kind=lazy", "model.arch=gat"], "schedule.kind"),
        (&["messages.selection=none"], "task.negatives"),
        (&["messages.selection=boundary_sample"], "selection"),
    ] {
        let keys = keys(&[&["batch.size=50"], more].concat());
        let error = try_run(&config(&keys), &dataset, 2, Options::default()).err().expect(word).to_string();
        assert!(error.contains(word) && error.contains("batch.size = 50"), "{more:?}: {error}");
    }
    let set = ["task.kind=link_prediction", "task.exclude_targets=false"].map(str::to_owned);
    let error = laconic_train::Config::parse("", &set).expect_err("rounds on all edges").to_string();
    assert!(error.contains("task.exclude_targets") && error.contains("batch.size"), "{error}");
}

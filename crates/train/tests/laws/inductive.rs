//! Training that sees training nodes and the edges between them alone is training on a graph that has nothing else;
//! evaluations see the whole graph.

use std::collections::BTreeSet;

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Features, Labels, Split};
use laconic_graph::edges::Edges;
use laconic_graph::part::Part;
use laconic_nn::network::Network;
use laconic_train::plan::{Members, Plan};
use laconic_train::record::weights::weights;
use laconic_train::run::source::Source;
use laconic_train::run::verify::relative_difference;
use laconic_train::run::{Options, Outcome, run_threads};
use laconic_wire::Kind;

use crate::defects_of_retexo::{accuracy, logits};
use crate::fixture::{FEATURES, config, folder, graph, into_folder, parts, run, try_run, weighted};
use crate::ledger_is_prediction::{assert_exact, assert_predicted};
use crate::methods::{self, CODECS, OTHERS, SCHEDULES, go_together};
use crate::one_is_many::compare;
use crate::same_bits::{STATE, assert_resumes, assert_same, bits, straight};

const INDUCTIVE: &str = "data.inductive=true";

const ARCHS: [&[&str]; 6] = [
    &["model.arch=gcn"],
    &["model.arch=sage", "model.layers=3"],
    &["model.arch=sage", "model.aggregator=max"],
    &["model.arch=gin"],
    &["model.arch=gat"],
    &["model.arch=mlp"],
];

/// Two sums of the same numbers in another order; see `one_is_many`.
const TOLERANCE: f64 = 1e-4;

fn trains(dataset: &Dataset, node: usize) -> bool {
    dataset.splits[0].roles[node] & Split::TRAIN != 0
}

/// A part with its other nodes gone, and every edge that ends or starts at one.
fn cut_down(part: Part, dataset: &Dataset) -> Part {
    let kept: Vec<usize> = (0..part.rows()).filter(|&row| trains(dataset, part.nodes[row] as usize)).collect();
    let Features::Dense { columns, values } = &part.features else { panic!("dense features") };
    let Labels::Single { classes, values: labels } = &part.labels else { panic!("classes") };
    let mut down = Part {
        nodes: kept.iter().map(|&row| part.nodes[row]).collect(),
        edges: Edges { offsets: vec![0], sources: Vec::new(), data: part.edges.data.like(0) },
        features: Features::Dense {
            columns: *columns,
            values: kept.iter().flat_map(|&row| values[row * columns..][..*columns].to_vec()).collect(),
        },
        labels: Labels::Single { classes: *classes, values: kept.iter().map(|&row| labels[row]).collect() },
        owners: None,
        roles: kept.iter().map(|&row| part.roles[row]).collect(),
        ..part.clone()
    };
    for &row in &kept {
        let edges = &part.edges;
        for edge in edges.in_edges(row).filter(|&edge| trains(dataset, edges.sources[edge] as usize)) {
            down.edges.sources.push(edges.sources[edge]);
            down.edges.data.extend(&edges.data, edge..edge + 1);
        }
        down.edges.offsets.push(down.edges.sources.len() as u64);
    }
    down
}

fn assert_like(keys: &[&str], networks: &[&Network], found: &Outcome, expected: &Outcome) {
    let each = found.trained.chosen.iter().zip(&expected.trained.chosen);
    for (network, (found, expected)) in networks.iter().zip(each) {
        for ((spec, found), (_, expected)) in network.named(found).zip(network.named(expected)) {
            let difference = relative_difference(found, expected);
            assert!(difference <= TOLERANCE, "{keys:?}: {} {difference:.1e}", spec.name);
        }
    }
}

/// The same nodes by the same ids, dropout and selections included: only the rows of other nodes are missing, which
/// changes the order of some sums.
#[test]
fn inductive_training_is_training_on_parts_without_the_other_nodes() {
    for dataset in [graph(180, 4), weighted(180, 4)] {
        for (s, schedule) in SCHEDULES.into_iter().enumerate() {
            for (a, arch) in ARCHS.into_iter().enumerate() {
                let sample = r#"messages.selection={kind="boundary_sample",rate=0.5}"#;
                let selection = ["messages.selection=all", "messages.selection=none", sample][(s + a) % 3];
                let keys = [schedule, arch, &[selection, "train.epochs=6", "train.eval_every=0"]].concat();
                if !go_together(&keys) {
                    continue;
                }
                let plain = config(&keys);
                let down = parts(&plain, &dataset, 3).into_iter().map(|part| cut_down(part, &dataset)).collect();
                let expected = run_threads(&plain, Source::of(down), Options::default()).expect("a run");
                let found = run(&config(&[&keys[..], &[INDUCTIVE]].concat()), &dataset, 3);
                let plan = Plan::for_model(&Members::default(), &plain, [FEATURES, 4]).expect("a plan");
                let networks: Vec<&Network> = plan.stages.iter().map(|stage| &stage.network).collect();
                assert_like(&keys, &networks, &found[0], &expected[0]);
            }
        }
    }
}

/// The dataset of its training nodes alone, numbered anew.
fn alone(dataset: &Dataset) -> Dataset {
    let kept: Vec<usize> = (0..dataset.graph.nodes()).filter(|&node| trains(dataset, node)).collect();
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for (row, &node) in kept.iter().enumerate() {
        for &source in dataset.graph.in_neighbours(node) {
            if let Ok(source) = kept.binary_search(&(source as usize)) {
                sources.push(source as u32);
                targets.push(row as u32);
            }
        }
    }
    let Features::Dense { columns, values } = &dataset.features else { panic!("dense features") };
    let Labels::Single { classes, values: labels } = &dataset.labels else { panic!("classes") };
    let mut alone = dataset.clone();
    (alone.graph, _) = build_graph(kept.len(), sources, targets, None, BuildOptions::default()).expect("sound edges");
    let rows = kept.iter().flat_map(|&node| values[node * columns..][..*columns].to_vec());
    alone.features = Features::Dense { columns: *columns, values: rows.collect() };
    alone.labels = Labels::Single { classes: *classes, values: kept.iter().map(|&node| labels[node]).collect() };
    alone.splits[0].roles = vec![Split::TRAIN; kept.len()];
    alone
}

#[test]
fn a_model_of_the_training_nodes_own_dataset_is_judged_alike_on_the_whole() {
    let (whole, count) = (graph(180, 4), 4);
    let small = alone(&whole);
    for schedule in SCHEDULES {
        for arch in ARCHS {
            let keys = [schedule, arch, &["model.dropout=0.0", "train.epochs=8", "train.eval_every=0"]].concat();
            if keys.contains(&"schedule.kind=pipelined") {
                continue; // Which rows are late depends on the partition.
            }
            let plain = config(&keys);
            let plan = Plan::for_model(&Members::default(), &plain, [FEATURES, count]).expect("a plan");
            let expected = run(&plain, &small, 2).swap_remove(0);
            let found = run(&config(&[&keys[..], &[INDUCTIVE]].concat()), &whole, 3).swap_remove(0);
            let networks: Vec<&Network> = plan.stages.iter().map(|stage| &stage.network).collect();
            assert_like(&keys, &networks, &found, &expected);
            let of = |outcome: &Outcome| {
                let weights = weights(&plan.stages, &outcome.trained.chosen);
                accuracy(&whole, &logits(&plain, parts(&plain, &whole, 3), &weights), Split::TEST).0
            };
            assert_eq!(
                of(&found),
                found.trained.scores.test["accuracy"].expect("a figure"),
                "{keys:?}: predictions against evaluation"
            );
            // A near-tie may fall the other way.
            assert!(
                (of(&expected) - found.trained.scores.test["accuracy"].expect("a figure")).abs() < 0.02,
                "{keys:?}"
            );
        }
    }
}

#[test]
fn what_training_does_not_see_does_not_change_it() {
    let dataset = graph(180, 4);
    let others = others(&dataset);
    for schedule in SCHEDULES {
        for arch in ARCHS {
            let keys = [schedule, arch, &["train.eval_every=0", INDUCTIVE]].concat();
            let chosen =
                |dataset: &Dataset, keys: &[&str]| run(&config(keys), dataset, 3).swap_remove(0).trained.chosen;
            let found = chosen(&others, &keys);
            assert!(found == chosen(&dataset, &keys), "{keys:?}");
            let transductive = [&keys[..], &["data.inductive=false"]].concat();
            let sees = !arch.contains(&"model.arch=mlp");
            assert_eq!(found != chosen(&others, &transductive), sees, "{keys:?}: the same as training on all edges");
        }
    }
}

/// The dataset with other features of the nodes that training does not see.
fn others(dataset: &Dataset) -> Dataset {
    let mut others = dataset.clone();
    let Features::Dense { columns, values } = &mut others.features else { panic!("dense features") };
    for node in (0..dataset.graph.nodes()).filter(|&node| !trains(dataset, node)) {
        values[node * *columns..][..*columns].iter_mut().for_each(|value| *value = 3.0 - *value);
    }
    others
}

#[test]
fn what_training_does_not_see_does_not_change_its_batches() {
    let dataset = graph(180, 4);
    let others = others(&dataset);
    for schedule in ["schedule.kind=synchronous", "schedule.kind=lazy"] {
        for arch in ARCHS {
            for batches in [&["batch.size=40"][..], &["batch.size=40", "batch.kind=clusters"]] {
                for workers in [1, 3] {
                    let keys = [schedule, "train.epochs=4", "train.eval_every=0", INDUCTIVE];
                    let keys = [&keys[..], arch, batches].concat();
                    let chosen =
                        |dataset: &Dataset| run(&config(&keys), dataset, workers).swap_remove(0).trained.chosen;
                    assert!(chosen(&others) == chosen(&dataset), "{keys:?}, {workers} workers");
                }
            }
        }
    }
}

#[test]
fn inductive_training_on_many_workers_is_that_on_one() {
    let dataset = graph(180, 4);
    for schedule in crate::one_is_many::SCHEDULES {
        for arch in ARCHS {
            compare(&dataset, &[schedule, arch, &[INDUCTIVE]].concat(), &[3, 5]);
        }
    }
}

#[test]
fn inductive_training_sends_what_was_predicted() {
    let dataset = graph(150, 3);
    let mut case = 0;
    for method in [&CODECS[..], &OTHERS].concat() {
        for turn in 0..2 {
            let schedule = SCHEDULES[(case + 3 * turn) % SCHEDULES.len()];
            let keys = [schedule, methods::ARCHS[case % methods::ARCHS.len()], method, &[INDUCTIVE]].concat();
            if go_together(&keys) {
                assert_predicted(&dataset, &keys, 2 + case as u32 % 3);
            }
            case += 1;
        }
    }
}

/// Rows of training nodes cross to the workers of training nodes that they are neighbours of, and no others.
#[test]
fn training_exchanges_the_rows_that_it_needs() {
    let dataset = graph(180, 4);
    for schedule in ["schedule.kind=synchronous", "schedule.kind=lazy"] {
        let config = config(&[schedule, "model.arch=sage", "model.layers=1", "train.epochs=3", INDUCTIVE]);
        let mut owners = vec![0; 180];
        for part in parts(&config, &dataset, 3) {
            part.nodes.iter().for_each(|&node| owners[node as usize] = part.index);
        }
        let count = |sees: &dyn Fn(usize) -> bool| {
            let mut crossing = BTreeSet::new();
            for target in (0..180).filter(|&node| sees(node)) {
                for &source in dataset.graph.in_neighbours(target) {
                    if owners[source as usize] != owners[target] && sees(source as usize) {
                        crossing.insert((source, owners[target]));
                    }
                }
            }
            crossing.len()
        };
        let outcomes = run(&config, &dataset, 3);
        let payload = |kind: Kind| outcomes.iter().map(|o| o.sent.totals_by_kind()[kind].payload).sum::<u64>();
        let needed = count(&|node| trains(&dataset, node));
        assert!(needed > 0 && 3 * needed < count(&|_| true));
        assert_eq!(payload(Kind::Features), (4 * FEATURES * needed) as u64, "{schedule}");
        let in_round_0 = |o: &Outcome| {
            let of = o.sent.iter().filter(|(entry, _)| entry.kind == Kind::Evaluation && entry.round == 0);
            of.map(|(_, count)| count.payload).sum::<u64>()
        };
        let whole: u64 = outcomes.iter().map(in_round_0).sum();
        assert_eq!(whole, (4 * FEATURES * count(&|_| true)) as u64, "{schedule}: inputs of evaluations");
    }
}

#[test]
fn inductive_training_ends_with_the_same_bits_on_any_threads_and_after_a_crash() {
    let dataset = graph(150, 4);
    for schedule in SCHEDULES {
        for arch in [&["model.arch=gcn"][..], &["model.arch=gat"]] {
            let keys = [schedule, arch, &STATE, &[INDUCTIVE, "out.checkpoint_every=1"]].concat();
            assert_same(&dataset, 3, &keys, &[&["train.threads=2"], &["schedule.overlap=false"]]);
            let straight = straight(&dataset, &keys);
            let rounds = straight.bits.rounds;
            for round in [2, rounds / 2 + 1, rounds] {
                let folder = folder();
                let out = folder.path().join("run");
                let fault = format!("transport.fault={{ rank = 1, round = {round}, kind = \"crash\" }}");
                let crashing = config(&[&keys[..], &[fault.as_str()]].concat());
                try_run(&crashing, &dataset, 3, into_folder(&out)).err().expect("a crash");
                assert_resumes(&straight, &dataset, &keys, &out, &format!("crashed in {round}"));
            }
        }
    }
}

/// A graph in which everybody trains is seen whole.
#[test]
fn where_every_node_trains_nothing_changes() {
    let mut dataset = graph(150, 4);
    dataset.splits[0].roles = vec![Split::TRAIN; 150];
    for schedule in SCHEDULES {
        let keys = [schedule, &["model.arch=gcn", "train.eval_every=0"]].concat();
        let found = run(&config(&[&keys[..], &[INDUCTIVE]].concat()), &dataset, 3);
        assert!(bits(&found) == bits(&run(&config(&keys), &dataset, 3)), "{keys:?}");
        assert_exact(&found, &format!("{keys:?}"));
    }
}

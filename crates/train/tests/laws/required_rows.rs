//! Layers output only what somebody reads. The independent check: nodes that count for nothing in the loss. Where they
//! are no training nodes, layers leave them out; where they are training nodes of a class that weighs next to nothing,
//! layers put all out, and the loss and everything learned from it are the same by its definition.

use std::collections::BTreeSet;

use laconic_graph::dataset::{Dataset, Labels, Split};
use laconic_graph::narrow::Steps;
use laconic_graph::order::Order;
use laconic_graph::part::Part;
use laconic_graph::plan::{HaloPlan, Topology, plan_all};
use laconic_train::Plan;
use laconic_train::plan::{Reader, Within};
use laconic_train::run::verify::relative_difference;

use crate::batches::assert_close;
use crate::fixture::{config, few_in_splits, figures, graph, losses, parts, related, run, weighted};
use crate::ledger_is_prediction::assert_predicted;
use crate::same_bits::{assert_goes_on, assert_same};

/// Classes of nodes that are learned from. Others have one more.
const CLASSES: usize = 4;

const WEIGHTS: &str = "train.class_weights=[1, 1.5, 0.5, 1, 1e-30]";

/// Single precision rounds at 6e-8, and six steps multiply that by less than a thousand.
const TOLERANCE: f64 = 1e-4;

/// One node of `every` is learned from; the others, which have a class of their own, test, or train as well where
/// `all_train`.
fn few(mut dataset: Dataset, every: usize, all_train: bool) -> Dataset {
    let Labels::Single { classes, values } = &mut dataset.labels else { panic!("one class a node") };
    *classes = CLASSES + 1;
    let split = &mut dataset.splits[0];
    for (node, (role, label)) in split.roles.iter_mut().zip(values).enumerate() {
        if node % every == 0 {
            *role = Split::TRAIN;
            continue;
        }
        *label = CLASSES as i32;
        *role = if all_train { Split::TRAIN } else { Split::TEST };
    }
    dataset
}

/// Rows that each layer of the last stage outputs for somebody on each of some workers, where those before have the
/// order to themselves.
fn put_out(keys: &[&str], dataset: &Dataset, workers: u32, reader: Reader) -> Vec<Vec<usize>> {
    let config = config(keys);
    let parts = parts(&config, dataset, workers);
    let plan = Plan::of(&config, &parts[0].global).expect("a plan");
    let plans = plan_all(&parts, plan.self_loops).expect("plans");
    let of = |(part, (links, topology)): (&Part, &(HaloPlan, Topology))| {
        let roles = if reader == Reader::Loss { Split::TRAIN } else { Split::TRAIN | Split::VAL | Split::TEST };
        let is_read = |row: usize| part.roles[row] & roles != 0;
        let most = plan.steps_to(reader).expect("layers that may leave out rows");
        let within = Steps::to(is_read, &topology.own, links, most).within();
        plan.rows_put_out(plan.stages.last().expect("a stage"), reader, part.rows(), &within)
    };
    parts.iter().zip(&plans).map(of).collect()
}

fn assert_learns_the_same(dataset: &Dataset, every: usize, keys: &[&str], workers: u32) {
    let keys = [keys, &["train.epochs=6", "train.eval_every=0", WEIGHTS]].concat();
    let [few_train, all_train] = [false, true].map(|all| few(dataset.clone(), every, all));
    let what = (workers, &keys);
    assert_close(&losses(&keys, &few_train, workers), &losses(&keys, &all_train, workers), TOLERANCE, &what);
    let [found, expected] =
        [few_train, all_train].map(|data| run(&config(&keys), &data, workers).swap_remove(0).trained);
    let difference = relative_difference(&found.last, &expected.last);
    assert!(difference <= TOLERANCE, "{what:?}: {difference:.1e}");
}

/// All of these laws would hold of layers that output everything.
#[test]
fn layers_leave_out_what_nobody_reads() {
    let dataset = graph(600, CLASSES);
    let rows =
        |keys: &[&str], every, all, workers| put_out(keys, &few(dataset.clone(), every, all), workers, Reader::Loss);
    let three = ["model.arch=gcn", "model.layers=3"];
    let narrow = rows(&three, 40, false, 1).swap_remove(0);
    assert!(narrow[2] == 15 && narrow[1] < 450 && narrow[1] > 15 && narrow[0] >= narrow[1], "{narrow:?}");
    assert_eq!(rows(&three, 40, true, 1), [[600; 3]]);
    let columns = [&three[..], &["model.norm=batch"]].concat();
    assert_eq!(rows(&columns, 40, false, 1), [[600, 600, 15]]);
    // Two layers whose first folds once: all of it is of some rows.
    let two = rows(&["model.arch=sage", "model.layers=2"], 40, false, 1).swap_remove(0);
    assert!(two[1] == 15 && two[0] < 300, "{two:?}");
    for part in rows(&three, 4, false, 3) {
        assert!(part[2] < part[1] && part[0] == part[1], "{part:?}");
    }
}

#[test]
fn what_is_left_out_changes_nothing_that_is_learned() {
    const SCHEDULES: [&[&str]; 7] = [
        &["schedule.kind=synchronous"],
        &["schedule.cache_inputs=false"],
        &["train.recompute=true"],
        &["schedule.kind=pipelined", "schedule.smooth_gradients=0.5"],
        &["messages.selection={kind=\"boundary_sample\",rate=0.5}", "model.norm=batch"],
        &["schedule.overlap=false", "messages.selection=none"],
        &["train.sync_every=2", "model.residual=true"],
    ];
    const ARCHS: [&[&str]; 6] = [
        &["model.arch=gcn", "model.layers=3"],
        &["model.arch=sage", "model.aggregator=max"],
        &["model.arch=sage", "model.layers=3"],
        &["model.arch=gin"],
        &["model.arch=gat", "model.layers=3"],
        &["model.arch=gcn", "model.layers=3", "model.jumping_knowledge=cat"],
    ];
    let datasets = [graph(300, CLASSES), weighted(300, CLASSES)];
    for (turn, arch) in ARCHS.iter().enumerate() {
        for (every, schedule) in SCHEDULES.iter().enumerate() {
            for workers in [1, 2] {
                assert_learns_the_same(&datasets[turn % 2], 2 + 5 * every, &[*arch, schedule].concat(), workers);
            }
        }
    }
    for workers in [1, 2] {
        let keys = ["model.arch=rgcn", "model.bases=2", "model.layers=3"];
        assert_learns_the_same(&related(300, CLASSES), 20, &keys, workers);
        let keys = ["model.arch=sage", "model.layers=3", "partition.order=locality"];
        assert_learns_the_same(&datasets[0], 20, &keys, workers);
    }
}

/// By sets that grow edge by edge: the first rows have all that is read, and no more than what is read in the end where
/// the order is not shared.
#[test]
fn the_first_rows_have_all_that_is_read_over_so_many_edges() {
    let mut shared = [0; 2];
    for (every, eval_every, workers) in [(3, 1, 1), (7, 1, 2), (7, 50, 1), (40, 1, 1), (40, 50, 1), (40, 50, 2)] {
        let dataset = few_in_splits(graph(800, CLASSES), every);
        let often = format!("train.eval_every={eval_every}");
        let config = config(&["model.arch=gcn", "model.layers=3", "train.epochs=100", &often]);
        let parts = parts(&config, &dataset, workers);
        let plan = Plan::of(&config, &parts[0].global).expect("a plan");
        for (part, graph) in parts.iter().zip(plan_all(&parts, plan.self_loops).expect("plans")) {
            let (steps, within) = Within::of(&plan, part, (&graph.0, &graph.1), (&graph.0, &graph.1));
            let steps = steps.expect("an order");
            let order = Order::by_steps(None, &steps).map_or((0..part.rows() as u32).collect(), |o| o.rows().to_vec());
            let (links, topology) = &graph;
            let (train, all) = (Split::TRAIN, Split::TRAIN | Split::VAL | Split::TEST);
            let mut exact = [true; 2];
            for (reader, (roles, counts)) in [(train, &within.training), (all, &within.evaluation)].iter().enumerate() {
                let is_in = |&row: &u32| part.roles[row as usize] & roles != 0 && part.labels.known(row as usize) > 0;
                let mut read: BTreeSet<u32> = (0..part.rows() as u32).filter(is_in).collect();
                for &count in counts.iter() {
                    let first: BTreeSet<u32> = order[..count].iter().copied().collect();
                    assert!(read.is_subset(&first), "every {every}: {} of {count}", read.len());
                    exact[reader] &= read == first;
                    let sources = read.iter().flat_map(|&row| topology.own.in_neighbours(row as usize));
                    let more: Vec<u32> = sources.chain(links.links.iter().flat_map(|l| &l.send)).copied().collect();
                    read.extend(more);
                }
            }
            assert!(exact.contains(&true), "rounds or evaluations have an order to themselves");
            assert!(!within.training.is_empty() || !within.evaluation.is_empty());
            exact.iter().zip(&mut shared).for_each(|(exact, shared)| *shared += usize::from(!exact));
        }
    }
    assert!(shared.iter().all(|&count| count > 0), "both orders are the better one somewhere: {shared:?}");
}

/// The independent check: the same nodes train and validate, while the others test, so that all rows are read.
#[test]
fn evaluations_leave_out_what_no_figure_reads_and_say_the_same() {
    let whole = graph(300, CLASSES);
    const KEYS: [&[&str]; 9] = [
        &["model.arch=gcn", "model.layers=3"],
        &["model.arch=gat", "train.recompute=true"],
        &["model.arch=sage", "schedule.kind=lazy"],
        &["model.arch=gin", "schedule.kind=lazy", "model.layers=3", "schedule.hand_on=scores"],
        &["model.arch=sage", "model.layers=3", "batch.size=20", "batch.fanouts=[3, 3, 3]"],
        &["model.arch=gat", "batch.size=20", "batch.fanouts=[3, 3]"],
        &["model.arch=gcn", "data.inductive=true"],
        &["model.arch=sage", "schedule.cache_inputs=false", "schedule.kind=pipelined"],
        &["model.arch=gcn", "model.layers=3", "model.jumping_knowledge=max", "model.norm=batch"],
    ];
    for keys in KEYS {
        let keys = [keys, &["train.epochs=4", "train.eval_every=1"]].concat();
        let mut few = few_in_splits(whole.clone(), 15);
        let mut all = few.clone();
        for (few, all) in few.splits[0].roles.iter_mut().zip(&mut all.splits[0].roles) {
            *few &= Split::TRAIN | Split::VAL;
            *all = if *few == 0 { Split::TEST } else { *few };
        }
        let left_out = |dataset: &Dataset| put_out(&keys, dataset, 1, Reader::Figures)[0].iter().min() < Some(&300);
        assert_eq!((left_out(&few), left_out(&all)), (true, false), "{keys:?}");
        for workers in [1, 2] {
            let [found, expected] = [&few, &all].map(|dataset| figures(&keys, dataset, workers));
            assert!(!found.is_empty() && found.len() == expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                let both = [(&found.train, &expected.train), (&found.val, &expected.val)];
                let each = |figure: Option<f64>| figure.expect("a figure");
                let of = |name: &str| both.map(|(found, expected)| [each(found[name]), each(expected[name])]);
                let far = |[found, expected]: [f64; 2]| (found - expected).abs() > TOLERANCE * expected.abs();
                assert!(!of("loss").into_iter().any(far), "{workers} {keys:?}: {:?}", of("loss"));
                // Training sums in another order, which may turn one close call.
                assert!(of("accuracy").iter().all(|[a, b]| (a - b).abs() < 0.1), "{keys:?}: {:?}", of("accuracy"));
            }
        }
    }
}

#[test]
fn rows_that_nobody_reads_change_no_byte_and_go_on_after_a_stop() {
    let dataset = few(graph(240, CLASSES), 12, false);
    for keys in [
        &["model.arch=gcn", "model.layers=3"][..],
        &["model.arch=gat", "schedule.kind=pipelined"],
        &["model.arch=sage", "model.layers=3", "data.inductive=true"],
    ] {
        assert_predicted(&dataset, keys, 3);
        assert_goes_on(&dataset, keys, &[1, 3]);
        assert_same(&dataset, 2, keys, &[&["train.threads=2"], &["train.threads=3"]]);
    }
}

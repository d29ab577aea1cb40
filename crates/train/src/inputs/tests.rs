//! Columns that workers make together, beside a plain program over the whole graph.

mod sums;

use std::collections::BTreeSet;
use std::time::Duration;

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Features, Labels, Split};
use laconic_graph::edges::EdgeData;
use laconic_graph::part::{Part, cut};
use laconic_graph::plan::{HaloPlan, Topology, plan_all};
use laconic_graph::synth::{SbmSpec, sbm};
use laconic_nn::Block;
use laconic_wire::codec::{encode_symbols, words_in_book};
use laconic_wire::transport::threads::threads;

use super::labels::{EPSILON, WEIGHTS};
use super::*;

const CLASSES: usize = 5;

fn graph(seed: u64) -> Dataset {
    graph_of(240, seed)
}

fn graph_of(nodes: usize, seed: u64) -> Dataset {
    let spec = SbmSpec { nodes, classes: CLASSES, mean_degree: 7.0, train: 0.5, seed, ..SbmSpec::default() };
    sbm(&spec).expect("a sound specification")
}

/// The same with every third edge taken away in one direction.
fn directed(seed: u64) -> Dataset {
    let mut dataset = graph(seed);
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for target in 0..dataset.graph.nodes() {
        for &source in dataset.graph.in_neighbours(target) {
            if (source as usize) > target || !(source as usize + target).is_multiple_of(3) {
                sources.push(source);
                targets.push(target as u32);
            }
        }
    }
    let built = build_graph(dataset.graph.nodes(), sources, targets, EdgeData::default(), BuildOptions::default());
    dataset.graph = built.expect("sound edges").0;
    dataset
}

fn classes(dataset: &Dataset) -> Vec<Option<u32>> {
    let Labels::Single { values, .. } = &dataset.labels else { unreachable!("generated graphs have classes") };
    let trains = dataset.splits[0].roles.iter().map(|role| role & Split::TRAIN != 0);
    values.iter().zip(trains).map(|(&class, trains)| u32::try_from(class).ok().filter(|_| trains)).collect()
}

/// What owners know of all nodes, and what they tell of them.
#[derive(Clone)]
struct Known {
    labels: Vec<Option<u32>>,
    answers: Vec<Option<u32>>,
    response: Option<Response>,
}

impl From<&Vec<Option<u32>>> for Known {
    fn from(labels: &Vec<Option<u32>>) -> Known {
        Known { labels: labels.clone(), answers: labels.clone(), response: None }
    }
}

impl Known {
    /// Answers with a secret that is always the same.
    fn answered(labels: &[Option<u32>], epsilon: f64) -> Known {
        let folder = tempfile::tempdir().expect("a folder");
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "5".repeat(64)).expect("a file");
        let response = Response { epsilon, secret };
        let nodes: Vec<u64> = (0..labels.len() as u64).collect();
        let answers = response.answers(&nodes, labels, CLASSES).expect("answers");
        Known { labels: labels.to_vec(), answers, response: Some(response) }
    }
}

fn owner(node: usize, workers: u32) -> u32 {
    node as u32 * 7 / 3 % workers
}

/// The columns of all inputs that are told, node by node, of workers with every `workers`-th node each.
fn told(dataset: &Dataset, known: impl Into<Known>, workers: u32) -> Vec<Vec<Vec<f32>>> {
    let labels = &known.into();
    let assignment: Vec<u32> = (0..dataset.graph.nodes()).map(|node| owner(node, workers)).collect();
    let parts = cut(dataset, Some(0), &assignment, workers).expect("parts");
    let plans = plan_all(&parts, true).expect("plans");
    let ends = threads(workers as usize, Duration::from_secs(20));
    let mut found = vec![vec![Vec::new(); dataset.graph.nodes()]; INPUTS.len()];
    std::thread::scope(|scope| {
        let tell = |((end, part), of)| scope.spawn(move || one(end, part, of, labels));
        let works: Vec<_> = ends.into_iter().zip(&parts).zip(&plans).map(tell).collect();
        for (work, part) in works.into_iter().zip(&parts) {
            for (found, columns) in found.iter_mut().zip(work.join().expect("no panic")) {
                for (row, &node) in part.nodes.iter().enumerate() {
                    found[node as usize] = columns.row(row).to_vec();
                }
            }
        }
    });
    found
}

fn one(end: impl Transport, part: &Part, plan: &(HaloPlan, Topology), labels: &Known) -> Vec<Matrix> {
    let columns = tried(end, part, plan, labels).expect("peers answer");
    columns.into_iter().map(dense).collect()
}

fn dense(rows: Operand) -> Matrix {
    let Operand::Sparse(sparse) = rows else {
        let count = rows.view().rows();
        let values = (0..count).flat_map(|row| rows.dense_row(row).to_vec()).collect();
        return Matrix::from_vec(count, rows.view().columns(), values);
    };
    let mut matrix = Matrix::zeros(sparse.rows(), sparse.columns());
    for row in 0..sparse.rows() {
        for at in sparse.offsets()[row]..sparse.offsets()[row + 1] {
            matrix.row_mut(row)[sparse.indices()[at] as usize] = sparse.values()[at];
        }
    }
    matrix
}

fn tried(
    mut end: impl Transport,
    part: &Part,
    (links, topology): &(HaloPlan, Topology),
    known: &Known,
) -> Result<Vec<Operand>> {
    let block = |sources: usize, edges: &laconic_graph::edges::Edges<u32>| {
        let offsets = edges.offsets.iter().map(|&offset| offset as usize).collect();
        Block::new(sources, offsets, edges.sources.clone(), laconic_nn::EdgeData::default())
    };
    let neighbours =
        Neighbours::of(&block(part.rows(), &topology.own), &block(topology.halo_ids.len(), &topology.halo));
    let own = |of: &[Option<u32>]| part.nodes.iter().map(|&node| of[node as usize]).collect::<Vec<_>>();
    let (labels, answers, response) = (own(&known.labels), own(&known.answers), known.response.as_ref());
    let mut heard = Heard::default();
    let features = operand(part.features.clone(), part.rows(), part.global.columns);
    let tell = |kind: &InputKind| {
        let mut telling = Telling {
            transport: &mut end,
            tag: kind.tag(),
            links,
            neighbours: &neighbours,
            labels: &labels,
            answers: &answers,
            least: 1,
            response,
            features: &features,
            classes: CLASSES,
            sent: Vec::new(),
        };
        (kind.tell)(&mut telling, &mut heard)
    };
    // Sums take edges that lead both ways, and have tests of their own.
    INPUTS.iter().filter(|kind| !kind.tells_sums).map(tell).collect()
}

/// Both inputs of a node by their definition: over sets of neighbours, in double precision, of the whole graph.
fn plain(dataset: &Dataset, labels: &[Option<u32>]) -> [Vec<Vec<f64>>; 2] {
    let nodes = 0..dataset.graph.nodes();
    let near = |node: usize| -> BTreeSet<usize> {
        dataset.graph.in_neighbours(node).iter().map(|&other| other as usize).filter(|&other| other != node).collect()
    };
    let near: Vec<BTreeSet<usize>> = nodes.clone().map(near).collect();
    let weight = |node: usize| f64::from(WEIGHTS[(near[node].len().max(1).ilog2() as usize).min(WEIGHTS.len() - 1)]);
    let shares = |sums: Vec<f64>| -> Vec<f64> {
        let mass = sums.iter().sum::<f64>() + f64::from(EPSILON);
        sums.iter().map(|sum| sum / mass).collect()
    };
    // Classes around a node, as if one of its neighbours had none.
    let around = |node: usize, without: Option<usize>| {
        let mut sums = vec![0.0; CLASSES];
        for &other in near[node].iter().filter(|&&other| Some(other) != without) {
            if let Some(class) = labels[other] {
                sums[class as usize] += weight(other);
            }
        }
        shares(sums)
    };
    let second = |node: usize| {
        let mut sums = vec![0.0; CLASSES];
        for &other in &near[node] {
            let theirs = around(other, Some(node));
            sums.iter_mut().zip(theirs).for_each(|(sum, share)| *sum += weight(other) * share);
        }
        shares(sums)
    };
    let scaled = |shares: Vec<f64>| shares.iter().map(|share| share * (CLASSES as f64).sqrt()).collect();
    [nodes.clone().map(|node| scaled(around(node, None))).collect(), nodes.map(|node| scaled(second(node))).collect()]
}

fn furthest(found: &[Vec<f32>], expected: &[Vec<f64>]) -> f64 {
    let values = found.iter().zip(expected).flat_map(|(found, expected)| found.iter().zip(expected));
    values.map(|(found, expected)| (f64::from(*found) - expected).abs()).fold(0.0, f64::max)
}

#[test]
fn labels_are_the_shares_of_classes_around_a_node_the_same_bits_for_any_number_of_workers() {
    for dataset in [graph(0), graph(1), directed(2), directed(3)] {
        let labels = classes(&dataset);
        let one = told(&dataset, &labels, 1);
        let [expected, _] = plain(&dataset, &labels);
        assert!(furthest(&one[0], &expected) < 1e-5, "{}", furthest(&one[0], &expected));
        for workers in [2, 3, 5] {
            assert_eq!(told(&dataset, &labels, workers)[0], one[0], "{workers} workers");
        }
    }
}

/// The mean of features over the neighbours of each node, so many times over, by its definition.
fn means(dataset: &Dataset, times: usize) -> Vec<Vec<f64>> {
    let columns = dataset.features.columns();
    let rows = dataset.features.stored().chunks_exact(columns);
    let mut found: Vec<Vec<f64>> = rows.map(|row| row.iter().map(|value| f64::from(*value)).collect()).collect();
    for _ in 0..times {
        let mean = |node: usize| {
            let near = dataset.graph.in_neighbours(node).iter().map(|&other| other as usize);
            let near: BTreeSet<usize> = near.filter(|&other| other != node).collect();
            let sum = |column: usize| near.iter().map(|&other| found[other][column]).sum::<f64>();
            (0..columns).map(|column| sum(column) / near.len().max(1) as f64).collect()
        };
        found = (0..dataset.graph.nodes()).map(mean).collect();
    }
    found
}

#[test]
fn propagated_features_are_means_over_neighbours_exact_where_few_values_occur() {
    for mut dataset in [graph(11), directed(12)] {
        let Features::Dense { values, .. } = &mut dataset.features else {
            unreachable!("generated features are dense")
        };
        let coarse: Vec<f32> = values.iter().map(|value| if *value > 1.0 { 1.0 } else { 0.0 }).collect();
        *values = coarse.into();
        let labels = classes(&dataset);
        for (workers, most) in [(1, [1e-6, 1e-6]), (4, [1e-6, 0.05])] {
            let found = told(&dataset, &labels, workers);
            for (times, most) in [1, 2].into_iter().zip(most) {
                let furthest = furthest(&found[2 + times], &means(&dataset, times));
                assert!(furthest <= most, "{times} times, {workers} workers: {furthest}");
            }
        }
    }
}

#[test]
fn codewords_are_those_of_the_whole_graph_on_one_worker_whichever_way_edges_lead() {
    let dataset = directed(5);
    let labels = classes(&dataset);
    let found = furthest(&told(&dataset, &labels, 1)[1], &plain(&dataset, &labels)[1]);
    assert!(found < 1e-5, "{found}");
}

#[test]
fn codewords_lose_what_a_byte_rounds_where_each_row_has_a_word_and_nothing_on_one_worker() {
    for seed in 0..4 {
        // No more nodes a worker than a book always has words for.
        let dataset = graph_of(150, seed);
        let labels = classes(&dataset);
        let [_, expected] = plain(&dataset, &labels);
        let one = furthest(&told(&dataset, &labels, 1)[1], &expected);
        assert!(one < 1e-5, "{one}");
        // A root is off by 1/510, a share by twice that.
        let many = furthest(&told(&dataset, &labels, 3)[1], &expected);
        assert!(many > 0.0 && many < 0.01 * (CLASSES as f64).sqrt(), "{many}");
    }
}

#[test]
fn own_labels_are_those_of_the_graph_without_edges_between_parts() {
    for (dataset, workers) in [(graph(4), 3), (directed(6), 4)] {
        let labels = classes(&dataset);
        let owner = |node: usize| node * 7 / 3 % workers as usize;
        let mut within = directed(6);
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        for target in 0..dataset.graph.nodes() {
            let near = dataset.graph.in_neighbours(target).iter();
            for &source in near.filter(|source| owner(**source as usize) == owner(target)) {
                sources.push(source);
                targets.push(target as u32);
            }
        }
        let built = build_graph(dataset.graph.nodes(), sources, targets, EdgeData::default(), BuildOptions::default());
        within.graph = built.expect("sound edges").0;
        // Weights go by degrees in the whole graph; here they are told apart by shares alone.
        let found = told(&dataset, &labels, workers);
        let inside = plain(&within, &labels);
        for node in 0..labels.len() {
            let has = |values: &[f64]| values.iter().map(|value| *value > 0.0).collect::<Vec<bool>>();
            let of_found: Vec<f64> = found[2][node].iter().map(|value| f64::from(*value)).collect();
            assert_eq!(has(&of_found), has(&inside[0][node]), "node {node}");
        }
        assert_eq!(told(&dataset, &labels, 1)[2], told(&dataset, &labels, 1)[0], "one worker has all edges");
        assert_ne!(found[2], found[0]);
    }
}

#[test]
fn nobodys_own_label_comes_back_to_it_along_edges_of_both_or_one_way() {
    for (dataset, workers) in [(graph(7), 1), (graph(8), 4), (directed(9), 1), (directed(10), 4)] {
        let labels = classes(&dataset);
        let (before, mut seen) = (told(&dataset, &labels, workers), 0);
        for node in (0..labels.len()).filter(|&node| labels[node].is_some()).take(12) {
            let mut others = labels.clone();
            others[node] = labels[node].map(|class| (class + 1) % CLASSES as u32);
            let after = told(&dataset, &others, workers);
            assert_eq!(before[0][node], after[0][node], "labels of node {node}");
            let moved = before[1][node].iter().zip(&after[1][node]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(moved < 1e-5, "codewords of node {node} moved by {moved}");
            seen += usize::from(before[0] != after[0]);
        }
        assert!(seen > 6, "others see it, but of nodes that no edge leaves: {seen} of 12");
    }
}

#[test]
fn columns_of_labels_are_estimates_from_others_answers_beside_own_labels() {
    const WORKERS: u32 = 3;
    for (dataset, epsilon) in [(graph(1), 1.0), (directed(2), 3.0)] {
        let labels = classes(&dataset);
        let known = Known::answered(&labels, epsilon);
        let [kept, other] = known.response.as_ref().expect("a response").odds(CLASSES);
        let near = |node: usize| -> BTreeSet<usize> {
            dataset.graph.in_neighbours(node).iter().map(|&other| other as usize).filter(|&at| at != node).collect()
        };
        let weight = |node: usize| f64::from(WEIGHTS[(near(node).len().max(1).ilog2() as usize).min(5)]);
        let column = |node: usize| -> Vec<f64> {
            let (mut sums, mut all) = (vec![0.0; CLASSES], 0.0);
            for at in near(node).into_iter().filter(|&at| labels[at].is_some()) {
                all += weight(at);
                let is_own = owner(at, WORKERS) == owner(node, WORKERS);
                for (class, sum) in (0..).zip(&mut sums) {
                    *sum += weight(at)
                        * match is_own {
                            true => f64::from(u8::from(labels[at] == Some(class))),
                            false => (f64::from(u8::from(known.answers[at] == Some(class))) - other) / (kept - other),
                        };
                }
            }
            let above: f64 = sums.iter().map(|sum| sum.max(0.0)).sum();
            let scale = if above > 0.0 { all / above } else { 0.0 } / (all + f64::from(EPSILON));
            sums.iter().map(|sum| sum.max(0.0) * scale * (CLASSES as f64).sqrt()).collect()
        };
        let expected: Vec<Vec<f64>> = (0..labels.len()).map(column).collect();
        let found = told(&dataset, known.clone(), WORKERS);
        assert!(furthest(&found[0], &expected) < 1e-5, "{}", furthest(&found[0], &expected));
        // Who is alone has labels as they are.
        assert_eq!(told(&dataset, known, 1), told(&dataset, &labels, 1));
    }
}

#[test]
fn what_a_worker_hears_depends_on_others_answers_alone() {
    const WORKERS: u32 = 3;
    for dataset in [graph(4), directed(5)] {
        let labels = classes(&dataset);
        let known = Known::answered(&labels, 2.0);
        let (before, mut others) = (told(&dataset, known.clone(), WORKERS), known.clone());
        for (node, label) in others.labels.iter_mut().enumerate().filter(|(node, _)| owner(*node, WORKERS) != 0) {
            *label = label.map(|class| (class + node as u32) % CLASSES as u32);
        }
        let after = told(&dataset, others, WORKERS);
        let of_first = |found: &[Vec<Vec<f32>>]| -> Vec<Vec<f32>> {
            let nodes = (0..labels.len()).filter(|&node| owner(node, WORKERS) == 0);
            nodes.flat_map(|node| [found[0][node].clone(), found[1][node].clone()]).collect()
        };
        assert_eq!(of_first(&before), of_first(&after));
        assert_ne!(before, after, "their owners know them");
        // One answer that differs is heard.
        let mut answered = known.clone();
        let node = (0..labels.len()).find(|&node| {
            let hears =
                |&to: &usize| owner(to, WORKERS) == 0 && dataset.graph.in_neighbours(to).contains(&(node as u32));
            owner(node, WORKERS) != 0 && labels[node].is_some() && (0..labels.len()).any(|to| hears(&to))
        });
        let node = node.expect("a node at the boundary");
        answered.answers[node] = answered.answers[node].map(|class| (class + 1) % CLASSES as u32);
        assert_ne!(of_first(&before), of_first(&told(&dataset, answered, WORKERS)));
    }
}

#[test]
fn nobodys_own_label_comes_back_to_it_where_owners_answer_at_random() {
    let dataset = graph(8);
    let known = Known::answered(&classes(&dataset), 1.0);
    let before = told(&dataset, known.clone(), 4);
    for node in (0..known.labels.len()).filter(|&node| known.labels[node].is_some()).take(12) {
        let mut others = known.clone();
        others.labels[node] = known.labels[node].map(|class| (class + 1) % CLASSES as u32);
        others.answers[node] = known.answers[node].map(|class| (class + 2) % CLASSES as u32);
        let after = told(&dataset, others, 4);
        assert_eq!(before[0][node], after[0][node], "labels of node {node}");
        let moved = before[1][node].iter().zip(&after[1][node]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(moved < 1e-4, "codewords of node {node} moved by {moved}");
    }
}

/// What worker 0 says when worker 1 tells these bytes in place of labels, or behind sound labels of codewords.
fn answer_to(labels_of_peer: Option<Vec<u8>>, words_of_peer: &dyn Fn(usize) -> Vec<u8>) -> String {
    let dataset = graph(3);
    let labels = classes(&dataset);
    let assignment: Vec<u32> = (0..dataset.graph.nodes() as u32).map(|node| node % 2).collect();
    let parts = cut(&dataset, Some(0), &assignment, 2).expect("parts");
    let plans = plan_all(&parts, false).expect("plans");
    let rows = plans[0].0.links[1].receive.len();
    let mut ends = threads(2, Duration::from_secs(20)).into_iter();
    let (first, mut second) = (ends.next().expect("an end"), ends.next().expect("an end"));
    std::thread::scope(|scope| {
        let (part, plan) = (&parts[0], &plans[0]);
        let works = scope.spawn(|| tried(first, part, plan, &Known::from(&labels)));
        let sound = encode_symbols(&vec![0; rows], (CLASSES + 1) * WEIGHTS.len());
        let told = [(&INPUTS[0], labels_of_peer.unwrap_or(sound)), (&INPUTS[1], words_of_peer(rows))];
        for (kind, bytes) in told {
            // Worker 0 may have left before it hears the second.
            let tag = kind.tag().expect("it is told");
            let _ = collectives::all_to_all(&mut second, tag, vec![bytes, Vec::new()]);
        }
        drop(second);
        let error = works.join().expect("no panic").expect_err("it is refused");
        assert_eq!(error.exit_code(), 4, "{error}");
        error.to_string()
    })
}

#[test]
fn what_a_peer_tells_that_cannot_be_is_refused_with_its_name() {
    let book = |words: usize, mass: f32, codes: Vec<u8>| {
        let shares = encode_symbols(&[255, 0, 0, 0, 0].repeat(words), 256);
        let len = (shares.len() as u32).to_le_bytes();
        [&mass.to_le_bytes().repeat(words), &len[..], &shares, &codes].concat()
    };
    let nothing = |_: usize| Vec::new();
    let len = |rows: usize| (INPUTS[0].most)(LinkRows { go: rows, come: rows }, Wide { classes: CLASSES, features: 0 });
    let rows = std::cell::Cell::new(0);
    answer_to(None, &|found| {
        rows.set(found);
        Vec::new()
    });
    let rows = rows.get();
    let words = words_in_book(rows, [1, CLASSES + 4], 256);
    assert!(8 < words && words < rows, "{words} words of {rows} rows");
    for (labels, expected) in [
        (vec![0; len(rows) + 1], "expected at most"),
        (vec![0xff; len(rows)], "classes of nodes"),
        (Vec::new(), "classes of nodes"),
    ] {
        let said = answer_to(Some(labels), &nothing);
        assert!(said.contains("rank 1") && said.contains(expected), "{said}");
    }
    for (bytes, expected) in [
        (vec![0; 3], "found less"),
        (vec![0xff; 5 * words], "found less"),
        (book(words, 10.0, encode_symbols(&vec![words as u32; rows], words + 1)), "codewords of the book"),
        (book(words, 10.0, Vec::new()), "codewords of the book"),
        (book(words - 1, 10.0, encode_symbols(&vec![0; rows], words)), "found less"),
        (book(words, 0.0, encode_symbols(&vec![0; rows], words)), "less than nothing"),
        (book(words, f32::NAN, encode_symbols(&vec![0; rows], words)), "less than nothing"),
    ] {
        let said = answer_to(None, &|_| bytes.clone());
        assert!(said.contains("rank 1") && said.contains(expected), "{said}");
    }
}

//! Links of several relations: a pair is scored, drawn and left out with the relation of its edge. Plain oracles that
//! know nothing of the engine but the keys of what is drawn find the same losses and figures.

use std::collections::BTreeSet;

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Labels};
use laconic_graph::edges::{EdgeData, Relations};
use laconic_graph::links::{EdgeSplit, LinkRole, NegativeScope, Negatives, Pair};
use laconic_graph::part::GlobalCounts;
use laconic_graph::sample::{batch_of_edge, batches};
use laconic_key::Key;
use laconic_train::Plan;
use laconic_train::run::Options;
use laconic_train::run::verify::relative_difference;
use laconic_wire::Kind;

use crate::batches::assert_close;
use crate::fixture::{config, first_gradient, losses, parallel, run, try_run};
use crate::link_batches::embeddings;
use crate::links::{assert_within, keys};
use crate::same_bits::{assert_goes_on, assert_same, bits};

const SPLIT: EdgeSplit = EdgeSplit { val: 0.1, test: 0.2, seed: 3 };

const RELATIONS: usize = 3;

/// The width of embeddings.
const HIDDEN: usize = 16;

/// A model whose layers and decoder both read relations, and more.
fn relational<'a>(more: &[&'a str]) -> Vec<&'a str> {
    keys(&[&["model.arch=rgcn", "task.decoder=distmult"], more].concat())
}

/// Parallel edges of three relations, and no labels.
fn dataset(nodes: usize) -> Dataset {
    Dataset { labels: Labels::None, ..parallel(nodes, 4) }
}

/// Every edge with its relation, by target, source and relation.
fn edges(dataset: &Dataset) -> Vec<Pair> {
    let graph = &dataset.graph;
    let into = |target: usize| {
        let edge = move |at| Pair {
            source: u64::from(graph.sources[at]),
            target: target as u64,
            relation: Some(graph.data.relation(at)),
        };
        graph.in_edges(target).map(edge)
    };
    (0..graph.rows()).flat_map(into).collect()
}

fn role(edge: &Pair) -> LinkRole {
    SPLIT.role(edge.source, edge.target)
}

/// Whether an edge is learned from.
fn is_learned(edge: &Pair) -> bool {
    edge.source != edge.target && role(edge) == LinkRole::Train
}

/// The same nodes with these edges alone.
fn with_edges(dataset: &Dataset, kept: &[Pair]) -> Dataset {
    let ends = |end: fn(&Pair) -> u64| kept.iter().map(|edge| end(edge) as u32).collect::<Vec<u32>>();
    let of = kept.iter().filter_map(|edge| edge.relation).collect();
    let relations = Some(Relations { count: RELATIONS, of });
    let data = EdgeData { relations, ..EdgeData::default() };
    let options = BuildOptions { keep_self_loops: true, ..BuildOptions::default() };
    let (graph, _) =
        build_graph(dataset.graph.rows(), ends(|e| e.source), ends(|e| e.target), data, options).expect("sound edges");
    Dataset { graph, ..dataset.clone() }
}

/// DistMult over rows of embeddings and a vector a relation.
struct Scores {
    rows: Vec<Vec<f32>>,
    vectors: Vec<f32>,
}

impl Scores {
    /// By a model that has learned nothing yet, whose layers see these edges.
    fn of(keys: &[&str], dataset: &Dataset, seen: &[Pair]) -> Scores {
        let untrained = run(&config(&[keys, &["train.epochs=0"]].concat()), dataset, 1).swap_remove(0).trained.last;
        let vectors = untrained[untrained.len() - RELATIONS * HIDDEN..].to_vec();
        Scores { rows: embeddings(keys, &with_edges(dataset, seen)), vectors }
    }

    fn of_pair(&self, Pair { source, target, relation }: Pair) -> f64 {
        let vector = &self.vectors[usize::from(relation.expect("a relation")) * HIDDEN..][..HIDDEN];
        let ends = self.rows[source as usize].iter().zip(&self.rows[target as usize]);
        ends.zip(vector).map(|((s, t), r)| f64::from(*s) * f64::from(*t) * f64::from(*r)).sum()
    }
}

fn draw(nodes: u64, number: u32) -> Negatives<'static> {
    Negatives { scope: NegativeScope::Global, number, own: &[], nodes, types: None }
}

/// What stands for no edge in place of each edge.
fn drawn(nodes: u64, number: u32, key: Key, edge: Pair) -> impl Iterator<Item = Pair> {
    let targets: Vec<u64> = draw(nodes, number).targets(key, edge).collect();
    targets.into_iter().map(move |target| Pair { target, ..edge })
}

/// The pairs that training sets an edge against in the first round; those that are edges are drawn again.
fn learned_from(edge: Pair, filters: bool, stands: impl Fn(&Pair) -> bool) -> Vec<Pair> {
    let key = Negatives::of_round(0, 1);
    let targets = match filters {
        true => draw(180, 20).standing(key, edge, |target| stands(&Pair { target, ..edge })),
        false => draw(180, 20).targets(key, edge).collect(),
    };
    targets.into_iter().map(|target| Pair { target, ..edge }).collect()
}

/// Binary cross entropy of edges and pairs that are none, both weighing the same.
fn cross_entropy(are: &[f64], are_not: &[f64]) -> f64 {
    let weight = are_not.len() as f64 / are.len() as f64;
    let of_edges: f64 = are.iter().map(|score| (1.0 + (-score).exp()).ln()).sum();
    let of_others: f64 = are_not.iter().map(|score| (1.0 + score.exp()).ln()).sum();
    (weight * of_edges + of_others) / (are.len() + are_not.len()) as f64
}

#[test]
fn links_of_several_relations_on_many_workers_are_links_on_one() {
    let dataset = dataset(180);
    assert!(edges(&dataset).windows(2).filter(|two| two[0].source == two[1].source).count() > 100);
    for more in [
        &["task.negatives_per_edge=3"][..],
        &["model.bases=2", "task.filter_negatives=true"],
        &["model.arch=gcn"],
        &["schedule.kind=lazy"],
        &["batch.size=90", "batch.fanouts=[2, 3]", "task.filter_negatives=true"],
        &["batch.size=90", "batch.fanouts=[3, -1]", "task.exclude_targets=false"],
    ] {
        let keys = relational(&[more, &["train.epochs=6", "train.eval_every=0"]].concat());
        let one = run(&config(&keys), &dataset, 1).swap_remove(0).trained;
        for workers in [2, 3, 5] {
            for method in ["partition.method=random", "partition.method=multilevel"] {
                let many = run(&config(&[&keys[..], &[method]].concat()), &dataset, workers).swap_remove(0).trained;
                for (found, expected) in many.chosen.iter().zip(&one.chosen) {
                    let difference = relative_difference(found, expected);
                    assert!(difference <= 1e-4, "{keys:?}, {workers} workers: {difference:.1e}");
                }
                for (name, value) in &many.scores.val {
                    let (value, expected) = (value.expect("a figure"), one.scores.val[name].expect("a figure"));
                    assert!((value - expected).abs() <= 2e-3, "{keys:?}: {name} {value} against {expected}");
                }
            }
        }
    }
}

/// Losses and figures over all edges, by triple and filtered by triple, from embeddings and vectors alone.
#[test]
fn losses_and_figures_are_those_of_a_plain_oracle_with_a_vector_a_relation() {
    let dataset = dataset(180);
    let all = edges(&dataset);
    let is_edge: BTreeSet<Pair> = all.iter().copied().collect();
    let seen: Vec<Pair> = all.iter().copied().filter(|edge| role(edge) == LinkRole::Train).collect();
    let still = ["task.negatives_per_edge=20", "train.lr=1e-30", "train.weight_decay=0.0", "train.epochs=1"];
    let figures = ["train.metrics=[\"mrr\", \"hits@10\"]", "model.dropout=0.0"];
    for filters in [false, true] {
        let filter = if filters { "task.filter_negatives=true" } else { "task.filter_negatives=false" };
        let keys = relational(&[&still[..], &figures, &[filter]].concat());
        let scores = Scores::of(&keys, &dataset, &seen);
        let (mut are, mut are_not, mut left_out, mut of_others) = (Vec::new(), Vec::new(), 0, 0);
        for &edge in all.iter().filter(|edge| is_learned(edge)) {
            are.push(scores.of_pair(edge));
            let learned = |other: &Pair| filters && is_edge.contains(other) && is_learned(other);
            left_out += drawn(180, 20, Negatives::of_round(0, 1), edge).filter(learned).count();
            for other in learned_from(edge, filters, |other| !learned(other)) {
                are_not.push(scores.of_pair(other));
                let is_other = |relation| is_edge.contains(&Pair { relation: Some(relation), ..other });
                of_others += usize::from((0..RELATIONS as u16).any(is_other));
            }
        }
        // Pairs that are edges of another relation are none of this one.
        assert!(of_others > 20 && (left_out > 20 || !filters), "{left_out} left out, {of_others} of other relations");
        let expected = cross_entropy(&are, &are_not);
        let (mut reciprocal, mut tests, mut pool) = (0.0, Vec::new(), Vec::new());
        for &edge in all.iter().filter(|edge| edge.source != edge.target && role(edge) == LinkRole::Test) {
            let stands = |target| {
                let other = Pair { target, ..edge };
                other != edge && !(filters && is_edge.contains(&other))
            };
            let others = draw(180, 20).filled(Negatives::of_evaluation(3), edge, stands);
            let others: Vec<f64> = others.into_iter().map(|target| scores.of_pair(Pair { target, ..edge })).collect();
            let score = scores.of_pair(edge);
            reciprocal += 1.0 / (1 + others.iter().filter(|&&other| other >= score).count()) as f64;
            tests.push(score);
            // About as many pairs as validation has.
            let is_pooled = Negatives::is_among(Negatives::of_evaluation(3), edge, 0.5);
            pool.extend(others.first().filter(|_| is_pooled));
        }
        pool.sort_by(|a: &f64, b| b.total_cmp(a));
        let hits = tests.iter().filter(|&&score| score > pool[9]).count() as f64 / tests.len() as f64;
        for workers in [1, 3] {
            assert_close(&losses(&keys, &dataset, workers), &[expected], 1e-4, &(workers, &keys));
            let outcomes = run(&config(&keys), &dataset, workers);
            let found = &outcomes[0].trained.scores.test;
            let mrr = reciprocal / tests.len() as f64;
            let found = |name: &str| found[name].expect("a figure");
            assert!((found("mrr") - mrr).abs() < 2e-3, "{filter}: mrr {} against {mrr}", found("mrr"));
            assert!((found("hits@10") - hits).abs() < 0.011, "{filter}: hits {} against {hits}", found("hits@10"));
            assert_within(&outcomes, filter);
        }
    }
}

/// Batch by batch on the graph without what the batch predicts: all relations and both directions of its pairs.
#[test]
fn what_a_batch_predicts_of_any_relation_passes_no_messages_in_it() {
    let dataset = dataset(150);
    let all = edges(&dataset);
    let count = batches((dataset.graph.edges() as f64 * 0.7) as u64, 150);
    assert!(count > 3, "{count} batches");
    let keys = relational(&["model.dropout=0.0", "train.lr=1e-30", "train.weight_decay=0.0"]);
    let expected: Vec<f64> = (0..count)
        .map(|batch| {
            let is_in = |edge: &Pair| batch_of_edge(0, 1, (edge.source, edge.target), count) == batch;
            let sees = |edge: &&Pair| role(edge) == LinkRole::Train && !(is_learned(edge) && is_in(edge));
            let scores = Scores::of(&keys, &dataset, &all.iter().filter(sees).copied().collect::<Vec<_>>());
            let edges: Vec<Pair> = all.iter().copied().filter(|edge| is_learned(edge) && is_in(edge)).collect();
            let others = edges.iter().flat_map(|&edge| drawn(150, 1, Negatives::of_round(0, 1 + batch as u32), edge));
            let others: Vec<f64> = others.map(|other| scores.of_pair(other)).collect();
            cross_entropy(&edges.iter().map(|&edge| scores.of_pair(edge)).collect::<Vec<_>>(), &others)
        })
        .collect();
    let in_batches = ["batch.size=150", "batch.fanouts=[-1, -1]", "train.epochs=1", "train.eval_every=0"];
    for workers in [1, 3] {
        let found = losses(&[&keys[..], &in_batches].concat(), &dataset, workers);
        assert_close(&found, &expected, 1e-4, &workers);
    }
    let keys = relational(&["model.dropout=0.0"]);
    let whole = first_gradient(&keys, &dataset, 1);
    let one = ["batch.size=100000", "batch.fanouts=[-1, -1]", "task.exclude_targets=false"];
    for workers in [1, 3] {
        let batch = first_gradient(&[&keys[..], &one].concat(), &dataset, workers);
        assert!(batch[batch.len() - RELATIONS * HIDDEN..].iter().all(|value| value.abs() > 0.0), "a vector stays");
        assert_close(&batch, &whole, 1e-5, &workers);
    }
}

#[test]
fn relations_keep_the_bits_and_the_bytes_of_links() {
    let dataset = dataset(180);
    for more in [
        &["task.filter_negatives=true"][..],
        &["task.negatives=local", "messages.forward=half"],
        &["schedule.kind=lazy", "task.negatives_per_edge=2"],
        &["train.sync_every=2", "messages.selection=none"],
        &["batch.size=120", "batch.fanouts=[2, 3]", "task.filter_negatives=true"],
    ] {
        let keys = relational(more);
        for workers in [2, 4] {
            let outcomes = run(&config(&keys), &dataset, workers);
            assert_within(&outcomes, &format!("{keys:?} on {workers}"));
            let parameters = outcomes[0].predicted.totals_by_kind()[Kind::ParameterGradients];
            let sent = outcomes[0].sent.totals_by_kind()[Kind::ParameterGradients];
            assert_eq!(sent, parameters, "{keys:?}: gradients of a vector a relation");
        }
        assert_eq!(run(&config(&keys), &dataset, 1)[0].sent.total().framed, 0);
    }
    let full = relational(&["train.epochs=3"]);
    assert_same(&dataset, 3, &full, &[&["train.threads=3"], &["schedule.overlap=false"]]);
    assert_goes_on(&dataset, &relational(&["train.epochs=2", "batch.size=120", "batch.fanouts=[2, 3]"]), &[1, 4]);
}

/// Who reads no relations learns what it learned without them; and one relation is none.
#[test]
fn decoders_without_relations_and_data_of_one_know_nothing_of_them() {
    let dataset = dataset(180);
    let mut single = dataset.clone();
    if let Some(relations) = &mut single.graph.data.relations {
        *relations = Relations { count: 1, of: vec![0; relations.of.len()] };
    }
    let mut untyped = single.clone();
    untyped.graph.data.relations = None;
    for decoder in ["task.decoder=distmult", "task.decoder=dot"] {
        let keys = keys(&["model.arch=sage", decoder, "task.filter_negatives=true"]);
        let [expected, found] = [&untyped, &single].map(|data| bits(&run(&config(&keys), data, 2)));
        assert_eq!(found, expected, "{decoder}");
        let typed = bits(&run(&config(&keys), &dataset, 2));
        assert_eq!(typed == expected, decoder == "task.decoder=dot", "{decoder}");
    }
}

/// Source, target and relation are one number of 64 bits where pairs that are edges are looked for.
#[test]
fn graphs_of_more_triples_than_a_number_can_tell_apart_are_refused() {
    let counts = |nodes, relations| GlobalCounts {
        dataset: "large".to_owned(),
        nodes,
        edges: 1 << 30,
        columns: 8,
        relations,
        ..GlobalCounts::default()
    };
    let plan = |decoder, counts| {
        let config = config(&["task.kind=link_prediction", "task.filter_negatives=true", decoder]);
        Plan::of(&config, &counts).err().map(|error| error.to_string())
    };
    let (distmult, dot) = ("task.decoder=distmult", "task.decoder=dot");
    assert_eq!(plan(distmult, counts(1 << 24, 1 << 16)), None);
    let error = plan(distmult, counts((1 << 24) + 1, 1 << 16)).expect("2^64 is too little");
    let words = ["task.filter_negatives", "at most 16777216 nodes with 65536 relations", "large has 16777217"];
    assert!(words.iter().all(|word| error.contains(word)), "{error}");
    assert_eq!(plan(dot, counts(1 << 32, 1 << 16)), None);
    let error = plan(dot, counts((1 << 32) + 1, 1 << 16)).expect("2^64 is too little");
    assert!(error.contains("at most 4294967296 nodes, large has 4294967297"), "{error}");
}

#[test]
fn pairs_without_relations_are_refused_where_the_decoder_reads_them() {
    let mut given = dataset(180);
    let held = edges(&given).into_iter().map(|edge| match role(&edge) {
        LinkRole::Train => 0,
        LinkRole::Val => 1,
        LinkRole::Test => 2,
    });
    given.graph.data.held = Some(held.collect());
    let pool = laconic_graph::given::GivenPairs { sources: vec![1, 2], targets: vec![3, 4], ..Default::default() };
    given.negatives = Some([pool.clone(), pool]);
    let by_data = ["task.split=given", "task.eval_negatives=given", "train.epochs=1"];
    let keys = |decoder| [&["task.kind=link_prediction", decoder], &by_data[..]].concat();
    let error = try_run(&config(&keys("task.decoder=distmult")), &given, 2, Options::default()).err();
    let error = error.expect("pairs of a pool have no relation").to_string();
    let words = ["task.eval_negatives", "val_neg_edge_index", "relation", "distmult", "val_neg_targets"];
    assert!(words.iter().all(|word| error.contains(word)), "{error}");
    run(&config(&keys("task.decoder=dot")), &given, 2);
}

//! Link prediction: what is held out, drawn and counted does not depend on who owns what; a plain oracle finds the same
//! figures; no worker sends more than predicted.

use laconic_graph::dataset::{Dataset, Labels};
use laconic_graph::links::{EdgeSplit, LinkRole, NegativeScope, Negatives};
use laconic_train::run::verify::relative_difference;
use laconic_train::run::{Data, Options, Outcome, predict, train};
use laconic_wire::Kind;

use crate::fixture::{config, folder, graph, run, try_run, weighted};
use crate::ledger_is_prediction::with_peer;
use crate::same_bits::bits;

const LINKS: [&str; 3] =
    ["task.kind=link_prediction", "task.split={ val = 0.1, test = 0.2, seed = 3 }", "task.eval_negatives=20"];

const DECODERS: [&[&str]; 3] =
    [&["task.decoder=dot"], &["task.decoder=mlp", "task.decoder_layers=2"], &["task.decoder=distmult"]];

pub fn keys<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&LINKS[..], more].concat()
}

/// A graph whose labels nobody needs.
pub fn unlabelled() -> Dataset {
    Dataset { labels: Labels::None, ..graph(180, 4) }
}

/// With an ε that does not make steps of what rounding leaves of gradients that cancel.
#[test]
fn links_on_many_workers_are_links_on_one() {
    let dataset = graph(180, 4);
    for decoder in DECODERS {
        for more in [
            &["model.arch=gcn"][..],
            &["model.arch=sage", "task.negatives_per_edge=3"],
            &["model.arch=gat", "model.layers=3"],
            &["model.arch=gcn", "schedule.kind=lazy"],
        ] {
            let keys =
                keys(&[decoder, more, &["train.epochs=10", "train.eval_every=0", "train.epsilon=1e-3"]].concat());
            let one = run(&config(&keys), &dataset, 1);
            for workers in [2, 3, 5] {
                for method in ["partition.method=random", "partition.method=multilevel"] {
                    let many = run(&config(&[&keys[..], &[method]].concat()), &dataset, workers);
                    for (found, expected) in many[0].trained.chosen.iter().zip(&one[0].trained.chosen) {
                        let difference = relative_difference(found, expected);
                        assert!(difference <= 1e-4, "{keys:?}, {workers} workers: {difference:.1e}");
                    }
                    let (found, expected) = (&many[0].trained.scores, &one[0].trained.scores);
                    assert!(
                        found.val["loss"].is_some_and(|loss| loss > 0.0) && found.test.contains_key("hits@50"),
                        "{found:?}"
                    );
                    for (name, value) in &found.val {
                        let [value, expected] = [*value, expected.val[name]].map(|figure| figure.expect("a figure"));
                        assert!((value - expected).abs() <= 2e-3, "{keys:?}: {name} {value} against {expected}");
                    }
                }
            }
        }
    }
}

/// The edges of a split, scored one by one from everybody's embeddings.
#[derive(Default)]
pub struct Oracle {
    pub edges: Vec<f64>,
    ranks: Vec<usize>,
    /// The first pair of each edge.
    pairs: Vec<f64>,
    /// Those that Hits@K count against: of the larger split about as many as of the smaller.
    pub pool: Vec<f64>,
}

impl Oracle {
    fn of(dataset: &Dataset, role: LinkRole, score: impl Fn(u64, u64) -> f64) -> Oracle {
        Oracle::ending_at(dataset, role, score, |_| true)
    }

    /// Of the edges alone that end at some of the nodes.
    pub fn ending_at(
        dataset: &Dataset,
        role: LinkRole,
        score: impl Fn(u64, u64) -> f64,
        is_end: impl Fn(u64) -> bool,
    ) -> Oracle {
        let (split, key) = (EdgeSplit { val: 0.1, test: 0.2, seed: 3 }, Negatives::of_evaluation(3));
        let all = Negatives { scope: NegativeScope::Global, number: 20, own: &[], nodes: 180, types: None };
        let (mut oracle, share) = (Oracle::default(), if role == LinkRole::Val { 1.0 } else { 0.5 });
        for target in (0..180u64).filter(|&target| is_end(target)) {
            for &source in dataset.graph.in_neighbours(target as usize) {
                let source = u64::from(source);
                if source == target || split.role(target, source) != role {
                    continue;
                }
                let drawn = all.filled(key, (source, target), |other| other != target);
                let others: Vec<f64> = drawn.into_iter().map(|other| score(source, other)).collect();
                let edge = score(source, target);
                oracle.ranks.push(1 + others.iter().filter(|&&other| other >= edge).count());
                oracle.edges.push(edge);
                oracle.pairs.extend(others.first());
                let is_pooled = Negatives::is_among(key, (source, target), share);
                oracle.pool.extend(others.first().filter(|_| is_pooled));
            }
        }
        oracle.pool.sort_by(|a, b| b.total_cmp(a));
        oracle
    }

    /// Each figure by its definition, and how near it has to come.
    pub fn figures(&self) -> [(&'static str, Option<f64>, f64); 8] {
        let Oracle { edges, ranks, pairs, pool } = self;
        let share = |count: usize| count as f64 / edges.len() as f64;
        // With fewer than K in the pool there is no K-th best.
        let hits = |k: usize| pool.get(k - 1).map(|&best| share(edges.iter().filter(|&&edge| edge > best).count()));
        let above = |edge: &f64| pairs.iter().filter(|other| edge > other).count();
        let area = edges.iter().map(above).sum::<usize>() as f64 / (edges.len() * pairs.len()) as f64;
        let mean = |of: &dyn Fn(usize) -> f64| ranks.iter().map(|&rank| of(rank)).sum::<f64>() / ranks.len() as f64;
        let gain = |k: usize| mean(&|rank| if rank <= k { 2f64.ln() / (1.0 + rank as f64).ln() } else { 0.0 });
        [
            ("mrr", Some(mean(&|rank| 1.0 / rank as f64)), 1e-3),
            ("recall@10", Some(mean(&|rank| f64::from(u8::from(rank <= 10)))), 0.011),
            ("ndcg@10", Some(gain(10)), 2e-3),
            ("ndcg@20", Some(gain(20)), 1e-3),
            ("hits@10", hits(10), 0.011),
            ("hits@100", hits(100), 0.011),
            ("roc_auc", Some(area), 0.02),
            ("roc_auc_exact", Some(area), 1e-4),
        ]
    }
}

/// Edge by edge from everybody's embeddings, in words that share nothing with the engine but the keys of what is drawn.
#[test]
fn figures_are_those_of_a_plain_oracle() {
    let graph = unlabelled();
    let more = [
        "model.arch=sage",
        "train.eval_every=0",
        "partition.parts=3",
        "train.metrics=['mrr', 'hits@10', 'roc_auc', 'roc_auc_exact', 'hits@100', 'recall@10', 'ndcg@10', 'ndcg@20']",
    ];
    let run = train(&config(&keys(&more)), graph.clone(), Options::default()).expect("a run");
    let mut embeddings = vec![Vec::new(); graph.graph.rows()];
    for part in predict(&run, Data::from(graph.clone())).expect("embeddings") {
        for (row, &node) in part.nodes.iter().enumerate() {
            embeddings[node as usize] = part.inferred.logits.row(row).to_vec();
        }
    }
    let score = |a: u64, b: u64| -> f64 {
        let pairs = embeddings[a as usize].iter().zip(&embeddings[b as usize]);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let (scores, notes) = (&run.summary.metrics.scores, &run.summary.notes);
    for (role, name, name_of, found) in
        [(LinkRole::Val, "val", "validation", &scores.val), (LinkRole::Test, "test", "test", &scores.test)]
    {
        let oracle = Oracle::of(&graph, role, score);
        let (edges, pool) = (oracle.edges.len(), oracle.pool.len());
        for (name, expected, near) in oracle.figures() {
            assert_eq!(found[name].is_some(), expected.is_some(), "{role:?} {name} of {pool}");
            let (found, expected) = (found[name].unwrap_or(0.0), expected.unwrap_or(0.0));
            assert!((found - expected).abs() < near, "{role:?} {name}: {found} against {expected}");
        }
        assert_eq!(scores.hits_pool[name], pool as u64);
        let what = "pairs, and 100 are needed";
        let short = format!("hits@100 of {name_of} is not defined: its pool has {pool} {what}");
        assert_eq!(notes.contains(&short), pool < 100, "{notes:?}");
        assert!(edges > 50 && (edges > pool) == (role == LinkRole::Test), "{edges} edges");
    }
}

pub fn assert_within(outcomes: &[Outcome], what: &str) {
    for outcome in outcomes {
        let (sent, predicted) = (outcome.sent.total().framed, outcome.predicted.total().framed);
        assert!(sent <= predicted, "{what}: worker {} sent {sent}, {predicted} predicted", outcome.rank);
        let by_kind = outcome.sent.totals_by_kind();
        for ((kind, sent), (_, most)) in by_kind.iter().zip(outcome.predicted.totals_by_kind().iter()) {
            assert!(sent.framed <= most.framed, "{what}: {kind:?} {} of {}", sent.framed, most.framed);
        }
        for peer in outcomes.iter().filter(|peer| peer.rank != outcome.rank) {
            let (sent, received) = (with_peer(&outcome.sent, peer.rank), with_peer(&peer.received, outcome.rank));
            assert_eq!(sent, received, "{what}: sent by {} against received by {}", outcome.rank, peer.rank);
        }
    }
}

#[test]
fn no_worker_sends_more_than_predicted_and_one_alone_sends_nothing() {
    let dataset = unlabelled();
    for more in [
        &["model.arch=gcn"][..],
        &["task.negatives=local", "task.decoder=mlp"],
        &["schedule.kind=lazy", "messages.forward={ codec = \"quantised\", bits = 8 }", "messages.backward=half"],
        &["train.sync_every=2", "messages.selection=none"],
        &["train.metrics=[\"roc_auc\", \"hits@20\"]", "messages.evaluation=half", "schedule.cache_inputs=false"],
        &["messages.selection={ kind = \"boundary_sample\", rate = 0.5 }"],
        &["train.metrics=[\"roc_auc_exact\", \"ndcg@50\"]", "task.filter_negatives=true"],
    ] {
        let keys = keys(more);
        for workers in [2, 4] {
            let outcomes = run(&config(&keys), &dataset, workers);
            assert_within(&outcomes, &format!("{keys:?} on {workers}"));
            assert!(outcomes[0].summary.as_ref().expect("worker 0 sums up").bytes.is_bound);
            let sent = outcomes[0].sent.totals_by_kind();
            assert!(sent[Kind::Activations].payload > 0 && sent[Kind::ActivationGradients].payload > 0);
        }
        assert_eq!(run(&config(&keys), &dataset, 1)[0].sent.total().framed, 0);
    }
}

#[test]
fn links_have_the_same_bits_on_any_number_of_threads_and_when_they_go_on() {
    let dataset = weighted(180, 4);
    for more in [&["task.decoder=mlp"][..], &["schedule.kind=lazy", "task.negatives=local"]] {
        let keys = keys(&[more, &["train.epochs=4", "out.checkpoint_every=1"]].concat());
        let whole = run(&config(&keys), &dataset, 3);
        let threads = run(&config(&[&keys[..], &["train.threads=3", "schedule.overlap=false"]].concat()), &dataset, 3);
        assert_eq!(bits(&whole), bits(&threads), "{keys:?}");
        let place = folder();
        let out = place.path().join("run");
        let stopped = crate::same_bits::stop_after(2, &out);
        try_run(&config(&keys), &dataset, 3, stopped).expect("it stops");
        let resumed = try_run(&config(&keys), &dataset, 3, crate::same_bits::resume(&out)).expect("it goes on");
        assert_eq!(bits(&whole), bits(&resumed), "{keys:?}");
    }
}

/// Embeddings of neighbours come nearer than those of others: a graph of two halves is learned.
#[test]
fn training_ranks_edges_above_pairs_that_are_none() {
    let dataset = unlabelled();
    let more = ["model.arch=gcn", "train.epochs=60", "train.eval_every=20", "model.dropout=0.0", "model.norm=none"];
    let trained = run(&config(&keys(&more)), &dataset, 3).swap_remove(0).trained;
    let untrained = run(&config(&keys(&[&more[..], &["train.epochs=1", "train.lr=1e-30"]].concat())), &dataset, 3);
    let [after, before] =
        [&trained.scores, &untrained[0].trained.scores].map(|scores| scores.test["loss"].expect("a figure"));
    assert!(after < before - 0.02, "{after} after training, {before} before");
}

#[test]
fn what_links_cannot_be_combined_with_is_refused_by_name() {
    let dataset = graph(180, 4);
    for (more, word) in [
        (&["data.inductive=true"][..], "data.inductive"),
        (&["train.class_weights=balanced"], "class_weights"),
        (&["schedule.kind=pipelined"], "schedule.kind"),
        (&["messages.skip={ change = 0.1 }"], "messages"),
        (&["messages.forward={ codec = \"quantised\", bits = \"adaptive\" }"], "messages"),
        (&["train.metrics=accuracy"], "accuracy"),
    ] {
        let error = try_run(&config(&keys(more)), &dataset, 2, Options::default()).err().expect(word).to_string();
        assert!(error.contains(word) && error.contains("link prediction"), "{more:?}: {error}");
    }
    let refused = |set: &[&str]| {
        let set: Vec<String> = set.iter().map(|key| (*key).to_owned()).collect();
        laconic_train::Config::parse("", &set).err().map(|error| error.to_string()).unwrap_or_default()
    };
    for (set, words) in [
        (&["task.decoder=mlp"][..], "link_prediction"),
        (&["task.kind=link_prediction", "task.decoder_layers=2"], "mlp"),
        (&["task.kind=link_prediction", "task.decoder=cosine"], "distmult"),
        (&["task.kind=link_prediction", "task.split={ val = 0.6, test = 0.4 }"], "less than 1"),
        (&["task.kind=link_prediction", "task.eval_negatives=0"], "100000"),
        (&["task.kind=link_prediction", "task.decoder=mlp", "task.decoder_layers=0"], "dot product"),
        (&["task.kind=links"], "link_prediction"),
    ] {
        assert!(refused(set).contains(words), "{set:?}: {}", refused(set));
    }
    let error =
        try_run(&config(&["train.metrics=mrr"]), &dataset, 1, Options::default()).err().expect("a metric of links");
    assert!(error.to_string().contains("mrr is one of links"), "{error}");
}

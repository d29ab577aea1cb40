//! Held-out edges that are judged against pairs that the data give: a plain oracle with the definitions of the Open
//! Graph Benchmark finds the same figures on any number of workers, and nothing but judging sees the pairs.

use laconic_graph::dataset::Dataset;
use laconic_graph::given::GivenPairs;
use laconic_graph::links::{EdgeSplit, LinkRole};
use laconic_graph::part::{Provenance, open_part, write_parts};
use laconic_train::run::source::Source;
use laconic_train::run::{Data, Options, Outcome, predict, run_threads, train};
use laconic_wire::Kind;

use crate::fixture::{config, draw, folder, graph, parts, run, try_run};
use crate::links::{assert_within, unlabelled};
use crate::same_bits::{bits, resume, stop_after};

const GIVEN: [&str; 3] = ["task.kind=link_prediction", "task.split=given", "task.eval_negatives=given"];

/// Targets of each edge's own.
const EACH: usize = 12;

/// The edges of a split.
fn all_held(dataset: &Dataset, role: u8) -> Vec<(u32, u32)> {
    let graph = &dataset.graph;
    let roles = graph.data.held.as_ref().expect("edges are held out");
    let ends = |target: usize| graph.in_edges(target).map(move |edge| (edge, (graph.sources[edge], target as u32)));
    (0..graph.rows()).flat_map(ends).filter(|(edge, _)| roles[*edge] == role).map(|(_, ends)| ends).collect()
}

/// The same, of testing every other one, in an order that is not the graph's.
fn held(dataset: &Dataset, role: u8) -> Vec<(u32, u32)> {
    let mut edges: Vec<(u32, u32)> = all_held(dataset, role).into_iter().step_by(usize::from(role)).collect();
    edges.reverse();
    edges
}

/// A pool for validation: drawn pairs, some of them twice, some of them held-out edges. Twelve targets of its own for
/// every other edge of testing, the edge's own target among them here and there.
fn given(dataset: &Dataset) -> Dataset {
    let split = EdgeSplit { val: 0.1, test: 0.2, seed: 3 };
    let graph = &dataset.graph;
    let role = |source: u32, target: usize| match split.role(source.into(), target as u64) {
        LinkRole::Train => 0,
        LinkRole::Val => 1,
        LinkRole::Test => 2,
    };
    let into = |target: usize| graph.in_neighbours(target).iter().map(move |&source| role(source, target));
    let mut dataset = dataset.clone();
    dataset.graph.data.held = Some((0..dataset.graph.rows()).flat_map(into).collect());
    let node = |stream: u64, at: usize| draw(stream).with(at as u64).below(180) as u32;
    let pool: Vec<(u32, u32)> = (0..120).map(|at| (node(30, at % 100), node(31, at % 100))).collect();
    let pool: Vec<(u32, u32)> = pool.into_iter().chain(held(&dataset, 1).into_iter().step_by(9)).collect();
    let (sources, targets) = pool.into_iter().unzip();
    let val = GivenPairs { sources, targets, ..GivenPairs::default() };
    let edges = held(&dataset, 2);
    let other = |at: usize| if at % 31 == 5 { edges[at / EACH].1 } else { node(32, at) };
    let others = (0..EACH * edges.len()).map(other).collect();
    let (sources, targets) = edges.iter().copied().unzip();
    dataset.negatives = Some([val, GivenPairs { sources, targets, others, each: EACH, relations: vec![] }]);
    dataset.checked().expect("pairs of nodes")
}

/// The figures of one split: `ogb.linkproppred`'s with the pessimistic of its two ranks, and the area by definition.
fn by_definition(edges: &[f64], pool: &[f64], own: Option<usize>) -> [(&'static str, Option<f64>); 8] {
    let mean = |values: &dyn Fn(usize) -> f64| (0..edges.len()).map(values).sum::<f64>() / edges.len() as f64;
    let against = |at: usize| own.map_or(pool, |each| &pool[at * each..(at + 1) * each]);
    let rank = |at: usize| 1 + against(at).iter().filter(|&&other| other >= edges[at]).count();
    let mut sorted = pool.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let hits = |k: usize| sorted.get(k - 1).map(|&best| mean(&|at| f64::from(u8::from(edges[at] > best))));
    let recall = |k: usize| mean(&|at| f64::from(u8::from(rank(at) <= k)));
    let gain = |k: usize| mean(&|at| if rank(at) <= k { 2f64.ln() / (1.0 + rank(at) as f64).ln() } else { 0.0 });
    let above = |edge: f64, other: f64| if edge > other { 1.0 } else { f64::from(u8::from(edge == other)) / 2.0 };
    let below = |at: usize| pool.iter().map(|&other| above(edges[at], other)).sum::<f64>() / pool.len() as f64;
    let area = mean(&below);
    let cross = |score: f64| (1.0 + score.exp()).ln();
    let loss = edges.iter().map(|&score| cross(-score)).chain(pool.iter().map(|&score| cross(score))).sum::<f64>();
    [
        ("mrr", Some(mean(&|at| 1.0 / rank(at) as f64))),
        ("hits@10", hits(10)),
        ("hits@100", hits(100)),
        ("recall@50", Some(recall(50))),
        ("ndcg@20", Some(gain(20))),
        ("roc_auc", Some(area)),
        ("roc_auc_exact", Some(area)),
        ("loss", Some(loss / (edges.len() + pool.len()) as f64)),
    ]
}

#[test]
fn figures_among_given_pairs_are_those_of_a_plain_oracle_on_any_number_of_workers() {
    let dataset = given(&unlabelled());
    let [val, test] = dataset.negatives.as_ref().expect("pairs");
    for workers in [1, 2, 3, 5] {
        let parts = format!("partition.parts={workers}");
        let metrics =
            "train.metrics=['mrr', 'hits@10', 'roc_auc', 'roc_auc_exact', 'hits@100', 'recall@50', 'ndcg@20']";
        let keys = [&GIVEN[..], &["model.arch=sage", "train.eval_every=0", &parts, metrics]].concat();
        let run = train(&config(&keys), dataset.clone(), Options::default()).expect("a run");
        let mut rows = vec![Vec::new(); dataset.graph.rows()];
        for part in predict(&run, Data::from(dataset.clone())).expect("embeddings") {
            for (row, &node) in part.nodes.iter().enumerate() {
                rows[node as usize] = part.inferred.logits.row(row).to_vec();
            }
        }
        let score = |(a, b): (u32, u32)| -> f64 {
            let pairs = rows[a as usize].iter().zip(&rows[b as usize]);
            pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        let scores = |pairs: &[(u32, u32)]| pairs.iter().map(|&pair| score(pair)).collect::<Vec<f64>>();
        let found = &run.summary.metrics.scores;
        let own: Vec<(u32, u32)> =
            (0..test.len()).flat_map(|at| test.others_of(at).iter().map(move |&o| (test.sources[at], o))).collect();
        let pool: Vec<(u32, u32)> = val.iter().collect();
        let of_val = by_definition(&scores(&held(&dataset, 1)), &scores(&pool), None);
        let of_test = by_definition(&scores(&held(&dataset, 2)), &scores(&own), Some(EACH));
        for (split, found, expected) in [("val", &found.val, of_val), ("test", &found.test, of_test)] {
            for (name, expected) in expected {
                let near = match name {
                    "roc_auc" => 0.02,
                    "loss" => 1e-5,
                    _ => 1e-6,
                };
                assert_eq!(found[name].is_some(), expected.is_some(), "{split} {name}");
                let (found, expected) = (found[name].unwrap_or(0.0), expected.unwrap_or(0.0));
                assert!((found - expected).abs() < near, "{workers} workers, {split} {name}: {found}, not {expected}");
            }
        }
    }
}

/// Of trainers, whose judge has the edges and the pools of all parts: both are of their targets' part. Ranks and hits
/// are among all pairs of a pool, the loss and the area are of the part's own.
#[test]
fn figures_of_parts_among_pools_are_those_of_a_plain_oracle() {
    let mut dataset = given(&unlabelled());
    let pools: [Vec<(u32, u32)>; 2] = [30, 33].map(|stream| {
        let node = |stream: u64, at: u64| draw(stream).with(at).below(180) as u32;
        (0..240).map(|at| (node(stream, at), node(stream + 1, at))).collect()
    });
    dataset.negatives = Some(pools.each_ref().map(|pool| {
        let (sources, targets) = pool.iter().copied().unzip();
        GivenPairs { sources, targets, ..GivenPairs::default() }
    }));
    let alone = ["schedule.kind=averaging", "schedule.interval=2 steps", "schedule.limit=6 steps"];
    let more = ["task.negatives=local", "partition.parts=3", "train.metrics=['mrr', 'hits@10', 'roc_auc_exact']"];
    let run = train(&config(&[&GIVEN[..], &alone, &more].concat()), dataset.clone(), Options::default());
    let run = run.expect("a run");
    let (mut rows, mut owners) = (vec![Vec::new(); 180], vec![0; 180]);
    for (number, part) in predict(&run, Data::from(dataset.clone())).expect("embeddings").iter().enumerate() {
        for (row, &node) in part.nodes.iter().enumerate() {
            rows[node as usize] = part.inferred.logits.row(row).to_vec();
            owners[node as usize] = number;
        }
    }
    let score = |(a, b): (u32, u32)| -> f64 {
        let pairs = rows[a as usize].iter().zip(&rows[b as usize]);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let scores = |pairs: &[(u32, u32)]| pairs.iter().map(|&pair| score(pair)).collect::<Vec<f64>>();
    let found = run.summary.parts.as_ref().expect("told");
    for (split, told) in [&found.val, &found.test].into_iter().enumerate() {
        for part in 0..3 {
            let is_own = |&(_, target): &(u32, u32)| owners[target as usize] == part;
            let own = |pairs: &[(u32, u32)]| pairs.iter().copied().filter(is_own).collect::<Vec<_>>();
            let (edges, pool) = (own(&all_held(&dataset, 1 + split as u8)), own(&pools[split]));
            assert!(edges.len() > 5 && pool.len() > 5 && told.count[part] == edges.len() as u64, "part {part}");
            let edges = scores(&edges);
            let among_all = by_definition(&edges, &scores(&pools[split]), None);
            let among_own = by_definition(&edges, &scores(&pool), None);
            for (name, near, of) in [
                ("mrr", 1e-6, &among_all),
                ("hits@10", 1e-6, &among_all),
                ("roc_auc_exact", 1e-6, &among_own),
                ("loss", 1e-5, &among_own),
            ] {
                let expected = of.iter().find(|(figure, _)| *figure == name).and_then(|(_, figure)| *figure);
                let (found, expected) = (told.figures[name].of[part].expect("told"), expected.expect("a figure"));
                assert!((found - expected).abs() < near, "split {split}, part {part}, {name}: {found}, not {expected}");
            }
        }
    }
}

/// Trainers rank nothing: they learn the same whether the pairs to rank among lie in all parts or inside one.
#[test]
fn trainers_learn_though_no_given_pair_lies_inside_their_part() {
    let dataset = given(&unlabelled());
    let alone = ["schedule.kind=averaging", "schedule.interval=4 steps", "schedule.limit=4 steps"];
    let keys = [&GIVEN[..], &alone, &["task.negatives=local", "partition.parts=3", "train.metrics=['mrr']"]].concat();
    let inside: Vec<u32> = parts(&config(&keys), &dataset, 3)[0].nodes.iter().map(|&node| node as u32).collect();
    let pairs = |step: usize| {
        let targets = (0..80).map(|at| inside[(at * step + 1) % inside.len()]).collect();
        GivenPairs { sources: inside.iter().copied().cycle().take(80).collect(), targets, ..GivenPairs::default() }
    };
    let of_one = Dataset { negatives: Some([pairs(3), pairs(7)]), ..dataset.clone() };
    let run = |dataset: &Dataset| train(&config(&keys), dataset.clone(), Options::default()).expect("a run");
    let (one, all) = (run(&of_one), run(&dataset));
    assert_eq!(one.summary.parameters.digest, all.summary.parameters.digest);
}

fn evaluation(outcome: &Outcome) -> [u64; 2] {
    [&outcome.sent, &outcome.predicted].map(|ledger| ledger.totals_by_kind()[Kind::Evaluation].framed)
}

/// Everybody's scores of the pool travel for ranks, and for nothing else: a frame with two counts and a number for each
/// own pair to every peer, in every evaluation.
#[test]
fn a_pools_scores_cross_where_ranks_are_asked_for_and_are_predicted_to_the_byte() {
    let dataset = given(&unlabelled());
    let [val, test] = dataset.negatives.as_ref().expect("pairs");
    for workers in [2, 3, 5] {
        let with = |metrics: &str| {
            let keys = [&GIVEN[..], &["train.epochs=4", "train.eval_every=2", metrics]].concat();
            (run(&config(&keys), &dataset, workers), parts(&config(&keys), &dataset, workers))
        };
        let ((ranked, cut), (hits, _)) =
            (with("train.metrics=[\"mrr\", \"hits@10\"]"), with("train.metrics=[\"hits@10\"]"));
        assert_within(&ranked, "with ranks");
        assert_within(&hits, "without");
        let mut pairs = [0; 2];
        for ((ranked, hits), part) in ranked.iter().zip(&hits).zip(&cut) {
            let own = part.negatives.as_ref().expect("pairs");
            let bytes = 2 * u64::from(workers - 1) * (24 + 8 + 4 * own[0].len() as u64);
            let more = |at: usize| evaluation(ranked)[at] - evaluation(hits)[at];
            assert_eq!([more(0), more(1)], [bytes; 2], "{workers} workers");
            pairs = [0, 1].map(|split| pairs[split] + own[split].len());
        }
        assert_eq!(pairs, [val.len(), test.len()]);
    }
    let alone = run(&config(&GIVEN), &dataset, 1);
    assert_eq!(alone[0].sent.total().framed, 0);
}

#[test]
fn no_worker_sends_more_than_predicted_and_bits_are_the_same_on_threads_from_a_folder_and_when_a_run_goes_on() {
    let dataset = given(&unlabelled());
    for more in [
        &["model.arch=gcn", "task.decoder=mlp"][..],
        &["schedule.kind=lazy", "task.negatives=local", "task.filter_negatives=true"],
        &["batch.size=60", "batch.fanouts=[3, 2]", "messages.evaluation=half"],
    ] {
        let keys = [&GIVEN[..], more, &["train.epochs=4", "out.checkpoint_every=1"]].concat();
        let whole = run(&config(&keys), &dataset, 3);
        assert_within(&whole, &format!("{keys:?}"));
        let threads = run(&config(&[&keys[..], &["train.threads=3", "schedule.overlap=false"]].concat()), &dataset, 3);
        assert_eq!(bits(&whole), bits(&threads), "{keys:?}");
        let place = folder();
        let out = place.path().join("run");
        try_run(&config(&keys), &dataset, 3, stop_after(2, &out)).expect("it stops");
        let resumed = try_run(&config(&keys), &dataset, 3, resume(&out)).expect("it goes on");
        assert_eq!(bits(&whole), bits(&resumed), "{keys:?}");
        let (cut, dir) = (parts(&config(&keys), &dataset, 3), place.path().join("parts"));
        let provenance = Provenance { method: "random".to_owned(), seed: 0 };
        write_parts(&dir, &cut, &provenance, false).expect("a folder");
        let open = |index: u32| open_part(&dir, index).expect("a part");
        let opened = run_threads(&config(&keys), Source::of((0..3).map(open).collect()), Options::default());
        assert_eq!(bits(&whole), bits(&opened.expect("a run")), "{keys:?}");
    }
}

/// Classes of nodes, and links that are split and judged otherwise, have the same bits as on data without the pairs.
#[test]
fn given_pairs_are_no_edges() {
    let with = given(&graph(180, 4));
    let without = Dataset { negatives: None, ..with.clone() };
    let drawn = ["task.kind=link_prediction", "task.split={ val = 0.1, test = 0.2 }"];
    let number = [GIVEN[0], GIVEN[1], "task.eval_negatives=5"];
    for keys in [&["model.arch=gcn"][..], &["schedule.kind=lazy"], &["data.inductive=true"], &drawn, &number] {
        let config = config(keys);
        for workers in [1, 3] {
            assert_eq!(bits(&run(&config, &with, workers)), bits(&run(&config, &without, workers)), "{keys:?}");
        }
    }
    let digests = [&with, &without].map(laconic_graph::digest::digest);
    assert_ne!(digests[0], digests[1]);
    let of_parts = [&with, &without].map(|dataset| parts(&config(&[]), dataset, 2)[1].digest());
    assert_ne!(of_parts[0], of_parts[1]);
}

#[test]
fn what_given_pairs_need_is_said_by_name() {
    let dataset = given(&unlabelled());
    let refused = |keys: &[&str], dataset: &Dataset| {
        let error = try_run(&config(keys), dataset, 2, Options::default()).err().expect("a refusal");
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    let drawn = [GIVEN[0], GIVEN[2]].map(str::to_owned);
    let error = laconic_train::Config::parse("", &drawn).expect_err("a drawn split").to_string();
    assert!(error.contains("task.eval_negatives = \"given\"") && error.contains("task.split = \"given\""), "{error}");
    let mut half = dataset.clone();
    half.negatives = half.negatives.map(|[val, _]| [val, GivenPairs::default()]);
    for (data, words) in [
        (Dataset { negatives: None, ..dataset.clone() }, "val_neg_edge_index or val_neg_targets"),
        (half, "test_neg_edge_index or test_neg_targets"),
    ] {
        let error = refused(&GIVEN, &data);
        assert!(error.contains(words) && error.contains(&data.name) && error.contains("eval_negatives"), "{error}");
    }
    for value in ["\"all\"", "-1", "2.5", "0"] {
        let set = [GIVEN[0].to_owned(), format!("task.eval_negatives={value}")];
        let error = laconic_train::Config::parse("", &set).expect_err(value).to_string();
        assert!(error.contains("task.eval_negatives") && !error.contains("untagged"), "{error}");
    }
}

//! Means that all workers evaluate together (`schedule.evaluator = "workers"`), each for its own nodes, with an
//! aggregator that holds no part: the same models and the same figures as of an aggregator that holds the whole graph.

use laconic_graph::dataset::{Dataset, Split};
use laconic_graph::edges::Edges;
use laconic_graph::graph::Graph;
use laconic_graph::part::{Part, Provenance, write_parts};
use laconic_train::TrainError;
use laconic_train::config::Config;
use laconic_train::fit::observe::RoundReport;
use laconic_train::plan::Members;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, Outcome, run_threads, run_worker};
use laconic_train::worker::evaluate::Scores;
use laconic_wire::{Count, Kind, Ledger, threads};

use crate::averaging::{CODED, KINDS, assert_as_predicted, dataset, dealt, last, run, simulated, trainers};
use crate::fixture::{folder, graph, into_folder};
use crate::same_bits::{bits, log};

const WORKERS: &str = "schedule.evaluator=workers";

/// A run on these parts, and its means as they were written down.
fn means(config: &Config, parts: Vec<Part>) -> (Vec<Outcome>, Vec<RoundReport>) {
    let out = folder();
    let options = Options { keep_accounts: true, ..into_folder(out.path()) };
    let text = || config.to_toml().unwrap_or_default();
    let outcomes = run_threads(config, Source::of(parts), options);
    (outcomes.unwrap_or_else(|error| panic!("{error}\n{}", text())), log(out.path()))
}

/// How far two evaluations are apart; they measure the same.
fn apart(left: &Scores, right: &Scores) -> f64 {
    let mut most = 0.0f64;
    for (left, right) in left.splits().into_iter().zip(right.splits()) {
        assert_eq!(left.keys().collect::<Vec<_>>(), right.keys().collect::<Vec<_>>());
        for (left, right) in left.values().zip(right.values()) {
            assert_eq!(left.is_some(), right.is_some());
            most = most.max((left.unwrap_or(0.0) - right.unwrap_or(0.0)).abs());
        }
    }
    most
}

/// Those that have no corrections on the whole graph, which only an aggregator that holds it can make.
fn kinds() -> impl Iterator<Item = Vec<&'static str>> {
    let all = KINDS.iter().chain(CODED).map(|keys| keys.to_vec());
    let few = [
        vec!["schedule.kind=psgd_pa", "train.metrics=[\"micro_f1\", \"macro_f1\"]"],
        vec![BINARY],
        vec!["train.eval_every=2", "train.part_figures=false"],
    ];
    all.filter(|keys| !keys.contains(&"schedule.kind=llcg")).chain(few)
}

/// Figures of areas, which are those of two classes.
const BINARY: &str = "train.metrics=[\"roc_auc\", \"roc_auc_exact\"]";

fn data(keys: &[&str]) -> Dataset {
    if keys.contains(&BINARY) { graph(150, 2) } else { dataset(keys) }
}

#[test]
fn workers_evaluate_every_mean_as_one_machine_does_that_holds_the_whole_graph() {
    for keys in kinds() {
        let dataset = data(&keys);
        let (whole, expected) = means(&simulated(&keys), dealt(&dataset, 3));
        let keys = [&keys[..], &[WORKERS]].concat();
        let (together, found) = means(&simulated(&keys), dealt(&dataset, 3));
        assert_eq!(last(&together), last(&whole), "{keys:?}");
        assert_eq!(found.len(), expected.len(), "{keys:?}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!((found.round, found.loss.to_bits()), (expected.round, expected.loss.to_bits()), "{keys:?}");
            assert_eq!(found.scores.is_some(), expected.scores.is_some(), "{keys:?}: mean {}", found.round);
            if let (Some(found), Some(expected)) = (&found.scores, &expected.scores) {
                let apart = apart(found, expected);
                assert!(apart < 2e-6, "{keys:?}: {apart}: {found:?} {expected:?}");
            }
        }
        // Whose nodes, or edges, were judged stays as well.
        let judged = |of: &[Outcome]| {
            let parts = of[0].summary.as_ref().and_then(|summary| summary.parts.as_ref());
            parts.map(|parts| [parts.val.count.clone(), parts.test.count.clone()])
        };
        assert_eq!(judged(&together), judged(&whole), "{keys:?}");
    }
}

#[test]
fn a_simulated_run_is_the_run_on_threads_where_workers_evaluate() {
    for keys in kinds() {
        for edges in ["schedule.evaluate=halo", "schedule.evaluate=local"] {
            let keys = [&keys[..], &[WORKERS, edges]].concat();
            let dataset = data(&keys);
            let [played, really] = [simulated(&keys), trainers(&keys)].map(|config| run(&config, &dataset, 3));
            assert_eq!(bits(&played), bits(&really), "{keys:?}");
            for (played, really) in played.iter().zip(&really) {
                let of = |ledger: &Ledger| ledger.iter().collect::<Vec<_>>();
                assert_eq!(of(&played.sent), of(&really.sent), "{keys:?}: rank {}", played.rank);
                assert_eq!(of(&played.received), of(&really.received), "{keys:?}: rank {}", played.rank);
            }
        }
    }
}

#[test]
fn what_evaluations_send_is_what_was_predicted_account_by_account() {
    for keys in kinds() {
        for edges in ["schedule.evaluate=halo", "schedule.evaluate=local"] {
            let keys = [&keys[..], &[WORKERS, edges]].concat();
            let outcomes = run(&simulated(&keys), &data(&keys), 3);
            let links = keys.iter().any(|key| key.contains("link_prediction"));
            if links {
                // Which foreign nodes pairs have is not known before.
                for outcome in &outcomes {
                    let [sent, most] = [&outcome.sent, &outcome.predicted].map(Ledger::totals_by_kind);
                    for ((kind, sent), (_, most)) in sent.iter().zip(most.iter()) {
                        assert!(sent.framed <= most.framed, "{keys:?}: {kind:?}: {sent:?} above {most:?}");
                    }
                }
                continue;
            }
            assert_as_predicted(&outcomes, &keys);
            let summary = outcomes[0].summary.as_ref().unwrap();
            assert_eq!(summary.bytes.received, summary.bytes.total, "{keys:?}");
            let evaluation: u64 = outcomes.iter().map(|of| of.sent.totals_by_kind()[Kind::Evaluation].payload).sum();
            assert!(evaluation > 0, "{keys:?}: an evaluation costs something");
        }
    }
}

#[test]
fn codecs_of_training_change_neither_what_evaluations_send_nor_what_they_find() {
    let run = |more: &[&str]| {
        let keys = [more, &[WORKERS]].concat();
        let (outcomes, means) = means(&simulated(&keys), dealt(&dataset(&keys), 3));
        assert_as_predicted(&outcomes, &keys);
        let sent = outcomes.iter().map(|of| of.sent.totals_by_kind()[Kind::Evaluation]).collect::<Vec<_>>();
        (sent, means.into_iter().map(|mean| mean.scores).collect::<Vec<_>>())
    };
    let coded = "messages.evaluation={ codec = \"quantised\", bits = 8 }";
    let [exact, rounded] = [run(&[]), run(&[coded])];
    for forward in [
        "messages.forward={ codec = \"quantised\", bits = 2 }",
        "messages.forward={ codec = \"masked\", ratio = 4, reveal = true }",
        "messages.layers.0.forward=half",
        "messages.skip={ change = 0.1, staleness = 3 }",
    ] {
        assert_eq!(run(&[forward]), exact, "{forward}");
        assert_eq!(run(&[forward, coded]), rounded, "{forward}");
    }
    // Nor does what training sees of the graph: evaluations see all of it.
    assert_eq!(run(&["data.inductive=true"]).0, exact.0);
    // Worker 0 sends models besides.
    let rows = |sent: &[Count]| sent[1..].iter().map(|count| count.payload).sum::<u64>();
    let alone = run(&["messages.evaluation=none"]).0;
    assert!(rows(&alone) < rows(&rounded.0) && rows(&rounded.0) < rows(&exact.0), "{alone:?} {rounded:?} {exact:?}");
}

/// The same over any transport: the aggregator, which holds no part, and each trainer in a process of its own, as far
/// as they can tell.
fn spread(config: &Config, parts: &[Part]) -> Vec<laconic_train::error::Result<Outcome>> {
    std::thread::scope(|scope| {
        let one = |end| {
            let options = Options { keep_accounts: true, ..Options::default() };
            scope.spawn(move || run_worker(config, Box::new(end), Source::of(parts.to_vec()), options))
        };
        let all: Vec<_> = threads(parts.len() + 1, config.deadline()).into_iter().map(one).collect();
        all.into_iter().map(|process| process.join().expect("no process panics")).collect()
    })
}

#[test]
fn over_any_transport_each_process_holds_its_own_part_and_the_run_is_the_same() {
    for keys in kinds() {
        for edges in ["schedule.evaluate=halo", "schedule.evaluate=local"] {
            let keys = [&keys[..], &[WORKERS, edges]].concat();
            let (config, dataset) = (trainers(&keys), data(&keys));
            let here = run(&config, &dataset, 3);
            let apart: Vec<Outcome> = spread(&config, &dealt(&dataset, 3))
                .into_iter()
                .map(|outcome| outcome.unwrap_or_else(|error| panic!("{keys:?}: {error}")))
                .collect();
            assert_eq!(bits(&apart[..1]), bits(&here), "{keys:?}");
            let links = keys.iter().any(|key| key.contains("link_prediction"));
            let summary = apart[0].summary.as_ref().unwrap();
            assert_eq!(summary.bytes.received, summary.bytes.total, "{keys:?}");
            let sent: u64 = apart.iter().map(|of| of.sent.total().framed).sum();
            assert_eq!(summary.bytes.total, sent, "{keys:?}: the aggregator knows what all have sent");
            if !links {
                assert_eq!(Some(summary.bytes.total), summary.bytes.predicted, "{keys:?}");
                for outcome in &apart {
                    let differences = outcome.predicted.difference(&outcome.sent);
                    let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
                    assert!(differences.is_empty(), "{keys:?}: rank {}: {differences:?}", outcome.rank);
                }
            }
        }
    }
}

#[test]
fn class_counts_cross_as_such_as_predicted_and_a_policy_keeps_them_back() {
    let (dataset, balanced) = (graph(150, 3), "train.class_weights=balanced");
    let (config, parts) = (trainers(&[WORKERS, balanced]), dealt(&dataset, 3));
    let apart: Vec<Outcome> = spread(&config, &parts).into_iter().map(|outcome| outcome.expect("a run")).collect();
    assert_eq!(bits(&apart[..1]), bits(&run(&config, &dataset, 3)));
    for outcome in &apart {
        assert!(outcome.predicted.difference(&outcome.sent).is_empty(), "rank {}", outcome.rank);
    }
    for outcome in spread(&trainers(&[WORKERS, balanced, "policy.deny=[\"class_counts\"]"]), &parts) {
        let error = outcome.err().expect("refused");
        assert_eq!(error.exit_code(), 7, "{error}");
        assert!(error.to_string().contains("class counts"), "{error}");
    }
}

#[test]
fn each_process_needs_no_file_but_its_own_part_and_the_aggregator_none() {
    let (all, dataset) = (folder(), graph(150, 3));
    let parts = dealt(&dataset, 3);
    let provenance = Provenance { method: "given".to_owned(), seed: 0 };
    write_parts(all.path(), &parts, &provenance, true).expect("a folder of parts");
    // What each process has of it.
    let own: Vec<_> = (0..4u32).map(|_| folder()).collect();
    for (rank, own) in own.iter().enumerate() {
        for entry in std::fs::read_dir(all.path()).expect("the folder").map(|entry| entry.expect("an entry")) {
            let name = entry.file_name().into_string().expect("a name");
            let is_its_own = rank.checked_sub(1).is_some_and(|part| name == format!("part-{part}"));
            let into = own.path().join(&name);
            if name == "meta.json" {
                std::fs::copy(entry.path(), into).expect("a copy");
            } else if is_its_own {
                std::fs::create_dir(&into).expect("a folder");
                for file in std::fs::read_dir(entry.path()).expect("a part").map(|file| file.expect("a file")) {
                    std::fs::copy(file.path(), into.join(file.file_name())).expect("a copy");
                }
            }
        }
        let files = std::fs::read_dir(own.path()).expect("its folder").count();
        assert_eq!(files, 1 + usize::from(rank > 0));
    }
    let here = run(&trainers(&[WORKERS]), &dataset, 3);
    let apart: Vec<Outcome> = std::thread::scope(|scope| {
        let one = |(rank, end): (usize, _)| {
            let path = format!("data.path={}", own[rank].path().display());
            let config = trainers(&[&path]);
            scope.spawn(move || {
                let source = Source::open(&Members::default(), &config, None).expect("meta data");
                run_worker(&config, Box::new(end), source, Options::default())
            })
        };
        let deadline = trainers(&[]).deadline();
        let all: Vec<_> = threads(4, deadline).into_iter().enumerate().map(one).collect();
        all.into_iter().map(|process| process.join().expect("no process panics").expect("a run")).collect()
    });
    assert_eq!(bits(&apart[..1]), bits(&here));
}

#[test]
fn what_a_run_of_single_parts_cannot_do_is_refused_by_key_and_by_all() {
    let parts = dealt(&graph(150, 3), 3);
    for (keys, said) in [
        (&["schedule.evaluator=aggregator"][..], "schedule.evaluator"),
        (&["schedule.kind=llcg"], "schedule.kind = \"llcg\""),
        (&[WORKERS, "schedule.aggregator=1"], "schedule.aggregator = 1"),
        (&[WORKERS, "averaging.drop=[1]"], "start 3 processes, not 4"),
    ] {
        for outcome in spread(&trainers(keys), &parts) {
            let error = outcome.map(|_| ()).expect_err("nobody can").to_string();
            assert!(error.contains(said), "{keys:?}: {error}");
        }
    }
}

#[test]
fn what_one_owner_denies_ends_the_run_of_all_before_it_is_sent() {
    let parts = dealt(&graph(150, 3), 3);
    for (deny, said) in [("hidden_rows:evaluation", "hidden rows"), ("models", "models")] {
        let deny = format!("policy.deny=[\"{deny}\"]");
        let open = trainers(&[WORKERS]);
        let closed = trainers(&[WORKERS, &deny]);
        let ended: Vec<_> = std::thread::scope(|scope| {
            let one = |(rank, end): (usize, _)| {
                let (config, parts) = (if rank == 2 { &closed } else { &open }, parts.clone());
                scope.spawn(move || run_worker(config, Box::new(end), Source::of(parts), Options::default()))
            };
            let all: Vec<_> = threads(4, open.deadline()).into_iter().enumerate().map(one).collect();
            all.into_iter().map(|process| process.join().expect("no process panics")).collect()
        });
        for outcome in ended {
            let error = outcome.map(|_| ()).expect_err("the run ends");
            assert!(matches!(error, TrainError::Denied(_)), "{deny}: {error}");
            assert!(error.to_string().contains(said), "{deny}: {error}");
        }
    }
}

/// The graph without edges between parts.
fn without_cut_edges(dataset: &Dataset, parts: &[Part]) -> Dataset {
    let mut owner = vec![0; dataset.graph.nodes()];
    parts.iter().for_each(|part| part.nodes.iter().for_each(|node| owner[*node as usize] = part.index));
    let (mut offsets, mut sources) = (vec![0], Vec::new());
    for node in 0..dataset.graph.nodes() {
        let own = dataset.graph.in_neighbours(node).iter().filter(|source| owner[**source as usize] == owner[node]);
        sources.extend(own.copied());
        offsets.push(sources.len() as u64);
    }
    Dataset { graph: Graph::from(Edges::new(offsets, sources)), ..dataset.clone() }
}

#[test]
fn evaluations_on_local_graphs_are_those_of_the_graph_without_the_edges_between_parts() {
    for arch in ["model.arch=sage", "model.arch=gcn", "model.arch=gat"] {
        let dataset = graph(150, 3);
        let keys = [arch, WORKERS, "schedule.evaluate=local"];
        let (local, found) = means(&simulated(&keys), dealt(&dataset, 3));
        let cut = without_cut_edges(&dataset, &dealt(&dataset, 3));
        let (whole, expected) = means(&simulated(&[arch]), dealt(&cut, 3));
        assert_eq!(last(&local), last(&whole), "{arch}");
        for (found, expected) in found.iter().zip(&expected) {
            let apart = apart(found.scores.as_ref().unwrap(), expected.scores.as_ref().unwrap());
            assert!(apart < 2e-6, "{arch}: {apart}");
        }
        // No row of another's node has crossed for it: figures, and the model to be evaluated.
        let (halo, _) = means(&simulated(&[arch, WORKERS]), dealt(&dataset, 3));
        let bytes = |of: &[Outcome]| -> u64 {
            of[1..].iter().map(|of| of.sent.totals_by_kind()[Kind::Evaluation].payload).sum()
        };
        assert!(bytes(&local) < bytes(&halo) / 4, "{arch}: {} of {}", bytes(&local), bytes(&halo));
    }
}

#[test]
fn parts_without_a_trainer_are_not_evaluated() {
    let dataset = graph(150, 3);
    let keys = ["averaging.drop=[1]", WORKERS];
    assert_as_predicted(&run(&simulated(&keys), &dataset, 3), &keys);
    let (outcomes, log) = means(&simulated(&keys), dealt(&dataset, 3));
    let kept: Vec<Part> = dealt(&dataset, 3).into_iter().filter(|part| part.index != 1).collect();
    let is_judged = |part: &Part, row: usize| part.roles[row] & Split::VAL != 0 && part.labels.known(row) > 0;
    let judged = |part: &Part| (0..part.rows()).filter(|&row| is_judged(part, row)).count() as u64;
    let count = kept.iter().map(judged).sum::<u64>();
    let parts = &outcomes[0].summary.as_ref().unwrap().parts.as_ref().expect("figures of parts").val;
    assert_eq!(parts.count.iter().sum::<u64>(), count);
    assert_eq!((parts.count.len(), parts.count[1]), (3, 0));
    assert!(log.iter().all(|report| report.scores.is_some()));
}

#[test]
fn means_after_a_worker_is_lost_have_no_figures_and_the_run_goes_on() {
    let fault = "transport.faults=[{ who = 1, at = \"5 s\", kind = \"killed\" }]";
    let keys = ["schedule.quorum=1", "schedule.grace=1 s", "transport.deadline_s=5", fault];
    let (whole, expected) = means(&simulated(&keys), dealt(&graph(150, 3), 3));
    let (together, found) = means(&simulated(&[&keys[..], &[WORKERS]].concat()), dealt(&graph(150, 3), 3));
    assert_eq!(last(&together), last(&whole));
    assert_eq!(found.len(), expected.len());
    let known: Vec<bool> = found.iter().map(|report| report.scores.is_some()).collect();
    assert_eq!(known, [true, false, false, false], "means before the loss, and those after it");
    let summary = together[0].summary.as_ref().unwrap();
    let notes = &summary.averaging.as_ref().unwrap().notes;
    assert!(notes.iter().any(|note| note.starts_with("means from 2 on have no figures")), "{notes:?}");
    // What is chosen is the best of those that have some.
    assert_eq!(together[0].trained.best_round, 1);
}

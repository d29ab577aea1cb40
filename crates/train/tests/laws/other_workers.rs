//! A run that was stopped goes on with another number of workers, where none remembers what no other knows: the same
//! losses up to the order of sums, the same best round, and every byte of every start counted. Elsewhere it is refused,
//! and the error says whose memory stands in the way.

use std::path::Path;

use laconic_graph::dataset::Dataset;
use laconic_train::error::Result;
use laconic_train::record::summary::{BytesSummary, Summary};
use laconic_train::record::traffic::StartBytes;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, Outcome, run_threads};

use crate::averaging::{KINDS, dealt, trainers};
use crate::fixture::{config, folder, graph, into_folder, parts, related, try_run};
use crate::ledger_of_starts::assert_agrees;
use crate::links;
use crate::same_bits::{log, stop_after};

/// A start of a run with so many workers; the first begins it, and others say that they change their number.
fn start(out: &Path, dataset: &Dataset, keys: &[&str], (workers, until): (u32, u32)) -> Result<Vec<Outcome>> {
    let number = format!("partition.parts={workers}");
    let options = if until > 0 { stop_after(until, out) } else { into_folder(out) };
    let changes = vec!["partition.parts".to_owned()];
    let options = Options { resume: out.exists(), changes, ..options };
    try_run(&config(&[keys, &[&number]].concat()), dataset, workers, options)
}

fn summary(out: &Path) -> Summary {
    serde_json::from_str(&std::fs::read_to_string(out.join("summary.json")).expect("a summary")).expect("a summary")
}

fn losses(out: &Path) -> Vec<f64> {
    log(out).iter().map(|report| report.loss).collect()
}

/// Runs the starts, each with so many workers until a round, and holds the ledger to what each start itself has sent.
fn goes_over(starts: &[(u32, u32)], dataset: &Dataset, keys: &[&str], out: &Path) -> BytesSummary {
    let mut sent = Vec::new();
    for &at in starts {
        let outcomes = start(out, dataset, keys, at).unwrap_or_else(|error| panic!("{keys:?}, {at:?}: {error}"));
        assert_eq!(outcomes.len() as u32, at.0);
        let all: u64 = outcomes.iter().map(|outcome| outcome.sent.total().framed).sum();
        let predicted: u64 = outcomes.iter().map(|outcome| outcome.predicted.total().framed).sum();
        sent.push(all);
        let whole = at.1 == 0;
        let is_exact = outcomes[0].plan.is_predictable();
        assert!(
            !whole || if is_exact { all == predicted } else { all <= predicted },
            "{keys:?}, {at:?}: {all} {predicted}"
        );
    }
    let found = summary(out);
    let text = std::fs::read_to_string(out.join("ledger.csv")).expect("a ledger");
    let rows: Vec<_> = text.lines().skip(1).map(|line| line.parse().expect("a row")).collect();
    assert_agrees(&found.bytes, &rows, &format!("{keys:?}, {starts:?}"));
    let of = |of: &dyn Fn(&StartBytes) -> u64| found.bytes.starts.iter().map(of).collect::<Vec<u64>>();
    assert_eq!(of(&|start| start.bytes), sent, "{keys:?}");
    assert_eq!(of(&|start| start.workers.into()), starts.iter().map(|at| at.0.into()).collect::<Vec<u64>>());
    let rounds = starts.iter().scan(0, |before, at| Some(u64::from(std::mem::replace(before, at.1))));
    assert_eq!(of(&|start| start.after_round.into()), rounds.collect::<Vec<u64>>(), "{keys:?}");
    assert_eq!(found.workers, starts.last().expect("a start").0);
    // Whoever had sent to whom, in any of the starts.
    let by_link: u64 = found.bytes.by_link.iter().map(|link| link.bytes).sum();
    assert_eq!((by_link, found.bytes.received), (found.bytes.total, found.bytes.total), "{keys:?}");
    let said = found.notes.iter().filter(|note| note.starts_with("workers of this run: 3 until round")).count();
    assert_eq!(said, 1, "{:?}", found.notes);
    found.bytes
}

/// The run on 3 workers, against that which has changed to others on the way.
fn is_one_run(dataset: &Dataset, keys: &[&str]) {
    let straight = folder();
    let out = straight.path().join("run");
    start(&out, dataset, keys, (3, 0)).unwrap_or_else(|error| panic!("{keys:?}: {error}"));
    let (expected, best) = (losses(&out), summary(&out).metrics.best_round);
    // Not where a stage ends: there nobody stops.
    let half = expected.len() as u32 / 2 - 1;
    let ways: [&[(u32, u32)]; 4] =
        [&[(3, half), (1, 0)], &[(3, half), (2, 0)], &[(3, half), (4, 0)], &[(3, 1), (1, 3), (4, 0)]];
    for starts in ways {
        let folder = folder();
        let out = folder.path().join("run");
        goes_over(starts, dataset, keys, &out);
        let found = losses(&out);
        assert_eq!(found.len(), expected.len(), "{keys:?}, {starts:?}");
        for (round, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let most = 1e-6 * expected.abs().max(1.0);
            assert!((found - expected).abs() <= most, "{keys:?}, {starts:?}, round {round}: {found} for {expected}");
        }
        assert_eq!(summary(&out).metrics.best_round, best, "{keys:?}, {starts:?}");
    }
}

/// SGD takes steps as long as the gradient, so that differences of rounding stay what they are. The loss chooses the
/// best round, since figures jump by whole nodes.
const SGD: &[&str] = &["train.optimiser=sgd", "train.lr=0.1", "train.epochs=6", "train.select_by=loss"];

#[test]
fn a_run_on_other_workers_goes_on_as_the_one_on_the_first() {
    let (dataset, related) = (graph(150, 4), related(150, 4));
    let methods: [&[&str]; 12] = [
        &["model.arch=gcn"],
        &["model.arch=gat", "schedule.cache_inputs=false"],
        &["model.arch=sage", "model.norm=batch"],
        &["model.arch=gin", "train.class_weights=balanced", "train.eval_every=2"],
        &["train.optimiser=adam", "train.lr=0.01"],
        &["schedule.kind=lazy"],
        &["schedule.kind=lazy", "schedule.start=mlp", "schedule.hand_on=hidden"],
        &["schedule.kind=lazy", "schedule.hand_on={columns=3}", "model.norm=batch"],
        &["data.inductive=true"],
        &["batch.size=13", "batch.cache=10 kB"],
        &["batch.size=20", "schedule.kind=lazy"],
        &["train.lr_schedule=cosine"],
    ];
    for keys in methods {
        is_one_run(&dataset, &[SGD, keys].concat());
    }
    is_one_run(&related, &[SGD, &["model.arch=rgcn", "model.bases=2"]].concat());
}

#[test]
fn links_go_on_on_other_workers_with_the_same_pairs() {
    for keys in [&[][..], &["batch.size=40"], &["task.filter_negatives=true", "model.arch=gcn"]] {
        is_one_run(&links::unlabelled(), &links::keys(&[SGD, keys].concat()));
    }
}

/// What is left out or rounded depends on the parts; nobody remembers it, and all of it is counted.
#[test]
fn a_run_that_says_less_goes_on_on_other_workers_and_sends_what_was_predicted() {
    let dataset = graph(150, 4);
    let methods: [&[&str]; 10] = [
        &["messages.evaluation=none"],
        &["messages.forward=half", "messages.backward=half", "messages.evaluation=half"],
        &["train.precision=bf16", "messages.forward=half"],
        &[r#"messages.forward={codec="quantised",bits=4}"#, r#"messages.backward={codec="quantised",bits=8}"#],
        &[r#"messages.forward={codec="masked",ratio={from=4}}"#, "schedule.kind=lazy"],
        &[r#"messages.selection={kind="boundary_sample",rate=0.3}"#],
        &["messages.selection=none", "batch.size=20"],
        &[r#"messages.parameters={codec="quantised",bits=8}"#, "messages.error_feedback=false"],
        &["batch.size=20", "batch.kind=clusters"],
        &[r#"messages.budget="3 MB""#],
    ];
    for keys in methods {
        for then in [1, 2, 4] {
            let folder = folder();
            let keys = [keys, SGD].concat();
            let bytes = goes_over(&[(3, 4), (then, 0)], &dataset, &keys, &folder.path().join("run"));
            assert!(bytes.is_bound || bytes.predicted == Some(bytes.total), "{keys:?}, {then}");
        }
    }
}

#[test]
fn what_a_worker_alone_remembers_is_named_where_a_run_is_to_go_on_with_others() {
    let dataset = graph(150, 4);
    let adaptive = r#"messages.backward={codec="quantised",bits="adaptive",period=2}"#;
    for (keys, words) in [
        (&["schedule.kind=pipelined"][..], ["schedule.kind = \"pipelined\"", "rows that others sent it a round ago"]),
        (&["train.sync_every=2"], ["train.sync_every = 2", "an optimiser of its own"]),
        (&[r#"messages.parameters={codec="quantised",bits=8}"#], ["messages.error_feedback = true", "has left over"]),
        (&["messages.skip={change=0.1,staleness=3}"], ["messages.skip = ", "sent and received last"]),
        (&[adaptive], ["messages.backward = ", "the bits that were assigned"]),
    ] {
        let place = folder();
        let out = place.path().join("run");
        start(&out, &dataset, keys, (3, 2)).unwrap_or_else(|error| panic!("{keys:?}: {error}"));
        let checkpoint = std::fs::read(out.join("checkpoint.safetensors")).expect("a checkpoint");
        for workers in [1, 2, 4] {
            let error = start(&out, &dataset, keys, (workers, 0)).map(drop).expect_err("another number").to_string();
            let number = format!("partition.parts is {workers}, and was 3");
            assert!(words.iter().all(|word| error.contains(word)) && error.contains(&number), "{keys:?}: {error}");
        }
        let after = std::fs::read(out.join("checkpoint.safetensors")).expect("a checkpoint");
        assert!(after == checkpoint, "{keys:?}: a refusal changes nothing");
        start(&out, &dataset, keys, (3, 0)).unwrap_or_else(|error| panic!("{keys:?}: {error}"));
    }
}

#[test]
fn trainers_on_their_own_go_on_over_their_own_parts_alone() {
    let dataset = graph(150, 3);
    for &keys in KINDS {
        let place = folder();
        let out = place.path().join("run");
        let run = |workers: u32, options: Options| {
            let number = format!("partition.parts={workers}");
            let config = trainers(&[keys, &["transport.kind=simulated", &number]].concat());
            run_threads(&config, Source::of(dealt(&dataset, workers)), options)
        };
        run(3, into_folder(&out)).unwrap_or_else(|error| panic!("{keys:?}: {error}"));
        let goes_on = || Options { resume: true, changes: vec!["partition.parts".to_owned()], ..into_folder(&out) };
        let error = run(2, goes_on()).map(drop).expect_err("another number").to_string();
        assert!(error.contains("the optimiser of its own part") && error.contains("schedule.kind"), "{error}");
        run(3, goes_on()).unwrap_or_else(|error| panic!("{keys:?}: {error}"));
    }
}

/// Where the whole data has a digest, other parts are told from other data.
#[test]
fn other_parts_of_other_data_are_refused() {
    let (dataset, other) = (graph(150, 4), graph(151, 4));
    let place = folder();
    let out = place.path().join("run");
    start(&out, &dataset, &[], (3, 2)).expect("a run");
    let error = start(&out, &other, &[], (2, 0)).map(drop).expect_err("other data").to_string();
    assert!(error.contains("the data's nodes is 151, and was 150"), "{error}");
    let anonymous = |workers: u32| {
        let mut parts = parts(&config(&[]), &dataset, workers);
        parts.iter_mut().for_each(|part| part.global.data_digest.clear());
        Source::of(parts)
    };
    let place = folder();
    let out = place.path().join("run");
    run_threads(&config(&["partition.parts=3"]), anonymous(3), stop_after(2, &out)).expect("a run");
    let options = Options { resume: true, changes: vec!["partition.parts".to_owned()], ..into_folder(&out) };
    let error = run_threads(&config(&["partition.parts=2"]), anonymous(2), options).map(drop).expect_err("no digest");
    assert!(error.to_string().contains("nobody knows the digest of the whole data"), "{error}");
}

//! Every byte that has left is in the ledger, however often a run broke off and was resumed, and everything that a run
//! leaves behind says the same of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use laconic_graph::dataset::Dataset;
use laconic_graph::plan::plan_all;
use laconic_train::TrainError;
use laconic_train::forecast::costs::forecast;
use laconic_train::plan::Members;
use laconic_train::record::purposes::Purposes;
use laconic_train::record::summary::{BytesSummary, Summary};
use laconic_train::run::source::Source;
use laconic_train::run::{Options, Outcome, run_threads};
use laconic_wire::{Count, Kind, Ledger, Row};

use crate::averaging::{dealt, trainers};
use crate::fixture::{config, folder, graph, parts, try_run};
use crate::ledger_of_methods::every_pair;
use crate::methods::{BOUNDED, CODECS, OTHERS};
use crate::same_bits::{log, stop_after};

const WORKERS: u32 = 3;

/// Options that keep nothing in memory that is written down.
fn spilling(out: &Path) -> Options {
    Options { out: Some(out.to_owned()), ..Options::default() }
}

fn rows(out: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(out.join("ledger.csv")).expect("a ledger");
    text.lines().skip(1).map(|line| line.parse().expect("a row")).collect()
}

fn summary(out: &Path) -> Summary {
    serde_json::from_str(&std::fs::read_to_string(out.join("summary.json")).expect("a summary")).expect("a summary")
}

fn framed<'a>(rows: impl IntoIterator<Item = &'a Row>) -> u64 {
    rows.into_iter().map(|row| row.count.framed).sum()
}

/// Total, kinds, links and starts of a summary are the rows of the ledger, cut in four ways.
pub fn assert_agrees(bytes: &BytesSummary, rows: &[Row], what: &str) {
    assert_eq!((bytes.total, bytes.unlisted), (framed(rows), 0), "{what}");
    assert_eq!(bytes.received, bytes.total, "{what}");
    for kind in Kind::ALL {
        let listed = framed(rows.iter().filter(|row| row.entry.kind == kind));
        assert_eq!(bytes.by_kind[kind.name()], listed, "{what}: {}", kind.name());
    }
    let of = |kinds: &[Kind]| framed(rows.iter().filter(|row| kinds.contains(&row.entry.kind)));
    let Purposes { boundary, parameters, evaluation, start_up } = bytes.by_purpose;
    assert_eq!(boundary + parameters + evaluation + start_up, bytes.total, "{what}: purposes");
    let rows_and_widths = [Kind::Features, Kind::Activations, Kind::ActivationGradients, Kind::Widths, Kind::Draws];
    assert_eq!(boundary, of(&rows_and_widths), "{what}: boundary");
    assert_eq!(parameters, of(&[Kind::ParameterGradients, Kind::Parameters]), "{what}: parameters");
    assert_eq!((evaluation, start_up), (of(&[Kind::Evaluation]), of(&[Kind::Control])), "{what}");
    // One message an account: one without payload was skipped.
    let is_message = |row: &&Row| rows_and_widths[..3].contains(&row.entry.kind) && row.count.frames == 1;
    let empty = rows.iter().filter(is_message).filter(|row| row.count.payload == 0).count() as u64;
    assert!(bytes.skipped == empty || bytes.repeated > 0, "{what}: {} skipped, {empty} empty", bytes.skipped);
    for link in &bytes.by_link {
        let on_link = |row: &&Row| (row.from.0, row.entry.peer.0) == (link.from, link.to);
        assert_eq!(link.bytes, framed(rows.iter().filter(on_link)), "{what}: {link:?}");
    }
    for start in &bytes.starts {
        let listed = framed(rows.iter().filter(|row| row.start == start.start));
        assert_eq!(start.bytes, listed, "{what}: {start:?}");
    }
    assert_eq!(bytes.starts.iter().map(|start| start.bytes).sum::<u64>(), bytes.total, "{what}: starts");
    assert!(rows.is_sorted_by_key(|row| (row.start, row.from, row.entry)), "{what}: order");
}

/// Frames and payload bytes that all workers together send in a round of one layer's training: each halo row of 16
/// numbers there and its gradient back, and the parameters' gradient in chunks, there with two numbers beside it and
/// back without.
fn of_a_round(dataset: &Dataset, parameters: u64) -> BTreeMap<Kind, Count> {
    let parts = parts(&config(&[]), dataset, WORKERS);
    let plans = plan_all(&parts, true).expect("plans");
    let links = || plans.iter().flat_map(|(plan, _)| &plan.links);
    let (halo, frames) =
        (links().map(|link| link.send.len() as u64).sum::<u64>(), links().filter(|link| !link.send.is_empty()).count());
    let (workers, peers) = (u64::from(WORKERS), u64::from(WORKERS) - 1);
    let rows = Count::of(frames as u64, halo * 4 * 16);
    let sums = Count::of(2 * workers * peers, 2 * peers * parameters * 4 + workers * peers * 16);
    [(Kind::Activations, rows), (Kind::ActivationGradients, rows), (Kind::ParameterGradients, sums)].into()
}

/// Three starts: two crash, at round 7 and at round 6, each after the checkpoint of round 4. The rounds that were
/// finished are in the ledger as often as they were sent, counted here without the program.
#[test]
fn rounds_that_were_sent_again_are_in_the_ledger_as_often_as_they_were_sent() {
    let dataset = graph(150, 4);
    let keys = ["model.arch=gin", "model.layers=2", "train.epochs=8", "train.eval_every=0", "out.checkpoint_every=4"];
    let keys = [&keys[..], &["messages.parameters={codec=\"exact\"}", "messages.forward={codec=\"exact\"}"]].concat();
    let folder = folder();
    let out = folder.path().join("run");
    for (start, round) in [(0, 7), (1, 6)] {
        let fault = format!("transport.fault={{ rank = 1, round = {round}, kind = \"crash\" }}");
        // What worker 0 rescues would be the state of the round before: a run that was killed has the checkpoint alone.
        let checkpoint = out.join("checkpoint.safetensors");
        let before = std::fs::read(&checkpoint).ok();
        let crashing = config(&[&keys[..], &[fault.as_str()]].concat());
        let error = try_run(&crashing, &dataset, WORKERS, Options { resume: start > 0, ..spilling(&out) });
        assert!(matches!(error.err(), Some(TrainError::Fault { .. })));
        if let Some(before) = before {
            std::fs::write(&checkpoint, before).expect("written");
        } else {
            rewind(&keys, &dataset, &checkpoint);
        }
    }
    let outcomes =
        try_run(&config(&keys), &dataset, WORKERS, Options { resume: true, ..spilling(&out) }).expect("a resumed run");
    let (bytes, rows) = (summary(&out).bytes, rows(&out));
    assert_agrees(&bytes, &rows, "three starts");
    let parameters = outcomes[0].trained.last.len() as u64;
    let expected = of_a_round(&dataset, parameters);
    // Rounds 1 to 6, 5, and 5 to 8 are whole; the crashed worker sent nothing in its last round.
    for (start, rounds) in [(0, 1..=6), (1, 5..=5), (2, 5..=8)] {
        for round in rounds {
            for (kind, expected) in &expected {
                let of = |row: &&Row| (row.start, row.entry.round, row.entry.kind) == (start, round, *kind);
                let found: Count = rows.iter().filter(of).map(|row| row.count).sum();
                assert_eq!(found, *expected, "start {start}, round {round}, {}", kind.name());
            }
        }
    }
    assert_eq!(bytes.starts.iter().map(|start| start.after_round).collect::<Vec<_>>(), [0, 4, 4]);
    assert_eq!(bytes.starts.iter().map(|start| start.closed).collect::<Vec<_>>(), [false, false, true]);
    let again = |start: u32| framed(rows.iter().filter(|row| row.start == start && row.entry.round > 4));
    assert_eq!(bytes.starts.iter().map(|start| start.repeated).collect::<Vec<_>>(), [again(0), again(1), 0]);
    assert_eq!(bytes.repeated, again(0) + again(1));
    assert_eq!(bytes.predicted, Some(bytes.total), "what was sent before, and what was still to come");
}

/// What `stopped` and resumed runs cost is what one start has sent, by kind; and so are the bytes beside their rounds.
#[test]
fn a_run_that_was_stopped_and_went_on_costs_what_one_start_sends() {
    let dataset = graph(150, 4);
    let methods: [&[&str]; 9] = [
        &[],
        &["schedule.kind=lazy"],
        &["schedule.kind=lazy", "schedule.start=mlp", "train.sync_every=3"],
        &["schedule.kind=lazy", "schedule.hand_on={ columns = 3 }", "messages.parameters={codec=\"quantised\",bits=4}"],
        &["schedule.kind=pipelined"],
        &["messages.forward={codec=\"quantised\",bits=\"adaptive\",period=2}"],
        &["messages.forward={codec=\"masked\",ratio={from=4}}"],
        &["messages.selection={kind=\"boundary_sample\",rate=0.3}", "out.checkpoint_every=2"],
        &["batch.size=20", "messages.selection=none"],
    ];
    for method in methods {
        let keys = [method, &["train.epochs=6", "model.layers=2"]].concat();
        let [one, other] = [folder(), folder()].map(|folder| (folder.path().join("run"), folder));
        let straight = try_run(&config(&keys), &dataset, WORKERS, spilling(&one.0)).expect("a run");
        let rounds = straight[0].trained.rounds;
        assert!(straight[0].plan.goes_on_as_one(), "{keys:?}");
        // Stopped twice; then asked to go on although nothing is left to do.
        for round in [rounds / 2, rounds - 1, 0, 0] {
            let start = other.0.exists();
            let options = if round > 0 { stop_after(round, &other.0) } else { spilling(&other.0) };
            try_run(&config(&keys), &dataset, WORKERS, Options { resume: start, ..options }).expect("a start");
        }
        let [straight, stopped] = [&one.0, &other.0].map(|out| summary(out).bytes);
        assert_eq!(stopped.starts.len(), 4, "{keys:?}");
        assert!(stopped.total > straight.total && stopped.repeated == 0, "{keys:?}");
        assert_eq!((straight.straight, &straight.straight_by_kind), (Some(straight.total), &straight.by_kind));
        assert_eq!(
            (stopped.straight, &stopped.straight_by_kind),
            (Some(straight.total), &straight.by_kind),
            "{keys:?}"
        );
        assert_eq!(stopped.cost(), straight.cost(), "{keys:?}");
        let again: u64 = stopped.starts.iter().map(|start| start.repeated + start.again).sum();
        assert_eq!(again, stopped.total - straight.total, "{keys:?}");
        for (one, other) in log(&one.0).iter().zip(log(&other.0)) {
            let counted = other.bytes.map(|bytes| bytes - stopped.not_straight_until(other.round));
            assert_eq!((other.round, counted), (one.round, one.bytes), "{keys:?}");
        }
    }
}

/// A file of rows that is gone or cut is said, in every figure that rests on it.
#[test]
fn rows_that_are_missing_when_a_run_goes_on_are_counted_and_said() {
    let dataset = graph(150, 4);
    let keys = ["train.epochs=6", "out.checkpoint_every=2"];
    let crashing = [&keys[..], &["transport.fault={ rank = 1, round = 6, kind = \"crash\" }"]].concat();
    for kept in [0, 20, usize::MAX] {
        let folder = folder();
        let out = folder.path().join("run");
        try_run(&config(&crashing), &dataset, WORKERS, spilling(&out)).map(drop).expect_err("it crashes");
        let path = out.join("ledger.2.csv");
        let text = std::fs::read_to_string(&path).expect("rows of worker 2");
        let (kept, lost): (Vec<_>, Vec<_>) = text.lines().enumerate().partition(|(number, _)| *number < kept);
        let lost: Vec<Row> = lost.iter().map(|(_, line)| line.parse().expect("a row")).collect();
        let kept: String = kept.iter().map(|(_, line)| format!("{line}\n")).collect();
        if kept.is_empty() {
            std::fs::remove_file(&path).expect("removed");
        } else {
            std::fs::write(&path, kept).expect("written");
        }
        let options = Options { resume: true, ..spilling(&out) };
        let summary = try_run(&config(&keys), &dataset, WORKERS, options).expect("a run")[0].summary.clone();
        let summary = summary.expect("worker 0 sums up");
        let is_said = summary.notes.iter().any(|note| note.contains("no row") && note.contains("ledger.K.csv"));
        let listed = framed(&rows(&out));
        assert_eq!((summary.bytes.unlisted, is_said), (summary.bytes.total - listed, !lost.is_empty()));
        if lost.is_empty() {
            assert_eq!(summary.bytes.straight, Some(summary.bytes.total - again(&summary.bytes)));
        } else {
            assert!(summary.bytes.unlisted > 0 && summary.bytes.straight.is_none(), "{:?}", summary.bytes);
        }
    }
}

fn again(bytes: &BytesSummary) -> u64 {
    bytes.starts.iter().map(|start| start.repeated + start.again).sum()
}

/// Puts the checkpoint of round 4 where a crash has left a later one.
fn rewind(keys: &[&str], dataset: &Dataset, checkpoint: &Path) {
    let folder = folder();
    let out = folder.path().join("run");
    try_run(&config(keys), dataset, WORKERS, stop_after(4, &out)).expect("a run that stops after round 4");
    std::fs::copy(out.join("checkpoint.safetensors"), checkpoint).expect("copied");
}

/// What is written down round by round is the ledger that is kept in memory, for every way to say less.
#[test]
fn the_rows_on_disk_are_the_accounts_in_memory() {
    every_pair(&[&CODECS[..], &OTHERS, &BOUNDED].concat(), |dataset, keys, workers| {
        let folder = folder();
        let out = folder.path().join("run");
        let kept = Options { keep_accounts: true, ..spilling(&out) };
        let outcomes = try_run(&config(keys), dataset, workers, kept).expect("a run");
        let rows = rows(&out);
        let bytes = &outcomes[0].summary.as_ref().expect("worker 0 sums up").bytes;
        assert_agrees(bytes, &rows, &format!("{keys:?}"));
        for outcome in &outcomes {
            let own = rows.iter().filter(|row| row.from.0 == outcome.rank).map(|row| (row.entry, row.count));
            assert!(own.collect::<Ledger>() == outcome.sent, "{keys:?}: worker {}", outcome.rank);
        }
        let names = std::fs::read_dir(&out).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        let parts = names.filter(|name| name.to_string_lossy().starts_with("ledger.") && name != "ledger.csv");
        assert_eq!(parts.count(), 0, "{keys:?}: workers' files are left");
    });
}

/// Where accounts are written down they are not kept; sums are, and they are those of the accounts that were predicted.
#[test]
fn totals_without_accounts_are_the_sums_of_the_accounts() {
    every_pair(&[&CODECS[..], &OTHERS, &BOUNDED].concat(), |dataset, keys, workers| {
        let config = config(keys);
        let of = |ledger: fn() -> Ledger| {
            let costs = forecast(&Members::default(), &config, &parts(&config, dataset, workers), ledger);
            costs.expect("a forecast").workers.into_iter().map(|(_, ledger, _)| ledger).collect::<Vec<_>>()
        };
        for (totals, accounts) in of(Ledger::of_totals).iter().zip(&of(Ledger::new)) {
            assert_eq!(totals.iter().count(), 0, "{keys:?}");
            assert_eq!(totals.total(), accounts.total(), "{keys:?}");
            assert_eq!(totals.totals_by_kind(), accounts.totals_by_kind(), "{keys:?}");
            assert_eq!(totals.totals_by_peer(), accounts.totals_by_peer(), "{keys:?}");
            let sum: Count = accounts.iter().map(|(_, count)| count).sum();
            assert_eq!(sum, totals.total(), "{keys:?}");
        }
        let folder = folder();
        let out = folder.path().join("run");
        let outcomes = try_run(&config, dataset, workers, spilling(&out)).expect("a run");
        for outcome in &outcomes {
            for ledger in [&outcome.sent, &outcome.received, &outcome.predicted] {
                // All that is left is what came after the last rows were written: the closing report.
                assert!(ledger.iter().count() <= workers as usize, "{keys:?}: {} accounts", ledger.iter().count());
            }
        }
    });
}

/// What broke a run of trainers off, by the simulated clock.
#[derive(Debug, Clone, Copy)]
enum Broken {
    /// The user, before anybody had set out.
    AtOnce,
    /// Its aggregator was killed then.
    At(&'static str),
    /// Nothing: it had ended.
    Behind,
}

/// Breaks a run of three trainers off, and lets it go on.
fn broken_and_resumed(keys: &[&str], broken: Broken, kind: &str, out: &Path) -> Vec<Outcome> {
    let dataset = graph(150, 3);
    let run = |keys: &[&str], options| run_threads(&trainers(keys), Source::of(dealt(&dataset, WORKERS)), options);
    let played = [keys, &["transport.kind=simulated"]].concat();
    match broken {
        Broken::AtOnce => {
            let interrupt = Arc::new(AtomicBool::new(true));
            run(&played, Options { interrupt, ..spilling(out) }).expect("a run that was interrupted");
        }
        Broken::At(time) => {
            let fault = format!("transport.faults=[{{ who = \"aggregator\", at = \"{time}\", kind = \"killed\" }}]");
            let error = run(&[&played[..], &[&fault]].concat(), spilling(out)).map(|_| ());
            assert!(matches!(error, Err(TrainError::AggregatorLost { .. })), "{keys:?}: {error:?}");
        }
        Broken::Behind => {
            run(&played, spilling(out)).expect("a run");
        }
    }
    let options = Options { resume: true, ..spilling(out) };
    run(&[keys, &[kind]].concat(), options).unwrap_or_else(|error| panic!("{keys:?}, {broken:?}, {kind}: {error}"))
}

/// Trainers take a mean every three seconds, four a stage. One that goes on gets the last of them whole, and what it
/// was sent in all is what the starts together were predicted to send.
#[test]
fn trainers_that_go_on_send_what_was_predicted_when_they_did() {
    let coded = "messages.parameters={ codec = \"quantised\", bits = 4 }";
    let cases: [&[&str]; 11] = [
        &[],
        &["schedule.aggregator=1", coded, "schedule.kind=llcg", "schedule.corrections=1"],
        &["schedule.halo=frozen"],
        &["schedule.halo=frozen", coded, "schedule.aggregator=0", "data.inductive=true"],
        &["schedule.halo=stale"],
        &["schedule.halo=stale", "schedule.refresh=2", "schedule.aggregator=2"],
        &["schedule.halo=stale", "schedule.refresh=3", coded],
        &["task.kind=link_prediction", "task.negatives=local"],
        &["schedule.evaluator=workers"],
        &["schedule.evaluator=workers", "train.eval_every=2", "schedule.aggregator=1", coded],
        &["schedule.evaluator=workers", "schedule.halo=frozen"],
    ];
    let times = [Broken::AtOnce, Broken::At("4.5 s"), Broken::At("9.5 s"), Broken::Behind];
    let of_second = [Broken::At("12.5 s"), Broken::At("15.5 s"), Broken::At("22 s")];
    for keys in cases {
        let has_two = keys.contains(&"schedule.halo=frozen");
        for &broken in times.iter().chain(if has_two { &of_second[..] } else { &[] }) {
            let ledgers = ["transport.kind=simulated", "transport.kind=threads"].map(|kind| {
                let (what, folder) = (format!("{keys:?}, {broken:?}, {kind}"), folder());
                let out = folder.path().join("run");
                let outcomes = broken_and_resumed(keys, broken, kind, &out);
                let (bytes, rows) = (summary(&out).bytes, rows(&out));
                let sent = |rank: u32| -> Ledger {
                    let own = rows.iter().filter(|row| (row.start, row.from.0) == (1, rank));
                    own.map(|row| (row.entry, row.count)).collect()
                };
                for outcome in &outcomes {
                    let differences = outcome.predicted.difference(&sent(outcome.rank));
                    let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
                    assert!(differences.is_empty(), "{what}: rank {}: {differences:?}", outcome.rank);
                }
                assert_agrees(&bytes, &rows, &what);
                assert_eq!((bytes.predicted, bytes.is_bound), (Some(bytes.total), false), "{what}");
                // Behind the last mean every trainer that is elsewhere is told the end, and takes its leave.
                let elsewhere = u64::from(WORKERS) - u64::from(keys.iter().any(|key| key.contains("aggregator")));
                let end = Count::of(1, 1).framed + Count::of(1, 16).framed;
                let counts_more = keys.contains(&"schedule.evaluator=workers");
                if !matches!(broken, Broken::Behind) && !counts_more {
                    let last = log(&out).last().and_then(|report| report.bytes);
                    assert_eq!(last, Some(bytes.total - elsewhere * end), "{what}");
                }
                rows
            });
            assert_eq!(ledgers[0], ledgers[1], "{keys:?}, {broken:?}");
        }
    }
}

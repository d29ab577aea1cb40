//! Every worker sends what was predicted, account by account; what one sends the other receives; and nothing has to run
//! for it.

use std::collections::BTreeMap;

use laconic_graph::dataset::Dataset;
use laconic_train::forecast::costs::forecast;
use laconic_train::plan::Members;
use laconic_train::run::Outcome;
use laconic_wire::{Count, Direction, Kind, Ledger, Rank};

use crate::fixture::{config, draw, graph, multi_label, parts, run};
use crate::one_is_many::SCHEDULES;

/// Where the two ledgers differ, in words.
fn differences(left: &Ledger, right: &Ledger) -> String {
    let each: Vec<String> = left.difference(right).iter().map(|difference| difference.to_string()).collect();
    each.join("\n  ")
}

type Account = (u32, Kind, u16, Direction);

/// What a ledger says of one peer.
pub fn with_peer(ledger: &Ledger, peer: u32) -> BTreeMap<Account, Count> {
    let of_peer = ledger.iter().filter(|(entry, _)| entry.peer == Rank(peer));
    of_peer.map(|(entry, count)| ((entry.round, entry.kind, entry.layer, entry.direction), count)).collect()
}

/// Sent = predicted on every worker, received = sent on every link, and the summary says the same.
pub fn assert_exact(outcomes: &[Outcome], what: &str) {
    for outcome in outcomes {
        let (rank, found) = (outcome.rank, differences(&outcome.sent, &outcome.predicted));
        assert!(outcome.sent == outcome.predicted, "{what}: worker {rank} sent against predicted:\n  {found}");
        for peer in outcomes.iter().filter(|peer| peer.rank != rank) {
            let (sent, received) = (with_peer(&outcome.sent, peer.rank), with_peer(&peer.received, rank));
            assert_eq!(sent, received, "{what}: sent by {rank} against received by {}", peer.rank);
        }
    }
    let bytes = &outcomes[0].summary.as_ref().expect("worker 0 sums up").bytes;
    assert_eq!(
        (Some(bytes.total), Some(bytes.received)),
        (bytes.predicted, bytes.predicted),
        "{what}: the summary's bytes"
    );
    assert_eq!(bytes.by_kind.values().sum::<u64>(), bytes.total, "{what}: by kind");
}

/// Runs, compares, and compares once more with what is forecast from the parts alone.
pub fn assert_predicted(dataset: &Dataset, keys: &[&str], workers: u32) {
    let config = config(keys);
    let what = format!("{keys:?} on {workers} workers");
    let forecasts =
        forecast(&Members::default(), &config, &parts(&config, dataset, workers), Ledger::new).expect("a forecast");
    let outcomes = run(&config, dataset, workers);
    assert_exact(&outcomes, &what);
    for (outcome, (_, predicted, _)) in outcomes.iter().zip(&forecasts.workers) {
        assert!(outcome.sent == *predicted, "{what}, forecast:\n  {}", differences(&outcome.sent, predicted));
    }
    let bytes = &outcomes[0].summary.as_ref().expect("worker 0 sums up").bytes;
    let total: Count = outcomes.iter().map(|outcome| outcome.sent.total()).sum();
    assert_eq!((total.framed, total.payload, total.frames), (bytes.total, bytes.payload, bytes.frames), "{what}");
    assert_eq!(bytes.by_link.iter().map(|link| link.bytes).sum::<u64>(), bytes.total, "{what}: by link");
    assert!(workers > 1 || total == Count::default(), "{what}: one worker alone sent {total:?}");
}

const ARCHS: [&[&str]; 7] = [
    &["model.arch=gcn"],
    &["model.arch=sage", "model.layers=3"],
    &["model.arch=sage", "model.aggregator=max"],
    &["model.arch=gin"],
    &["model.arch=gat"],
    &["model.arch=gat", "model.head_merge=mean", "model.layers=3"],
    &["model.arch=mlp"],
];

const CODECS: [&[&str]; 3] = [
    &[],
    &["messages.forward=half", "messages.backward=half"],
    &["messages.layers.1.forward=half", "messages.layers.0.backward=half", "messages.backward=half"],
];

const METRICS: [&str; 3] = [
    "train.metrics=[\"accuracy\"]",
    "train.metrics=[\"micro_f1\", \"macro_f1\"]",
    "train.metrics=[\"roc_auc\", \"roc_auc_exact\"]",
];

/// Schedules × layers × codecs in full; metrics, evaluations, checkpoints and the number of workers are drawn for each.
#[test]
fn every_schedule_layer_and_codec_sends_what_was_predicted() {
    let datasets = [graph(150, 2), multi_label(150, 3)];
    let mut seen = std::collections::BTreeSet::new();
    let mut case = 0;
    for schedule in SCHEDULES {
        for arch in ARCHS {
            for codec in CODECS {
                case += 1;
                let pick = |what: u64, of: usize| draw(10 + what).with(case).below(of as u64) as usize;
                let (metrics, evaluated) = (METRICS[pick(0, 3)], [0, 1, 3][pick(1, 3)]);
                let (checkpoint, data) = ([0, 2][pick(2, 2)], pick(3, 2));
                let others = [
                    metrics.to_owned(),
                    format!("train.eval_every={evaluated}"),
                    format!("out.checkpoint_every={checkpoint}"),
                ];
                let others: Vec<&str> = others.iter().map(String::as_str).collect();
                seen.insert((metrics, evaluated, checkpoint, data));
                let keys = [schedule, arch, codec, &others].concat();
                assert_predicted(&datasets[data], &keys, 2 + pick(4, 3) as u32);
            }
        }
    }
    assert!(seen.len() > 25, "only {} of 36 combinations of metrics, evaluations, checkpoints and labels", seen.len());
}

#[test]
fn evaluations_and_checkpoints_send_what_was_predicted() {
    for dataset in [graph(150, 2), multi_label(150, 3)] {
        for metrics in METRICS {
            for evaluated in ["train.eval_every=0", "train.eval_every=1", "train.eval_every=3"] {
                for checkpoint in ["out.checkpoint_every=0", "out.checkpoint_every=3"] {
                    let keys = [metrics, evaluated, checkpoint, "train.epochs=7"];
                    assert_predicted(&dataset, &keys, 3);
                }
            }
        }
    }
}

#[test]
fn stages_of_their_own_lengths_send_what_was_predicted() {
    for start in ["schedule.start=features", "schedule.start=mlp"] {
        for rounds in ["schedule.rounds=[5, 2]", "schedule.rounds=[0, 3]", "schedule.rounds=[2, 0, 0]"] {
            let keys = ["schedule.kind=lazy", start, rounds, "train.eval_every=2", "model.layers=3"];
            assert_predicted(&graph(150, 2), &keys, 3);
        }
    }
}

#[test]
fn one_worker_alone_sends_nothing() {
    for schedule in SCHEDULES {
        for arch in ARCHS {
            assert_predicted(&graph(60, 2), &[schedule, arch].concat(), 1);
        }
    }
}

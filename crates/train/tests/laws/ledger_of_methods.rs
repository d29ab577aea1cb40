//! Every way to send less sends what was predicted, account by account; where it decides while it runs, no account
//! holds more than was predicted.

use laconic_graph::dataset::Dataset;
use laconic_train::forecast::costs::forecast;
use laconic_train::plan::Members;
use laconic_train::run::Outcome;
use laconic_wire::{Ledger, Rank};

use crate::fixture::{config, draw, graph, parts, run};
use crate::ledger_is_prediction::{assert_predicted, with_peer};
use crate::methods::{ARCHS, BOUNDED, CODECS, OTHERS, SCHEDULES, TIMED, go_together};

/// Keys that decide nothing here but must not matter, drawn for each case.
fn others(case: u64) -> (Vec<String>, u32) {
    let pick = |what: u64, of: usize| draw(40 + what).with(case).below(of as u64) as usize;
    let keys = [
        format!("train.eval_every={}", [0, 1, 3][pick(0, 3)]),
        format!("out.checkpoint_every={}", [0, 2][pick(1, 2)]),
        format!("train.epochs={}", [5, 7][pick(2, 2)]),
    ];
    (keys.to_vec(), 2 + pick(3, 3) as u32)
}

/// Calls `check` with every method under every schedule; each method also meets every layer, and each layer every
/// schedule.
pub fn every_pair(methods: &[&[&str]], check: impl Fn(&Dataset, &[&str], u32)) {
    let dataset = graph(120, 3);
    let mut seen = std::collections::BTreeSet::new();
    for (m, method) in methods.iter().enumerate() {
        for (s, schedule) in SCHEDULES.iter().enumerate() {
            let a = (m + s) % ARCHS.len();
            let (others, workers) = others((m * SCHEDULES.len() + s) as u64);
            let others: Vec<&str> = others.iter().map(String::as_str).collect();
            let keys = [schedule, ARCHS[a], &others, method].concat();
            if go_together(&keys) {
                check(&dataset, &keys, workers);
                seen.insert((m, a));
            }
        }
    }
    assert!(seen.len() >= methods.len() * (ARCHS.len() - 1), "only {} pairs of method and layer", seen.len());
}

#[test]
fn every_codec_of_rows_sends_what_was_predicted() {
    every_pair(&CODECS, assert_predicted);
}

#[test]
fn selections_parameters_and_local_steps_send_what_was_predicted() {
    every_pair(&OTHERS, assert_predicted);
}

/// No account of any worker holds more than predicted, and what one sends the other receives. Returns sent and
/// predicted bytes.
fn assert_bounded(outcomes: &[Outcome], what: &str) -> (u64, u64) {
    let mut sums = (0, 0);
    for outcome in outcomes {
        for peer in outcomes.iter().filter(|peer| peer.rank != outcome.rank) {
            let predicted = with_peer(&outcome.predicted, peer.rank);
            for (account, sent) in with_peer(&outcome.sent, peer.rank) {
                let most = predicted.get(&account).copied().unwrap_or_default();
                let kept = sent.framed <= most.framed && sent.frames == most.frames;
                assert!(kept, "{what}: {account:?} from {} to {}: {sent:?} of {most:?}", outcome.rank, peer.rank);
            }
            let (sent, received) = (with_peer(&outcome.sent, peer.rank), with_peer(&peer.received, outcome.rank));
            assert_eq!(sent, received, "{what}: sent by {} against received by {}", outcome.rank, peer.rank);
        }
        let (sent, predicted) = (outcome.sent.total(), outcome.predicted.total());
        sums = (sums.0 + sent.framed, sums.1 + predicted.framed);
    }
    let bytes = &outcomes[0].summary.as_ref().expect("worker 0 sums up").bytes;
    assert_eq!(
        (bytes.total, bytes.received, bytes.predicted),
        (sums.0, sums.0, Some(sums.1)),
        "{what}: the summary's bytes"
    );
    assert!(bytes.is_bound, "{what}: the summary calls its prediction a bound");
    sums
}

/// A bound that nothing comes near would hold for nothing: every method sends less than it might, and more than a third
/// of it.
#[test]
fn what_decides_while_it_runs_keeps_the_stated_bound() {
    for methods in [&BOUNDED[..], &TIMED] {
        let sums = std::cell::RefCell::new(std::collections::BTreeMap::<String, (u64, u64)>::new());
        every_pair(methods, |dataset, keys, workers| {
            let config = config(keys);
            let what = format!("{keys:?} on {workers} workers");
            let outcomes = run(&config, dataset, workers);
            assert!(!outcomes[0].plan.is_predictable(), "{what}");
            let (sent, predicted) = assert_bounded(&outcomes, &what);
            let forecasts = forecast(&Members::default(), &config, &parts(&config, dataset, workers), Ledger::new);
            for (outcome, (_, forecast, _)) in outcomes.iter().zip(forecasts.expect("a forecast").workers) {
                assert!(outcome.predicted == forecast, "{what}: the forecast from parts is another");
            }
            let mut sums = sums.borrow_mut();
            let sum = sums.entry(keys.last().expect("keys").to_string()).or_default();
            *sum = (sum.0 + sent, sum.1 + predicted);
        });
        for (method, (sent, predicted)) in sums.into_inner() {
            println!("{method}: {sent} of {predicted}");
            assert!(sent < predicted && 3 * sent > predicted, "{method}: {sent} of {predicted} bytes");
        }
    }
}

/// Messages of one column, whose widths are all as dear as exact values, reach none that is above the widest's bound.
#[test]
fn messages_of_one_column_keep_their_bound_in_every_width() {
    let dataset = graph(120, 3);
    let mask = |bits: &str| format!("{{codec=\"masked\",ratio=16,whole_last=false,inner=\"quantised\",{bits}}}");
    for bits in [
        "bits=\"adaptive\",period=1,menu=[1,8,16,32]",
        "bits={clock=\"gradient_norm\",from=1,to=32}",
        "bits={clock=\"elapsed\",limit=1000.0,from=8,to=32}",
    ] {
        let [forward, backward] =
            ["forward", "backward"].map(|direction| format!("messages.{direction}={}", mask(bits)));
        let keys = ["schedule.cache_inputs=false", "model.layers=3", &forward, &backward];
        let (sent, predicted) = assert_bounded(&run(&config(&keys), &dataset, 3), bits);
        assert_eq!(sent, predicted, "{bits}: one column takes as much in every width");
    }
}

/// A frame that stands for skipped rows carries nothing, so a round in which every row has stayed costs headers alone.
#[test]
fn rows_that_never_change_are_sent_once_in_so_many_rounds() {
    let keys = ["schedule.cache_inputs=false", "model.arch=gin", "train.epochs=7", "train.eval_every=0"];
    let skip = ["messages.skip={change=0.0,staleness=3}"];
    let outcomes = run(&config(&[&keys[..], &skip].concat()), &graph(120, 3), 3);
    for outcome in &outcomes {
        for peer in outcomes.iter().filter(|peer| peer.rank != outcome.rank) {
            let features = outcome.sent.iter().filter(|(entry, _)| {
                entry.peer == Rank(peer.rank) && entry.kind == laconic_wire::Kind::Features && entry.round > 0
            });
            let full: Vec<u32> =
                features.filter(|(_, count)| count.payload > 0).map(|(entry, _)| entry.round).collect();
            assert_eq!(full, [1, 4, 7], "from {} to {}", outcome.rank, peer.rank);
        }
    }
    let counted = outcomes[0].summary.as_ref().expect("worker 0 sums up").bytes.skipped;
    assert!(counted >= 4 * 6, "four rounds of six links at least are counted: {counted}");
}

//! What holds of models that are averaged over workers, however it is decided when, and whatever is made of the mean.

use laconic_graph::dataset::Dataset;
use laconic_train::config::Config;
use laconic_train::run::Outcome;
use laconic_wire::Kind;

use crate::fixture::{config, graph, run};

/// Rounds of every run here.
const ROUNDS: &str = "train.epochs=12";

fn averaged(dataset: &Dataset, keys: &[&str], workers: u32) -> Vec<Outcome> {
    run(&config(&[&[ROUNDS, "train.eval_every=0"], keys].concat()), dataset, workers)
}

/// The bits of the model that all workers end with.
fn last(outcomes: &[Outcome]) -> Vec<u32> {
    assert!(outcomes.iter().all(|outcome| outcome.trained == outcomes[0].trained), "workers end with one model");
    outcomes[0].trained.last.iter().map(|value| value.to_bits()).collect()
}

/// The frames of models that a worker has sent.
fn frames(outcomes: &[Outcome]) -> u64 {
    outcomes[1].sent.totals_by_kind()[Kind::Parameters].frames
}

fn refusal(keys: &[&str]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    Config::parse("", &keys).map(drop).expect_err("a refusal").to_string()
}

#[test]
fn models_that_stay_near_the_mean_are_averaged_as_if_nobody_asked() {
    let dataset = graph(150, 4);
    let plain = averaged(&dataset, &["train.sync_every=6"], 3);
    let near = averaged(&dataset, &["train.sync_every=6", "train.sync_drift=1e9", "train.sync_least=2"], 3);
    assert_eq!(last(&plain), last(&near));
    assert_eq!(frames(&plain), frames(&near));
}

#[test]
fn models_that_leave_the_mean_at_once_are_averaged_whenever_workers_ask() {
    let dataset = graph(150, 4);
    let often = averaged(&dataset, &["train.sync_every=2"], 3);
    let far = averaged(&dataset, &["train.sync_every=6", "train.sync_drift=1e-9", "train.sync_least=2"], 3);
    assert_eq!(last(&often), last(&far));
    assert_eq!(frames(&often), frames(&far));
    // All means that there may be are those that were foreseen.
    let models = |outcome: &Outcome| outcome.predicted.totals_by_kind()[Kind::Parameters];
    assert!(far.iter().all(|outcome| outcome.sent.totals_by_kind()[Kind::Parameters] == models(outcome)));
}

#[test]
fn means_by_drift_lie_between_as_few_and_as_many_as_are_asked_for() {
    let dataset = graph(150, 4);
    let of = |drift: &str| frames(&averaged(&dataset, &["train.sync_every=6", drift, "train.sync_least=1"], 3));
    let drifts = ["train.sync_drift=1e-9", "train.sync_drift=0.03", "train.sync_drift=0.1", "train.sync_drift=1e9"];
    let found = drifts.map(of);
    assert!(found.is_sorted_by(|more, fewer| more >= fewer), "{found:?}");
    assert!(found[1] < found[0] && found[2] > found[3], "{found:?}: some drift lies between");
}

#[test]
fn whoever_asks_says_so_in_few_bytes_that_were_foreseen() {
    let dataset = graph(150, 4);
    let keys = ["train.sync_every=6", "train.sync_drift=1e9", "train.sync_least=2"];
    let control = |outcomes: &[Outcome]| outcomes[0].sent.totals_by_kind()[Kind::Control];
    let (plain, asking) = (averaged(&dataset, &keys[..1], 3), averaged(&dataset, &keys, 3));
    // Rounds 2, 4, 8 and 10, two peers each, a number of 8 bytes.
    assert_eq!(control(&asking).frames - control(&plain).frames, 8);
    assert_eq!(control(&asking).payload - control(&plain).payload, 8 * 8);
    let foreseen = |outcome: &Outcome| outcome.predicted.totals_by_kind()[Kind::Control];
    assert!(asking.iter().all(|outcome| outcome.sent.totals_by_kind()[Kind::Control] == foreseen(outcome)));
}

#[test]
fn an_outer_step_of_rate_1_without_momentum_is_the_mean() {
    let dataset = graph(150, 4);
    for more in [&["model.arch=sage"][..], &["model.norm=batch"], &["train.sync_drift=0.05"]] {
        let keys = [&["train.sync_every=3"], more].concat();
        let outer = [&keys[..], &["train.outer={lr=1.0,momentum=0.0}"]].concat();
        assert_eq!(last(&averaged(&dataset, &keys, 3)), last(&averaged(&dataset, &outer, 3)), "{keys:?}");
    }
}

#[test]
fn an_outer_step_costs_no_byte_and_changes_the_model() {
    let dataset = graph(150, 4);
    let (plain, outer) = (&["train.sync_every=3"][..], &["train.sync_every=3", "train.outer={}"][..]);
    let (plain, outer) = (averaged(&dataset, plain, 3), averaged(&dataset, outer, 3));
    assert!(plain.iter().zip(&outer).all(|(plain, outer)| plain.sent.total() == outer.sent.total()));
    assert_ne!(last(&plain), last(&outer));
}

#[test]
fn outer_steps_are_refused_where_no_models_are_averaged_and_where_they_lead_nowhere() {
    for (keys, words) in [
        (&["train.outer={}"][..], "with train.sync_every above 1"),
        (&["train.outer={lr=0.0}", "train.sync_every=4"], "train.outer.lr = 0: expected a number above 0"),
        (
            &["train.outer={momentum=1.0}", "train.sync_every=4"],
            "train.outer.momentum = 1: expected 0 or more, below 1",
        ),
        (&["train.outer={}", "train.sync_every=4", "schedule.kind=averaging"], "schedule.interval"),
    ] {
        let error = refusal(keys);
        assert!(error.contains(words), "{keys:?}: {error}");
    }
}

#[test]
fn one_worker_corrects_nothing() {
    let dataset = graph(150, 4);
    let [plain, corrected] = [&["train.sync_every=3"][..], &["train.sync_every=3", "train.correction=scaffold"]]
        .map(|keys| averaged(&dataset, keys, 1).swap_remove(0).trained.last);
    let far = plain.iter().zip(&corrected).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
    assert!(far < 1e-5, "{far}");
}

#[test]
fn corrected_means_send_twice_the_values_and_say_so_before() {
    let dataset = graph(150, 4);
    let keys = ["train.sync_every=3", "train.correction=scaffold"];
    let (plain, corrected) = (averaged(&dataset, &keys[..1], 3), averaged(&dataset, &keys, 3));
    for (plain, corrected) in plain.iter().zip(&corrected) {
        let of = |outcome: &Outcome| outcome.sent.totals_by_kind()[Kind::Parameters];
        assert_eq!(of(plain).frames, of(corrected).frames);
        let values = plain.trained.last.len() as u64;
        // Chunks of an odd number differ by a value a frame; what rides along is the same.
        let more = of(corrected).payload - of(plain).payload;
        assert!(more.abs_diff(4 * 4 * values * 4 / 3) <= 4 * of(plain).frames, "{more} for {values} values in 4 means");
        assert_eq!(corrected.sent, corrected.predicted);
    }
}

#[test]
fn corrections_are_refused_where_no_models_are_averaged() {
    for (keys, words) in [
        (&["train.correction=scaffold"][..], "with train.sync_every above 1"),
        (&["train.correction=scaffold", "train.sync_every=4", "schedule.kind=averaging"], "schedule.interval"),
    ] {
        let error = refusal(keys);
        assert!(error.contains(words), "{keys:?}: {error}");
    }
}

#[test]
fn means_by_drift_are_refused_where_no_models_are_averaged_and_where_bounds_make_no_sense() {
    for (keys, words) in [
        (&["train.sync_drift=0.1"][..], "with train.sync_every above 1"),
        (&["train.sync_drift=0", "train.sync_every=4"], "train.sync_drift = 0: expected a number above 0"),
        (&["train.sync_drift=nan", "train.sync_every=4"], "expected a number above 0"),
        (&["train.sync_drift=0.1", "train.sync_every=4", "train.sync_least=3"], "divides train.sync_every = 4"),
        (&["train.sync_drift=0.1", "train.sync_every=4", "train.sync_least=0"], "divides train.sync_every = 4"),
        (&["train.sync_every=4", "train.sync_least=2"], "train.sync_drift alone reads it"),
        (&["train.sync_drift=0.1", "train.sync_every=4", "schedule.kind=averaging"], "schedule.interval"),
    ] {
        let error = refusal(keys);
        assert!(error.contains(words), "{keys:?}: {error}");
    }
}

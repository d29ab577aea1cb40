//! Independent trainers whose models read what owners tell once: they meet for it before they train, each then trains
//! alone, and means are evaluated on the columns that trainers read.

use laconic_graph::dataset::{Dataset, Split};
use laconic_graph::part::Part;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, Outcome, run_threads, run_worker};
use laconic_train::{Config, TrainError};
use laconic_wire::{Kind, Ledger, threads};

use crate::averaging::{assert_as_predicted, close, dealt, last, run, run_on, simulated, trainers};
use crate::fixture::{config, folder, graph, into_folder};
use crate::hosted::Until;
use crate::same_bits::{bits, log};

const WORKERS: &str = "schedule.evaluator=workers";
const ALLOWED: &str = "policy.allow=[\"labels\"]";
const LABELS: &str = "model.inputs=[\"features\", \"labels\"]";
const CODEWORDS: &str = "model.inputs=[\"features\", \"labels\", \"codewords\"]";

/// What any number of workers reads as one would: an aggregator that holds the whole graph can evaluate it.
const EXACT: &[&[&str]] = &[
    &[LABELS, "model.arch=mlp"],
    &[LABELS, "model.arch=gcn", "batch.size=9", "batch.fanouts=[3, 2]"],
    &[LABELS, "model.arch=gcn", "schedule.halo=frozen"],
    &[LABELS, "model.arch=mlp", "schedule.kind=psgd_pa", "train.class_weights=balanced"],
];

/// What it does not.
const LOSSY: &[&[&str]] = &[
    &[CODEWORDS, "model.arch=mlp"],
    &[CODEWORDS, "model.arch=gat", "schedule.evaluate=local"],
    &["model.inputs=[\"labels\", \"codewords\"]", "model.arch=mlp", "schedule.aggregator=1"],
    &["model.inputs=[\"features\", \"own_labels\"]", "model.arch=mlp"],
    &["model.inputs=[\"features\", \"propagated\", \"propagated_twice\"]", "model.arch=mlp", "schedule.mean=rows"],
];

/// Runs by workers that evaluate, and by an aggregator where it can.
fn all() -> Vec<Vec<&'static str>> {
    let exact = EXACT.iter().map(|keys| [keys, &[ALLOWED][..]].concat());
    let by_workers = EXACT.iter().chain(LOSSY).map(|keys| [keys, &[ALLOWED, WORKERS][..]].concat());
    let llcg = vec![LABELS, ALLOWED, "model.arch=mlp", "schedule.kind=llcg", "schedule.corrections=2"];
    exact.chain(by_workers).chain([llcg]).collect()
}

#[test]
fn what_is_told_once_takes_the_bytes_that_were_predicted_account_by_account() {
    let dataset = graph(150, 3);
    // Which of these rows has come when depends on time.
    let stale = vec![CODEWORDS, ALLOWED, WORKERS, "model.arch=sage", "schedule.halo=stale"];
    for keys in all().into_iter().chain([stale]) {
        let outcomes = run(&simulated(&keys), &dataset, 3);
        assert_as_predicted(&outcomes, &keys);
        let told = |of: &Outcome| of.sent.totals_by_kind()[Kind::Features].payload;
        assert_eq!(told(&outcomes[0]), 0, "{keys:?}: the aggregator has nothing to tell");
        let tells = !keys.contains(&LOSSY[3][0]);
        assert_eq!(outcomes[1..].iter().all(|outcome| told(outcome) > 0), tells, "{keys:?}");
    }
}

#[test]
fn a_simulated_run_is_the_run_on_threads() {
    let dataset = graph(150, 3);
    for keys in all() {
        for count in [1, 3] {
            if count == 1 && keys.contains(&"schedule.aggregator=1") {
                continue;
            }
            let [played, really] = [simulated(&keys), trainers(&keys)].map(|config| run(&config, &dataset, count));
            assert_eq!(bits(&played), bits(&really), "{keys:?} with {count}");
            for (played, really) in played.iter().zip(&really) {
                let of = |ledger: &Ledger| ledger.iter().collect::<Vec<_>>();
                assert_eq!(of(&played.sent), of(&really.sent), "{keys:?}: rank {}", played.rank);
            }
        }
    }
}

/// The same over any transport, each process with its own part.
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
fn processes_that_hold_their_own_part_alone_come_to_the_same_model_by_the_bytes_predicted() {
    let dataset = graph(150, 3);
    for keys in all() {
        if !keys.contains(&WORKERS) || keys.contains(&"schedule.aggregator=1") {
            continue;
        }
        let config = trainers(&keys);
        let here = run(&config, &dataset, 3);
        let apart = spread(&config, &dealt(&dataset, 3)).into_iter();
        let apart: Vec<Outcome> = apart.map(|of| of.unwrap_or_else(|error| panic!("{keys:?}: {error}"))).collect();
        assert_eq!(bits(&apart[..1]), bits(&here), "{keys:?}");
        for outcome in &apart {
            let differences: Vec<String> =
                outcome.predicted.difference(&outcome.sent).iter().map(ToString::to_string).collect();
            assert!(differences.is_empty(), "{keys:?}: rank {}: {differences:?}", outcome.rank);
        }
    }
}

#[test]
fn an_aggregator_that_holds_the_whole_graph_finds_the_figures_that_workers_find() {
    let dataset = graph(150, 3);
    let means = |keys: &[&str]| {
        let out = folder();
        let options = Options { keep_accounts: true, ..into_folder(out.path()) };
        let outcomes = run_threads(&simulated(keys), Source::of(dealt(&dataset, 3)), options).expect("a run");
        (last(&outcomes), log(out.path()))
    };
    for keys in EXACT {
        let keys = [keys, &[ALLOWED][..]].concat();
        let [whole, together] = [means(&keys), means(&[&keys[..], &[WORKERS]].concat())];
        assert_eq!(whole.0, together.0, "{keys:?}");
        for (whole, together) in whole.1.iter().zip(&together.1) {
            let (Some(whole), Some(together)) = (&whole.scores, &together.scores) else { continue };
            for (whole, together) in whole.splits().into_iter().zip(together.splits()) {
                for (name, figure) in whole {
                    let apart = figure.unwrap_or(0.0) - together[name].unwrap_or(0.0);
                    assert!(apart.abs() < 2e-6, "{keys:?}: {name} {apart}");
                }
            }
        }
    }
}

/// With a mean of models by rows after every step of SGD, trainers of a model that reads own rows take the steps of
/// workers that add gradients up. So they read the same columns.
#[test]
fn trainers_read_the_columns_that_workers_in_step_read() {
    let dataset = graph(150, 3);
    let sgd =
        ["model.arch=mlp", "train.optimiser=sgd", "train.momentum=0", "train.lr=0.1", "train.eval_every=0", ALLOWED];
    for inputs in [LABELS, CODEWORDS, "model.inputs=[\"labels\", \"features\", \"propagated\"]"] {
        let keys = [&sgd[..], &[inputs]].concat();
        let own = ["schedule.mean=rows", "schedule.interval=1 step", "schedule.limit=6 steps", WORKERS];
        let averaged = run(&simulated(&[&keys[..], &own].concat()), &dataset, 3);
        let config = config(&[&keys[..], &["train.epochs=6"]].concat());
        let summed = run_on(&config, dealt(&dataset, 3));
        let apart = close(&averaged[0].trained.last, &summed[0].trained.last);
        assert!(apart < 2e-5, "{inputs}: {apart}");
        let figures = |of: &[Outcome]| of[0].trained.scores.test["accuracy"];
        assert_eq!(figures(&averaged), figures(&summed), "{inputs}");
    }
}

#[test]
fn a_run_that_is_resumed_tells_again_and_goes_on() {
    let dataset = graph(150, 3);
    let sgd =
        ["model.arch=mlp", "train.optimiser=sgd", "train.momentum=0", "train.lr=0.1", ALLOWED, CODEWORDS, WORKERS];
    let sgd = [&sgd[..], &["schedule.limit=24 steps"]].concat();
    for config in [simulated(&sgd), trainers(&sgd)] {
        let source = || Source::of(dealt(&dataset, 3));
        let straight = run_threads(&config, source(), Options::default()).expect("a run");
        let out = folder();
        let options = Options { observer: Box::new(Until(3)), ..into_folder(out.path()) };
        let stopped = run_threads(&config, source(), options).expect("a run");
        assert!(stopped[0].trained.interrupted);
        let options = Options { resume: true, keep_accounts: true, ..into_folder(out.path()) };
        let resumed = run_threads(&config, source(), options).expect("it goes on");
        assert!(bits(&resumed) == bits(&straight));
        let told = |of: &[Outcome]| of[1].sent.totals_by_kind()[Kind::Features];
        assert_eq!(told(&resumed), told(&straight));
    }
}

fn refused(config: &Config, parts: Vec<Part>) -> TrainError {
    run_threads(config, Source::of(parts), Options::default()).map(drop).expect_err("it is refused")
}

/// Parts of which the last has nothing to learn from.
fn one_learns_nothing(dataset: &Dataset) -> Vec<Part> {
    let mut parts = dealt(dataset, 3);
    parts[2].roles.iter_mut().for_each(|roles| *roles &= !Split::TRAIN);
    parts
}

#[test]
fn what_trainers_cannot_be_told_is_refused_by_key() {
    let dataset = graph(150, 3);
    let lossy = [CODEWORDS, ALLOWED, "model.arch=mlp"];
    let cases: [(&[&str], &str); 4] = [
        (&[], "schedule.evaluator = \"workers\""),
        (&["schedule.kind=llcg"], "schedule.kind = \"averaging\""),
        (&[WORKERS, "averaging.drop=[1]"], "averaging.drop"),
        (&[WORKERS, "schedule.kind=averaging", "data.inductive=true"], "data.inductive"),
    ];
    for (keys, words) in cases {
        let all = ["schedule.kind=averaging"].iter().chain(&lossy).chain(keys);
        let keys: Vec<String> = all.map(|key| (*key).to_owned()).collect();
        let error = Config::parse("", &keys).expect_err("refused");
        assert!(error.to_string().contains(words) && error.exit_code() == 2, "{keys:?}: {error}");
    }
    let error = refused(&simulated(&[&lossy[..], &[WORKERS]].concat()), one_learns_nothing(&dataset));
    assert!(error.to_string().contains("part 2") && error.exit_code() == 2, "{error}");
}

#[test]
fn trainers_tell_labels_with_leave_alone() {
    let parts = || dealt(&graph(150, 3), 3);
    let keys: Vec<String> = ["schedule.kind=averaging", LABELS].map(str::to_owned).to_vec();
    let error = Config::parse("", &keys).expect_err("refused");
    assert!(matches!(error, TrainError::NotAllowed { .. }) && error.exit_code() == 7, "{error}");
    // Features of others' nodes need no leave, and may be denied.
    let features = ["model.inputs=[\"features\", \"propagated\"]", "model.arch=mlp", "policy.deny=[\"features\"]"];
    let config = trainers(&[&features[..], &[WORKERS]].concat());
    let error = refused(&config, parts());
    assert!(error.exit_code() == 7 && error.to_string().contains("features"), "{error}");
    for outcome in spread(&config, &parts()) {
        let error = outcome.map(drop).expect_err("it is refused");
        assert!(error.exit_code() == 7, "{error}");
    }
}

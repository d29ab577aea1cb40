//! Ridge regression, which one round solves: on any number of workers what it is on one, by the bytes that were
//! predicted, and refused where something else would have to be solved.

use laconic_graph::dataset::{Dataset, Split};
use laconic_train::record::weights;
use laconic_train::run::verify::relative_difference;
use laconic_train::run::{Options, Outcome};
use laconic_train::{Config, TrainError};
use laconic_wire::{Content, Direction, FramePurpose, Kind};

use crate::defects_of_retexo::{accuracy, logits};
use crate::fixture::{config, folder, graph, into_folder, multi_label, parts, run, try_run};
use crate::ledger_is_prediction::assert_predicted;
use crate::same_bits::bits;

const RIDGE: [&str; 2] = ["schedule.kind=ridge", "model.arch=mlp"];
const LABELS: [&str; 2] = ["model.inputs=[\"features\", \"labels\"]", "policy.allow=[\"labels\"]"];
const CODEWORDS: [&str; 2] = ["model.inputs=[\"features\", \"labels\", \"codewords\"]", "policy.allow=[\"labels\"]"];
const MEANS: [&str; 1] = ["model.inputs=[\"features\", \"propagated\"]"];

#[test]
fn a_regression_on_many_workers_is_the_one_on_one() {
    let dataset = graph(180, 4);
    for keys in [&[][..], &LABELS, &["train.class_weights=balanced", "schedule.ridge=0.1"], &["data.inductive=true"]] {
        let keys = [&RIDGE[..], keys].concat();
        let one = run(&config(&keys), &dataset, 1);
        for count in [2, 3, 5] {
            let many = run(&config(&keys), &dataset, count);
            let apart = relative_difference(&many[0].trained.last, &one[0].trained.last);
            assert!(apart < 1e-5, "{keys:?} on {count}: {apart:.1e}");
            assert!(many.iter().all(|of| of.trained.last == many[0].trained.last), "{keys:?}: all solve the same");
        }
    }
}

#[test]
fn it_takes_the_bytes_that_were_predicted_and_the_same_in_each_run() {
    let dataset = graph(150, 3);
    for keys in [&[][..], &LABELS, &CODEWORDS, &MEANS, &["train.class_weights=balanced", "out.checkpoint_every=1"]] {
        let keys = [&RIDGE[..], keys].concat();
        for count in [1, 3, 4] {
            assert_predicted(&dataset, &keys, count);
        }
        let again = || bits(&run(&config(&keys), &dataset, 3));
        assert_eq!(again(), again(), "{keys:?}");
    }
    // By hand: of 12 columns and a constant, and 3 classes, four workers send each other three quarters of all sums
    // twice.
    let outcomes = run(&config(&RIDGE), &dataset, 4);
    let sums = 13 * 14 / 2 + 13 * 3;
    let sent: u64 = outcomes.iter().map(|of| of.sent.totals_by_kind()[Kind::ParameterGradients].payload).sum();
    let riders = 4 * 3 * 2 * 8;
    assert_eq!(sent, 2 * 3 * 4 * sums + riders, "{sums} sums");
    let tag = Content::GramMatrices.kind(FramePurpose::Training, Direction::Forward);
    assert_eq!(tag, Kind::ParameterGradients);
}

#[test]
fn its_model_predicts_what_was_judged() {
    let dataset = graph(150, 3);
    for keys in [&[][..], &CODEWORDS, &MEANS] {
        let config = config(&[&RIDGE[..], keys].concat());
        let (folder, out) = (folder(), "run");
        let outcomes = try_run(&config, &dataset, 3, into_folder(&folder.path().join(out))).expect("a run");
        let weights = weights::read(&folder.path().join(out).join(weights::FILE)).expect("a model").weights;
        let found = accuracy(&dataset, &logits(&config, parts(&config, &dataset, 3), &weights), Split::TEST).0;
        assert_eq!(Some(found), outcomes[0].trained.scores.test["accuracy"], "{keys:?}");
        assert_eq!(outcomes[0].trained.rounds, 1, "{keys:?}");
    }
}

#[test]
fn what_is_no_linear_model_in_one_round_is_refused_by_key() {
    let refusal = |keys: &[&str]| -> TrainError {
        let keys: Vec<String> = RIDGE.iter().chain(keys).map(|key| (*key).to_owned()).collect();
        Config::parse("", &keys).expect_err(&keys.join(" "))
    };
    for (key, words) in [
        ("model.arch=gcn", "model.arch = \"gcn\""),
        ("model.residual=true", "model.residual"),
        ("model.input_width=8", "model.input_width"),
        ("batch.size=9", "batch.size = 9"),
        ("train.sync_every=2", "train.sync_every = 2"),
        ("train.precision=bf16", "train.precision"),
        ("messages.parameters=half", "messages.parameters"),
        ("task.kind=link_prediction", "task.kind"),
        ("schedule.ridge=0", "schedule.ridge = 0"),
        ("schedule.ridge=nan", "schedule.ridge"),
    ] {
        let error = refusal(&[key]);
        assert!(error.to_string().contains(words) && error.exit_code() == 2, "{key}: {error}");
    }
    let failed = |keys: &[&str], dataset: Dataset| -> TrainError {
        let config = config(&[&RIDGE[..], keys].concat());
        try_run(&config, &dataset, 3, Options::default()).map(drop).expect_err("refused")
    };
    let error = failed(&[], multi_label(60, 3));
    assert!(error.to_string().contains("several classes"), "{error}");
    let error = failed(&["policy.deny=[\"gram_matrices\"]"], graph(60, 3));
    assert!(error.exit_code() == 7 && error.to_string().contains("gram matrices"), "{error}");
}

#[test]
fn a_round_says_how_far_the_regression_is_off() {
    let dataset = graph(150, 3);
    let losses = |ridge: &str| -> f64 {
        let out = folder();
        let config = config(&[&RIDGE[..], &[ridge]].concat());
        let outcomes: Vec<Outcome> = try_run(&config, &dataset, 3, into_folder(out.path())).expect("a run");
        assert!(outcomes[0].trained.scores.train["accuracy"].is_some());
        crate::same_bits::log(out.path())[0].loss
    };
    // A larger penalty leaves more; and nobody is further off than who says the shares of classes.
    let [little, much] = [losses("schedule.ridge=0.01"), losses("schedule.ridge=10000")];
    assert!(0.0 < little && little < much && much < 1.0, "{little} {much}");
}

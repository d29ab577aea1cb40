//! Models that read what owners tell once: bytes as predicted, one worker as many where nothing is lost, refusals with
//! a reason, and nothing without leave.

use laconic_graph::dataset::Split;
use laconic_train::plan::Plan;
use laconic_train::record::weights;
use laconic_train::run::Options;
use laconic_train::{Config, TrainError, predict};

use crate::defects_of_retexo::{accuracy, logits};
use crate::fixture::{config, folder, graph, into_folder, multi_label, parts, run, try_run, weighted};
use crate::ledger_is_prediction::assert_predicted;
use crate::methods::SCHEDULES;
use crate::one_is_many::compare;
use crate::vertex_cover::both_ways;

const LABELS: [&str; 2] = [r#"model.inputs=["features","labels"]"#, r#"policy.allow=["labels"]"#];
const CODEWORDS: [&str; 2] = [r#"model.inputs=["features","labels","codewords"]"#, r#"policy.allow=["labels"]"#];

#[test]
fn what_is_told_once_takes_the_bytes_that_were_predicted() {
    let dataset = graph(150, 3);
    for (number, schedule) in SCHEDULES.iter().enumerate() {
        let arch = ["model.arch=gcn", "model.arch=sage", "model.arch=mlp", "model.arch=gat"][number % 4];
        for inputs in [&LABELS, &CODEWORDS] {
            assert_predicted(&dataset, &[*schedule, inputs, &[arch]].concat(), 3);
        }
    }
    let alone = [r#"model.inputs=["labels"]"#, r#"policy.allow=["training_labels"]"#, "model.arch=mlp"];
    assert_predicted(&dataset, &alone, 4);
    assert_predicted(&dataset, &[&CODEWORDS[..], &["train.sync_every=4", "model.arch=mlp"]].concat(), 4);
}

#[test]
fn labels_told_as_sums_take_the_bytes_that_were_predicted_and_of_one_node_and_more_are_those_of_labels() {
    let dataset = both_ways(graph(150, 3));
    let sums = [r#"model.inputs=["features","label_sums"]"#, r#"policy.allow=["labels"]"#];
    for (least, schedule) in ["1", "2", "5"].into_iter().zip([SCHEDULES[0], SCHEDULES[4], SCHEDULES[2]]) {
        let least = format!("policy.label_group={least}");
        for keys in [[&least, "model.arch=mlp"], [&least, "messages.selection=vertex_cover"]] {
            assert_predicted(&dataset, &[&sums[..], &keys, schedule].concat(), 3);
        }
    }
    let trained = |inputs: &[&str]| {
        let keys = [inputs, &["model.arch=mlp", "model.dropout=0"]].concat();
        run(&config(&keys), &dataset, 3).swap_remove(0).trained.last
    };
    assert_eq!(trained(&[&sums[..], &["policy.label_group=1"]].concat()), trained(&LABELS));
    assert_ne!(trained(&[&sums[..], &["policy.label_group=3"]].concat()), trained(&LABELS));
}

#[test]
fn a_model_that_reads_labels_on_many_workers_is_the_one_on_one() {
    for dataset in [graph(180, 4), weighted(180, 4)] {
        for keys in [["model.arch=gcn", "schedule.kind=synchronous"], ["model.arch=sage", "schedule.kind=lazy"]] {
            compare(&dataset, &[&LABELS[..], &keys].concat(), &[2, 4]);
        }
    }
}

#[test]
fn answers_at_random_take_the_bytes_that_were_predicted_and_are_the_same_in_each_run() {
    let dataset = graph(150, 3);
    let folder = folder();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "7".repeat(64)).expect("a file");
    let secret = format!("policy.label_secret={}", secret.display());
    let keys = [&CODEWORDS[..], &["model.arch=mlp", "policy.label_epsilon=1.5", &secret]].concat();
    assert_predicted(&dataset, &keys, 3);
    let trained = |keys: &[&str]| {
        let outcomes = try_run(&config(keys), &dataset, 3, Options::default()).expect("a run");
        outcomes.into_iter().map(|outcome| outcome.trained.last).collect::<Vec<_>>()
    };
    assert_eq!(trained(&keys), trained(&keys));
    // Where nothing is told, answers make no difference; elsewhere they do.
    assert_ne!(trained(&keys), trained(&[&CODEWORDS[..], &["model.arch=mlp"]].concat()));
    // Without a secret nobody knows the bytes beforehand, and there is one after the run.
    let drawn = folder.path().join("drawn");
    let drawn = (drawn.clone(), format!("policy.label_secret={}", drawn.display()));
    let keys = [&CODEWORDS[..], &["model.arch=mlp", "policy.label_epsilon=1.5", &drawn.1]].concat();
    let first = trained(&keys);
    assert!(drawn.0.exists());
    assert_eq!(trained(&keys), first);
}

/// Why a configuration of these keys is refused, before there are data.
fn refusal(keys: &[&str]) -> TrainError {
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    Config::parse("", &keys).expect_err(&keys.join(" "))
}

#[test]
fn labels_are_told_with_leave_alone() {
    let refused = refusal(&LABELS[..1]);
    assert!(matches!(refused, TrainError::NotAllowed { .. }) && refused.exit_code() == 7, "{refused}");
    assert!(refused.to_string().contains(r#"policy.allow = ["labels"]"#), "{refused}");
    let refused = refusal(&[&LABELS[..], &[r#"policy.deny=["training_labels"]"#]].concat());
    assert!(refused.exit_code() == 7 && refused.to_string().contains("policy.deny has it"), "{refused}");
    // Whether or not anything is told.
    assert!(refusal(&[r#"policy.allow=["lables"]"#]).to_string().contains("scores_and_labels"));
}

#[test]
fn inputs_that_cannot_be_told_are_refused_with_a_reason() {
    for (keys, words) in [
        (&[r#"model.inputs=["labels","labels"]"#] as &[&str], "stands there twice"),
        (&[r#"model.inputs=["features","codewords"]"#], "is made from \"labels\""),
        (&["model.inputs=[]"], "expected one of features, labels, codewords"),
        (&[r#"model.inputs=["features","lables"]"#], "did you mean \"labels\""),
        (&["data.inductive=true"], "data.inductive"),
        (&["messages.selection=none", "messages.evaluation=none"], "takes out"),
        (&["task.kind=link_prediction"], "learns none"),
        (&["policy.label_epsilon=1"], "expected policy.label_secret"),
        (&["policy.label_group=3"], "\"label_sums\" tells sums"),
        (&["policy.label_group=0"], "expected 1 node or more"),
        (&["schedule.kind=label_propagation", "policy.label_group=3"], "passes labels on one by one"),
        (&["policy.label_epsilon=0", "policy.label_secret=s"], "above 0"),
        (
            &["model.inputs=[\"features\"]", "policy.label_epsilon=1", "policy.label_secret=s"],
            "about labels, and none are told",
        ),
        (
            &["schedule.kind=correct_and_smooth", "policy.label_epsilon=1", "policy.label_secret=s"],
            "passes labels on as they are",
        ),
    ] {
        let keys = [&LABELS[..], keys].concat();
        let error = refusal(&keys).to_string();
        assert!(error.contains(words), "{keys:?}: {error}");
    }
    let error = try_run(&config(&LABELS), &multi_label(60, 3), 2, Options::default()).err().expect("refused");
    assert!(error.to_string().contains("several classes"), "{error}");
}

#[test]
fn a_trained_model_reads_the_same_when_it_predicts() {
    let dataset = graph(150, 3);
    let secret = concat!("policy.label_secret=", env!("CARGO_TARGET_TMPDIR"), "/predicted.secret");
    let at_random = ["model.arch=mlp", "policy.label_epsilon=2", secret];
    for keys in [&["model.arch=mlp"] as &[&str], &["model.arch=gcn", "schedule.kind=lazy"], &at_random] {
        let config = config(&[&CODEWORDS[..], keys].concat());
        let (folder, out) = (folder(), "run");
        let outcomes = try_run(&config, &dataset, 3, into_folder(&folder.path().join(out))).expect("a run");
        let weights = weights::read(&folder.path().join(out).join(weights::FILE)).expect("a model").weights;
        let found = accuracy(&dataset, &logits(&config, parts(&config, &dataset, 3), &weights), Split::TEST).0;
        assert_eq!(Some(found), outcomes[0].trained.scores.test["accuracy"], "{keys:?}");
        // By the library's front door, on one worker.
        let run = laconic_train::train(&config, dataset.clone(), Options::default()).expect("a run");
        let rows: usize =
            predict(&run, dataset.clone()).expect("a prediction").iter().map(|part| part.nodes.len()).sum();
        assert_eq!(rows, 150, "{keys:?}");
    }
}

#[test]
fn a_note_says_where_layers_read_labels_of_nodes_in_their_neighbours() {
    let dataset = graph(60, 3);
    let notes = |arch: &str| {
        let config = config(&[&LABELS[..], &[arch]].concat());
        Plan::of(&config, &parts(&config, &dataset, 2)[0].global).expect("a plan").notes().join("\n")
    };
    assert!(notes("model.arch=gcn").contains("sees its own label"), "{}", notes("model.arch=gcn"));
    assert!(!notes("model.arch=mlp").contains("sees its own label"), "{}", notes("model.arch=mlp"));
}

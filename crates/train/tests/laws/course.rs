//! What is spread over a run: the learning rate goes by the end that the run has, and stays as it ended where the run
//! goes on; and what independent trainers count over all of them.

use laconic_graph::part::Part;
use laconic_train::config::{Config, Pace};
use laconic_train::run::source::Source;
use laconic_train::run::{Options, run_threads};

use crate::averaging::{assert_as_predicted, close, dealt, last, run, run_on, simulated, trainers};
use crate::fixture::{config, folder, graph, into_folder, parts, try_run};
use crate::same_bits::{bits, log};

/// By SGD on the graph of two parts.
const SGD: &[&str] = &["train.optimiser=sgd", "train.momentum=0", "train.lr=0.1"];

/// The rate and the loss that a log has of each round.
fn rates(config: &Config, parts: Vec<Part>) -> Vec<(f32, f64)> {
    let out = folder();
    let ran = run_threads(config, Source::of(parts), into_folder(out.path()));
    ran.unwrap_or_else(|error| panic!("{error}"));
    log(out.path()).iter().map(|report| (report.lr, report.loss)).collect()
}

fn near(found: f32, expected: f64, what: &str) {
    assert!((f64::from(found) - expected).abs() < 1e-6, "{what}: {found}, and not {expected}");
}

#[test]
fn trainers_rates_fall_until_their_run_ends_whatever_train_epochs_says() {
    let graph = graph(60, 3);
    for epochs in ["train.epochs=7", "train.epochs=200"] {
        let keys = ["train.lr_schedule=linear", "schedule.interval=3 steps", "schedule.limit=30 steps", epochs];
        for config in [simulated(&[SGD, &keys[..]].concat()), trainers(&[SGD, &keys[..]].concat())] {
            let lines = rates(&config, dealt(&graph, 2));
            assert_eq!(lines.len(), 10);
            for (mean, (rate, loss)) in (1u32..).zip(&lines) {
                // The last step before a mean is step 3·mean - 1, counted from 0, of 30.
                near(*rate, 0.1 * (1.0 - f64::from(3 * mean - 1) / 30.0), "linear");
                assert!(lines.iter().filter(|other| other.1 == *loss).count() == 1, "every mean learns: {lines:?}");
            }
        }
    }
}

#[test]
fn trainers_rates_go_by_the_time_where_a_time_ends_their_run() {
    let graph = graph(60, 3);
    let keys = ["train.lr_schedule=cosine", "schedule.interval=2s", "schedule.limit=20s", "transport.speeds=[5.0]"];
    for more in [&["train.epochs=3"][..], &["schedule.kind=llcg", "train.epochs=3"]] {
        let config = simulated(&[SGD, &keys[..], more].concat());
        let lines = rates(&config, dealt(&graph, 2));
        assert!(lines.len() >= 8, "{lines:?}");
        near(lines[0].0, 0.1, "nothing is over when trainers set out");
        assert!(lines.windows(2).all(|two| two[1].0 < two[0].0 && two[1].1 != two[0].1), "{lines:?}");
        assert!(lines.last().unwrap().0 < 0.02, "{lines:?}");
        if more.len() == 1 {
            // Called every two seconds, trainers answer when they have ended their step of a fifth, in no time.
            let cosine = |mean: usize| 0.05 * (1.0 + (std::f64::consts::PI * 2.2 * mean as f64 / 20.0).cos());
            lines.iter().enumerate().for_each(|(mean, (rate, _))| near(*rate, cosine(mean), "cosine"));
        }
    }
}

#[test]
fn trainers_told_of_the_time_are_told_as_many_bytes_as_were_predicted() {
    let keys = ["train.lr_schedule=linear", "schedule.interval=2s", "schedule.limit=10s", "transport.speeds=[5.0]"];
    let outcomes = run(&simulated(&keys), &graph(60, 3), 2);
    let bytes = &outcomes[0].summary.as_ref().unwrap().bytes;
    assert!(bytes.is_bound && Some(bytes.total) == bytes.predicted, "{} of {:?}", bytes.total, bytes.predicted);
}

#[test]
fn trainers_of_unlike_parts_all_come_to_the_end_of_their_rates() {
    // One has a batch an epoch, the other several, and the run ends with the epochs of the first.
    let graph = graph(150, 3);
    let mut dealt = dealt(&graph, 2);
    let train: Vec<usize> = (0..dealt[0].roles.len()).filter(|row| dealt[0].roles[*row] & 1 != 0).collect();
    train.iter().skip(4).for_each(|row| dealt[0].roles[*row] = 0);
    let keys = ["train.lr_schedule=linear", "schedule.interval=2 steps", "schedule.limit=5 epochs", "batch.size=5"];
    let lines = rates(&simulated(&[SGD, &keys[..]].concat()), dealt);
    assert_eq!(lines.len(), 3, "five steps of the smaller part, in whole intervals");
    for (mean, (rate, _)) in (1u32..).zip(&lines) {
        near(*rate, 0.1 * (1.0 - f64::from(2 * mean - 1) / 6.0), "linear");
    }
}

/// Rounds are as many as trained; behind the horizon the rate stays.
#[test]
fn rates_run_towards_their_horizon_and_stay_there() {
    let graph = graph(60, 3);
    for schedule in [&["schedule.kind=synchronous"][..], &["schedule.kind=lazy", "schedule.rounds=[10]"]] {
        let keys = ["train.epochs=10", "train.lr_schedule=cosine", "train.horizon=[\"4 epochs\"]", "train.lr=0.1"];
        let config = config(&[schedule, &keys[..]].concat());
        let lines = rates(&config, parts(&config, &graph, 2));
        for (round, (rate, _)) in lines.iter().enumerate() {
            let share = (round % 10).min(3) as f64 / 4.0;
            near(*rate, 0.05 * (1.0 + (std::f64::consts::PI * share).cos()), "cosine");
        }
    }
}

#[test]
fn who_goes_on_behind_the_end_keeps_the_horizon_that_the_run_had() {
    let before = config(&["train.epochs=10"]);
    let later = |keys: &[&str]| config(keys).keeping_horizon(&before).train.horizon;
    assert_eq!(later(&["train.epochs=20"]), [Pace::Epochs(10)]);
    assert_eq!(later(&["train.epochs=10"]), []);
    // Also the second time.
    let twice = config(&["train.epochs=20", "train.horizon=[\"10 epochs\"]"]);
    let again = config(&["train.epochs=40", "train.horizon=[\"10 epochs\"]"]).keeping_horizon(&twice);
    assert_eq!(again.train.horizon, [Pace::Epochs(10)]);
    let stages = config(&["schedule.kind=lazy", "schedule.rounds=[10, 30]", "train.epochs=50"]);
    let later = config(&["schedule.kind=lazy", "schedule.rounds=[20, 30]", "train.epochs=50"]).keeping_horizon(&stages);
    assert_eq!(later.train.horizon, [10, 30, 50].map(Pace::Epochs));
    let short = trainers(&[]).keeping_horizon(&trainers(&["schedule.limit=6 steps"]));
    assert_eq!(short.train.horizon, [Pace::Steps(6)]);
}

#[test]
fn a_run_that_goes_on_with_its_horizon_ends_as_one_that_had_it_from_the_start() {
    let graph = graph(60, 3);
    for keys in [
        &["train.lr_schedule=cosine"][..],
        &["messages.forward={ codec = \"masked\", ratio = { from = 4, slope = 2 } }", "schedule.cache_inputs=false"],
    ] {
        let (first, all) = ("train.epochs=6", ["train.epochs=9", "train.horizon=[\"6 epochs\"]"]);
        let straight = try_run(&config(&[keys, &all[..]].concat()), &graph, 2, Options::default()).expect("a run");
        let out = folder();
        let begun = config(&[keys, &[first]].concat());
        try_run(&begun, &graph, 2, into_folder(out.path())).expect("a run");
        let changes = vec!["train.epochs".to_owned(), "train.horizon".to_owned()];
        let options = Options { resume: true, changes, ..into_folder(out.path()) };
        let resumed = try_run(&config(&[keys, &all[..]].concat()), &graph, 2, options).expect("it goes on");
        assert!(bits(&resumed) == bits(&straight), "{keys:?}");
    }
}

#[test]
fn balanced_classes_are_those_of_all_trainers_and_not_of_each_part() {
    let graph = graph(150, 3);
    for keys in [&[][..], &["batch.size=9"], &["schedule.kind=llcg", "schedule.corrections=1"]] {
        // Parts of unlike classes: by halves of all nodes, as they come.
        let weights = |key: &str| last(&run_on(&simulated(&[keys, SGD, &[key]].concat()), skewed(&graph)));
        let balanced = weights("train.class_weights=balanced");
        assert_eq!(balanced, weights(&format!("train.class_weights={:?}", over_all(&graph))), "{keys:?}");
        assert_ne!(balanced, weights("train.class_weights=[1, 1, 1]"), "{keys:?}");
    }
}

/// All / (classes · those of the class), by hand.
fn over_all(graph: &laconic_graph::dataset::Dataset) -> Vec<f32> {
    let laconic_graph::dataset::Labels::Single { values, .. } = &graph.labels else { panic!("one class a node") };
    let mut counts = [0.0f64; 3];
    for (value, roles) in values.iter().zip(&graph.splits[0].roles) {
        if roles & 1 != 0 && *value >= 0 {
            counts[*value as usize] += 1.0;
        }
    }
    counts.iter().map(|count| (counts.iter().sum::<f64>() / (3.0 * count)) as f32).collect()
}

/// Two parts, of which one has most nodes of class 0.
fn skewed(graph: &laconic_graph::dataset::Dataset) -> Vec<Part> {
    let laconic_graph::dataset::Labels::Single { values, .. } = &graph.labels else { panic!("one class a node") };
    let assignment: Vec<u32> =
        values.iter().enumerate().map(|(node, class)| u32::from(*class != 0 || node % 5 == 0)).collect();
    laconic_graph::part::cut(graph, Some(0), &assignment, 2).expect("parts")
}

#[test]
fn models_count_by_rows_whatever_the_classes_of_rows_weigh() {
    // All parts have as many training rows.
    let graph = graph(156, 3);
    let mut parts = dealt(&graph, 3);
    let learns = |part: &Part, row: usize| part.roles[row] & 1 != 0 && part.labels.known(row) > 0;
    let rows = |part: &Part| (0..part.roles.len()).filter(|row| learns(part, *row)).collect::<Vec<_>>();
    let least = parts.iter().map(|part| rows(part).len()).min().unwrap();
    for part in &mut parts {
        rows(part).into_iter().skip(least).for_each(|row| part.roles[row] = 0);
    }
    let ran = |mean: &str| {
        let config = simulated(&[SGD, &["train.class_weights=[0.1, 5, 1]", mean]].concat());
        run_on(&config, parts.clone())
    };
    let [by_rows, uniform] = ["schedule.mean=rows", "schedule.mean=uniform"].map(ran);
    assert!(close(&by_rows[0].trained.last, &uniform[0].trained.last) < 1e-6);
}

#[test]
fn corrections_go_on_when_they_have_read_every_batch_of_the_run() {
    let graph = graph(150, 3);
    for keys in [
        &["batch.size=300", "train.epochs=20", "schedule.interval=1 epoch", "schedule.limit=20 epochs"][..],
        &["batch.size=40", "train.epochs=3", "schedule.corrections=30", "schedule.limit=3 epochs"],
        &["batch.size=40", "train.epochs=2", "task.kind=link_prediction", "task.negatives=local", "model.arch=gcn"],
        &["batch.size=9", "batch.kind=clusters", "train.epochs=1"],
        &[
            "batch.size=9",
            "train.epochs=0",
            "schedule.interval=0.01s",
            "schedule.limit=0.1s",
            "transport.speeds=[900.0]",
        ],
    ] {
        let outcomes = run(&simulated(&[&["schedule.kind=llcg"], keys].concat()), &graph, 3);
        if !keys.contains(&"schedule.limit=0.1s") {
            assert_as_predicted(&outcomes, keys);
        }
    }
}

#[test]
fn a_part_that_nothing_can_be_learned_from_is_refused_before_an_earlier_run_moves() {
    let (graph, out) = (graph(60, 3), folder());
    let first = simulated(&[]);
    run_threads(&first, Source::of(dealt(&graph, 3)), into_folder(out.path())).expect("a run");
    let before = std::fs::read(out.path().join("metrics.jsonl")).expect("a log");
    let mut lonely = dealt(&graph, 3);
    // No edge of the first part ends at one of its own nodes any more.
    let own = lonely[0].nodes.clone();
    let keeps = |id: u64| own.binary_search(&id).is_err();
    lonely[0] = lonely.remove(0).keeping(&keeps);
    for kind in ["transport.kind=simulated", "transport.kind=threads"] {
        let keys = ["task.kind=link_prediction", "task.negatives=local", "model.arch=gcn", kind];
        let error = run_threads(&trainers(&keys), Source::of(lonely.clone()), into_folder(out.path())).map(|_| ());
        let error = error.expect_err("there is nothing to learn").to_string();
        assert!(error.contains("part 0 has nothing to train on"), "{error}");
        assert_eq!(std::fs::read(out.path().join("metrics.jsonl")).expect("it is there"), before);
    }
    let folders = std::fs::read_dir(out.path().parent().unwrap()).unwrap().flatten();
    let name = out.path().file_name().unwrap().to_string_lossy().into_owned();
    let moved = folders.filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("{name}."))).count();
    assert_eq!(moved, 0);
}

#[test]
fn a_prediction_is_a_bound_where_a_trainer_does_not_keep_up_and_none_where_nobody_knows() {
    let graph = graph(60, 3);
    let bytes = |keys: &[&str]| run(&simulated(keys), &graph, 3)[0].summary.as_ref().unwrap().bytes.clone();
    for (grace, keeps_up) in
        [("schedule.grace=0.1s", false), ("schedule.grace=1s", false), ("schedule.grace=10s", true)]
    {
        let keys =
            ["schedule.interval=4 steps", "schedule.limit=20 steps", "transport.speeds=[10.0, 1.0, 10.0]", grace];
        let found = bytes(&keys);
        assert_eq!(found.is_bound, !keeps_up, "{grace}");
        assert!(
            found.predicted.is_some_and(|most| most >= found.total),
            "{grace}: {} {:?}",
            found.total,
            found.predicted
        );
        assert!(!keeps_up || found.predicted == Some(found.total), "{grace}");
    }
    let unknown = bytes(&["schedule.interval=2s", "schedule.limit=20 steps"]);
    assert_eq!((unknown.predicted, unknown.is_bound), (None, true));
    // Who comes again is sent what nobody had foreseen.
    let fault = "transport.faults=[{ who = 1, at = \"5 s\", kind = \"killed\", back = \"1 s\" }]";
    let again = bytes(&["schedule.interval=4 steps", "schedule.limit=20 steps", fault]);
    assert!(again.is_bound && again.predicted.is_none_or(|most| most >= again.total), "{again:?}");
}

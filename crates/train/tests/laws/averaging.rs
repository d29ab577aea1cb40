//! Independent trainers: what a mean of models is in the limits in which it is something else, and that a simulated
//! run is the run.

use laconic_graph::dataset::{Dataset, Split};
use laconic_graph::part::{Part, cut};
use laconic_train::TrainError;
use laconic_train::config::Config;
use laconic_train::fit::observe::RoundReport;
use laconic_train::record::observer::Observer;
use laconic_train::record::trainers::AveragingSummary;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, Outcome, run_threads};

use crate::fixture::{config, folder, graph, into_folder, parallel};
use crate::same_bits::{bits, log};

/// Keys of a run of trainers, which take a mean every three steps, and others.
pub fn trainers(keys: &[&str]) -> Config {
    let all = ["schedule.kind=averaging", "schedule.interval=3 steps", "schedule.limit=12 steps"];
    config(&[&all, keys].concat())
}

/// The same by the simulated clock.
pub fn simulated(keys: &[&str]) -> Config {
    trainers(&[&["transport.kind=simulated"], keys].concat())
}

/// Parts with as many training nodes each as there are, assigned in turn.
pub fn dealt(dataset: &Dataset, count: u32) -> Vec<Part> {
    let (mut train, mut others) = (0, 0);
    let labelled = |node: usize| dataset.labels.known(node) > 0;
    let mut part = |(node, roles): (usize, &u8)| {
        let turn = if roles & Split::TRAIN != 0 && labelled(node) { &mut train } else { &mut others };
        *turn += 1;
        (*turn - 1) % count
    };
    let assignment: Vec<u32> = dataset.splits[0].roles.iter().enumerate().map(&mut part).collect();
    cut(dataset, Some(0), &assignment, count).expect("parts")
}

pub fn run_on(config: &Config, parts: Vec<Part>) -> Vec<Outcome> {
    let text = || config.to_toml().unwrap_or_default();
    run_threads(config, Source::of(parts), Options::default()).unwrap_or_else(|error| panic!("{error}\n{}", text()))
}

pub fn run(config: &Config, dataset: &Dataset, count: u32) -> Vec<Outcome> {
    run_on(config, dealt(dataset, count))
}

pub fn averaging(outcomes: &[Outcome]) -> &AveragingSummary {
    outcomes[0].summary.as_ref().and_then(|summary| summary.averaging.as_ref()).expect("a run of trainers")
}

/// The bits of a model.
fn exact(model: &[f32]) -> Vec<u32> {
    model.iter().map(|value| value.to_bits()).collect()
}

pub fn last(outcomes: &[Outcome]) -> Vec<u32> {
    exact(&outcomes[0].trained.last)
}

pub fn close(left: &[f32], right: &[f32]) -> f32 {
    let scale = right.iter().fold(1e-3f32, |most, value| most.max(value.abs()));
    left.iter().zip(right).fold(0.0f32, |most, (a, b)| most.max((a - b).abs())) / scale
}

/// What the laws are stated over: full graphs, batches, clusters, lazy stages, corrections, other layers, links.
pub const KINDS: &[&[&str]] = &[
    &[],
    &["model.arch=gcn", "train.weight_decay=0.01"],
    &["model.arch=gat", "schedule.mean=rows"],
    &["batch.size=9", "batch.fanouts=[3, 2]", "schedule.mean=steps"],
    &["batch.size=9", "batch.kind=clusters"],
    &["schedule.halo=frozen"],
    &["schedule.halo=frozen", "batch.size=7", "model.arch=gcn", "schedule.start=mlp"],
    &["schedule.halo=frozen", "messages.forward={ codec = \"quantised\", bits = 8 }"],
    &["schedule.halo=frozen", "data.inductive=true", "batch.size=7", "model.arch=gat"],
    &["model.norm=batch", "model.residual=true"],
    &["task.kind=link_prediction", "task.negatives=local", "model.arch=gcn"],
    &["task.kind=link_prediction", "task.negatives=local", "task.decoder=mlp", "batch.size=40"],
    &["task.kind=link_prediction", "task.negatives=local", "schedule.halo=frozen"],
    &["task.kind=link_prediction", "task.negatives=local", "model.arch=rgcn", "task.decoder=distmult"],
    &["task.kind=link_prediction", "task.negatives=local", "model.arch=gcn", "task.decoder=distmult", "batch.size=40"],
];

/// The same with models that lose something on their way.
pub const CODED: &[&[&str]] = &[
    &["messages.parameters=half"],
    &["messages.parameters={ codec = \"quantised\", bits = 8 }", "schedule.mean=steps", "batch.size=9"],
    &["messages.parameters={ codec = \"quantised\", bits = 2 }", "messages.error_feedback=false"],
    &["messages.parameters={ codec = \"quantised\", bits = 4 }", "schedule.halo=frozen"],
    &["messages.parameters={ codec = \"quantised\", bits = 4 }", "schedule.kind=llcg", "schedule.corrections=2"],
];

/// The graph of these laws; one of several relations for those who read them.
pub fn dataset(keys: &[&str]) -> Dataset {
    if keys.contains(&"task.decoder=distmult") { parallel(150, 3) } else { graph(150, 3) }
}

#[test]
fn a_simulated_run_is_the_run_on_threads() {
    for keys in KINDS.iter().chain(CODED) {
        let dataset = dataset(keys);
        for count in [1, 2, 3] {
            let [played, really] = [simulated(keys), trainers(keys)].map(|config| run(&config, &dataset, count));
            assert_eq!(bits(&played), bits(&really), "{keys:?} with {count} trainers");
            for (played, really) in played.iter().zip(&really) {
                let of = |outcome: &Outcome| outcome.sent.iter().collect::<Vec<_>>();
                assert_eq!(of(played), of(really), "{keys:?}: rank {} of {count}", played.rank);
            }
        }
    }
}

/// Every account is as predicted, and the summary says so.
pub fn assert_as_predicted(outcomes: &[Outcome], keys: &[&str]) {
    for outcome in outcomes {
        let differences = outcome.predicted.difference(&outcome.sent);
        let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
        assert!(differences.is_empty(), "{keys:?}: rank {} of {}: {differences:?}", outcome.rank, outcomes.len());
    }
    let summary = outcomes[0].summary.as_ref().unwrap();
    assert!(!summary.bytes.is_bound && Some(summary.bytes.total) == summary.bytes.predicted, "{keys:?}");
}

#[test]
fn what_is_sent_is_what_was_predicted_account_by_account() {
    for keys in KINDS
        .iter()
        .chain(CODED)
        .chain([&["schedule.limit=2 epochs", "schedule.interval=1 epoch", "batch.size=9"][..]].iter())
    {
        let dataset = dataset(keys);
        for count in [1, 3] {
            let outcomes = run(&simulated(keys), &dataset, count);
            assert_as_predicted(&outcomes, keys);
            let summary = outcomes[0].summary.as_ref().unwrap();
            assert_eq!(summary.bytes.received, summary.bytes.total, "{keys:?}");
        }
    }
}

#[test]
fn one_trainer_trains_as_a_worker_alone_does_bit_for_bit() {
    for keys in KINDS {
        let dataset = dataset(keys);
        // What one worker does alone is synchronous, or lazy, training; a batch is a step.
        let mut plain: Vec<&str> = keys.iter().copied().filter(|key| *key != "schedule.halo=frozen").collect();
        plain.retain(|key| !key.starts_with("schedule.mean") && !key.starts_with("messages."));
        let frozen = keys.contains(&"schedule.halo=frozen");
        let batches = keys.iter().any(|key| key.starts_with("batch.size"));
        if frozen {
            plain.push("schedule.kind=lazy");
        }
        plain.extend(["train.epochs=4", "train.eval_every=1"]);
        let own: Vec<&str> = keys.iter().copied().filter(|key| !key.starts_with("messages.")).collect();
        let one = [&own[..], &["schedule.limit=4 epochs", "schedule.interval=1 epoch"]].concat();
        let alone = run_threads(&config(&plain), Source::of(dealt(&dataset, 1)), Options::default());
        let alone = alone.unwrap_or_else(|error| panic!("{keys:?}: {error}"));
        for interval in ["schedule.interval=1 epoch", "schedule.interval=1 step"] {
            if interval.ends_with("step") && batches {
                // Another mean would be judged, and another chosen, in the midst of an epoch.
                continue;
            }
            let outcomes = run(&simulated(&[&one[..], &[interval]].concat()), &dataset, 1);
            assert_eq!(last(&outcomes), last(&alone), "{keys:?}, {interval}");
            let chosen =
                |outcomes: &[Outcome]| outcomes[0].trained.chosen.iter().map(|of| exact(of)).collect::<Vec<_>>();
            assert_eq!(chosen(&outcomes), chosen(&alone), "{keys:?}, {interval}");
        }
    }
}

#[test]
fn with_a_mean_after_every_step_of_sgd_trainers_of_equal_parts_are_synchronous_workers_without_messages() {
    let dataset = graph(210, 3);
    let sgd = ["train.optimiser=sgd", "train.momentum=0", "train.lr=0.1", "train.weight_decay=0.01"];
    for (count, keys) in [(2, &["model.arch=gcn"][..]), (3, &["model.arch=sage"]), (5, &["model.arch=gin"])] {
        let mut parts = dealt(&dataset, count);
        // As many training nodes each: of those that are over nothing is learned.
        let rows = |part: &Part| -> Vec<usize> {
            let trains = |row: &usize| part.roles[*row] & Split::TRAIN != 0;
            (0..part.roles.len()).filter(trains).collect()
        };
        let labelled =
            |part: &Part| -> Vec<usize> { rows(part).into_iter().filter(|row| part.labels.known(*row) > 0).collect() };
        let fewest = parts.iter().map(|part| labelled(part).len()).min().unwrap();
        for part in &mut parts {
            let keep = labelled(part)[..fewest].to_vec();
            rows(part).into_iter().filter(|row| !keep.contains(row)).for_each(|row| part.roles[row] = 0);
        }
        assert!(fewest > 5, "{fewest}");
        parts.iter_mut().for_each(|part| part.global.train = u64::from(count) * fewest as u64);
        let step = ["schedule.interval=1 step", "schedule.limit=8 steps"];
        let averaged = run_on(&simulated(&[&sgd, keys, &step].concat()), parts.clone());
        let none = ["messages.selection=none", "train.epochs=8"];
        let summed = run_on(&config(&[&sgd, keys, &none].concat()), parts);
        let apart = close(&averaged[0].trained.last, &summed[0].trained.last);
        assert!(apart < 2e-5, "{keys:?} with {count}: {apart}");
    }
}

#[test]
fn frozen_aggregates_with_a_mean_after_every_step_of_sgd_are_lazy_training() {
    let dataset = graph(150, 3);
    let sgd = ["train.optimiser=sgd", "train.momentum=0", "train.lr=0.1", "train.weight_decay=0.01"];
    for (count, keys) in [(2, &["model.arch=gcn"][..]), (3, &["model.arch=sage"])] {
        let step = ["schedule.halo=frozen", "schedule.mean=rows", "schedule.interval=1 step", "schedule.limit=6 steps"];
        let averaged = run(&simulated(&[&sgd, keys, &step].concat()), &dataset, count);
        let lazy = run(&config(&[&sgd, keys, &["schedule.kind=lazy", "train.epochs=6"]].concat()), &dataset, count);
        for (stage, (averaged, lazy)) in averaged[0].trained.chosen.iter().zip(&lazy[0].trained.chosen).enumerate() {
            let apart = close(averaged, lazy);
            assert!(apart < 5e-5, "{keys:?} with {count}, stage {stage}: {apart}");
        }
        assert_eq!(averaged[0].trained.best_round, lazy[0].trained.best_round);
    }
}

#[test]
fn a_mean_in_few_bits_costs_as_many_and_learns_as_well() {
    let dataset = graph(150, 3);
    let all = ["schedule.interval=5 steps", "schedule.limit=100 steps", "train.lr=0.05"];
    let of = |keys: &[&str]| {
        let outcomes = run(&simulated(&[&all[..], keys].concat()), &dataset, 3);
        let summary = outcomes[0].summary.as_ref().unwrap();
        let accuracy = outcomes[0].trained.scores.val["accuracy"].expect("a figure");
        (accuracy, summary.bytes.by_kind["parameters"] as f64)
    };
    let (exact, bytes) = of(&[]);
    for (bits, least) in [(8, 3.5), (4, 6.5)] {
        let codec = format!("messages.parameters={{ codec = \"quantised\", bits = {bits} }}");
        let (coded, fewer) = of(&[&codec]);
        assert!(bytes / fewer > least, "{bits} bits: {} times fewer bytes", bytes / fewer);
        assert!(coded > exact - 0.1, "{bits} bits: {coded}, exact {exact}");
    }
}

#[test]
fn llcg_without_corrections_is_psgd_pa_and_with_some_is_not() {
    let dataset = graph(150, 3);
    let of = |keys: &[&str]| last(&run(&simulated(keys), &dataset, 3));
    let psgd = of(&["schedule.kind=psgd_pa"]);
    assert_eq!(of(&["schedule.kind=llcg", "schedule.corrections=0"]), psgd);
    assert_eq!(of(&["schedule.kind=averaging"]), psgd);
    assert_ne!(of(&["schedule.kind=llcg"]), psgd);
}

#[test]
fn ggs_is_synchronous_training_in_batches() {
    let dataset = graph(150, 3);
    let keys = ["batch.size=20", "batch.fanouts=[3, 2]", "train.epochs=2"];
    let of = |kind: &str, count| bits(&run(&config(&[&keys[..], &[kind]].concat()), &dataset, count));
    for count in [1, 3] {
        assert_eq!(of("schedule.kind=ggs", count), of("schedule.kind=synchronous", count));
    }
}

#[test]
fn a_dropped_part_is_never_seen_and_the_mean_is_of_the_others() {
    let dataset = graph(150, 3);
    for halo in ["schedule.halo=none", "schedule.halo=frozen"] {
        let parts = dealt(&dataset, 3);
        let dropped = run_on(&simulated(&[halo, "averaging.drop=[1]"]), parts.clone());
        let gone = |id: u64| parts[1].nodes.binary_search(&id).is_ok();
        let kept = parts.iter().filter(|part| part.index != 1).enumerate();
        let without = kept.map(|(index, part)| {
            let part = part.clone().keeping(&|id| !gone(id));
            part.numbered(index as u32, 2)
        });
        let others = run_on(&simulated(&[halo]), without.collect());
        assert_eq!(last(&dropped), last(&others), "{halo}");
        assert_eq!(averaging(&dropped).trainers.iter().map(|of| of.part).collect::<Vec<_>>(), [0, 2]);
        assert!(averaging(&dropped).trainers.iter().all(|of| of.means == averaging(&dropped).means));
    }
}

/// Faults of every kind, with the aggregator lost in the end or not.
const FAULTS: &str = "transport.faults=[{ who = 0, at = \"5 s\", kind = \"killed\", back = \"4 s\" }, \
    { who = 1, at = \"8 s\", kind = \"stalled\", back = \"30 s\" }, { who = 2, kind = \"switched_off\" }]";

#[test]
fn the_same_seed_replays_the_same_run_with_all_its_faults() {
    let dataset = graph(150, 3);
    for keys in [&["schedule.limit=60 s"][..], &["schedule.limit=40 steps", "batch.size=9"]] {
        let all = [keys, &["schedule.interval=6 s", "schedule.grace=5 s", "schedule.quorum=2", FAULTS]].concat();
        let config = simulated(&[&all[..], &["transport.speeds=[1.0, 0.7, 2.0, 1.3]"]].concat());
        let [first, second] = [(); 2].map(|()| {
            let out = folder();
            let outcomes = run_threads(&config, Source::of(dealt(&dataset, 4)), into_folder(out.path())).unwrap();
            let ledger = std::fs::read_to_string(out.path().join("ledger.csv")).unwrap();
            (bits(&outcomes), averaging(&outcomes).clone(), log(out.path()), ledger)
        });
        assert_eq!(first, second, "{keys:?}");
        let notes = &first.1.notes;
        for what in ["trainer 2 had not come", "trainer 0 was lost", "trainer 0 came", "trainer 1 had not answered"] {
            assert!(notes.iter().any(|note| note.contains(what)), "{keys:?}: {what} in {notes:?}");
        }
        let members: Vec<Vec<u32>> = first.2.iter().map(|report: &RoundReport| report.members.clone()).collect();
        assert!(members.iter().all(|members| members.len() >= 3 || members.len() == 2), "{members:?}");
        assert!(members.iter().all(|members| !members.contains(&2)), "{members:?}");
    }
}

#[test]
fn a_run_that_loses_its_aggregator_goes_on_from_its_last_mean() {
    let dataset = graph(150, 3);
    for keys in [&[][..], &["schedule.halo=frozen"]] {
        let lost = "transport.faults=[{ who = \"aggregator\", at = \"7.5 s\", kind = \"killed\" }]";
        let all = [keys, &["schedule.interval=2 steps", "schedule.limit=12 steps"]].concat();
        let out = folder();
        let config = simulated(&[&all[..], &[lost]].concat());
        let error = run_threads(&config, Source::of(dealt(&dataset, 3)), into_folder(out.path()));
        let Err(TrainError::AggregatorLost { means }) = error.map(|_| ()) else { panic!("its aggregator was lost") };
        assert_eq!(means, 3, "{keys:?}");
        let calm = simulated(&all);
        let options = Options { resume: true, ..into_folder(out.path()) };
        let outcomes = run_threads(&calm, Source::of(dealt(&dataset, 3)), options).unwrap();
        let stages = outcomes[0].trained.chosen.len() as u32;
        assert_eq!(
            (averaging(&outcomes).ending.as_str(), outcomes[0].trained.rounds),
            ("limit", 6 * stages),
            "{keys:?}"
        );
        let all = averaging(&outcomes);
        assert_eq!((all.means, all.curve.len() as u32), (6 * stages, 6 * stages), "{keys:?}: the curve is the run's");
        assert!(all.trainers.iter().all(|trainer| trainer.means == 6 * stages), "{keys:?}");
        assert!(all.curve.windows(2).all(|pair| pair[0].seconds < pair[1].seconds), "{keys:?}: {:?}", all.curve);
        let rounds: Vec<u32> = log(out.path()).iter().map(|report| report.round).collect();
        assert_eq!(rounds, (1..=6 * stages).collect::<Vec<_>>(), "{keys:?}: no mean is lost, and none is there twice");
    }
}

#[test]
fn a_run_of_trainers_goes_on_as_what_it_was() {
    let dataset = graph(90, 3);
    let all = ["schedule.interval=2 steps", "schedule.limit=4 steps"];
    let out = folder();
    run_threads(&simulated(&all), Source::of(dealt(&dataset, 3)), into_folder(out.path())).unwrap();
    for (other, key) in [
        ("schedule.interval=1 step", "schedule.interval"),
        ("schedule.mean=steps", "schedule.mean"),
        ("averaging.drop=[1]", "averaging.drop"),
        ("schedule.limit=8 steps", "schedule.limit"),
    ] {
        let options = Options { resume: true, ..into_folder(out.path()) };
        let error = run_threads(&simulated(&[&all[..], &[other]].concat()), Source::of(dealt(&dataset, 3)), options);
        let error = error.map(|_| ()).expect_err("it is another run").to_string();
        assert!(error.contains(key), "{other}: {error}");
    }
    // A longer run that was asked for goes on.
    let changes = vec!["schedule.limit".to_owned()];
    let options = Options { resume: true, changes, ..into_folder(out.path()) };
    let longer = simulated(&[&all[..], &["schedule.limit=8 steps"]].concat());
    let outcomes = run_threads(&longer, Source::of(dealt(&dataset, 3)), options).unwrap();
    assert_eq!(outcomes[0].trained.rounds, 4);
}

#[test]
fn a_run_that_is_over_goes_on_to_the_same_end() {
    let dataset = graph(90, 3);
    for keys in [&[][..], &["schedule.halo=frozen"], &["train.eval_every=0"], &["train.eval_every=3"]] {
        for kind in ["simulated", "threads"] {
            let kind = format!("transport.kind={kind}");
            let config = trainers(&[keys, &[&kind]].concat());
            let out = folder();
            let first = run_threads(&config, Source::of(dealt(&dataset, 3)), into_folder(out.path())).unwrap();
            let written = log(out.path());
            let options = Options { resume: true, ..into_folder(out.path()) };
            let again = run_threads(&config, Source::of(dealt(&dataset, 3)), options).unwrap();
            assert_eq!(again[0].trained, first[0].trained, "{keys:?}, {kind}");
            let [before, after] = [&first, &again].map(|outcomes| averaging(outcomes));
            assert_eq!((after.means, after.ending.as_str()), (before.means, "limit"), "{keys:?}, {kind}");
            let worth = |of: &AveragingSummary| of.curve.iter().map(|at| at.worth).collect::<Vec<_>>();
            assert_eq!(worth(after), worth(before), "{keys:?}, {kind}");
            if kind.ends_with("simulated") {
                assert_eq!(after.convergence_seconds, before.convergence_seconds, "{keys:?}");
            }
            let of = |log: &[RoundReport]| {
                log.iter().map(|of| (of.round, of.loss, of.scores.clone(), of.members.clone())).collect::<Vec<_>>()
            };
            assert_eq!(of(&log(out.path())), of(&written), "{keys:?}, {kind}: lines of the log");
        }
    }
}

#[test]
fn a_refused_run_leaves_the_earlier_run_of_its_folder() {
    let dataset = graph(60, 3);
    let out = folder();
    run_threads(&simulated(&[]), Source::of(dealt(&dataset, 3)), into_folder(out.path())).unwrap();
    let files = || {
        let mut names: Vec<_> = std::fs::read_dir(out.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    for keys in [
        &["transport.faults=[{ who = 9, kind = \"killed\" }]"][..],
        &["schedule.halo=frozen", "messages.forward={ codec = \"masked\", ratio = 4 }"],
        &["schedule.interval=1 step", "schedule.limit=1000001 steps"],
    ] {
        let refused = Config::parse(
            "model = { hidden = 16 }",
            &[&["schedule.kind=averaging", "transport.kind=simulated"], keys]
                .concat()
                .iter()
                .map(|key| key.to_string())
                .collect::<Vec<_>>(),
        )
        .and_then(|config| run_threads(&config, Source::of(dealt(&dataset, 3)), into_folder(out.path())).map(|_| ()));
        refused.expect_err("it is refused");
        assert_eq!(files(), before, "{keys:?}");
    }
}

/// Takes the folder away when the first mean is written down.
struct Vandal(std::path::PathBuf);

impl Observer for Vandal {
    fn checkpoint(&mut self, _: u32) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_run_that_cannot_be_written_down_any_more_ends_with_an_error() {
    for kind in ["transport.kind=threads", "transport.kind=simulated"] {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (dataset, out) = (graph(60, 3), folder());
            let observer = Box::new(Vandal(out.path().to_owned()));
            let options = Options { observer, ..into_folder(out.path()) };
            let ran = run_threads(&trainers(&[kind]), Source::of(dealt(&dataset, 3)), options);
            let _ = tell.send(ran.map(|_| ()).map_err(|error| error.to_string()));
        });
        let ended = told.recv_timeout(std::time::Duration::from_secs(60)).expect("it does not hang");
        assert!(ended.is_err(), "{kind}");
    }
}

#[test]
fn trainers_of_links_need_no_training_nodes() {
    let dataset = graph(150, 3);
    let mut parts = dealt(&dataset, 3);
    parts[1].roles.fill(0);
    let keys = ["task.kind=link_prediction", "task.negatives=local", "model.arch=gcn"];
    let outcomes = run_on(&simulated(&keys), parts);
    assert_eq!(averaging(&outcomes).trainers.iter().map(|of| of.part).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn codecs_of_rows_that_nobody_sends_are_noted() {
    let dataset = graph(60, 3);
    let notes = |keys: &[&str]| run(&simulated(keys), &dataset, 3)[0].summary.as_ref().unwrap().notes.clone();
    let codec = "messages.forward={ codec = \"quantised\", bits = 8 }";
    let of_rows = |notes: Vec<String>| notes.iter().any(|note| note.contains("exchange no rows"));
    assert!(of_rows(notes(&[codec])));
    assert!(!of_rows(notes(&[codec, "schedule.halo=frozen"])) && !of_rows(notes(&[])));
}

#[test]
fn what_trainers_on_their_own_cannot_have_is_refused_with_its_key() {
    let dataset = graph(60, 3);
    for (keys, what) in [
        (&["train.sync_every=3"][..], "train.sync_every"),
        (&["messages.parameters=half", "model.norm=batch"], "messages.parameters"),
        (&["messages.budget=\"1 MB\""], "messages.budget"),
        (&["task.kind=link_prediction"], "task.negatives"),
        (&["averaging.drop=[7]"], "averaging.drop"),
        (&["averaging.drop=[0, 1, 2]"], "averaging.drop"),
        (&["schedule.quorum=4"], "schedule.quorum"),
        (&["transport.speeds=[0.0]"], "transport.speeds"),
        (&["transport.faults=[{ who = 9, kind = \"killed\" }]"], "transport.faults"),
        (&["transport.faults=[{ who = 0, kind = \"stalled\" }]"], "transport.faults"),
        (&["schedule.rounds=[2, 2]"], "schedule.rounds"),
        (&["schedule.halo=frozen", "messages.forward={ codec = \"masked\", ratio = 4 }"], "messages.forward"),
    ] {
        let simulated = ["schedule.kind=averaging", "transport.kind=simulated"];
        let error = refusal(&[&simulated[..], keys].concat(), &dataset);
        assert!(error.contains(what), "{keys:?}: {error}");
    }
    for (keys, what) in [
        (&["schedule.kind=averaging", "transport.speeds=[2.0]"][..], "transport.speeds"),
        (&["schedule.kind=averaging", "transport.shape=10ms,1Gbit"], "transport.shape"),
        (&["schedule.kind=averaging", "schedule.interval=1 step", "schedule.limit=1000001 steps"], "schedule.interval"),
        (&["transport.kind=simulated"], "transport.kind"),
    ] {
        let error = refusal(keys, &dataset);
        assert!(error.contains(what), "{keys:?}: {error}");
    }
}

/// What a run of these keys is refused with, before it starts or when it sees the data.
pub fn refusal(keys: &[&str], dataset: &Dataset) -> String {
    let set: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
    let run = |config: Config| run_threads(&config, Source::of(dealt(dataset, 3)), Options::default()).map(|_| ());
    let refused = Config::parse("model = { hidden = 16 }", &set).and_then(run);
    refused.err().unwrap_or_else(|| panic!("{keys:?} is not refused")).to_string()
}

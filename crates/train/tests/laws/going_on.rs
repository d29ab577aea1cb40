//! Trainers that go on: with the steps behind them that entered means, whoever was lost meanwhile.

use laconic_train::TrainError;
use laconic_train::fit::observe::RoundReport;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, run_threads};

use crate::averaging::{KINDS, averaging, dataset, dealt, simulated, trainers};
use crate::fixture::{folder, into_folder};
use crate::hosted::Until;
use crate::same_bits::{bits, log};

/// By SGD, which remembers nothing, so that nothing is lost with a process but steps that entered no mean.
const BY_STEP: &[&str] = &[
    "train.optimiser=sgd",
    "train.momentum=0",
    "train.lr=0.1",
    "train.lr_schedule=step",
    "train.lr_step=4",
    "train.lr_factor=0.5",
    "train.warmup=3",
    "model.dropout=0.3",
];

/// Rates, batches, dropout, sampled negatives and corrections all go by the step.
#[test]
fn a_run_that_lost_its_aggregator_ends_as_one_that_did_not() {
    let more: [&[&str]; 4] = [
        &["schedule.kind=llcg", "schedule.corrections=2"],
        &["schedule.halo=frozen", "batch.size=7", "batch.redraw=2"],
        &["schedule.evaluator=workers", "train.eval_every=2"],
        &["schedule.evaluator=workers", "schedule.halo=frozen"],
    ];
    for keys in KINDS.iter().chain(&more).filter(|keys| !keys.contains(&"schedule.halo=stale")) {
        let all = [keys, BY_STEP].concat();
        let source = || Source::of(dealt(&dataset(keys), 3));
        let straight = folder();
        let calm = run_threads(&simulated(&all), source(), into_folder(straight.path()));
        let calm = calm.unwrap_or_else(|error| panic!("{keys:?}: {error}"));
        let end = averaging(&calm).curve.last().map_or(0.0, |of| of.seconds);
        for share in [0.4, 0.8] {
            let at = share * end;
            let lost = format!("transport.faults=[{{ who = \"aggregator\", at = \"{at} s\", kind = \"killed\" }}]");
            let out = folder();
            let error = run_threads(&simulated(&[&all[..], &[&lost]].concat()), source(), into_folder(out.path()));
            let Err(TrainError::AggregatorLost { means }) = error.map(|_| ()) else { panic!("{keys:?}: not lost") };
            assert!(means > 0, "{keys:?}");
            let options = Options { resume: true, ..into_folder(out.path()) };
            let resumed = run_threads(&simulated(&all), source(), options);
            let resumed = resumed.unwrap_or_else(|error| panic!("{keys:?}: {error}"));
            let what = format!("{keys:?}, lost after {at} s and {means} means");
            assert!(bits(&resumed) == bits(&calm), "{what}: bits");
            let line = |of: &RoundReport| (of.round, of.loss.to_bits(), of.scores.clone(), of.members.clone());
            let lines = |out: &std::path::Path| log(out).iter().map(line).collect::<Vec<_>>();
            assert_eq!(lines(out.path()), lines(straight.path()), "{what}");
            let [before, after] = [&calm, &resumed].map(|of| averaging(of).trainers.iter().map(|of| of.steps));
            assert!(before.eq(after), "{what}: steps");
        }
    }
}

/// By steps a run that is asked to stop leaves its last whole mean.
#[test]
fn a_run_that_was_stopped_between_two_means_ends_as_one_that_was_not() {
    for keys in [&[][..], &["schedule.halo=frozen"], &["batch.size=9"], &["train.eval_every=3"]] {
        for kind in ["transport.kind=simulated", "transport.kind=threads"] {
            let all = [keys, BY_STEP, &["schedule.limit=24 steps", kind]].concat();
            let source = || Source::of(dealt(&dataset(keys), 3));
            let straight = run_threads(&trainers(&all), source(), Options::default()).expect("a run");
            let out = folder();
            let options = Options { observer: Box::new(Until(3)), ..into_folder(out.path()) };
            let stopped = run_threads(&trainers(&all), source(), options).expect("a run");
            assert!(stopped[0].trained.interrupted || keys.contains(&"train.eval_every=3"), "{all:?}");
            let options = Options { resume: true, ..into_folder(out.path()) };
            let resumed = run_threads(&trainers(&all), source(), options).expect("it goes on");
            assert!(bits(&resumed) == bits(&straight), "{all:?}");
            assert_eq!(averaging(&resumed).means, averaging(&straight).means, "{all:?}");
        }
    }
}

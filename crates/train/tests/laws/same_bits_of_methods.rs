//! Every way to send less ends with the same bits whatever the number of threads, the overlap and the link, and
//! wherever the run was stopped and resumed: what a worker remembers between rounds is either derived from keys or kept
//! in its own file.

use laconic_graph::dataset::Dataset;
use laconic_train::TrainError;

use crate::fixture::{config, folder, graph, into_folder, try_run};
use crate::methods::{ARCHS, BOUNDED, CODECS, OTHERS, SCHEDULES, go_together};
use crate::same_bits::{STATE, assert_resumes, assert_same, resume, stop_after, straight};

/// Every method once, each under a schedule and on a layer of its own turn. Byte budgets have tests of their own.
fn methods(turn: usize) -> impl Iterator<Item = Vec<&'static str>> {
    let all = [&CODECS[..], &OTHERS, &BOUNDED].concat();
    let keys = move |(m, method): (usize, &'static [&'static str])| {
        let (schedule, arch) = (SCHEDULES[(m + turn) % SCHEDULES.len()], ARCHS[(m + m / 5 + turn) % ARCHS.len()]);
        [schedule, arch, method].concat()
    };
    all.into_iter().enumerate().map(keys).filter(|keys| go_together(keys))
}

/// 2,500 rows a worker: kernels cut them into several pieces, which threads share.
#[test]
fn threads_change_no_bit_of_any_method() {
    let dataset = graph(5000, 4);
    for keys in methods(0) {
        let keys = [&keys[..], &["train.epochs=3"]].concat();
        assert_same(&dataset, 2, &keys, &[&["train.threads=2"], &["train.threads=3"]]);
    }
}

#[test]
fn overlap_and_slow_links_change_no_bit_of_any_method() {
    let dataset = graph(150, 4);
    let variants: [&[&str]; 3] = [
        &["schedule.overlap=false"],
        &["transport.shape=wan-20mbit-80ms"],
        &["schedule.overlap=false", "transport.shape=1mbit,1ms"],
    ];
    for turn in 0..SCHEDULES.len() {
        for (keys, variant) in methods(turn).zip((turn..).map(|m| variants[m % variants.len()])) {
            assert_same(&dataset, 3, &keys, &[variant]);
        }
    }
}

/// Keys of a run of seven rounds a stage with all state of training.
fn with_state(keys: &[&'static str]) -> Vec<&'static str> {
    [keys, &STATE, &["train.epochs=7"]].concat()
}

/// Stops the run after so many rounds and resumes it; whether there was anything left to resume.
fn stop_and_resume(dataset: &Dataset, keys: &[&str], round: u32, straight: &crate::same_bits::Straight) -> bool {
    let folder = folder();
    let out = folder.path().join("run");
    let stopped = try_run(&config(keys), dataset, 3, stop_after(round, &out)).expect("a run");
    let interrupted = stopped[0].trained.interrupted;
    assert_resumes(straight, dataset, keys, &out, &format!("stopped after {round}"));
    interrupted
}

#[test]
fn every_method_stopped_after_any_round_and_resumed_ends_with_the_same_bits() {
    let dataset = graph(120, 4);
    for keys in methods(1) {
        let keys = with_state(&keys);
        let straight = straight(&dataset, &keys);
        let rounds = straight.bits.rounds;
        let resumed = (1..rounds).filter(|&round| stop_and_resume(&dataset, &keys, round, &straight)).count() as u32;
        // Workers that agree only now and then stop only then, and not at the very end.
        let every = config(&keys).train.sync_every;
        assert!(resumed >= (rounds - 1) / every, "{keys:?}: only {resumed} of {rounds} rounds were resumed from");
    }
}

#[test]
fn every_method_that_crashed_and_was_resumed_ends_with_the_same_bits() {
    let dataset = graph(120, 4);
    for (turn, every) in [(2, 1), (3, 2)] {
        for keys in methods(turn) {
            let every_key = format!("out.checkpoint_every={every}");
            let keys = [&with_state(&keys)[..], &[every_key.as_str()]].concat();
            let straight = straight(&dataset, &keys);
            // No checkpoint comes before workers agree for the first time.
            let first = every.max(config(&keys).train.sync_every) + 1;
            for round in first..=straight.bits.rounds {
                let folder = folder();
                let out = folder.path().join("run");
                let fault = format!("transport.fault={{ rank = {}, round = {round}, kind = \"crash\" }}", round % 3);
                let crashing = config(&[&keys[..], &[fault.as_str()]].concat());
                let error = try_run(&crashing, &dataset, 3, into_folder(&out)).err().expect("a crash");
                assert!(matches!(error, TrainError::Fault { .. }), "{error}");
                assert_resumes(&straight, &dataset, &keys, &out, &format!("crashed in {round}"));
            }
        }
    }
}

/// Checkpoints wait for late rows and write down what each worker holds, which must not change what it goes on with.
#[test]
fn checkpoints_change_no_bit() {
    let dataset = graph(120, 4);
    for turn in 0..SCHEDULES.len() {
        for keys in methods(turn) {
            let keys = with_state(&keys);
            let plain = straight(&dataset, &keys);
            let kept = straight(&dataset, &[&keys[..], &["out.checkpoint_every=1"]].concat());
            assert!(plain == kept, "{keys:?}: checkpoints change the run");
        }
    }
}

/// A run that was resumed twice has forgotten nothing on the way either.
#[test]
fn late_rows_and_leftovers_survive_two_stops() {
    let dataset = graph(120, 4);
    let late = ["schedule.kind=pipelined", "schedule.smooth_features=0.9", "schedule.smooth_gradients=0.5"];
    let leftovers = [r#"messages.parameters={codec="quantised",bits=2}"#, "messages.skip={change=0.3,staleness=3}"];
    let keys = with_state(&[&late[..], &leftovers].concat());
    let straight = straight(&dataset, &keys);
    let folder = folder();
    let out = folder.path().join("run");
    try_run(&config(&keys), &dataset, 3, stop_after(2, &out)).expect("a run");
    let again = laconic_train::run::Options { resume: true, ..stop_after(5, &out) };
    let stopped = try_run(&config(&keys), &dataset, 3, again).expect("a resumed run");
    assert!(stopped[0].trained.interrupted && stopped[0].trained.rounds == 5);
    assert_resumes(&straight, &dataset, &keys, &out, "stopped twice");
    // And once it has ended, it resumes into itself.
    try_run(&config(&keys), &dataset, 3, resume(&out)).expect("a resumed run");
    assert_resumes(&straight, &dataset, &keys, &out, "ended");
}

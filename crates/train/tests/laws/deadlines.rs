//! A worker that fails ends the run within the deadline, with an error that names it.

use std::time::{Duration, Instant};

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::part::{Part, cut};
use laconic_train::run::source::Source;
use laconic_train::run::{Options, run_threads, run_worker};
use laconic_train::{Config, TrainError};
use laconic_wire::{Rank, WireError, threads};

use crate::fixture::{config, graph, parts, try_run};
use crate::one_is_many::SCHEDULES;

/// What a stall is waited for: long enough that a busy machine alone looks like none.
const DEADLINE: Duration = Duration::from_secs(3);
/// For the others to notice and for a busy machine; far from any deadline that is not this one.
const GRACE: Duration = Duration::from_secs(40);
/// One that nobody waits for.
const LONG: &str = "transport.deadline_s=600";

fn fault(rank: u32, round: u32, kind: &str) -> String {
    format!("transport.fault={{ rank = {rank}, round = {round}, kind = \"{kind}\" }}")
}

fn within_deadline<R>(what: &str, run: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = run();
    assert!(start.elapsed() < DEADLINE + GRACE, "{what}: it took {:?}", start.elapsed());
    result
}

#[test]
fn a_crash_ends_the_run_with_the_error_of_the_worker_that_crashed() {
    let dataset = graph(150, 4);
    for schedule in SCHEDULES {
        for (rank, round) in [(0, 1), (1, 2), (2, 4)] {
            let fault = fault(rank, round, "crash");
            let keys = [schedule, &[LONG, &fault]].concat();
            let result = within_deadline("crash", || try_run(&config(&keys), &dataset, 3, Options::default()));
            let error = result.err().expect("a crash");
            assert!(matches!(error, TrainError::Fault { rank: r, round: t, .. } if (r, t) == (rank, round)), "{error}");
            assert_eq!(error.exit_code(), 4);
        }
    }
}

/// Asserts that the error is the deadline's, about this worker in this round, and says so in words.
fn assert_names(error: &TrainError, rank: u32, round: u32) {
    let TrainError::Wire(WireError::Deadline { peer, tag, waited, .. }) = error else { panic!("{error}") };
    assert_eq!((*peer, tag.round), (Rank(rank), round), "{error}");
    assert!(*waited >= DEADLINE && *waited < DEADLINE + GRACE, "{error}");
    let words = error.to_string();
    let phase = format!("{} of layer {}, {}", tag.kind().name().replace('_', " "), tag.layer, tag.direction.name());
    for part in [&format!("for rank {rank}"), &phase, &format!("round {round}")] {
        assert!(words.contains(part.as_str()), "expected '{part}' in: {words}");
    }
    assert_eq!(error.exit_code(), 4);
}

/// Stalls one worker of three; the error of the run must be the deadline's and name it.
fn stall(schedule: &[&str], rank: u32, round: u32) {
    let fault = fault(rank, round, "stall");
    let keys = [schedule, &["transport.deadline_s=3", &fault]].concat();
    let run = || try_run(&config(&keys), &graph(150, 4), 3, Options::default());
    assert_names(&within_deadline("stall", run).err().expect("a stall"), rank, round);
}

#[test]
fn a_stall_ends_the_run_with_an_error_that_names_worker_phase_layer_and_round() {
    stall(SCHEDULES[0], 1, 2);
    stall(SCHEDULES[2], 2, 3);
    stall(SCHEDULES[3], 1, 5);
}

/// The rehearsal shows what a real stall would show, whichever worker it is: not that a fault was asked for.
#[test]
fn a_stall_of_worker_0_is_reported_like_any_other() {
    stall(SCHEDULES[1], 0, 1);
}

/// Nodes in a row, each joined to the next: workers 0 and 2 have no link. Worker 0 waits for worker 1, which waits for
/// worker 2; the error must name the one that is to blame.
#[test]
fn the_error_names_the_worker_that_stalled_and_not_one_that_waits_for_it() {
    let mut dataset = graph(90, 4);
    let ends = || (0..89u32, 1..90u32);
    let (sources, targets) = (ends().0.collect(), ends().1.collect());
    let both = BuildOptions { symmetrise: true, ..BuildOptions::default() };
    (dataset.graph, _) = build_graph(90, sources, targets, None, both).expect("a row of nodes");
    let assignment: Vec<u32> = (0..90).map(|node| node / 30).collect();
    for keys in [&["model.arch=gcn", "model.layers=4"][..], &["model.arch=sage", "model.layers=3"]] {
        let parts = cut(&dataset, Some(0), &assignment, 3).expect("parts");
        let config = config(&[keys, &["transport.deadline_s=3", &fault(2, 2, "stall")]].concat());
        let result = within_deadline("stall", || run_threads(&config, Source::of(parts), Options::default()));
        assert_names(&result.err().expect("a stall"), 2, 2);
    }
}

/// Reading and cutting may take one worker much longer than another; that is no stall.
#[test]
fn a_worker_that_starts_late_is_waited_for_by_a_deadline_of_its_own() {
    let dataset = graph(60, 4);
    let deadlines = |rounds: &str, start: &str| {
        config(&[&format!("transport.deadline_s={rounds}"), &format!("transport.start_deadline_s={start}")])
    };
    let work = |config: &Config, late: Duration| {
        let ends = threads(2, config.deadline()).into_iter().zip(parts(config, &dataset, 2));
        std::thread::scope(|scope| {
            let handles: Vec<_> = ends
                .enumerate()
                .map(|(rank, (end, part))| {
                    scope.spawn(move || {
                        std::thread::sleep(late * rank as u32);
                        let source = Source::of(alone(part, rank));
                        run_worker(config, Box::new(end), source, Options::default()).map(drop)
                    })
                })
                .collect();
            handles.into_iter().map(|handle| handle.join().expect("no panic")).collect::<Vec<_>>()
        })
    };
    let late = Duration::from_secs(5);
    assert!(work(&deadlines("3", "60"), late).iter().all(Result::is_ok));
    let errors = work(&deadlines("60", "1"), late);
    let Some(Err(error @ TrainError::Start { source: WireError::Deadline { peer, .. }, .. })) = errors.first() else {
        panic!("{errors:?}")
    };
    assert_eq!((*peer, error.exit_code()), (Rank(1), 4));
    for words in ["rank 0 waited ", "for rank 1", "reading or cutting", "transport.start_deadline_s"] {
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
}

/// The parts as a worker has them: only its own is whole.
fn alone(part: Part, rank: usize) -> Vec<Part> {
    let others = (0..rank).map(|index| part.clone().numbered(index as u32, part.parts));
    others.chain([part.clone()]).collect()
}

#[test]
fn deadlines_have_a_least_value() {
    for key in ["transport.deadline_s", "transport.start_deadline_s"] {
        for value in ["1e-308", "0", "-1", "0.09", "inf", "nan", "2e6"] {
            let error = Config::parse("", &[format!("{key}={value}")]).expect_err("a refusal").to_string();
            assert!(error.contains(key) && error.contains("0.1 to 1000000"), "{error}");
        }
        assert!(Config::parse("", &[format!("{key}=0.1")]).is_ok());
    }
}

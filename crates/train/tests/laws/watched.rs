//! Whoever runs one worker of a run sees all of it, and may stop it.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use laconic_train::run::source::Source;
use laconic_train::run::{Options, Outcome, run_worker};
use laconic_train::{Config, Observer, RoundReport};
use laconic_wire::threads;

use crate::fixture::{config, folder, graph, into_folder, parts};

/// What an observer has heard of.
#[derive(Default)]
struct Heard {
    watches: Option<u32>,
    /// Resolved configurations, with the number of workers.
    started: Vec<(Config, usize)>,
    rounds: Vec<RoundReport>,
    checkpoints: Vec<u32>,
}

/// Listens, and stops the run after a round, if it is told one.
struct Listener {
    heard: Arc<Mutex<Heard>>,
    stops_after: Option<u32>,
}

impl Observer for Listener {
    fn watches(&mut self, rank: u32) {
        self.heard.lock().expect("no panic").watches = Some(rank);
    }

    fn started(&mut self, config: &Config, workers: usize, _: Option<&std::path::Path>) {
        self.heard.lock().expect("no panic").started.push((config.clone(), workers));
    }

    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        // Workers take as long as they take.
        self.heard.lock().expect("no panic").rounds.push(RoundReport { seconds: 0.0, ..report.clone() });
        if self.stops_after == Some(report.round) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn checkpoint(&mut self, round: u32) {
        self.heard.lock().expect("no panic").checkpoints.push(round);
    }
}

/// Two workers with an observer each, of which that of worker 1 stops the run after a round, if it is told one.
fn run_watched(config: &Config, stops_after: Option<u32>) -> [(Outcome, Heard); 2] {
    let (dataset, out) = (graph(60, 3), folder());
    let heard = [(), ()].map(|()| Arc::new(Mutex::new(Heard::default())));
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let one = |(rank, end): (usize, _)| {
            let source = Source::of(parts(config, &dataset, 2));
            let stops_after = stops_after.filter(|_| rank == 1);
            let observer = Box::new(Listener { heard: heard[rank].clone(), stops_after });
            let options = Options { observer, ..into_folder(out.path()) };
            scope.spawn(move || run_worker(config, Box::new(end), source, options).expect("a run"))
        };
        let all: Vec<_> = threads(2, config.deadline()).into_iter().enumerate().map(one).collect();
        all.into_iter().map(|worker| worker.join().expect("no worker panics")).collect()
    });
    let mut both = outcomes.into_iter().zip(heard.map(|heard| std::mem::take(&mut *heard.lock().expect("no panic"))));
    [(); 2].map(|()| both.next().expect("two workers"))
}

#[test]
fn the_observer_of_every_worker_hears_the_same_of_every_round() {
    let config = config(&["train.epochs=4", "train.eval_every=2", "out.checkpoint_every=2"]);
    let [(_, first), (_, second)] = run_watched(&config, None);
    assert_eq!([first.watches, second.watches], [Some(0), Some(1)]);
    assert_eq!(first.started.len(), 1);
    assert_eq!(first.started, second.started);
    assert_eq!(first.rounds.iter().map(|report| report.round).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(first.rounds, second.rounds);
    assert!(first.rounds[3].scores.is_some() && first.rounds[3].bytes.is_some(), "evaluated after the last round");
    assert_eq!((first.checkpoints.as_slice(), second.checkpoints.as_slice()), (&[2, 4][..], &[][..]));
}

#[test]
fn the_observer_of_any_worker_stops_the_run_on_all() {
    let config = config(&["train.epochs=9"]);
    let [(first, heard_first), (second, heard_second)] = run_watched(&config, Some(2));
    for (outcome, heard) in [(&first, &heard_first), (&second, &heard_second)] {
        assert!(outcome.trained.interrupted, "worker {}", outcome.rank);
        assert_eq!(outcome.trained.rounds, 3, "the round after it is the first whose reduction tells of it");
        assert_eq!(heard.rounds.iter().map(|report| report.round).collect::<Vec<_>>(), [1, 2, 3]);
    }
    assert_eq!(first.trained, second.trained);
    assert_eq!(heard_first.checkpoints, [3]);
}

//! Which round's parameters a stage ends with, and when patience ends it: by the log of its rounds.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use laconic_train::fit::observe::RoundReport;
use laconic_train::record::observer::Observer;
use laconic_train::run::{Options, Outcome};

use crate::fixture::{config, graph, try_run};

struct Log(Arc<Mutex<Vec<RoundReport>>>);

impl Observer for Log {
    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        self.0.lock().expect("nobody panics with it").push(report.clone());
        ControlFlow::Continue(())
    }
}

fn logged(keys: &[&str]) -> (Outcome, Vec<RoundReport>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let options = Options { observer: Box::new(Log(log.clone())), ..Options::default() };
    let outcome = try_run(&config(keys), &graph(150, 4), 3, options).expect("a run").swap_remove(0);
    let rounds = log.lock().expect("nobody panics with it").clone();
    (outcome, rounds)
}

const SCHEDULES: [&[&str]; 4] = [
    &["schedule.kind=synchronous"],
    &["schedule.kind=pipelined"],
    &["schedule.kind=lazy"],
    &["schedule.kind=lazy", "schedule.start=mlp", "train.sync_every=2"],
];

/// The round of a stage in which a figure is largest, the first of several.
fn largest(rounds: &[RoundReport], stage: usize, figure: impl Fn(&RoundReport) -> Option<f64>) -> u32 {
    let mut best: Option<(f64, u32)> = None;
    for report in rounds.iter().filter(|report| report.stage == stage) {
        if let Some(figure) = figure(report)
            && best.is_none_or(|(old, _)| figure > old)
        {
            best = Some((figure, report.round));
        }
    }
    best.expect("an evaluation").1
}

fn accuracy(report: &RoundReport) -> Option<f64> {
    Some(report.scores.as_ref()?.val["accuracy"].expect("a figure"))
}

fn loss(report: &RoundReport) -> Option<f64> {
    Some(-report.scores.as_ref()?.val["loss"].expect("a figure"))
}

#[test]
fn the_best_round_is_that_of_the_largest_metric_or_of_the_smallest_loss() {
    let mut others = 0;
    for schedule in SCHEDULES {
        let keys = [schedule, &["train.epochs=40", "train.lr=0.05"]].concat();
        let (outcome, rounds) = logged(&keys);
        let stage = rounds.last().expect("rounds").stage;
        assert_eq!(outcome.trained.best_round, largest(&rounds, stage, accuracy), "{keys:?}");
        let keys = [&keys[..], &["train.select_by=loss"]].concat();
        let (outcome, rounds) = logged(&keys);
        let best = largest(&rounds, stage, loss);
        assert_eq!(outcome.trained.best_round, best, "{keys:?}");
        assert_eq!(
            Some(-outcome.trained.scores.val["loss"].expect("a figure")),
            loss(&rounds[best as usize - 1]),
            "{keys:?}"
        );
        others += u32::from(best != largest(&rounds, stage, accuracy));
    }
    assert!(others > 0, "loss and accuracy chose the same rounds everywhere");
}

#[test]
fn patience_waits_for_what_chooses_the_best_round() {
    for schedule in SCHEDULES {
        for (by, figure) in [("metric", accuracy as fn(&RoundReport) -> Option<f64>), ("loss", loss)] {
            let by = format!("train.select_by={by}");
            let keys = [schedule, &["train.epochs=300", "train.lr=0.05", "train.patience=4", by.as_str()]].concat();
            let (_, rounds) = logged(&keys);
            for stage in 0..=rounds.last().expect("rounds").stage {
                let best = largest(&rounds, stage, figure);
                let of_stage = rounds.iter().filter(|report| report.stage == stage && report.scores.is_some());
                let after = of_stage.filter(|report| report.round > best).count();
                assert_eq!(after, 4, "{keys:?}: evaluations of stage {stage} after its best round {best}");
            }
        }
    }
}

//! Learning curves, and the test metric against bytes.

use super::run::Run;
use crate::plot::{Chart, Curve, Dot, Scale, Unit};
use crate::recorded::Curves;

/// The three charts as SVG.
pub fn charts(runs: &[Run]) -> String {
    let rounds = || ("round".to_owned(), Unit::Plain, Scale::Linear);
    let metric = metric(runs);
    let loss = chart(runs, "Training loss", rounds(), "loss before the round's step", |curves| &curves.loss);
    let val = chart(runs, "Validation", rounds(), &format!("{metric} on validation nodes"), |curves| &curves.val);
    let sent = ("bytes sent by all workers, framing included".to_owned(), Unit::Bytes, Scale::Log);
    let label = format!("{metric} on test nodes, chosen by validation");
    let mut bytes = chart(runs, "Against bytes", sent, &label, |curves| &curves.test_by_bytes);
    for run in runs {
        let total = run.recorded.summary.bytes.total as f64;
        if let Some(test) = run.recorded.test() {
            bytes.dots.push(Dot { name: run.name.clone(), style: run.style, at: (total, test) });
        }
    }
    [loss, val, bytes].map(|chart| chart.svg()).concat()
}

/// The metric of all runs, where it is the same.
fn metric(runs: &[Run]) -> String {
    let first = runs[0].recorded.metric.as_deref();
    let same = runs.iter().all(|run| run.recorded.metric.as_deref() == first);
    first.filter(|_| same).unwrap_or("metric").to_owned()
}

fn chart(
    runs: &[Run],
    title: &str,
    x: (String, Unit, Scale),
    y: &str,
    points: impl Fn(&Curves) -> &Vec<(f64, f64)>,
) -> Chart {
    let curve =
        |run: &Run| Curve { name: run.name.clone(), style: run.style, points: points(&run.recorded.curves).clone() };
    Chart {
        title: title.to_owned(),
        x,
        y: (y.to_owned(), Unit::Plain),
        curves: runs.iter().map(curve).collect(),
        dots: Vec::new(),
        front: Vec::new(),
        legend: legend(runs),
    }
}

/// Each group once.
fn legend(runs: &[Run]) -> Vec<(String, usize)> {
    let mut legend: Vec<(String, usize)> = Vec::new();
    for run in runs {
        if legend.last().is_none_or(|(_, style)| *style != run.style) {
            legend.push((run.group.clone(), run.style));
        }
    }
    legend
}

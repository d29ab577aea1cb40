//! The comparison as two figures: accuracy against bytes and against seconds.

use anyhow::Result;
use laconic_train::record::aside::write_aside;
use std::path::Path;

use super::outcome::{Comparison, Line};
use crate::plot::{Chart, Curve, Dot, Scale, Unit};
use crate::recorded::Recorded;

/// What the horizontal axis counts.
#[derive(Clone, Copy, PartialEq)]
enum Cost {
    Bytes,
    Seconds,
}

/// Writes `compare.svg` and `compare_time.svg`. `recorded` holds every run with the number of its method.
pub fn write(folder: &Path, comparison: &Comparison, recorded: &[(usize, Recorded)]) -> Result<()> {
    for (file, cost) in [("compare.svg", Cost::Bytes), ("compare_time.svg", Cost::Seconds)] {
        write_aside(&folder.join(file), chart(comparison, recorded, cost).svg().as_bytes())?;
    }
    Ok(())
}

fn chart(comparison: &Comparison, recorded: &[(usize, Recorded)], cost: Cost) -> Chart {
    let metric = comparison.metric.as_deref().unwrap_or("metric");
    let axis = match (cost, &comparison.link) {
        (Cost::Bytes, _) => "bytes sent by all workers, framing included".to_owned(),
        (Cost::Seconds, Some(link)) => format!("seconds on the clock of a model of the link {link}"),
        (Cost::Seconds, None) => "seconds".to_owned(),
    };
    let curves = recorded.iter().map(|(method, run)| Curve {
        name: format!("{}, seed {}", comparison.methods[*method].name, run.summary.seed),
        style: *method,
        points: points(run, cost, comparison.link.is_some()),
    });
    let unit = if cost == Cost::Bytes { Unit::Bytes } else { Unit::Seconds };
    let ends = comparison.methods.iter().enumerate();
    let ends = ends.filter_map(|(style, line)| Some(Dot { name: line.name.clone(), style, at: end(line, cost)? }));
    Chart {
        title: format!("{}: {metric} on test nodes against {}", comparison.graph.dataset, unit_name(cost)),
        x: (axis, unit, Scale::Log),
        y: (format!("{metric}, chosen by validation"), Unit::Plain),
        curves: curves.collect(),
        dots: ends.collect(),
        front: front(comparison, cost),
        legend: comparison.methods.iter().enumerate().map(|(style, line)| (line.name.clone(), style)).collect(),
    }
}

fn unit_name(cost: Cost) -> &'static str {
    if cost == Cost::Bytes { "bytes" } else { "time" }
}

/// A run's curve up to where its summary says that it ended.
fn points(run: &Recorded, cost: Cost, by_clock: bool) -> Vec<(f64, f64)> {
    let (curve, end) = match (cost, by_clock) {
        (Cost::Bytes, _) => (&run.curves.test_by_bytes, run.summary.bytes.total as f64),
        (Cost::Seconds, true) => (&run.curves.test_by_clock, run.seconds(true)),
        (Cost::Seconds, false) => (&run.curves.test_by_seconds, run.seconds(false)),
    };
    curve.iter().copied().chain(run.test().map(|test| (end, test))).collect()
}

/// The mean end of a method's runs.
fn end(line: &Line, cost: Cost) -> Option<(f64, f64)> {
    let cost = if cost == Cost::Bytes { line.bytes } else { line.seconds };
    Some((cost?, line.test?.mean))
}

/// The ends on the front, from the cheapest.
fn front(comparison: &Comparison, cost: Cost) -> Vec<(f64, f64)> {
    let on_front = |line: &&Line| if cost == Cost::Bytes { line.front } else { line.front_by_seconds };
    let mut ends: Vec<(f64, f64)> =
        comparison.methods.iter().filter(on_front).filter_map(|line| end(line, cost)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    ends
}

//! The comparison as figures: final points against bytes and against seconds, and the curves that lead to them.

use std::path::Path;

use anyhow::Result;
use laconic_train::record::aside::write_aside;

use super::outcome::{Comparison, Line, Run, Spread};
use crate::plot::{Chart, Curve, Point, Points, Scale, Unit, WIDE, Weight, thin};
use crate::recorded::Recorded;

/// What the horizontal axis counts.
#[derive(Clone, Copy, PartialEq)]
pub enum Cost {
    /// Bytes over all workers, without those of evaluations.
    Bytes,
    /// Seconds from start to end.
    Seconds,
}

/// Points of all curves of a figure together.
const POINTS_MAX: usize = 4000;

/// Writes `compare.svg`, `compare_time.svg` and `compare_curves.svg`. `recorded` holds every run with the number of its
/// method.
pub fn write(folder: &Path, comparison: &Comparison, recorded: &[(usize, Recorded)]) -> Result<()> {
    for (file, cost) in [("compare.svg", Cost::Bytes), ("compare_time.svg", Cost::Seconds)] {
        write_aside(&folder.join(file), points(comparison, cost).svg(WIDE).alone().as_bytes())?;
    }
    let runs: Vec<(usize, &Recorded)> = recorded.iter().map(|(method, run)| (*method, run)).collect();
    let curves = curves(comparison, &runs).svg(WIDE).alone();
    Ok(write_aside(&folder.join("compare_curves.svg"), curves.as_bytes())?)
}

/// What every method comes to: its means with standard deviations, named.
pub fn points(comparison: &Comparison, cost: Cost) -> Points {
    let (judged, noun) = (comparison.judged_by(), comparison.task.words.noun);
    let (axis, against, unit) = match cost {
        Cost::Bytes => ("bytes that all workers sent, without those of evaluations", "bytes", Unit::Bytes),
        Cost::Seconds => ("seconds", "time", Unit::Seconds),
    };
    let axis = match &comparison.link {
        Some(link) if cost == Cost::Seconds => format!("seconds on the clock of a model of the link {link}"),
        _ => axis.to_owned(),
    };
    let point = |(style, line): (usize, &Line)| {
        let spread = spread(line, cost)?;
        let test = comparison.judged(line)?;
        let front = if cost == Cost::Bytes { line.front } else { line.front_by_seconds };
        let name = if line.is_constant { format!("{}, chance", line.name) } else { line.name.clone() };
        Some(Point { name, style, at: (spread.mean, test.mean), sd: (spread.sd, test.sd), front })
    };
    Points {
        title: format!("{}: {judged} on test {noun} against {against}", comparison.graph.dataset),
        x: (axis, unit),
        y: format!("{judged} on test {noun}, of the round that validation chose"),
        points: comparison.methods.iter().enumerate().filter_map(point).collect(),
    }
}

fn spread(line: &Line, cost: Cost) -> Option<Spread> {
    let of = |run: &Run| if cost == Cost::Bytes { run.training as f64 } else { run.seconds };
    Spread::of(&line.runs.iter().map(of).collect::<Vec<f64>>())
}

/// The mean curve of every method against all bytes sent so far.
pub fn curves(comparison: &Comparison, recorded: &[(usize, &Recorded)]) -> Chart {
    let (metric, noun) = (comparison.metric.as_deref().unwrap_or("metric"), comparison.task.words.noun);
    let most = (POINTS_MAX / comparison.methods.len().max(1)).clamp(20, 300);
    let curve = |(style, line): (usize, &Line)| {
        let of_method = recorded.iter().filter(|(method, _)| *method == style);
        let runs: Vec<Vec<(f64, f64)>> = of_method.map(|(_, run)| to_the_end(run)).collect();
        let points = thin(&mean_curve(&runs), most);
        Curve { name: line.name.clone(), style, weight: Weight::Strong, points }
    };
    let named = comparison.methods.iter().enumerate();
    Chart {
        title: format!("{}: {metric} on the way", comparison.graph.dataset),
        x: ("bytes that all workers have sent so far, evaluations included".to_owned(), Unit::Bytes, Scale::Log),
        y: format!("{metric} on test {noun} of the best round by validation so far, mean over runs"),
        curves: named.clone().map(curve).collect(),
        stages: Vec::new(),
        legend: named.map(|(style, line)| (line.name.clone(), style)).collect(),
        axes: None,
    }
}

/// A run's curve up to where its summary says that it ended.
fn to_the_end(run: &Recorded) -> Vec<(f64, f64)> {
    let end = run.test().map(|test| (run.summary.bytes.cost().1 as f64, test));
    run.curves.test_by_bytes.iter().copied().chain(end).collect()
}

/// The means of the first points, of the second, and so on as far as all curves go.
pub fn mean_curve(curves: &[Vec<(f64, f64)>]) -> Vec<(f64, f64)> {
    let length = curves.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |index: usize| {
        let sum = curves.iter().map(|curve| curve[index]).fold((0.0, 0.0), |sum, at| (sum.0 + at.0, sum.1 + at.1));
        (sum.0 / curves.len() as f64, sum.1 / curves.len() as f64)
    };
    (0..length).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_stands_over_training_bytes_and_says_that_nothing_was_learned() {
        let run = |seed: u64, training: u64| {
            serde_json::json!({
                "seed": seed, "folder": "runs/a", "test": 0.5, "bytes": 1000, "training": training, "predicted": 1000,
                "rounds": 1, "seconds": 2.0
            })
        };
        let comparison: Comparison = serde_json::from_value(serde_json::json!({
            "version": "0", "metric": "accuracy", "link": null,
            "graph": { "dataset": "graph", "digest": "", "nodes": 1, "edges": 1, "parts": [1] },
            "methods": [{
                "name": "a", "set": [], "runs": [run(0, 700), run(1, 900)], "test": { "mean": 0.5, "sd": 0.0 },
                "bytes": 1000.0, "fewer": 1.0, "seconds": 2.0, "front": false, "front_by_seconds": true,
                "is_constant": true
            }]
        }))
        .expect("a comparison");
        let points = [Cost::Bytes, Cost::Seconds].map(|cost| points(&comparison, cost).points);
        let [bytes, seconds] = points.each_ref().map(|points| &points[0]);
        assert_eq!((bytes.name.as_str(), bytes.at, bytes.sd.0), ("a, chance", (800.0, 0.5), Some(20_000f64.sqrt())));
        assert_eq!((seconds.at, seconds.front, bytes.front), ((2.0, 0.5), true, false));
    }

    #[test]
    fn a_mean_curve_goes_as_far_as_all_of_its_curves() {
        let curves = [vec![(1.0, 0.5), (2.0, 0.75), (3.0, 1.0)], vec![(1.0, 0.25), (4.0, 0.25)]];
        assert_eq!(mean_curve(&curves), [(1.0, 0.375), (3.0, 0.5)]);
        assert_eq!(mean_curve(&[]), []);
    }
}

//! Learning curves: a panel for each of several methods, on common axes, or the panels of one run.

use super::run::Run;
use crate::command::compare::figures::mean_curve;
use crate::command::compare::outcome::Comparison;
use crate::plot::{Chart, Curve, Scale, Stage, Unit, Weight, share_axes, thin};
use crate::recorded::Curves;

/// Points of all curves of a section together, and of one curve at least and at most.
const POINTS_MAX: usize = 7000;
const POINTS: (usize, usize) = (24, 250);

/// What a panel shows by rounds.
#[derive(Clone, Copy)]
pub enum Shown {
    /// The metric on validation nodes, or edges.
    Validation,
    /// The training loss.
    Loss,
}

/// A panel for each method: its runs thin, their mean strong, and where stages start.
pub fn panels(comparison: &Comparison, runs: &[Run], shown: Shown) -> Vec<Chart> {
    let (metric, noun) = (comparison.metric.as_deref().unwrap_or("metric"), comparison.task.words.noun);
    let y = match shown {
        Shown::Validation => format!("{metric} on validation {noun}"),
        Shown::Loss => format!("loss on training {noun} before the round's step"),
    };
    let most = (POINTS_MAX / (runs.len() + comparison.methods.len())).clamp(POINTS.0, POINTS.1);
    let panel = |(style, line): (usize, &crate::command::compare::outcome::Line)| {
        let of_method: Vec<&Run> = runs.iter().filter(|run| run.style == style).collect();
        let points = |run: &&Run| picked(&run.recorded.curves, shown).clone();
        let all: Vec<Vec<(f64, f64)>> = of_method.iter().map(points).collect();
        let mean = common(&all);
        let mut curves: Vec<Curve> = Vec::with_capacity(all.len() + 1);
        if all.len() > 1 {
            let named = of_method.iter().zip(&all);
            curves.extend(named.map(|(run, points)| curve(&run.name, (style, Weight::Thin), &thin(points, most))));
        }
        curves.push(curve(&line.name, (style, Weight::Strong), &thin(&mean, most)));
        Chart {
            title: line.name.clone(),
            x: ("round".to_owned(), Unit::Plain, Scale::Linear),
            y: y.clone(),
            curves,
            stages: of_method.first().map(|run| stages(&run.recorded.curves)).unwrap_or_default(),
            legend: Vec::new(),
            axes: None,
        }
    };
    let mut charts: Vec<Chart> = comparison.methods.iter().enumerate().map(panel).collect();
    charts.retain(|chart| chart.curves.iter().any(|curve| !curve.points.is_empty()));
    share_axes(&mut charts);
    charts
}

fn picked(curves: &Curves, shown: Shown) -> &Vec<(f64, f64)> {
    match shown {
        Shown::Validation => &curves.val,
        Shown::Loss => &curves.loss,
    }
}

/// The mean over runs, in the rounds that all of them have.
fn common(all: &[Vec<(f64, f64)>]) -> Vec<(f64, f64)> {
    let has = |curve: &Vec<(f64, f64)>, round: f64| curve.binary_search_by(|at| at.0.total_cmp(&round)).is_ok();
    let kept: Vec<Vec<(f64, f64)>> = all
        .iter()
        .map(|curve| curve.iter().copied().filter(|at| all.iter().all(|other| has(other, at.0))).collect())
        .collect();
    mean_curve(&kept)
}

/// What means of independent trainers were worth, by time and by bytes.
pub fn of_means(run: &Run) -> Vec<Chart> {
    let metric = run.recorded.metric.as_deref().unwrap_or("metric");
    let (by_loss, noun) = (run.recorded.summary.config["train"]["select_by"] == "loss", run.recorded.task.words.noun);
    let worth = if by_loss { "negative loss".to_owned() } else { metric.to_owned() };
    let axes: [(&str, &str, Unit); 2] =
        [("time", "seconds since trainers went", Unit::Seconds), ("bytes", "bytes sent so far", Unit::Bytes)];
    let chart = |(title, x, unit): (&str, &str, Unit), points: &[(f64, f64)]| Chart {
        title: format!("The mean against {title}"),
        x: (String::from(x), unit, Scale::Linear),
        y: format!("{worth} of the mean on validation {noun}"),
        curves: vec![curve("validation", (1, Weight::Strong), &thin(points, 500))],
        stages: Vec::new(),
        legend: Vec::new(),
        axes: None,
    };
    let charts = axes.into_iter().zip(&run.recorded.curves.worth).map(|(axis, points)| chart(axis, points));
    charts.filter(|chart| chart.curves.iter().any(|curve| !curve.points.is_empty())).collect()
}

/// The panels of one run: loss and metric of training against validation, and the test metric against bytes.
pub fn of_one(run: &Run) -> Vec<Chart> {
    let curves = &run.recorded.curves;
    let metric = run.recorded.metric.as_deref().unwrap_or("metric");
    let by_rounds = |title: &str, y: &str, pair: [(&str, &Vec<(f64, f64)>); 2]| {
        let there = pair.iter().enumerate().filter(|(_, (_, points))| !points.is_empty());
        let named = there.clone().map(|(style, (name, _))| (name.to_string(), style)).collect();
        let drawn = there.map(|(style, (name, points))| curve(name, (style, Weight::Strong), &thin(points, 500)));
        Chart {
            title: title.to_owned(),
            x: ("round".to_owned(), Unit::Plain, Scale::Linear),
            y: y.to_owned(),
            curves: drawn.collect(),
            stages: stages(curves),
            legend: named,
            axes: None,
        }
    };
    let loss = [("training, before the step", &curves.loss), ("validation", &curves.val_loss)];
    let figures = [("training", &curves.train), ("validation", &curves.val)];
    let end = run.recorded.test().map(|test| (run.recorded.summary.bytes.cost().1 as f64, test));
    let on_the_way: Vec<(f64, f64)> = thin(&curves.test_by_bytes, 500).into_iter().chain(end).collect();
    let against_bytes = Chart {
        title: format!("{metric} against bytes"),
        x: ("bytes that all workers have sent so far".to_owned(), Unit::Bytes, Scale::Log),
        y: format!("{metric} on test {} of the best round by validation so far", run.recorded.task.words.noun),
        curves: vec![curve("test", (2, Weight::Strong), &on_the_way)],
        stages: Vec::new(),
        legend: Vec::new(),
        axes: None,
    };
    let mut charts = vec![
        by_rounds("Loss by round", "", loss),
        by_rounds(&format!("{metric} by round"), "", figures),
        against_bytes,
    ];
    charts.retain(|chart| chart.curves.iter().any(|curve| !curve.points.is_empty()));
    charts
}

fn curve(name: &str, (style, weight): (usize, Weight), points: &[(f64, f64)]) -> Curve {
    Curve { name: name.to_owned(), style, weight, points: points.to_vec() }
}

fn stages(curves: &Curves) -> Vec<Stage> {
    let stage = |(index, round): (usize, &f64)| Stage { round: *round, name: format!("stage {}", index + 2) };
    curves.stages.iter().enumerate().map(stage).collect()
}

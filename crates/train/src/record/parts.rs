//! `parts`, `classes` and `confusion` of `summary.json`: the best round's figures part by part,
//! and class by class.

use std::collections::BTreeMap;

use laconic_nn::decisions::{CONFUSION_MAX, Decisions, Form};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::worker::parts::{JUDGED, PartCounts, Shape};

/// Something of validation, and of testing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-name" = "SPLIT"))]
pub struct Judged<T> {
    /// That of validation nodes, or edges.
    pub val: T,
    /// That of test nodes, or edges.
    pub test: T,
}

/// `parts.SPLIT`: what single parts come to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PartsSummary {
    /// Nodes, or edges by their targets, of each part, by their numbers; of independent trainers all parts, dropped
    /// ones too.
    pub count: Vec<u64>,
    /// By figure, the loss among them.
    #[schemars(extend("x-name" = "METRIC"))]
    pub figures: BTreeMap<String, FigureOfParts>,
}

/// One figure of each part.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FigureOfParts {
    /// The figure on each part's own nodes alone, `loss` among them; null where it is not defined.
    pub of: Vec<Option<f64>>,
    /// The mean over parts that have it, each for one, whatever it has of nodes; null of none.
    pub mean: Option<f64>,
    /// Their sample standard deviation; null of fewer than two.
    pub spread: Option<f64>,
    /// The worst of those; null of none.
    pub worst: Option<WorstPart>,
}

/// The part with the least of a metric, or the most loss; the first of equals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstPart {
    /// The part with the least, of `loss` the most; the first of equals.
    pub part: u32,
    /// What it comes to.
    pub figure: f64,
}

/// `classes.SPLIT[]`: what became of one class, or label, over all parts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClassSummary {
    /// The number of the class, or label.
    pub class: u32,
    /// (classes that have names) Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Nodes that are of it.
    pub support: u64,
    /// Nodes that were taken for it.
    pub predicted: u64,
    /// Nodes of it that were taken for it.
    pub true_positives: u64,
    /// Nodes that are not of it and were taken for it.
    pub false_positives: u64,
    /// Nodes of it that were not taken for it.
    pub false_negatives: u64,
    /// Nodes that are neither of it nor taken for it; of labels where it is known whether a node has it.
    pub true_negatives: u64,
    /// The share of those taken for it that are of it; null of none.
    pub precision: Option<f64>,
    /// The share of those of it that were taken for it; null of none.
    pub recall: Option<f64>,
    /// The harmonic mean of both; null where none is of it, and none taken for it.
    pub f1: Option<f64>,
}

/// A confusion matrix: a row for each true class, a column for each answer.
pub type Confusion = Vec<Vec<u64>>;

/// What parts have told of themselves, as it stands in the summary.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Told {
    /// Part by part.
    pub parts: Option<Judged<PartsSummary>>,
    /// Class by class.
    pub classes: Option<Judged<Vec<ClassSummary>>>,
    /// Where classes are few.
    pub confusion: Option<Judged<Confusion>>,
    /// Why something is missing.
    pub note: Option<String>,
}

fn judged<T>(of: impl Fn(usize) -> Option<T>) -> Option<Judged<T>> {
    const { assert!(JUDGED == 2) };
    Some(Judged { val: of(0)?, test: of(1)? })
}

impl Told {
    /// Of these parts, the first of which has this number; figures and classes are called by `names`.
    pub fn of(shape: Option<Shape>, parts: &[PartCounts], first: u32, names: (&[&str], &[String])) -> Told {
        let Some(shape) = shape else { return Told::default() };
        if parts.is_empty() {
            let what = "figures of parts and classes are not known of the best round: the run broke off after it, \
                before workers had told theirs";
            return Told { note: Some(what.to_owned()), ..Told::default() };
        }
        let all = |split: usize| shape.decisions(parts, split);
        let note = match shape.form {
            Form::Classes(classes) if classes > 0 => Some(format!(
                "`confusion` is left out of more than {CONFUSION_MAX} classes, and these are {classes}; \
                 `classes` has them one by one"
            )),
            _ => None,
        };
        Told {
            parts: judged(|split| Some(of_parts(parts, split, first, names.0))),
            classes: judged(|split| all(split).map(|decisions| of_classes(&decisions, names.1))),
            confusion: judged(|split| all(split)?.matrix()),
            note,
        }
    }
}

fn of_parts(parts: &[PartCounts], split: usize, first: u32, names: &[&str]) -> PartsSummary {
    let count = parts.iter().map(|part| part[split].count).collect();
    let of = |place: usize| -> Vec<Option<f64>> {
        parts.iter().map(|part| part[split].figures.get(place).copied().flatten()).collect()
    };
    let figures = std::iter::once(&"loss").chain(names).enumerate();
    let figures = figures.map(|(place, name)| ((*name).to_owned(), FigureOfParts::of(of(place), first, place == 0)));
    PartsSummary { count, figures: figures.collect() }
}

impl FigureOfParts {
    /// Of these parts, the first of which has this number.
    fn of(of: Vec<Option<f64>>, first: u32, less_is_better: bool) -> FigureOfParts {
        let defined: Vec<f64> = of.iter().copied().flatten().collect();
        let count = defined.len() as f64;
        let mean = (count > 0.0).then(|| defined.iter().sum::<f64>() / count);
        let squares = |mean: f64| defined.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>();
        let spread = mean.filter(|_| count > 1.0).map(|mean| (squares(mean) / (count - 1.0)).sqrt());
        let numbered = of.iter().zip(first..).filter_map(|(figure, part)| Some(WorstPart { part, figure: (*figure)? }));
        let worst = numbered.reduce(|worst, next| {
            let is_worse = if less_is_better { next.figure > worst.figure } else { next.figure < worst.figure };
            if is_worse { next } else { worst }
        });
        FigureOfParts { of, mean, spread, worst }
    }
}

fn of_classes(decisions: &Decisions, names: &[String]) -> Vec<ClassSummary> {
    let of = |(class, counts): (u32, &laconic_nn::decisions::OfClass)| ClassSummary {
        class,
        name: names.get(class as usize).cloned(),
        support: counts.support(),
        predicted: counts.predicted(),
        true_positives: counts.true_positives,
        false_positives: counts.false_positives,
        false_negatives: counts.false_negatives,
        true_negatives: counts.true_negatives,
        precision: counts.precision(),
        recall: counts.recall(),
        f1: counts.f1(),
    };
    (0..).zip(&decisions.of_classes()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_spread_and_worst_are_over_parts_that_have_the_figure() {
        let found = FigureOfParts::of(vec![Some(0.5), None, Some(0.8), Some(0.5)], 3, false);
        // The deviation of 0.5, 0.8, 0.5 from 0.6: sqrt((0.01 + 0.04 + 0.01) / 2).
        assert!((found.mean.expect("three") - 0.6).abs() < 1e-12);
        assert!((found.spread.expect("three") - 0.03f64.sqrt()).abs() < 1e-12);
        assert_eq!(found.worst, Some(WorstPart { part: 3, figure: 0.5 }));
        assert_eq!(FigureOfParts::of(vec![Some(1.0), Some(2.0)], 0, true).worst.expect("two").part, 1);
        let one = FigureOfParts::of(vec![None, Some(0.25)], 0, false);
        assert_eq!((one.mean, one.spread), (Some(0.25), None));
        let none = FigureOfParts::of(vec![None; 2], 0, false);
        assert_eq!((none.mean, none.spread, none.worst), (None, None, None));
    }
}

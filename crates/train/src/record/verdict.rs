//! What a model is worth that answers everything alike, or no better than one that does.

use super::constant::{Share, is_no_better, of_equal_scores, of_shares, whose};
use super::parts::{ClassSummary, Judged};
use crate::plan::{Plan, RankedAmong};
use crate::worker::evaluate::{Figures, Scores};

/// What became of a class, or label, among nodes whose truth is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answered {
    /// How many are of it.
    pub has: u64,
    /// Of how many that is known; of one class a node, all of them.
    pub known: u64,
    /// How many of these were taken for it.
    pub predicted: u64,
}

impl From<&ClassSummary> for Answered {
    fn from(class: &ClassSummary) -> Answered {
        let ClassSummary { support, predicted, false_positives, true_negatives, .. } = *class;
        Answered { has: support, known: support + false_positives + true_negatives, predicted }
    }
}

/// What there is to say of the chosen model on validation and test nodes, or edges. Of nodes it follows from what
/// became of each class, where parts have told that.
pub fn of_run(plan: &Plan, is_sets: bool, scores: &Scores, classes: Option<&Judged<Vec<ClassSummary>>>) -> Vec<String> {
    let Some(metric) = plan.metrics.first().map(|metric| metric.name()) else { return Vec::new() };
    if let Some(links) = &plan.links {
        let drawn = match links.ranked_among {
            RankedAmong::Drawn(drawn) => Some(drawn),
            RankedAmong::Given(_) => None,
        };
        let splits = [("validation", &scores.val), ("test", &scores.test)];
        return splits.into_iter().filter_map(|(split, figures)| of_links(metric, split, figures, drawn)).collect();
    }
    let Some(Judged { val, test }) = classes else { return Vec::new() };
    let of = |(split, figures, classes): (&str, &Figures, &Vec<ClassSummary>)| {
        let answered: Vec<Answered> = classes.iter().map(Answered::from).collect();
        let name = |class: usize| {
            let named = classes.get(class).and_then(|class| class.name.clone());
            named.unwrap_or_else(|| class.to_string())
        };
        of_nodes((metric, split), figures, &answered, is_sets, name)
    };
    [("validation", &scores.val, val), ("test", &scores.test, test)].into_iter().flat_map(of).collect()
}

/// Says so where all nodes were given one class, or the same labels; `which` are these nodes, behind their number.
pub fn one_answer(classes: &[Answered], is_sets: bool, which: &str, name: impl Fn(usize) -> String) -> Option<String> {
    let nodes = classes.iter().map(|class| class.known).max().filter(|nodes| *nodes > 1)?;
    let given = |(index, class): (usize, &Answered)| (class.predicted > 0).then(|| name(index));
    if !is_sets {
        let class = classes.iter().position(|class| class.predicted == nodes)?;
        return Some(format!("predicts one class ({}) for all {nodes} {which}", name(class)));
    }
    let is_alike = classes.iter().all(|class| class.predicted == 0 || class.predicted == class.known);
    let names: Vec<String> = classes.iter().enumerate().filter_map(given).collect();
    let said = if names.is_empty() { "no label".to_owned() } else { names.join(", ") };
    is_alike.then(|| format!("predicts the same labels ({said}) for all {nodes} {which}"))
}

/// Says so where the figure of a split is no better than the best fixed answer.
fn no_better(
    (metric, split): (&str, &str),
    figures: &Figures,
    fixed: Option<f64>,
    is_of_links: bool,
) -> Option<String> {
    let (figure, fixed) = (figures.get(metric).copied().flatten()?, fixed?);
    is_no_better(figure, fixed).then(|| {
        let what = whose(is_of_links);
        format!("{metric} of {split} is {figure:.4}, no better than {fixed:.4}, {what}")
    })
}

/// What there is to say of a split of nodes; `metric` is what chose the model.
pub fn of_nodes(
    (metric, split): (&str, &str),
    figures: &Figures,
    classes: &[Answered],
    is_sets: bool,
    name: impl Fn(usize) -> String,
) -> Vec<String> {
    let shares: Vec<Share> = classes.iter().map(|class| (class.has as f64, class.known as f64)).collect();
    let alike = one_answer(classes, is_sets, &format!("{split} nodes"), name);
    let fixed = of_shares(metric, &shares, is_sets);
    alike.into_iter().chain(no_better((metric, split), figures, fixed, false)).collect()
}

/// The same of a split of links, which were ranked among so many drawn pairs.
pub fn of_links(metric: &str, split: &str, figures: &Figures, drawn: Option<u32>) -> Option<String> {
    no_better((metric, split), figures, of_equal_scores(metric, drawn), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(counts: &[[u64; 3]]) -> Vec<Answered> {
        counts.iter().map(|&[has, known, predicted]| Answered { has, known, predicted }).collect()
    }

    fn said(metric: &str, figure: f64, counts: &[[u64; 3]], is_sets: bool) -> Vec<String> {
        let figures = [(metric.to_owned(), Some(figure))].into();
        of_nodes((metric, "test"), &figures, &answered(counts), is_sets, |class| format!("c{class}"))
    }

    #[test]
    fn one_class_for_all_nodes_is_said_with_what_it_is_worth() {
        let expected = [
            "predicts one class (c1) for all 10 test nodes",
            "accuracy of test is 0.6000, no better than 0.6000, the best answer that is the same for every node",
        ];
        assert_eq!(said("accuracy", 0.6, &[[4, 10, 0], [6, 10, 10]], false), expected);
        // Two classes and still worse; two classes and better; one node alone says nothing of a model.
        assert_eq!(said("accuracy", 0.5, &[[4, 10, 1], [6, 10, 9]], false).len(), 1);
        assert_eq!(said("accuracy", 0.7, &[[4, 10, 1], [6, 10, 9]], false), [""; 0]);
        assert!(!said("accuracy", 1.0, &[[1, 1, 1], [0, 1, 0]], false)[0].contains("predicts"));
    }

    #[test]
    fn the_same_labels_for_all_nodes_are_said_and_none_are_some() {
        let alike = said("micro_f1", 0.9, &[[9, 10, 10], [1, 9, 0]], true);
        assert_eq!(alike[0], "predicts the same labels (c0) for all 10 test nodes");
        let none = said("micro_f1", 0.0, &[[1, 10, 0], [1, 10, 0]], true);
        assert_eq!(none[0], "predicts the same labels (no label) for all 10 test nodes");
        assert_eq!(said("micro_f1", 0.96, &[[9, 10, 9], [1, 10, 0]], true), [""; 0]);
    }

    #[test]
    fn links_that_rank_as_equal_scores_do_are_said() {
        let figures: Figures = [("mrr".to_owned(), Some(0.05)), ("roc_auc".to_owned(), None)].into();
        let expected = "mrr of validation is 0.0500, no better than 0.0500, scores that are the same for every pair";
        assert_eq!(of_links("mrr", "validation", &figures, Some(19)).as_deref(), Some(expected));
        assert_eq!(of_links("mrr", "validation", &figures, Some(20)), None);
        assert_eq!(of_links("roc_auc", "validation", &figures, Some(20)), None);
    }
}

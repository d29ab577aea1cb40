//! Metrics as sums: each worker counts its own rows, the counts are added over all workers, and the figure is computed
//! from the global sums. Nothing is ever averaged over workers.

use crate::decisions::{Decisions, f1};
use crate::loss::Targets;
use crate::matrix::Matrix;

/// How good predictions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Metric {
    /// The share of rows whose largest logit is the right one; for sets the share of right yes/no decisions.
    Accuracy,
    /// F1 of all decisions pooled over classes.
    MicroF1,
    /// The mean of each class's F1 over the classes that occur or are predicted; the others have none.
    MacroF1,
    /// The area under the ROC curve, from counts in bins of the score; for sets the mean over classes that have both
    /// values.
    RocAuc,
    /// The same, exact, from all scores, ties counted half.
    RocAucExact,
    /// Of links: the mean over edges of one by the rank among negatives of their own, ties against the edge.
    Mrr,
    /// Of links: the share of edges with a score above the 10th best of one pool of negatives; as below. Of a pool with
    /// fewer it is not defined.
    Hits10,
    /// Above the 20th best.
    Hits20,
    /// Above the 50th best.
    Hits50,
    /// Above the 100th best.
    Hits100,
    /// Of links, each edge a query whose only right answer is its target: the share of edges with a rank of 10 at most
    /// among negatives of their own; as below.
    Recall10,
    /// Of 20 at most.
    Recall20,
    /// Of 50 at most.
    Recall50,
    /// Of 100 at most.
    Recall100,
    /// Of links, with the same queries: the mean over edges of 1 / log2(1 + rank), 0 behind rank 10; as below.
    Ndcg10,
    /// Behind rank 20.
    Ndcg20,
    /// Behind rank 50.
    Ndcg50,
    /// Behind rank 100.
    Ndcg100,
}

/// Every metric with its name in configurations and summaries, in the order of the documentation.
const NAMES: [(Metric, &str); 18] = [
    (Metric::Accuracy, "accuracy"),
    (Metric::MicroF1, "micro_f1"),
    (Metric::MacroF1, "macro_f1"),
    (Metric::RocAuc, "roc_auc"),
    (Metric::RocAucExact, "roc_auc_exact"),
    (Metric::Mrr, "mrr"),
    (Metric::Hits10, "hits@10"),
    (Metric::Hits20, "hits@20"),
    (Metric::Hits50, "hits@50"),
    (Metric::Hits100, "hits@100"),
    (Metric::Recall10, "recall@10"),
    (Metric::Recall20, "recall@20"),
    (Metric::Recall50, "recall@50"),
    (Metric::Recall100, "recall@100"),
    (Metric::Ndcg10, "ndcg@10"),
    (Metric::Ndcg20, "ndcg@20"),
    (Metric::Ndcg50, "ndcg@50"),
    (Metric::Ndcg100, "ndcg@100"),
];

impl Metric {
    /// Every metric, in the order of their names in the documentation.
    pub const ALL: [Metric; NAMES.len()] = {
        let (mut all, mut at) = ([Metric::Accuracy; NAMES.len()], 0);
        while at < all.len() {
            all[at] = NAMES[at].0;
            at += 1;
        }
        all
    };

    /// Whether it is one of edges; areas are of nodes, too.
    pub fn is_of_links(self) -> bool {
        matches!(self, Metric::RocAuc | Metric::RocAucExact) || !self.is_of_nodes()
    }

    /// Whether it is one of nodes; areas are of edges, too.
    pub fn is_of_nodes(self) -> bool {
        !self.is_of_ranks() && self.top().is_none()
    }

    /// Whether it follows from the ranks of edges among negatives of their own.
    pub fn is_of_ranks(self) -> bool {
        self == Metric::Mrr || self.recall_top().is_some() || self.gain_top().is_some()
    }

    /// Of Hits@K: among the best how many of the pool an edge is to be.
    pub fn top(self) -> Option<usize> {
        self.among([Metric::Hits10, Metric::Hits20, Metric::Hits50, Metric::Hits100])
    }

    /// Of recall@k: the rank that an edge is to have at most.
    pub fn recall_top(self) -> Option<usize> {
        self.among([Metric::Recall10, Metric::Recall20, Metric::Recall50, Metric::Recall100])
    }

    /// Of ndcg@k: the last rank that gains anything.
    pub fn gain_top(self) -> Option<usize> {
        self.among([Metric::Ndcg10, Metric::Ndcg20, Metric::Ndcg50, Metric::Ndcg100])
    }

    fn among(self, family: [Metric; 4]) -> Option<usize> {
        family.iter().position(|&metric| metric == self).map(|at| [10, 20, 50, 100][at])
    }

    /// The name in configurations and summaries.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(metric, _)| *metric == self).map_or("", |(_, name)| name)
    }

    /// The metric of this name.
    pub fn from_name(name: &str) -> Option<Metric> {
        NAMES.iter().find(|(_, other)| *other == name).map(|(metric, _)| *metric)
    }
}

/// What is counted over the rows of one split. All but areas under the curve follow from it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally {
    /// The number of rows that were counted. A row of sets counts for the share of its entries that are known.
    pub rows: f64,
    /// Σ loss of rows.
    pub loss: f64,
    /// Right decisions: rows for classes, row × class for sets.
    pub correct: f64,
    /// All decisions, right or wrong.
    pub decisions: f64,
    /// Per class: true positives, false positives, false negatives. Empty unless F1 is asked for.
    pub classes: Vec<[f64; 3]>,
}

impl Tally {
    /// Numbers in a flat tally.
    pub fn flat_len(classes: usize, per_class: bool) -> usize {
        4 + if per_class { 3 * classes } else { 0 }
    }

    /// Counts the rows that `counts` selects.
    pub fn of(logits: &Matrix, targets: Targets<'_>, counts: &[bool], loss: f64, per_class: bool) -> Tally {
        Tally::with_decisions(logits, targets, counts, (loss, per_class), None)
    }

    /// The same; each decision is entered into `decisions`, where there are any, as well.
    pub fn with_decisions(
        logits: &Matrix,
        targets: Targets<'_>,
        counts: &[bool],
        (loss, per_class): (f64, bool),
        mut decisions: Option<&mut Decisions>,
    ) -> Tally {
        let width = logits.columns();
        let mut tally = Tally { loss, classes: vec![[0.0; 3]; if per_class { width } else { 0 }], ..Tally::default() };
        for row in (0..logits.rows()).filter(|&row| counts[row]) {
            match targets {
                Targets::Classes(classes) => {
                    let (guess, truth) = (argmax(logits.row(row)), classes[row] as usize);
                    tally.decisions += 1.0;
                    tally.correct += f64::from(u8::from(guess == truth));
                    if let Some(decisions) = &mut decisions {
                        decisions.decide(truth, guess);
                    }
                    if per_class {
                        if guess == truth {
                            tally.classes[truth][0] += 1.0;
                        } else {
                            tally.classes[guess][1] += 1.0;
                            tally.classes[truth][2] += 1.0;
                        }
                    }
                }
                Targets::Sets(sets) => {
                    let known = logits.row(row).iter().zip(&sets[row * width..]).enumerate();
                    for (class, (&logit, &truth)) in known.filter(|(_, (_, truth))| **truth <= 1) {
                        let guess = logit > 0.0;
                        tally.decisions += 1.0;
                        tally.correct += f64::from(u8::from(guess == (truth != 0)));
                        if let Some(decisions) = &mut decisions {
                            decisions.decide_label(class, truth != 0, guess);
                        }
                        if per_class {
                            match (guess, truth != 0) {
                                (true, true) => tally.classes[class][0] += 1.0,
                                (true, false) => tally.classes[class][1] += 1.0,
                                (false, true) => tally.classes[class][2] += 1.0,
                                (false, false) => {}
                            }
                        }
                    }
                }
            }
        }
        tally.rows = match targets {
            Targets::Classes(_) => tally.decisions,
            Targets::Sets(_) => tally.decisions / width.max(1) as f64,
        };
        tally
    }

    /// Appends the tally to a flat vector that can be summed over workers.
    pub fn flatten(&self, into: &mut Vec<f64>) {
        into.extend([self.rows, self.loss, self.correct, self.decisions]);
        into.extend(self.classes.iter().flatten());
    }

    /// Reads back what [`Tally::flatten`] wrote, or a sum of such.
    ///
    /// # Panics
    ///
    /// If there are fewer than four numbers.
    pub fn unflatten(flat: &[f64]) -> Tally {
        let classes = flat[4..].chunks_exact(3).map(|c| [c[0], c[1], c[2]]).collect();
        Tally { rows: flat[0], loss: flat[1], correct: flat[2], decisions: flat[3], classes }
    }

    /// The mean loss of a row; `None` without rows.
    pub fn mean_loss(&self) -> Option<f64> {
        (self.rows > 0.0).then(|| self.loss / self.rows)
    }

    /// The figure; `None` where it is not defined, because it would be 0/0. Areas do not follow from a tally: see
    /// [`mod@crate::roc`].
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Accuracy => (self.decisions > 0.0).then(|| self.correct / self.decisions),
            Metric::MicroF1 => f1(self.classes.iter().fold([0.0; 3], |s, c| [s[0] + c[0], s[1] + c[1], s[2] + c[2]])),
            Metric::MacroF1 => {
                let (mut sum, mut classes) = (0.0, 0.0);
                for figure in self.classes.iter().filter_map(|&counts| f1(counts)) {
                    (sum, classes) = (sum + figure, classes + 1.0);
                }
                (classes > 0.0).then(|| sum / classes)
            }
            _ => None,
        }
    }
}

/// The column of the largest value, the first of equals.
pub fn argmax(row: &[f32]) -> usize {
    let mut best = 0;
    for (column, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = column;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_a_name_of_its_own_and_the_number_in_it() {
        for (at, metric) in Metric::ALL.into_iter().enumerate() {
            assert_eq!(Metric::from_name(metric.name()), Some(metric));
            assert!(Metric::ALL[..at].iter().all(|before| before.name() != metric.name()));
            assert!(metric.is_of_nodes() || metric.is_of_links());
            let number = metric.name().split_once('@').map(|(_, number)| number.parse().expect("a number"));
            assert_eq!(metric.top().or(metric.recall_top()).or(metric.gain_top()), number, "{metric:?}");
        }
    }

    #[test]
    fn figures_follow_their_definitions_on_a_case_done_by_hand() {
        let logits = Matrix::from_vec(5, 3, vec![1., 0., 0., 0., 2., 0., 0., 1., 3., 5., 0., 0., 0., 0., 9.]);
        let tally = Tally::of(&logits, Targets::Classes(&[0, 1, 1, 1, 2]), &[true, true, true, true, false], 0.0, true);
        // Predicted 0 1 2 0 against 0 1 1 1.
        assert_eq!(tally.figure(Metric::Accuracy), Some(0.5));
        assert_eq!(tally.figure(Metric::MicroF1), Some(0.5));
        let (f0, f1, f2) = (2.0 / 3.0, 0.5, 0.0);
        let found = tally.figure(Metric::MacroF1).expect("three classes");
        assert!((found - (f0 + f1 + f2) / 3.0).abs() < 1e-12);
        let mut flat = Vec::new();
        tally.flatten(&mut flat);
        assert_eq!(flat.len(), Tally::flat_len(3, true));
        assert_eq!(Tally::unflatten(&flat), tally);
    }

    #[test]
    fn unknown_entries_have_no_part_in_any_count() {
        let logits = Matrix::from_vec(3, 2, vec![1.0, -1.0, -1.0, 1.0, 2.0, 3.0]);
        let sets = [1, 255, 0, 1, 255, 0];
        let tally = Tally::of(&logits, Targets::Sets(&sets), &[true; 3], 0.0, true);
        // Known: yes as yes, no as no, yes as yes, no as yes.
        assert_eq!((tally.rows, tally.decisions, tally.correct), (2.0, 4.0, 3.0));
        assert_eq!(tally.classes, [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]);
    }

    #[test]
    fn sets_are_judged_at_logit_zero() {
        let logits = Matrix::from_vec(2, 2, vec![1.0, -1.0, -1.0, 1.0]);
        let tally = Tally::of(&logits, Targets::Sets(&[1, 1, 0, 1]), &[true, true], 0.0, true);
        assert_eq!(tally.figure(Metric::Accuracy), Some(0.75));
        assert_eq!(tally.figure(Metric::MicroF1), Some(4.0 / 5.0));
    }

    #[test]
    fn what_would_be_nothing_by_nothing_is_no_figure() {
        let decided = [Metric::Accuracy, Metric::MicroF1, Metric::MacroF1];
        let none = Tally { classes: vec![[0.0; 3]; 4], ..Tally::default() };
        assert!(decided.iter().all(|&metric| none.figure(metric).is_none()));
        assert!(Tally::default().figure(Metric::MacroF1).is_none() && none.mean_loss().is_none());
        // Classes 0 and 1 of five are all that occurs and is predicted: scikit-learn's mean is over these two.
        let logits =
            Matrix::from_vec(3, 5, [[1.0f32, 0., 0., 0., 0.], [0., 1., 0., 0., 0.], [1., 0., 0., 0., 0.]].concat());
        let tally = Tally::of(&logits, Targets::Classes(&[0, 1, 1]), &[true; 3], 0.0, true);
        assert_eq!(tally.figure(Metric::MacroF1), Some((2.0 / 3.0 + 2.0 / 3.0) / 2.0));
        // No label anywhere and none predicted: right everywhere, and without an F1.
        let logits = Matrix::from_vec(2, 2, vec![-1.0; 4]);
        let tally = Tally::of(&logits, Targets::Sets(&[0; 4]), &[true; 2], 0.0, true);
        assert_eq!(decided.map(|metric| tally.figure(metric)), [Some(1.0), None, None]);
    }
}

//! How decisions on classes came out: counts that add up over workers, from which confusion matrices and the figures of
//! single classes follow.

/// With more classes than these a confusion matrix is not counted: it would be larger than anybody reads.
pub const CONFUSION_MAX: usize = 100;

/// What is counted of each decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Of so many classes, one a node: truth against answer.
    Matrix(usize),
    /// The same without which classes are taken for which: right, answered in vain, missed.
    Classes(usize),
    /// Of so many labels, several a node: right, given in vain, missed, rightly not given.
    Labels(usize),
}

impl Form {
    /// What is counted of so many classes, of which a node may have several or not.
    pub fn of(classes: usize, sets: bool) -> Form {
        match classes {
            labels if sets => Form::Labels(labels),
            few if few <= CONFUSION_MAX => Form::Matrix(few),
            many => Form::Classes(many),
        }
    }

    /// How many numbers these are.
    pub fn len(self) -> usize {
        match self {
            Form::Matrix(classes) => classes * classes,
            Form::Classes(classes) => 3 * classes,
            Form::Labels(labels) => 4 * labels,
        }
    }

    /// Whether there is nothing to decide.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Counts of decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decisions {
    form: Form,
    counts: Vec<u64>,
}

/// The decisions on one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfClass {
    /// Of the class, and taken for it.
    pub true_positives: u64,
    /// Not of the class, and taken for it.
    pub false_positives: u64,
    /// Of the class, and not taken for it.
    pub false_negatives: u64,
    /// Neither of the class nor taken for it.
    pub true_negatives: u64,
}

impl OfClass {
    /// How many are of the class.
    pub fn support(&self) -> u64 {
        self.true_positives + self.false_negatives
    }

    /// How many are taken for it.
    pub fn predicted(&self) -> u64 {
        self.true_positives + self.false_positives
    }

    /// The share of those taken for it that are; `None` of none.
    pub fn precision(&self) -> Option<f64> {
        share(self.true_positives, self.predicted())
    }

    /// The share of those that are of it that are taken for it; `None` of none.
    pub fn recall(&self) -> Option<f64> {
        share(self.true_positives, self.support())
    }

    /// F1; `None` where none is of it and none taken for it.
    pub fn f1(&self) -> Option<f64> {
        f1([self.true_positives, self.false_positives, self.false_negatives].map(|count| count as f64))
    }
}

/// F1 of true positives, false positives and false negatives; `None` where nothing is positive, neither in truth nor
/// predicted.
pub fn f1([tp, fp, fn_]: [f64; 3]) -> Option<f64> {
    let positives = 2.0 * tp + fp + fn_;
    (positives > 0.0).then(|| 2.0 * tp / positives)
}

fn share(of: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| of as f64 / all as f64)
}

impl Decisions {
    /// Counts of this form before anything was decided.
    pub fn none(form: Form) -> Decisions {
        Decisions { form, counts: vec![0; form.len()] }
    }

    /// These counts, in the order of [`Decisions::counts`]; `None` where they are not as many, or one is larger than
    /// nodes of a part can be.
    pub fn from_counts(form: Form, counts: Vec<u64>) -> Option<Decisions> {
        let fits = counts.len() == form.len() && counts.iter().all(|&count| count <= u64::from(u32::MAX));
        fits.then_some(Decisions { form, counts })
    }

    /// Enters that one of class `truth` was taken for one of class `guess`.
    pub fn decide(&mut self, truth: usize, guess: usize) {
        match self.form {
            Form::Matrix(classes) => self.counts[truth * classes + guess] += 1,
            Form::Classes(_) if truth == guess => self.counts[3 * truth] += 1,
            Form::Classes(_) => {
                self.counts[3 * guess + 1] += 1;
                self.counts[3 * truth + 2] += 1;
            }
            Form::Labels(_) => {}
        }
    }

    /// Enters whether one has a label, and whether it was given that.
    pub fn decide_label(&mut self, label: usize, truth: bool, guess: bool) {
        if let Form::Labels(_) = self.form {
            let place = match (truth, guess) {
                (true, true) => 0,
                (false, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
            };
            self.counts[4 * label + place] += 1;
        }
    }

    /// Adds those of others of the same form.
    pub fn add(&mut self, others: &Decisions) {
        self.counts.iter_mut().zip(&others.counts).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
    }

    /// All numbers: rows of the matrix, or those of one class behind those of another.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The confusion matrix: a row for each true class, a column for each answer. `None` where it is not counted.
    pub fn matrix(&self) -> Option<Vec<Vec<u64>>> {
        match self.form {
            Form::Matrix(classes) if classes > 0 => Some(self.counts.chunks(classes).map(<[u64]>::to_vec).collect()),
            _ => None,
        }
    }

    /// What became of each class.
    pub fn of_classes(&self) -> Vec<OfClass> {
        let positives = |[true_positives, false_positives, false_negatives]: [u64; 3]| OfClass {
            true_positives,
            false_positives,
            false_negatives,
            true_negatives: 0,
        };
        let mut all: Vec<OfClass> = match self.form {
            Form::Matrix(classes) => {
                let of = |class: usize| {
                    let right = self.counts[class * classes + class];
                    let [support, predicted] = [(class * classes, 1), (class, classes)]
                        .map(|(from, step)| self.counts.iter().skip(from).step_by(step).take(classes).sum::<u64>());
                    positives([right, predicted - right, support - right])
                };
                (0..classes).map(of).collect()
            }
            Form::Classes(_) => self.counts.as_chunks::<3>().0.iter().map(|counts| positives(*counts)).collect(),
            Form::Labels(_) => {
                let of =
                    |&[tp, fp, missed, not]: &[u64; 4]| OfClass { true_negatives: not, ..positives([tp, fp, missed]) };
                return self.counts.as_chunks::<4>().0.iter().map(of).collect();
            }
        };
        let nodes: u64 = all.iter().map(OfClass::support).sum();
        for class in &mut all {
            // Counts that no evaluation has made may say anything.
            class.true_negatives = nodes.saturating_sub(class.support()).saturating_sub(class.false_positives);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_and_counts_of_classes_say_the_same_of_each_class() {
        let decided = [(0, 0), (0, 1), (1, 1), (1, 1), (2, 1), (2, 0), (0, 0)];
        let [matrix, classes] = [Form::Matrix(4), Form::Classes(4)].map(|form| {
            let mut decisions = Decisions::none(form);
            decided.iter().for_each(|&(truth, guess)| decisions.decide(truth, guess));
            decisions
        });
        assert_eq!(matrix.of_classes(), classes.of_classes());
        let expected = [[2, 1, 0, 0], [0, 2, 0, 0], [1, 1, 0, 0], [0; 4]];
        assert_eq!(matrix.matrix(), Some(expected.map(|row| row.to_vec()).to_vec()));
        assert_eq!(classes.matrix(), None);
        let OfClass { true_positives, false_positives, false_negatives, true_negatives } = matrix.of_classes()[1];
        assert_eq!([true_positives, false_positives, false_negatives, true_negatives], [2, 2, 0, 3]);
    }

    #[test]
    fn what_never_occurs_and_is_never_answered_has_no_figure() {
        let none = OfClass { true_negatives: 5, ..OfClass::default() };
        assert_eq!([none.precision(), none.recall(), none.f1()], [None; 3]);
        let missed = OfClass { false_negatives: 2, ..OfClass::default() };
        assert_eq!([missed.precision(), missed.recall(), missed.f1()], [None, Some(0.0), Some(0.0)]);
        let all = OfClass { true_positives: 3, false_positives: 1, false_negatives: 2, true_negatives: 0 };
        assert_eq!([all.precision(), all.recall(), all.f1()], [Some(0.75), Some(0.6), Some(2.0 / 3.0)]);
    }

    #[test]
    fn counts_of_another_form_are_refused_and_large_tasks_have_no_matrix() {
        assert!(Decisions::from_counts(Form::Matrix(3), vec![0; 8]).is_none());
        assert!(Decisions::from_counts(Form::Matrix(1), vec![1 << 32]).is_none());
        let odd = Decisions::from_counts(Form::Classes(1), vec![0, 5, 0]).expect("three numbers");
        assert_eq!(odd.of_classes()[0].true_negatives, 0);
        assert_eq!(Form::of(CONFUSION_MAX, false), Form::Matrix(CONFUSION_MAX));
        assert_eq!(Form::of(CONFUSION_MAX + 1, false).len(), 3 * (CONFUSION_MAX + 1));
        assert_eq!(Form::of(200, true), Form::Labels(200));
    }
}

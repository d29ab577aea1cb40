//! Whether parts have the labels that the whole has: what is learned on one part apart from the others is about its own
//! labels.

use schemars::JsonSchema;
use serde::Serialize;

use crate::dataset::{Labels, Split};
use crate::part::Part;

/// How the labels of training nodes are spread over parts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LabelSkew {
    /// One entry a part.
    pub parts: Vec<PartLabels>,
    /// The mean of the distances, weighted by labelled training nodes, to two places.
    pub skew: f64,
}

/// The labels of one part's training nodes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct PartLabels {
    /// Training nodes of the part that have a label.
    pub labelled: u64,
    /// The class that most of them have; null where there is none.
    pub most_frequent: Option<usize>,
    /// The share of them that have it.
    pub share: f64,
    /// How far their classes lie from all parts', 0 to 1: half of what the classes' shares differ by (the total
    /// variation), or with several labels a node the mean over labels of what their shares differ by.
    pub distance: f64,
}

/// Counts of labels, part by part.
#[derive(Debug, Clone, Default)]
pub struct LabelCounts {
    parts: Vec<Counts>,
    is_multi: bool,
}

#[derive(Debug, Clone, Default)]
struct Counts {
    nodes: u64,
    /// For each label the nodes that have it, and those of which it is known whether they have it.
    with: Vec<[u64; 2]>,
}

impl LabelSkew {
    /// Of these parts; `None` without training nodes that have a label.
    pub fn of_parts(parts: &[Part]) -> Option<LabelSkew> {
        let mut counts = LabelCounts::default();
        counts.reserve(parts.len());
        parts.iter().for_each(|part| counts.see(&part.labels, &part.roles, |_| part.index));
        counts.finish()
    }
}

impl Counts {
    fn share(&self, label: usize) -> f64 {
        let [with, known] = self.with.get(label).copied().unwrap_or_default();
        if known > 0 { with as f64 / known as f64 } else { 0.0 }
    }
}

impl LabelCounts {
    /// Counts the training nodes among all rows of `labels`; `part` says whose a row is.
    pub fn see(&mut self, labels: &Labels, roles: &[u8], part: impl Fn(usize) -> u32) {
        let classes = labels.classes();
        self.is_multi |= matches!(labels, Labels::Multi { .. });
        for row in (0..roles.len()).filter(|&row| roles[row] & Split::TRAIN != 0 && labels.known(row) > 0) {
            let part = part(row) as usize;
            self.reserve(part + 1);
            let counts = &mut self.parts[part];
            counts.with.resize(classes.max(counts.with.len()), [0; 2]);
            counts.nodes += 1;
            match labels {
                Labels::None => {}
                Labels::Single { values, .. } => {
                    counts.with[values[row] as usize][0] += 1;
                    counts.with.iter_mut().for_each(|[_, known]| *known += 1);
                }
                Labels::Multi { values, .. } => {
                    let known = values[row * classes..][..classes].iter().zip(&mut counts.with);
                    for (value, [with, known]) in known.filter(|(value, _)| **value != Labels::UNKNOWN) {
                        *with += u64::from(*value != 0);
                        *known += 1;
                    }
                }
            }
        }
    }

    /// Makes room for so many parts: those of which nothing is seen have no training nodes.
    pub fn reserve(&mut self, parts: usize) {
        self.parts.resize(parts.max(self.parts.len()), Counts::default());
    }

    /// How they are spread; `None` without any.
    pub fn finish(self) -> Option<LabelSkew> {
        let classes = self.parts.iter().map(|counts| counts.with.len()).max().unwrap_or(0);
        let mut all = Counts { nodes: 0, with: vec![[0; 2]; classes] };
        for counts in &self.parts {
            all.nodes += counts.nodes;
            for ([with, known], more) in all.with.iter_mut().zip(&counts.with) {
                *with += more[0];
                *known += more[1];
            }
        }
        if all.nodes == 0 {
            return None;
        }
        let scale = if self.is_multi { 1.0 / classes as f64 } else { 0.5 };
        let of = |counts: &Counts| {
            if counts.nodes == 0 {
                return PartLabels::default();
            }
            let apart = (0..classes).map(|label| (counts.share(label) - all.share(label)).abs()).sum::<f64>();
            // The first of equals.
            let most = (0..classes).rev().max_by(|a, b| counts.share(*a).total_cmp(&counts.share(*b)));
            let share = most.map_or(0.0, |label| counts.share(label));
            PartLabels { labelled: counts.nodes, most_frequent: most, share, distance: scale * apart }
        };
        let parts: Vec<PartLabels> = self.parts.iter().map(of).collect();
        let sum: f64 = parts.iter().map(|part| part.labelled as f64 * part.distance).sum();
        Some(LabelSkew { parts, skew: (100.0 * sum / all.nodes as f64).round() / 100.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_class_each_are_as_far_from_the_whole_as_can_be_and_equal_parts_are_not() {
        let single = |values: Vec<i32>| Labels::Single { classes: 3, values };
        let roles = vec![Split::TRAIN; 6];
        let at = |values: &[i32], of: [u32; 6]| {
            let mut counts = LabelCounts::default();
            counts.see(&single(values.to_vec()), &roles, |row| of[row]);
            counts.finish().expect("training nodes")
        };
        // Each part has one class of three: half of |1 − 1/3| + 1/3 + 1/3.
        let apart = at(&[0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2]);
        assert_eq!(apart.skew, 0.67);
        assert!(apart.parts.iter().all(|part| part.share == 1.0 && (part.distance - 2.0 / 3.0).abs() < 1e-12));
        assert_eq!(apart.parts.iter().map(|part| part.most_frequent).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
        let alike = at(&[0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1]);
        assert_eq!((alike.skew, alike.parts[1].labelled, alike.parts[1].most_frequent), (0.0, 3, Some(0)));
        // By hand: part 0 has classes 0, 0, 0, 1 and part 1 has 1, unknown; all are 3/5 and 2/5.
        let some = at(&[0, 0, 0, 1, 1, -1], [0, 0, 0, 0, 1, 1]);
        assert!((some.parts[0].distance - 0.15).abs() < 1e-12 && (some.parts[1].distance - 0.6).abs() < 1e-12);
        assert_eq!((some.skew, some.parts[0].share, some.parts[1].labelled), (0.24, 0.75, 1));
    }

    #[test]
    fn of_several_labels_a_node_each_is_compared_by_itself_and_what_is_not_known_does_not_count() {
        let labels = Labels::Multi { classes: 2, values: vec![1, 0, 1, 1, 0, 255, 0, 1] };
        let mut counts = LabelCounts::default();
        counts.reserve(3);
        counts.see(&labels, &[Split::TRAIN; 4], |row| u32::from(row > 1));
        let skew = counts.finish().expect("training nodes");
        // Label 0: 1 and 0 of 1/2. Label 1: 1/2 and 1 of 2/3.
        let expected = [(0.5 + 1.0 / 6.0) / 2.0, (0.5 + 1.0 / 3.0) / 2.0];
        assert!((skew.parts[0].distance - expected[0]).abs() < 1e-12);
        assert!((skew.parts[1].distance - expected[1]).abs() < 1e-12);
        assert_eq!(skew.parts[2], PartLabels::default());
        assert_eq!((skew.skew, skew.parts[0].share, skew.parts[1].most_frequent), (0.38, 1.0, Some(1)));
        let mut nobody = LabelCounts::default();
        nobody.see(&labels, &[Split::TEST; 4], |_| 0);
        assert_eq!(nobody.finish(), None);
    }
}

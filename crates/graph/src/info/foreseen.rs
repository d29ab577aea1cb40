//! Figures of a split that will not be defined, or will leave classes out: what labels say before anything is trained.

use crate::dataset::{Labels, Split};

/// Labels of nodes, and their roles in a split: of a dataset, or of one of its parts.
pub type Roled<'a> = (&'a Labels, &'a [u8]);

/// The splits that figures are taken of, as sentences call them.
const JUDGED: [(&str, u8); 2] = [("validation", Split::VAL), ("test", Split::TEST)];

/// Classes that a sentence names, at most.
const NAMED: usize = 10;

/// For each class among nodes of this role how many have it, and of how many it is known.
pub fn class_counts<'a>(pieces: impl IntoIterator<Item = Roled<'a>>, role: u8) -> Vec<[u64; 2]> {
    let (mut counts, mut one_each) = (Vec::new(), 0);
    for (labels, roles) in pieces {
        counts.resize(labels.classes().max(counts.len()), [0u64; 2]);
        let has_role = |row: usize| roles.get(row).is_some_and(|roles| roles & role != 0);
        match labels {
            Labels::None => {}
            Labels::Single { values, .. } => {
                for (_, class) in values.iter().enumerate().filter(|(row, class)| **class >= 0 && has_role(*row)) {
                    counts.get_mut(*class as usize).into_iter().for_each(|count| count[0] += 1);
                    one_each += 1;
                }
            }
            Labels::Multi { classes, values } => {
                let sets = values.chunks_exact((*classes).max(1)).enumerate();
                for (_, set) in sets.filter(|(row, _)| has_role(*row)) {
                    let known = counts.iter_mut().zip(set).filter(|(_, truth)| **truth != Labels::UNKNOWN);
                    known.for_each(|(count, truth)| *count = [count[0] + u64::from(*truth), count[1] + 1]);
                }
            }
        }
    }
    counts.iter_mut().for_each(|count| count[1] += one_each);
    counts
}

/// Nodes that are all of one class, as the end of a sentence.
pub fn of_one_class(nodes: u64, class: usize) -> String {
    let nodes = if nodes == 1 { "the only node is".to_owned() } else { format!("all {nodes} nodes are") };
    format!("{nodes} of class {class}")
}

/// What will not be defined of figures of validation and test nodes, and what some will leave out, a line each; of
/// those metrics that are asked for.
pub fn foreseen<'a>(pieces: impl Iterator<Item = Roled<'a>> + Clone, is_asked: impl Fn(&str) -> bool) -> Vec<String> {
    let is_multi = pieces.clone().any(|(labels, _)| matches!(labels, Labels::Multi { .. }));
    let mut said = Vec::new();
    for (name, role) in JUDGED {
        let counts = class_counts(pieces.clone(), role);
        if counts.iter().all(|[_, known]| *known == 0) {
            continue;
        }
        let areas = ["roc_auc", "roc_auc_exact"].into_iter().filter(|area| is_asked(area));
        let lacking = lacking_area(&counts, is_multi);
        said.extend(areas.filter_map(|area| Some(format!("{area} of {name} {}", lacking.as_ref()?))));
        let absent = counts.iter().enumerate().filter(|(_, [has, _])| *has == 0).map(|(class, _)| class);
        if let Some(classes) = listed(absent).filter(|_| is_asked("macro_f1")) {
            let what = "leaves out classes that none of its nodes has, unless they are predicted";
            said.push(format!("macro_f1 of {name} {what}: {classes}"));
        }
    }
    said
}

/// Why there will be no area under the curve, or over which labels it will be the mean.
fn lacking_area(counts: &[[u64; 2]], is_multi: bool) -> Option<String> {
    let mixed = counts.iter().filter(|[has, known]| *has > 0 && has < known).count();
    match (is_multi, mixed) {
        (false, 0) if counts.len() == 2 => {
            let class = counts.iter().position(|[has, _]| *has > 0)?;
            Some(format!("will not be defined: {}", of_one_class(counts[class][0], class)))
        }
        (true, 0) => Some("will not be defined: of each label all nodes are alike".to_owned()),
        (true, some) if some < counts.len() => {
            let all = counts.len();
            Some(format!("will be the mean over {some} of {all} labels: of the others all nodes are alike"))
        }
        _ => None,
    }
}

/// Splits in which no node has a label, a line each.
pub fn empty_splits<'a>(pieces: impl Iterator<Item = Roled<'a>> + Clone) -> Vec<String> {
    let is_empty = |role: u8| class_counts(pieces.clone(), role).iter().all(|[_, known]| *known == 0);
    let what = |name: &str| match name {
        "validation" => ", and the last round will stand for the best",
        _ => "",
    };
    let empty = JUDGED.into_iter().filter(|(_, role)| is_empty(*role));
    empty
        .map(|(name, _)| format!("nothing is labelled in {name}, so there will be no figure of it{}", what(name)))
        .collect()
}

/// Classes of nodes that are judged and that no training node has.
pub fn never_learned<'a>(pieces: impl Iterator<Item = Roled<'a>> + Clone) -> Option<String> {
    let [learned, needed] = [Split::TRAIN, Split::VAL | Split::TEST].map(|role| class_counts(pieces.clone(), role));
    let missing =
        learned.iter().zip(&needed).enumerate().filter(|(_, (learned, needed))| learned[0] == 0 && needed[0] > 0);
    let missing: Vec<usize> = missing.map(|(class, _)| class).collect();
    let count = missing.len();
    listed(missing.into_iter()).map(|classes| format!("{count} classes have no training node: {classes}"))
}

/// Some numbers of classes; `None` of none.
fn listed(classes: impl Iterator<Item = usize>) -> Option<String> {
    let classes: Vec<String> = classes.map(|class| class.to_string()).collect();
    let more = if classes.len() > NAMED { ", …" } else { "" };
    let named: Vec<&str> = classes.iter().take(NAMED).map(String::as_str).collect();
    (!named.is_empty()).then(|| named.join(", ") + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLES: [u8; 6] = [Split::TRAIN, Split::TRAIN, Split::VAL, Split::VAL, Split::TEST, Split::TEST];

    fn said(labels: &Labels) -> Vec<String> {
        foreseen(std::iter::once((labels, &ROLES[..])), |_| true)
    }

    #[test]
    fn one_class_in_a_split_leaves_it_without_an_area() {
        let said = said(&Labels::Single { classes: 2, values: vec![0, 1, 1, 1, 0, 1] });
        let expected = [
            "roc_auc of validation will not be defined: all 2 nodes are of class 1",
            "roc_auc_exact of validation will not be defined: all 2 nodes are of class 1",
            "macro_f1 of validation leaves out classes that none of its nodes has, unless they are predicted: 0",
        ];
        assert_eq!(said, expected);
        let halves = [0, 1].map(|at| Labels::Single { classes: 2, values: vec![at, -1, 1, -1, at, 1 - at] });
        let pieces = halves.iter().map(|labels| (labels, &ROLES[..]));
        let only_area = |name: &str| name == "roc_auc";
        // What one part lacks another one has.
        assert_eq!(foreseen(pieces, only_area), [expected[0]]);
    }

    #[test]
    fn labels_that_all_nodes_have_or_none_are_left_out_of_areas() {
        let multi = |values: [u8; 12]| Labels::Multi { classes: 2, values: values.to_vec() };
        let u = Labels::UNKNOWN;
        let alike = said(&multi([0, 1, 1, 0, 1, 0, 1, u, 0, 1, 1, 1]));
        assert_eq!(alike[0], "roc_auc of validation will not be defined: of each label all nodes are alike");
        let some = "roc_auc of test will be the mean over 1 of 2 labels: of the others all nodes are alike";
        assert!(alike.iter().any(|what| what == some), "{alike:?}");
        assert_eq!(said(&multi([0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0])), [""; 0]);
    }

    #[test]
    fn splits_without_a_label_and_classes_without_a_training_node_are_named() {
        let labels = Labels::Single { classes: 4, values: vec![0, 1, -1, -1, 2, 3] };
        let pieces = std::iter::once((&labels, &ROLES[..]));
        let empty = empty_splits(pieces.clone());
        assert_eq!(
            empty,
            ["nothing is labelled in validation, so there will be no figure of it, and the last round will stand for \
                the best"]
        );
        assert_eq!(never_learned(pieces.clone()).as_deref(), Some("2 classes have no training node: 2, 3"));
        assert_eq!(class_counts(pieces, Split::TEST), [[0, 2], [0, 2], [1, 2], [1, 2]]);
    }
}

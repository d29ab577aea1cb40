//! What is wrong, or at least unusual, with a dataset.

use crate::build::transpose;
use crate::dataset::{Dataset, Features, Ids, Labels, Split};
use crate::info::defects::{broken_features, broken_weights, overlapping_roles};
use crate::info::foreseen::{foreseen, never_learned};
use crate::info::scales::unlike_scales;
use crate::info::summary::{empty_classes, one_hot, unknown_labels};
use crate::leaks::Leaks;
use crate::node_types::types_of;
use crate::sides::Sides;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashSet;
use std::fmt;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Training works, but perhaps not on what was meant.
    Warning,
    /// Training would fail or its figures would mean nothing.
    Error,
}

/// Something that [`check`] found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// `error` or `warning`.
    pub severity: Severity,
    /// What it is, a sentence.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{severity}: {}", self.what)
    }
}

/// Looks for everything that is wrong with a dataset, errors first. Sizes that do not fit each other end the search,
/// since nothing else can be said then.
pub fn check(dataset: &Dataset) -> Vec<Finding> {
    let mut findings = Findings(Vec::new());
    findings.sizes(dataset);
    if findings.0.is_empty() {
        findings.graph(dataset);
        findings.features(&dataset.features, &dataset.ids, dataset.graph.nodes());
        if dataset.about.scale.is_given() {
            let (names, are_of_tables) = (&dataset.about.features, dataset.about.is_of_tables());
            let lost = if are_of_tables { Vec::new() } else { dataset.exact.lost(names) };
            let unlike = unlike_scales(&dataset.features, names, are_of_tables);
            lost.into_iter().chain(unlike).for_each(|what| findings.warning(what));
        }
        findings.labels(&dataset.labels, dataset.graph.nodes());
        for (number, split) in dataset.splits.iter().enumerate() {
            findings.split(number, split, dataset);
        }
        findings.ids(&dataset.ids);
        findings.negatives(dataset);
        findings.held_out(dataset);
        if types_of(&dataset.features, &dataset.about.node_types).is_none() {
            let sides = Sides::of(&dataset.graph);
            sides.into_iter().for_each(|sides| findings.warning(format!("link prediction: {}", sides.said())));
        }
        if let (Some(leaks), Some(held)) = (Leaks::of(&dataset.graph), dataset.graph.data.held_counts()) {
            Leaks::said(leaks, held).into_iter().for_each(|what| findings.warning(what));
        }
    }
    findings.0.sort_by_key(|finding| finding.severity == Severity::Warning);
    findings.0
}

/// Among the best how many of a pool figures of links look for an edge.
const TOPS: [usize; 4] = [10, 20, 50, 100];

struct Findings(Vec<Finding>);

impl Findings {
    fn error(&mut self, what: impl Into<String>) {
        self.0.push(Finding { severity: Severity::Error, what: what.into() });
    }

    fn warning(&mut self, what: impl Into<String>) {
        self.0.push(Finding { severity: Severity::Warning, what: what.into() });
    }

    fn sizes(&mut self, dataset: &Dataset) {
        let nodes = dataset.graph.nodes();
        let feature_rows = match &dataset.features {
            Features::None => nodes,
            Features::Dense { columns, values } => values.len() / (*columns).max(1),
            Features::Sparse { offsets, .. } => offsets.len().saturating_sub(1),
        };
        let label_rows = match &dataset.labels {
            Labels::None => nodes,
            Labels::Single { values, .. } => values.len(),
            Labels::Multi { classes, values } => values.len() / (*classes).max(1),
        };
        let ids = match &dataset.ids {
            Ids::Row => nodes,
            Ids::Integers(ids) => ids.len(),
            Ids::Strings(ids) => ids.len(),
        };
        let splits = dataset.splits.iter().map(|split| ("roles of a split", split.roles.len()));
        for (what, rows) in
            [("rows of features", feature_rows), ("labels", label_rows), ("ids", ids)].into_iter().chain(splits)
        {
            if rows != nodes {
                self.error(format!("{rows} {what} for {nodes} nodes"));
            }
        }
    }

    fn graph(&mut self, dataset: &Dataset) {
        let graph = &dataset.graph;
        let nodes = graph.nodes();
        if graph.edges() == 0 {
            self.warning("the graph has no edges");
            return;
        }
        let other = transpose(graph);
        let isolated = (0..nodes).filter(|&v| graph.in_edges(v).is_empty() && other.in_edges(v).is_empty()).count();
        if isolated > 0 {
            self.warning(format!("{isolated} of {nodes} nodes have no edges"));
        }
        if graph.offsets != other.offsets || graph.sources != other.sources {
            self.warning("some edges have one direction only; data.symmetrise adds the other");
        }
        let loops = (0..nodes).filter(|&v| graph.in_neighbours(v).binary_search(&(v as u32)).is_ok()).count();
        if loops > 0 {
            let effect = "models without self-loops of their own count them among their own neighbours";
            self.warning(format!("{loops} nodes have an edge to themselves; {effect}"));
        }
        if let Some(what) = broken_weights(graph, &dataset.ids) {
            self.error(what);
        }
        let weights = graph.data.weights.as_deref().unwrap_or(&[]);
        let negative = weights.iter().filter(|weight| **weight < 0.0).count();
        if negative > 0 {
            self.warning(format!("{negative} edge weights are negative"));
        }
        let large = weights.iter().fold(0f32, |largest, weight| largest.max(weight.abs()));
        if large > WEIGHT_USUAL && large.is_finite() {
            let what = "sums over neighbours will be as large; are these weights, or times and ids?";
            self.warning(format!("edge weights reach {large:.3e}: {what}"));
        }
    }

    fn features(&mut self, features: &Features, ids: &Ids, nodes: usize) {
        let columns = features.columns();
        if let Some(what) = broken_features(features, ids) {
            self.error(format!("{what}; an empty cell is a missing value, --ignore (data.ignore) leaves a column out"));
        }
        let constant = constant_columns(features, nodes);
        if constant > 0 && nodes > 1 {
            self.warning(format!("{constant} of {columns} feature columns are the same for all nodes"));
        }
    }

    fn labels(&mut self, labels: &Labels, nodes: usize) {
        if *labels == Labels::None {
            return;
        }
        empty_classes(labels).into_iter().chain(one_hot(labels)).for_each(|what| self.warning(what));
        let unknown = unknown_labels(labels);
        if unknown > 0 {
            let all = labels.per_node() * nodes;
            self.warning(format!("{unknown} of {all} labels are not known and have no part in loss and figures"));
        }
        if matches!(labels, Labels::Single { .. }) && labels.classes() < 2 {
            self.warning("there are fewer than two classes");
        }
    }

    fn split(&mut self, number: usize, split: &Split, dataset: &Dataset) {
        let labels = &dataset.labels;
        if let Some(what) = overlapping_roles(&split.roles, &dataset.ids) {
            self.error(format!("split {number}: {what}"));
        }
        if split.count(Split::TRAIN) == 0 {
            self.error(format!("split {number}: no node is for training"));
        }
        for (name, role) in [("validation", Split::VAL), ("testing", Split::TEST)] {
            if split.count(role) == 0 {
                self.warning(format!("split {number}: no node is for {name}"));
            }
        }
        if *labels == Labels::None {
            self.warning(format!("split {number}: there are no labels to learn"));
            return;
        }
        let unlabelled = (0..split.roles.len()).filter(|&v| split.roles[v] != 0 && labels.known(v) == 0).count();
        if unlabelled > 0 {
            self.error(format!("split {number}: {unlabelled} nodes have a role but no label"));
        }
        let piece = std::iter::once((labels, split.roles.as_slice()));
        let missing = never_learned(piece.clone()).filter(|_| matches!(labels, Labels::Single { .. }));
        missing.into_iter().for_each(|what| self.warning(format!("split {number}: {what}")));
        foreseen(piece, |_| true).into_iter().for_each(|what| self.warning(format!("split {number}: {what}")));
    }

    /// Edges that nobody holds out, and pairs given to judge against that are fewer than some figures look for.
    fn held_out(&mut self, dataset: &Dataset) {
        let held = dataset.graph.data.held_counts().into_iter().flatten();
        for (name, _) in ["validation", "test"].into_iter().zip(held).filter(|(_, held)| *held == 0) {
            self.warning(format!("no edge is held out for {name}, so there will be no figure of it"));
        }
        for (given, name) in dataset.negatives.iter().flatten().zip(["validation", "test"]) {
            let pool = given.pairs().count();
            let beyond: Vec<String> = TOPS.into_iter().filter(|top| pool < *top).map(|top| top.to_string()).collect();
            if !beyond.is_empty() {
                let tops = beyond.join(", ");
                self.warning(format!("hits@{tops} of {name} cannot be defined: its pool has {pool} pairs"));
            }
        }
    }

    /// Pairs that are given as no edges and are some.
    fn negatives(&mut self, dataset: &Dataset) {
        for (pairs, split) in dataset.negatives.iter().flatten().zip(["validation", "testing"]) {
            let is_edge = |&(source, target, relation): &(u32, u32, Option<u16>)| {
                let (graph, row) = (&dataset.graph, dataset.graph.in_edges(target as usize));
                let first = row.start + graph.sources[row.clone()].partition_point(|&other| other < source);
                let mut parallel = (first..row.end).take_while(|&edge| graph.sources[edge] == source);
                parallel.any(|edge| relation.is_none_or(|relation| graph.data.relation(edge) == relation))
            };
            let (all, edges) = (pairs.pairs().count(), pairs.pairs().filter(is_edge).count());
            if edges > 0 {
                self.warning(format!("{edges} of {all} pairs that are given as no edges for {split} are edges"));
            }
        }
    }

    fn ids(&mut self, ids: &Ids) {
        let (distinct, all) = match ids {
            Ids::Row => return,
            Ids::Integers(ids) => (ids.iter().collect::<HashSet<_>>().len(), ids.len()),
            Ids::Strings(ids) => (ids.iter().collect::<HashSet<_>>().len(), ids.len()),
        };
        if distinct < all {
            self.error(format!("{all} nodes have only {distinct} different ids"));
        }
    }
}

/// Larger weights are hardly meant as such.
const WEIGHT_USUAL: f32 = 1e6;

/// How many columns have one value for all nodes.
fn constant_columns(features: &Features, nodes: usize) -> usize {
    // Per column: stored values, the least and the largest of them.
    let mut seen = vec![(0usize, f32::INFINITY, f32::NEG_INFINITY); features.columns()];
    features.for_each(|_, column, value| {
        let (count, least, largest) = &mut seen[column];
        let range = if value.is_nan() { (f32::NEG_INFINITY, f32::INFINITY) } else { (value, value) };
        (*count, *least, *largest) = (*count + 1, least.min(range.0), largest.max(range.1));
    });
    let constant = |&&(count, least, largest): &&(usize, f32, f32)| {
        count == 0 || least == largest && (count == nodes || least == 0.0)
    };
    seen.iter().filter(constant).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{BuildOptions, build_graph};
    use crate::given::GivenPairs;

    /// Two nodes joined both ways, a training and a test node of different classes, one more class and node.
    fn sound() -> Dataset {
        let options = BuildOptions { symmetrise: true, ..BuildOptions::default() };
        Dataset {
            name: String::new(),
            graph: build_graph(3, vec![0, 1], vec![1, 2], None, options).unwrap().0,
            features: Features::Dense { columns: 1, values: vec![1.0, 2.0, 3.0].into() },
            labels: Labels::Single { classes: 2, values: vec![0, 1, 1] },
            splits: vec![Split { roles: vec![Split::TRAIN, Split::TRAIN, Split::TEST] }],
            ids: Ids::Integers(vec![5, 7, 9]),
            about: crate::about::About::default(),
            exact: Default::default(),
            negatives: None,
        }
    }

    fn found(change: impl FnOnce(&mut Dataset)) -> Vec<String> {
        let mut dataset = sound();
        change(&mut dataset);
        // Nothing is for validation, and the only test node is of one class.
        let expected = ["for validation", "roc_auc", "macro_f1"];
        let is_expected = |what: &String| expected.iter().any(|part| what.contains(part));
        check(&dataset).iter().map(Finding::to_string).filter(|what| !is_expected(what)).collect()
    }

    #[test]
    fn a_sound_dataset_has_no_findings() {
        assert_eq!(found(|_| {}), [""; 0]);
    }

    #[test]
    fn labels_with_one_class_a_node_in_a_column_each_are_said_to_be_one_hot() {
        let of = |values: &[u8]| found(|d| d.labels = Labels::Multi { classes: 2, values: values.to_vec() });
        let said = of(&[0, 1, 1, 0, 0, 1]);
        assert!(said.len() == 1 && said[0].starts_with("warning: the labels are one-hot, exactly one of 2 classes"));
        assert!(!of(&[0, 1, 1, 1, 0, 1]).iter().any(|what| what.contains("one-hot")));
    }

    #[test]
    fn figures_that_will_not_be_defined_are_warned_of() {
        let said: Vec<String> = check(&sound()).iter().map(Finding::to_string).collect();
        let area = "warning: split 0: roc_auc of test will not be defined: the only node is of class 1";
        let held = "warning: no edge is held out for test, so there will be no figure of it";
        assert!(said.iter().any(|what| what == area) && !said.iter().any(|what| what == held), "{said:?}");
        let mut dataset = sound();
        dataset.graph.data.held =
            Some([1].into_iter().chain(std::iter::repeat(0)).take(dataset.graph.edges()).collect());
        assert!(check(&dataset).iter().any(|finding| finding.to_string() == held));
    }

    #[test]
    fn each_defect_is_found() {
        each_is_found(&[
            ("error: 1 labels for 3 nodes", |d| d.labels = Labels::Single { classes: 1, values: vec![0] }),
            ("error: split 0: 1 nodes have more than one role, the first is node 5", |d| {
                d.splits[0].roles[0] |= Split::TEST
            }),
            ("error: split 0: no node is for training", |d| d.splits[0].roles = vec![0, 0, Split::TEST]),
            ("error: split 0: 1 nodes have a role but no label", |d| {
                d.labels = Labels::Single { classes: 2, values: vec![0, 1, -1] };
            }),
            ("error: split 0: 1 nodes have a role but no label", |d| {
                d.labels = Labels::Multi { classes: 2, values: vec![0, 1, Labels::UNKNOWN, Labels::UNKNOWN, 1, 0] };
            }),
            ("warning: 2 of 6 labels are not known and have no part in loss and figures", |d| {
                d.labels = Labels::Multi { classes: 2, values: vec![0, Labels::UNKNOWN, 1, 1, Labels::UNKNOWN, 0] };
            }),
            (
                "warning: 1 nodes have an edge to themselves; \
                 models without self-loops of their own count them among their own neighbours",
                |d| {
                    let options = BuildOptions { symmetrise: true, keep_self_loops: true, ..BuildOptions::default() };
                    d.graph = build_graph(3, vec![0, 1, 2], vec![1, 2, 2], None, options).unwrap().0;
                },
            ),
            ("warning: split 0: 1 classes have no training node: 1", |d| d.splits[0].roles[1] = 0),
            ("warning: 1 of 1 feature columns are the same for all nodes", |d| {
                d.features = Features::Dense { columns: 1, values: vec![2.0; 3].into() };
            }),
            ("warning: some edges have one direction only; data.symmetrise adds the other", |d| {
                d.graph = build_graph(3, vec![0, 1], vec![1, 2], None, BuildOptions::default()).unwrap().0;
            }),
            ("warning: 1 of 3 nodes have no edges", |d| {
                d.graph = build_graph(3, vec![0, 1], vec![1, 0], None, BuildOptions::default()).unwrap().0;
            }),
            ("warning: 1 of 3 classes have no nodes", |d| {
                d.labels = Labels::Single { classes: 3, values: vec![0, 1, 1] };
            }),
            ("error: 3 nodes have only 2 different ids", |d| d.ids = Ids::Integers(vec![5, 5, 9])),
            ("warning: 2 of 4 pairs that are given as no edges for testing are edges", |d| {
                let (sources, targets, others) = (vec![0, 2], vec![1, 1], vec![2, 1, 0, 1]);
                let own = GivenPairs { sources, targets, others, each: 2, relations: vec![] };
                d.negatives = Some([GivenPairs { sources: vec![0], targets: vec![2], ..GivenPairs::default() }, own]);
            }),
        ]);
    }

    /// A feature that is no number says how a cell becomes one.
    #[test]
    fn features_that_are_not_finite_are_found_with_what_to_do() {
        each_is_found(&[
            (
                concat!(
                    "error: 1 feature values are not finite, the first at node 7, column 0",
                    "; an empty cell is a missing value, --ignore (data.ignore) leaves a column out"
                ),
                |d| {
                    d.features = Features::Dense { columns: 1, values: vec![0.0, f32::NAN, 1.0].into() };
                },
            ),
            (
                concat!(
                    "error: 1 feature values are not finite, the first at node 9, column 4",
                    "; an empty cell is a missing value, --ignore (data.ignore) leaves a column out"
                ),
                |d| {
                    let (offsets, indices, values) = (vec![0, 1, 1, 2], vec![0, 4], vec![1.0, f32::INFINITY]);
                    d.features = Features::Sparse { columns: 5, offsets, indices, values };
                },
            ),
        ]);
    }

    type Defect = (&'static str, fn(&mut Dataset));

    fn each_is_found(defects: &[Defect]) {
        for (expected, change) in defects {
            let got = found(*change);
            assert!(got.iter().any(|what| what == expected), "expected '{expected}' among {got:?}");
        }
    }
}

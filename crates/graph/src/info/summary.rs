//! The figures of a dataset.

use crate::build::transpose;
use crate::dataset::{Dataset, Features, Labels, Split};
use crate::graph::Graph;
use crate::node_types::types_of;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// The figures of a dataset, for people ([`fmt::Display`]) and for machines ([`Serialize`]).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Info {
    /// The dataset, called after its file.
    pub name: String,
    /// How many nodes there are.
    pub nodes: usize,
    /// Directed edges: an undirected one counts twice.
    pub edges: usize,
    /// Whether some edge has no other that leads back.
    pub directed: bool,
    /// Whether edges have weights.
    pub weighted: bool,
    /// How many types of nodes there are; 0 where there is one kind.
    pub node_types: usize,
    /// What types are called, and how many nodes each has.
    #[serde(skip)]
    pub node_type_counts: Vec<(String, usize)>,
    /// How many relations edges are of; 0 where there is one kind of edge.
    pub relations: usize,
    /// How many edges each relation has.
    #[serde(skip)]
    pub relation_counts: Vec<usize>,
    /// What relations are called, where they have names.
    #[serde(skip)]
    pub relation_names: Vec<String>,
    /// Of the edges those that the data hold out to be predicted, for validation and for testing; null where they hold
    /// out none.
    pub held: Option<[u64; 2]>,
    /// Edges from a node to itself.
    pub self_loops: usize,
    /// Nodes without edges.
    pub isolated: usize,
    /// Edges that end at a node.
    pub in_degree: Degrees,
    /// The features; null where there are none.
    pub features: Option<FeatureInfo>,
    /// How many classes there are.
    pub classes: usize,
    /// Whether a node may have several labels.
    pub multi_label: bool,
    /// Nodes of each class.
    pub label_counts: Vec<usize>,
    /// Nodes without a label; where a node may have several, those of which none is known.
    pub unlabelled: usize,
    /// Labels that are not known of nodes that have others; 0 unless a node may have several.
    pub unknown_labels: usize,
    /// The share of edges, among those with a label at both ends, that join nodes of one class; null where there are
    /// none, and where a node may have several labels.
    pub edge_homophily: Option<f64>,
    /// How many nodes each split has for what.
    pub splits: Vec<SplitInfo>,
}

/// The spread of degrees.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Degrees {
    /// The mean over all nodes.
    pub mean: f64,
    /// The median over all nodes.
    pub median: f64,
    /// The largest of any node.
    pub max: usize,
}

/// The figures of features.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct FeatureInfo {
    /// The number of columns.
    pub columns: usize,
    /// Whether they are kept as sparse rows.
    pub sparse: bool,
    /// The share of values that are not 0.
    pub density: f64,
}

/// How many nodes have each role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SplitInfo {
    /// Nodes to learn from.
    pub train: usize,
    /// Nodes to choose by.
    pub val: usize,
    /// Nodes for the final figure.
    pub test: usize,
    /// Nodes without a role.
    pub none: usize,
}

impl Info {
    /// Computes the figures: O(nodes + edges + values), and for a moment the memory of the graph once more.
    pub fn of(dataset: &Dataset) -> Info {
        let graph = &dataset.graph;
        let nodes = graph.nodes();
        let other = transpose(graph);
        let (label_counts, unlabelled) = count_labels(&dataset.labels);
        let isolated = |&node: &usize| graph.in_edges(node).is_empty() && other.in_edges(node).is_empty();
        let split = |split: &Split| SplitInfo {
            train: split.count(Split::TRAIN),
            val: split.count(Split::VAL),
            test: split.count(Split::TEST),
            none: split.roles.iter().filter(|&&roles| roles == 0).count(),
        };
        Info {
            name: dataset.name.clone(),
            nodes,
            edges: graph.edges(),
            directed: graph.offsets != other.offsets || graph.sources != other.sources,
            weighted: graph.data.weights.is_some(),
            node_types: dataset.about.node_types.len(),
            node_type_counts: node_type_counts(dataset),
            relations: graph.data.kinds(),
            relation_counts: relation_counts(graph),
            relation_names: dataset.about.relations.clone(),
            held: graph.data.held_counts(),
            self_loops: (0..nodes)
                .filter(|&node| graph.in_neighbours(node).binary_search(&(node as u32)).is_ok())
                .count(),
            isolated: (0..nodes).filter(isolated).count(),
            in_degree: degrees(graph),
            features: feature_info(&dataset.features, nodes),
            classes: dataset.labels.classes(),
            multi_label: matches!(dataset.labels, Labels::Multi { .. }),
            label_counts,
            unlabelled,
            unknown_labels: unknown_labels(&dataset.labels),
            edge_homophily: homophily(graph, &dataset.labels),
            splits: dataset.splits.iter().map(split).collect(),
        }
    }
}

fn degrees(graph: &Graph) -> Degrees {
    let mut all: Vec<usize> = (0..graph.nodes()).map(|node| graph.in_edges(node).len()).collect();
    all.sort_unstable();
    let count = all.len();
    let median = if count == 0 { 0.0 } else { (all[(count - 1) / 2] + all[count / 2]) as f64 / 2.0 };
    let mean = if count == 0 { 0.0 } else { graph.edges() as f64 / count as f64 };
    Degrees { mean, median, max: all.last().copied().unwrap_or(0) }
}

fn feature_info(features: &Features, nodes: usize) -> Option<FeatureInfo> {
    let sparse = match features {
        Features::None => return None,
        Features::Dense { .. } => false,
        Features::Sparse { .. } => true,
    };
    let columns = features.columns();
    let all = (nodes * columns).max(1);
    let mut others = 0;
    features.for_each(|_, _, value| others += usize::from(value != 0.0));
    let density = others as f64 / all as f64;
    Some(FeatureInfo { columns, sparse, density })
}

fn node_type_counts(dataset: &Dataset) -> Vec<(String, usize)> {
    let of = types_of(&dataset.features, &dataset.about.node_types).unwrap_or_default();
    let kinds = dataset.about.node_types.iter().enumerate();
    let count = |number: usize| of.iter().filter(|&&kind| usize::from(kind) == number).count();
    kinds.map(|(number, kind)| (kind.name.clone(), count(number))).collect()
}

fn relation_counts(graph: &Graph) -> Vec<usize> {
    let mut counts = vec![0; graph.data.kinds()];
    for &relation in graph.data.relations.iter().flat_map(|relations| &relations.of) {
        counts[usize::from(relation)] += 1;
    }
    counts
}

fn count_labels(labels: &Labels) -> (Vec<usize>, usize) {
    let mut counts = vec![0; labels.classes()];
    match labels {
        Labels::None => (counts, 0),
        Labels::Single { values, .. } => {
            values.iter().filter(|&&class| class >= 0).for_each(|&class| counts[class as usize] += 1);
            (counts, values.iter().filter(|&&class| class < 0).count())
        }
        Labels::Multi { classes, values } => {
            let mut unlabelled = 0;
            for row in values.chunks_exact((*classes).max(1)) {
                row.iter().zip(&mut counts).for_each(|(&value, count)| *count += usize::from(value == 1));
                unlabelled += usize::from(row.iter().all(|&value| value == Labels::UNKNOWN));
            }
            (counts, unlabelled)
        }
    }
}

/// Labels of any number of classes a node of which each known row has exactly one: what they are taken for, and what to
/// write where one class a node is meant.
pub fn one_hot(labels: &Labels) -> Option<String> {
    let Labels::Multi { classes: classes @ 2.., values } = labels else { return None };
    let known = values.chunks_exact(*classes).filter(|row| row.iter().any(|&value| value != Labels::UNKNOWN));
    let is_one = |row: &[u8]| {
        let ones = row.iter().filter(|&&value| value == 1).count();
        ones == 1 && !row.contains(&Labels::UNKNOWN)
    };
    let mut rows = 0;
    for row in known {
        if !is_one(row) {
            return None;
        }
        rows += 1;
    }
    (rows > 0).then(|| {
        let taken = "they are taken for several labels a node: a sigmoid for each class, and micro F1";
        let cure =
            "where a node is of one class, give its number (labels.argmax(1)), or one column of names in a table";
        format!(
            "the labels are one-hot, exactly one of {classes} classes for each of {rows} nodes, and {taken}; {cure}"
        )
    })
}

/// Says how many classes no node has, as where labels are numbers with gaps.
pub fn empty_classes(labels: &Labels) -> Option<String> {
    let (counts, _) = count_labels(labels);
    let empty = counts.iter().filter(|&&count| count == 0).count();
    (empty > 0).then(|| format!("{empty} of {} classes have no nodes", counts.len()))
}

/// Labels that are not known of nodes that have others.
pub(super) fn unknown_labels(labels: &Labels) -> usize {
    let Labels::Multi { classes, values } = labels else { return 0 };
    let unknown = |row: &[u8]| row.iter().filter(|&&value| value == Labels::UNKNOWN).count();
    values.chunks_exact((*classes).max(1)).map(unknown).filter(|&unknown| unknown < *classes).sum()
}

fn homophily(graph: &Graph, labels: &Labels) -> Option<f64> {
    let Labels::Single { values, .. } = labels else { return None };
    let (mut same, mut all) = (0u64, 0u64);
    for node in 0..graph.nodes() {
        let class = values[node];
        for &source in graph.in_neighbours(node) {
            let other = values[source as usize];
            if class >= 0 && other >= 0 && source as usize != node {
                all += 1;
                same += u64::from(class == other);
            }
        }
    }
    (all > 0).then(|| same as f64 / all as f64)
}

impl Info {
    /// How many classes there are, and how many nodes without any.
    fn labels(&self, without: String) -> String {
        let kind = if self.multi_label { "multi-label" } else { "one a node" };
        let labels = match self.classes {
            0 => "none".to_owned(),
            classes => format!("{classes} classes, {kind}, {without} without"),
        };
        match self.unknown_labels {
            0 => labels,
            unknown => format!("{labels}, {} unknown in others", thousands(unknown)),
        }
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let row = |f: &mut fmt::Formatter, name: &str, text: String| writeln!(f, "{name:<10} {text}");
        let Degrees { mean, median, max } = self.in_degree;
        let plural =
            |count: usize, one: &str| format!("{} {one}{}", thousands(count), if count == 1 { "" } else { "s" });
        writeln!(f, "{}", self.name)?;
        row(f, "nodes", format!("{}, {} isolated", thousands(self.nodes), thousands(self.isolated)))?;
        let kind = if self.directed { "directed" } else { "both ways" };
        let weighted = if self.weighted { "weighted" } else { "unweighted" };
        let loops = plural(self.self_loops, "self-loop");
        row(f, "edges", format!("{}, {kind}, {weighted}, {loops}", thousands(self.edges)))?;
        if let Some(held) = self.held {
            let [val, test] = held.map(|edges| thousands(edges as usize));
            row(f, "held out", format!("{val} of the edges for validation, {test} for testing"))?;
        }
        row(f, "in-degree", format!("mean {mean:.2}, median {median}, max {}", thousands(max)))?;
        if !self.node_type_counts.is_empty() {
            let named = |(name, count): &(String, usize)| format!("{name} {}", thousands(*count));
            let shown: Vec<String> = self.node_type_counts.iter().take(12).map(named).collect();
            let more = if self.node_type_counts.len() > 12 { ", …" } else { "" };
            row(f, "types", format!("{}, nodes of each: {}{more}", self.node_types, shown.join(", ")))?;
        }
        if !self.relation_counts.is_empty() {
            let named = |(number, &count): (usize, &usize)| match self.relation_names.get(number) {
                Some(name) => format!("{name} {}", thousands(count)),
                None => thousands(count),
            };
            let shown: Vec<String> = self.relation_counts.iter().enumerate().take(12).map(named).collect();
            let (count, more) = (self.relation_counts.len(), if self.relation_counts.len() > 12 { ", …" } else { "" });
            row(f, "relations", format!("{count}, edges of each: {}{more}", shown.join(", ")))?;
        }
        let features = self.features.map(|features| {
            let kind = if features.sparse { "sparse" } else { "dense" };
            format!("{}, {kind}, {:.2} % not zero", plural(features.columns, "column"), 100.0 * features.density)
        });
        row(f, "features", features.unwrap_or_else(|| "none".to_owned()))?;
        row(f, "labels", self.labels(plural(self.unlabelled, "node")))?;
        if self.classes > 0 {
            let shown: Vec<String> = self.label_counts.iter().take(12).map(|&count| thousands(count)).collect();
            let more = if self.label_counts.len() > 12 { " …" } else { "" };
            row(f, "per class", format!("{}{more}", shown.join(" ")))?;
        }
        if let Some(homophily) = self.edge_homophily {
            row(f, "homophily", format!("{homophily:.3} of edges join nodes of one class"))?;
        }
        if self.splits.is_empty() {
            row(f, "splits", "none".to_owned())?;
        }
        for (number, split) in self.splits.iter().enumerate() {
            let name = if self.splits.len() == 1 { "split".to_owned() } else { format!("split {number}") };
            let [train, val, test, none] = [split.train, split.val, split.test, split.none].map(thousands);
            row(f, &name, format!("{train} train, {val} val, {test} test, {none} none"))?;
        }
        Ok(())
    }
}

/// 1234567 as 1,234,567.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let grouped: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).unwrap_or("")).collect();
    grouped.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{BuildOptions, build_graph};
    use crate::dataset::Ids;

    #[test]
    fn figures_of_a_small_graph_are_those_counted_by_hand() {
        // 0 → 1, 1 → 0, 2 → 1; node 3 is isolated; the label of node 2 is unknown.
        let mut graph = build_graph(4, vec![0, 1, 2], vec![1, 0, 1], None, BuildOptions::default()).unwrap().0;
        graph.data.held = Some(vec![0, 2, 2]);
        let dataset = Dataset {
            name: "small".to_owned(),
            graph,
            features: Features::Dense { columns: 2, values: vec![0.0, 1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0].into() },
            labels: Labels::Single { classes: 2, values: vec![1, 1, -1, 0] },
            splits: vec![Split { roles: vec![Split::TRAIN, Split::TEST, 0, Split::VAL] }],
            ids: Ids::Row,
            about: crate::about::About::default(),
            exact: Default::default(),
            negatives: None,
        };
        let info = Info::of(&dataset);
        assert_eq!((info.nodes, info.edges, info.isolated, info.self_loops), (4, 3, 1, 0));
        assert!(info.directed && !info.weighted);
        assert_eq!(info.in_degree, Degrees { mean: 0.75, median: 0.5, max: 2 });
        assert_eq!(info.features, Some(FeatureInfo { columns: 2, sparse: false, density: 3.0 / 8.0 }));
        assert_eq!((info.label_counts.as_slice(), info.unlabelled), (&[1, 2][..], 1));
        assert_eq!(info.edge_homophily, Some(1.0));
        assert_eq!(info.splits, [SplitInfo { train: 1, val: 1, test: 1, none: 1 }]);
        let text = info.to_string();
        assert!(text.contains("edges      3, directed, unweighted, 0 self-loops"), "{text}");
        assert!(text.contains("held out   0 of the edges for validation, 2 for testing"), "{text}");
        assert!(text.contains("split      1 train, 1 val, 1 test, 1 none"), "{text}");
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}

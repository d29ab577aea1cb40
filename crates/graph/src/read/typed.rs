//! What readers of several types of nodes and edges have found, made into one dataset.

use super::ReadOptions;
use crate::about::About;
use crate::build::{Removed, build_graph};
use crate::dataset::{Dataset, Ids, Labels, Split};
use crate::edges::{EdgeData, Relations};
use crate::error::{GraphError, Result};
use crate::exact::{Exact, ExactColumn, Wide};
use crate::node_types::{TypedNodes, beside};
use std::path::Path;

/// More types are a mistake.
pub const TYPES_MAX: usize = 1 << 12;

/// One type of nodes.
pub struct NodesFound {
    /// Its name and features.
    pub nodes: TypedNodes,
    /// Columns of these features that 32 bits do not hold.
    pub exact: Exact,
    /// How many there are.
    pub count: usize,
    /// What they are called, where rows of the type are not.
    pub ids: Vec<String>,
    /// Their labels, one row a node.
    pub labels: Labels,
    /// The names of their classes.
    pub classes: Vec<String>,
    /// Their roles, a split each.
    pub splits: Vec<Split>,
}

/// The edges of one relation, by rows of the types of their ends.
pub struct EdgesFound {
    /// What the relation is called.
    pub name: String,
    /// The types of sources and targets.
    pub ends: [usize; 2],
    /// Where edges start.
    pub sources: Vec<u32>,
    /// Where they end.
    pub targets: Vec<u32>,
    /// Their weights, if they have some.
    pub weights: Option<Vec<f32>>,
}

/// The place of a type by its name.
pub fn type_named(path: &Path, types: &[NodesFound], name: &str) -> Result<usize> {
    types.iter().position(|kind| kind.nodes.name == name).ok_or_else(|| {
        let known: Vec<&str> = types.iter().map(|kind| kind.nodes.name.as_str()).collect();
        GraphError::format(path, "types", format!("{name:?} is no type of nodes; there are {}", known.join(", ")))
    })
}

/// One dataset of all types: nodes in the order of their types, called `TYPE/ID`; relations in the order of theirs.
pub fn together(path: &Path, found: (Vec<NodesFound>, Vec<EdgesFound>), options: &ReadOptions) -> Result<Dataset> {
    Ok(counted(path, found, options)?.0)
}

/// The same, and what was left out of the edges.
pub fn counted(
    path: &Path,
    (types, relations): (Vec<NodesFound>, Vec<EdgesFound>),
    options: &ReadOptions,
) -> Result<(Dataset, Removed)> {
    let refuse = |what: String| GraphError::format(path, "types", what);
    if types.len() > TYPES_MAX || relations.len() > TYPES_MAX {
        return Err(GraphError::too_large(path, "types", TYPES_MAX as u64));
    }
    let nodes = types.iter().map(|kind| kind.count as u64).fold(0, u64::saturating_add);
    if nodes > options.limits.nodes_max {
        return Err(GraphError::too_large(path, "nodes", options.limits.nodes_max));
    }
    let nodes = nodes as usize;
    let starts: Vec<u32> = starts(&types);
    let (sources, targets, data) = edges(&relations, &starts).map_err(refuse)?;
    let built = build_graph(nodes, sources, targets, data, options.build());
    let (graph, removed) = built.map_err(|error| GraphError::format(path, "edges", error.to_string()))?;
    let (labels, classes) = labels(&types, nodes).map_err(refuse)?;
    let splits = splits(&types, &starts, nodes).map_err(refuse)?;
    let of: Vec<u16> =
        types.iter().enumerate().flat_map(|(number, kind)| std::iter::repeat_n(number as u16, kind.count)).collect();
    let name = |kind: &NodesFound, row: usize| match kind.ids.get(row) {
        Some(id) => format!("{}/{id}", kind.nodes.name),
        None => format!("{}/{row}", kind.nodes.name),
    };
    let ids = types.iter().flat_map(|kind| (0..kind.count).map(move |row| name(kind, row))).collect();
    let exact = exact(&types, &starts, nodes);
    let typed: Vec<TypedNodes> = types.into_iter().map(|kind| kind.nodes).collect();
    let (features, node_types, columns) = beside(&typed, &of);
    let relations = relations.into_iter().map(|relation| relation.name).collect();
    let mut about = About { classes, relations, node_types, features: columns, ..About::default() };
    about.name_reverses(graph.data.kinds());
    let name = super::dataset_name(path);
    let ids = Ids::Strings(ids);
    let dataset = Dataset { name, graph, features, exact, labels, splits, ids, about, negatives: None };
    Ok((dataset.checked()?, removed))
}

/// The first node of each type.
fn starts(types: &[NodesFound]) -> Vec<u32> {
    types.iter().scan(0, |end, kind| Some(std::mem::replace(end, *end + kind.count as u32))).collect()
}

/// Columns that 32 bits do not hold, each among those of its type; 0 for all other nodes, as their rows have it.
fn exact(types: &[NodesFound], starts: &[u32], nodes: usize) -> Exact {
    let (mut columns, mut before) = (Vec::new(), 0);
    for (kind, &start) in types.iter().zip(starts) {
        for of in &kind.exact.columns {
            let mut values = vec![Wide::default(); nodes];
            values[start as usize..][..kind.count].copy_from_slice(&of.values);
            columns.push(ExactColumn { column: before + of.column, values });
        }
        before += kind.nodes.features.columns() + 1;
    }
    Exact { columns }
}

type AllEdges = (Vec<u32>, Vec<u32>, EdgeData);

/// The edges of all relations by node.
fn edges(relations: &[EdgesFound], starts: &[u32]) -> std::result::Result<AllEdges, String> {
    let (mut sources, mut targets, mut of, mut weights) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, relation) in relations.iter().enumerate() {
        let [source, target] = relation.ends.map(|end| starts[end]);
        sources.extend(relation.sources.iter().map(|row| source + row));
        targets.extend(relation.targets.iter().map(|row| target + row));
        of.resize(sources.len(), number as u16);
        weights.extend(relation.weights.iter().flatten());
    }
    let weighted = relations.iter().filter(|relation| relation.weights.is_some()).count();
    if weighted > 0 && weighted < relations.len() {
        let bare = relations.iter().find(|relation| relation.weights.is_none()).map_or("", |bare| bare.name.as_str());
        return Err(format!("expected weights of the edges of all relations or of none; {bare:?} has none"));
    }
    let weights = (weighted > 0).then_some(weights);
    Ok((sources, targets, EdgeData { weights, relations: Some(Relations { count: relations.len(), of }), held: None }))
}

/// The labels of the one type that has some; nodes of other types have none.
fn labels(types: &[NodesFound], nodes: usize) -> std::result::Result<(Labels, Vec<String>), String> {
    let labelled: Vec<&NodesFound> = types.iter().filter(|kind| kind.labels != Labels::None).collect();
    let [kind] = labelled[..] else {
        if labelled.is_empty() {
            return Ok((Labels::None, Vec::new()));
        }
        let names: Vec<&str> = labelled.iter().map(|kind| kind.nodes.name.as_str()).collect();
        return Err(format!("expected labels of one type of nodes, found some of {}", names.join(", ")));
    };
    let before: usize = types.iter().take_while(|other| !std::ptr::eq(*other, kind)).map(|kind| kind.count).sum();
    let labels = match &kind.labels {
        Labels::None => Labels::None,
        Labels::Single { classes, values } => {
            let mut all = vec![-1; nodes];
            all[before..before + kind.count].copy_from_slice(values);
            Labels::Single { classes: *classes, values: all }
        }
        Labels::Multi { classes, values } => {
            let mut all = vec![Labels::UNKNOWN; nodes * classes];
            all[before * classes..(before + kind.count) * classes].copy_from_slice(values);
            Labels::Multi { classes: *classes, values: all }
        }
    };
    Ok((labels, kind.classes.clone()))
}

/// The splits of all types: as many as the type with most has, and none of the others' nodes in them.
fn splits(types: &[NodesFound], starts: &[u32], nodes: usize) -> std::result::Result<Vec<Split>, String> {
    let count = types.iter().map(|kind| kind.splits.len()).max().unwrap_or(0);
    if let Some(kind) = types.iter().find(|kind| ![0, count].contains(&kind.splits.len())) {
        let found = kind.splits.len();
        return Err(format!("expected {count} splits of each type of nodes, found {found} of {}", kind.nodes.name));
    }
    let split = |number: usize| {
        let mut roles = vec![0; nodes];
        for (kind, &start) in types.iter().zip(starts) {
            if let Some(split) = kind.splits.get(number) {
                roles[start as usize..start as usize + kind.count].copy_from_slice(&split.roles);
            }
        }
        Split { roles }
    };
    Ok((0..count).map(split).collect())
}

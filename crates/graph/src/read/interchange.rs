//! Laconic's own interchange format: one `.npz`.
//!
//! `edge_index` [2, E] is the only array that must be there. Beside it: `directed` (0: each undirected edge is stored
//! once and gets its other direction here), `num_nodes`, `features` or CSR features, `labels`, `train_mask`,
//! `val_mask`, `test_mask`, `ids`, `class_names`, `feature_names`, and, so that nothing is lost on the way through
//! [`crate::write`], `num_classes`, `edge_weight`, `edge_type` with `num_relations` and `relation_names`,
//! `val_edge_index` (or `valid_edge_index`) and `test_edge_index` (edges that are held out to be predicted, in
//! `edge_index` or beside it) with `val_edge_type` and so on, pairs that are none to judge them against
//! (`val_neg_edge_index` or `val_neg_targets`, and so on), `ids_data` and `ids_offsets` for ids that are texts, and
//! `about` with the names and the recipe of features as JSON. PyTorch Geometric's `x` and `y` stand for `features` and
//! `labels` where those are not there. Any number type will do for any array whose values it holds. Other arrays are
//! ignored, and named among the roles.

use super::arrays::{Array, LentArrays, Npz};
use super::given;
use super::held::{self, EdgeLists, Held, Listed, edge_index};
use super::typed::TYPES_MAX;
use super::{ReadOptions, Reader, dataset_name, extension, features, labels};
use crate::about::About;
use crate::build::{Removed, build_graph};
use crate::dataset::{Dataset, Features, Ids, Labels, Split};
use crate::edges::{EdgeData, Relations};
use crate::error::Result;
use crate::exact::{Exact, ExactColumn, Groups, Wide};
use crate::graph::Graph;
use crate::limits::Limits;
use crate::node_types::{apart, beside};
use crate::roles::{Role, Roles};
use std::path::Path;

/// The reader of the interchange format.
pub struct Interchange;

impl Reader for Interchange {
    fn name(&self) -> &'static str {
        "interchange npz"
    }

    fn recognises(&self, path: &Path) -> bool {
        extension(path) == "npz" && Npz::open(path, &Limits::default()).is_ok_and(|npz| npz.has("edge_index"))
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        Ok(self.read_with_roles(path, options)?.0)
    }

    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        read_arrays(Npz::open(path, &options.limits)?, path, options)
    }
}

/// A graph whose arrays another program lends, by the names and the rules of the format: nothing but dense features of
/// 32 bits, or of bfloat16, stays lent. Errors call the arrays `name`, and so is the dataset called.
///
/// # Errors
///
/// As those of a file.
pub fn read_lent(name: &str, arrays: LentArrays, options: &ReadOptions) -> Result<(Dataset, Roles)> {
    let (dataset, roles) = read_arrays(Npz::of(name, arrays, &options.limits)?, Path::new(name), options)?;
    Ok((Dataset { name: name.to_owned(), ..dataset }, roles))
}

fn read_arrays(mut npz: Npz, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
    let limits = &options.limits;
    let (sources, targets) = edge_index(&mut npz, "edge_index", limits)?;
    let held = held::read(&mut npz, options.typed, limits)?;
    let ends = sources.iter().chain(&targets).chain(held.iter().flat_map(Held::ends));
    let in_edges = ends.max().map_or(0, |&largest| u64::from(largest) + 1);
    let nodes = count_nodes(&mut npz, path, in_edges, limits)?;
    let mut about = read_about(&mut npz, limits)?;
    if !options.typed {
        about.relations.clear();
        about.node_types.clear();
        // Columns of one type are 0 for nodes of others, and no scale of all nodes is theirs.
        about.of_typed_tables = false;
    }
    let data = edge_data(&mut npz, (sources.len(), about.relations.len()), held.as_ref(), options)?;
    let undirected = npz.optional::<u8>("directed", 1)?.is_some_and(|array| array.values.first() == Some(&0));
    let are_several = data.kinds() > usize::from(!(undirected || options.symmetrise));
    let listed = Listed { sources: &sources, targets: &targets, data: &data, undirected, are_several };
    let negatives = given::read(&mut npz, given::Beside { held: held.as_ref(), listed, nodes }, limits)?;
    let edges = EdgeLists { sources, targets, data };
    let (graph, removed) = build(&npz, nodes, edges, held, undirected, options)?;
    about.name_reverses(graph.data.kinds());
    let types = if options.typed { npz.optional::<u16>("node_type", limits.nodes_max)? } else { None };
    let types = types.map(|array| array.values);
    let groups = types.as_ref().filter(|types| types.len() == nodes);
    let groups = groups.map_or(Groups::ONE, |types| Groups::of(types));
    let (mut features, mut exact) = features::npz_features(&mut npz, (nodes, groups), limits)?;
    if let (Some(types), true) = (types, about.node_types.is_empty()) {
        tell_apart(&mut features, &mut exact, &mut about, &types, &mut npz, nodes, limits)?;
    }
    let labels = read_labels(&mut npz, nodes, limits)?;
    let splits = read_splits(&mut npz, nodes, limits)?;
    let ids = read_ids(&mut npz, nodes, limits)?;
    let name = dataset_name(path);
    let dataset = Dataset { name, graph, features, exact, labels, splits, ids, about, negatives };
    let mut roles = roles(&mut npz, path, (dataset.graph.edges(), options.typed))?;
    if dataset.graph.data.weights.is_some() {
        roles.of_table(path).merged(&removed, options.duplicates);
    }
    Ok((dataset.checked()?, roles))
}

/// Every array that is read where it is there.
const KNOWN: [&str; 37] = [
    "edge_index",
    "val_edge_index",
    "valid_edge_index",
    "test_edge_index",
    "val_edge_type",
    "valid_edge_type",
    "test_edge_type",
    "val_neg_edge_index",
    "valid_neg_edge_index",
    "test_neg_edge_index",
    "val_neg_targets",
    "valid_neg_targets",
    "test_neg_targets",
    "directed",
    "num_nodes",
    "edge_weight",
    "edge_type",
    "num_relations",
    "relation_names",
    "node_type",
    "node_type_names",
    "features",
    "features_data",
    "features_indices",
    "features_indptr",
    "features_shape",
    "labels",
    "num_classes",
    "train_mask",
    "val_mask",
    "test_mask",
    "ids",
    "ids_data",
    "ids_offsets",
    "about",
    "class_names",
    "feature_names",
];

/// The name of the labels: ours, or else PyTorch Geometric's.
fn label_name(npz: &Npz) -> &'static str {
    if npz.has("labels") { "labels" } else { "y" }
}

/// The arrays that have other names than ours, and those that are not read; nothing where there are none.
fn roles(npz: &mut Npz, path: &Path, (edges, typed): (usize, bool)) -> Result<Roles> {
    let mut roles = Roles::default();
    let mut lines = roles.of_table(path);
    for (role, foreign, own) in [(Role::Features, "x", features::name(npz)), (Role::Labels, "y", label_name(npz))] {
        if npz.has(foreign) && own == foreign {
            lines.line(role, &[foreign], foreign);
        }
    }
    for name in npz.names() {
        let why = match name.as_str() {
            "node_type" if !typed => "nodes of all types are one kind; --typed (data.typed) tells them apart",
            "edge_type" | "val_edge_type" | "valid_edge_type" | "test_edge_type" if !typed => {
                "edges of all types are one kind; --typed (data.typed) tells them apart"
            }
            known if KNOWN.contains(&known) => continue,
            "x" if features::name(npz) == "x" => continue,
            "y" if label_name(npz) == "y" => continue,
            "x" | "y" => "there is an array of our own name beside it",
            "edge_attr" if npz.rows("edge_attr")? >= edges as u64 => {
                "edges have no features; one weight an edge is read as edge_weight"
            }
            _ => "no array of this name is read",
        };
        lines.ignored(&name, why);
    }
    Ok(roles)
}

/// JSON of names is no longer than this.
const ABOUT_MAX: u64 = 1 << 26;

pub(super) fn read_about(npz: &mut Npz, limits: &Limits) -> Result<About> {
    if let Some(bytes) = npz.optional::<u8>("about", ABOUT_MAX)? {
        return serde_json::from_slice(&bytes.values).map_err(|error| npz.error("about", error.to_string()));
    }
    let classes = npz.texts("class_names", limits.classes_max)?.unwrap_or_default();
    let features = npz.texts("feature_names", limits.columns_max)?.unwrap_or_default();
    let relations = npz.texts("relation_names", Relations::MOST as u64)?.unwrap_or_default();
    Ok(About { classes, relations, features, ..About::default() })
}

/// `num_nodes`, or without it one more than the largest node of an edge, `in_edges`, or as many as features or labels
/// have rows.
pub(super) fn count_nodes(npz: &mut Npz, path: &Path, in_edges: u64, limits: &Limits) -> Result<usize> {
    let bytes = npz.bytes();
    let mut rows = 0;
    for name in ["features", "x", "labels", "y", "train_mask", "val_mask", "test_mask", "ids"] {
        rows = rows.max(npz.rows(name)?);
    }
    for name in ["features_indptr", "ids_offsets"] {
        rows = rows.max(npz.rows(name)?.saturating_sub(1));
    }
    if let Some(array) = npz.optional::<i64>("num_nodes", 1)? {
        let nodes = array.values.first().and_then(|&nodes| u64::try_from(nodes).ok());
        let nodes =
            nodes.ok_or_else(|| npz.error("num_nodes", format!("expected one count, found {:?}", array.values)))?;
        if nodes < in_edges {
            let expected = format!("expected ids in 0..{nodes} (num_nodes), found {}", in_edges - 1);
            return Err(npz.error("edge_index", expected));
        }
        // Whoever lends arrays has said so, and is no file that lies.
        let bytes = if npz.is_lent() { u64::MAX } else { bytes };
        return limits.accept_nodes(path, "array 'num_nodes'", nodes, (rows, bytes));
    }
    let (features, labels) = (features::name(npz), label_name(npz));
    let mut nodes = in_edges.max(npz.rows(features)?).max(npz.rows(labels)?);
    if let Some(shape) = npz.optional::<i64>("features_shape", 2)? {
        nodes = nodes.max(shape.values.first().map_or(0, |&rows| rows.max(0) as u64));
    }
    limits.accept_nodes(path, "rows and edges", nodes, (rows, bytes))
}

/// What is known of so many edges, whose relations have so many names.
fn edge_data(
    npz: &mut Npz,
    (edges, names): (usize, usize),
    held: Option<&Held>,
    options: &ReadOptions,
) -> Result<EdgeData> {
    let weights = npz.optional::<f32>("edge_weight", options.limits.edges_max)?.map(|array| array.values);
    if weights.as_ref().is_some_and(|weights| weights.len() != edges) {
        return Err(npz.error("edge_weight", format!("expected {edges} values, one an edge")));
    }
    let relations = match options.typed {
        true => read_relations(npz, (edges, names), held.and_then(Held::last_relation), &options.limits)?,
        false => None,
    };
    Ok(EdgeData { weights, relations, held: None })
}

/// The graph of so many nodes, and what was left out of it.
fn build(
    npz: &Npz,
    nodes: usize,
    mut edges: EdgeLists,
    held: Option<Held>,
    undirected: bool,
    options: &ReadOptions,
) -> Result<(Graph, Removed)> {
    let how = if undirected { options.build_undirected() } else { options.build() };
    if let Some(held) = held {
        held.join(&mut edges, undirected).map_err(|(name, what)| npz.error(name, what))?;
    }
    let EdgeLists { sources, targets, data } = edges;
    let built = build_graph(nodes, sources, targets, data, how);
    built.map_err(|error| npz.error("edge_index", error.to_string()))
}

/// `edge_type`, and how many there are: `num_relations`, or as many as have names, or one more than the largest, of
/// edges that are held out (`held`, with the array) as well.
fn read_relations(
    npz: &mut Npz,
    (edges, names): (usize, usize),
    held: Option<(u16, &'static str)>,
    limits: &Limits,
) -> Result<Option<Relations>> {
    let Some(Array { values: of, .. }) = npz.optional::<u16>("edge_type", limits.edges_max)? else {
        return Ok(None);
    };
    if of.len() != edges {
        return Err(npz.error("edge_type", format!("expected {edges} values, one an edge, found {}", of.len())));
    }
    let last = of.iter().copied().max().into_iter().chain(held.map(|(last, _)| last)).max();
    let found = last.map_or(0, |last| usize::from(last) + 1);
    let told = npz.optional::<u32>("num_relations", 1)?.and_then(|array| array.values.first().copied());
    let count = told.map_or(names.max(found), |told| told as usize);
    if !(found.max(1)..=Relations::MOST).contains(&count) {
        let what = format!("expected {} to {} relations, found {count}", found.max(1), Relations::MOST);
        return Err(npz.error("num_relations", what));
    }
    Ok(Some(Relations { count, of }))
}

/// Gives each type of nodes that `node_type` tells apart feature columns of its own, unless the features have them.
fn tell_apart(
    features: &mut Features,
    exact: &mut Exact,
    about: &mut About,
    of: &[u16],
    npz: &mut Npz,
    nodes: usize,
    limits: &Limits,
) -> Result<()> {
    if of.len() != nodes {
        return Err(npz.error("node_type", format!("expected {nodes} values, one a node, found {}", of.len())));
    }
    let count = of.iter().max().map_or(0, |&last| usize::from(last) + 1);
    if count > TYPES_MAX {
        return Err(npz.error("node_type", format!("expected at most {TYPES_MAX} types, found {count}")));
    }
    let names = npz.texts("node_type_names", TYPES_MAX as u64)?;
    let names = names.unwrap_or_else(|| (0..count).map(|number| format!("type {number}")).collect());
    if names.len() < count {
        let found = names.len();
        return Err(npz.error("node_type_names", format!("expected {count} names, one a type, found {found}")));
    }
    let columns = (names.len() as u64).saturating_mul(features.columns() as u64 + 1);
    if columns > limits.columns_max {
        return Err(npz.error("node_type", format!("expected types with at most {} columns", limits.columns_max)));
    }
    *exact = exact_apart(exact, features.columns(), (of, names.len()));
    let types = apart(features, &about.features, of, names);
    (*features, about.node_types, about.features) = beside(&types, of);
    // How columns of a table became features is said of other columns than these.
    about.of_typed_tables = about.is_of_tables();
    about.columns.clear();
    Ok(())
}

/// Columns that all types share, for each type of which too much would be lost; 0 for nodes of other types.
pub(super) fn exact_apart(exact: &Exact, columns: usize, (of, types): (&[u16], usize)) -> Exact {
    let of_type = |number: usize| {
        exact.columns.iter().map(move |shared| {
            let is_own = |row: usize| usize::from(of[row]) == number;
            let own = |(row, &value): (usize, &Wide)| if is_own(row) { value } else { Wide::default() };
            let values = shared.values.iter().enumerate().map(own).collect();
            ExactColumn { column: number * (columns + 1) + shared.column, values }
        })
    };
    Exact::among((0..types).flat_map(of_type), Groups::of(of))
}

/// Who trains, validates and tests, in each split.
pub(super) fn read_splits(npz: &mut Npz, nodes: usize, limits: &Limits) -> Result<Vec<Split>> {
    let mut splits = Vec::new();
    for (name, role) in [("train_mask", Split::TRAIN), ("val_mask", Split::VAL), ("test_mask", Split::TEST)] {
        if let Some(mask) = npz.optional::<u8>(name, limits.features_values_max)? {
            labels::add_mask(&mut splits, role, &mask.shape, &mask.values, nodes)
                .map_err(|what| npz.error(name, what))?;
        }
    }
    Ok(splits)
}

pub(super) fn read_labels(npz: &mut Npz, nodes: usize, limits: &Limits) -> Result<Labels> {
    let name = label_name(npz);
    let Some(array) = npz.optional::<f64>(name, limits.features_values_max)? else {
        return Ok(Labels::None);
    };
    let told = npz.optional::<u32>("num_classes", 1)?.and_then(|array| array.values.first().copied());
    let classes = told.unwrap_or(0) as usize;
    let labels = match array.shape[..] {
        // One column of 0 and 1 is a multi-label set with one class only if its writer said so.
        [rows, 1] if rows == nodes && classes == 1 => labels::multi(&array.values, 1),
        [rows] | [rows, 1] if rows == nodes => labels::single(&array.values, classes, limits),
        _ => labels::from_array(&array.shape, &array.values, nodes, limits),
    };
    let labels = labels.map_err(|what| npz.error(name, what))?;
    let found = labels.classes();
    let agree = match labels {
        Labels::Multi { .. } => found == classes,
        _ => found <= classes,
    };
    if told.is_some() && !agree {
        let there = match labels {
            Labels::Multi { .. } => format!("{name} have {found} columns, one a class"),
            _ => format!("the largest of the {name} is {}", found - 1),
        };
        return Err(npz.error("num_classes", format!("expected num_classes = {found}, found {classes}: {there}")));
    }
    Ok(labels)
}

pub(super) fn read_ids(npz: &mut Npz, nodes: usize, limits: &Limits) -> Result<Ids> {
    if npz.holds_texts("ids")? {
        return Ok(npz.texts("ids", limits.nodes_max)?.map_or(Ids::Row, Ids::Strings));
    }
    if let Some(ids) = npz.optional::<i64>("ids", limits.nodes_max)? {
        if ids.values.len() != nodes {
            return Err(npz.error("ids", format!("expected {nodes} ids, one a node, found {}", ids.values.len())));
        }
        return Ok(Ids::Integers(ids.values));
    }
    let Some(bytes) = npz.optional::<u8>("ids_data", limits.unpacked_bytes_max)?.map(|array| array.values) else {
        return Ok(Ids::Row);
    };
    let offsets = npz.read::<i64>("ids_offsets", limits.nodes_max.saturating_add(1))?.values;
    features::check_offsets(&offsets, nodes, bytes.len()).map_err(|what| npz.error("ids_offsets", what))?;
    let texts = offsets.windows(2).map(|pair| String::from_utf8(bytes[pair[0] as usize..pair[1] as usize].to_vec()));
    let texts: std::result::Result<Vec<String>, _> = texts.collect();
    Ok(Ids::Strings(texts.map_err(|_| npz.error("ids_data", "expected text in UTF-8"))?))
}

//! Edge lists with or without a node table, as CSV, TSV, text or Parquet.
//!
//! The input is a file of edges, or a folder with `edges.*` and perhaps `nodes.*`; a table may also be a folder of
//! Parquet files. Columns are found by their names
//! (see [`super::Columns`]), without a header by their place: source, target, weight; others are not read. The node
//! table is the one given, or else `nodes.*` beside the edges; it decides which nodes there are and in which order.
//! Without one, nodes are those of the edges: integer ids in ascending order, text ids in the order of their first
//! appearance. Ids are text if any of them is not an integer in its plain spelling, so `007` and `7` are two nodes.

use super::id_index::{IdIndex, distinct, into_ids};
use super::node_table::{NodeTable, open_nodes};
use super::numbers::shorten;
use super::parts::is_table_folder;
use super::table::{Cell, Heading, IdColumn, Kind, Table, find_column, load_ids, open_table};
use super::text::find_text;
use super::{ReadOptions, Reader, dataset_name, extension};
use crate::about::About;
use crate::build::build_graph;
use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::roles::{Role, Roles};
use std::path::{Path, PathBuf};

/// The reader of edge lists.
pub struct EdgeList;

const EXTENSIONS: [&str; 6] = ["csv", "tsv", "txt", "parquet", "edges", "edgelist"];
const EDGE_FILES: [&str; 4] = ["edges.csv", "edges.tsv", "edges.txt", "edges.parquet"];
const NODE_FILES: [&str; 4] = ["nodes.csv", "nodes.tsv", "nodes.txt", "nodes.parquet"];
const SOURCE_NAMES: [&str; 6] = ["source", "src", "src_id", "source_id", "from", "u"];
const TARGET_NAMES: [&str; 7] = ["target", "dst", "dst_id", "target_id", "dest", "to", "v"];
const WEIGHT_NAMES: [&str; 3] = ["weight", "edge_weight", "w"];

impl Reader for EdgeList {
    fn name(&self) -> &'static str {
        "edge list"
    }

    fn recognises(&self, path: &Path) -> bool {
        if path.is_dir() {
            find_table(path, &EDGE_FILES).is_some() || is_table_folder(path)
        } else {
            EXTENSIONS.contains(&extension(path).as_str())
        }
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        Ok(self.read_with_roles(path, options)?.0)
    }

    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let (edges_path, nodes_path) = files(path, options)?;
        let nodes = nodes_path.map(|path| Ok((open_nodes(&path, options)?, path))).transpose()?;
        let edges = (open_edges(&edges_path, options)?, edges_path);
        Tables { edges, nodes }.read(path, options)
    }

    fn reads_key(&self, _key: &str) -> bool {
        true
    }
}

/// The tables of an edge list, whatever they were made of, each with the file that it comes from.
pub(super) struct Tables {
    /// One row an edge.
    pub edges: (Box<dyn Table>, PathBuf),
    /// One row a node.
    pub nodes: Option<(Box<dyn Table>, PathBuf)>,
}

impl Tables {
    /// The dataset that was read from `path`, and what became of each column.
    pub fn read(self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let limits = &options.limits;
        let mut roles = Roles::default();
        let (table, edges_path) = self.edges;
        let nodes_path = self.nodes.as_ref().map(|(_, path)| path.clone());
        let node_table = |(table, path): (_, PathBuf)| NodeTable::of(table, &path, options, &mut roles);
        let nodes = self.nodes.map(node_table).transpose()?;
        let columns = EdgeColumns::find(&*table, &edges_path, options)?;
        columns.say(&*table, &edges_path, options, &mut roles);
        refuse_idle(options, nodes.is_some(), &roles)?;
        let ends = [columns.source, columns.target];
        let texts = table.rows() > 0 && ends.iter().any(|&end| table.columns()[end].kind != Kind::Integer);
        let as_text = texts || nodes.as_ref().is_some_and(NodeTable::has_text_ids);
        let columns_of_ids = load_ids(&*table, &ends, as_text, limits)?;

        let given = match (&nodes, &nodes_path) {
            (Some(nodes), Some(path)) => Some((nodes, path.as_path(), nodes.ids(as_text, limits)?)),
            _ => None,
        };
        let by_row = given.as_ref().filter(|given| given.2.is_none()).map(|given| given.0.nodes);
        let ids_path = given.as_ref().map_or(edges_path.as_path(), |given| given.1);
        let ids = match given {
            Some((_, _, ids)) => ids,
            None => Some(distinct(&columns_of_ids)),
        };
        let index = match (&ids, by_row) {
            (Some(ids), _) => IdIndex::new(ids).map_err(|what| GraphError::format(ids_path, "ids", what))?,
            (None, rows) => IdIndex::Row(rows.unwrap_or(0)),
        };
        let count = ids.as_ref().map_or(by_row.unwrap_or(0), IdColumn::len);
        if count as u64 > limits.nodes_max {
            return Err(GraphError::too_large(ids_path, "ids", limits.nodes_max));
        }
        let number = |ids: &IdColumn| number(ids, &index).map_err(|what| GraphError::format(&edges_path, "ids", what));
        let (sources, targets) = (number(&columns_of_ids[0])?, number(&columns_of_ids[1])?);
        drop((index, columns_of_ids));
        let weights = columns.weight.map(|column| read_weights(&*table, column)).transpose()?;
        let built = build_graph(count, sources, targets, weights, options.build());
        let built = built.map_err(|error| GraphError::format(&edges_path, "edges", error.to_string()));
        let (graph, removed) = built?;
        if graph.data.weights.is_some() {
            roles.of_table(&edges_path).merged(&removed, options.duplicates);
        }
        let (features, exact, labels, splits, about) = match nodes {
            Some(nodes) => (nodes.features, nodes.exact, nodes.labels, nodes.splits, nodes.about),
            None => (Features::None, Exact::default(), Labels::None, Vec::new(), About::default()),
        };
        let ids = ids.map_or(Ids::Row, into_ids);
        let dataset =
            Dataset { name: dataset_name(path), graph, features, exact, labels, splits, ids, about, negatives: None };
        Ok((dataset.checked()?, roles))
    }
}

pub(super) fn open_edges(path: &Path, options: &ReadOptions) -> Result<Box<dyn Table>> {
    let columns = &options.columns;
    let chosen = [&columns.source, &columns.target, &columns.weight].into_iter().flatten().chain(&columns.ignore);
    let chosen: Vec<&str> = chosen.map(String::as_str).collect();
    let usual: [&[&str]; 2] = [&SOURCE_NAMES, &TARGET_NAMES];
    open_table(path, &options.limits, &Heading { given: options.header, chosen: &chosen, usual: &usual })
}

/// The table of an edge list, and its columns of sources and of targets, for who reads it in passes: without weights
/// and without a node table, which would have to be in memory.
pub(crate) fn open_plain(path: &Path, options: &ReadOptions) -> Result<(Box<dyn Table>, [usize; 2])> {
    let (edges, nodes) = files(path, options)?;
    if let Some(nodes) = nodes {
        let what = "a node table is read whole, so nothing holds it to --memory: cut without --memory, or, where ids are \
                    integers, convert once where there is room (laconic data convert EDGES --nodes NODES --out \
                    graph.npz) and cut graph.npz with --memory";
        return Err(GraphError::format(&nodes, "table", what));
    }
    let table = open_edges(&edges, options)?;
    let columns = EdgeColumns::find(&*table, &edges, options)?;
    let mut roles = Roles::default();
    columns.say(&*table, &edges, options, &mut roles);
    refuse_idle(options, false, &roles)?;
    if let Some(weight) = columns.weight {
        let what = format!("column '{}' holds weights, which are not read in passes", table.columns()[weight].name);
        return Err(GraphError::format(&edges, "header", what));
    }
    Ok((table, [columns.source, columns.target]))
}

/// What is said of a column that is in no table, or of a node table that is not there, would be passed over.
pub(super) fn refuse_idle(options: &ReadOptions, node_table: bool, roles: &Roles) -> Result<()> {
    let columns = &options.columns;
    let there = |name: &&String| roles.lines.iter().any(|line| line.columns.contains(name));
    if let Some(name) = columns.ignore.iter().find(|name| !there(name)) {
        return Err(GraphError::invalid(format!("data.ignore (--ignore): no table has a column '{name}'")));
    }
    let of_nodes = [
        ("data.id (--id)", columns.id.is_some()),
        ("data.label (--label)", columns.label.is_some()),
        ("data.split_column (--split-column)", columns.split.is_some()),
        ("data.features_columns (--features-columns)", !columns.features.is_empty()),
        ("data.label_separator (--label-separator)", columns.label_separator.is_some()),
    ];
    match of_nodes.iter().find(|(_, given)| *given && !node_table) {
        Some((key, _)) => Err(GraphError::invalid(format!(
            "{key} is about a node table, and there is none: data.nodes_path (--nodes)"
        ))),
        None => Ok(()),
    }
}

/// The first of `names` that is in `folder`, as a file or as a folder of files.
fn find_table(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    let folders = || names.iter().map(|name| folder.join(name)).find(|path| is_table_folder(path));
    find_text(folder, names).or_else(folders)
}

/// The file of edges and the node table.
fn files(path: &Path, options: &ReadOptions) -> Result<(PathBuf, Option<PathBuf>)> {
    let edges = if path.is_dir() && !is_table_folder(path) {
        let found = find_table(path, &EDGE_FILES);
        found.ok_or_else(|| GraphError::format(path, "folder", format!("expected one of {}", EDGE_FILES.join(", "))))?
    } else {
        path.to_owned()
    };
    let nodes = node_table_beside(&edges, options);
    Ok((edges, nodes))
}

/// The node table that is given, or else the one beside the edges.
pub(super) fn node_table_beside(edges: &Path, options: &ReadOptions) -> Option<PathBuf> {
    let beside = || edges.parent().and_then(|folder| find_table(folder, &NODE_FILES)).filter(|nodes| *nodes != edges);
    options.nodes.clone().or_else(beside)
}

/// Which columns of a table say what of edges.
pub(super) struct EdgeColumns {
    pub(super) source: usize,
    pub(super) target: usize,
    pub(super) weight: Option<usize>,
}

impl EdgeColumns {
    pub(super) fn find(table: &dyn Table, path: &Path, options: &ReadOptions) -> Result<EdgeColumns> {
        let find = |given: &Option<String>, usual: &[&str]| find_column(table, path, given.as_deref(), usual);
        let source = find(&options.columns.source, &SOURCE_NAMES)?.unwrap_or(0);
        let target = find(&options.columns.target, &TARGET_NAMES)?.unwrap_or(1);
        let third = || (!table.has_header() && table.columns().get(2)?.kind != Kind::Text).then_some(2);
        let weight = find(&options.columns.weight, &WEIGHT_NAMES)?.or_else(third);
        let count = table.columns().len();
        if source == target || source.max(target) >= count {
            let names: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
            let expected = format!("expected a source and a target column, found [{}]", shorten(&names.join(", ")));
            return Err(GraphError::format(path, "header", expected));
        }
        Ok(EdgeColumns { source, target, weight })
    }

    /// Says what became of each column.
    pub(super) fn say(&self, table: &dyn Table, path: &Path, options: &ReadOptions, roles: &mut Roles) {
        let mut roles = roles.of_table(path);
        let ends = [(Role::Source, Some(self.source)), (Role::Target, Some(self.target)), (Role::Weight, self.weight)];
        for (role, column) in ends {
            if let Some(column) = column {
                let name = table.columns()[column].name.as_str();
                roles.line(role, &[name], name);
            }
        }
        for (place, column) in table.columns().iter().enumerate() {
            let name = column.name.as_str();
            if ends.iter().any(|(_, taken)| *taken == Some(place)) {
                continue;
            }
            match column.kind {
                _ if options.columns.ignore.contains(&column.name) => roles.unwanted(name),
                Kind::Integer | Kind::Float if self.weight.is_none() => {
                    roles.ignored(name, &format!("not called a weight; --weight {name} (data.weight) makes it one"));
                }
                _ => roles.ignored(name, "edges have no features"),
            }
        }
    }
}

/// The node numbers of a column of ids.
pub(super) fn number(ids: &IdColumn, index: &IdIndex) -> std::result::Result<Vec<u32>, String> {
    let unknown = |row: usize, id: &dyn std::fmt::Display| {
        format!("edge {row} names '{}', which is not among the nodes", shorten(&id.to_string()))
    };
    match ids {
        IdColumn::Integers(ids) => {
            ids.iter().enumerate().map(|(row, &id)| index.integer(id).ok_or_else(|| unknown(row, &id))).collect()
        }
        IdColumn::Texts(ids) => {
            let mut numbers = Vec::with_capacity(ids.len());
            for (row, id) in ids.iter().enumerate() {
                numbers.push(index.text(id).ok_or_else(|| unknown(row, &id))?);
            }
            Ok(numbers)
        }
    }
}

pub(super) fn read_weights(table: &dyn Table, column: usize) -> Result<Vec<f32>> {
    let mut weights = Vec::new();
    table.scan(&[(column, Kind::Float)], &mut |_, _, cell| match cell {
        Cell::Float(weight) if !weight.is_nan() => {
            weights.push(weight as f32);
            Ok(())
        }
        _ => Err("expected a weight, found none".to_owned()),
    })?;
    Ok(weights)
}

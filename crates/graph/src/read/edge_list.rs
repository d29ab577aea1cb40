//! Edge lists with or without a node table, as CSV, TSV, text or Parquet.
//!
//! The input is a file of edges, or a folder with `edges.*` and perhaps `nodes.*`; a table may also be a folder of
//! Parquet files. Columns are found by their names
//! (see [`super::Columns`]), without a header by their place: source, target, weight; others are not read. The node
//! table is the one given, or else `nodes.*` beside the edges; it decides which nodes there are and in which order.
//! Without one, nodes are those of the edges: integer ids in ascending order, text ids in the order of their first
//! appearance. Ids are text if any of them is not an integer in its plain spelling, so `007` and `7` are two nodes.

use super::bipartite;
use super::edge_rows::{Kept, Numbered, Refused, data_of, ends_of, number, repeated};
use super::ends::{EdgeColumns, SOURCE_NAMES, TARGET_NAMES};
use super::float_ids::warn_of_floats;
use super::id_index::{IdIndex, distinct, into_ids};
use super::matrix_table::refuse_matrix;
use super::mixed_table;
use super::node_table::{NodeTable, open_nodes};
use super::numbers::shorten;
use super::parts::is_table_folder;
use super::table::{Heading, IdColumn, Kind, Table, open_table};
use super::text::find_text;
use super::{ReadOptions, Reader, Unknown, dataset_name, extension};
use crate::about::About;
use crate::build::{Duplicates, Removed, build_graph};
use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::edges::EdgeData;
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::roles::{Role, Roles, TableRoles};
use std::path::{Path, PathBuf};

/// The reader of edge lists.
pub struct EdgeList;

const EXTENSIONS: [&str; 9] = ["csv", "tsv", "txt", "parquet", "edges", "edgelist", "dat", "data", "tab"];
const EDGE_FILES: [&str; 4] = ["edges.csv", "edges.tsv", "edges.txt", "edges.parquet"];
const NODE_FILES: [&str; 4] = ["nodes.csv", "nodes.tsv", "nodes.txt", "nodes.parquet"];

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
        let edges = open_edges(&edges_path, options)?;
        if nodes.is_none()
            && let Some((tables, options)) = mixed_table::split(&edges_path, &*edges, options)?
        {
            return tables.read(path, &options);
        }
        Tables { edges: (edges, edges_path), nodes }.read(path, options)
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
    ///
    /// # Errors
    ///
    /// All that is wrong with either table.
    pub fn read(self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let mut roles = Roles::default();
        let (table, edges_path) = self.edges;
        let nodes_path = self.nodes.as_ref().map(|(_, path)| path.clone());
        let node_table = |(table, path): (_, PathBuf)| NodeTable::of(table, &path, options, &mut roles);
        let nodes = self.nodes.map(node_table).transpose();
        refuse_matrix(&*table, &edges_path, options)?;
        let columns = EdgeColumns::find(&*table, &edges_path, options);
        if let (Err(_), Ok(columns), Some(path)) = (&nodes, &columns, &nodes_path) {
            let more = held_to_ids((&*table, &edges_path, columns), path, options);
            return Err(GraphError::several(nodes.err().into_iter().chain(more)));
        }
        let (nodes, columns) = both(nodes, columns)?;
        columns.say(&*table, &edges_path, options, &mut roles);
        if let Some(nodes) = nodes_path.as_ref().filter(|_| columns.is_bipartite(options)) {
            let folder = "nodes of two kinds need a table each: a folder with nodes/A.csv, nodes/B.csv and \
                          edges/A__RELATION__B.csv; without --bipartite, --source and --target join them as one kind";
            return Err(GraphError::format(nodes, "nodes of two kinds (data.bipartite, or by their names)", folder));
        }
        warn_of_floats(&*table, &[columns.source, columns.target], &mut roles.of_table(&edges_path))?;
        refuse_idle(options, nodes.is_some(), &roles)?;
        if columns.is_bipartite(options) {
            let (dataset, removed) = bipartite::read(&*table, (path, &edges_path), &columns, options)?;
            say_removed(&dataset, &removed, (table.rows(), options), &mut roles.of_table(&edges_path));
            return Ok((dataset, roles));
        }
        let joined =
            joined((&*table, edges_path.as_path(), &columns), (nodes, nodes_path.as_deref()), options, &mut roles)?;
        Ok((Dataset { name: dataset_name(path), ..joined }.checked()?, roles))
    }
}

/// What is wrong with edges beside a node table that cannot be read: they are held to its ids, where these can be told.
fn held_to_ids(edges: (&dyn Table, &Path, &EdgeColumns), nodes: &Path, options: &ReadOptions) -> Option<GraphError> {
    let is_table = nodes.is_dir() || EXTENSIONS.contains(&extension(nodes).as_str());
    let bare = is_table.then(|| NodeTable::bare(nodes, options).ok()).flatten()?;
    if edges.2.is_bipartite(options) {
        return None;
    }
    joined(edges, (Some(bare), Some(nodes)), options, &mut Roles::default()).err()
}

/// Both, or all that is wrong with either.
fn both<A, B>(one: Result<A>, other: Result<B>) -> Result<(A, B)> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (one, other) => Err(GraphError::several(one.err().into_iter().chain(other.err()))),
    }
}

/// The dataset of edges and of the nodes that they name.
fn joined(
    (table, path, columns): (&dyn Table, &Path, &EdgeColumns),
    (mut nodes, nodes_path): (Option<NodeTable>, Option<&Path>),
    options: &ReadOptions,
    roles: &mut Roles,
) -> Result<Dataset> {
    let limits = &options.limits;
    let ends = [columns.source, columns.target];
    let texts = table.rows() > 0 && ends.iter().any(|&end| table.columns()[end].kind != Kind::Integer);
    let as_text = texts || nodes.as_ref().is_some_and(NodeTable::has_text_ids);
    let kind = if as_text { Kind::Text } else { Kind::Integer };
    let (all, wanted) = (table.rows(), ends.map(|end| (end, kind)));
    let kept = (options.unknown == Unknown::Drop).then(|| Kept::with(table, &wanted)).transpose()?;
    let table = kept.as_ref().map_or(table, |kept| kept as &dyn Table);
    let data = data_of(table, columns, options);
    let ids = nodes.as_ref().map(|nodes| nodes.ids(as_text, limits)).transpose();
    let (named, ((mut data, relations), ids)) = both(ends_of(table, &ends, as_text, limits), both(data, ids))?;
    let by_row = nodes.as_ref().filter(|_| matches!(ids, Some(None))).map_or(0, |nodes| nodes.nodes);
    let mut ids = ids.unwrap_or_else(|| Some(distinct(&named)));
    let found = number(&named, (&mut ids, by_row), &mut data, options.unknown);
    let found = found.map_err(|Refused { ids, rows }| {
        let ids = ids.map(|what| GraphError::format(nodes_path.unwrap_or(path), "ids", what));
        GraphError::several(ids.into_iter().chain(rows.map(|what| GraphError::format(path, "ids", what))))
    })?;
    if let Some(what) = columns.two_kinds(table, &named).filter(|_| nodes.is_none()) {
        roles.of_table(path).doubtful(Role::Rows, &[], what.clone(), what);
    }
    drop(named);
    let Numbered { ends: [sources, targets], dropped, added } = found;
    if let Some(nodes) = nodes.as_mut().filter(|_| added > 0) {
        nodes.add(added);
    }
    let count = ids.as_ref().map_or(by_row, IdColumn::len);
    if count as u64 > limits.nodes_max {
        return Err(GraphError::too_large(nodes_path.unwrap_or(path), "ids", limits.nodes_max));
    }
    let ends = [sources, targets];
    if options.duplicates == Duplicates::Error {
        refuse_repeated(&ends, &data, options).map_err(|what| GraphError::format(path, "rows", what))?;
    }
    let [sources, targets] = ends;
    let built = build_graph(count, sources, targets, data, options.build());
    let (graph, removed) = built.map_err(|error| GraphError::format(path, "edges", error.to_string()))?;
    let (features, exact, labels, splits, mut about) = match nodes {
        Some(nodes) => (nodes.features, nodes.exact, nodes.labels, nodes.splits, nodes.about),
        None => (Features::None, Exact::default(), Labels::None, Vec::new(), About::default()),
    };
    about.relations = relations;
    about.name_reverses(graph.data.kinds());
    let (name, ids) = (String::new(), ids.map_or(Ids::Row, into_ids));
    let dataset = Dataset { name, graph, features, exact, labels, splits, ids, about, negatives: None };
    let mut lines = roles.of_table(path);
    lines.unknown((dropped, added, all - table.rows()), all);
    say_removed(&dataset, &removed, (all, options), &mut lines);
    Ok(dataset)
}

/// Refuses rows that are one edge.
fn refuse_repeated(ends: &[Vec<u32>; 2], data: &EdgeData, options: &ReadOptions) -> std::result::Result<(), String> {
    let Some((one, other, count)) = repeated(ends, data, options.symmetrise) else { return Ok(()) };
    let rules = "data.duplicates = \"sum\", \"mean\", \"max\" or \"first\" (--duplicates) makes one edge of them";
    let again = format!("{count} rows repeat an edge, which data.duplicates = \"error\" refuses");
    Err(format!("rows {one} and {other} are the same edge: {again}; {rules}"))
}

/// Says what became of rows that are no edges of their own.
fn say_removed(dataset: &Dataset, removed: &Removed, (rows, options): (usize, &ReadOptions), lines: &mut TableRoles) {
    let weighted = dataset.graph.data.weights.is_some();
    lines.left_out(removed, rows, weighted);
    if weighted {
        lines.merged(removed, options.duplicates);
    }
}

pub(super) fn open_edges(path: &Path, options: &ReadOptions) -> Result<Box<dyn Table>> {
    let columns = &options.columns;
    let chosen = [&columns.source, &columns.target, &columns.weight].into_iter().flatten().chain(&columns.ignore);
    let chosen: Vec<&str> = chosen.map(String::as_str).collect();
    let usual: [&[&str]; 2] = [&SOURCE_NAMES, &TARGET_NAMES];
    let heading = Heading { given: options.header, chosen: &chosen, usual: &usual, ends: true };
    open_table(path, &options.limits, &heading)
}

/// The table of an edge list, and its columns of sources and of targets, for who reads it in passes: without weights
/// and without a node table, which would have to be in memory.
pub(crate) fn open_plain(path: &Path, options: &ReadOptions) -> Result<(Box<dyn Table>, [usize; 2])> {
    let (edges, nodes) = files(path, options)?;
    if let Some(nodes) = nodes {
        let what = "a node table is read whole, so nothing holds it to --memory: cut without --memory, or, where ids \
                    are integers, convert once where there is room (laconic data convert EDGES --nodes NODES --out \
                    graph.npz) and cut graph.npz with --memory";
        return Err(GraphError::format(&nodes, "table", what));
    }
    let table = open_edges(&edges, options)?;
    let columns = EdgeColumns::find(&*table, &edges, options)?;
    let mut roles = Roles::default();
    columns.say(&*table, &edges, options, &mut roles);
    refuse_idle(options, false, &roles)?;
    if let Some(weight) = columns.weight {
        let name = &table.columns()[weight].name;
        let without = format!("--ignore \"{name}\" (data.ignore) reads the edges without them");
        let what = format!("column '{name}' holds weights, which are not read in passes; {without}");
        return Err(GraphError::format(&edges, "header", what));
    }
    let whole = [
        ("--weight count", columns.is_counted),
        ("--relation (data.relation)", columns.relation.is_some()),
        ("--bipartite (data.bipartite)", columns.is_bipartite(options)),
        ("--duplicates error (data.duplicates)", options.duplicates == Duplicates::Error),
    ];
    match whole.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            let what = "needs all edges in memory; `laconic data convert` first writes an npz, which is read in passes";
            Err(GraphError::format(&edges, *flag, what))
        }
        None => Ok((table, [columns.source, columns.target])),
    }
}

/// What is said of a column that is in no table, or of a node table that is not there, would be passed over.
pub(super) fn refuse_idle(options: &ReadOptions, node_table: bool, roles: &Roles) -> Result<()> {
    let columns = &options.columns;
    let there = |name: &&String| roles.lines.iter().any(|line| line.columns.contains(name));
    if let Some(name) = columns.ignore.iter().find(|name| !there(name)) {
        return Err(GraphError::invalid(format!("data.ignore (--ignore): no table has a column '{name}'")));
    }
    let of_nodes = [
        ("data.unknown (--unknown)", options.unknown != Unknown::Error),
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

/// The node numbers of a column of ids.
pub(super) fn numbers(ids: &IdColumn, index: &IdIndex) -> std::result::Result<Vec<u32>, String> {
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

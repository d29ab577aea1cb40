//! Edge lists with or without a node table, as CSV, TSV, text or Parquet.
//!
//! The input is a file of edges, or a folder with `edges.*` and perhaps `nodes.*`; a table may also be a folder of
//! Parquet files. Columns are found by their names
//! (see [`super::Columns`]), without a header by their place: source, target, weight; others are not read. The node
//! table is the one given, or else `nodes.*` beside the edges; it decides which nodes there are and in which order.
//! Without one, nodes are those of the edges: integer ids in ascending order, text ids in the order of their first
//! appearance. Ids are text if any of them is not an integer in its plain spelling, so `007` and `7` are two nodes.

use super::edge_tables::{EXTENSIONS, Tables, open_edges};
use super::ends::EdgeColumns;
use super::mixed_table;
use super::node_table::open_nodes;
use super::parts::is_table_folder;
use super::table::Table;
use super::text::find_text;
use super::{ReadOptions, Reader, extension};
use crate::build::Duplicates;
use crate::dataset::Dataset;
use crate::error::{GraphError, Result};
use crate::roles::Roles;
use std::path::{Path, PathBuf};

/// The reader of edge lists.
pub struct EdgeList;

/// The last is a folder that an engine has filled.
const EDGE_FILES: [&str; 5] = ["edges.csv", "edges.tsv", "edges.txt", "edges.parquet", "edges"];
const NODE_FILES: [&str; 5] = ["nodes.csv", "nodes.tsv", "nodes.txt", "nodes.parquet", "nodes"];

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

/// A table of edges that is read in passes, and its columns: without weights.
pub(in crate::read) fn open_plain(
    edges: &Path,
    options: &ReadOptions,
    roles: &mut Roles,
) -> Result<(Box<dyn Table>, EdgeColumns)> {
    let table = open_edges(edges, options)?;
    let columns = EdgeColumns::find(&*table, edges, options)?;
    columns.say(&*table, edges, options, roles);
    if let Some(weight) = columns.weight {
        let name = &table.columns()[weight].name;
        let without = format!("--ignore \"{name}\" (data.ignore) reads the edges without them");
        let what = format!("column '{name}' holds weights, which are not read in passes; {without}");
        return Err(GraphError::format(edges, "header", what));
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
            Err(GraphError::format(edges, *flag, what))
        }
        None => Ok((table, columns)),
    }
}

/// Whether a folder holds a table a relation: `SOURCE__RELATION__TARGET.parquet`.
fn is_of_types(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let stem = |entry: std::fs::DirEntry| entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
    entries.filter_map(stem).any(|stem| !stem.starts_with('_') && stem.matches("__").count() >= 2)
}

/// The first of `names` that is in `folder`, as a file or as a folder of files.
fn find_table(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    let folders =
        || names.iter().map(|name| folder.join(name)).find(|path| is_table_folder(path) && !is_of_types(path));
    let files: Vec<&str> = names.iter().copied().filter(|name| name.contains('.')).collect();
    find_text(folder, &files).or_else(folders)
}

/// The file of edges and the node table.
pub(in crate::read) fn files(path: &Path, options: &ReadOptions) -> Result<(PathBuf, Option<PathBuf>)> {
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

//! One table of nodes and edges, as `apoc.export.csv.all` writes it: rows with `_id` are nodes, rows with `_start` and
//! `_end` edges.

use super::ReadOptions;
use super::edge_rows::Kept;
use super::edge_tables::{Tables, open_edges};
use super::node_table::open_nodes;
use super::table::Table;
use crate::error::Result;
use std::path::Path;

const ID: &str = "_id";
const ENDS: [&str; 2] = ["_start", "_end"];

fn column(table: &dyn Table, name: &str) -> Option<usize> {
    table.columns().iter().position(|column| column.name == name)
}

/// Both tables of such a file, and the options with which they are read; nothing where it is no such file.
///
/// # Errors
///
/// If the file cannot be read.
pub fn split(path: &Path, edges: &dyn Table, options: &ReadOptions) -> Result<Option<(Tables, ReadOptions)>> {
    let ends = ENDS.map(|name| column(edges, name));
    let (Some(id), [Some(source), Some(target)]) = (column(edges, ID), ends) else { return Ok(None) };
    let mut options = options.clone();
    options.columns.id.get_or_insert_with(|| ID.to_owned());
    let with = |table: Box<dyn Table>, columns: &[usize]| -> Result<Box<dyn Table>> {
        let wanted: Vec<_> = columns.iter().map(|&column| (column, table.columns()[column].kind)).collect();
        Ok(Box::new(Kept::with(table, &wanted)?))
    };
    let nodes = with(open_nodes(path, &options)?, &[id])?;
    let edges = with(open_edges(path, &options)?, &[source, target])?;
    Ok(Some((Tables { edges: (edges, path.to_owned()), nodes: Some((nodes, path.to_owned())) }, options)))
}

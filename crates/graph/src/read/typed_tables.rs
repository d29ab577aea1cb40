//! A folder with a table for each type of nodes and each relation: `nodes/TYPE.csv` and
//! `edges/SOURCE__RELATION__TARGET.csv`, or tsv, txt, parquet.
//!
//! A table is read as an edge list or a node table is by itself; ends of edges are ids of the tables of their types.
//! Types and relations stand in the order of their names. Columns have the usual names, or those that keys name for all
//! tables alike; a name of ids that is not in a table is passed over there, as long as it is in some table.

use super::edge_rows::weights as read_weights;
use super::edge_tables::{held_to_its_ids, numbers as number, open_edges};
use super::ends::EdgeColumns;
use super::id_index::{IdIndex, into_ids};
use super::node_table::{NodeTable, ROW, open_nodes};
use super::table::{IdColumn, Kind, Table, load_ids};
use super::typed::{EdgesFound, NodesFound, TYPES_MAX, together, type_named};
use super::{Missing, ReadOptions, Reader, extension};
use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::error::{GraphError, Result};
use crate::node_types::TypedNodes;
use crate::roles::Roles;
use std::path::{Path, PathBuf};

/// The reader of folders with a table a type.
pub struct TypedTables;

const NODES: &str = "nodes";
const EDGES: &str = "edges";
const EXTENSIONS: [&str; 4] = ["csv", "tsv", "txt", "parquet"];

/// Keys that name columns of all tables.
const KEYS: [&str; 5] = ["data.id", "data.source", "data.target", "data.weight", "data.header"];

/// The table of one type, its ids as they are needed.
struct Opened {
    table: NodeTable,
    ids: Option<IdColumn>,
    path: PathBuf,
}

impl Reader for TypedTables {
    fn name(&self) -> &'static str {
        "folder with a table a type"
    }

    fn recognises(&self, path: &Path) -> bool {
        let has_tables = |folder: &str| tables(&path.join(folder)).is_ok_and(|tables| !tables.is_empty());
        has_tables(NODES) && has_tables(EDGES)
    }

    fn reads_key(&self, key: &str) -> bool {
        KEYS.contains(&key)
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        Ok(self.read_with_roles(path, options)?.0)
    }

    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let files = (tables(&path.join(NODES))?, tables(&path.join(EDGES))?);
        read_tables(path, files, options)
    }
}

/// Tables, each with its name.
pub(super) type NamedFiles = Vec<(String, PathBuf)>;

/// The dataset of tables of nodes, by their types, and of edges, by `SOURCE__RELATION__TARGET`.
pub(super) fn read_tables(
    path: &Path,
    (node_files, edge_files): (NamedFiles, NamedFiles),
    options: &ReadOptions,
) -> Result<(Dataset, Roles)> {
    refuse_unread(path, options)?;
    let (mut roles, mut types, mut opened, mut has_id) = (Roles::default(), Vec::new(), Vec::new(), false);
    let mut errors = Vec::new();
    for (name, file) in node_files {
        match read_nodes(file, options, (&mut has_id, &mut roles)) {
            Ok(mut of) => {
                types.push(found(name, &mut of.table, of.ids.as_ref()));
                opened.push(of);
            }
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(GraphError::several(errors));
    }
    if let Some(id) = options.columns.id.as_ref().filter(|_| !has_id) {
        return Err(GraphError::format(path, "types", format!("data.id (--id): no node table has a column '{id}'")));
    }
    let mut relations = Vec::new();
    for (name, file) in edge_files {
        match read_edges((&file, &name), (&types, &opened), options, &mut roles) {
            Ok(relation) => relations.push(relation),
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(GraphError::several(errors));
    }
    let mut dataset = together(path, (types, relations), options)?;
    dataset.about.of_typed_tables = true;
    Ok((dataset, roles))
}

/// The nodes of one type, whose ids differ.
fn read_nodes(path: PathBuf, options: &ReadOptions, (has_id, roles): (&mut bool, &mut Roles)) -> Result<Opened> {
    let mut options = ReadOptions { like: None, ..options.clone() };
    let table = open_nodes(&path, &options)?;
    let is_id = |name: &String| table.columns().iter().any(|column| column.name == *name);
    match options.columns.id.take_if(|id| id != ROW && !is_id(id)) {
        Some(_) => {}
        None => *has_id = true,
    }
    let table = held_to_its_ids(NodeTable::of(table, &path, &options, roles), &path, &options)?;
    let ids = table.ids(table.has_text_ids(), &options.limits)?;
    if let Some(Err(what)) = ids.as_ref().map(IdIndex::new) {
        return Err(GraphError::format(&path, "ids", what));
    }
    Ok(Opened { table, ids, path })
}

/// The tables of a folder by their names, in the order of these.
fn tables(folder: &Path) -> Result<NamedFiles> {
    let mut tables = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| GraphError::io(folder, error))? {
        let path = entry.map_err(|error| GraphError::io(folder, error))?.path();
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        if !stem.is_empty() && path.is_file() && EXTENSIONS.contains(&extension(&path).as_str()) {
            tables.push((stem, path));
        }
        if tables.len() > TYPES_MAX {
            return Err(GraphError::too_large(folder, "tables", TYPES_MAX as u64));
        }
    }
    tables.sort();
    match tables.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => {
            let what = format!("there is another table of this name, {}", pair[0].1.display());
            Err(GraphError::format(&pair[1].1, "name", what))
        }
        None => Ok(tables),
    }
}

/// What is asked for and cannot be had of several tables would be passed over.
fn refuse_unread(path: &Path, options: &ReadOptions) -> Result<()> {
    let refuse = |key: &str, why: &str| Err(GraphError::format(path, "types", format!("{key}: {why}")));
    if options.nodes.is_some() {
        return refuse("data.nodes_path (--nodes)", "the node tables are those in the folder nodes");
    }
    if options.cells.missing == Missing::Mean {
        let why = "nobody knows yet who trains while tables of several types are put together; --missing zero fills \
                   and marks their cells";
        return refuse("data.missing = \"mean\" (--missing mean)", why);
    }
    Ok(())
}

/// One type as it is put together with others.
fn found(name: String, table: &mut NodeTable, ids: Option<&IdColumn>) -> NodesFound {
    let take_ids = |ids: &IdColumn| match ids {
        IdColumn::Integers(ids) => into_ids(IdColumn::Integers(ids.clone())),
        IdColumn::Texts(ids) => Ids::Strings(ids.iter().map(str::to_owned).collect()),
    };
    let ids = match ids.map(take_ids) {
        None | Some(Ids::Row) => Vec::new(),
        Some(Ids::Integers(ids)) => ids.iter().map(i64::to_string).collect(),
        Some(Ids::Strings(ids)) => ids,
    };
    let about = std::mem::take(&mut table.about);
    let features = std::mem::replace(&mut table.features, Features::None);
    let labels = std::mem::replace(&mut table.labels, Labels::None);
    NodesFound {
        nodes: TypedNodes { name, features, columns: about.features },
        exact: std::mem::take(&mut table.exact),
        count: table.nodes,
        ids,
        labels,
        classes: about.classes,
        splits: std::mem::take(&mut table.splits),
    }
}

/// The edges of one relation.
fn read_edges(
    (path, name): (&Path, &str),
    (types, opened): (&[NodesFound], &[Opened]),
    options: &ReadOptions,
    roles: &mut Roles,
) -> Result<EdgesFound> {
    let expected =
        || GraphError::format(path, "name", "expected SOURCE__RELATION__TARGET, types of nodes at both ends");
    let (source, rest) = name.split_once("__").ok_or_else(expected)?;
    let (relation, target) = rest.rsplit_once("__").ok_or_else(expected)?;
    if relation.is_empty() {
        return Err(expected());
    }
    let ends = [type_named(path, types, source)?, type_named(path, types, target)?];
    let table = open_edges(path, options)?;
    let columns = EdgeColumns::find(&*table, path, options)?;
    columns.say(&*table, path, options, roles);
    let rows = |column: usize, end: usize| numbers((&*table, path), column, &opened[end], options);
    let found = GraphError::both(rows(columns.source, ends[0]), rows(columns.target, ends[1]));
    let weights = columns.weight.map(|column| read_weights(&*table, column)).transpose();
    let ((sources, targets), weights) = GraphError::both(found, weights)?;
    Ok(EdgesFound { name: name.to_owned(), ends, sources, targets, weights })
}

/// The rows of a type that a column of ids names.
fn numbers((table, path): (&dyn Table, &Path), column: usize, of: &Opened, options: &ReadOptions) -> Result<Vec<u32>> {
    let is_text = |column: usize| table.rows() > 0 && table.columns()[column].kind != Kind::Integer;
    let as_text = of.table.has_text_ids() || is_text(column);
    // Where the edges' ids are texts, the nodes' are read as such.
    let again = (as_text && !of.table.has_text_ids()).then(|| of.table.ids(true, &options.limits)).transpose()?;
    let ids = again.as_ref().unwrap_or(&of.ids);
    let index = match ids {
        Some(ids) => IdIndex::new(ids).map_err(|what| GraphError::format(&of.path, "ids", what))?,
        None => IdIndex::Row(of.table.nodes),
    };
    let there = load_ids(table, &[column], as_text && of.ids.is_some(), &options.limits)?.pop();
    let there = there.ok_or_else(|| GraphError::format(path, "ids", "expected a column of ids"))?;
    number(&there, &index).map_err(|what| GraphError::format(path, "ids", what))
}

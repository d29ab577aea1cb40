//! A table of edges and the one of their nodes, from wherever they come: how they become a dataset.

use super::bipartite;
use super::distinct_ids::distinct;
use super::edge_rows::{Kept, Numbered, Refused, data_of, ends_of, number, repeated};
use super::ends::{EdgeColumns, SOURCE_NAMES, TARGET_NAMES};
use super::float_ids::warn_of_floats;
use super::id_index::{IdIndex, into_ids};
use super::known_ends::known_ends;
use super::matrix_table::refuse_matrix;
use super::node_table::NodeTable;
use super::numbers::shorten;
use super::table::{Heading, IdColumn, Kind, Table, open_table};
use super::{ReadOptions, Unknown, dataset_name, extension};
use crate::about::About;
use crate::build::{Duplicates, Removed, build_graph};
use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::edges::EdgeData;
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::info::broken_features;
use crate::roles::{Role, Roles, TableRoles, UnknownEnds};
use std::path::{Path, PathBuf};

/// What files of tables end in.
pub(super) const EXTENSIONS: [&str; 9] = ["csv", "tsv", "txt", "parquet", "edges", "edgelist", "dat", "data", "tab"];

/// The tables of an edge list, whatever they were made of, each with the file that it comes from.
pub(super) struct Tables {
    /// One row an edge.
    pub edges: (Box<dyn Table>, PathBuf),
    /// One row a node.
    pub nodes: Option<(Box<dyn Table>, PathBuf)>,
}

/// A table of edges, the file that it comes from, and what its columns are.
#[derive(Clone, Copy)]
struct EdgeTable<'a> {
    table: &'a dyn Table,
    path: &'a Path,
    columns: &'a EdgeColumns,
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
        let columns = refuse_matrix(&*table, &edges_path, options);
        let columns = columns.and_then(|()| EdgeColumns::find(&*table, &edges_path, options));
        if let (Err(_), Ok(columns), Some(path)) = (&nodes, &columns, &nodes_path) {
            let edges = EdgeTable { table: &*table, path: &edges_path, columns };
            let more = held_to_ids(edges, path, options);
            return Err(GraphError::several(nodes.err().into_iter().chain(more)));
        }
        // Without columns of ends, the ids of nodes can still be held to each other.
        let twice = nodes_path.as_deref().filter(|_| columns.is_err());
        let twice = twice
            .map_or(Ok(()), |path| refuse_repeated_ids(nodes.as_ref().ok().and_then(Option::as_ref), path, options));
        let ((nodes, columns), ()) = GraphError::both(GraphError::both(nodes, columns), twice)?;
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
        let edges = EdgeTable { table: &*table, path: &edges_path, columns: &columns };
        let joined = joined(edges, (nodes, nodes_path.as_deref()), options, &mut roles)?;
        Ok((Dataset { name: dataset_name(path), ..joined }.checked()?, roles))
    }
}

/// What is wrong with edges beside a node table that cannot be read: they are held to its ids, where these can be told.
fn held_to_ids(edges: EdgeTable<'_>, nodes: &Path, options: &ReadOptions) -> Option<GraphError> {
    let bare = is_table(nodes).then(|| NodeTable::bare(nodes, options).ok()).flatten()?;
    if edges.columns.is_bipartite(options) {
        return None;
    }
    joined(edges, (Some(bare), Some(nodes)), options, &mut Roles::default()).err()
}

/// Refuses ids that are missing or those of several rows of a node table, which may be broken otherwise.
pub(super) fn refuse_repeated_ids(nodes: Option<&NodeTable>, path: &Path, options: &ReadOptions) -> Result<()> {
    let bare = if nodes.is_none() && is_table(path) { NodeTable::bare(path, options).ok() } else { None };
    let Some(nodes) = nodes.or(bare.as_ref()) else { return Ok(()) };
    let Some(ids) = nodes.ids(nodes.has_text_ids(), &options.limits)? else { return Ok(()) };
    IdIndex::new(&ids).map(drop).map_err(|what| GraphError::format(path, "ids", what))
}

/// A node table, or what is wrong with it and with its ids.
pub(super) fn held_to_its_ids(table: Result<NodeTable>, path: &Path, options: &ReadOptions) -> Result<NodeTable> {
    let twice = if table.is_err() { refuse_repeated_ids(None, path, options) } else { Ok(()) };
    Ok(GraphError::both(table, twice)?.0)
}

fn is_table(path: &Path) -> bool {
    path.is_dir() || EXTENSIONS.contains(&extension(path).as_str())
}

/// The dataset of edges and of the nodes that they name.
fn joined(
    edges: EdgeTable<'_>,
    (mut nodes, nodes_path): (Option<NodeTable>, Option<&Path>),
    options: &ReadOptions,
    roles: &mut Roles,
) -> Result<Dataset> {
    let (all, path) = (edges.table.rows(), edges.path);
    let rows = match Rows::whole(edges, nodes.as_ref(), options) {
        Some(rows) => rows,
        None => {
            let read = Rows::read(edges, (nodes.as_ref(), nodes_path), options);
            let broken = nodes.as_ref().zip(nodes_path).filter(|_| read.is_err());
            let broken = broken.and_then(|(nodes, path)| broken_nodes(nodes, path, options));
            read.map_err(|error| GraphError::several([error].into_iter().chain(broken)))?
        }
    };
    if let Some(what) = rows.two_kinds {
        roles.of_table(path).doubtful(Role::Rows, &[], what.clone(), what);
    }
    if let Some(nodes) = nodes.as_mut().filter(|_| rows.added > 0) {
        nodes.add(rows.added);
    }
    let [sources, targets] = rows.ends;
    let built = build_graph(rows.nodes, sources, targets, rows.data, options.build());
    let (graph, removed) = built.map_err(|error| GraphError::format(path, "edges", error.to_string()))?;
    let (features, exact, labels, splits, mut about) = match nodes {
        Some(nodes) => (nodes.features, nodes.exact, nodes.labels, nodes.splits, nodes.about),
        None => (Features::None, Exact::default(), Labels::None, Vec::new(), About::default()),
    };
    about.relations = rows.relations;
    about.name_reverses(graph.data.kinds());
    let (name, ids) = (String::new(), rows.ids.map_or(Ids::Row, into_ids));
    let dataset = Dataset { name, graph, features, exact, labels, splits, ids, about, negatives: None };
    let mut lines = roles.of_table(path);
    lines.unknown(UnknownEnds { dropped: rows.dropped, added: rows.added, nameless: rows.nowhere }, all);
    say_removed(&dataset, &removed, (all, options), &mut lines);
    Ok(dataset)
}

/// What else is wrong with a node table whose edges cannot be read.
fn broken_nodes(nodes: &NodeTable, path: &Path, options: &ReadOptions) -> Option<GraphError> {
    let ids = nodes.ids(nodes.has_text_ids(), &options.limits).ok()?.map_or(Ids::Row, into_ids);
    broken_features(&nodes.features, &ids).map(|what| GraphError::format(path, "features", what))
}

/// The rows of an edge table, by the numbers of nodes.
struct Rows {
    ends: [Vec<u32>; 2],
    data: EdgeData,
    relations: Vec<String>,
    /// How many nodes there are.
    nodes: usize,
    /// What they are called; `None` where the rows of the node table are.
    ids: Option<IdColumn>,
    /// How many rows went, since they name nodes that there are not.
    dropped: usize,
    /// How many went since they name none.
    nowhere: usize,
    /// How many nodes came that no table has.
    added: usize,
    /// What is said where ends may be nodes of two kinds.
    two_kinds: Option<String>,
}

/// The columns of both ends, as texts where the ids of one of them or of the nodes are.
pub(in crate::read) fn ends_wanted(
    table: &dyn Table,
    columns: &EdgeColumns,
    nodes: Option<&NodeTable>,
) -> [(usize, Kind); 2] {
    let ends = [columns.source, columns.target];
    let texts = table.rows() > 0 && ends.iter().any(|&end| table.columns()[end].kind != Kind::Integer);
    let as_text = texts || nodes.is_some_and(NodeTable::has_text_ids);
    ends.map(|end| (end, if as_text { Kind::Text } else { Kind::Integer }))
}

impl Rows {
    /// Rows that all name nodes of a table: their ids are never all in memory. `None` where there is no such table, and
    /// where something is wrong, which [`Rows::read`] says.
    fn whole(
        EdgeTable { table, columns, .. }: EdgeTable<'_>,
        nodes: Option<&NodeTable>,
        options: &ReadOptions,
    ) -> Option<Rows> {
        if options.duplicates == Duplicates::Error {
            return None;
        }
        let wanted = ends_wanted(table, columns, nodes);
        let ids = nodes?.ids(wanted[0].1 == Kind::Text, &options.limits).ok()??;
        let ends = known_ends(table, wanted, &ids, &options.limits)?;
        let (data, relations) = data_of(table, columns, options).ok()?;
        let (nodes, ids) = (ids.len(), Some(ids));
        Some(Rows { ends, data, relations, nodes, ids, dropped: 0, nowhere: 0, added: 0, two_kinds: None })
    }

    /// # Errors
    ///
    /// All that is wrong with the rows and with the ids of nodes: what can be looked at without a column that is broken
    /// is looked at.
    fn read(
        EdgeTable { table, path, columns }: EdgeTable<'_>,
        (nodes, nodes_path): (Option<&NodeTable>, Option<&Path>),
        options: &ReadOptions,
    ) -> Result<Rows> {
        let (limits, mut errors) = (&options.limits, Vec::new());
        let ends = [columns.source, columns.target];
        let wanted = ends_wanted(table, columns, nodes);
        let as_text = wanted[0].1 == Kind::Text;
        let kept = (options.unknown == Unknown::Drop).then(|| Kept::with(table, &wanted)).transpose()?;
        let (all, table) = (table.rows(), kept.as_ref().map_or(table, |kept| kept as &dyn Table));
        let named = or_note(ends_of(table, &ends, as_text, limits), &mut errors);
        let data = or_note(data_of(table, columns, options), &mut errors);
        let ids = or_note(nodes.map(|nodes| nodes.ids(as_text, limits)).transpose(), &mut errors);
        // Where some rows have no ends, the others are looked at all the same.
        let whole = if named.is_none() { Kept::with(table, &wanted).ok() } else { None };
        let again = || ends_of(whole.as_ref()?, &ends, as_text, limits).ok();
        let (Some(named), Some(ids)) = (named.or_else(again), ids) else { return Err(GraphError::several(errors)) };
        let by_row = nodes.filter(|_| matches!(ids, Some(None))).map_or(0, |nodes| nodes.nodes);
        let mut ids = ids.unwrap_or_else(|| Some(distinct(&named)));
        // What is known of edges is of no use any more where something is wrong, but for which are the same.
        let knows_relations = columns.relation.is_none() || errors.is_empty();
        let (mut data, relations) = data.filter(|_| whole.is_none()).unwrap_or_default();
        let place = |row| whole.as_ref().or(kept.as_ref()).map_or(row, |kept| kept.place(row));
        let found = number(&named, (&mut ids, by_row), &mut data, (options.unknown, &place));
        let found = found.map_err(|Refused { ids, rows }| {
            let ids = ids.map(|what| GraphError::format(nodes_path.unwrap_or(path), "ids", what));
            errors.extend(ids.into_iter().chain(rows.map(|what| GraphError::format(path, "ids", what))));
        });
        let Ok(Numbered { ends, lost, added }) = found else { return Err(GraphError::several(errors)) };
        let dropped = lost.iter().filter(|&&lost| lost).count();
        let number =
            |row: usize| if dropped == 0 { Some(row) } else { (0..lost.len()).filter(|&row| !lost[row]).nth(row) };
        if options.duplicates == Duplicates::Error && knows_relations {
            let twice = refuse_repeated((&ends, &data), &|row| place(number(row).unwrap_or(row)), options);
            errors.extend(twice.err().map(|what| GraphError::format(path, "rows", what)));
        }
        let nodes_there = ids.as_ref().map_or(by_row, IdColumn::len);
        if nodes_there as u64 > limits.nodes_max {
            errors.push(GraphError::too_large(nodes_path.unwrap_or(path), "ids", limits.nodes_max));
        }
        if !errors.is_empty() {
            return Err(GraphError::several(errors));
        }
        let two_kinds = columns.two_kinds(table, &named).filter(|_| nodes.is_none());
        let (nowhere, nodes) = (all - table.rows(), nodes_there);
        Ok(Rows { ends, data, relations, nodes, ids, dropped, nowhere, added, two_kinds })
    }
}

/// What was found, or nothing, and a note of why.
fn or_note<T>(found: Result<T>, errors: &mut Vec<GraphError>) -> Option<T> {
    found.map_err(|error| errors.push(error)).ok()
}

/// Refuses rows that are one edge; `place` says which row of the file one is.
fn refuse_repeated(
    (ends, data): (&[Vec<u32>; 2], &EdgeData),
    place: &dyn Fn(usize) -> usize,
    options: &ReadOptions,
) -> std::result::Result<(), String> {
    let Some((one, other, count)) = repeated(ends, data, options.symmetrise) else { return Ok(()) };
    let (one, other) = (place(one), place(other));
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

/// What is said of a column that is in no table, or of a node table that is not there, would be passed over.
pub(in crate::read) fn refuse_idle(options: &ReadOptions, node_table: bool, roles: &Roles) -> Result<()> {
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

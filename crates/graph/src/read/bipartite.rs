//! Edge tables whose ends are nodes of two kinds, which may have the same ids.

use super::ReadOptions;
use super::distinct_ids::distinct_of;
use super::edge_rows::{data_of, ends_of};
use super::ends::EdgeColumns;
use super::id_index::{IdIndex, into_ids};
use super::table::{IdColumn, Kind, Table, called};
use super::typed::{EdgesFound, NodesFound, counted};
use crate::build::Removed;
use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::node_types::TypedNodes;
use std::path::Path;

/// The dataset of a table whose sources are nodes of one type and whose targets are nodes of another.
///
/// # Errors
///
/// If ids are missing, or there are more of anything than the limits allow.
pub fn read(
    table: &dyn Table,
    (path, from): (&Path, &Path),
    columns: &EdgeColumns,
    options: &ReadOptions,
) -> Result<(Dataset, Removed)> {
    let [source, target] = [columns.source, columns.target].map(|column| called(table, column));
    let (ends, data) = (sides(table, from, columns, options), data_of(table, columns, options));
    let ((types, [sources, targets]), (data, names)) = GraphError::both(ends, data)?;
    let middle = super::dataset_name(from);
    let relation = |name: &str, rows: &[usize]| EdgesFound {
        name: format!("{source}__{name}__{target}"),
        ends: [0, 1],
        sources: rows.iter().map(|&row| sources[row]).collect(),
        targets: rows.iter().map(|&row| targets[row]).collect(),
        weights: data.weights.as_ref().map(|weights| rows.iter().map(|&row| weights[row]).collect()),
    };
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); names.len().max(1)];
    (0..sources.len()).for_each(|row| rows[usize::from(data.relation(row))].push(row));
    let relations = match names.is_empty() {
        true => vec![relation(&middle, &rows[0])],
        false => names.iter().zip(&rows).map(|(name, rows)| relation(name, rows)).collect(),
    };
    counted(path, (types, relations), options)
}

/// Both types, and the nodes of each that rows name.
fn sides(
    table: &dyn Table,
    path: &Path,
    columns: &EdgeColumns,
    options: &ReadOptions,
) -> Result<(Vec<NodesFound>, [Vec<u32>; 2])> {
    let mut types = Vec::new();
    let mut nodes: [Vec<u32>; 2] = Default::default();
    for (column, nodes) in [columns.source, columns.target].into_iter().zip(&mut nodes) {
        let as_text = table.columns()[column].kind != Kind::Integer;
        let ids = ends_of(table, &[column], as_text, &options.limits)?.pop();
        let ids = ids.ok_or_else(|| GraphError::format(path, "ids", "expected a column of ids"))?;
        let distinct = distinct_of(&ids);
        if distinct.len() as u64 > options.limits.nodes_max {
            return Err(GraphError::too_large(path, "ids", options.limits.nodes_max));
        }
        let index = IdIndex::new(&distinct).map_err(|what| GraphError::format(path, "ids", what))?;
        let of_id = |found: Option<u32>| found.ok_or_else(|| GraphError::format(path, "ids", "the file changed"));
        *nodes = match &ids {
            IdColumn::Integers(ids) => ids.iter().map(|&id| of_id(index.integer(id))).collect::<Result<_>>()?,
            IdColumn::Texts(ids) => ids.iter().map(|id| of_id(index.text(id))).collect::<Result<_>>()?,
        };
        drop(index);
        let count = distinct.len();
        let ids = match into_ids(distinct) {
            Ids::Row => Vec::new(),
            Ids::Integers(ids) => ids.iter().map(i64::to_string).collect(),
            Ids::Strings(ids) => ids,
        };
        let (name, columns) = (called(table, column), Vec::new());
        types.push(NodesFound {
            nodes: TypedNodes { name, features: Features::None, columns },
            exact: Exact::default(),
            count,
            ids,
            labels: Labels::None,
            classes: Vec::new(),
            splits: Vec::new(),
        });
    }
    Ok((types, nodes))
}

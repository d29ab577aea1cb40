//! Nodes that have one id: which they are, and tables without the later ones.

use super::distinct_ids::said_of_repeated;
use super::edge_rows::{Kept, counted, missing};
use super::id_index::IdIndex;
use super::table::{Cell, Kind, Table, load_ids};
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::roles::{Role, TableRoles};
use std::collections::HashSet;

/// What is wrong with a column of ids of which some are not there: that, and which of the others are repeated.
pub fn all_wrong(
    table: &dyn Table,
    (column, as_text): (usize, bool),
    first: GraphError,
    limits: &Limits,
) -> GraphError {
    let wanted = [(column, if as_text { Kind::Text } else { Kind::Integer })];
    let missing = missing(table, &wanted);
    if missing == 0 {
        return first;
    }
    let first = counted(first, table, missing, "each node needs one");
    let twice = || {
        let kept = Kept::with(table, &wanted).ok()?;
        let ids = load_ids(&kept, &[column], as_text, limits).ok()?.pop()?;
        let rows = IdIndex::of(&ids).err()?;
        Some(GraphError::format(table.path(), "ids", said_of_repeated(&ids, rows, &|row| kept.place(row))))
    };
    GraphError::several(std::iter::once(first).chain(twice()))
}

/// The table without rows whose id an earlier row has.
///
/// # Errors
///
/// If the table cannot be read.
pub fn firsts(table: Box<dyn Table>, id: usize, roles: &mut TableRoles) -> Result<Box<dyn Table>> {
    let (mut seen, mut lost) = (HashSet::new(), HashSet::new());
    table.scan(&[(id, Kind::Text)], &mut |row, _, cell| {
        if let Cell::Text(id) = cell
            && !seen.insert(id.to_owned())
        {
            lost.insert(row);
        }
        Ok(())
    })?;
    if lost.is_empty() {
        return Ok(table);
    }
    let what = format!("{} of {} rows have the id of an earlier one, left out", lost.len(), table.rows());
    roles.doubtful(Role::Rows, &[], what.clone(), what);
    Ok(Box::new(Kept::without(table, lost)))
}

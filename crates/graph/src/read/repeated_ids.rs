//! Nodes that have one id: what is said of them, and tables without the later ones.

use super::edge_rows::{Kept, distinct_of};
use super::table::{Cell, IdColumn, Kind, Table};
use crate::error::Result;
use crate::roles::{Role, TableRoles};
use std::collections::HashSet;

/// What is said of ids of which some are those of several rows, the first of these.
pub fn said(ids: &IdColumn, (first, row): (u32, usize), id: &dyn std::fmt::Display) -> String {
    let (all, count) = (ids.len(), ids.len() - distinct_of(ids).len());
    format!(
        "rows {first} and {row} have the same id '{id}': {count} of {all} rows repeat one; --duplicates first \
         (data.duplicates) keeps the first row of each node, and of each edge"
    )
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

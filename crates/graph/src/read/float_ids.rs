//! Ids that were floating-point numbers before they were written: beyond some bound several of them are one.

use super::column::{Cell, Kind, Table};
use crate::error::Result;
use crate::roles::{Role, TableRoles};

/// Warns where ids in these columns are so large that neighbouring whole numbers are the same number.
///
/// # Errors
///
/// If the table cannot be read.
pub fn warn_of_floats(table: &dyn Table, columns: &[usize], roles: &mut TableRoles) -> Result<()> {
    for &column in columns {
        let Some(bound) = table.exact_below(column).filter(|_| table.columns()[column].kind == Kind::Float) else {
            continue;
        };
        let (mut count, mut first) = (0, 0.0);
        table.scan(&[(column, Kind::Float)], &mut |_, _, cell| {
            if let Cell::Float(id) = cell
                && id.abs() >= bound
            {
                first = if count == 0 { id } else { first };
                count += 1;
            }
            Ok(())
        })?;
        if count > 0 {
            let name = table.columns()[column].name.as_str();
            let what = format!(
                "column '{name}': {count} ids of 2^{} and more are floating-point numbers, such as {first}, in which \
                 several whole numbers have become one (so DuckDB writes HUGEINT and sums): write the column as BIGINT \
                 or as texts, CAST({name} AS VARCHAR)",
                bound.log2()
            );
            roles.doubtful(Role::Ids, &[], format!("{name}: {count} ids are not exact"), what);
        }
    }
    Ok(())
}

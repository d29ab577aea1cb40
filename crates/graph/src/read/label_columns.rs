//! Which columns of a node table labels are in.

use super::table::{Kind, Table, find_column, usual_column};
use crate::error::{GraphError, Result};
use crate::roles::ranges;
use std::path::Path;

/// Names of a column of labels.
pub(super) const LABEL_NAMES: [&str; 4] = ["label", "y", "class", ":label"];
/// With this before its name a column says of one class who has it.
pub(super) const LABEL_PREFIX: &str = "label_";

/// The columns that labels are in.
pub(super) enum LabelColumns {
    None,
    One(usize),
    /// Several, and what their names begin with.
    Several(Vec<usize>, String),
}

impl LabelColumns {
    /// Whether there are any.
    pub fn is_some(&self) -> bool {
        !matches!(self, LabelColumns::None)
    }

    /// The column called `given`, or, where that ends in `*`, all whose names begin so; else a usual one, else all
    /// whose names begin with [`LABEL_PREFIX`], if they are at least two and whole numbers.
    pub fn find(
        (table, path): (&dyn Table, &Path),
        given: Option<&str>,
        is_free: &dyn Fn(&str) -> bool,
    ) -> Result<LabelColumns> {
        let beginning = |prefix: &str| -> Vec<usize> {
            let columns = table.columns().iter().enumerate().filter(|(_, column)| is_free(&column.name));
            columns.filter(|(_, column)| column.name.starts_with(prefix)).map(|(place, _)| place).collect()
        };
        if let Some(prefix) = given.and_then(|given| given.strip_suffix('*')) {
            let columns = beginning(prefix);
            if columns.is_empty() {
                return Err(among(table, path, &format!("columns whose names begin with '{prefix}'")));
            }
            return Ok(LabelColumns::Several(columns, prefix.to_owned()));
        }
        let one = match given {
            Some(_) => find_column(table, path, given, &LABEL_NAMES)?,
            None => usual_column(table, &LABEL_NAMES, is_free),
        };
        if let Some(column) = one {
            return Ok(LabelColumns::One(column));
        }
        let several = beginning(LABEL_PREFIX);
        if several.len() >= 2
            && several.iter().all(|&column| matches!(table.columns()[column].kind, Kind::Integer | Kind::Float))
        {
            return Ok(LabelColumns::Several(several, LABEL_PREFIX.to_owned()));
        }
        Ok(LabelColumns::None)
    }
}

fn among(table: &dyn Table, path: &Path, expected: &str) -> GraphError {
    let names: Vec<String> = table.columns().iter().map(|column| column.name.clone()).collect();
    GraphError::format(path, "header", format!("expected {expected} among: {}", ranges(&names)))
}

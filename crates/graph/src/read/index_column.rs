//! The column that pandas and R write before all others, where rows have names.

use super::column::{Kind, Table};

/// What pandas calls the names of rows in Parquet.
const LEVEL: &str = "__index_level_0__";

/// Whether a column is called as the one that pandas and R write unasked.
pub fn is_index_name(name: &str) -> bool {
    name.is_empty() || name.starts_with("Unnamed: ") || name.starts_with("__index_level_")
}

/// Whether the column at this place is called as the names of rows are. Where these are numbers, they say nothing of
/// nodes.
pub fn is_row_name(name: &str, place: usize) -> bool {
    name.starts_with("__index_level_") || place == 0 && (name.is_empty() || name == "Unnamed: 0")
}

/// Other names of the column that the user gives as pandas shows it.
pub fn aliases(given: &str) -> &'static [&'static str] {
    if is_index_name(given) || given == "index" { &["", "Unnamed: 0", LEVEL] } else { &[] }
}

/// The names of rows, where they are the ids: texts, or numbers of Parquet beside which nothing else is called an id.
/// Numbers in text may as well count the rows.
pub fn index_column(table: &dyn Table, is_free: &dyn Fn(&str) -> bool) -> Option<usize> {
    let columns = table.columns();
    let mut found = (0..columns.len()).filter(|&column| is_index_name(&columns[column].name));
    let (column, None) = (found.next()?, found.next()) else { return None };
    let is_other_id = |name: &str| name.to_lowercase().ends_with("id");
    let is_it = match columns[column].kind {
        Kind::Text => true,
        Kind::Integer => columns[column].name == LEVEL && !columns.iter().any(|other| is_other_id(&other.name)),
        _ => false,
    };
    (is_it && is_free(&columns[column].name)).then_some(column)
}

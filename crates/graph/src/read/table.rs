//! Tables of named columns, whatever file they are in.

use super::delta::refuse_piece;
use super::index_column::aliases;
use super::numbers::shorten;
use super::written::is_rounded_id;
use super::{extension, parquet_table::ParquetTable, table_folder::TableFolder, text_table::TextTable};
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::memory::{Growth, afford};
use std::ops::Range;
use std::path::Path;

pub use super::column::{Cell, ColumnInfo, Kind, Sink, Table};
pub use super::heading::Heading;

/// Opens a table, text or Parquet by its extension or a folder of such files, and looks at all of it once to learn the
/// columns' kinds.
///
/// # Errors
///
/// If the file is no such table, larger than the limits allow, or may have a header and may have none.
pub fn open_table(path: &Path, limits: &Limits, heading: &Heading) -> Result<Box<dyn Table>> {
    if path.is_dir() {
        return Ok(Box::new(TableFolder::open(path, limits, heading)?));
    }
    refuse_piece(path)?;
    if extension(path) == "parquet" {
        Ok(Box::new(ParquetTable::open(path, limits)?))
    } else {
        Ok(Box::new(TextTable::open(path, limits, heading)?))
    }
}

/// The column called `given`, which must be there, or else one of the `usual` names.
///
/// # Errors
///
/// If the column `given` is not there; the message lists those that are.
pub fn find_column(table: &dyn Table, path: &Path, given: Option<&str>, usual: &[&str]) -> Result<Option<usize>> {
    match given {
        Some(name) => place(table, name).map(Some).ok_or_else(|| {
            let names: Vec<String> = (0..table.columns().len()).map(|column| called(table, column)).collect();
            GraphError::format(path, "header", format!("expected a column '{name}' among: {}", names.join(", ")))
        }),
        None => Ok(usual_column(table, usual, &|_| true)),
    }
}

/// The column of this name, or `column 5` the fifth, or `NAME.2` the second of two columns of one name (`NAME.1` for
/// pandas).
fn place(table: &dyn Table, name: &str) -> Option<usize> {
    let columns = table.columns();
    let by_place = || {
        let number: usize = name.strip_prefix("column ")?.parse().ok()?;
        number.checked_sub(1).filter(|&place| place < columns.len())
    };
    let by_number = || {
        let (stem, _) = name.rsplit_once('.').filter(|(_, number)| ["1", "2"].contains(number))?;
        let mut same = columns.iter().enumerate().filter(|(_, column)| column.name == stem).map(|(place, _)| place);
        let (_, second) = (same.next()?, same.next()?);
        // Of three pandas calls the last one so.
        same.next().is_none().then_some(second)
    };
    let is = |name: &str| columns.iter().position(|column| column.name == name);
    let alias = || aliases(name).iter().find_map(|name| is(name));
    is(name).or_else(alias).or_else(by_place).or_else(by_number)
}

/// What a column is to be called so that it alone is meant.
pub fn called(table: &dyn Table, column: usize) -> String {
    let columns = table.columns();
    let name = &columns[column].name;
    let by_place = || format!("column {}", column + 1);
    let is_first = !name.is_empty() && columns[..column].iter().all(|earlier| earlier.name != *name);
    let second = format!("{name}.2");
    if is_first {
        name.clone()
    } else if !name.is_empty() && place(table, &second) == Some(column) {
        second
    } else {
        by_place()
    }
}

/// The first column of one of the `usual` names, in the order of these, among those that are free.
pub fn usual_column(table: &dyn Table, usual: &[&str], is_free: &dyn Fn(&str) -> bool) -> Option<usize> {
    let is = |column: &ColumnInfo, name: &str| column.name.to_lowercase() == name && is_free(&column.name);
    usual.iter().find_map(|name| table.columns().iter().position(|column| is(column, name)))
}

/// Node ids as a table has them.
#[derive(Debug, Clone, PartialEq)]
pub enum IdColumn {
    /// All of them integers.
    Integers(Vec<i64>),
    /// Some of them not.
    Texts(Texts),
}

impl IdColumn {
    /// How many ids there are.
    pub fn len(&self) -> usize {
        match self {
            IdColumn::Integers(ids) => ids.len(),
            IdColumn::Texts(ids) => ids.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Many texts in one piece of memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Texts {
    bytes: String,
    /// The lower half of where each text ends, since a list of edges has very many.
    ends: Vec<u32>,
    /// The first text behind each 4 GiB.
    wraps: Vec<usize>,
}

impl Texts {
    /// Appends a text.
    pub fn push(&mut self, text: &str) {
        let before = self.bytes.len();
        self.bytes.push_str(text);
        let wraps = (self.bytes.len() >> 32) - (before >> 32);
        self.wraps.extend(std::iter::repeat_n(self.ends.len(), wraps));
        self.ends.push(self.bytes.len() as u32);
    }

    /// Takes all texts out; the memory stays for others.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.wraps.clear();
    }

    /// Where the text of this row ends.
    fn end(&self, row: usize) -> usize {
        let wraps = if self.wraps.is_empty() { 0 } else { self.wraps.partition_point(|&first| first <= row) };
        wraps << 32 | self.ends[row] as usize
    }

    fn range(&self, row: usize) -> Range<usize> {
        let start = if row == 0 { 0 } else { self.end(row - 1) };
        start..self.end(row)
    }

    /// The text of this row, which is there.
    pub fn get(&self, row: usize) -> &str {
        &self.bytes[self.range(row)]
    }

    /// Its bytes, of which none is looked at: to see that a text begins and ends with a letter takes a read of each.
    pub fn get_bytes(&self, row: usize) -> &[u8] {
        &self.bytes.as_bytes()[self.range(row)]
    }

    /// The bytes of all of them together.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|row| self.get(row))
    }
}

/// Scans the table as [`Table::scan`] does, to the end whatever `sink` refuses: the error is that of the first cell
/// which it refused, and says how many these are.
pub fn scan_all(table: &dyn Table, wanted: &[(usize, Kind)], sink: Sink) -> Result<()> {
    let (mut first, mut count) = (None, 0usize);
    table.scan(wanted, &mut |row, slot, cell| {
        if let Err(what) = sink(row, slot, cell) {
            count += 1;
            first.get_or_insert((row, slot, what));
        }
        Ok(())
    })?;
    let Some((row, slot, what)) = first else { return Ok(()) };
    // Only the table itself can say where in its file that is.
    table.scan(wanted, &mut |at, of, _| match (at, of) == (row, slot) {
        true if count > 1 => Err(format!("{what}; {count} such cells in {} rows", table.rows())),
        true => Err(what.clone()),
        false => Ok(()),
    })
}

/// Loads columns of node ids, all as integers or, where `as_text`, all as texts.
///
/// # Errors
///
/// If a value is missing, not of the kind, or longer than the limits allow, or there is no memory for all of them.
pub fn load_ids(table: &dyn Table, columns: &[usize], as_text: bool, limits: &Limits) -> Result<Vec<IdColumn>> {
    let kind = if as_text { Kind::Text } else { Kind::Integer };
    let empty = if as_text { IdColumn::Texts(Texts::default()) } else { IdColumn::Integers(Vec::new()) };
    let mut loaded = vec![empty; columns.len()];
    let wanted: Vec<_> = columns.iter().map(|&column| (column, kind)).collect();
    let refuse = |what: String| GraphError::format(table.path(), "ids", format!("what they unpack to {what}"));
    afford((table.rows() * columns.len()) as u64 * size_of::<i64>() as u64).map_err(refuse)?;
    let are_floats: Vec<bool> = columns.iter().map(|&column| table.columns()[column].kind == Kind::Float).collect();
    let (mut bytes, mut growth) = (0, Growth::new());
    table.scan(&wanted, &mut |_, slot, cell| {
        if let Cell::Text(id) = cell {
            bytes += id.len() as u64;
            growth.to(bytes).map_err(|what| format!("what it unpacks to {what}"))?;
        }
        match (&mut loaded[slot], cell) {
            (IdColumn::Integers(ids), Cell::Integer(id)) => ids.push(id),
            (IdColumn::Texts(_), Cell::Text(id)) if are_floats[slot] && is_rounded_id(id) => {
                return Err(format!(
                    "found the id '{}', which has lost digits as a floating-point number: write ids as whole numbers \
                     (in pandas astype(\"int64\"), in R format(x, scientific = FALSE)) or as texts (in Excel)",
                    shorten(id)
                ));
            }
            (IdColumn::Texts(ids), Cell::Text(id)) if id.len() as u64 <= limits.string_bytes_max => ids.push(id),
            (IdColumn::Texts(_), Cell::Text(_)) => {
                return Err(format!("an id of more than {} bytes", limits.string_bytes_max));
            }
            _ => return Err("expected a node id".to_owned()),
        }
        Ok(())
    })?;
    Ok(loaded)
}

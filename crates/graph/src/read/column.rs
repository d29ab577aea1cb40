//! What a table of named columns is, and what the readers of text and of Parquet both make their tables of.

use crate::error::Result;
use std::path::Path;

/// What all values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Integers, or booleans as 0 and 1.
    Integer,
    /// Numbers, not all of them whole.
    Float,
    /// Anything, as text.
    Text,
    /// Days since 1970-01-01, in a type that says so.
    Date,
    /// Lists of numbers.
    List,
    /// Values that are not read, and what they are.
    Unread(&'static str),
    /// Numbers that are not read, and what they are: to leave them out would lose features.
    Refused(&'static str),
}

/// A column's name and kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnInfo {
    /// The name in the header; `column 1`, `column 2`, … without a header.
    pub name: String,
    /// The narrowest kind that holds all values.
    pub kind: Kind,
}

/// One value of a table, of the kind that was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// There is no value.
    Missing,
    /// A value of [`Kind::Integer`].
    Integer(i64),
    /// A value of [`Kind::Float`] or [`Kind::Date`].
    Float(f64),
    /// A value of [`Kind::Text`].
    Text(&'a str),
    /// A value of [`Kind::List`]; what is missing in it is NaN.
    List(&'a [f64]),
}

/// A table on disk.
pub trait Table: Sync {
    /// The file.
    fn path(&self) -> &Path;

    /// The columns in the order of the file.
    fn columns(&self) -> &[ColumnInfo];

    /// Whether the columns' names come from the file.
    fn has_header(&self) -> bool;

    /// The number of rows.
    fn rows(&self) -> usize;

    /// The most rows of which [`Table::scan`] gives one column before it gives the next.
    fn rows_at_once(&self) -> usize {
        1
    }

    /// Below which number floating-point numbers of a column say which whole number they are; nothing where all do.
    fn exact_below(&self, _column: usize) -> Option<f64> {
        None
    }

    /// Whether all values of a column of numbers are digits alone, perhaps behind a plus, as telephone numbers and long
    /// ids are: numbers by chance.
    fn are_digits(&self, _column: usize) -> bool {
        false
    }

    /// Whether all numbers of a column with a point have three digits behind it and one to three before, and all others
    /// are below 1,000, some of three digits: thousands as Germans write them, or fractions.
    fn may_be_thousands(&self, _column: usize) -> bool {
        false
    }

    /// Calls `sink(row, i, cell)` once for every row and every `wanted[i]`, a column and the kind to give its values
    /// in: the column's own, [`Kind::Float`] for integers and dates, or, but for lists, [`Kind::Text`]. Rows ascend
    /// within each column; which column comes first is up to the file. An error of the sink, saying what was expected,
    /// is given the place of the cell.
    fn scan(&self, wanted: &[(usize, Kind)], sink: Sink) -> Result<()>;

    /// How many rows each of the pieces has that [`Table::scan_piece`] gives: together all rows, in their order.
    fn pieces(&self) -> Vec<usize> {
        vec![self.rows()]
    }

    /// As [`Table::scan`], for the rows of one piece, which count from 0. Several threads may read a piece each.
    fn scan_piece(&self, _piece: usize, wanted: &[(usize, Kind)], sink: Sink) -> Result<()> {
        self.scan(wanted, sink)
    }
}

/// What takes the cells of [`Table::scan`].
pub type Sink<'a> = &'a mut dyn FnMut(usize, usize, Cell) -> std::result::Result<(), String>;

//! Tables in text: CSV, TSV, and columns separated by spaces.
//!
//! What stands between fields [`detect`] finds out: tab, comma, semicolon, bar, space or two colons; a dict at the end
//! of each row, as NetworkX writes it, is a column for each of its names. Whether the first line is a header
//! [`Heading`] decides. Lines that start with `#` or `%` are comments where they stand before all others; below, and
//! where a first line such as `#1,#2` has the fields of a row, they are rows, because names such as `#1` are common and
//! no row may get lost. A header may begin with `#`, too. Text is read twice: first to learn the columns' kinds, then
//! into them, so that nothing is kept as text that is a number and no integer is called `7` that was written `007`.

use super::attributes::{self, attribute_names};
use super::column::{Cell, ColumnInfo, Kind, Sink, Table};
use super::heading::{Heading, is_word};
use super::numbers::shorten;
use super::separator::{Found, Separator, detect};
use super::text::{open_text, other_encoding};
use super::words::{is_missing, is_no_number};
use super::written::amount;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use std::cell::Cell as Shared;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A table in a text file.
pub struct TextTable {
    path: PathBuf,
    limits: Limits,
    separator: Separator,
    /// What an edge has behind its ends, name by name, where each row ends in a dict.
    attributes: Option<Vec<String>>,
    /// How many lines of comments stand before the header or the first row.
    comments: u64,
    /// Whether the header has no name for the first column, as R writes it.
    is_short: bool,
    header: bool,
    columns: Vec<ColumnInfo>,
    /// For each column whether it holds nothing but digits.
    digits: Vec<bool>,
    /// For each column whether points may stand for thousands.
    thousands: Vec<bool>,
    rows: usize,
}

/// More columns than any table of nodes or edges has.
const COLUMNS_MAX: usize = 1 << 20;

/// So many rows are compared with the first line, in tables of so few columns.
const COMPARED: usize = 100_000;
const COMPARED_COLUMNS: usize = 64;

/// Whether the first line has such a field.
fn holds(first: &[String], field: &str) -> bool {
    first.len() <= COMPARED_COLUMNS && first.iter().any(|other| other == field)
}

impl TextTable {
    /// Opens the file and goes through it once.
    pub fn open(path: &Path, limits: &Limits, heading: &Heading) -> Result<TextTable> {
        let Found { separator, comments, has_attributes, is_short } = detect(path, limits)?;
        let attributes = has_attributes.then(|| attribute_names(path, limits, comments)).transpose()?;
        let (path, limits) = (path.to_owned(), limits.clone());
        let mut table = TextTable {
            path,
            limits,
            separator,
            attributes,
            comments,
            is_short,
            header: false,
            columns: Vec::new(),
            digits: Vec::new(),
            thousands: Vec::new(),
            rows: 0,
        };
        let mut kinds: Vec<Seen> = Vec::new();
        let mut first: Vec<String> = Vec::new();
        let (mut rows, mut recurs) = (0, false);
        table.each_record(|number, fields| {
            if number == 0 {
                kinds = fields.iter().map(|_| Seen::default()).collect();
                first = fields.iter().map(|&field| field.to_owned()).collect();
                return Ok(());
            }
            rows += 1;
            recurs = recurs || rows < COMPARED && fields.iter().any(|field| is_word(field) && holds(&first, field));
            fields.iter().zip(&mut kinds).for_each(|(field, seen)| seen.look(field));
            Ok(())
        })?;
        if let Some(name) = first.first() {
            let plain = name.trim_start_matches('#').trim_start();
            let below: Vec<Kind> = kinds.iter().map(Seen::kind).collect();
            let names: Vec<String> = [plain.to_owned()].into_iter().chain(first.iter().skip(1).cloned()).collect();
            let place = || format!("line {}", table.comments + 1);
            // Who writes dicts writes no names.
            let decided = if table.attributes.is_some() { Ok(false) } else { heading.decide(&names, &below, recurs) };
            table.header = decided.map_err(|what| {
                let found = shorten(&first.join(&separator.text()));
                GraphError::format(&table.path, place(), format!("found '{found}': {what}"))
            })?;
            if table.header {
                first = names;
            } else {
                rows += 1;
                first.iter().zip(&mut kinds).for_each(|(field, seen)| seen.look(field));
                first = (1..=kinds.len()).map(|number| format!("column {number}")).collect();
                let attributes = table.attributes.iter().flatten();
                let start = first.len() - attributes.clone().count();
                first[start..].iter_mut().zip(attributes).for_each(|(column, name)| column.clone_from(name));
            }
        }
        table.rows = rows;
        table.digits = kinds.iter().map(|seen| seen.any && !seen.not_digits).collect();
        table.thousands = kinds.iter().map(Seen::may_be_thousands).collect();
        table.columns =
            first.into_iter().zip(&kinds).map(|(name, seen)| ColumnInfo { name, kind: seen.kind() }).collect();
        Ok(table)
    }

    /// Reads records, from the first line behind the comments on.
    fn reader(&self, row: &Rc<Shared<u64>>) -> Result<csv::Reader<LimitedRows>> {
        let bytes = std::fs::metadata(&self.path).map_err(|e| GraphError::io(&self.path, e))?.len();
        let mut from = open_text(&self.path, &self.limits)?;
        for _ in 0..self.comments {
            from.skip_until(b'\n').map_err(|e| GraphError::io(&self.path, e))?;
        }
        let from = self.separator.plain(from);
        let text = LimitedRows { from, row: row.clone(), row_max: self.limits.line_max(bytes) };
        let is_quoted = self.separator != Separator::Colons && self.attributes.is_none();
        Ok(csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(self.separator.sign())
            .quoting(is_quoted)
            .trim(csv::Trim::All)
            .from_reader(text))
    }

    /// Calls `each(record, fields)` for the header and every row; all must have as many fields as the first. An error,
    /// saying what was expected, gets the number of the line.
    fn each_record(&self, mut each: impl FnMut(usize, &[&str]) -> std::result::Result<(), String>) -> Result<()> {
        let row = Rc::new(Shared::new(0));
        let mut reader = self.reader(&row)?;
        let mut record = csv::ByteRecord::new();
        let mut width = None;
        let mut first_of_file = String::new();
        let mut number = 0;
        loop {
            row.set(0);
            let line = reader.position().line() + self.comments;
            let error = |what: String| GraphError::format(&self.path, format!("line {line}"), what);
            if !reader.read_byte_record(&mut record).map_err(|e| error(e.to_string()))? {
                return Ok(());
            }
            let line = record.position().map_or(line, |position| position.line() + self.comments);
            let error = |what: String| GraphError::format(&self.path, format!("line {line}"), what);
            // Several spaces are one separator; a single empty field is an empty line.
            let spaces = self.separator == Separator::Sign(b' ');
            let fields = record.iter().filter(|field| !spaces || !field.is_empty()).map(std::str::from_utf8);
            let mut fields: Vec<&str> =
                fields.collect::<std::result::Result<_, _>>().map_err(|_| error(other_encoding(record.as_slice())))?;
            if number == 0
                && let Some(first) = fields.first_mut()
            {
                *first = first.trim_start_matches('\u{feff}');
            }
            if fields.is_empty() || fields == [""] && width != Some(1) {
                continue;
            }
            if number == 0 && self.is_short {
                fields.insert(0, "");
            }
            if number == 0 {
                first_of_file = fields[0].to_owned();
            } else if fields[0] == "#" && fields.len() == 2 && spaces && !self.header {
                return Err(error(LGL.to_owned()));
            }
            let values = self.attribute_values(&mut fields).map_err(error)?;
            fields.extend(values.iter().map(String::as_str));
            let expected = *width.get_or_insert(fields.len());
            if fields.len() != expected {
                let named = number == 1 && fields.len() == expected + 1;
                let hint = self.hint(fields[0], (named, first_of_file.as_str() == "p"));
                return Err(error(format!("expected {expected} fields, found {}{hint}", fields.len())));
            }
            if expected > COLUMNS_MAX {
                return Err(error(format!("expected at most {COLUMNS_MAX} fields, found {expected}")));
            }
            if number as u64 > self.limits.edges_max {
                return Err(GraphError::too_large(&self.path, "rows", self.limits.edges_max));
            }
            each(number, &fields).map_err(error)?;
            number += 1;
        }
    }
}

impl TextTable {
    /// Takes the dict at the end of a row, where there is one, from its fields: its values in the order of names.
    fn attribute_values(&self, fields: &mut Vec<&str>) -> std::result::Result<Vec<String>, String> {
        let Some(names) = &self.attributes else { return Ok(Vec::new()) };
        let start = fields.iter().position(|field| field.starts_with('{')).unwrap_or(fields.len());
        let text = fields.split_off(start).join(&self.separator.text());
        let mut found = attributes::parse(&text).ok_or_else(|| {
            format!("expected a dict as Python writes it behind the ends, found '{}'", shorten(&text))
        })?;
        Ok(names.iter().map(|name| found.remove(name).unwrap_or_default()).collect())
    }
}

impl TextTable {
    /// What a row of another number of fields may be; `named` where one more stands before the first row.
    fn hint(&self, first: &str, (named, is_networkit): (bool, bool)) -> &'static str {
        if first.starts_with(['#', '%']) {
            "; comments are read before the first row only"
        } else if named {
            "; is the first one the name of the row, which has none in the header? In R write.table(…, row.names = \
             FALSE) leaves it out, and col.names = NA gives it one"
        } else if is_networkit {
            "; NetworKit's SNAP format begins so: networkit.writeGraph(G, FILE, networkit.Format.EdgeListTabZero) \
             writes a list of edges"
        } else if self.separator == Separator::Sign(b' ') {
            "; in a list of edges all rows have as many fields, and one without a weight gets 1. If these are lists of \
             neighbours, in Python networkx.write_edgelist(networkx.read_adjlist(FILE, \
             create_using=networkx.DiGraph), \"graph.txt\", data=False) writes a list of edges"
        } else {
            ""
        }
    }
}

impl Table for TextTable {
    fn path(&self) -> &Path {
        &self.path
    }

    fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    fn has_header(&self) -> bool {
        self.header
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn are_digits(&self, column: usize) -> bool {
        self.digits[column]
    }

    fn may_be_thousands(&self, column: usize) -> bool {
        self.thousands[column]
    }

    fn scan(&self, wanted: &[(usize, Kind)], sink: Sink) -> Result<()> {
        let header = usize::from(self.header);
        let mut rows = 0;
        self.each_record(|record, fields| {
            let Some(row) = record.checked_sub(header) else { return Ok(()) };
            rows = row + 1;
            if rows > self.rows || fields.len() != self.columns.len() {
                return Err("the file changed while it was read".to_owned());
            }
            for (slot, &(column, kind)) in wanted.iter().enumerate() {
                let cell = parse(fields[column], kind).ok_or_else(|| {
                    let (name, found) = (&self.columns[column].name, shorten(fields[column]));
                    let is_amount = [false, true].iter().any(|&comma| amount(fields[column], comma).is_some());
                    let plainly = "; write numbers without signs and separators, as 1234.5 (in pandas, read_csv(…, \
                                   thousands=\",\") or decimal=\",\" reads such)";
                    format!(
                        "column '{name}': expected {}, found '{found}'{}",
                        if kind == Kind::Integer { "an integer" } else { "a number" },
                        if is_amount { plainly } else { "" }
                    )
                })?;
                sink(row, slot, cell).map_err(|what| format!("column '{}': {what}", self.columns[column].name))?;
            }
            Ok(())
        })?;
        if rows == self.rows {
            Ok(())
        } else {
            Err(GraphError::format(&self.path, "end", "the file changed while it was read"))
        }
    }
}

const LGL: &str = "a lone # before a name, as in igraph's lists of neighbours (lgl): \
                   igraph.Graph.Read_Lgl(FILE).write_ncol(\"graph.txt\") writes a list of edges";

fn parse(field: &str, kind: Kind) -> Option<Cell<'_>> {
    if field.is_empty() {
        return Some(Cell::Missing);
    }
    match kind {
        Kind::Text => Some(Cell::Text(field)),
        _ if is_missing(field) || is_no_number(field) => Some(Cell::Missing),
        Kind::Integer => whole(field).or_else(|| boolean(field).map(i64::from)).map(Cell::Integer),
        Kind::Float => match field.parse() {
            Ok(value) => Some(Cell::Float(value)),
            Err(_) => boolean(field).map(|value| Cell::Float(f64::from(u8::from(value)))),
        },
        Kind::Date | Kind::List | Kind::Unread(_) | Kind::Refused(_) => None,
    }
}

/// Whether a cell holds a number.
pub(super) fn is_number(field: &str) -> bool {
    matches!(parse(field, Kind::Float), Some(Cell::Float(_)))
}

/// An integer in its one plain spelling.
fn integer(field: &str) -> Option<i64> {
    let digits = field.strip_prefix('-').unwrap_or(field).as_bytes();
    let plain = digits.first().is_some_and(u8::is_ascii_digit) && (digits[0] != b'0' || field.len() == 1);
    if plain { field.parse().ok() } else { None }
}

/// An integer, or one that was a floating-point number for a while: pandas writes `7.0` where some row had none.
fn whole(field: &str) -> Option<i64> {
    const EXACT: i64 = 1 << 53;
    let short = |field: &str| integer(field).filter(|number| (-EXACT..EXACT).contains(number));
    integer(field).or_else(|| field.strip_suffix(".0").and_then(short))
}

fn are_digits(field: &str) -> bool {
    let digits = field.strip_prefix('+').unwrap_or(field);
    !digits.is_empty() && digits.bytes().all(|sign| sign.is_ascii_digit())
}

fn boolean(field: &str) -> Option<bool> {
    match field {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// What the values of a column could not be.
#[derive(Default)]
struct Seen {
    any: bool,
    not_integer: bool,
    not_whole: bool,
    not_boolean: bool,
    not_float: bool,
    not_digits: bool,
    not_thousands: bool,
    /// Whether there are numbers of three digits without a point, and numbers with one.
    points: [bool; 2],
}

impl Seen {
    fn look(&mut self, field: &str) {
        if is_missing(field) || is_no_number(field) {
            return;
        }
        self.any = true;
        self.not_integer = self.not_integer || integer(field).is_none();
        self.not_whole = self.not_whole || self.not_integer && whole(field).is_none();
        self.not_boolean = self.not_boolean || boolean(field).is_none();
        // An integer is a number; parsing it again would take most of the time.
        self.not_digits = self.not_digits || self.not_integer && !are_digits(field);
        self.not_float = self.not_float || self.not_integer && field.parse::<f64>().is_err();
        if !self.not_thousands {
            let plain = field.strip_prefix('-').unwrap_or(field);
            let (whole, fraction) = plain.split_once('.').map_or((plain, None), |(whole, rest)| (whole, Some(rest)));
            self.points[0] |= fraction.is_none() && whole.len() == 3;
            self.points[1] |= fraction.is_some();
            let is_short = whole.len() <= 3 && (fraction.is_none() || !whole.starts_with('0'));
            self.not_thousands = !is_short || fraction.is_some_and(|rest| rest.len() != 3);
        }
    }

    /// Points before three digits, in some numbers and not in others, which are smaller than 1,000.
    fn may_be_thousands(&self) -> bool {
        !self.not_thousands && self.points == [true; 2] && self.kind() == Kind::Float
    }

    fn kind(&self) -> Kind {
        match self {
            Seen { any: false, .. } => Kind::Text,
            Seen { not_whole: false, .. } | Seen { not_boolean: false, .. } => Kind::Integer,
            Seen { not_float: false, .. } => Kind::Float,
            _ => Kind::Text,
        }
    }
}

/// Fails when a row gets longer than is allowed, so that a packed file cannot unpack into one endless field.
struct LimitedRows {
    from: Box<dyn std::io::Read>,
    /// Bytes read since whoever reads rows set it to 0.
    row: Rc<Shared<u64>>,
    row_max: u64,
}

impl std::io::Read for LimitedRows {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.from.read(into)?;
        self.row.set(self.row.get() + count as u64);
        if self.row.get() > self.row_max {
            return Err(std::io::Error::other(format!("a row is longer than {} bytes", self.row_max)));
        }
        Ok(count)
    }
}

//! One table in the files of a folder, Parquet or text.
//!
//! Columns are matched by their names, numbers are widened where files differ, and a column that all rows of a file
//! have in common may stand in the names of folders or in the log of the table alone.

use super::column::{Cell, ColumnInfo, Kind, Sink, Table};
use super::heading::{Header, Heading};
use super::parquet_table::ParquetTable;
use super::part_files::PartFile;
use super::parts::parts;
use super::text_table::TextTable;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use std::path::{Path, PathBuf};

/// A table in several files.
pub struct TableFolder {
    path: PathBuf,
    limits: Limits,
    columns: Vec<ColumnInfo>,
    has_header: bool,
    parts: Vec<Part>,
    rows: usize,
}

/// One of the files.
struct Part {
    file: PartFile,
    rows: usize,
    rows_at_once: usize,
    /// Where the values of each column of the folder are.
    places: Vec<Place>,
    /// The file; among many it is opened again whenever it is read.
    table: Option<Box<dyn Table>>,
}

/// Where the values of a column are.
#[derive(Debug, Clone, PartialEq)]
enum Place {
    /// In this column of the file.
    Column(usize),
    /// All of them are this one.
    Given(String),
    /// There are none.
    Nowhere,
}

/// So many files stay open.
const OPEN_MAX: usize = 128;

impl TableFolder {
    /// Opens all files and learns their columns.
    pub fn open(path: &Path, limits: &Limits, heading: &Heading) -> Result<TableFolder> {
        let found = parts(path, limits)?;
        let tables = match found.parquet {
            true => parquet(&found.files, limits)?,
            false => texts(&found.files, limits, heading)?,
        };
        let mut folder = TableFolder {
            path: path.to_owned(),
            limits: limits.clone(),
            columns: Vec::new(),
            has_header: tables.first().is_none_or(|part| part.table.as_ref().is_none_or(|table| table.has_header())),
            parts: tables,
            rows: 0,
        };
        folder.join(found.columns)?;
        folder.rows = folder.parts.iter().map(|part| part.rows).fold(0, usize::saturating_add);
        match folder.rows as u64 > limits.edges_max {
            true => Err(GraphError::too_large(path, "rows", limits.edges_max)),
            false => Ok(folder),
        }
    }

    /// Finds each column in each file, and what all files have in common. The names of a log come first.
    fn join(&mut self, of_log: Option<Vec<String>>) -> Result<()> {
        let names =
            |part: &Part| -> Result<Vec<ColumnInfo>> { Ok(self.table(part)?.with(|table| table.columns().to_vec())) };
        let all: Vec<Vec<ColumnInfo>> = self.parts.iter().map(names).collect::<Result<_>>()?;
        let by_log = of_log.is_some();
        let mut wanted = of_log.unwrap_or_default();
        if let (Some(first), false) = (all.first(), by_log) {
            wanted = first.iter().map(|column| column.name.clone()).collect();
            let given = self.parts[0].file.given.iter().map(|(name, _)| name.clone());
            wanted.extend(given.filter(|name| !first.iter().any(|column| column.name == *name)));
        }
        for (number, columns) in all.iter().enumerate() {
            let places = places(&wanted, columns, &self.parts[number].file.given);
            if !by_log {
                self.refuse_other(number, (&wanted, columns), &places)?;
            }
            self.parts[number].places = places;
        }
        for (column, name) in wanted.into_iter().enumerate() {
            let kind = self.kind(column, &name, &all)?;
            self.columns.push(ColumnInfo { name, kind });
        }
        Ok(())
    }

    /// The error about a file whose columns are not those of the first one.
    fn refuse_other(&self, number: usize, (wanted, found): (&[String], &[ColumnInfo]), places: &[Place]) -> Result<()> {
        let [first, file] = [0, number].map(|number| self.parts[number].file.path.as_path());
        let error = |what: String| Err(GraphError::format(file, "columns", what));
        if let Some(missing) = places.iter().position(|place| *place == Place::Nowhere) {
            let is_given = self.parts[number].file.given.iter().any(|(name, _)| *name == wanted[missing]);
            return match is_given {
                true => Ok(()),
                false => error(format!("expected the column '{}', as in {}", wanted[missing], first.display())),
            };
        }
        let is_taken = |place: usize| places.contains(&Place::Column(place));
        match (0..found.len()).find(|&place| !is_taken(place)) {
            Some(more) => error(format!("the column '{}' is not in {}", found[more].name, first.display())),
            None => Ok(()),
        }
    }

    /// What the values of a column are in all files together.
    fn kind(&self, column: usize, name: &str, all: &[Vec<ColumnInfo>]) -> Result<Kind> {
        let mut seen: Option<(Kind, usize)> = None;
        for (number, part) in self.parts.iter().enumerate() {
            let found = match &part.places[column] {
                Place::Column(place) => all[number][*place].kind,
                Place::Given(value) => given_kind(value),
                Place::Nowhere => continue,
            };
            let Some((kind, first)) = seen else {
                seen = Some((found, number));
                continue;
            };
            if kind == found {
                continue;
            }
            seen = Some(match (kind, found) {
                (Kind::Integer, Kind::Float) | (Kind::Float, Kind::Integer) => (Kind::Float, first),
                // A column without values is of any kind.
                _ if self.reads_as(part, column, kind) => (kind, first),
                _ if self.parts[..number].iter().all(|part| self.reads_as(part, column, found)) => (found, number),
                _ => {
                    let other = self.parts[first].file.path.display();
                    let what = format!(
                        "expected one kind of values, found {} here and {} in {other}: write both alike, or \
                         data.ignore = [\"{name}\"] (--ignore {name}) leaves the column out",
                        called(found),
                        called(kind)
                    );
                    return Err(GraphError::format(&part.file.path, format!("column '{name}'"), what));
                }
            });
        }
        Ok(seen.map_or(Kind::Text, |(kind, _)| kind))
    }

    /// Whether the values of a column of one file can be had in this kind.
    fn reads_as(&self, part: &Part, column: usize, kind: Kind) -> bool {
        let is_number = matches!(kind, Kind::Integer | Kind::Float);
        match &part.places[column] {
            Place::Nowhere => true,
            Place::Given(value) => kind == Kind::Text || is_number && given(value, kind).is_some(),
            Place::Column(place) => self.table(part).is_ok_and(|table| {
                let is_text = table.with(|table| table.columns()[*place].kind == Kind::Text);
                // Numbers may be texts in text files alone, where they keep their spelling.
                (kind != Kind::Text || is_text || part.table.is_some() && !is_parquet(part))
                    && table.with(|table| table.scan(&[(*place, kind)], &mut |_, _, _| Ok(())).is_ok())
            }),
        }
    }

    /// The rows of one file, which count from 0.
    fn scan_part(&self, part: &Part, wanted: &[(usize, Kind)], sink: Sink) -> Result<()> {
        let (mut slots, mut inside) = (Vec::new(), Vec::new());
        for (slot, &(column, kind)) in wanted.iter().enumerate() {
            let name = &self.columns[column].name;
            let error = |what: String| GraphError::format(&part.file.path, format!("column '{name}'"), what);
            let cell = match &part.places[column] {
                Place::Column(place) => {
                    slots.push(slot);
                    inside.push((*place, kind));
                    continue;
                }
                Place::Given(value) => {
                    given(value, kind).ok_or_else(|| error(format!("found '{value}' in the name of a folder")))?
                }
                Place::Nowhere => Cell::Missing,
            };
            (0..part.rows).try_for_each(|row| sink(row, slot, cell)).map_err(error)?;
        }
        if inside.is_empty() {
            return Ok(());
        }
        let table = self.table(part)?;
        let emit: Sink = &mut |row, slot, cell| sink(row, slots[slot], cell);
        table.with(|table| table.scan(&inside, emit))
    }

    /// The file of a part, opened where it is not.
    fn table<'a>(&self, part: &'a Part) -> Result<Opened<'a>> {
        match &part.table {
            Some(table) => Ok(Opened::Kept(&**table)),
            None => {
                let table = ParquetTable::open(&part.file.path, &self.limits)?;
                let is_other = table.rows() != part.rows;
                match is_other {
                    true => Err(GraphError::format(&part.file.path, "footer", "the file changed while it was read")),
                    false => Ok(Opened::Again(Box::new(table))),
                }
            }
        }
    }
}

/// A file that is open.
enum Opened<'a> {
    Kept(&'a dyn Table),
    Again(Box<ParquetTable>),
}

impl Opened<'_> {
    fn with<T>(&self, what: impl FnOnce(&dyn Table) -> T) -> T {
        match self {
            Opened::Kept(table) => what(*table),
            Opened::Again(table) => what(&**table),
        }
    }
}

fn is_parquet(part: &Part) -> bool {
    super::extension(&part.file.path) == "parquet"
}

fn part(file: &PartFile, table: Box<dyn Table>, is_kept: bool) -> Part {
    let (rows, rows_at_once) = (table.rows(), table.rows_at_once());
    Part { file: file.clone(), rows, rows_at_once, places: Vec::new(), table: is_kept.then_some(table) }
}

fn parquet(files: &[PartFile], limits: &Limits) -> Result<Vec<Part>> {
    let open = |file: &PartFile| {
        let table = ParquetTable::open(&file.path, limits)?;
        Ok(part(file, Box::new(table), files.len() <= OPEN_MAX))
    };
    files.iter().map(open).collect()
}

/// Text files; the largest says whether their first lines name the columns. Empty ones are no tables.
fn texts(files: &[PartFile], limits: &Limits, heading: &Heading) -> Result<Vec<Part>> {
    let bytes = |file: &&PartFile| file.path.metadata().map_or(0, |found| found.len());
    let Some(largest) = files.iter().max_by_key(bytes) else { return Ok(Vec::new()) };
    let largest = TextTable::open(&largest.path, limits, heading)?;
    let given = if largest.has_header() { Header::Yes } else { Header::No };
    let heading = Heading { given, ..*heading };
    let mut parts = Vec::new();
    for file in files {
        let table = TextTable::open(&file.path, limits, &heading)?;
        if !table.columns().is_empty() {
            parts.push(part(file, Box::new(table), true));
        }
    }
    Ok(parts)
}

/// Where each wanted column is among those of a file, of several of one name the first that is free.
fn places(wanted: &[String], columns: &[ColumnInfo], given: &[(String, Option<String>)]) -> Vec<Place> {
    let mut taken = vec![false; columns.len()];
    let place = |name: &String| {
        if let Some(place) = (0..columns.len()).find(|&place| !taken[place] && columns[place].name == *name) {
            taken[place] = true;
            return Place::Column(place);
        }
        match given.iter().find(|(given, _)| given == name) {
            Some((_, Some(value))) => Place::Given(value.clone()),
            _ => Place::Nowhere,
        }
    };
    wanted.iter().map(place).collect()
}

/// What a value in the name of a folder is.
fn given_kind(value: &str) -> Kind {
    match value.parse::<i64>() {
        Ok(number) if number.to_string() == value => Kind::Integer,
        _ if value.parse::<f64>().is_ok() => Kind::Float,
        _ => Kind::Text,
    }
}

/// Such a value in the kind that is asked for.
fn given(value: &str, kind: Kind) -> Option<Cell<'_>> {
    match kind {
        Kind::Integer => value.parse().ok().map(Cell::Integer),
        Kind::Float => value.parse().ok().map(Cell::Float),
        Kind::Text => Some(Cell::Text(value)),
        _ => None,
    }
}

fn called(kind: Kind) -> &'static str {
    match kind {
        Kind::Integer => "integers",
        Kind::Float => "numbers",
        Kind::Text => "texts",
        Kind::Date => "dates",
        Kind::List => "lists",
        Kind::Unread(what) | Kind::Refused(what) => what,
    }
}

impl Table for TableFolder {
    fn path(&self) -> &Path {
        &self.path
    }

    fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    fn has_header(&self) -> bool {
        self.has_header
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn exact_below(&self, column: usize) -> Option<f64> {
        let of_part = |part: &Part| match &part.places[column] {
            Place::Column(place) => self.table(part).ok()?.with(|table| table.exact_below(*place)),
            Place::Given(_) | Place::Nowhere => None,
        };
        self.parts.iter().filter_map(of_part).min_by(f64::total_cmp)
    }

    fn are_digits(&self, column: usize) -> bool {
        let of_part = |part: &Part| match &part.places[column] {
            Place::Column(place) => self.table(part).and_then(|table| table.with(|table| Ok(table.are_digits(*place)))),
            Place::Given(_) | Place::Nowhere => Ok(true),
        };
        self.parts.iter().all(|part| of_part(part).unwrap_or(false))
    }

    fn may_be_thousands(&self, column: usize) -> bool {
        let of_part = |part: &Part| match &part.places[column] {
            Place::Column(place) => self.table(part).and_then(|table| table.with(|of| Ok(of.may_be_thousands(*place)))),
            Place::Given(_) | Place::Nowhere => Ok(false),
        };
        self.parts.iter().any(|part| of_part(part).unwrap_or(false))
    }

    fn rows_at_once(&self) -> usize {
        self.parts.iter().map(|part| part.rows_at_once).max().unwrap_or(0)
    }

    fn scan(&self, wanted: &[(usize, Kind)], sink: Sink) -> Result<()> {
        let mut start = 0;
        for part in &self.parts {
            self.scan_part(part, wanted, &mut |row, slot, cell| sink(start + row, slot, cell))?;
            start += part.rows;
        }
        Ok(())
    }

    fn pieces(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.rows).collect()
    }

    fn scan_piece(&self, piece: usize, wanted: &[(usize, Kind)], sink: Sink) -> Result<()> {
        self.scan_part(&self.parts[piece], wanted, sink)
    }
}

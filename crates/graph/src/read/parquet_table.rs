//! Tables in Parquet files.
//!
//! Flat columns of booleans, numbers of any type, text, dates and times are read, lists of numbers, and vectors of
//! Spark's machine learning; other nested columns and other types are there, but [`Kind::Unread`] or
//! [`Kind::Refused`]. The `parquet` crate without Arrow reads the pages. What it would believe of a hostile file is
//! checked in [`Source`] and [`Guard`] before, and a panic in it becomes an error.

use super::arrow_schema::{KEY, durations};
use super::column::{Cell, ColumnInfo, Kind, Sink, Table};
use super::parquet_guard::{Guard, varint};
use super::parquet_kinds::{Meaning, is_plain, is_vector, kind_of, kind_of_several, may_be_large};
use super::parquet_values::{each, read_column, whole_below};
use super::parquet_vectors::read_vectors;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use bytes::Bytes;
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::ColumnDescPtr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A table in a Parquet file.
pub struct ParquetTable {
    path: PathBuf,
    reader: SerializedFileReader<Source>,
    columns: Vec<ColumnInfo>,
    /// The places of each of `columns` among the file's leaf columns.
    leaves: Vec<Range<usize>>,
    /// Of which columns a day has how many units, where that is noted beside their types.
    per_day: Vec<Option<f64>>,
    rows: usize,
    /// What the texts of one column may unpack to.
    text_max: u64,
}

/// A file may unpack to so many times its size, in rows, in a page, or in the texts of a column.
const UNPACKING_RATIO_MAX: u64 = 1024;

/// Whole numbers of 64 bits are below this.
const LONG: f64 = 9_223_372_036_854_775_808.0;

/// A page may unpack to so many bytes whatever its packed size.
const PAGE_FREE: u64 = 64 << 20;

/// The texts of a column may be so many bytes whatever the file's size: a dictionary repeats a text for nothing.
const TEXT_FREE: u64 = 64 << 20;

impl ParquetTable {
    /// Opens the file and reads its footer.
    pub fn open(path: &Path, limits: &Limits) -> Result<ParquetTable> {
        let file = super::arrays::open_limited(path, limits)?;
        let bytes = file.metadata().map_err(|e| GraphError::io(path, e))?.len();
        let error = |e: ParquetError| GraphError::format(path, "footer", format!("expected Parquet: {e}"));
        let reader = contained(path, || {
            SerializedFileReader::new(Source { file: Arc::new(Mutex::new(file)), bytes }).map_err(error)
        })?;
        let metadata = reader.metadata();
        let groups = metadata.row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
        let rows = groups.into_iter().try_fold(0u64, |sum, rows| sum.checked_add(rows?));
        let rows = rows.filter(|&rows| rows <= limits.edges_max);
        let rows = rows.ok_or_else(|| GraphError::too_large(path, "rows", limits.edges_max))?;
        if rows > bytes.saturating_mul(UNPACKING_RATIO_MAX) {
            return Err(GraphError::format(path, "footer", format!("{rows} rows do not fit {bytes} bytes")));
        }
        let schema = metadata.file_metadata().schema_descr();
        let (mut columns, mut leaves) = (Vec::<ColumnInfo>::new(), Vec::<Range<usize>>::new());
        for leaf in 0..schema.num_columns() {
            // A column of the table with several leaves has a struct in it; it is one column all the same.
            let root = schema.get_column_root_idx(leaf);
            match leaves.last_mut().filter(|of| schema.get_column_root_idx(of.start) == root) {
                Some(of) => of.end = leaf + 1,
                None => leaves.push(leaf..leaf + 1),
            }
        }
        let notes = metadata.file_metadata().key_value_metadata().into_iter().flatten();
        let note = notes.filter(|note| note.key == KEY).find_map(|note| note.value.as_deref());
        let durations = note.map(durations).unwrap_or_default();
        let mut per_day = Vec::new();
        for of in &leaves {
            let name = schema.get_column_root(of.start).name().to_owned();
            let found = durations.iter().find(|(duration, _)| *duration == name);
            let duration = found.filter(|_| of.len() == 1 && is_plain(&schema.column(of.start)));
            per_day.push(duration.map(|(_, per_day)| *per_day));
            let kind = match of.len() {
                1 if duration.is_some() => Kind::Date,
                1 => kind_of(&schema.column(of.start)),
                _ => kind_of_several(schema, of.clone()),
            };
            columns.push(ColumnInfo { name, kind });
        }
        let text_max = bytes.saturating_mul(UNPACKING_RATIO_MAX).max(TEXT_FREE);
        let mut table =
            ParquetTable { path: path.to_owned(), reader, columns, leaves, per_day, rows: rows as usize, text_max };
        contained(path, || table.look())?;
        Ok(table)
    }

    /// Looks at the values of those columns whose types do not say what they are.
    fn look(&mut self) -> Result<()> {
        for column in 0..self.columns.len() {
            let descr = self.descr(self.leaves[column].start);
            let kind = match self.columns[column].kind {
                Kind::Text if Meaning::of(&descr) == Meaning::Bytes && !self.are_texts(column)? => {
                    Kind::Unread("bytes that are no text")
                }
                // Numbers as features, and texts as ids.
                Kind::Integer if may_be_large(&descr) && !self.are_short(column)? => Kind::Float,
                kind => kind,
            };
            self.columns[column].kind = kind;
        }
        Ok(())
    }

    fn are_texts(&self, column: usize) -> Result<bool> {
        let mut are = true;
        for group in 0..self.reader.num_row_groups() {
            let (reader, descr) = self.chunk(group, self.leaves[column].start)?;
            let ColumnReader::ByteArrayColumnReader(reader) = reader else { continue };
            let looked = each(reader, &descr, |value| {
                are = are && value.is_none_or(|value| std::str::from_utf8(value.data()).is_ok());
                // There is no need to go on.
                if are { Ok(()) } else { Err(String::new()) }
            });
            if !are {
                return Ok(false);
            }
            looked.map_err(|what| self.error(column, what))?;
        }
        Ok(are)
    }

    /// Whether all values of a column of whole numbers fit 64 bits with a sign.
    fn are_short(&self, column: usize) -> Result<bool> {
        let mut are = true;
        for group in 0..self.reader.num_row_groups() {
            let (reader, descr) = self.chunk(group, self.leaves[column].start)?;
            let looked = read_column(reader, (&descr, Meaning::of(&descr)), Kind::Float, &mut |cell| {
                are = are && !matches!(cell, Cell::Float(value) if !(-LONG..LONG).contains(&value));
                if are { Ok(()) } else { Err(String::new()) }
            });
            if !are {
                return Ok(false);
            }
            looked.map_err(|what| self.error(column, what))?;
        }
        Ok(are)
    }

    fn descr(&self, leaf: usize) -> ColumnDescPtr {
        self.reader.metadata().file_metadata().schema_descr().column(leaf)
    }

    fn error(&self, column: usize, what: String) -> GraphError {
        GraphError::format(&self.path, format!("column '{}'", self.columns[column].name), what)
    }

    /// The leaf of this path, in which `*` stands for any name.
    pub fn leaf(&self, path: &str) -> Option<usize> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let is_it = |parts: &[String]| {
            let mut wanted = path.split('.');
            parts.iter().all(|part| wanted.next().is_some_and(|name| name == "*" || name == part))
                && wanted.next().is_none()
        };
        (0..schema.num_columns()).find(|&leaf| is_it(schema.column(leaf).path().parts()))
    }

    /// Calls `each` with the number of every row group.
    pub fn each_group(&self, each: &mut dyn FnMut(usize) -> Result<()>) -> Result<()> {
        (0..self.reader.num_row_groups()).try_for_each(|group| contained(&self.path, || each(group)))
    }

    /// What the texts of a column may unpack to.
    pub fn text_max(&self) -> u64 {
        self.text_max
    }

    /// The values of one leaf in a row group.
    pub fn chunk(&self, number: usize, leaf: usize) -> Result<(ColumnReader, ColumnDescPtr)> {
        let descr = self.descr(leaf);
        let error = |what: String| GraphError::format(&self.path, format!("column '{}'", descr.path()), what);
        // The crate asserts this only when it is too late for an error.
        let chunk = self.reader.metadata().row_group(number).column(leaf);
        let starts = [Some(chunk.data_page_offset()), chunk.dictionary_page_offset(), Some(chunk.compressed_size())];
        if starts.iter().flatten().any(|&at| at < 0) {
            return Err(error(format!("row group {number} lies nowhere in the file")));
        }
        let group = self.reader.get_row_group(number).map_err(|e| error(e.to_string()))?;
        let pages = group.get_column_page_reader(leaf).map_err(|e| error(e.to_string()))?;
        let guard = Guard::new(pages, descr.clone(), self.text_max);
        Ok((get_column_reader(descr.clone(), Box::new(guard)), descr))
    }

    /// The values of one column in a row group; of texts so many bytes are left.
    fn scan_chunk(&self, chunk: Chunk, text_left: &mut u64, sink: Sink) -> Result<()> {
        let Chunk { group: number, start, slot, column, kind } = chunk;
        let error = |what: String| self.error(column, what);
        if let Kind::Unread(what) | Kind::Refused(what) = self.columns[column].kind {
            return Err(error(format!("{what} are not read; write the column as text or numbers")));
        }
        let rows = self.rows_of(number);
        let mut row = start;
        let emit = &mut |cell: Cell| {
            if row == start + rows {
                return Err(format!("more than the {rows} values of row group {number}"));
            }
            if let Cell::Text(text) = cell {
                let left = text_left.checked_sub(text.len() as u64);
                *text_left = left.ok_or_else(|| format!("row {row}: texts unpack to over {} bytes", self.text_max))?;
            }
            sink(row, slot, cell).map_err(|what| format!("row {row}: {what}"))?;
            row += 1;
            Ok(())
        };
        let leaves = self.leaves[column].clone();
        let read = match is_vector(self.reader.metadata().file_metadata().schema_descr(), leaves.clone()) {
            true => {
                let [a, b, c, d] = [0, 1, 2, 3].map(|place| self.chunk(number, leaves.start + place));
                read_vectors([a?, b?, c?, d?], emit)
            }
            false => {
                let (reader, descr) = self.chunk(number, leaves.start)?;
                let meaning = self.per_day[column].map_or_else(|| Meaning::of(&descr), Meaning::Days);
                read_column(reader, (&descr, meaning), kind, emit)
            }
        };
        read.map_err(error)?;
        if row != start + rows {
            return Err(error(format!("expected {rows} values in row group {number}, found {}", row - start)));
        }
        Ok(())
    }

    fn rows_of(&self, group: usize) -> usize {
        self.reader.metadata().row_group(group).num_rows() as usize
    }
}

/// One column in a row group, as it is asked for.
#[derive(Clone, Copy)]
struct Chunk {
    /// The number of the group.
    group: usize,
    /// The row of the table that the group begins with.
    start: usize,
    /// Which of the columns that are asked for it is.
    slot: usize,
    column: usize,
    /// What its cells are read as.
    kind: Kind,
}

impl Table for ParquetTable {
    fn path(&self) -> &Path {
        &self.path
    }

    fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    fn has_header(&self) -> bool {
        true
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn exact_below(&self, column: usize) -> Option<f64> {
        whole_below(&self.descr(self.leaves[column].start))
    }

    fn rows_at_once(&self) -> usize {
        (0..self.reader.num_row_groups()).map(|group| self.rows_of(group)).max().unwrap_or(0)
    }

    fn scan(&self, wanted: &[(usize, Kind)], sink: Sink) -> Result<()> {
        let (mut start, mut text_left) = (0, vec![self.text_max; wanted.len()]);
        for group in 0..self.reader.num_row_groups() {
            for ((slot, &(column, kind)), text_left) in wanted.iter().enumerate().zip(&mut text_left) {
                let chunk = Chunk { group, start, slot, column, kind };
                contained(&self.path, || self.scan_chunk(chunk, text_left, sink))?;
            }
            start += self.rows_of(group);
        }
        Ok(())
    }

    fn pieces(&self) -> Vec<usize> {
        (0..self.reader.num_row_groups()).map(|group| self.rows_of(group)).collect()
    }

    fn scan_piece(&self, group: usize, wanted: &[(usize, Kind)], sink: Sink) -> Result<()> {
        wanted.iter().enumerate().try_for_each(|(slot, &(column, kind))| {
            let (mut text_left, chunk) = (self.text_max, Chunk { group, start: 0, slot, column, kind });
            contained(&self.path, || self.scan_chunk(chunk, &mut text_left, sink))
        })
    }
}

/// The file, which gives no more than there is, and no page that unpacks to more than it can hold.
struct Source {
    file: Arc<Mutex<File>>,
    bytes: u64,
}

/// The file from some byte on. All readers of a file share the place in it, so each goes to its own before it reads.
struct FileFrom {
    file: Arc<Mutex<File>>,
    at: u64,
}

impl Read for FileFrom {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(into)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Source {
    fn from(&self, at: u64) -> FileFrom {
        FileFrom { file: self.file.clone(), at }
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Source {
    type T = BufReader<FileFrom>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<BufReader<FileFrom>> {
        let mut reader = BufReader::new(self.from(start));
        match page_sizes(reader.fill_buf()?) {
            Some([unpacked, packed]) if unpacked > packed.saturating_mul(UNPACKING_RATIO_MAX).max(PAGE_FREE) => {
                Err(ParquetError::General(format!("a page of {packed} bytes that unpacks to {unpacked}")))
            }
            _ => Ok(reader),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        if length as u64 > self.bytes.saturating_sub(start) {
            return Err(ParquetError::EOF(format!("{length} bytes from byte {start} on, of {}", self.bytes)));
        }
        let mut bytes = vec![0; length];
        self.from(start).read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// The unpacked and the packed size in the header of a page, if `bytes` begin with one: its first three fields are
/// 32-bit integers in Thrift's compact protocol, the kind and the two sizes.
fn page_sizes(bytes: &[u8]) -> Option<[u64; 2]> {
    let mut bytes = bytes.iter().copied();
    let mut field = || match bytes.next()? {
        0x15 => varint(&mut bytes).map(|zigzag| zigzag >> 1),
        _ => None,
    };
    let [_, unpacked, packed] = [field()?, field()?, field()?];
    Some([unpacked, packed])
}

/// A panic inside becomes an error. Nothing that is used afterwards can be left half-changed: the caller gives up.
fn contained<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    let outcome = catch_unwind(AssertUnwindSafe(read));
    outcome.unwrap_or_else(|_| Err(GraphError::format(path, "data", "expected Parquet, found something broken")))
}

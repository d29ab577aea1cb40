//! Tables in Parquet files.
//!
//! Flat columns of booleans, integers, floating-point numbers, text, dates and times are read, and lists of numbers;
//! other nested columns and other types are there, but [`Kind::Unread`]. The `parquet` crate without Arrow reads the
//! pages. What it would believe of a hostile file is checked in [`Source`] and [`Guard`] before, and a panic in it
//! becomes an error.

use super::column::{Cell, ColumnInfo, Kind, Sink, Table};
use super::parquet_kinds::{kind_of, per_day};
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use bytes::Bytes;
use parquet::basic::{ConvertedType, Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::ColumnDescPtr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A table in a Parquet file.
pub struct ParquetTable {
    path: PathBuf,
    reader: SerializedFileReader<Source>,
    columns: Vec<ColumnInfo>,
    /// The place of each of `columns` among the file's leaf columns.
    leaves: Vec<usize>,
    rows: usize,
    /// What the texts of one column may unpack to.
    text_max: u64,
}

/// How many rows are decoded at a time.
const BATCH: usize = 8192;

/// How many rows of lists are decoded at a time.
const LISTS: usize = 512;

/// A file may unpack to so many times its size, in rows, in a page, or in the texts of a column.
const UNPACKING_RATIO_MAX: u64 = 1024;

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
        let reader = contained(path, || SerializedFileReader::new(Source { file, bytes }).map_err(error))?;
        let metadata = reader.metadata();
        let groups = metadata.row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
        let rows = groups.into_iter().try_fold(0u64, |sum, rows| sum.checked_add(rows?));
        let rows = rows.filter(|&rows| rows <= limits.edges_max);
        let rows = rows.ok_or_else(|| GraphError::too_large(path, "rows", limits.edges_max))?;
        if rows > bytes.saturating_mul(UNPACKING_RATIO_MAX) {
            return Err(GraphError::format(path, "footer", format!("{rows} rows do not fit {bytes} bytes")));
        }
        let schema = metadata.file_metadata().schema_descr();
        let (mut columns, mut leaves) = (Vec::<ColumnInfo>::new(), Vec::new());
        for (leaf, descr) in schema.columns().iter().enumerate() {
            // A column of the table with several leaves has a struct in it; it is one column all the same.
            let root = schema.get_column_root_idx(leaf);
            let sharing = |other: &usize| schema.get_column_root_idx(*other) == root;
            let before = leaf.checked_sub(1).is_some_and(|other| sharing(&other));
            let after =
                Some(leaf + 1).filter(|other| *other < schema.num_columns()).is_some_and(|other| sharing(&other));
            if before {
                continue;
            }
            let kind = if after { Kind::Unread("nested values") } else { kind_of(descr) };
            columns.push(ColumnInfo { name: schema.get_column_root(leaf).name().to_owned(), kind });
            leaves.push(leaf);
        }
        let text_max = bytes.saturating_mul(UNPACKING_RATIO_MAX).max(TEXT_FREE);
        Ok(ParquetTable { path: path.to_owned(), reader, columns, leaves, rows: rows as usize, text_max })
    }

    /// The values of one column in a row group that begins with row `start`; of texts so many bytes are left.
    fn scan_chunk(
        &self,
        (number, start): (usize, usize),
        (slot, (column, kind)): (usize, (usize, Kind)),
        text_left: &mut u64,
        sink: Sink,
    ) -> Result<()> {
        let place = format!("column '{}'", self.columns[column].name);
        let error = |what: String| GraphError::format(&self.path, place.as_str(), what);
        if let Kind::Unread(what) = self.columns[column].kind {
            return Err(error(format!("{what} are not read")));
        }
        let descr = self.reader.metadata().file_metadata().schema_descr().column(self.leaves[column]);
        // The crate asserts this only when it is too late for an error.
        let chunk = self.reader.metadata().row_group(number).column(self.leaves[column]);
        let starts = [Some(chunk.data_page_offset()), chunk.dictionary_page_offset(), Some(chunk.compressed_size())];
        if starts.iter().flatten().any(|&at| at < 0) {
            return Err(error(format!("row group {number} lies nowhere in the file")));
        }
        let group = self.reader.get_row_group(number).map_err(|e| error(e.to_string()))?;
        let rows = group.metadata().num_rows() as usize;
        let pages = group.get_column_page_reader(self.leaves[column]).map_err(|e| error(e.to_string()))?;
        let guard = Guard { pages, descr: descr.clone(), dictionary: false, lists_left: self.text_max };
        let reader = get_column_reader(descr.clone(), Box::new(guard));
        let mut row = start;
        let read = read_column(reader, &descr, kind, &mut |cell| {
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
        });
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

    fn rows_at_once(&self) -> usize {
        (0..self.reader.num_row_groups()).map(|group| self.rows_of(group)).max().unwrap_or(0)
    }

    fn scan(&self, wanted: &[(usize, Kind)], sink: Sink) -> Result<()> {
        let (mut start, mut text_left) = (0, vec![self.text_max; wanted.len()]);
        for group in 0..self.reader.num_row_groups() {
            for ((slot, &wanted), text_left) in wanted.iter().enumerate().zip(&mut text_left) {
                contained(&self.path, || self.scan_chunk((group, start), (slot, wanted), text_left, sink))?;
            }
            start += self.rows_of(group);
        }
        Ok(())
    }
}

/// The file, which gives no more than there is, and no page that unpacks to more than it can hold.
struct Source {
    file: File,
    bytes: u64,
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Source {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<BufReader<File>> {
        let mut reader = self.file.get_read(start)?;
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
        self.file.get_bytes(start, length)
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

type Emit<'a> = &'a mut dyn FnMut(Cell) -> std::result::Result<(), String>;

fn read_column(reader: ColumnReader, descr: &ColumnDescPtr, kind: Kind, emit: Emit) -> std::result::Result<(), String> {
    let optional = descr.max_def_level() > 0;
    if descr.max_rep_level() > 0 {
        return match reader {
            ColumnReader::Int32ColumnReader(reader) => lists(reader, descr, emit, |&value| f64::from(value)),
            ColumnReader::Int64ColumnReader(reader) => lists(reader, descr, emit, |&value| value as f64),
            ColumnReader::FloatColumnReader(reader) => lists(reader, descr, emit, |&value| f64::from(value)),
            ColumnReader::DoubleColumnReader(reader) => lists(reader, descr, emit, |&value| value),
            _ => Err("expected lists of numbers".to_owned()),
        };
    }
    if let (Some(per_day), Kind::Float | Kind::Date) = (per_day(descr), kind) {
        return match reader {
            ColumnReader::Int32ColumnReader(reader) => {
                batches(reader, optional, emit, |&value, emit| emit(Cell::Float(f64::from(value) / per_day)))
            }
            ColumnReader::Int64ColumnReader(reader) => {
                batches(reader, optional, emit, |&value, emit| emit(Cell::Float(value as f64 / per_day)))
            }
            ColumnReader::Int96ColumnReader(reader) => {
                batches(reader, optional, emit, |value, emit| emit(Cell::Float(value.to_seconds() as f64 / per_day)))
            }
            _ => Err("expected a date or a time".to_owned()),
        };
    }
    let unsigned = matches!(descr.converted_type(), ConvertedType::UINT_32 | ConvertedType::UINT_64);
    match reader {
        ColumnReader::BoolColumnReader(reader) => {
            batches(reader, optional, emit, |value, emit| integer(i64::from(*value), kind, emit))
        }
        ColumnReader::Int32ColumnReader(reader) => batches(reader, optional, emit, |&value, emit| {
            integer(if unsigned { i64::from(value as u32) } else { i64::from(value) }, kind, emit)
        }),
        ColumnReader::Int64ColumnReader(reader) => batches(reader, optional, emit, |&value, emit| {
            if unsigned && value < 0 {
                return Err(format!("expected integers below 2^63, found {}", value as u64));
            }
            integer(value, kind, emit)
        }),
        ColumnReader::FloatColumnReader(reader) => {
            batches(reader, optional, emit, |&value, emit| float(f64::from(value), kind, emit))
        }
        ColumnReader::DoubleColumnReader(reader) => {
            batches(reader, optional, emit, |&value, emit| float(value, kind, emit))
        }
        ColumnReader::ByteArrayColumnReader(reader) => batches(reader, optional, emit, |value, emit| {
            let text = std::str::from_utf8(value.data()).map_err(|_| "expected text in UTF-8".to_owned())?;
            match kind {
                Kind::Text => emit(Cell::Text(text)),
                _ => Err("expected a number, found text".to_owned()),
            }
        }),
        _ => Err("expected booleans, numbers or text".to_owned()),
    }
}

fn integer(value: i64, kind: Kind, emit: Emit) -> std::result::Result<(), String> {
    match kind {
        Kind::Integer => emit(Cell::Integer(value)),
        Kind::Float => emit(Cell::Float(value as f64)),
        Kind::Text => emit(Cell::Text(&value.to_string())),
        _ => Err("expected no number".to_owned()),
    }
}

fn float(value: f64, kind: Kind, emit: Emit) -> std::result::Result<(), String> {
    match kind {
        Kind::Float => emit(Cell::Float(value)),
        Kind::Text => emit(Cell::Text(&value.to_string())),
        _ => Err(format!("expected an integer, found {value}")),
    }
}

/// Decodes batch after batch and gives each value, or its absence, on.
fn batches<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    optional: bool,
    emit: Emit,
    mut each: impl FnMut(&T::T, Emit) -> std::result::Result<(), String>,
) -> std::result::Result<(), String> {
    let mut values: Vec<T::T> = Vec::new();
    let mut levels: Vec<i16> = Vec::new();
    loop {
        values.clear();
        levels.clear();
        let (records, found, _) = reader
            .read_records(BATCH, optional.then_some(&mut levels), None, &mut values)
            .map_err(|e| e.to_string())?;
        if records == 0 {
            return Ok(());
        }
        let mut present = values[..found].iter();
        // Without definition levels every value is there.
        levels.resize(records, 1);
        for &level in &levels {
            if level == 0 {
                emit(Cell::Missing)?;
            } else {
                each(present.next().ok_or_else(|| "fewer values than promised".to_owned())?, emit)?;
            }
        }
    }
}

/// Decodes batch after batch of lists and gives each, or its absence, on; an empty list is none.
fn lists<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    descr: &ColumnDescPtr,
    emit: Emit,
    number: impl Fn(&T::T) -> f64,
) -> std::result::Result<(), String> {
    let there = descr.max_def_level();
    // From this level on there is an element, be it a missing one.
    let element = there - i16::from(descr.self_type().is_optional());
    let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
    let mut list = Vec::new();
    loop {
        values.clear();
        definitions.clear();
        repetitions.clear();
        let (records, found, levels) = reader
            .read_records(LISTS, Some(&mut definitions), Some(&mut repetitions), &mut values)
            .map_err(|e| e.to_string())?;
        if records == 0 {
            return Ok(());
        }
        let mut present = values[..found].iter();
        list.clear();
        for (place, (&definition, &repetition)) in definitions.iter().zip(&repetitions).take(levels).enumerate() {
            if place > 0 && repetition == 0 {
                emit(if list.is_empty() { Cell::Missing } else { Cell::List(&list) })?;
                list.clear();
            }
            if definition == there {
                list.push(number(present.next().ok_or_else(|| "fewer values than promised".to_owned())?));
            } else if definition >= element {
                list.push(f64::NAN);
            }
        }
        emit(if list.is_empty() { Cell::Missing } else { Cell::List(&list) })?;
    }
}

/// Looks at each page before the `parquet` crate does, because it makes room for as many values as a dictionary page or
/// the header of a delta encoding claims to have.
struct Guard {
    pages: Box<dyn PageReader>,
    descr: ColumnDescPtr,
    /// Whether the dictionary was there.
    dictionary: bool,
    /// So many bytes may the lists still unpack to: a run repeats a value for nothing.
    lists_left: u64,
}

impl Guard {
    fn check(&self, page: &Page) -> parquet::errors::Result<()> {
        let refuse = |what: &str| Err(ParquetError::General(what.to_owned()));
        let values = match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                let fits = holds(buf, *num_values as usize, self.descr.physical_type());
                return if fits { Ok(()) } else { refuse("a dictionary larger than its page") };
            }
            Page::DataPage { buf, .. } if self.descr.max_def_level() == 0 => Some(&buf[..]),
            Page::DataPage { buf, .. } => {
                buf.first_chunk().and_then(|length| buf.get(4 + u32::from_le_bytes(*length) as usize..))
            }
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                buf.get(*def_levels_byte_len as usize + *rep_levels_byte_len as usize..)
            }
        };
        let Some(values) = values else { return refuse("a page shorter than its levels") };
        if matches!(page.encoding(), Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY) && !self.dictionary {
            return refuse("a page that needs a dictionary before there is one");
        }
        if self.descr.physical_type() != Type::BYTE_ARRAY {
            return Ok(());
        }
        match page.encoding() {
            Encoding::DELTA_BYTE_ARRAY => refuse("the encoding DELTA_BYTE_ARRAY of texts is not known here"),
            Encoding::DELTA_LENGTH_BYTE_ARRAY => {
                // Block size, blocks, number of values.
                let mut values = values.iter().copied();
                let counts = [varint(&mut values), varint(&mut values), varint(&mut values)];
                let promised = counts[2].is_some_and(|count| count <= u64::from(page.num_values()));
                if promised { Ok(()) } else { refuse("more texts than the page promises") }
            }
            _ => Ok(()),
        }
    }
}

/// Whether plainly encoded `bytes` hold so many values.
fn holds(bytes: &[u8], values: usize, of: Type) -> bool {
    let mut rest = bytes;
    match of {
        Type::BYTE_ARRAY => (0..values).all(|_| {
            let after =
                rest.split_first_chunk().and_then(|(size, rest)| rest.get(u32::from_le_bytes(*size) as usize..));
            rest = after.unwrap_or(&[]);
            after.is_some()
        }),
        Type::INT64 | Type::DOUBLE => values <= bytes.len() / 8,
        Type::INT32 | Type::FLOAT => values <= bytes.len() / 4,
        _ => values <= bytes.len(),
    }
}

fn varint(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let byte = bytes.next()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

impl Iterator for Guard {
    type Item = parquet::errors::Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Guard {
    fn get_next_page(&mut self) -> parquet::errors::Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.iter().try_for_each(|page| self.check(page))?;
        self.dictionary |= matches!(page, Some(Page::DictionaryPage { .. }));
        if let Some(page @ (Page::DataPage { .. } | Page::DataPageV2 { .. })) = &page
            && self.descr.max_rep_level() > 0
        {
            let left = self.lists_left.checked_sub(u64::from(page.num_values()) * 8);
            self.lists_left =
                left.ok_or_else(|| ParquetError::General("lists unpack to too many values".to_owned()))?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> parquet::errors::Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> parquet::errors::Result<()> {
        self.pages.skip_next_page()
    }
}

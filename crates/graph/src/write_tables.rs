//! Writing datasets as tables, edges and nodes, that [`crate::read`] makes the same dataset of.

use crate::aside::write_aside;
use crate::dataset::{Dataset, Features, Ids, Labels, Split};
use crate::error::{GraphError, Result};
use crate::read::words::is_missing;
use parquet::basic::{Compression, ConvertedType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// What kind of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Text with commas.
    Csv,
    /// Parquet, packed with zstd.
    Parquet,
}

impl TableFormat {
    /// The ending of files.
    pub fn ending(self) -> &'static str {
        match self {
            TableFormat::Csv => "csv",
            TableFormat::Parquet => "parquet",
        }
    }
}

/// Rows of Parquet that are in memory as columns at a time.
const GROUP: usize = 1 << 18;

/// The values of a column, made row by row.
enum Values<'a> {
    Integers(Box<dyn Fn(usize) -> Option<i64> + 'a>),
    Floats(Box<dyn Fn(usize) -> f32 + 'a>),
    Doubles(Box<dyn Fn(usize) -> f64 + 'a>),
    Texts(Box<dyn Fn(usize) -> Option<&'a str> + 'a>),
}

struct Column<'a> {
    name: String,
    values: Values<'a>,
}

impl<'a> Column<'a> {
    fn new(name: impl Into<String>, values: Values<'a>) -> Column<'a> {
        Column { name: name.into(), values }
    }
}

/// Writes edges to `edges` and all that is known of nodes to `nodes`, each aside first. Edges are in each direction
/// that they have.
///
/// # Errors
///
/// If the system refuses to write, or there is something that a table does not hold: types, edges that are held out,
/// several splits, or ids that would be read as others.
pub fn write_tables([edges, nodes]: [&Path; 2], dataset: &Dataset, format: TableFormat) -> Result<()> {
    refuse_unwritten(dataset, format)?;
    let ends = edge_ends(dataset);
    let columns = edge_columns(dataset, &ends);
    write(edges, (&columns, ends.1.len()), format)?;
    write(nodes, (&node_columns(dataset)?, dataset.graph.nodes()), format)
}

fn refuse_unwritten(dataset: &Dataset, format: TableFormat) -> Result<()> {
    let refuse = |what: &str| Err(GraphError::invalid(format!("{what}: an .npz holds all of it (--out NAME.npz)")));
    if dataset.about.classes.iter().any(|class| is_missing(class)) && matches!(dataset.labels, Labels::Single { .. }) {
        return refuse("a class has a name that tables have for a missing value, such as None");
    }
    let data = &dataset.graph.data;
    if data.relations.is_some() || !dataset.about.node_types.is_empty() {
        return refuse("two tables do not tell types apart");
    }
    if data.held.is_some() || dataset.negatives.is_some() {
        return refuse("tables do not say which edges are held out");
    }
    if dataset.splits.len() > 1 {
        return refuse(&format!("a table of nodes has one split, not {}", dataset.splits.len()));
    }
    if let Labels::Multi { classes: 1, .. } = dataset.labels {
        return refuse("one column of 0 and 1 is no set of labels in a table");
    }
    match &dataset.ids {
        Ids::Strings(ids) if ids.iter().any(String::is_empty) => refuse("a node has no name"),
        // Text has no types: names that are numbers would be read as such.
        Ids::Strings(ids) if format == TableFormat::Csv && ids.iter().all(|id| id.parse::<i64>().is_ok()) => {
            Err(GraphError::invalid("ids are texts that look like numbers, which only --to parquet keeps apart"))
        }
        _ => Ok(()),
    }
}

/// Source and target of every edge.
fn edge_ends(dataset: &Dataset) -> (&[u32], Vec<u32>) {
    let graph = &dataset.graph;
    let targets = (0..graph.nodes()).flat_map(|node| std::iter::repeat_n(node as u32, graph.in_edges(node).len()));
    (&graph.sources, targets.collect())
}

/// What nodes are called.
fn id_values<'a>(ids: &'a Ids, node: impl Fn(usize) -> usize + 'a) -> Values<'a> {
    match ids {
        Ids::Row => Values::Integers(Box::new(move |row| Some(node(row) as i64))),
        Ids::Integers(ids) => Values::Integers(Box::new(move |row| Some(ids[node(row)]))),
        Ids::Strings(ids) => Values::Texts(Box::new(move |row| Some(ids[node(row)].as_str()))),
    }
}

fn edge_columns<'a>(dataset: &'a Dataset, (sources, targets): &'a (&'a [u32], Vec<u32>)) -> Vec<Column<'a>> {
    let mut columns = vec![
        Column::new("source", id_values(&dataset.ids, move |row| sources[row] as usize)),
        Column::new("target", id_values(&dataset.ids, move |row| targets[row] as usize)),
    ];
    if let Some(weights) = &dataset.graph.data.weights {
        columns.push(Column::new("weight", Values::Floats(Box::new(move |row| weights[row]))));
    }
    columns
}

fn node_columns(dataset: &Dataset) -> Result<Vec<Column<'_>>> {
    let mut columns = vec![Column::new("id", id_values(&dataset.ids, |row| row))];
    columns.extend(feature_columns(dataset)?);
    let class = move |class: usize| dataset.about.classes.get(class).map(String::as_str);
    match &dataset.labels {
        Labels::None => {}
        Labels::Single { values, .. } if dataset.about.classes.is_empty() => {
            let number = move |row: usize| Some(i64::from(values[row])).filter(|&class| class >= 0);
            columns.push(Column::new("label", Values::Integers(Box::new(number))));
        }
        Labels::Single { values, .. } => {
            let name = move |row: usize| usize::try_from(values[row]).ok().and_then(class);
            columns.push(Column::new("label", Values::Texts(Box::new(name))));
        }
        Labels::Multi { classes, values } => columns.extend((0..*classes).map(|number| {
            let known = move |row: usize| {
                let value = values[row * classes + number];
                (value != Labels::UNKNOWN).then_some(i64::from(value))
            };
            let name = class(number).map_or_else(|| number.to_string(), str::to_owned);
            Column::new(format!("label_{name}"), Values::Integers(Box::new(known)))
        })),
    }
    for split in &dataset.splits {
        for (name, role) in [("train_mask", Split::TRAIN), ("val_mask", Split::VAL), ("test_mask", Split::TEST)] {
            let is_in = move |row: usize| Some(i64::from(split.roles[row] & role != 0));
            columns.push(Column::new(name, Values::Integers(Box::new(is_in))));
        }
    }
    Ok(columns)
}

/// Names that a column of features cannot have: the reader takes them for something else.
const TAKEN: [&str; 16] = [
    "id",
    "node",
    "node_id",
    "label",
    "y",
    "class",
    "split",
    "set",
    "train",
    "val",
    "valid",
    "test",
    "train_mask",
    "val_mask",
    "valid_mask",
    "test_mask",
];

fn feature_columns(dataset: &Dataset) -> Result<Vec<Column<'_>>> {
    let count = dataset.features.columns();
    let name = |column: usize| {
        let name = dataset.about.features.get(column).cloned().unwrap_or_else(|| format!("f{column}"));
        let is_taken = TAKEN.contains(&name.to_lowercase().as_str()) || name.starts_with("label_") || name.is_empty();
        if is_taken { format!("feature {name}") } else { name }
    };
    let mut names: Vec<String> = (0..count).map(name).collect();
    let mut sorted = names.clone();
    sorted.sort();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        names = names.into_iter().enumerate().map(|(column, name)| format!("{name} [{column}]")).collect();
    }
    let columns =
        names.into_iter().enumerate().map(|(column, name)| Column::new(name, feature_values(dataset, column)));
    Ok(columns.collect())
}

fn feature_values(dataset: &Dataset, column: usize) -> Values<'_> {
    if let Some(exact) = dataset.exact.columns.iter().find(|exact| exact.column == column) {
        return Values::Doubles(Box::new(move |row| exact.values[row].value));
    }
    match &dataset.features {
        Features::None => Values::Floats(Box::new(|_| 0.0)),
        Features::Dense { columns, values } => Values::Floats(Box::new(move |row| values.at(row * columns + column))),
        Features::Sparse { offsets, indices, values, .. } => Values::Floats(Box::new(move |row| {
            let stored = offsets[row] as usize..offsets[row + 1] as usize;
            let found = indices[stored.clone()].binary_search(&(column as u32));
            found.map_or(0.0, |at| values[stored.start + at])
        })),
    }
}

fn write(path: &Path, (columns, rows): (&[Column], usize), format: TableFormat) -> Result<()> {
    let written = write_aside(path, |file| match format {
        TableFormat::Csv => write_csv(file, columns, rows),
        TableFormat::Parquet => write_parquet(file, columns, rows).map_err(io::Error::other),
    });
    written.map_err(|source: io::Error| GraphError::io(path, source))
}

fn write_csv(file: &mut File, columns: &[Column], rows: usize) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(io::BufWriter::new(file));
    writer.write_record(columns.iter().map(|column| column.name.as_str()))?;
    let mut record = csv::StringRecord::new();
    for row in 0..rows {
        record.clear();
        for column in columns {
            match &column.values {
                Values::Integers(value) => record.push_field(&value(row).map_or_else(String::new, |v| v.to_string())),
                Values::Floats(value) => record.push_field(&value(row).to_string()),
                Values::Doubles(value) => record.push_field(&value(row).to_string()),
                Values::Texts(value) => record.push_field(value(row).unwrap_or("")),
            }
        }
        writer.write_record(&record)?;
    }
    writer.flush()
}

fn write_parquet(file: &mut File, columns: &[Column], rows: usize) -> std::result::Result<(), ParquetError> {
    let is_needed = |column: &Column| match &column.values {
        Values::Integers(value) => (0..rows).all(|row| value(row).is_some()),
        Values::Texts(value) => (0..rows).all(|row| value(row).is_some()),
        Values::Floats(_) | Values::Doubles(_) => true,
    };
    let needed: Vec<bool> = columns.iter().map(is_needed).collect();
    let fields: std::result::Result<Vec<_>, _> = columns.iter().zip(&needed).map(field).collect();
    let schema = Arc::new(Type::group_type_builder("table").with_fields(fields?).build()?);
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let mut start = 0;
    while start < rows {
        let group_rows = start..rows.min(start + GROUP);
        let mut group = writer.next_row_group()?;
        for (column, is_needed) in columns.iter().zip(&needed) {
            write_column(&mut group, column, group_rows.clone(), *is_needed)?;
        }
        group.close()?;
        start = group_rows.end;
    }
    writer.close()?;
    Ok(())
}

/// What the schema says of a column.
fn field((column, is_needed): (&Column, &bool)) -> std::result::Result<Arc<Type>, ParquetError> {
    let (kind, converted) = match &column.values {
        Values::Integers(_) => (PhysicalType::INT64, ConvertedType::NONE),
        Values::Floats(_) => (PhysicalType::FLOAT, ConvertedType::NONE),
        Values::Doubles(_) => (PhysicalType::DOUBLE, ConvertedType::NONE),
        Values::Texts(_) => (PhysicalType::BYTE_ARRAY, ConvertedType::UTF8),
    };
    let repetition = if *is_needed { Repetition::REQUIRED } else { Repetition::OPTIONAL };
    let built = Type::primitive_type_builder(&column.name, kind).with_repetition(repetition);
    Ok(Arc::new(built.with_converted_type(converted).build()?))
}

fn write_column<W: io::Write + Send>(
    group: &mut SerializedRowGroupWriter<W>,
    column: &Column,
    rows: Range<usize>,
    is_needed: bool,
) -> std::result::Result<(), ParquetError> {
    match &column.values {
        Values::Integers(value) => put::<Int64Type, _>(group, rows.map(value), is_needed),
        Values::Floats(value) => put::<FloatType, _>(group, rows.map(|row| Some(value(row))), is_needed),
        Values::Doubles(value) => put::<DoubleType, _>(group, rows.map(|row| Some(value(row))), is_needed),
        Values::Texts(value) => {
            put::<ByteArrayType, _>(group, rows.map(|row| value(row).map(ByteArray::from)), is_needed)
        }
    }
}

/// Writes the next column of a group.
fn put<T: DataType, W: io::Write + Send>(
    group: &mut SerializedRowGroupWriter<W>,
    values: impl Iterator<Item = Option<T::T>>,
    is_needed: bool,
) -> std::result::Result<(), ParquetError> {
    let all: Vec<Option<T::T>> = values.collect();
    let levels: Vec<i16> = all.iter().map(|value| i16::from(value.is_some())).collect();
    let there: Vec<T::T> = all.into_iter().flatten().collect();
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(&there, (!is_needed).then_some(levels.as_slice()), None)?;
    column.close()
}

//! A table as a Parquet file.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::table::{Cell, Column, Kind, Table};

/// Rows that are written together.
const ROWS: usize = 1 << 16;

/// Writes the table.
pub fn write(table: &Table<'_>, file: &mut File) -> Result<()> {
    let field = |column: &Column<'_>| {
        let kind = match column.kind {
            Kind::Id => "required int64",
            Kind::Number => "required int32",
            Kind::Float => "required float",
            Kind::Text => "required binary",
            Kind::TextOrMissing => "optional binary",
        };
        let is_text = matches!(column.kind, Kind::Text | Kind::TextOrMissing);
        format!("{kind} {}{}; ", column.name, if is_text { " (UTF8)" } else { "" })
    };
    let fields: String = table.columns.iter().map(field).collect();
    let schema = Arc::new(parse_message_type(&format!("message predictions {{ {fields}}}"))?);
    let pair = |(key, value): (&&str, &String)| KeyValue::new((*key).to_owned(), value.clone());
    let pairs = table.metadata.iter().map(pair).collect();
    let properties = Arc::new(WriterProperties::builder().set_key_value_metadata(Some(pairs)).build());
    let mut file = SerializedFileWriter::new(file, schema, properties)?;
    for start in (0..table.rows()).step_by(ROWS) {
        let mut group = file.next_row_group()?;
        for column in &table.columns {
            let rows = start..(start + ROWS).min(table.rows());
            write_column(&mut group, column.kind, rows.map(|row| table.cell(column, row)))?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    kind: Kind,
    cells: impl Iterator<Item = Cell>,
) -> Result<()> {
    let mut column = group.next_column()?.context("the schema has this column")?;
    match kind {
        Kind::Id => column.typed::<Int64Type>().write_batch(&cells.map(integer).collect::<Vec<_>>(), None, None)?,
        Kind::Number => {
            let numbers: Vec<i32> = cells.map(|cell| integer(cell) as i32).collect();
            column.typed::<Int32Type>().write_batch(&numbers, None, None)?
        }
        Kind::Float => {
            let number = |cell| if let Cell::Float(number) = cell { number } else { f32::NAN };
            column.typed::<FloatType>().write_batch(&cells.map(number).collect::<Vec<_>>(), None, None)?
        }
        Kind::Text | Kind::TextOrMissing => {
            let texts: Vec<Option<ByteArray>> = cells.map(text).collect();
            let levels: Vec<i16> = texts.iter().map(|text| i16::from(text.is_some())).collect();
            let levels = (kind == Kind::TextOrMissing).then_some(levels.as_slice());
            let texts: Vec<ByteArray> = texts.into_iter().flatten().collect();
            column.typed::<ByteArrayType>().write_batch(&texts, levels, None)?
        }
    };
    Ok(column.close()?)
}

fn integer(cell: Cell) -> i64 {
    if let Cell::Integer(number) = cell { number } else { 0 }
}

fn text(cell: Cell) -> Option<ByteArray> {
    if let Cell::Text(text) = cell { Some(ByteArray::from(text.into_bytes())) } else { None }
}

//! A table as CSV, or as a JSON object a line.

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::Result;

use super::table::{Cell, Table};

/// Writes the table as CSV, with a line of names.
pub fn write_csv(table: &Table<'_>, file: &mut File) -> Result<()> {
    let mut file = BufWriter::new(file);
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    writeln!(file, "{}", names.join(","))?;
    for row in 0..table.rows() {
        for (place, column) in table.columns.iter().enumerate() {
            if place > 0 {
                file.write_all(b",")?;
            }
            match table.cell(column, row) {
                Cell::Integer(number) => write!(file, "{number}")?,
                Cell::Float(number) => write!(file, "{number}")?,
                Cell::Text(text) => file.write_all(quoted(text).as_bytes())?,
                Cell::Missing => {}
            }
        }
        file.write_all(b"\n")?;
    }
    Ok(file.flush()?)
}

/// The text as it stands in CSV. What is empty is quoted, which tells it from what is missing.
pub(super) fn quoted(text: String) -> String {
    let plain = !text.is_empty() && !text.contains([',', '"', '\n', '\r']);
    if plain { text } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

/// Writes the table as one JSON object a line.
pub fn write_json_lines(table: &Table<'_>, file: &mut File) -> Result<()> {
    let mut file = BufWriter::new(file);
    for row in 0..table.rows() {
        for (place, column) in table.columns.iter().enumerate() {
            write!(file, "{}\"{}\":", if place > 0 { "," } else { "{" }, column.name)?;
            match table.cell(column, row) {
                Cell::Integer(number) => write!(file, "{number}")?,
                Cell::Float(number) => serde_json::to_writer(&mut file, &number)?,
                Cell::Text(text) => serde_json::to_writer(&mut file, &text)?,
                Cell::Missing => file.write_all(b"null")?,
            }
        }
        file.write_all(b"}\n")?;
    }
    Ok(file.flush()?)
}

//! Checkpoints of Delta Lake's log: what it says up to some version, in one file of Parquet.

use super::column::{Cell, Kind, Table};
use super::delta_state::{Add, MetaData, Protocol, State};
use super::parquet_kinds::Meaning;
use super::parquet_table::ParquetTable;
use super::parquet_values::read_column;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use parquet::column::reader::ColumnReader;
use parquet::schema::types::ColumnDescPtr;
use std::collections::BTreeMap;
use std::path::Path;

/// Of each row the texts of one leaf: none, one, or those of a list.
type Rows = Vec<Vec<Option<String>>>;

/// How many rows are decoded at a time.
const BATCH: usize = 1024;

/// Adds what a checkpoint says.
pub fn read_checkpoint(file: &Path, limits: &Limits, state: &mut State) -> Result<()> {
    let table = ParquetTable::open(file, limits)?;
    table.each_group(&mut |group| {
        let rows = |leaf: &str| texts(&table, group, leaf);
        let [paths, vectors] = [rows("add.path")?, rows("add.deletionVector.storageType")?];
        let values = pairs(&table, group, "add.partitionValues")?;
        for (row, path) in paths.into_iter().enumerate() {
            let Some(path) = path.into_iter().next().flatten() else { continue };
            let is_deleted = vectors.get(row).is_some_and(|vector| !vector.is_empty());
            let deletion_vector = is_deleted.then_some(serde_json::Value::Bool(true));
            let partition_values = values.get(row).cloned().unwrap_or_default();
            state.files.insert(path.clone(), Add { path, partition_values, deletion_vector });
        }
        let configurations = pairs(&table, group, "metaData.configuration")?;
        for (row, schema) in rows("metaData.schemaString")?.into_iter().enumerate() {
            if let Some(schema_string) = schema.into_iter().next().flatten() {
                let configuration = configurations.get(row).cloned().unwrap_or_default();
                state.meta = Some(MetaData { schema_string, configuration });
            }
        }
        read_protocol(&table, group, state)
    })
}

fn read_protocol(table: &ParquetTable, group: usize, state: &mut State) -> Result<()> {
    let features = texts(table, group, "protocol.readerFeatures.*.*")?;
    let Some(leaf) = table.leaf("protocol.minReaderVersion") else { return Ok(()) };
    let (reader, descr) = table.chunk(group, leaf)?;
    let mut row = 0;
    let read = read_column(reader, (&descr, Meaning::Integer), Kind::Integer, &mut |cell| {
        if let Cell::Integer(min_reader_version) = cell {
            let reader_features = features.get(row).map(|all| all.iter().flatten().cloned().collect());
            state.protocol = Some(Protocol { min_reader_version, reader_features });
        }
        row += 1;
        Ok(())
    });
    read.map_err(|what| GraphError::format(table.path(), "protocol", what))
}

/// Of each row the pairs of a map.
fn pairs(table: &ParquetTable, group: usize, of: &str) -> Result<Vec<BTreeMap<String, Option<String>>>> {
    let keys = texts(table, group, &format!("{of}.*.key"))?;
    let values = texts(table, group, &format!("{of}.*.value"))?;
    let pair = |(keys, values): (Vec<Option<String>>, Vec<Option<String>>)| {
        keys.into_iter().zip(values).filter_map(|(key, value)| Some((key?, value))).collect()
    };
    Ok(keys.into_iter().zip(values).map(pair).collect())
}

/// The texts of one leaf; none at all where there is no such leaf.
fn texts(table: &ParquetTable, group: usize, leaf: &str) -> Result<Rows> {
    let Some(leaf) = table.leaf(leaf) else { return Ok(Vec::new()) };
    let (reader, descr) = table.chunk(group, leaf)?;
    decode(reader, &descr, table.text_max())
        .map_err(|what| GraphError::format(table.path(), format!("column '{}'", descr.path()), what))
}

fn decode(reader: ColumnReader, descr: &ColumnDescPtr, mut left: u64) -> std::result::Result<Rows, String> {
    let ColumnReader::ByteArrayColumnReader(mut reader) = reader else {
        return Err("expected texts".to_owned());
    };
    let (there, repeats) = (descr.max_def_level(), descr.max_rep_level() > 0);
    let element = there - i16::from(descr.self_type().is_optional());
    let (mut rows, mut values, mut definitions, mut repetitions) = (Rows::new(), vec![], vec![], vec![]);
    loop {
        values.clear();
        definitions.clear();
        repetitions.clear();
        let levels = ((there > 0).then_some(&mut definitions), repeats.then_some(&mut repetitions));
        let read = reader.read_records(BATCH, levels.0, levels.1, &mut values);
        let (records, found, _) = read.map_err(|error| error.to_string())?;
        if records == 0 {
            return Ok(rows);
        }
        definitions.resize(definitions.len().max(if there == 0 { records } else { 0 }), there);
        repetitions.resize(definitions.len(), 0);
        let mut present = values[..found].iter();
        for (&definition, &repetition) in definitions.iter().zip(&repetitions) {
            if repetition == 0 || rows.is_empty() {
                rows.push(Vec::new());
            }
            let text = match definition == there {
                true => {
                    let bytes = present.next().ok_or("fewer values than promised")?.data();
                    left = left.checked_sub(bytes.len() as u64).ok_or("texts unpack to too many bytes")?;
                    Some(std::str::from_utf8(bytes).map_err(|_| "expected text in UTF-8")?.to_owned())
                }
                false if repeats && definition >= element => None,
                false => continue,
            };
            rows.last_mut().into_iter().for_each(|row| row.push(text.clone()));
        }
    }
}

//! Vectors of Spark's machine learning in Parquet files: a struct of type, size, indices and values.

use super::column::Cell;
use super::parquet_kinds::VECTOR;
use super::parquet_values::{Emit, Lists, Value};
use parquet::column::reader::ColumnReader;
use parquet::schema::types::ColumnDescPtr;

/// Vectors are no longer than this: nothing in a file is as large as the size of a sparse one says.
const SIZE_MAX: f64 = (1 << 20) as f64;

/// Reads the four leaves of such a column side by side and gives each vector, with all its zeros, on.
pub fn read_vectors(leaves: [(ColumnReader, ColumnDescPtr); 4], emit: Emit) -> Result<(), String> {
    let [kind, size, indices, values] = leaves;
    let integers = |(reader, descr): (ColumnReader, ColumnDescPtr), name: &str| match reader {
        ColumnReader::Int32ColumnReader(reader) => Ok(Lists::new(reader, &descr)),
        _ => Err(format!("expected integers as the {name} of vectors")),
    };
    let mut parts = [integers(kind, VECTOR[0])?, integers(size, VECTOR[1])?, integers(indices, VECTOR[2])?];
    let ColumnReader::DoubleColumnReader(reader) = values.0 else {
        return Err("expected numbers as the values of vectors".to_owned());
    };
    let mut values = Lists::new(reader, &values.1);
    let mut vector = Vec::new();
    loop {
        let rows = values.read(&|&value| Ok(Value::Float(value)))?;
        for part in &mut parts {
            if part.read(&|&value| Ok(Value::Integer(value.into())))? != rows {
                return Err("vectors whose columns are not of one length".to_owned());
            }
        }
        if rows == 0 {
            return Ok(());
        }
        let [kinds, sizes, indices] = parts.each_ref().map(|part| part.rows());
        for (((kind, size), indices), values) in kinds.zip(sizes).zip(indices).zip(values.rows()) {
            match kind {
                [] => emit(Cell::Missing)?,
                [1.0] if values.is_empty() => emit(Cell::Missing)?,
                [1.0] => emit(Cell::List(values))?,
                [0.0] => {
                    fill(&mut vector, size, indices, values)?;
                    emit(Cell::List(&vector))?;
                }
                _ => return Err("expected vectors of type 0 (sparse) or 1 (dense)".to_owned()),
            }
        }
    }
}

/// Writes a sparse vector with all its zeros.
fn fill(vector: &mut Vec<f64>, size: &[f64], indices: &[f64], values: &[f64]) -> Result<(), String> {
    let size = match *size {
        [size] if (1.0..=SIZE_MAX).contains(&size) => size as usize,
        _ => return Err(format!("expected vectors of 1 to {SIZE_MAX} numbers, found {size:?}")),
    };
    if indices.len() != values.len() {
        return Err(format!("a vector of {} indices and {} values", indices.len(), values.len()));
    }
    vector.clear();
    vector.resize(size, 0.0);
    for (&index, &value) in indices.iter().zip(values) {
        let into = if index >= 0.0 { vector.get_mut(index as usize) } else { None };
        *into.ok_or_else(|| format!("the index {index} in a vector of {size}"))? = value;
    }
    Ok(())
}

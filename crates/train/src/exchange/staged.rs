//! Rows on their way between a matrix and a codec, which reads and writes `f32`: where the matrix stores these, the
//! codec works on it; rows that are stored as bf16 are widened into a room, and what comes is rounded out of it.

use laconic_nn::{Matrix, Precision};
use laconic_wire::WireError;
use laconic_wire::codec::{RowSet, RowsMut, RowsRef, Store};

/// Some rows of a matrix, as a codec reads them.
pub fn outgoing<'a>(rows: &'a Matrix, set: RowSet<'a>, room: &'a mut Vec<f32>) -> RowsRef<'a> {
    let columns = rows.columns();
    if rows.precision() == Precision::F32 {
        return RowsRef { data: rows.data(), columns, rows: set };
    }
    room.resize(set.len() * columns, 0.0);
    for (place, out) in room.chunks_exact_mut(columns.max(1)).enumerate() {
        rows.copy_row(set.at(place), out);
    }
    RowsRef { data: room, columns, rows: RowSet::Range(0..set.len()) }
}

/// Puts what `decode` says into some rows of a matrix, or adds it.
///
/// # Errors
/// What `decode` says.
pub fn incoming(
    (into, set): (&mut Matrix, RowSet<'_>),
    (room, store): (&mut Vec<f32>, Store),
    decode: impl FnOnce(RowsMut<'_>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let columns = into.columns();
    if into.precision() == Precision::F32 {
        return decode(RowsMut { data: into.data_mut(), columns, rows: set });
    }
    room.clear();
    room.resize(set.len() * columns, 0.0);
    decode(RowsMut { data: room, columns, rows: RowSet::Range(0..set.len()) })?;
    for (place, came) in room.chunks_exact(columns.max(1)).enumerate() {
        match store {
            Store::Set => into.set_row(set.at(place), came),
            Store::Add => into.add_row(set.at(place), came),
        }
    }
    Ok(())
}

//! Rows on their way between a matrix and a codec, which reads and writes `f32`: where the matrix stores these, the
//! codec works on it; rows that are stored as bf16 are widened into a room, and what comes is rounded out of it. Only
//! where messages are bf16 as well, rows travel as they are.

use laconic_nn::Matrix;
use laconic_nn::matrix::Values;
use laconic_wire::codec::{MessageKey, RowSet, RowsMut, RowsRef, Store};
use laconic_wire::{Frame, WireError};

use crate::messages::coders::{Coder, End, Setting};
use crate::messages::coding::WidthCounts;

type Result<T> = std::result::Result<T, WireError>;

/// How one message is coded.
pub struct Message<'a> {
    /// The codec of its stream.
    pub coder: &'a mut Coder,
    /// Whose message of which round it is.
    pub key: &'a MessageKey,
    /// The level that its codec reads.
    pub setting: &'a Setting,
}

/// Encodes some rows of a matrix into a frame; see [`Coder::write`].
///
/// # Errors
/// If a value is no number.
pub fn write(
    message: Message<'_>,
    end: End<'_>,
    rows: &Matrix,
    set: RowSet<'_>,
    frame: &mut Frame,
    counts: &mut WidthCounts,
    room: &mut Vec<f32>,
) -> Result<()> {
    let Message { coder, key, setting } = message;
    match rows.values() {
        Values::Bf16(data) if coder.is_half() => {
            let rows = RowsRef { data, columns: rows.columns(), rows: set };
            coder.write_stored(setting, &rows, frame, counts)
        }
        _ => coder.write(key, end, setting, outgoing(rows, set, room), frame, counts),
    }
}

/// Some rows of a matrix, as a codec reads them.
pub fn outgoing<'a>(rows: &'a Matrix, set: RowSet<'a>, room: &'a mut Vec<f32>) -> RowsRef<'a> {
    let columns = rows.columns();
    if let Values::F32(data) = rows.values() {
        return RowsRef { data, columns, rows: set };
    }
    room.resize(set.len() * columns, 0.0);
    for (place, out) in room.chunks_exact_mut(columns.max(1)).enumerate() {
        rows.copy_row(set.at(place), out);
    }
    RowsRef { data: room, columns, rows: RowSet::Range(0..set.len()) }
}

/// Puts a message that came into some rows of a matrix, or adds it.
///
/// # Errors
/// If it is not what its key and level say.
pub fn read(
    message: Message<'_>,
    frame: &Frame,
    into: &mut Matrix,
    set: RowSet<'_>,
    room: &mut Vec<f32>,
    store: Store,
) -> Result<()> {
    let Message { coder, key, setting } = message;
    let columns = into.columns();
    match into.values_mut() {
        Values::F32(data) => coder.read(key, setting, frame, RowsMut { data, columns, rows: set }, store),
        Values::Bf16(data) if coder.is_half() => coder.read_stored(frame, RowsMut { data, columns, rows: set }, store),
        Values::Bf16(_) => {
            room.clear();
            room.resize(set.len() * columns, 0.0);
            let came = RowsMut { data: room, columns, rows: RowSet::Range(0..set.len()) };
            coder.read(key, setting, frame, came, store)?;
            for (place, came) in room.chunks_exact(columns.max(1)).enumerate() {
                match store {
                    Store::Set => into.set_row(set.at(place), came),
                    Store::Add => into.add_row(set.at(place), came),
                }
            }
            Ok(())
        }
    }
}

//! A flat slice of values, as parameters are, through a codec of rows.

use crate::codec::{Bits, Exact, Level, Memory, Message, RowSet, RowsMut, RowsRef, Store};
use crate::{Codec, Direction, MessageKey, Rank, Result, Tag, WireError};

use std::ops::Range;

/// How slices of values become bytes.
///
/// With error feedback, whoever sends adds what rounding took from the values of one message to the values of the next:
/// the sums over all messages then differ from the exact ones by what is left over now, however many messages there
/// were; and that stays bounded, because the codec is told ([`Codec::expect_feedback`]). Without it, an unbiased
/// codec's errors add up like a random walk and a biased one's like a slope.
pub struct VectorCoder {
    codec: Box<dyn Codec>,
    bits: u8,
    seed: u64,
    feedback: bool,
}

/// One message on its way: under which tag, from where and to where. Both ends name it alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// What tells its noise from that of all others of the same ends.
    pub tag: Tag,
    /// Who sends it.
    pub from: Rank,
    /// Who gets it; the sender itself where many get the same.
    pub to: Rank,
}

/// The columns of the matrix as which a slice travels: short enough for a quantiser's grid to suit its values, long
/// enough for the grid's four bytes not to matter. What is left over is one shorter row.
const COLUMNS: usize = 256;

impl VectorCoder {
    /// Values as they are. They need not be finite.
    pub fn exact() -> VectorCoder {
        VectorCoder::new(Box::new(Exact), 32, 0, false)
    }

    /// Values through a codec, whose ratio is 1 and whose values have `bits` bits, with the run's seed. Values must be
    /// finite unless the codec is `exact`. Every slice is a message without memory, and its size must follow from its
    /// shape: codecs that remember or vary do not suit.
    pub fn new(mut codec: Box<dyn Codec>, bits: u8, seed: u64, feedback: bool) -> VectorCoder {
        if feedback {
            codec.expect_feedback();
        }
        VectorCoder { codec, bits, seed, feedback }
    }

    /// The name of its codec.
    pub fn name(&self) -> &'static str {
        self.codec.id().name
    }

    /// The number of its codec, which frames carry.
    pub fn number(&self) -> u8 {
        self.codec.id().number
    }

    /// Whether values travel as they are.
    pub fn is_exact(&self) -> bool {
        self.codec.id() == Exact.id()
    }

    /// Whether what rounding takes is to be added to what is sent next.
    pub fn has_feedback(&self) -> bool {
        self.feedback && !self.is_exact()
    }

    fn level(&self) -> Level<'static> {
        Level { ratio: 1.0, bits: Bits::Uniform(self.bits) }
    }

    /// The bytes of so many values.
    pub fn bytes(&self, len: usize) -> usize {
        matrices(len).map(|(rows, columns)| self.codec.bytes(&self.level(), rows.len() / columns, columns)).sum()
    }

    /// The shorter last row is a message of its own, whose noise must not be the first row's: it takes the other
    /// direction, which no sender of slices uses under the same tag.
    fn key(&self, hop: Hop, columns: usize) -> MessageKey {
        let Hop { tag, from, to } = hop;
        let direction = match (tag.direction, columns) {
            (direction, COLUMNS) => direction,
            (Direction::Forward, _) => Direction::Reverse,
            (Direction::Reverse, _) => Direction::Forward,
        };
        MessageKey { seed: self.seed, tag: Tag { direction, ..tag }, from, to, drawn: tag.round }
    }

    /// Appends values, the first of which is number `start` of a longer slice.
    ///
    /// # Errors
    ///
    /// [`WireError::NotFinite`] where the codec takes finite values alone.
    pub fn encode(&mut self, hop: Hop, values: &[f32], start: usize, into: &mut Vec<u8>) -> Result<()> {
        if self.is_exact() && cfg!(target_endian = "little") {
            // Without a look at the values: one that is not finite is the business of whoever asked for it.
            into.extend_from_slice(bytemuck::cast_slice(values));
            return Ok(());
        }
        for (place, columns) in matrices(values.len()) {
            let (key, level) = (self.key(hop, columns), self.level());
            let data = &values[place.clone()];
            let rows = RowsRef { data, columns, rows: RowSet::Range(0..data.len() / columns) };
            let message = Message { key: &key, level: &level, memory: &mut Memory::default() };
            self.codec.encode(message, rows, into).map_err(|error| match error {
                WireError::NotFinite { codec, row, column, value } => {
                    let column = start + place.start + row * columns + column;
                    WireError::NotFinite { codec, row: 0, column, value }
                }
                other => other,
            })?;
        }
        Ok(())
    }

    /// Reads values from a payload of their size.
    ///
    /// # Errors
    ///
    /// Those of the codec, where the payload is none that it wrote.
    ///
    /// # Panics
    ///
    /// If the payload is shorter than [`VectorCoder::bytes`] of the values.
    pub fn decode(&mut self, hop: Hop, mut payload: &[u8], values: &mut [f32], store: Store) -> Result<()> {
        for (place, columns) in matrices(values.len()) {
            let (key, level) = (self.key(hop, columns), self.level());
            let data = &mut values[place];
            let count = data.len() / columns;
            let matrix;
            (matrix, payload) = payload.split_at(self.codec.bytes(&level, count, columns));
            let into = RowsMut { data, columns, rows: RowSet::Range(0..count) };
            let message = Message { key: &key, level: &level, memory: &mut Memory::default() };
            self.codec.decode(message, matrix, into, store)?;
        }
        Ok(())
    }

    /// Sets `residual` to what the values are more than what `payload` says they are.
    ///
    /// # Errors
    ///
    /// As [`VectorCoder::decode`].
    pub fn leave_over(&mut self, hop: Hop, payload: &[u8], values: &[f32], residual: &mut [f32]) -> Result<()> {
        self.decode(hop, payload, residual, Store::Set)?;
        residual.iter_mut().zip(values).for_each(|(left, value)| *left = value - *left);
        Ok(())
    }
}

impl std::fmt::Debug for VectorCoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let VectorCoder { bits, seed, feedback, .. } = self;
        write!(formatter, "VectorCoder({}, {bits} bits, seed {seed}, feedback {feedback})", self.name())
    }
}

/// A slice as matrices: all whole rows, and the rest as one row. Each with its number of columns.
fn matrices(len: usize) -> impl Iterator<Item = (Range<usize>, usize)> {
    let whole = len - len % COLUMNS;
    let parts = [(0..whole, COLUMNS), (whole..len, len - whole)];
    parts.into_iter().filter(|(place, _)| !place.is_empty())
}

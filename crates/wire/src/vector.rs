//! A flat slice of values, as parameters are, through a codec of rows.

use crate::codec::{self, CodecKind, Exact, Level, Memory, Message, RowSet, RowsMut, RowsRef, Store};
use crate::{Codec, Direction, MessageKey, Rank, Result, Tag, WireError};

use std::collections::BTreeMap;
use std::ops::Range;

/// How slices of values become bytes.
///
/// With error feedback, whoever sends adds what rounding took from the values of one message to the values of the next:
/// the sums over all messages then differ from the exact ones by what is left over now, however many messages there
/// were; and that stays bounded, because the codec is told ([`Codec::expect_feedback`]). Without it, an unbiased
/// codec's errors add up like a random walk and a biased one's like a slope.
///
/// Values travel in rows of 256, or, through a codec whose kind says so ([`CodecKind::of_matrices`]), as the matrices
/// that they are of ([`VectorCoder::of_matrices`]). Where a codec varies or prepares a state, four bytes in front of
/// each matrix say how many are its own.
pub struct VectorCoder {
    codec: Box<dyn Codec>,
    kind: CodecKind,
    level: Level<'static>,
    seed: u64,
    feedback: bool,
    /// The matrices of the whole slice, one behind the other; empty where values travel in rows of 256.
    matrices: Vec<Matrix>,
    /// What a codec that remembers has of each matrix.
    memories: BTreeMap<Stream, Memory>,
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

/// A run of values that is coded by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Matrix {
    /// Where it stands in the whole slice.
    place: Range<usize>,
    columns: usize,
    /// Which of the slice's it is.
    number: u16,
    /// Whether it is what is left of values in rows of 256, as one row.
    is_rest: bool,
}

/// Whose messages a memory is of: sender, receiver, step of the tag, whether this end encodes, where its matrix begins.
type Stream = (Rank, Rank, u16, bool, usize);

/// What [`VectorCoder::memories`] gives: numbers of streams, and values.
pub type Memories = (Vec<u32>, Vec<f32>);

/// The columns of the matrix as which a slice travels: short enough for a quantiser's grid to suit its values, long
/// enough for the grid's four bytes not to matter. What is left over is one shorter row.
const COLUMNS: usize = 256;

/// The bytes in front of a matrix whose size depends on its values.
const PREFIX: usize = 4;

impl VectorCoder {
    /// Values as they are. They need not be finite.
    pub fn exact() -> VectorCoder {
        VectorCoder::new(Box::new(Exact), &Exact::KIND, Level::WHOLE, 0)
    }

    /// Values through a codec of this kind at this level, with the run's seed. Values must be finite unless the codec
    /// is `exact`.
    pub fn new(codec: Box<dyn Codec>, kind: &CodecKind, level: Level<'static>, seed: u64) -> VectorCoder {
        let (feedback, matrices, memories) = Default::default();
        VectorCoder { codec, kind: *kind, level, seed, feedback, matrices, memories }
    }

    /// The same coder where what is lost of values is added to what is sent next.
    #[must_use]
    pub fn with_feedback(mut self) -> VectorCoder {
        self.codec.expect_feedback();
        self.feedback = true;
        self
    }

    /// The same coder of a slice that consists of matrices of so many rows and columns, for a codec that takes them.
    #[must_use]
    pub fn of_matrices(mut self, shapes: impl IntoIterator<Item = [usize; 2]>) -> VectorCoder {
        let mut at = 0;
        let shapes = shapes.into_iter().filter(|[rows, columns]| rows * columns > 0);
        let of = |(number, [rows, columns]): (usize, [usize; 2])| {
            let place = at..at + rows * columns;
            at = place.end;
            Matrix { place, columns, number: number as u16, is_rest: false }
        };
        self.matrices = if self.kind.of_matrices { shapes.enumerate().map(of).collect() } else { Vec::new() };
        self
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
        self.kind.id() == Exact.id()
    }

    /// Whether what rounding takes is to be added to what is sent next.
    pub fn has_feedback(&self) -> bool {
        self.feedback && !self.is_exact()
    }

    /// Whether a slice may take fewer bytes than [`VectorCoder::bytes`] says.
    pub fn varies(&self) -> bool {
        self.kind.varies || self.kind.prepares
    }

    /// A part of a slice of `len` values, with its ends moved to where the nearest matrix begins.
    pub fn without_cuts(&self, part: Range<usize>, len: usize) -> Range<usize> {
        if self.matrices.is_empty() {
            return part;
        }
        let starts = || self.matrices.iter().map(|matrix| matrix.place.start).filter(|&start| start < len);
        let nearest = |at: usize| starts().chain([len]).min_by_key(|start| start.abs_diff(at)).unwrap_or(len);
        nearest(part.start)..nearest(part.end)
    }

    /// What values of the whole slice travel as: its matrices, and what is in none as whole rows of 256 and the rest as
    /// one row.
    fn pieces(&self, place: Range<usize>) -> impl Iterator<Item = Matrix> + use<> {
        let inside = |matrix: &&Matrix| place.start <= matrix.place.start && matrix.place.end <= place.end;
        let matrices: Vec<Matrix> = self.matrices.iter().filter(inside).cloned().collect();
        let start = matrices.last().map_or(place.start, |matrix| matrix.place.end);
        let (whole, number) = (place.end - (place.end - start) % COLUMNS, self.matrices.len() as u16);
        let rows = Matrix { place: start..whole, columns: COLUMNS, number, is_rest: false };
        let rest = Matrix { place: whole..place.end, columns: place.end - whole, number, is_rest: true };
        matrices.into_iter().chain([rows, rest].into_iter().filter(|piece| !piece.place.is_empty()))
    }

    /// The bytes of these values of the whole slice; the most where it varies.
    pub fn bytes(&self, place: Range<usize>) -> usize {
        let of = |Matrix { place, columns, .. }: Matrix| {
            let state = if self.kind.prepares { self.codec.state_bytes(columns) } else { 0 };
            self.prefix() + state + self.codec.bytes(&self.level, place.len() / columns, columns)
        };
        self.pieces(place).map(of).sum()
    }

    fn prefix(&self) -> usize {
        if self.varies() { PREFIX } else { 0 }
    }

    /// Matrices have noise of their own by their number. A shorter last row is a message of its own, whose noise must
    /// not be the first row's: it takes the other direction, which no sender of slices uses under the same tag.
    fn key(&self, hop: Hop, piece: &Matrix) -> MessageKey {
        let Hop { tag, from, to } = hop;
        let direction = match (tag.direction, piece.is_rest) {
            (direction, false) => direction,
            (Direction::Forward, true) => Direction::Reverse,
            (Direction::Reverse, true) => Direction::Forward,
        };
        let layer = tag.layer.wrapping_add(piece.number);
        MessageKey { seed: self.seed, tag: Tag { direction, layer, ..tag }, from, to, drawn: tag.round }
    }

    /// Appends values, the first of which is number `start` of the whole slice.
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
        for piece in self.pieces(start..start + values.len()) {
            let (key, columns, place) = (self.key(hop, &piece), piece.columns, piece.place);
            let (begin, prefix) = (into.len(), self.prefix());
            into.resize(begin + prefix, 0);
            let data = &values[place.start - start..place.end - start];
            let rows = RowsRef { data, columns, rows: RowSet::Range(0..data.len() / columns) };
            let (mut none, stream) = (Memory::default(), (hop.from, hop.to, hop.tag.step, true, place.start));
            let memory = if self.kind.remembers { self.memories.entry(stream).or_default() } else { &mut none };
            let message = Message { key: &key, level: &self.level, memory };
            codec::append(self.codec.as_mut(), message, rows, into).map_err(|error| match error {
                WireError::NotFinite { codec, row, column, value } => {
                    WireError::NotFinite { codec, row: 0, column: place.start + row * columns + column, value }
                }
                other => other,
            })?;
            let bytes = (into.len() - begin - prefix) as u32;
            into[begin..begin + prefix].copy_from_slice(&bytes.to_le_bytes()[..prefix]);
        }
        Ok(())
    }

    /// Reads values, the first of which is number `start` of the whole slice.
    ///
    /// # Errors
    ///
    /// Those of the codec, where the payload is none that it wrote.
    pub fn decode(
        &mut self,
        hop: Hop,
        payload: &[u8],
        (values, start): (&mut [f32], usize),
        store: Store,
    ) -> Result<()> {
        let mut rest = payload;
        for piece in self.pieces(start..start + values.len()) {
            let (key, columns, place) = (self.key(hop, &piece), piece.columns, piece.place);
            let count = place.len() / columns;
            let bytes = match rest.split_first_chunk::<PREFIX>() {
                Some((prefix, behind)) if self.varies() => {
                    rest = behind;
                    u32::from_le_bytes(*prefix) as usize
                }
                _ => self.codec.bytes(&self.level, count, columns),
            };
            let (expected, found) = (bytes as u64, rest.len() as u64);
            let short = WireError::PayloadSize { what: self.name(), expected, found };
            let matrix;
            (matrix, rest) = rest.split_at_checked(bytes).ok_or(short)?;
            let data = &mut values[place.start - start..place.end - start];
            let into = RowsMut { data, columns, rows: RowSet::Range(0..count) };
            let (mut none, stream) = (Memory::default(), (hop.from, hop.to, hop.tag.step, false, place.start));
            let memory = if self.kind.remembers { self.memories.entry(stream).or_default() } else { &mut none };
            codec::take(self.codec.as_mut(), Message { key: &key, level: &self.level, memory }, matrix, into, store)?;
        }
        match rest.len() {
            0 => Ok(()),
            more => Err(WireError::malformed(format!("{more} bytes behind the last value"))),
        }
    }

    /// Sets `residual` to what the values are more than what `payload` says they are.
    ///
    /// # Errors
    ///
    /// As [`VectorCoder::decode`].
    pub fn leave_over(
        &mut self,
        hop: Hop,
        payload: &[u8],
        (values, start): (&[f32], usize),
        residual: &mut [f32],
    ) -> Result<()> {
        self.decode(hop, payload, (&mut *residual, start), Store::Set)?;
        residual.iter_mut().zip(values).for_each(|(left, value)| *left = value - *left);
        Ok(())
    }

    /// What a codec that remembers has, to be saved: for each stream its five numbers and how many memories stand one
    /// inside the other, and for each of these its round and how many values it has; and all values.
    pub fn memories(&self) -> Memories {
        let (mut numbers, mut values) = Memories::default();
        for (&(from, to, step, encodes, start), memory) in &self.memories {
            let layers: Vec<&Memory> = std::iter::successors(Some(memory), |memory| memory.inside()).collect();
            let stream = [from.0, to.0, step.into(), encodes.into(), start as u32, layers.len() as u32];
            numbers.extend(stream);
            for memory in layers {
                numbers.extend([memory.round, memory.values.len() as u32]);
                values.extend_from_slice(&memory.values);
            }
        }
        (numbers, values)
    }

    /// Takes back what [`VectorCoder::memories`] gave. `None` where it is not that.
    pub fn remember(&mut self, (numbers, values): &Memories) -> Option<()> {
        let (mut rest, mut values) = (&numbers[..], &values[..]);
        while !rest.is_empty() {
            let (&[from, to, step, encodes, start, layers], behind) = rest.split_first_chunk()?;
            rest = behind;
            if layers as usize > Memory::NESTED_MAX {
                return None;
            }
            let mut memories = Vec::new();
            for _ in 0..layers {
                let (&[round, len], behind) = rest.split_first_chunk()?;
                let own;
                (own, values) = values.split_at_checked(len as usize)?;
                rest = behind;
                memories.push(Memory::of(round, own.to_vec()));
            }
            let memory = memories.into_iter().rev().reduce(|inside, outside| outside.holding(inside))?;
            let stream = (Rank(from), Rank(to), u16::try_from(step).ok()?, encodes != 0, start as usize);
            self.memories.insert(stream, memory);
        }
        values.is_empty().then_some(())
    }
}

impl std::fmt::Debug for VectorCoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let VectorCoder { level, seed, feedback, .. } = self;
        write!(formatter, "VectorCoder({}, {level:?}, seed {seed}, feedback {feedback})", self.name())
    }
}

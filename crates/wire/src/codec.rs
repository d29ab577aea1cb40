//! How rows become bytes.
//!
//! One file per codec; a codec joins by its file and one line in [`REGISTRY`].

mod exact;
mod half;
mod masked;
mod quantised;

pub use exact::Exact;
pub use half::Half;
pub use masked::{Masked, columns, travelling};
pub use quantised::Quantised;

use crate::error::expect_payload;
use crate::{Frame, Kind, Rank, Result, Tag, WireError};
use laconic_key::{Key, Purpose};
use std::ops::Range;

/// What a configuration says of a codec besides its name; each codec reads the options that it documents.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// `masked`: the codec of the columns that travel; `exact` if none is named.
    pub inner: Option<String>,
    /// `masked`: whether the first columns travel instead of random ones.
    pub prefix: bool,
    /// `masked`: whether columns that travel are multiplied by d / k, which makes the codec unbiased.
    pub rescale: bool,
}

/// Makes a codec.
pub type Make = fn(&Options) -> Result<Box<dyn Codec>>;

/// The codecs by name. Ids are part of the wire format: never reuse one; 0 is [`NO_CODEC`](crate::NO_CODEC).
pub const REGISTRY: &[(&str, Make)] = &[
    ("exact", |_| Ok(Box::new(Exact))),
    ("half", |_| Ok(Box::new(Half))),
    ("quantised", |_| Ok(Box::new(Quantised::default()))),
    ("masked", |options| Ok(Box::new(Masked::with_options(options)?))),
];

/// The codec of this name.
pub fn named(name: &str, options: &Options) -> Result<Box<dyn Codec>> {
    let known = || REGISTRY.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    match REGISTRY.iter().find(|(registered, _)| *registered == name) {
        Some((_, make)) => make(options),
        None => Err(WireError::UnknownCodec { given: name.to_owned(), known: known() }),
    }
}

/// What a message is, for codecs that round or mask at random: both ends derive the same numbers from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageKey {
    /// The run's seed.
    pub seed: u64,
    /// The frame's tag.
    pub tag: Tag,
    /// The sender.
    pub from: Rank,
    /// The receiver.
    pub to: Rank,
}

impl MessageKey {
    /// The random stream of this message alone for one purpose: rounding noise is independent of every other message's.
    pub fn stream(&self, purpose: Purpose) -> Key {
        let link = u64::from(self.from.0) << 32 | u64::from(self.to.0);
        let Tag { kind, direction, layer, step, .. } = self.tag;
        let place = u64::from(layer) << 32 | u64::from(step) << 16 | (kind as u64) << 1 | direction as u64;
        self.of_round(purpose).with(place).with(link)
    }

    /// The random stream that all links and both directions of a layer share in a round: with it the gradients of a
    /// masked message come back in the columns that went out. Evaluations have their own.
    pub fn shared_stream(&self, purpose: Purpose) -> Key {
        let Tag { kind, layer, .. } = self.tag;
        let place = u64::from(layer) << 1 | u64::from(kind == Kind::Evaluation);
        self.of_round(purpose).with(place)
    }

    fn of_round(&self, purpose: Purpose) -> Key {
        Key::new(self.seed, purpose).with(self.tag.round.into())
    }
}

/// How much of its rows a message carries: what controllers turn and an assigner chooses. Both ends know it without a
/// word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level<'a> {
    /// d / k: width of a row over the number of its columns that travel; 1 or more. Read by masks.
    pub ratio: f64,
    /// Bits of a value. Read by quantisers.
    pub bits: Bits<'a>,
}

impl Level<'_> {
    /// Everything: ratio 1, 32 bits.
    pub const WHOLE: Level<'static> = Level { ratio: 1.0, bits: Bits::Uniform(32) };
}

/// Bits of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bits<'a> {
    /// The same in every row.
    Uniform(u8),
    /// Each row's own, by its position in the message.
    Rows(&'a [u8]),
}

/// Which rows of a matrix a message carries, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowSet<'a> {
    /// Consecutive rows.
    Range(Range<usize>),
    /// These rows; repeats are allowed.
    Indices(&'a [u32]),
}

impl RowSet<'_> {
    /// How many rows.
    pub fn len(&self) -> usize {
        match self {
            RowSet::Range(range) => range.len(),
            RowSet::Indices(indices) => indices.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row of the matrix at a position of the message.
    pub fn at(&self, position: usize) -> usize {
        match self {
            RowSet::Range(range) => range.start + position,
            RowSet::Indices(indices) => indices[position] as usize,
        }
    }

    /// The rows at these positions.
    fn part(&self, positions: Range<usize>) -> RowSet<'_> {
        match self {
            RowSet::Range(range) => RowSet::Range(range.start + positions.start..range.start + positions.end),
            RowSet::Indices(indices) => RowSet::Indices(&indices[positions]),
        }
    }
}

/// Rows to be sent: a row-major matrix and the rows of it that travel, so that gathering and encoding are one pass.
#[derive(Debug, Clone)]
pub struct RowsRef<'a> {
    /// The matrix, `[any, columns]`.
    pub data: &'a [f32],
    /// The width of a row.
    pub columns: usize,
    /// Which rows travel.
    pub rows: RowSet<'a>,
}

impl<'a> RowsRef<'a> {
    /// The row at a position of the message.
    #[inline]
    pub fn row(&self, position: usize) -> &'a [f32] {
        &self.data[self.rows.at(position) * self.columns..][..self.columns]
    }
}

/// Rows to be received into: a row-major matrix and the rows of it that the message fills.
#[derive(Debug)]
pub struct RowsMut<'a> {
    /// The matrix, `[any, columns]`.
    pub data: &'a mut [f32],
    /// The width of a row.
    pub columns: usize,
    /// Where the message's rows land.
    pub rows: RowSet<'a>,
}

impl RowsMut<'_> {
    /// The row that a position of the message lands in.
    #[inline]
    pub fn row(&mut self, position: usize) -> &mut [f32] {
        &mut self.data[self.rows.at(position) * self.columns..][..self.columns]
    }
}

/// What decoding does with the values that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// Replaces them: copies of halo rows.
    Set,
    /// Adds to them: gradients that return. A row named twice is added to twice, in order.
    Add,
}

/// A way to write rows of f32 as bytes and to read them back.
///
/// Called once per message by the halo exchange, through `dyn`: some hundred calls per round over 10⁴ to 10⁷ values
/// each, so that the indirect call costs nothing and every codec is compiled once. Encoders see the rows in place; the
/// alternative, a gathered matrix, is one more pass over memory. Both ends must agree on codec, key and shape without a
/// word: a frame carries no shape, and a payload of the wrong size is an error.
pub trait Codec: Send {
    /// The name in configurations and reports.
    fn name(&self) -> &'static str;

    /// The number in frames.
    fn id(&self) -> u8;

    /// The payload bytes of a message of this level and shape, exactly.
    fn bytes(&self, level: &Level<'_>, rows: usize, columns: usize) -> usize;

    /// Appends the rows to `into`. Refuses values that are not finite, naming the first; then `into` is as before.
    fn encode(&mut self, key: &MessageKey, level: &Level<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()>;

    /// Reads a payload that was encoded with the same key, level and shape. The payload may be anything: a wrong size
    /// is an error, wrong content gives wrong numbers, nothing panics.
    fn decode(
        &mut self,
        key: &MessageKey,
        level: &Level<'_>,
        payload: &[u8],
        into: RowsMut<'_>,
        store: Store,
    ) -> Result<()>;
}

/// Encodes into a frame and notes the codec in it.
pub fn write(
    codec: &mut dyn Codec,
    key: &MessageKey,
    level: &Level<'_>,
    rows: RowsRef<'_>,
    frame: &mut Frame,
) -> Result<()> {
    frame.set_codec(codec.id());
    frame.payload_mut().reserve(codec.bytes(level, rows.rows.len(), rows.columns));
    codec.encode(key, level, rows, frame.payload_mut())
}

/// Decodes a frame, after checking that the sender used the same codec.
pub fn read(
    codec: &mut dyn Codec,
    key: &MessageKey,
    level: &Level<'_>,
    frame: &Frame,
    into: RowsMut<'_>,
    store: Store,
) -> Result<()> {
    if frame.codec() != codec.id() {
        return Err(WireError::OtherCodec { expected: codec.id(), name: codec.name(), found: frame.codec() });
    }
    codec.decode(key, level, frame.payload(), into, store)
}

/// How many values are converted at once: a kibibyte. Larger blocks make the copy behind each wait for the loads before
/// it; with 2,048 values, encoding in order is a third slower.
const BLOCK: usize = 256;

/// How many scattered rows are fetched together. A row's conversion fills the processor's window, so rows fetched one
/// by one wait for memory one by one: 3.1 instead of 4.7 GB/s (`examples/codec_speed.rs`, rows of 256 in random order).
const FETCHED: usize = 8;

/// How many f32 make a cache line.
const LINE: usize = 16;

/// The loop that fixed-width codecs share: appends each value of the rows as `WIDTH` bytes, one pass over memory, and
/// finds out whether all were finite.
fn append_values<const WIDTH: usize>(
    codec: &'static str,
    rows: &RowsRef<'_>,
    into: &mut Vec<u8>,
    to_bytes: impl Fn(u32) -> [u8; WIDTH] + Copy,
) -> Result<()> {
    let before = into.len();
    into.reserve(rows.rows.len() * rows.columns * WIDTH);
    let mut block = [[0; WIDTH]; BLOCK];
    let mut exponents = 0;
    match &rows.rows {
        RowSet::Range(range) => {
            let values = &rows.data[range.start * rows.columns..range.end * rows.columns];
            exponents |= append_slice(values, &mut block, into, to_bytes);
        }
        RowSet::Indices(indices) => {
            for first in (0..indices.len()).step_by(FETCHED) {
                let group = first..indices.len().min(first + FETCHED);
                // One value of each line, checked like all the others later, brings the line here.
                for position in group.clone() {
                    exponents |= rows.row(position).iter().step_by(LINE).fold(0, |all, value| all | carry(*value));
                }
                for position in group {
                    exponents |= append_slice(rows.row(position), &mut block, into, to_bytes);
                }
            }
        }
    }
    if exponents >> 31 == 0 {
        return Ok(());
    }
    into.truncate(before);
    Err(not_finite(codec, rows))
}

/// Appends the values; the highest bit of the result says whether one was not finite.
fn append_slice<const WIDTH: usize>(
    values: &[f32],
    block: &mut [[u8; WIDTH]; BLOCK],
    into: &mut Vec<u8>,
    to_bytes: impl Fn(u32) -> [u8; WIDTH],
) -> u32 {
    let mut exponents = 0;
    for values in values.chunks(BLOCK) {
        let block = &mut block[..values.len()];
        for (bytes, &value) in block.iter_mut().zip(values) {
            exponents |= carry(value);
            *bytes = to_bytes(value.to_bits());
        }
        into.extend_from_slice(block.as_flattened());
    }
    exponents
}

/// Adds one to the exponent's field, which carries into the sign's place exactly if all its bits are set: if the value
/// is not finite. Integer arithmetic without a branch, whose results may be or-ed: every compiler makes vector code of
/// it.
#[inline]
fn carry(value: f32) -> u32 {
    (value.to_bits() & 0x7fff_ffff) + 0x0080_0000
}

/// Finds the value that [`append_values`] noticed.
#[cold]
fn not_finite(codec: &'static str, rows: &RowsRef<'_>) -> WireError {
    for position in 0..rows.rows.len() {
        for (column, &value) in rows.row(position).iter().enumerate() {
            if !value.is_finite() {
                return WireError::NotFinite { codec, row: rows.rows.at(position), column, value };
            }
        }
    }
    unreachable!("the encoder met a value that is not finite")
}

/// The loop that fixed-width codecs share: reads `WIDTH` bytes per value into the rows.
fn read_values<const WIDTH: usize>(
    codec: &'static str,
    payload: &[u8],
    mut into: RowsMut<'_>,
    store: Store,
    from_bytes: impl Fn([u8; WIDTH]) -> f32 + Copy,
) -> Result<()> {
    let (count, columns) = (into.rows.len(), into.columns);
    expect_payload(codec, count * columns * WIDTH, payload.len())?;
    let (values, _) = payload.as_chunks::<WIDTH>();
    if let RowSet::Range(range) = &into.rows {
        let target = &mut into.data[range.start * columns..range.end * columns];
        store_slice(values, target, store, from_bytes);
        return Ok(());
    }
    for position in 0..count {
        store_slice(&values[position * columns..][..columns], into.row(position), store, from_bytes);
    }
    Ok(())
}

fn store_slice<const WIDTH: usize>(
    values: &[[u8; WIDTH]],
    target: &mut [f32],
    store: Store,
    from_bytes: impl Fn([u8; WIDTH]) -> f32,
) {
    match store {
        Store::Set => target.iter_mut().zip(values).for_each(|(target, &bytes)| *target = from_bytes(bytes)),
        Store::Add => target.iter_mut().zip(values).for_each(|(target, &bytes)| *target += from_bytes(bytes)),
    }
}

//! How rows become bytes.
//!
//! One file per codec. A codec joins by its file and one line in the list of them (`members.rs`), or from outside by
//! [`CodecRegistry::with`].

mod codewords;
mod entropy;
mod exact;
mod grouped;
mod half;
mod kind;
mod largest;
mod low_rank;
mod masked;
mod members;
mod memory;
mod message;
mod options;
mod quantised;
mod rows;
mod skipping;
mod symbols;
mod top;
mod values;
mod words;

pub use codewords::Codewords;
pub use entropy::Entropy;
pub use exact::Exact;
pub use grouped::Grouped;
pub use half::Half;
pub use kind::{CodecId, CodecKind, CodecRegistry, Reads};
pub use largest::Largest;
pub use low_rank::LowRank;
pub use masked::{Masked, columns, travelling};
pub use memory::Memory;
pub use message::{Bits, Level, Message, MessageKey};
pub use options::{OptionValue, Options};
pub use quantised::Quantised;
pub use rows::{RowSet, RowsMut, RowsRef, Store};
pub use skipping::Skipping;
pub use symbols::{decode_symbols, encode_symbols, most_symbol_bytes};
pub use top::Top;
pub use words::{words_in_book, words_of};

use crate::{Frame, NO_CODEC, Result, WireError};

/// A way to write rows of f32 as bytes and to read them back.
///
/// Called once per message by the halo exchange, through `dyn`: some hundred calls per round over 10⁴ to 10⁷ values
/// each, so that the indirect call costs nothing and every codec is compiled once. Encoders see the rows in place; the
/// alternative, a gathered matrix, is one more pass over memory. Both ends must agree on codec, key and shape without a
/// word: a frame carries no shape, and a payload of the wrong size is an error.
pub trait Codec: Send {
    /// What frames and errors say of it.
    fn id(&self) -> CodecId;

    /// The payload bytes of a message of this level and shape, without a state in front, exactly; the most where the
    /// kind varies. Never fewer for more bits, more columns or a smaller ratio: the finest level that a message may
    /// have bounds it.
    ///
    /// # Panics
    ///
    /// May panic at levels that the codec does not know, which are a defect of the program.
    fn bytes(&self, level: &Level<'_>, rows: usize, columns: usize) -> usize;

    /// Told, before its first message, that what it takes from values is added to the next message's. What is left over
    /// then stays bounded only if it is always less than what was to be sent (Stich et al., 2018; Karimireddy et al.,
    /// 2019), which holds for rounding to the nearest and not for coarse unbiased rounding. Codecs for which it holds
    /// at every level need do nothing, and one that adds it itself must leave that to the caller;
    /// [`laws::codecs::check_feedback`](crate::laws::codecs::check_feedback) tells.
    fn expect_feedback(&mut self) {}

    /// How far apart the ends of the grid are onto which a row is rounded with so many bits: what its rounding errors
    /// are measured by. By default from the row's smallest value to its largest.
    fn span(&self, bits: u8, row: &[f32]) -> f64 {
        let _ = bits;
        let (low, high) = row.iter().fold((f32::MAX, f32::MIN), |(low, high), &v| (low.min(v), high.max(v)));
        (f64::from(high) - f64::from(low)).max(0.0)
    }

    /// Whether its payloads are those of [`Half`], whatever the level: rows that are stored as bfloat16 then travel as
    /// they are, see [`Half::append_stored`] and [`Half::read_stored`].
    fn is_half(&self) -> bool {
        false
    }

    /// Appends the rows to `into`.
    ///
    /// # Errors
    ///
    /// [`WireError::NotFinite`] names the first value that is not finite; then `into` is as before.
    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()>;

    /// The bytes of the state that it prepares for a stream of rows of this width, such as a codebook, exactly; 0 where
    /// it prepares none. Its kind says so ([`CodecKind::prepares`]).
    fn state_bytes(&self, columns: usize) -> usize {
        let _ = columns;
        0
    }

    /// Prepares the state of a stream from the rows of its first message, and appends it as the receiver gets it: in
    /// front of that message ([`append`]).
    ///
    /// # Errors
    ///
    /// As [`Codec::encode`].
    fn prepare(&mut self, key: &MessageKey, rows: &RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        let _ = (key, rows, into);
        Ok(())
    }

    /// Puts a state that was prepared for rows of this width into an empty memory, at either end, which then is not
    /// empty any more. The state may be anything.
    ///
    /// # Errors
    ///
    /// [`WireError::PayloadSize`] and [`WireError::Malformed`].
    fn take_state(&mut self, state: &[u8], columns: usize, memory: &mut Memory) -> Result<()> {
        let _ = (state, columns, memory);
        Ok(())
    }

    /// Reads a payload that was encoded with the same key, level and shape. The payload may be anything: wrong content
    /// gives wrong numbers, nothing panics.
    ///
    /// # Errors
    ///
    /// [`WireError::PayloadSize`] if the payload has not the size that follows from level and shape, and
    /// [`WireError::Malformed`] if its content points to where nothing is, such as a position behind the last value.
    fn decode(&mut self, message: Message<'_>, payload: &[u8], into: RowsMut<'_>, store: Store) -> Result<()>;
}

/// Encodes into a frame and notes the codec in it. A codec that had something to send and sent nothing has written
/// nothing: then the frame says [`NO_CODEC`].
///
/// # Errors
///
/// Those of [`Codec::encode`].
pub fn write(codec: &mut dyn Codec, message: Message<'_>, rows: RowsRef<'_>, frame: &mut Frame) -> Result<()> {
    frame.set_codec(codec.id().number);
    let bytes = codec.bytes(message.level, rows.rows.len(), rows.columns);
    frame.payload_mut().reserve(bytes);
    append(codec, message, rows, frame.payload_mut())?;
    if bytes > 0 && frame.payload().is_empty() {
        frame.set_codec(NO_CODEC);
    }
    Ok(())
}

/// Decodes a frame, after checking that the sender used the same codec, or none for no payload.
///
/// # Errors
///
/// [`WireError::OtherCodec`], and those of [`Codec::decode`].
pub fn read(codec: &mut dyn Codec, message: Message<'_>, frame: &Frame, into: RowsMut<'_>, store: Store) -> Result<()> {
    expect_codec(codec, frame)?;
    take(codec, message, frame.payload(), into, store)
}

/// Appends a message, behind the state of its stream where it is the first one.
///
/// # Errors
///
/// Those of [`Codec::prepare`] and [`Codec::encode`].
pub fn append(codec: &mut dyn Codec, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
    let Message { key, level, memory } = message;
    let (start, columns) = (into.len(), rows.columns);
    let begins = codec.state_bytes(columns) > 0 && memory.is_empty();
    let write = |memory: &mut Memory| {
        if begins {
            codec.prepare(key, &rows, into)?;
            codec.take_state(&into[start..], columns, memory)?;
        }
        codec.encode(Message { key, level, memory }, rows, into)
    };
    let written = write(&mut *memory);
    if begins && written.is_err() {
        into.truncate(start);
        *memory = Memory::default();
    }
    written
}

/// Reads a message that [`append`] wrote.
///
/// # Errors
///
/// Those of [`Codec::take_state`] and [`Codec::decode`].
pub fn take(
    codec: &mut dyn Codec,
    message: Message<'_>,
    payload: &[u8],
    into: RowsMut<'_>,
    store: Store,
) -> Result<()> {
    let state = codec.state_bytes(into.columns);
    if state == 0 || !message.memory.is_empty() {
        return codec.decode(message, payload, into, store);
    }
    let Message { key, level, memory } = message;
    let (expected, found) = (state as u64, payload.len() as u64);
    let parts = payload.split_at_checked(state);
    let (state, payload) = parts.ok_or(WireError::PayloadSize { what: codec.id().name, expected, found })?;
    codec.take_state(state, into.columns, memory)?;
    let read = codec.decode(Message { key, level, memory: &mut *memory }, payload, into, store);
    if read.is_err() {
        *memory = Memory::default();
    }
    read
}

/// Checks that the sender of a frame used the same codec, or none for no payload.
///
/// # Errors
///
/// [`WireError::OtherCodec`].
pub fn expect_codec(codec: &dyn Codec, frame: &Frame) -> Result<()> {
    let id = codec.id();
    let nothing = frame.codec() == NO_CODEC && frame.payload().is_empty();
    if frame.codec() == id.number || nothing {
        return Ok(());
    }
    Err(WireError::OtherCodec { expected: id.number, name: id.name, found: frame.codec() })
}

//! `masked`: only some columns of a message travel, the same ones in every row, and no index does.
//!
//! This is the compressor of VARCO (Cerviño, Turja, Mostafa, Himayat and Ribeiro, arXiv 2406.17611): both ends derive
//! the columns from the message's key, with no state that a skipped call could put out of step.

use super::kind::MASKED;
use super::{Codec, CodecId, CodecKind, CodecRegistry, Level, Message, MessageKey, Options, Reads};
use super::{RowSet, RowsMut, RowsRef, Store};
use crate::{Result, WireError};
use laconic_key::Purpose;

/// Sends `k = max(1, ⌊d / ratio⌋)` of `d` columns through another codec; the receiver takes the others for zeros.
///
/// The columns are random ones, drawn for each layer and round and shared by all links and both directions, so that
/// gradients come back in the columns that went out; or, on request, the first ones. For one row x the random columns'
/// error has the mean square `(1 − k/d)·‖x‖²`; multiplied by `d/k` on arrival, also on request, they are unbiased with
/// the mean square `(d/k − 1)·‖x‖²`. With the inner codec `exact` this is a linear map, a projection, and its own
/// adjoint. With `k = d` the payload is the inner codec's.
///
/// A message costs the inner codec's pass over `k` columns and one pass that gathers or scatters them; `k = d` costs
/// nothing. Only values that travel need to be finite.
pub struct Masked {
    inner: Box<dyn Codec>,
    prefix: bool,
    rescale: bool,
    /// The columns that travel, ascending, `[k]`.
    columns: Vec<u32>,
    /// Their values, `[rows, k]`.
    values: Vec<f32>,
}

impl Masked {
    /// The entry in registries. Options: `inner`, the codec of the columns that travel, `exact` if none is named;
    /// `columns`, "random" (the default) or "prefix"; `rescale`, whether values are multiplied by d / k on arrival.
    pub const KIND: CodecKind = CodecKind {
        name: "masked",
        number: MASKED,
        options: &["inner", "columns", "rescale"],
        reads: Reads { ratio: true, bits: false },
        wraps: true,
        draws: true,
        build: |options, registry| Ok(Box::new(Masked::with_options(options, registry)?)),
        ..CodecKind::PLAIN
    };

    /// A mask in front of another codec, of the first columns if `prefix`, whose values are multiplied by d / k on
    /// arrival if `rescale`.
    ///
    /// # Errors
    ///
    /// [`WireError::NestedMask`] if the other codec is a mask: the product of two ratios is one ratio.
    pub fn new(inner: Box<dyn Codec>, prefix: bool, rescale: bool) -> Result<Masked> {
        if inner.id().number & MASKED != 0 {
            return Err(WireError::NestedMask);
        }
        Ok(Masked { inner, prefix, rescale, columns: Vec::new(), values: Vec::new() })
    }

    /// The codec that the options describe, with an inner one of this registry that remembers nothing: other columns,
    /// or more of them, travel in the next message, and what was remembered of these would be taken for theirs.
    ///
    /// # Errors
    ///
    /// [`WireError::NestedMask`], [`WireError::BadOption`], and those of making the inner codec.
    pub fn with_options(options: &Options, registry: &CodecRegistry) -> Result<Masked> {
        let prefix = match options.text("columns")? {
            None | Some("random") => false,
            Some("prefix") => true,
            Some(_) => return Err(options.refuse("columns", "\"random\" or \"prefix\"")),
        };
        if registry.describe(Masked::KIND.name, options)?.remembers {
            return Err(options.refuse("inner", "a codec that remembers nothing"));
        }
        Masked::new(registry.build_inner(options)?, prefix, options.flag("rescale")?.unwrap_or(false))
    }
}

/// How many of `d` columns travel at this ratio: `max(1, ⌊d / ratio⌋)`, none of none and never more than all.
///
/// Quotients that miss a whole number by rounding alone count as that number: an exponential ramp's last bit differs
/// from one machine's mathematics library to the next, and both ends of a link must keep the same columns.
pub fn travelling(d: usize, ratio: f64) -> usize {
    ((d as f64 / ratio * (1.0 + 1e-12)) as usize).max(1).min(d)
}

/// Puts the `k` of `d` columns that travel in this message into `into`, ascending: the first ones of all columns, or of
/// a permutation that depends on the run, round and layer, and on whether this is an evaluation, but on neither link
/// nor direction. So a smaller mask of the same layer and round is part of a larger one.
///
/// # Panics
///
/// If `k` is more than `d`.
pub fn columns(key: &MessageKey, prefix: bool, d: usize, k: usize, into: &mut Vec<u32>) {
    assert!(k <= d, "{k} of {d} columns");
    into.clear();
    into.extend(0..u32::try_from(d).expect("fewer than 2³² columns"));
    if !prefix && k < d {
        key.shared_stream(Purpose::Mask).shuffle(into);
        into[..k].sort_unstable();
    }
    into.truncate(k);
}

impl Codec for Masked {
    fn id(&self) -> CodecId {
        CodecId { number: MASKED | self.inner.id().number, ..Masked::KIND.id() }
    }

    fn bytes(&self, level: &Level<'_>, rows: usize, columns: usize) -> usize {
        self.inner.bytes(level, rows, travelling(columns, level.ratio))
    }

    fn expect_feedback(&mut self) {
        self.inner.expect_feedback();
    }

    fn span(&self, bits: u8, row: &[f32]) -> f64 {
        self.inner.span(bits, row)
    }

    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        let (d, k, count) = (rows.columns, travelling(rows.columns, message.level.ratio), rows.rows.len());
        if k == d {
            return self.inner.encode(message, rows, into).map_err(|error| self.say(error, |at| at));
        }
        columns(message.key, self.prefix, d, k, &mut self.columns);
        self.values.clear();
        for position in 0..count {
            let row = rows.row(position);
            match self.prefix {
                true => self.values.extend_from_slice(&row[..k]),
                false => self.values.extend(self.columns.iter().map(|&column| row[column as usize])),
            }
        }
        let gathered = RowsRef { data: &self.values, columns: k, rows: RowSet::Range(0..count) };
        self.inner.encode(message, gathered, into).map_err(|error| {
            self.say(error, |(position, place)| (rows.rows.at(position), self.columns[place] as usize))
        })
    }

    fn decode(&mut self, message: Message<'_>, payload: &[u8], mut into: RowsMut<'_>, store: Store) -> Result<()> {
        let Message { key, level, memory } = message;
        let (d, k, count) = (into.columns, travelling(into.columns, level.ratio), into.rows.len());
        if k == d {
            return self.inner.decode(Message { key, level, memory }, payload, into, store);
        }
        // Every value is overwritten by the inner codec, or nothing of this is read.
        self.values.resize(count * k, 0.0);
        let scattered = RowsMut { data: &mut self.values, columns: k, rows: RowSet::Range(0..count) };
        self.inner.decode(Message { key, level, memory }, payload, scattered, Store::Set)?;
        columns(key, self.prefix, d, k, &mut self.columns);
        let factor = if self.rescale { d as f32 / k as f32 } else { 1.0 };
        for (position, values) in self.values.chunks_exact(k).enumerate() {
            let (row, pairs) = (into.row(position), self.columns.iter().zip(values));
            match store {
                Store::Set => {
                    row.fill(0.0);
                    pairs.for_each(|(&column, value)| row[column as usize] = value * factor);
                }
                Store::Add => pairs.for_each(|(&column, value)| row[column as usize] += value * factor),
            }
        }
        Ok(())
    }
}

impl Masked {
    /// The inner codec's complaint, in this codec's name and with row and column of the whole matrix.
    fn say(&self, error: WireError, whole: impl Fn((usize, usize)) -> (usize, usize)) -> WireError {
        match error {
            WireError::NotFinite { row, column, value, .. } => {
                let (row, column) = whole((row, column));
                WireError::NotFinite { codec: Masked::KIND.name, row, column, value }
            }
            other => other,
        }
    }
}

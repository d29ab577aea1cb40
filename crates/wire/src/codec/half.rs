//! `half`: every value as bfloat16, two bytes each, little-endian.
//!
//! bfloat16 is the upper half of an f32: the same eight exponent bits and seven bits of fraction. IEEE's half precision
//! is no choice here: gradients of 1e-8 lie below what its five exponent bits hold.

use super::values::{append_values, read_values};
use super::{Codec, CodecId, CodecKind, Level, Message, RowSet, RowsMut, RowsRef, Store};
use crate::error::expect_payload;
use crate::{Result, WireError};

/// Sends f32 rounded to the nearest bfloat16, ties to even: 2 bytes per value, relative error at most 2⁻⁸ for normal
/// numbers.
///
/// Values beyond the largest bfloat16 become the largest bfloat16, never infinity, and keep to the same bound. For
/// subnormal numbers the error is at most 2⁻¹³⁴. Not linear; the backward pass treats it as the identity.
#[derive(Debug, Clone, Copy, Default)]
pub struct Half;

/// The largest finite bfloat16, about 3.39e38.
const LARGEST: u32 = 0x7f7f;

/// Rounds the upper half of a finite f32 to nearest, ties to even.
#[inline]
fn round(bits: u32) -> u16 {
    let magnitude = bits & 0x7fff_ffff;
    let rounded = (magnitude + 0x7fff + (magnitude >> 16 & 1)) >> 16;
    (rounded.min(LARGEST) | (bits >> 16 & 0x8000)) as u16
}

impl Half {
    /// The entry in registries.
    pub const KIND: CodecKind =
        CodecKind { name: "half", number: 2, build: |_, _| Ok(Box::new(Half)), ..CodecKind::PLAIN };

    /// The bits of the nearest bfloat16 number.
    pub fn rounded(value: f32) -> u16 {
        round(value.to_bits())
    }

    /// A bfloat16 number as it is written.
    pub fn widened(bytes: [u8; 2]) -> f32 {
        f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
    }

    /// Appends rows that are stored as bfloat16, of which `bits` gives the bits: what encoding them as f32 would
    /// append, without a conversion.
    ///
    /// # Errors
    ///
    /// [`WireError::NotFinite`] names the first value that is not finite; then `into` is as before.
    pub fn append_stored<T: Copy>(
        rows: &RowsRef<'_, T>,
        into: &mut Vec<u8>,
        bits: impl Fn(T) -> u16 + Copy,
    ) -> Result<()> {
        let before = into.len();
        into.reserve(rows.rows.len() * rows.columns * 2);
        let is_finite = match &rows.rows {
            RowSet::Range(range) => {
                append_bits(&rows.data[range.start * rows.columns..range.end * rows.columns], into, bits)
            }
            RowSet::Indices(indices) => {
                (0..indices.len()).fold(true, |all, position| append_bits(rows.row(position), into, bits) & all)
            }
        };
        if is_finite {
            return Ok(());
        }
        into.truncate(before);
        Err(not_finite(rows, bits))
    }

    /// Hands each value of a payload, as its bits, to `store` with the place where it lands.
    ///
    /// # Errors
    ///
    /// [`WireError::PayloadSize`].
    pub fn read_stored<T>(payload: &[u8], mut into: RowsMut<'_, T>, store: impl Fn(&mut T, u16)) -> Result<()> {
        let (count, columns) = (into.rows.len(), into.columns);
        expect_payload(Half::KIND.name, count * columns * 2, payload.len())?;
        let (values, _) = payload.as_chunks::<2>();
        for (position, values) in values.chunks_exact(columns.max(1)).enumerate() {
            let pairs = into.row(position).iter_mut().zip(values);
            pairs.for_each(|(target, &bytes)| store(target, u16::from_le_bytes(bytes)));
        }
        Ok(())
    }
}

/// The exponent of what is infinite or no number.
const EXPONENT: u16 = 0x7f80;

/// Appends the values, and says whether all of them are finite.
fn append_bits<T: Copy>(values: &[T], into: &mut Vec<u8>, bits: impl Fn(T) -> u16) -> bool {
    into.extend(values.iter().flat_map(|&value| bits(value).to_le_bytes()));
    values.iter().fold(true, |all, &value| all & (bits(value) & EXPONENT != EXPONENT))
}

/// Finds the value that is not finite.
#[cold]
fn not_finite<T: Copy>(rows: &RowsRef<'_, T>, bits: impl Fn(T) -> u16) -> WireError {
    for position in 0..rows.rows.len() {
        if let Some(column) = rows.row(position).iter().position(|&value| bits(value) & EXPONENT == EXPONENT) {
            let value = f32::from_bits(u32::from(bits(rows.row(position)[column])) << 16);
            return WireError::NotFinite { codec: Half::KIND.name, row: rows.rows.at(position), column, value };
        }
    }
    unreachable!("the encoder met a value that is not finite")
}

impl Codec for Half {
    fn id(&self) -> CodecId {
        Half::KIND.id()
    }

    fn bytes(&self, _: &Level<'_>, rows: usize, columns: usize) -> usize {
        rows * columns * 2
    }

    fn is_half(&self) -> bool {
        true
    }

    fn encode(&mut self, _: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        append_values(Half::KIND.name, &rows, into, |bits| round(bits).to_le_bytes())
    }

    fn decode(&mut self, _: Message<'_>, payload: &[u8], into: RowsMut<'_>, store: Store) -> Result<()> {
        read_values(Half::KIND.name, payload, into, store, |bytes| {
            f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_to_nearest_even_and_never_to_infinity() {
        let golden = [
            (0.0, 0x0000),
            (-0.0, 0x8000),
            (1.0, 0x3f80),
            (-2.5, 0xc020),
            (f32::from_bits(0x3f80_8000), 0x3f80), // a tie, down to even
            (f32::from_bits(0x3f81_8000), 0x3f82), // a tie, up to even
            (f32::from_bits(0x3f80_8001), 0x3f81),
            (f32::from_bits(0x3fff_ffff), 0x4000), // the carry reaches the exponent
            (f32::MIN_POSITIVE, 0x0080),
            (f32::from_bits(0x0000_0001), 0x0000), // the smallest subnormal number
            (f32::from_bits(0x8000_8001), 0x8001), // a subnormal number that survives
            (f32::from_bits(0x007f_ffff), 0x0080), // the largest subnormal number becomes the smallest normal one
            (f32::MAX, 0x7f7f),
            (f32::MIN, 0xff7f),
        ];
        for (value, expected) in golden {
            assert_eq!(round(value.to_bits()), expected, "{value:e}");
        }
    }

    #[test]
    fn the_bound_holds_for_every_exponent() {
        for exponent in 1..=254u32 {
            for fraction in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1_8000, 0x7f_7fff, 0x7f_8000, 0x7f_ffff] {
                let value = f32::from_bits(exponent << 23 | fraction);
                let back = f32::from_bits(u32::from(round(value.to_bits())) << 16);
                let error = (f64::from(back) - f64::from(value)).abs() / f64::from(value);
                assert!(error <= 1.0 / 256.0, "{value:e} became {back:e}");
            }
        }
    }
}

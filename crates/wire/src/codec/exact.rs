//! `exact`: every value as it is, four bytes each, little-endian.

use super::{Codec, Level, MessageKey, RowsMut, RowsRef, Store, append_values, read_values};
use crate::Result;

/// Sends f32 as f32: 4 bytes per value, decoded bit for bit. Linear.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exact;

impl Codec for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn id(&self) -> u8 {
        1
    }

    fn bytes(&self, _: &Level<'_>, rows: usize, columns: usize) -> usize {
        rows * columns * 4
    }

    fn encode(&mut self, _: &MessageKey, _: &Level<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        append_values(self.name(), &rows, into, u32::to_le_bytes)
    }

    fn decode(&mut self, _: &MessageKey, _: &Level<'_>, payload: &[u8], into: RowsMut<'_>, store: Store) -> Result<()> {
        read_values(self.name(), payload, into, store, f32::from_le_bytes)
    }
}

//! `exact`: every value as it is, four bytes each, little-endian.

use super::values::{append_values, read_values};
use super::{Codec, CodecId, CodecKind, Level, Message, RowsMut, RowsRef, Store};
use crate::Result;

/// Sends f32 as f32: 4 bytes per value, decoded bit for bit. Linear.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exact;

impl Exact {
    /// The entry in registries.
    pub const KIND: CodecKind =
        CodecKind { name: "exact", number: 1, lossless: true, build: |_, _| Ok(Box::new(Exact)), ..CodecKind::PLAIN };
}

impl Codec for Exact {
    fn id(&self) -> CodecId {
        Exact::KIND.id()
    }

    fn bytes(&self, _: &Level<'_>, rows: usize, columns: usize) -> usize {
        rows * columns * 4
    }

    fn encode(&mut self, _: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        append_values(Exact::KIND.name, &rows, into, u32::to_le_bytes)
    }

    fn decode(&mut self, _: Message<'_>, payload: &[u8], into: RowsMut<'_>, store: Store) -> Result<()> {
        read_values(Exact::KIND.name, payload, into, store, f32::from_le_bytes)
    }
}

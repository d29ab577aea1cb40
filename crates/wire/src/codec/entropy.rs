//! `entropy`: another codec's bytes by how often each occurs, as one static model in front of each message says. Codes
//! of few bits are far from equally likely, since the values of a row crowd around its middle.

use super::symbols::{decode_symbols, encode_symbols, most_symbol_bytes};
use super::{Codec, CodecId, CodecKind, CodecRegistry, Level, Message, Options, RowsMut, RowsRef, Store};
use crate::{Result, WireError};

/// Different bytes.
const BYTES: usize = 256;

/// Sends what another codec writes, in fewer bytes where some of them occur more often than others (rANS, Duda, 2014),
/// and never in more than one more. What arrives is what the other codec makes of it, bit for bit.
///
/// A message of `n` bytes takes their entropy, a model of at most 512 bytes, and 17 more. It costs two passes over
/// these bytes. How small it comes out hangs on the values, so that a prediction says the most: the other codec's bytes
/// and one.
pub struct Entropy {
    inner: Box<dyn Codec>,
    /// What the other codec has written, or is to read.
    bytes: Vec<u8>,
}

impl Entropy {
    /// The entry in registries. Option: `inner`, the codec whose bytes are coded, `exact` if none is named.
    pub const KIND: CodecKind = CodecKind {
        name: "entropy",
        number: 8,
        options: &["inner"],
        wraps: true,
        lossless: true,
        varies: true,
        build: |options, registry| Ok(Box::new(Entropy::with_options(options, registry)?)),
        ..CodecKind::PLAIN
    };

    /// The codec that the options describe, with an inner one of this registry whose sizes are known beforehand.
    fn with_options(options: &Options, registry: &CodecRegistry) -> Result<Entropy> {
        let inner = registry.build_inner(options)?;
        let kind = registry.describe_inner(options)?;
        if kind.varies || kind.prepares {
            return Err(options.refuse("inner", "a codec whose messages have a size that is known beforehand"));
        }
        Ok(Entropy { inner, bytes: Vec::new() })
    }
}

impl Codec for Entropy {
    fn id(&self) -> CodecId {
        Entropy::KIND.id()
    }

    fn bytes(&self, level: &Level<'_>, rows: usize, columns: usize) -> usize {
        match self.inner.bytes(level, rows, columns) {
            0 => 0,
            bytes => most_symbol_bytes(bytes, BYTES),
        }
    }

    fn expect_feedback(&mut self) {
        self.inner.expect_feedback();
    }

    fn span(&self, bits: u8, row: &[f32]) -> f64 {
        self.inner.span(bits, row)
    }

    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        self.bytes.clear();
        self.inner.encode(message, rows, &mut self.bytes).map_err(|error| match error {
            WireError::NotFinite { row, column, value, .. } => {
                WireError::NotFinite { codec: Entropy::KIND.name, row, column, value }
            }
            other => other,
        })?;
        if !self.bytes.is_empty() {
            let symbols: Vec<u32> = self.bytes.iter().map(|&byte| byte.into()).collect();
            into.extend(encode_symbols(&symbols, BYTES));
        }
        Ok(())
    }

    fn decode(&mut self, message: Message<'_>, payload: &[u8], into: RowsMut<'_>, store: Store) -> Result<()> {
        let count = self.inner.bytes(message.level, into.rows.len(), into.columns);
        self.bytes.clear();
        if count > 0 || !payload.is_empty() {
            self.bytes.extend(decode_symbols(payload, count, BYTES)?.iter().map(|&symbol| symbol as u8));
        }
        self.inner.decode(message, &self.bytes, into, store)
    }
}

//! Skipping around any codec: while the rows of a message have hardly moved since they were last sent, nothing stands
//! for them, and the receiver uses what it has. Staleness is bounded.
//!
//! SANCUS (Peng et al., 2022). The published code never looks at how far rows moved (it skips by a fixed table,
//! switched off) and broadcasts whole blocks; here each link decides for itself, by ‖now − last sent‖ / ‖last sent‖
//! over the rows that travel on it.

use super::{Codec, CodecId, CodecKind, Level, Memory, Message, MessageKey, RowSet, RowsMut, RowsRef, Store};
use crate::{NO_CODEC, Result};

/// Sends nothing, an empty payload, in place of a message whose rows moved by at most a share of their size since they
/// were last sent, and that were sent fewer than so many rounds ago; whatever else through another codec.
///
/// Only messages of step 0 are compared: those of other steps cross once. Both ends remember the rows as they were last
/// sent, which is what the other codec decodes, and the sending one the round: what is compared with the rows of now is
/// what the receiver would use in their place, with its rounding. Where the other codec remembers something itself, the
/// sending end has the rows before it. A frame
/// says of this codec what it says of the one inside. The sizes of messages depend on what training does, so
/// [`bytes`](Codec::bytes) is the most that one takes.
pub struct Skipping {
    inner: Box<dyn Codec>,
    change: f64,
    staleness: u32,
}

impl Skipping {
    /// What a registry needs to make it by name. It is in none by itself. Options: `inner`, the codec of the messages
    /// that are sent, `exact` if none is named; `change`, 0.7 if not given; `staleness`, 10 if not given.
    pub const KIND: CodecKind = CodecKind {
        name: "skipping",
        number: NO_CODEC,
        options: &["inner", "change", "staleness"],
        wraps: true,
        remembers: true,
        varies: true,
        build: |options, registry| {
            let (change, staleness) = (options.number("change")?, options.number("staleness")?);
            if change.is_some_and(|change| !(change >= 0.0 && change.is_finite())) {
                return Err(options.refuse("change", "a number from 0"));
            }
            let whole = |rounds: f64| rounds >= 0.0 && rounds <= f64::from(u32::MAX) && rounds.fract() == 0.0;
            if staleness.is_some_and(|rounds| !whole(rounds)) {
                return Err(options.refuse("staleness", "a whole number of rounds"));
            }
            let inner = registry.build_inner(options)?;
            Ok(Box::new(Skipping::around(inner, change.unwrap_or(0.7), staleness.unwrap_or(10.0) as u32)))
        },
        ..CodecKind::PLAIN
    };

    /// Skipping around another codec. A message is skipped if ‖now − last sent‖ is at most `change` times ‖last sent‖
    /// and its round is less than `staleness` after the one last sent: with 0 or 1, none is.
    pub fn around(inner: Box<dyn Codec>, change: f64, staleness: u32) -> Skipping {
        Skipping { inner, change, staleness }
    }

    /// Whether the receiver may use what it has in place of these rows.
    fn skips(&self, round: u32, rows: &RowsRef<'_>, last: &Memory) -> bool {
        let same_shape = last.values.len() == rows.rows.len() * rows.columns;
        if !same_shape || round.saturating_sub(last.round) >= self.staleness {
            return false;
        }
        let (mut moved, mut size) = (0.0f64, 0.0f64);
        for (now, last) in values(rows).zip(&last.values) {
            moved += f64::from(now - last).powi(2);
            size += f64::from(*last).powi(2);
        }
        moved.sqrt() <= self.change * size.sqrt()
    }
}

/// The values of a message, row by row.
fn values<'a>(rows: &RowsRef<'a>) -> impl Iterator<Item = &'a f32> {
    (0..rows.rows.len()).flat_map(|position| rows.row(position))
}

impl Codec for Skipping {
    fn id(&self) -> CodecId {
        self.inner.id()
    }

    fn bytes(&self, level: &Level<'_>, rows: usize, columns: usize) -> usize {
        self.inner.bytes(level, rows, columns)
    }

    fn span(&self, bits: u8, row: &[f32]) -> f64 {
        self.inner.span(bits, row)
    }

    fn expect_feedback(&mut self) {
        self.inner.expect_feedback();
    }

    fn state_bytes(&self, columns: usize) -> usize {
        self.inner.state_bytes(columns)
    }

    fn prepare(&mut self, key: &MessageKey, rows: &RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        self.inner.prepare(key, rows, into)
    }

    fn take_state(&mut self, state: &[u8], columns: usize, memory: &mut Memory) -> Result<()> {
        self.inner.take_state(state, columns, memory.inner())
    }

    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        let Message { key, level, memory } = message;
        let (compared, round) = (key.tag.step == 0, key.tag.round);
        if compared && self.skips(round, &rows, memory) {
            return Ok(());
        }
        let start = into.len();
        self.inner.encode(Message { key, level, memory: memory.inner() }, rows.clone(), into)?;
        if compared {
            memory.round = round;
            memory.values.clear();
            memory.values.extend(values(&rows));
            if memory.inside().is_none_or(Memory::is_empty) {
                let (count, columns) = (rows.rows.len(), rows.columns);
                let arrived = RowsMut { data: &mut memory.values, columns, rows: RowSet::Range(0..count) };
                let message = Message { key, level, memory: &mut Memory::default() };
                self.inner.decode(message, &into[start..], arrived, Store::Set)?;
            }
        }
        Ok(())
    }

    fn decode(&mut self, message: Message<'_>, payload: &[u8], mut into: RowsMut<'_>, store: Store) -> Result<()> {
        let Message { key, level, memory } = message;
        if key.tag.step != 0 {
            return self.inner.decode(Message { key, level, memory: memory.inner() }, payload, into, store);
        }
        let (rows, columns) = (into.rows.len(), into.columns);
        let skipped = payload.is_empty() && memory.values.len() == rows * columns;
        if !skipped {
            let mut kept = std::mem::take(&mut memory.values);
            kept.resize(rows * columns, 0.0);
            let all = RowsMut { data: &mut kept, columns, rows: RowSet::Range(0..rows) };
            // After an error nothing is kept: an empty payload must not stand for what never came.
            self.inner.decode(Message { key, level, memory: memory.inner() }, payload, all, Store::Set)?;
            memory.values = kept;
        }
        for (position, kept) in memory.values.chunks_exact(columns.max(1)).enumerate() {
            let row = into.row(position);
            match store {
                Store::Set => row.copy_from_slice(kept),
                Store::Add => row.iter_mut().zip(kept).for_each(|(value, kept)| *value += kept),
            }
        }
        Ok(())
    }
}

//! Skipping (SANCUS, Peng et al., 2022): while the rows of a message have hardly moved since they were last sent, an empty frame
//! stands for them, and the receiver uses what it has. Staleness is bounded.
//!
//! The published code never looks at how far rows moved (it skips by a fixed table, switched off) and broadcasts whole blocks; here
//! each link decides for itself, by ‖now − last sent‖ / ‖last sent‖ over the rows that travel on it.

use std::collections::BTreeMap;

use laconic_wire::codec::{self, Codec, Level, Memory, Message, MessageKey, RowSet, RowsMut, RowsRef, Store};
use laconic_wire::{Direction, Frame, Rank, Tag, WireError};

use crate::config::SkipConfig;
use crate::error::Result;
use crate::saved::{Name, Remembers, Saved};

/// One message on one link, whatever the round.
type Place = (u16, Direction, Rank);

/// What was last sent and received on every link.
pub struct Skipper {
    config: SkipConfig,
    sent: BTreeMap<Place, (u32, Vec<f32>)>,
    received: BTreeMap<Place, Vec<f32>>,
}

impl Skipper {
    /// Nothing sent yet.
    pub fn new(config: SkipConfig) -> Skipper {
        Skipper { config, sent: BTreeMap::new(), received: BTreeMap::new() }
    }

    /// Whether these rows need not be sent; if they must be, they are kept for the next comparison.
    pub fn skips(&mut self, tag: Tag, peer: Rank, rows: &RowsRef<'_>) -> bool {
        let place = (tag.layer, tag.direction, peer);
        let values = || (0..rows.rows.len()).flat_map(|position| rows.row(position));
        let (round, last) = self.sent.entry(place).or_default();
        let same_shape = last.len() == rows.rows.len() * rows.columns;
        if same_shape && tag.round.saturating_sub(*round) < self.config.staleness {
            let (mut moved, mut size) = (0.0f64, 0.0f64);
            for (now, last) in values().zip(last.iter()) {
                moved += f64::from(now - last).powi(2);
                size += f64::from(*last).powi(2);
            }
            if moved.sqrt() <= self.config.change * size.sqrt() {
                return true;
            }
        }
        last.clear();
        last.extend(values());
        *round = tag.round;
        false
    }

    /// Reads a frame, or what came last where it is empty.
    pub fn receive(
        &mut self,
        frame: &Frame,
        key: &MessageKey,
        codec: &mut dyn Codec,
        level: &Level<'_>,
        mut into: RowsMut<'_>,
        store: Store,
    ) -> std::result::Result<(), WireError> {
        let (rows, columns) = (into.rows.len(), into.columns);
        let kept = self.received.entry((key.tag.layer, key.tag.direction, key.from)).or_default();
        let skipped = frame.payload().is_empty() && kept.len() == rows * columns;
        if !skipped {
            kept.resize(rows * columns, 0.0);
            let all = RowsMut { data: kept, columns, rows: RowSet::Range(0..rows) };
            codec::read(codec, Message { key, level, memory: &mut Memory::default() }, frame, all, Store::Set)?;
        }
        for (position, kept) in kept.chunks_exact(columns.max(1)).enumerate() {
            let row = into.row(position);
            match store {
                Store::Set => row.copy_from_slice(kept),
                Store::Add => row.iter_mut().zip(kept).for_each(|(value, kept)| *value += kept),
            }
        }
        Ok(())
    }
}

impl Remembers for Skipper {
    fn save(&self, saved: &mut Saved) {
        for ((layer, direction, peer), (round, rows)) in &self.sent {
            let name = |what| Name::of(what, (*layer, *direction), Some((*peer, true)));
            saved.put(name("skip.sent"), rows);
            saved.put(name("skip.round"), &[*round]);
        }
        for ((layer, direction, peer), rows) in &self.received {
            saved.put(Name::of("skip.received", (*layer, *direction), Some((*peer, false))), rows);
        }
    }

    fn restore(&mut self, saved: &mut Saved) -> Result<()> {
        for (stream, _, rows) in saved.take_streams("skip.sent")? {
            let Some((peer, _)) = stream.end else { continue };
            let name = Name::of("skip.round", (stream.layer, stream.direction), stream.end);
            let round = saved.take::<u32>(&name)?.and_then(|rounds| rounds.first().copied()).unwrap_or_default();
            self.sent.insert((stream.layer, stream.direction, peer), (round, rows));
        }
        for (stream, _, rows) in saved.take_streams("skip.received")? {
            let Some((peer, _)) = stream.end else { continue };
            self.received.insert((stream.layer, stream.direction, peer), rows);
        }
        Ok(())
    }
}

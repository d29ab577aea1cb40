//! What both ends know of a message before it is sent: what it is, how much of its rows travels, and what their codec
//! remembers.

use super::Memory;
use crate::{Rank, Tag};
use laconic_key::{Key, Purpose};

/// A message as a codec sees it.
#[derive(Debug)]
pub struct Message<'a> {
    /// What it is: the random numbers of both ends follow from it.
    pub key: &'a MessageKey,
    /// How much of its rows travels.
    pub level: &'a Level<'a>,
    /// What this end remembers of the stream on this link; codecs that remember nothing leave it alone.
    pub memory: &'a mut Memory,
}

/// What a message is, for codecs that round or mask at random: both ends derive the same numbers from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageKey {
    /// The seed of the run.
    pub seed: u64,
    /// The tag of its frame.
    pub tag: Tag,
    /// The rank that encodes.
    pub from: Rank,
    /// The rank that decodes.
    pub to: Rank,
    /// The round whose draw it shares with others: its own, or for gradients of late rows that of the rows.
    pub drawn: u32,
}

impl MessageKey {
    /// The random stream of this message alone for one purpose: rounding noise is independent of every other message's.
    pub fn stream(&self, purpose: Purpose) -> Key {
        let link = u64::from(self.from.0) << 32 | u64::from(self.to.0);
        let Tag { direction, layer, step, .. } = self.tag;
        let place = u64::from(layer) << 32 | u64::from(step) << 16 | (self.tag.kind() as u64) << 1 | direction as u64;
        Key::new(self.seed, purpose).with(self.tag.round.into()).with(place).with(link)
    }

    /// The random stream that all links and both directions of a layer share in a round: with it the gradients of a
    /// masked message come back in the columns that went out, even a round later ([`MessageKey::drawn`]). Evaluations
    /// have their own.
    pub fn shared_stream(&self, purpose: Purpose) -> Key {
        let place = u64::from(self.tag.layer) << 1 | u64::from(self.tag.evaluates());
        Key::new(self.seed, purpose).with(self.drawn.into()).with(place)
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

    /// The same for rows that are made of a message's rows: the most bits that one of these has.
    pub(super) fn of_all_rows<'a>(&self) -> Level<'a> {
        let bits = match self.bits {
            Bits::Uniform(bits) => bits,
            Bits::Rows(rows) => rows.iter().copied().max().unwrap_or(32),
        };
        Level { ratio: self.ratio, bits: Bits::Uniform(bits) }
    }
}

/// How many bits a value has, once for all rows or row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bits<'a> {
    /// The same in every row.
    Uniform(u8),
    /// Each row's own, by its position in the message.
    Rows(&'a [u8]),
}

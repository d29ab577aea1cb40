//! What went over which link, and what had before a run was resumed.

use laconic_wire::{Count, PerKind};
use serde::{Deserialize, Serialize};

/// One entry of `bytes.by_link`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkBytes {
    /// The rank that sent.
    pub from: u32,
    /// The rank that received.
    pub to: u32,
    /// The number of frames.
    pub frames: u64,
    /// Bytes without framing.
    pub payload: u64,
    /// Payload and framing.
    pub bytes: u64,
}

/// One entry of `bytes.starts`: what was sent from when the run was started or resumed until it ended or broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StartBytes {
    /// 0 for the first start, one more each time that the run was resumed.
    pub start: u32,
    /// The round that it went on from; 0 at the beginning, and where it broke off before it trained.
    pub after_round: u32,
    /// The number of frames.
    pub frames: u64,
    /// Bytes without framing.
    pub payload: u64,
    /// Payload and framing.
    pub bytes: u64,
    /// How many of them belong to rounds that a later start did again.
    pub repeated: u64,
    /// Whether it ended in order. Of one that was killed, what had left in the round under way is missing.
    pub closed: bool,
}

/// Traffic before the run was resumed.
#[derive(Debug, Clone, Default)]
pub struct Earlier {
    /// By the kind of frame.
    pub kinds: PerKind<Count>,
    /// By link; empty where nothing is known.
    pub links: Vec<LinkBytes>,
    /// By the starts of the run.
    pub starts: Vec<StartBytes>,
}

impl Earlier {
    /// Framed bytes of all kinds.
    pub fn framed(&self) -> u64 {
        self.kinds.iter().map(|(_, count)| count.framed).sum()
    }

    /// The number of the start that goes on from here.
    pub fn next_start(&self) -> u32 {
        self.starts.last().map_or(0, |last| last.start.saturating_add(1))
    }

    /// Adds what was sent before to what was sent since, link by link.
    pub fn add_links(&self, links: &mut [LinkBytes]) {
        for link in links {
            for earlier in self.links.iter().filter(|earlier| (earlier.from, earlier.to) == (link.from, link.to)) {
                link.frames += earlier.frames;
                link.payload += earlier.payload;
                link.bytes += earlier.bytes;
            }
        }
    }
}

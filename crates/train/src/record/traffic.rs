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

/// Traffic before the run was resumed.
#[derive(Debug, Default)]
pub struct Earlier {
    /// By the kind of frame.
    pub kinds: PerKind<Count>,
    /// By link; empty where nothing is known.
    pub links: Vec<LinkBytes>,
    /// Rows of the ledger, without its header.
    pub rows: String,
}

impl Earlier {
    /// Framed bytes of all kinds.
    pub fn framed(&self) -> u64 {
        self.kinds.iter().map(|(_, count)| count.framed).sum()
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

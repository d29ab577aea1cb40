//! The halo exchange: the one linear operator that stands between message and fold, and its adjoint.
//!
//! Forward, owned rows go out to the workers that need copies and *set* their halo rows. In reverse, the gradients of the copies
//! come back and *add* to the owners' rows, peers in rank order. Both directions use the same plan. [`Halo::start`] encodes,
//! queues and returns at once; what the caller does before [`Pending::finish`] overlaps with the wire.

use std::time::{Duration, Instant};

use laconic_graph::plan::{HaloPlan, Link};
use laconic_nn::Matrix;
use laconic_wire::codec::{self, Codec, MessageKey, RowSet, RowsMut, RowsRef, Store};
use laconic_wire::{Direction, Frame, Kind, Ledger, Rank, Tag, Transport, WireError};

use crate::config::MessagesConfig;
use crate::error::{Result, TrainError};

/// Which codec codes which layer's messages.
pub struct Codecs {
    forward: Box<dyn Codec>,
    backward: Box<dyn Codec>,
    layers: Vec<(u16, Direction, Box<dyn Codec>)>,
}

impl Codecs {
    /// The codecs that a checked configuration names.
    pub fn new(config: &MessagesConfig) -> Result<Codecs> {
        let mut layers = Vec::new();
        for (layer, messages) in &config.layers {
            let layer: u16 =
                layer.parse().map_err(|_| TrainError::config(format!("messages.layers.{layer}: expected a number")))?;
            for (direction, name) in [(Direction::Forward, &messages.forward), (Direction::Reverse, &messages.backward)]
            {
                if let Some(name) = name {
                    layers.push((layer, direction, codec::named(name)?));
                }
            }
        }
        Ok(Codecs { forward: codec::named(&config.forward)?, backward: codec::named(&config.backward)?, layers })
    }

    /// The codec of one layer's messages in one direction.
    pub fn of(&self, layer: u16, direction: Direction) -> &dyn Codec {
        let special = self.layers.iter().find(|(l, d, _)| (*l, *d) == (layer, direction));
        match (special, direction) {
            (Some((_, _, codec)), _) => codec.as_ref(),
            (None, Direction::Forward) => self.forward.as_ref(),
            (None, Direction::Reverse) => self.backward.as_ref(),
        }
    }
}

/// Plan and codecs of one worker.
pub struct Halo {
    rank: Rank,
    links: Vec<Link>,
    codecs: Codecs,
    seed: u64,
    coding: Duration,
}

/// An exchange under way. It must be finished, or the peers' frames stay behind.
#[must_use = "the peers' rows are only there once the exchange is finished"]
pub struct Pending {
    tag: Tag,
}

impl Halo {
    /// The exchange that `plan` describes.
    pub fn new(plan: HaloPlan, codecs: Codecs, seed: u64) -> Halo {
        Halo { rank: Rank(plan.rank), links: plan.links, codecs, seed, coding: Duration::ZERO }
    }

    /// Rows that arrive in one forward exchange.
    pub fn rows(&self) -> usize {
        self.links.iter().map(|link| link.receive.len()).sum()
    }

    /// Time spent encoding and decoding so far.
    pub fn coding(&self) -> Duration {
        self.coding
    }

    fn key(&self, tag: Tag, from: Rank, to: Rank) -> MessageKey {
        MessageKey { seed: self.seed, round: tag.round, layer: tag.layer, direction: tag.direction, from, to }
    }

    /// Starts an exchange: forward of own rows, in reverse of the gradients of halo rows.
    pub fn start(&mut self, channel: &mut dyn Transport, tag: Tag, rows: &Matrix) -> Result<Pending> {
        let codec = self.codecs.of(tag.layer, tag.direction);
        for peer in self.rank.others(channel.size()) {
            let link = &self.links[peer.index()];
            let set = match tag.direction {
                Direction::Forward => RowSet::Indices(&link.send),
                Direction::Reverse => RowSet::Range(link.receive.start as usize..link.receive.end as usize),
            };
            if set.is_empty() {
                continue;
            }
            let size = codec.bytes(set.len(), rows.columns());
            let mut frame = Frame::new(tag, channel.buffer_of(size));
            let source = RowsRef { data: rows.data(), columns: rows.columns(), rows: set };
            let start = Instant::now();
            codec::write(codec, &self.key(tag, self.rank, peer), source, &mut frame)
                .map_err(|error| refused(error, self.rank, peer, tag))?;
            self.coding += start.elapsed();
            channel.send(peer, frame)?;
        }
        Ok(Pending { tag })
    }

    /// Enters into `ledger` what [`Halo::start`] sends for rows of this width.
    pub fn predict(links: &[LinkRows], codec: &dyn Codec, tag: Tag, width: usize, ledger: &mut Ledger) {
        for (peer, link) in links.iter().enumerate() {
            let rows = match tag.direction {
                Direction::Forward => link.send,
                Direction::Reverse => link.receive,
            };
            if rows > 0 {
                ledger.record(tag, Rank(peer as u32), codec.bytes(rows, width));
            }
        }
    }
}

/// Rows that a codec refuses: hidden rows that are no numbers mean that training has diverged.
fn refused(error: WireError, rank: Rank, peer: Rank, tag: Tag) -> TrainError {
    match error {
        WireError::NotFinite { .. } if tag.kind != Kind::Features => {
            TrainError::Diverged { round: tag.round, what: format!("{tag} on rank {rank}: {error}") }
        }
        error => error.from_peer(rank, peer, tag).into(),
    }
}

/// How many rows travel on one link in one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkRows {
    /// Forward, from here; in reverse, to here.
    pub send: usize,
    /// Forward, to here; in reverse, from here.
    pub receive: usize,
}

impl From<&Link> for LinkRows {
    fn from(link: &Link) -> Self {
        LinkRows { send: link.send.len(), receive: link.receive.len() }
    }
}

impl Pending {
    /// Waits for the peers' rows, in rank order: forward they set `into`'s halo rows, in reverse they add to `into`'s own rows.
    pub fn finish(self, halo: &mut Halo, channel: &mut dyn Transport, into: &mut Matrix) -> Result<()> {
        let tag = self.tag;
        let columns = into.columns();
        let codec = halo.codecs.of(tag.layer, tag.direction);
        for peer in halo.rank.others(channel.size()) {
            let link = &halo.links[peer.index()];
            let (set, store) = match tag.direction {
                Direction::Forward => {
                    (RowSet::Range(link.receive.start as usize..link.receive.end as usize), Store::Set)
                }
                Direction::Reverse => (RowSet::Indices(&link.send), Store::Add),
            };
            if set.is_empty() {
                continue;
            }
            let frame = channel.recv(peer, tag)?;
            let start = Instant::now();
            let rows = RowsMut { data: into.data_mut(), columns, rows: set };
            codec::read(codec, &halo.key(tag, peer, halo.rank), &frame, rows, store)
                .map_err(|error| error.from_peer(halo.rank, peer, tag))?;
            halo.coding += start.elapsed();
            channel.recycle(frame);
        }
        Ok(())
    }
}

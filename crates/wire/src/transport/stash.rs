//! Frames that arrived before anybody asked for them.

use crate::door::{is_farewell, refusal};
use crate::{Frame, Rank, Result, Tag, WireError};
use std::collections::VecDeque;

/// More unclaimed frames from one peer than any schedule leaves lying about.
pub(super) const KEPT_MAX: usize = 4096;

/// The unclaimed frames of one end, by peer, in the order of arrival.
#[derive(Debug)]
pub struct Stash {
    rank: Rank,
    of_peer: Vec<VecDeque<Frame>>,
}

impl Stash {
    /// An empty stash for `rank` of `size`.
    pub fn new(rank: Rank, size: usize) -> Stash {
        Stash { rank, of_peer: (0..size).map(|_| VecDeque::new()).collect() }
    }

    /// The oldest kept frame with this tag. An error if the peer is already in a later round of the stream.
    pub fn take(&mut self, peer: Rank, tag: Tag) -> Result<Option<Frame>> {
        let kept = &mut self.of_peer[peer.index()];
        if let Some(place) = kept.iter().position(|frame| frame.tag() == tag) {
            return Ok(kept.remove(place));
        }
        kept.iter().try_for_each(|frame| same_round(self.rank, peer, tag, frame))?;
        Ok(None)
    }

    /// Gives a fresh frame back if it has this tag, otherwise keeps it. An error if it says that somebody's door is
    /// closed, since then what this end waits for will never come.
    pub fn sort(&mut self, peer: Rank, tag: Tag, frame: Frame) -> Result<Option<Frame>> {
        if frame.tag() == tag {
            return Ok(Some(frame));
        }
        if let Some(error) = refusal(&frame) {
            return Err(error);
        }
        if is_farewell(&frame) {
            return Err(WireError::Gone { rank: self.rank, peer, tag, sending: false });
        }
        same_round(self.rank, peer, tag, &frame)?;
        let kept = &mut self.of_peer[peer.index()];
        if kept.len() == KEPT_MAX {
            let oldest = kept[0].tag();
            return Err(WireError::Unclaimed { rank: self.rank, peer, tag, kept: KEPT_MAX, oldest });
        }
        kept.push_back(frame);
        Ok(None)
    }

    /// Takes the oldest frame of this peer that nobody has claimed.
    pub fn next(&mut self, peer: Rank) -> Option<Frame> {
        self.of_peer[peer.index()].pop_front()
    }

    /// The tag of the oldest frame of this peer that nobody has claimed.
    pub fn oldest(&self, peer: Rank) -> Option<Tag> {
        self.of_peer[peer.index()].front().map(Frame::tag)
    }
}

/// Links keep the order and rounds never decrease in a stream: once a later round is here, an earlier one will not
/// come.
fn same_round(rank: Rank, peer: Rank, expected: Tag, frame: &Frame) -> Result<()> {
    let found = frame.tag();
    if found.same_stream(expected) && found.round > expected.round {
        return Err(WireError::Round { rank, peer, expected, found: found.round });
    }
    Ok(())
}

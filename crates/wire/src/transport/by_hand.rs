//! An end whose frames somebody else carries: a simulation, which says when each arrives.

use super::{End, Transport};
use crate::{Frame, Rank, Result, Tag, WireError};
use std::collections::VecDeque;
use std::time::Duration;

/// One worker's end. What it sends waits until [`ByHand::take`]; what comes is put there with [`ByHand::put`].
#[derive(Debug)]
pub struct ByHand {
    end: End,
    out: Vec<(Rank, Frame)>,
    /// What is here, by sender.
    here: Vec<VecDeque<Frame>>,
}

impl ByHand {
    /// The end of `rank` in a group of `size`.
    ///
    /// # Panics
    ///
    /// If the group has no such rank.
    pub fn new(rank: Rank, size: usize) -> ByHand {
        let here = (0..size).map(|_| VecDeque::new()).collect();
        ByHand { end: End::new(rank, size, Duration::ZERO), out: Vec::new(), here }
    }

    /// What was sent since the last time, with its receivers, in the order in which it was sent.
    pub fn take(&mut self) -> Vec<(Rank, Frame)> {
        std::mem::take(&mut self.out)
    }

    /// Delivers a frame of this worker.
    ///
    /// # Panics
    ///
    /// If it is no other worker of the group.
    pub fn put(&mut self, from: Rank, frame: Frame) {
        self.end.assert_peer(from);
        self.here[from.index()].push_back(frame);
    }

    /// Forgets what is here and was not read.
    pub fn forget(&mut self) {
        self.here.iter_mut().for_each(VecDeque::clear);
    }
}

impl Transport for ByHand {
    fn end(&self) -> &End {
        &self.end
    }

    fn end_mut(&mut self) -> &mut End {
        &mut self.end
    }

    fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
        self.end.assert_peer(to);
        self.out.push((to, frame));
        Ok(())
    }

    /// The frame, if it is here; nobody could bring it during a wait.
    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        self.end.assert_peer(from);
        let here = &mut self.here[from.index()];
        let found = here.iter().position(|frame| frame.tag() == tag).and_then(|at| here.remove(at));
        found.ok_or(WireError::Gone { rank: self.end.rank(), peer: from, tag, sending: false })
    }

    fn poll(&mut self, from: Rank) -> Result<Option<Frame>> {
        self.end.assert_peer(from);
        Ok(self.here[from.index()].pop_front())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, FramePurpose};

    #[test]
    fn frames_go_where_they_are_carried_and_wait_for_nobody() {
        let tag = |round| Tag { layer: 1, round, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
        let (mut zero, mut one) = (ByHand::new(Rank(0), 2), ByHand::new(Rank(1), 2));
        zero.send(Rank(1), Frame::new(tag(3), Vec::new())).unwrap();
        zero.send(Rank(1), Frame::new(tag(4), Vec::new())).unwrap();
        assert!(one.poll(Rank(0)).unwrap().is_none());
        let carried = zero.take();
        assert_eq!(
            carried.iter().map(|(to, frame)| (*to, frame.tag().round)).collect::<Vec<_>>(),
            [(Rank(1), 3), (Rank(1), 4)]
        );
        carried.into_iter().for_each(|(_, frame)| one.put(Rank(0), frame));
        assert_eq!(one.recv(Rank(0), tag(4)).unwrap().tag(), tag(4));
        assert!(matches!(one.recv(Rank(0), tag(4)), Err(WireError::Gone { .. })));
        assert_eq!(one.poll(Rank(0)).unwrap().map(|frame| frame.tag()), Some(tag(3)));
        assert!(zero.take().is_empty());
    }
}

//! Workers as threads of one process: one channel for every ordered pair. Frames move, their bytes are never copied.

use super::{Buffers, End, Stash, Transport};
use crate::{Frame, Rank, Result, Tag, WireError};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

/// The ends of a group of `size` workers, in rank order, each to be moved into its thread. They share their buffers.
///
/// # Panics
///
/// If the group has no worker.
pub fn threads(size: usize, deadline: Duration) -> Vec<ThreadsTransport> {
    assert!(size > 0, "a group has at least one worker");
    let buffers = Buffers::default();
    let mut from: Vec<Vec<Receiver<Frame>>> = Rank::all(size).map(|_| Vec::new()).collect();
    let link = |from: &mut Vec<Receiver<Frame>>| {
        let (sending, receiving) = channel();
        from.push(receiving);
        sending
    };
    let to: Vec<Vec<Sender<Frame>>> = Rank::all(size).map(|_| from.iter_mut().map(link).collect()).collect();
    let end = |(rank, (to, from))| ThreadsTransport::over(End::new(rank, size, deadline).sharing(&buffers), to, from);
    Rank::all(size).zip(to.into_iter().zip(from)).map(end).collect()
}

/// One worker's end. Dropping it, also by a panic, tells the others that this worker is gone; what it sent before still
/// arrives.
#[derive(Debug)]
pub struct ThreadsTransport {
    end: End,
    /// By receiver, own place included and unused.
    to: Vec<Sender<Frame>>,
    /// By sender.
    from: Vec<Receiver<Frame>>,
    stash: Stash,
    /// Who was never linked, by rank, and may still come.
    silent: Vec<bool>,
}

impl ThreadsTransport {
    /// An end over these channels, one for each worker in rank order, the own place included.
    pub(super) fn over(end: End, to: Vec<Sender<Frame>>, from: Vec<Receiver<Frame>>) -> ThreadsTransport {
        let stash = Stash::new(end.rank(), end.size());
        let silent = vec![false; end.size()];
        ThreadsTransport { end, to, from, stash, silent }
    }

    /// An end without links: nothing comes from anybody, and nothing can be sent.
    pub(super) fn unlinked(end: End) -> ThreadsTransport {
        let size = end.size();
        let (to, from) = (0..size).map(|_| (channel().0, channel().1)).unzip();
        ThreadsTransport { silent: vec![true; size], ..ThreadsTransport::over(end, to, from) }
    }

    /// Links a peer anew; what had come over an older link and was not read is forgotten.
    pub(super) fn link(&mut self, peer: Rank, to: Sender<Frame>, from: Receiver<Frame>) {
        (self.to[peer.index()], self.from[peer.index()]) = (to, from);
        self.silent[peer.index()] = false;
        while self.stash.next(peer).is_some() {}
    }

    /// Tells whoever is behind the channels that no more will come.
    pub(super) fn hang_up(&mut self) {
        self.to.clear();
    }

    /// Waits on the channel; the caller has looked into the stash.
    fn wait(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        let inbox = &self.from[from.index()];
        let wait = self.end.patience().wait(self.end.rank(), from, tag);
        let outcome = loop {
            let arrived = match wait.nap(|| self.stash.oldest(from)) {
                Ok(nap) => inbox.recv_timeout(nap),
                Err(error) => break Err(error),
            };
            match arrived {
                Ok(frame) => match self.stash.sort(from, tag, frame) {
                    Ok(None) => {}
                    Ok(Some(frame)) => break Ok(frame),
                    Err(error) => break Err(error),
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Err(wait.gone()),
            }
        };
        let waited = self.end.waited() + wait.waited();
        self.end.set_waited(waited);
        outcome
    }
}

impl Transport for ThreadsTransport {
    fn end(&self) -> &End {
        &self.end
    }

    fn end_mut(&mut self) -> &mut End {
        &mut self.end
    }

    fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
        self.end.assert_peer(to);
        let tag = frame.tag();
        let sent = self.to.get(to.index()).and_then(|channel| channel.send(frame).ok());
        sent.ok_or(WireError::Gone { rank: self.end.rank(), peer: to, tag, sending: true })
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        self.end.assert_peer(from);
        if let Some(frame) = self.stash.take(from, tag)? {
            return Ok(frame);
        }
        // What is here already costs no look at the clock.
        loop {
            match self.from[from.index()].try_recv() {
                Ok(frame) => {
                    if let Some(frame) = self.stash.sort(from, tag, frame)? {
                        return Ok(frame);
                    }
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return self.wait(from, tag),
            }
        }
    }

    fn poll(&mut self, from: Rank) -> Result<Option<Frame>> {
        self.end.assert_peer(from);
        if let Some(frame) = self.stash.next(from) {
            return Ok(Some(frame));
        }
        match self.from[from.index()].try_recv() {
            Ok(frame) => Ok(Some(frame)),
            Err(TryRecvError::Disconnected) if !self.silent[from.index()] => Err(self.end.gone(from)),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Ok(None),
        }
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

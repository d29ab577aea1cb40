//! Workers as threads of one process: one channel for every ordered pair. Frames move, their bytes are never copied.

use super::{Buffers, Patience, Stash, Transport, assert_peer};
use crate::{Frame, Rank, Result, Tag, WireError};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The ends of a group of `size` workers, in rank order, each to be moved into its thread.
pub fn threads(size: usize, deadline: Duration) -> Vec<ThreadsTransport> {
    assert!(size > 0, "a group has at least one worker");
    let buffers = Arc::new(Mutex::new(Buffers::default()));
    let mut ends: Vec<ThreadsTransport> = Rank::all(size)
        .map(|rank| ThreadsTransport {
            rank,
            patience: Patience::new(deadline),
            to: Vec::with_capacity(size),
            from: Vec::with_capacity(size),
            stash: Stash::new(rank, size),
            buffers: Arc::clone(&buffers),
            waited: Duration::ZERO,
        })
        .collect();
    for sender in 0..size {
        for receiver in 0..size {
            let (to, from) = channel();
            ends[sender].to.push(to);
            ends[receiver].from.push(from);
        }
    }
    ends
}

/// One worker's end. Dropping it, also by a panic, tells the others that this worker is gone; what it sent before still
/// arrives.
#[derive(Debug)]
pub struct ThreadsTransport {
    rank: Rank,
    patience: Patience,
    /// By receiver, own place included and unused.
    to: Vec<Sender<Frame>>,
    /// By sender.
    from: Vec<Receiver<Frame>>,
    stash: Stash,
    /// Shared by the group, because a vector that goes from one worker to another leaves the first one's hands for
    /// good.
    buffers: Arc<Mutex<Buffers>>,
    waited: Duration,
}

impl ThreadsTransport {
    /// Makes every wait end when the flag becomes true.
    pub fn add_interrupt(&mut self, flag: Arc<AtomicBool>) {
        self.patience.add_interrupt(flag);
    }

    /// Waits on the channel; the caller has looked into the stash.
    fn wait(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        let inbox = &self.from[from.index()];
        let wait = self.patience.wait(self.rank, from, tag);
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
        self.waited += wait.waited();
        outcome
    }
}

impl Transport for ThreadsTransport {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn patience(&self) -> &Patience {
        &self.patience
    }

    fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
        assert_peer(self.rank, self.size(), to);
        self.to[to.index()].send(frame).map_err(|unsent| {
            let tag = unsent.0.tag();
            WireError::Gone { rank: self.rank, peer: to, tag, sending: true }
        })
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        assert_peer(self.rank, self.size(), from);
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

    fn recycle(&mut self, frame: Frame) {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).put(frame.into_buffer());
    }

    fn buffer_of(&mut self, payload_bytes: usize) -> Vec<u8> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).take(payload_bytes)
    }

    fn waited(&self) -> Duration {
        self.waited
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

//! Several channels over one transport, for threads of one process that speak to the same peers about different things.
//!
//! A frame belongs to the channel of its purpose: evaluations have one, all else has the other. Whoever looks for a
//! frame takes in all that are here and leaves those of the other channel where its owner finds them. Nobody holds the
//! transport while it waits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::stash::KEPT_MAX;
use super::{End, Stash, Transport};
use crate::{Frame, FramePurpose, Rank, Result, Tag, WireError};

/// How often a wait looks before it begins to sleep, and how long it then sleeps at first and at most.
const SPINS: u32 = 200;
const SLEEPS: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(500)];

/// The one transport, and what came over it that nobody has taken yet.
struct Core {
    inner: Box<dyn Transport>,
    /// By channel and peer.
    waiting: [Vec<VecDeque<Frame>>; 2],
    /// Peers that are gone.
    gone: Vec<bool>,
}

/// A transport that has been taken apart into channels.
pub struct Channels(Arc<Mutex<Core>>);

impl Channels {
    /// Takes a transport apart.
    pub fn new(inner: Box<dyn Transport>) -> Channels {
        let size = inner.size();
        let queues = || (0..size).map(|_| VecDeque::new()).collect();
        Channels(Arc::new(Mutex::new(Core { inner, waiting: [queues(), queues()], gone: vec![false; size] })))
    }

    /// An end of the channel for all but evaluations. Several ends may be there, which hear different peers.
    pub fn work(&self) -> Channel {
        self.channel(0)
    }

    /// The end of the channel for evaluations.
    pub fn evaluations(&self) -> Channel {
        self.channel(1)
    }

    fn channel(&self, which: usize) -> Channel {
        let core = lock(&self.0);
        let end = core.inner.end();
        let (rank, size, patience) = (end.rank(), end.size(), end.patience().clone());
        let end = End::new(rank, size, patience.deadline()).sharing(end.buffers()).with_patience(patience);
        let (stash, core) = (Stash::new(rank, size), self.0.clone());
        Channel { core, which, end, stash, before: 0 }
    }

    /// Waits until everything sent has left; to be called once, when all channels are done.
    ///
    /// # Errors
    /// Those of [`Transport::finish`].
    pub fn finish(&self) -> Result<()> {
        lock(&self.0).inner.finish()
    }
}

/// Nothing is left half done by a thread that panics: frames are taken in one after the other.
fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One end of a channel.
pub struct Channel {
    core: Arc<Mutex<Core>>,
    which: usize,
    end: End,
    stash: Stash,
    /// How many workers come before those of this end's group.
    before: u32,
}

impl Channel {
    /// The same channel among the workers from this one on, who have numbers of their own there, from 0 on.
    ///
    /// # Panics
    /// If this worker comes before them.
    #[must_use]
    pub fn among_those_from(self, first: Rank) -> Channel {
        let (rank, size) = (Rank(self.end.rank().0 - first.0), self.end.size() - first.index());
        let (patience, buffers) = (self.end.patience().clone(), self.end.buffers().clone());
        let end = End::new(rank, size, patience.deadline()).sharing(&buffers).with_patience(patience);
        Channel { end, stash: Stash::new(rank, size), before: first.0, ..self }
    }

    /// The oldest frame of a peer on this channel, and whether the peer is gone.
    fn next(&mut self, from: Rank) -> Result<(Option<Frame>, bool)> {
        let mut core = lock(&self.core);
        let peer = Rank(from.0 + self.before);
        while !core.gone[peer.index()] {
            match core.inner.poll(peer) {
                Ok(Some(frame)) => {
                    let which = usize::from(frame.tag().purpose == FramePurpose::Evaluation);
                    let waiting = &mut core.waiting[which][peer.index()];
                    if waiting.len() == KEPT_MAX {
                        let (rank, oldest) = (self.end.rank(), waiting[0].tag());
                        return Err(WireError::Unclaimed {
                            rank,
                            peer: from,
                            tag: frame.tag(),
                            kept: KEPT_MAX,
                            oldest,
                        });
                    }
                    waiting.push_back(frame);
                }
                Ok(None) => break,
                Err(WireError::Gone { .. }) => core.gone[peer.index()] = true,
                Err(error) => return Err(error),
            }
        }
        let frame = core.waiting[self.which][peer.index()].pop_front();
        Ok((frame, core.gone[peer.index()]))
    }

    fn wait(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        let patience = self.end.patience().clone();
        let wait = patience.wait(self.end.rank(), from, tag);
        let (mut looks, mut sleep) = (0, SLEEPS[0]);
        let outcome = loop {
            match self.next(from) {
                Ok((Some(frame), _)) => match self.stash.sort(from, tag, frame) {
                    Ok(None) => {}
                    Ok(Some(frame)) => break Ok(frame),
                    Err(error) => break Err(error),
                },
                Ok((None, true)) => break Err(wait.gone()),
                Ok((None, false)) => {
                    if let Err(error) = wait.nap(|| self.stash.oldest(from)) {
                        break Err(error);
                    }
                    looks += 1;
                    if looks < SPINS {
                        thread::yield_now();
                    } else {
                        thread::sleep(sleep);
                        sleep = (2 * sleep).min(SLEEPS[1]);
                    }
                }
                Err(error) => break Err(error),
            }
        };
        let waited = self.end.waited() + wait.waited();
        self.end.set_waited(waited);
        outcome
    }
}

impl Transport for Channel {
    fn end(&self) -> &End {
        &self.end
    }

    fn end_mut(&mut self) -> &mut End {
        &mut self.end
    }

    fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
        self.end.assert_peer(to);
        lock(&self.core).inner.send(Rank(to.0 + self.before), frame)
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        self.end.assert_peer(from);
        match self.stash.take(from, tag)? {
            Some(frame) => Ok(frame),
            None => self.wait(from, tag),
        }
    }

    fn poll(&mut self, from: Rank) -> Result<Option<Frame>> {
        self.end.assert_peer(from);
        if let Some(frame) = self.stash.next(from) {
            return Ok(Some(frame));
        }
        match self.next(from)? {
            (None, true) => Err(self.end.gone(from)),
            (frame, _) => Ok(frame),
        }
    }

    /// Does nothing: the transport is finished once, after all channels ([`Channels::finish`]).
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, laws, threads};

    const WORK: Tag = Tag::new(Content::Models, FramePurpose::Training);
    const EVALUATION: Tag = Tag::new(Content::Figures, FramePurpose::Evaluation);

    fn frame(tag: Tag, bytes: &[u8]) -> Frame {
        let mut frame = Frame::new(tag, Vec::new());
        frame.payload_mut().extend_from_slice(bytes);
        frame
    }

    #[test]
    fn a_channel_is_a_transport() {
        let end = |end| Box::new(Channels::new(Box::new(end)).work()) as Box<dyn Transport>;
        laws::transports::check(|size| threads(size, Duration::from_secs(60)).into_iter().map(end).collect());
    }

    #[test]
    fn each_channel_hears_its_own_frames_in_their_order_and_nobody_takes_the_others() {
        let mut ends = threads(3, Duration::from_secs(20)).into_iter().map(|end| Channels::new(Box::new(end)));
        let [first, second, third] = [(); 3].map(|()| ends.next().unwrap());
        let (mut work, mut evaluations) = (first.work(), first.evaluations());
        for (tag, bytes) in [(WORK, b"1"), (EVALUATION, b"2"), (WORK, b"3"), (EVALUATION, b"4")] {
            let mut channel = if tag == WORK { second.work() } else { second.evaluations() };
            channel.send(Rank(0), frame(tag, bytes)).unwrap();
        }
        assert_eq!(evaluations.recv(Rank(1), EVALUATION).unwrap().payload(), b"2");
        assert_eq!(work.recv(Rank(1), WORK).unwrap().payload(), b"1");
        assert_eq!(work.poll(Rank(1)).unwrap().unwrap().payload(), b"3");
        assert!(work.poll(Rank(1)).unwrap().is_none());
        assert_eq!(evaluations.poll(Rank(1)).unwrap().unwrap().payload(), b"4");
        // Those from 1 on are 0 and 1 among themselves, beside the channel to 0.
        let [mut own, mut other] = [&second, &third].map(|of| of.work().among_those_from(Rank(1)));
        assert_eq!(((own.rank(), own.size()), (other.rank(), other.size())), ((Rank(0), 2), (Rank(1), 2)));
        other.send(Rank(0), frame(WORK, b"among us")).unwrap();
        work.send(Rank(1), frame(WORK, b"to all")).unwrap();
        assert_eq!(second.work().recv(Rank(0), WORK).unwrap().payload(), b"to all");
        assert_eq!(own.recv(Rank(1), WORK).unwrap().payload(), b"among us");
        // Who leaves is gone on every channel, after what it has said.
        second.work().send(Rank(0), frame(WORK, b"bye")).unwrap();
        drop((second, own));
        assert!(matches!(evaluations.poll(Rank(1)), Err(WireError::Gone { peer: Rank(1), .. })));
        assert_eq!(work.poll(Rank(1)).unwrap().unwrap().payload(), b"bye");
        assert!(matches!(work.recv(Rank(1), WORK), Err(WireError::Gone { peer: Rank(1), .. })));
    }
}

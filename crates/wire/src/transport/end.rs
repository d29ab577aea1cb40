//! What every transport has: whose end it is, how long it waits, and its used vectors.

use super::{Buffers, Patience};
use crate::{Content, Frame, FramePurpose, Rank, Tag, WireError};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Stands for whatever might have come.
pub(super) const ANY: Tag = Tag::new(Content::Agreement, FramePurpose::StartUp);

/// One worker's end of its links, as far as all transports are alike: a transport holds one and shows it, and a wrapper
/// shows the one inside.
#[derive(Debug)]
pub struct End {
    rank: Rank,
    size: usize,
    patience: Patience,
    waited: Duration,
    buffers: Buffers,
    /// Who shares this worker's process although others do not.
    same_process: Option<Rank>,
}

impl End {
    /// The end of `rank` in a group of `size`, whose waits last at most for `deadline`, with buffers of its own.
    ///
    /// # Panics
    ///
    /// If the group has no such rank.
    pub fn new(rank: Rank, size: usize, deadline: Duration) -> End {
        assert!(rank.index() < size, "rank {rank} is none of the {size} workers");
        let (patience, buffers) = (Patience::new(deadline), Buffers::default());
        End { rank, size, patience, waited: Duration::ZERO, buffers, same_process: None }
    }

    /// The same end with these buffers. Where frames move from one end to another within a process, the ends share
    /// theirs, because a vector that is sent leaves the sender's hands for good.
    #[must_use]
    pub fn sharing(self, buffers: &Buffers) -> End {
        End { buffers: buffers.clone(), ..self }
    }

    /// The same end with this patience.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> End {
        End { patience, ..self }
    }

    /// The worker whose end this is.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// How many workers there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How long this end waits, and who may end a wait early.
    pub fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Lets waits that begin from now on last up to `deadline`.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.patience.set_deadline(deadline);
    }

    /// Makes every wait end when the flag becomes true, too; flags given before still count.
    pub fn add_interrupt(&mut self, flag: Arc<AtomicBool>) {
        self.patience.add_interrupt(flag);
    }

    /// Lets no wait last longer than `most` from when the flag is true on.
    pub fn hurry(&mut self, flag: Arc<AtomicBool>, most: Duration) {
        self.patience.hurry(flag, most);
    }

    /// How long this end has waited for frames.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Says how long this end has waited for frames: a transport after each wait, and a link model, which knows better.
    pub fn set_waited(&mut self, waited: Duration) {
        self.waited = waited;
    }

    /// The vectors that this end uses again.
    pub fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// Says that this worker shares a process with a peer although others have processes of their own, or would have
    /// them: what the two say to each other crosses no network, and no ledger has it.
    pub fn set_same_process(&mut self, peer: Rank) {
        self.same_process = Some(peer);
    }

    /// Whether this worker shares a process with that peer, so that nothing between the two is counted.
    pub fn is_same_process(&self, peer: Rank) -> bool {
        self.same_process == Some(peer)
    }

    /// Asserts that `peer` is another worker of the group, as senders and receivers must.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub fn assert_peer(&self, peer: Rank) {
        assert!(peer.index() < self.size, "rank {peer} is none of the {} workers", self.size);
        assert_ne!(peer, self.rank, "a worker has no link to itself");
    }

    /// What a look for any frame of a worker says that is gone.
    pub(crate) fn gone(&self, peer: Rank) -> WireError {
        WireError::Gone { rank: self.rank, peer, tag: ANY, sending: false }
    }

    pub(crate) fn recycle(&self, frame: Frame) {
        self.buffers.put(frame.into_buffer());
    }
}

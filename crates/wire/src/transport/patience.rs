//! How long a worker waits. Every wait has a deadline, and every wait can be ended by somebody outside.

use crate::{Rank, Result, Tag, WireError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a sleeping wait looks at its interrupt. Below what a person notices, and too rare to cost anything.
const LOOK: Duration = Duration::from_millis(20);

/// The deadline of every wait at one end, and the flag that ends them all early.
#[derive(Debug, Clone)]
pub struct Patience {
    deadline: Duration,
    interrupts: Vec<Arc<AtomicBool>>,
}

impl Patience {
    /// Waits up to `deadline`, undisturbed.
    pub fn new(deadline: Duration) -> Patience {
        Patience { deadline, interrupts: Vec::new() }
    }

    /// How long a wait lasts at most.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Lets waits that begin from now on last up to `deadline`.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// From now on every wait also ends when the flag becomes true, for instance in a handler of SIGTERM; flags given
    /// before still count.
    pub fn add_interrupt(&mut self, flag: Arc<AtomicBool>) {
        self.interrupts.push(flag);
    }

    /// How long a wait that has lasted for `waited` may go on before it must ask again; none when the time is up.
    fn left(&self, waited: Duration) -> Option<Duration> {
        let left = self.deadline.checked_sub(waited).filter(|left| !left.is_zero())?;
        Some(if self.interrupts.is_empty() { left } else { left.min(LOOK) })
    }

    /// Whether somebody wants every wait to end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupts.iter().any(|flag| flag.load(Ordering::Relaxed))
    }

    /// Whether a wait that began at `start` must end now.
    pub fn is_over(&self, start: Instant) -> bool {
        self.is_interrupted() || self.left(start.elapsed()).is_none()
    }

    /// Begins a wait of `rank` for a frame.
    pub fn wait(&self, rank: Rank, peer: Rank, tag: Tag) -> Wait<'_> {
        Wait { patience: self, start: Instant::now(), rank, peer, tag }
    }
}

/// A wait in progress: knows who waits for whom, and turns running out of time into an error that says so.
#[derive(Debug)]
pub struct Wait<'a> {
    patience: &'a Patience,
    start: Instant,
    rank: Rank,
    peer: Rank,
    tag: Tag,
}

impl Wait<'_> {
    /// How long it has lasted.
    pub fn waited(&self) -> Duration {
        self.start.elapsed()
    }

    /// How long the caller may sleep before it must ask again; an error when the time is up or the interrupt came.
    /// `instead` is asked for the oldest frame that nobody claimed, to be named in the error.
    pub fn nap(&self, instead: impl FnOnce() -> Option<Tag>) -> Result<Duration> {
        let Wait { patience, rank, peer, tag, .. } = *self;
        if patience.is_interrupted() {
            return Err(WireError::Interrupted { rank, peer, tag });
        }
        let waited = self.waited();
        let expired = || WireError::Deadline { rank, peer, tag, waited, instead: instead() };
        patience.left(waited).ok_or_else(expired)
    }

    /// The error for a peer whose end is gone.
    pub fn gone(&self) -> WireError {
        WireError::Gone { rank: self.rank, peer: self.peer, tag: self.tag, sending: false }
    }
}

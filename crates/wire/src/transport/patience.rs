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
    /// Once this flag is true, a wait lasts no longer than that.
    haste: Option<(Arc<AtomicBool>, Duration)>,
}

impl Patience {
    /// Waits up to `deadline`, undisturbed.
    pub fn new(deadline: Duration) -> Patience {
        Patience { deadline, interrupts: Vec::new(), haste: None }
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

    /// From when the flag is true on, a wait lasts no longer than `most`, for instance where a scheduler has asked all
    /// to end and will kill whoever still waits.
    pub fn hurry(&mut self, flag: Arc<AtomicBool>, most: Duration) {
        self.haste = Some((flag, most));
    }

    /// How long a wait that has lasted for `waited` may go on before it must ask again; none when the time is up.
    fn left(&self, waited: Duration) -> Option<Duration> {
        let hurried = self.haste.as_ref().filter(|(flag, _)| flag.load(Ordering::Relaxed));
        let most = hurried.map_or(self.deadline, |(_, most)| self.deadline.min(*most));
        let left = most.checked_sub(waited).filter(|left| !left.is_zero())?;
        Some(if self.interrupts.is_empty() && self.haste.is_none() { left } else { left.min(LOOK) })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_in_haste_ends_before_its_deadline_and_no_other_does() {
        let (flag, second) = (Arc::new(AtomicBool::new(false)), Duration::from_secs(1));
        let mut patience = Patience::new(60 * second);
        patience.hurry(flag.clone(), 20 * second);
        assert!(patience.left(59 * second).is_some() && patience.left(60 * second).is_none());
        flag.store(true, Ordering::Relaxed);
        assert!(patience.left(19 * second).is_some() && patience.left(20 * second).is_none());
        patience.set_deadline(5 * second);
        assert!(patience.left(5 * second).is_none(), "haste makes no wait longer");
    }
}

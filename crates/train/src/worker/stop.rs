//! A wish to stop, of the caller or of the run itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag of the run's own beside the caller's, which is read and never set: the caller may use it for the next run.
#[derive(Debug, Clone, Default)]
pub struct StopSignal {
    callers: Arc<AtomicBool>,
    own: Arc<AtomicBool>,
}

impl StopSignal {
    /// A signal that is also given by the caller's flag.
    pub fn of(callers: Arc<AtomicBool>) -> StopSignal {
        StopSignal { callers, own: Arc::default() }
    }

    /// Gives the signal.
    pub fn set(&self) {
        self.own.store(true, Ordering::Relaxed);
    }

    /// Whether anybody has given it.
    pub fn is_set(&self) -> bool {
        self.callers.load(Ordering::Relaxed) || self.own.load(Ordering::Relaxed)
    }

    /// Both flags, for who looks at them without knowing this type.
    pub fn flags(&self) -> [Arc<AtomicBool>; 2] {
        [self.callers.clone(), self.own.clone()]
    }
}

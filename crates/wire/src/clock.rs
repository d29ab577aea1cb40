//! Time as an argument, so that everything that depends on it can be replayed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Says what time it is.
pub trait Clock: Send + Sync {
    /// The time since an origin that is the same for all readings of this clock. Never runs backwards.
    fn now(&self) -> Duration;
}

/// Real time. The origin is 1970, so that clocks of several processes on one machine agree; after construction it runs
/// monotonically, whatever happens to the machine's calendar.
#[derive(Debug, Clone, Copy)]
pub struct WallClock {
    start: Instant,
    at_start: Duration,
}

impl WallClock {
    /// A clock that runs from now on.
    pub fn new() -> WallClock {
        let at_start = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        WallClock { start: Instant::now(), at_start }
    }
}

impl Default for WallClock {
    fn default() -> WallClock {
        WallClock::new()
    }
}

impl Clock for WallClock {
    fn now(&self) -> Duration {
        self.at_start + self.start.elapsed()
    }
}

/// The processor time of the calling thread: what it has computed, whoever else used the machine meanwhile. Where the
/// system does not tell, a clock that stands still.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadClock;

impl Clock for ThreadClock {
    fn now(&self) -> Duration {
        #[cfg(unix)]
        {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
        }
        #[cfg(not(unix))]
        Duration::ZERO
    }
}

/// A clock that stands still until it is told otherwise, for tests and simulations.
#[derive(Debug, Default)]
pub struct ManualClock {
    nanoseconds: AtomicU64,
}

impl ManualClock {
    /// A clock that shows zero.
    pub fn new() -> ManualClock {
        ManualClock::default()
    }

    /// Lets this much time pass.
    pub fn advance(&self, by: Duration) {
        self.nanoseconds.fetch_add(nanoseconds(by), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::SeqCst))
    }
}

/// A duration in nanoseconds; 584 years at most.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

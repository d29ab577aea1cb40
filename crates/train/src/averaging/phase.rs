//! Where a run and its trainers stand, as the aggregator sees them.

use std::time::Duration;

use super::events::Ending;

/// What the aggregator knows of a trainer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has not come, or is gone.
    Absent,
    /// It takes steps.
    Working,
    /// It has sent its model and waits for the mean.
    Answered,
    /// It has taken its leave.
    Left,
}

/// What the aggregator waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Phase {
    /// Trainers to come, since then; since when there are enough.
    Gathering { since: Duration, enough: Option<Duration> },
    /// The interval to pass, since then.
    Working(Duration),
    /// Models, since then; since when there are enough; whether all who work were called; whether the mean will be the
    /// last.
    Collecting { since: Duration, enough: Option<Duration>, called: bool, last: bool },
    /// The correction of a mean, and whether it is the last.
    Correcting { last: bool },
    /// Leave-takings, and the verdict on the last mean.
    Closing(Duration, Ending),
    /// Nothing.
    Over,
}

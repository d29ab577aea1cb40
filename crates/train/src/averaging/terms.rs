//! What trainers and their aggregator agree on before they start.

use std::time::Duration;

use crate::config::{Pace, Weighting};

/// When means are taken, of whom, and when it is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// How many trainers there are.
    pub trainers: usize,
    /// From the end of one mean to the call for the next.
    pub interval: Pace,
    /// The end of the run.
    pub limit: Pace,
    /// What the learning rate runs towards, where it depends on how much of that is over.
    pub horizon: Option<Pace>,
    /// What each model counts for.
    pub weighting: Weighting,
    /// Without so many models there is no mean.
    pub quorum: usize,
    /// How long the others have once so many have answered.
    pub grace: Duration,
    /// How long a mean may wait for its quorum; then the run ends.
    pub deadline: Duration,
    /// How long trainers may take to come.
    pub start: Duration,
    /// Steps of correction after each mean (LLCG), 0 for none.
    pub corrections: u32,
    /// Every how many means one is judged; 0: the last alone.
    pub judge_every: u32,
    /// Judged means without a better one that end the run; 0 for never.
    pub patience: u32,
}

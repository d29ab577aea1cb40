//! What the aggregator knows of each trainer.

use crate::averaging::mean::Contribution;
use crate::averaging::phase::Standing;
use crate::config::Pace;

/// What the aggregator knows of a trainer.
#[derive(Debug)]
pub(super) struct Peer {
    pub standing: Standing,
    /// Whether it is gone before it has come.
    pub lost: bool,
    /// Whether the mean that is being taken waits for its model.
    pub expected: bool,
    /// Whether it was called since it was sent on its way.
    pub called: bool,
    /// Whether it was called and missing when the mean was taken, and has said nothing since: nobody waits for it.
    pub silent: bool,
    pub answer: Option<Contribution>,
    /// What its rows count for, and steps of its epochs.
    pub told: Option<(f64, u64)>,
    /// Its steps that entered means.
    pub steps: u64,
    /// The same of stages before.
    pub entered: u64,
}

impl Peer {
    /// One that has not come yet, with what entered means of this stage and of those before.
    pub fn absent(steps: u64, entered: u64) -> Peer {
        let (standing, answer, told) = (Standing::Absent, None, None);
        Peer { standing, lost: false, expected: false, called: false, silent: false, answer, told, steps, entered }
    }

    pub fn is_working(&self) -> bool {
        self.standing == Standing::Working
    }

    /// Whether it has come and is told when the end is there.
    pub fn is_at_work(&self) -> bool {
        matches!(self.standing, Standing::Working | Standing::Answered)
    }

    /// Whether it is at work and has not fallen silent.
    pub fn is_here(&self) -> bool {
        self.is_at_work() && !self.silent
    }

    /// As many steps as the pace is of its epochs; nobody knows them before it has come.
    pub fn steps_of(&self, pace: Pace) -> Option<u64> {
        self.told.and_then(|(_, of_epoch)| pace.steps(of_epoch))
    }
}

//! The weather of a simulated run: how fast everybody is, and what goes wrong.

use std::time::Duration;

use laconic_wire::LinkShape;

use crate::config::Failing;

/// How fast everybody is, and what goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Conditions {
    /// Steps a second of each trainer.
    pub speeds: Vec<f64>,
    /// Steps of correction a second of the aggregator.
    pub correction_speed: f64,
    /// How long a verdict takes.
    pub verdict: Duration,
    /// The uplink of the aggregator, and behind it those of trainers.
    pub links: Vec<LinkShape>,
    /// The trainer that lives in the aggregator's process: nothing that the two say crosses a link.
    pub guest: Option<usize>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

impl Conditions {
    /// Whether a trainer fails before it can come.
    pub fn is_absent_at_first(&self, trainer: usize) -> bool {
        let fails =
            |fault: &Fault| fault.trainer == Some(trainer) && fault.at.is_zero() && fault.kind != Failing::Stalled;
        self.faults.iter().any(fails)
    }

    /// The same as seen from a later time: faults that were before it have been.
    #[must_use]
    pub fn since(&self, time: Duration) -> Conditions {
        let later = |fault: &Fault| Some(Fault { at: fault.at.checked_sub(time)?, ..*fault });
        // Who never came is still not there; an aggregator that goes on is.
        let gone = |fault: &&Fault| fault.trainer.is_some() && fault.at < time && fault.back.is_none();
        let mut faults: Vec<Fault> = self.faults.iter().filter_map(later).collect();
        faults.extend(self.faults.iter().filter(gone).map(|fault| Fault { at: Duration::ZERO, ..*fault }));
        Conditions { faults, ..self.clone() }
    }
}

/// Something that goes wrong with somebody.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// Who; `None` for the aggregator.
    pub trainer: Option<usize>,
    /// When it begins.
    pub at: Duration,
    /// How it fails.
    pub kind: Failing,
    /// After how long it is back; `None` for never.
    pub back: Option<Duration>,
}

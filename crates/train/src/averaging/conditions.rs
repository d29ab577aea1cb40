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
    pub hosted: Option<usize>,
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

    /// The same as seen from a later time: faults that were over before it have been.
    #[must_use]
    pub fn since(&self, time: Duration) -> Conditions {
        let seen = |fault: &Fault| {
            if let Some(at) = fault.at.checked_sub(time) {
                return Some(Fault { at, ..*fault });
            }
            // Who is not back is still not there; an aggregator that goes on is.
            let back = fault.back.map(|back| fault.at.saturating_add(back).saturating_sub(time));
            let is_over = fault.trainer.is_none() || back.is_some_and(|back| back.is_zero());
            (!is_over).then_some(Fault { at: Duration::ZERO, back, ..*fault })
        };
        Conditions { faults: self.faults.iter().filter_map(seen).collect(), ..self.clone() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_back_is_still_not_there_later() {
        let seconds = Duration::from_secs;
        let fault = |trainer, at, back: Option<u64>| {
            let (at, back) = (seconds(at), back.map(seconds));
            Fault { trainer, at, kind: Failing::Killed, back }
        };
        let conditions = |faults| Conditions {
            speeds: vec![1.0; 4],
            correction_speed: 1.0,
            verdict: Duration::ZERO,
            links: Vec::new(),
            hosted: None,
            faults,
        };
        let all = conditions(vec![
            fault(Some(0), 2, Some(5)),
            fault(Some(1), 2, Some(3)),
            fault(Some(2), 2, None),
            fault(Some(3), 8, Some(1)),
            fault(None, 2, None),
        ]);
        let left = vec![fault(Some(0), 0, Some(2)), fault(Some(2), 0, None), fault(Some(3), 3, Some(1))];
        assert_eq!(all.since(seconds(5)), conditions(left));
        assert_eq!(all.since(Duration::ZERO), all);
    }
}

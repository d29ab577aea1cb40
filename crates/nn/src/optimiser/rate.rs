//! Learning-rate schedules: a factor of the base rate for each round of a stage.

use crate::registry::{Kind, Registry};

/// A kind of schedule: how it is called, which options it reads, how the rate moves.
#[derive(Debug)]
pub struct RateKind {
    /// The name in configurations.
    pub name: &'static str,
    /// The keys of `[train]` that it reads.
    pub options: &'static [&'static str],
    /// The factor of the base rate.
    pub factor: fn(&RateSpec, Elapsed) -> f32,
}

/// What schedules can be told; each reads what it knows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSpec {
    /// Rounds between two falls (`lr_step`).
    pub step: u32,
    /// What the rate is multiplied by at each of them (`lr_factor`).
    pub factor: f32,
}

/// How much of a stage is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Elapsed {
    /// Rounds since the warm-up.
    pub rounds: u32,
    /// Their share of all rounds after the warm-up, from 0 to below 1.
    pub share: f64,
}

/// Every kind of schedule that this crate has: the rate stays; falls in a straight line to 0 after the last round;
/// falls along half a cosine to 0 after the last round (Loshchilov and Hutter, 2017); or is multiplied by a factor
/// every so many rounds.
pub const RATES: &[RateKind] = &[
    RateKind { name: "constant", options: &[], factor: |_, _| 1.0 },
    RateKind { name: "linear", options: &[], factor: |_, elapsed| (1.0 - elapsed.share) as f32 },
    RateKind {
        name: "cosine",
        options: &[],
        factor: |_, elapsed| (0.5 + 0.5 * (std::f64::consts::PI * elapsed.share).cos()) as f32,
    },
    RateKind {
        name: "step",
        options: &["lr_step", "lr_factor"],
        factor: |spec, elapsed| spec.factor.powi((elapsed.rounds / spec.step.max(1)) as i32),
    },
];

/// Kinds of rate schedules by name.
pub type RateRegistry = Registry<RateKind>;

impl Kind for RateKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ours() -> &'static [Self] {
        RATES
    }
}

/// How the learning rate moves over a stage.
#[derive(Debug, Clone, Copy)]
pub struct RateSchedule {
    /// The kind of schedule.
    pub kind: &'static RateKind,
    /// What it was told.
    pub spec: RateSpec,
}

impl RateSchedule {
    /// The factor in round `round` of `rounds`, counted from 0, after a linear rise over the first `warmup` rounds. In
    /// rounds behind these the share of what is over stays that of the last of them.
    pub fn factor(&self, round: u32, rounds: u32, warmup: u32) -> f32 {
        let last = rounds.saturating_sub(1).max(warmup);
        let share = f64::from(round.min(last).saturating_sub(warmup)) / f64::from(rounds.saturating_sub(warmup).max(1));
        self.factor_at(round, share, warmup)
    }

    /// The same where something else than rounds says which share of the stage is over, from 0 to 1.
    pub fn factor_at(&self, round: u32, share: f64, warmup: u32) -> f32 {
        if round < warmup {
            return (round + 1) as f32 / warmup as f32;
        }
        (self.kind.factor)(&self.spec, Elapsed { rounds: round - warmup, share })
    }

    /// Whether the factor depends on how much of a stage is over, and not on rounds alone.
    pub fn follows_the_share(&self) -> bool {
        let at = |share| (self.kind.factor)(&self.spec, Elapsed { rounds: 0, share });
        at(0.0) != at(0.5) || at(0.0) != at(0.75)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_pass_through_their_known_points() {
        let factor = |name: &str, round, warmup| {
            let kind = RateRegistry::default().get(name).expect("a known name");
            RateSchedule { kind, spec: RateSpec { step: 3, factor: 0.5 } }.factor(round, 10, warmup)
        };
        assert_eq!(factor("constant", 7, 0), 1.0);
        assert_eq!(factor("linear", 5, 0), 0.5);
        assert!((factor("cosine", 5, 0) - 0.5).abs() < 1e-6);
        assert_eq!(factor("step", 6, 0), 0.25);
        assert_eq!(factor("linear", 0, 4), 0.25);
        assert_eq!(factor("linear", 4, 4), 1.0);
        // Behind the last round it stays as it was there; what falls every so many rounds goes on falling.
        assert_eq!(factor("linear", 25, 0), factor("linear", 9, 0));
        assert!((factor("linear", 25, 0) - 0.1).abs() < 1e-6);
        assert_eq!(factor("cosine", 25, 4), factor("cosine", 9, 4));
        assert_eq!(factor("step", 12, 0), 0.0625);
    }
}

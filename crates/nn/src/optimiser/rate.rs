//! Learning-rate schedules: a factor of the base rate for each round of a stage.

/// How the learning rate moves over a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateSchedule {
    /// Stays.
    Constant,
    /// Falls in a straight line to 0 after the last round.
    Linear,
    /// Falls along half a cosine to 0 after the last round (Loshchilov and Hutter, 2017).
    Cosine,
    /// Multiplies by `factor` every `every` rounds.
    Step {
        /// Rounds between two falls.
        every: u32,
        /// What the rate is multiplied by.
        factor: f32,
    },
}

impl RateSchedule {
    /// The factor in round `round` of `rounds`, after a linear rise over the first `warmup` rounds.
    pub fn factor(&self, round: u32, rounds: u32, warmup: u32) -> f32 {
        if round < warmup {
            return (round + 1) as f32 / warmup as f32;
        }
        let done = f64::from(round - warmup) / f64::from(rounds.saturating_sub(warmup).max(1));
        match *self {
            RateSchedule::Constant => 1.0,
            RateSchedule::Linear => (1.0 - done) as f32,
            RateSchedule::Cosine => (0.5 + 0.5 * (std::f64::consts::PI * done).cos()) as f32,
            RateSchedule::Step { every, factor } => factor.powi(((round - warmup) / every.max(1)) as i32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_pass_through_their_known_points() {
        assert_eq!(RateSchedule::Constant.factor(7, 10, 0), 1.0);
        assert_eq!(RateSchedule::Linear.factor(5, 10, 0), 0.5);
        assert!((RateSchedule::Cosine.factor(5, 10, 0) - 0.5).abs() < 1e-6);
        assert_eq!(RateSchedule::Step { every: 3, factor: 0.5 }.factor(6, 10, 0), 0.25);
        assert_eq!(RateSchedule::Linear.factor(0, 10, 4), 0.25);
        assert_eq!(RateSchedule::Linear.factor(4, 10, 4), 1.0);
    }
}

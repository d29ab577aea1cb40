//! Controllers: how a compression ratio or a bit-width changes while training (VARCO's schedule and its relatives).
//!
//! A controller is a law over a clock. The clock reads a phase from 0 to 1, the law maps it to a value between `from`
//! and `to`, and `slope` says how many times faster than the clock the ramp runs, so that slope 5 is through after a
//! fifth of the run. In a configuration `ratio = 4` is the constant and `ratio = { from = 128, slope = 5 }` the
//! published ramp.
//!
//! The published linear law keeps few columns for most of its ramp and opens up in its last few rounds, because columns
//! go with the inverse of the ratio. [`Law::Columns`] is linear in that inverse: its traffic rises evenly.
//!
//! Clocks other than the epoch read differently on different workers. The caller must agree on one [`Reading`] before
//! each round.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The shape of a ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// Stays at `from`.
    Fixed,
    /// A straight line (VARCO).
    #[default]
    Linear,
    /// Equal factors in equal times.
    Exponential,
    /// The straight line, taken in `steps` equal steps.
    Staircase,
    /// A straight line in the inverse of the value, hence in the columns kept.
    Columns,
}

/// What drives a ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The share of rounds done.
    #[default]
    Epoch,
    /// Seconds since the start, over `limit`.
    Elapsed,
    /// Bytes that the run has sent, over `limit`: all but those of checkpoints within a stage, as predicted for a run
    /// that nothing ends early.
    Bytes,
    /// How far the smallest gradient norm has fallen below the first one.
    GradientNorm,
}

/// A value that moves from one number to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// The shape of the ramp.
    #[serde(default)]
    pub law: Law,
    /// What drives it.
    #[serde(default)]
    pub clock: Clock,
    /// The value at the start.
    pub from: f64,
    /// The value at the end. A ratio always ends at 1 unless told otherwise.
    #[serde(default = "one")]
    pub to: f64,
    /// How many times faster than its clock the ramp runs. Below 1 it does not reach `to`.
    #[serde(default = "one")]
    pub slope: f64,
    /// Steps of a staircase down the whole clock, so that slope 2 takes half of them.
    #[serde(default = "eight")]
    pub steps: u32,
    /// Seconds for [`Clock::Elapsed`], bytes for [`Clock::Bytes`]. The latter may leave it to
    /// [`Controller::with_limit`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

/// A number that may change while training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Controller {
    /// A constant.
    Fixed(f64),
    /// A law over a clock.
    Ramp(Ramp),
}

/// What the clocks show before a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Rounds done before this one, hence this round counted from 0.
    pub done: u32,
    /// Rounds of the whole run.
    pub rounds: u32,
    /// Seconds since the start.
    pub elapsed: f64,
    /// Bytes sent so far.
    pub bytes: f64,
    /// The smallest gradient norm so far over the first one; 1 at the start.
    pub gradient: f64,
}

impl Default for Ramp {
    /// From 1 to 1 in a straight line over epochs.
    fn default() -> Ramp {
        let (law, clock) = (Law::default(), Clock::default());
        Ramp { law, clock, from: 1.0, to: 1.0, slope: 1.0, steps: 8, limit: None }
    }
}

impl Default for Reading {
    /// The start of a run of one round.
    fn default() -> Reading {
        Reading { done: 0, rounds: 1, elapsed: 0.0, bytes: 0.0, gradient: 1.0 }
    }
}

impl Clock {
    /// Whether it reads the same in every run of these shapes, so that bytes can be predicted exactly.
    pub fn is_predictable(self) -> bool {
        matches!(self, Clock::Epoch | Clock::Bytes)
    }
}

impl Controller {
    /// The value for the round that `reading` precedes. Finite for every controller that passed [`Controller::check`].
    pub fn at(&self, reading: &Reading) -> f64 {
        match self {
            Controller::Fixed(value) => *value,
            Controller::Ramp(ramp) => ramp.value(ramp.phase(reading)),
        }
    }

    /// The same ramp over epochs.
    #[must_use]
    pub fn by_epochs(&self) -> Controller {
        match *self {
            Controller::Ramp(ramp) => Controller::Ramp(Ramp { clock: Clock::Epoch, limit: None, ..ramp }),
            fixed => fixed,
        }
    }

    /// The clock that the value follows; `None` for one that never changes.
    pub fn clock(&self) -> Option<Clock> {
        match self {
            Controller::Ramp(ramp) if ramp.law != Law::Fixed => Some(ramp.clock),
            _ => None,
        }
    }

    /// Whether the value can be predicted exactly.
    pub fn is_predictable(&self) -> bool {
        self.clock().is_none_or(Clock::is_predictable)
    }

    /// The smallest and the largest value it can take.
    pub fn range(&self) -> (f64, f64) {
        match self {
            Controller::Fixed(value) => (*value, *value),
            Controller::Ramp(ramp) => {
                // Every law is monotone, so the ends of the clock are the ends of the range.
                let (start, end) = (ramp.value(0.0), ramp.value(1.0));
                (start.min(end), start.max(end))
            }
        }
    }

    /// The same controller, where a ramp over bytes that states no limit runs to this many.
    #[must_use]
    pub fn with_limit(&self, bytes: f64) -> Controller {
        match *self {
            Controller::Ramp(ramp) if ramp.clock == Clock::Bytes && ramp.limit.is_none() => {
                Controller::Ramp(Ramp { limit: Some(bytes), ..ramp })
            }
            other => other,
        }
    }

    /// Whether a ramp over bytes does not say how many.
    pub fn lacks_limit(&self) -> bool {
        matches!(self, Controller::Ramp(ramp) if ramp.clock == Clock::Bytes && ramp.limit.is_none())
    }

    /// Refuses numbers that make no sense or lie outside `least..=most`. The message starts with `key`, the
    /// controller's own.
    ///
    /// # Errors
    /// If a number makes no sense or lies outside; the text names the key.
    pub fn check(&self, key: &str, least: f64, most: f64) -> Result<(), String> {
        match self {
            Controller::Fixed(value) => within(key, *value, least, most),
            Controller::Ramp(ramp) => ramp.check(key, least, most),
        }
    }
}

impl Ramp {
    /// How far the clock has come, from 0 to 1.
    ///
    /// Epochs count as in the released code, t / (T - 2), so that the last two rounds both stand at the end. Where that
    /// divides by nothing (T up to 2), the first round is the start and every other one the end. A missing limit is
    /// never approached.
    fn phase(&self, reading: &Reading) -> f64 {
        let limit = self.limit.unwrap_or(f64::INFINITY);
        let phase = match self.clock {
            Clock::Epoch => f64::from(reading.done) / f64::from(reading.rounds.saturating_sub(2).max(1)),
            Clock::Elapsed => reading.elapsed / limit,
            Clock::Bytes => reading.bytes / limit,
            Clock::GradientNorm => 1.0 - reading.gradient,
        };
        // A gradient that is no number tells nothing, and the safe side is where the run began.
        if phase.is_nan() { 0.0 } else { phase.clamp(0.0, 1.0) }
    }

    /// The law at a phase from 0 to 1.
    fn value(&self, phase: f64) -> f64 {
        let steps = f64::from(self.steps);
        let phase = if self.law == Law::Staircase { (phase * steps).floor() / steps } else { phase };
        let progress = self.slope * phase;
        let (from, to) = (self.from, self.to);
        if self.law != Law::Fixed && progress >= 1.0 {
            // Said outright, since the sums below need not round to it.
            return to;
        }
        let value = match self.law {
            Law::Fixed => return from,
            Law::Linear | Law::Staircase => from + progress * (to - from),
            Law::Exponential => from * (to / from).powf(progress),
            Law::Columns => 1.0 / (1.0 / from + progress * (1.0 / to - 1.0 / from)),
        };
        value.max(from.min(to)).min(from.max(to))
    }

    fn check(&self, key: &str, least: f64, most: f64) -> Result<(), String> {
        within(&format!("{key}.from"), self.from, least, most)?;
        if self.law != Law::Fixed {
            within(&format!("{key}.to"), self.to, least, most)?;
        }
        if matches!(self.law, Law::Exponential | Law::Columns) {
            positive(&format!("{key}.from"), self.from)?;
            positive(&format!("{key}.to"), self.to)?;
        }
        positive(&format!("{key}.slope"), self.slope)?;
        if self.steps == 0 {
            return Err(format!("{key}.steps: expected at least 1, found 0"));
        }
        match (self.clock, self.limit) {
            (Clock::Elapsed, None) => Err(format!("{key}.limit: expected seconds, which the clock `elapsed` needs")),
            (Clock::Elapsed | Clock::Bytes, Some(limit)) => positive(&format!("{key}.limit"), limit),
            (Clock::Epoch | Clock::GradientNorm, Some(_)) => {
                Err(format!("{key}.limit: expected only with the clocks `elapsed` and `bytes`"))
            }
            (_, None) => Ok(()),
        }
    }
}

pub use laconic_wire::codec::travelling as kept_columns;

fn within(key: &str, value: f64, least: f64, most: f64) -> Result<(), String> {
    if value.is_finite() && (least..=most).contains(&value) {
        return Ok(());
    }
    Err(format!("{key}: expected a number from {least} to {most}, found {value}"))
}

fn positive(key: &str, value: f64) -> Result<(), String> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(format!("{key}: expected a number above 0, found {value}"))
}

fn one() -> f64 {
    1.0
}

fn eight() -> u32 {
    8
}

// By hand, because serde's untagged enums forget which key was unknown and say only that no variant matched.
impl<'de> Deserialize<'de> for Controller {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Controller, D::Error> {
        deserializer.deserialize_any(NumberOrRamp)
    }
}

struct NumberOrRamp;

impl<'de> Visitor<'de> for NumberOrRamp {
    type Value = Controller;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a number or a table such as { law = \"linear\", from = 128, to = 1, slope = 5 }")
    }

    fn visit_f64<E>(self, value: f64) -> Result<Controller, E> {
        Ok(Controller::Fixed(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Controller, E> {
        Ok(Controller::Fixed(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Controller, E> {
        Ok(Controller::Fixed(value as f64))
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Controller, M::Error> {
        Ramp::deserialize(MapAccessDeserializer::new(map)).map(Controller::Ramp)
    }
}

#[cfg(test)]
mod tests;

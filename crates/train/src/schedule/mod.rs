//! When workers exchange: each schedule is one file and one line in [`SCHEDULES`].
//!
//! A schedule says which stages a run has, and a stage says what is frozen, what is late and what is handed on. Running and
//! forecasting stages is shared by all schedules, so a new one is a new list of stages.

mod lazy;
mod pipelined;
mod stage;
mod synchronous;

use laconic_nn::layer::LayerKind;
use laconic_nn::network::Architecture;

use crate::config::Config;

pub use stage::{HandOn, Position, Stage};

/// When workers exchange.
pub trait Schedule: Sync {
    /// The name in configurations.
    fn name(&self) -> &'static str;

    /// The stages of a run of this model, at least one, of which all but the last hand something on.
    fn stages(&self, config: &Config, kind: &LayerKind, architecture: &Architecture) -> Vec<Stage>;
}

/// Every schedule.
pub const SCHEDULES: &[&dyn Schedule] = &[&synchronous::Synchronous, &pipelined::Pipelined, &lazy::Lazy];

/// The names of all schedules.
pub fn names() -> Vec<&'static str> {
    SCHEDULES.iter().map(|s| s.name()).collect()
}

/// The schedule of this name.
pub fn named(name: &str) -> Option<&'static dyn Schedule> {
    SCHEDULES.iter().copied().find(|s| s.name() == name)
}

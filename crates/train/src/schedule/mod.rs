//! When workers exchange: each schedule is one file and one line in [`SCHEDULES`].
//!
//! A schedule says which stages a run has. Running and predicting stages is shared ([`staged`]); a schedule that does something
//! else between rounds overrides [`Schedule::run`] and [`Schedule::predict`] together, since a test compares them to the byte.

mod lazy;
mod pipelined;
pub mod staged;
mod synchronous;

use laconic_nn::Operand;
use laconic_nn::layer::LayerKind;
use laconic_nn::network::{Architecture, Network};
use laconic_wire::Ledger;

use crate::config::Config;
use crate::error::Result;
use crate::fit::HandOn;
use crate::worker::Worker;
use crate::worker::discover::Shapes;
use crate::worker::evaluate::Evaluator;
use staged::{Hooks, Trained};

/// One stage of a run: a network on inputs that do not change while it trains.
pub struct Stage {
    /// The network.
    pub network: Network,
    /// Whether the inputs' halo is fetched once and kept.
    pub cache_inputs: bool,
    /// Whether the selection applies to inputs that are fetched once.
    pub sample_inputs: bool,
    /// Rows are used a round after they were sent: smoothing of features and of gradients, 0 for none.
    pub late: Option<[f32; 2]>,
    /// What the next stage gets.
    pub hand_on: HandOn,
    /// The number of the network's first layer, counted over stages.
    pub first_layer: u16,
    /// Rounds at most.
    pub rounds: u32,
    /// Base learning rate.
    pub lr: f32,
}

/// What a prediction is made from, besides the shapes of each worker.
#[derive(Clone, Copy)]
pub struct Forecast<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The stages.
    pub stages: &'a [Stage],
    /// The metrics.
    pub evaluator: &'a Evaluator,
    /// Where the run goes on from.
    pub position: &'a Position,
}

/// How far a run has come: rounds of finished stages, and of the one after them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position {
    /// Rounds that each finished stage took.
    pub finished: Vec<u32>,
    /// Rounds done in the next.
    pub done: u32,
    /// Whether patience has ended it.
    pub stopped: bool,
}

/// When workers exchange.
pub trait Schedule: Sync {
    /// The name in configurations.
    fn name(&self) -> &'static str;

    /// The stages of a run of this model.
    fn stages(&self, config: &Config, kind: &LayerKind, architecture: &Architecture) -> Vec<Stage>;

    /// Trains on a worker; called on every worker at once.
    fn run(&self, worker: &mut Worker, stages: &[Stage], x: Operand, hooks: &mut dyn Hooks) -> Result<Trained> {
        staged::run(worker, stages, x, hooks)
    }

    /// What a worker of these shapes will send from the first round on (or from a checkpoint's), had nothing stopped it early.
    fn predict(&self, forecast: &Forecast<'_>, shapes: &Shapes) -> Result<Ledger> {
        staged::predict(forecast, shapes)
    }
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

//! When workers exchange: each schedule is one file and one line in [`SCHEDULES`].
//!
//! A schedule says which stages a run has, and a stage says what is frozen, what is late and what is handed on. Running
//! and forecasting stages is shared by all schedules, so a new one is a new list of stages.

mod averaging;
mod correct_and_smooth;
mod label_propagation;
mod lazy;
mod pipelined;
mod propagation;
mod ridge;
mod stage;
mod synchronous;

use laconic_nn::architecture::Architecture;
use laconic_nn::layer::LayerKind;
use laconic_nn::registry::{Kind, Registry};

use crate::config::Config;

pub use propagation::{Propagated, Propagation};
pub use stage::{HandOn, Lateness, Position, Ridge, Stage};

/// What a schedule makes its stages from.
pub struct Blueprint<'a> {
    /// The configuration: of it a schedule reads `[schedule]` and `[train]`.
    pub config: &'a Config,
    /// The kind of layer.
    pub kind: &'a LayerKind,
    /// The shape of the model.
    pub architecture: &'a Architecture,
}

/// When workers exchange: an entry of a [`ScheduleRegistry`].
#[derive(Debug)]
pub struct ScheduleKind {
    /// The name in configurations.
    pub name: &'static str,
    /// The keys of `[schedule]` that it reads, besides those that all schedules do.
    pub options: &'static [&'static str],
    /// Whether workers are independent trainers, whose models are averaged.
    pub trainers: bool,
    /// What of training labels passes along edges, which they then leave their owners for; `None` where nothing does.
    pub propagates: Option<Propagated>,
    /// The stages of a run, at least one, of which all but the last hand something on.
    pub stages: fn(&Blueprint<'_>) -> Vec<Stage>,
}

/// Every schedule that this crate has.
pub const SCHEDULES: &[ScheduleKind] = &[
    synchronous::KIND,
    pipelined::KIND,
    lazy::KIND,
    averaging::KIND,
    averaging::PSGD_PA,
    averaging::LLCG,
    synchronous::GGS,
    label_propagation::KIND,
    correct_and_smooth::KIND,
    ridge::KIND,
];

/// Schedules by name.
pub type ScheduleRegistry = Registry<ScheduleKind>;

impl Kind for ScheduleKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ours() -> &'static [Self] {
        SCHEDULES
    }
}

//! One stage after the other, round by round.

pub mod agreement;
pub mod batch;
pub mod choice;
mod inputs;
pub mod local;
pub mod observe;
mod pairs;
pub mod progress;
mod propagated;
pub(crate) mod questions;
mod report;
pub mod ridge;
mod since;
pub mod stages;
pub mod task;
pub mod trainer;

pub use agreement::extras_count;
pub use inputs::StageInputs;

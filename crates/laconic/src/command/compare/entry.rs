//! One method of the file, and how a file is refused.

use laconic_train::TrainError;
use serde::Deserialize;

/// Runs of one matrix at most.
pub const RUNS_MAX: usize = 1000;

/// A method as the file has it, or as a sweep makes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodEntry {
    /// What it is called.
    pub name: String,
    /// What it changes.
    #[serde(default)]
    pub set: Vec<String>,
}

/// What reading the file comes to.
pub type Result<T> = std::result::Result<T, TrainError>;

/// Refuses a file of methods.
pub fn refuse<T>(what: String) -> Result<T> {
    Err(TrainError::config(what))
}

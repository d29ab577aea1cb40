//! Threads that panic.

use crate::error::TrainError;

/// What a worker that panicked said.
pub(super) fn panicked(rank: u32, panic: &(dyn std::any::Any + Send)) -> TrainError {
    let said = panic.downcast_ref::<String>().cloned();
    let message = said.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default();
    TrainError::Panicked { rank, message }
}

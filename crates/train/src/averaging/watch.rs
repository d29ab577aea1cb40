//! Who watches a run of trainers and writes it down.

use std::time::Duration;

use super::events::{Kept, Noted};
use crate::error::Result;

/// Who watches a run.
pub trait Watch<V> {
    /// Trainers go from now on.
    fn began(&mut self, _now: Duration) {}

    /// A mean is to be written down.
    ///
    /// # Errors
    /// If it cannot be.
    fn kept(&mut self, now: Duration, kept: &Kept, sent: u64) -> Result<()>;

    /// A mean was judged.
    ///
    /// # Errors
    /// If it cannot be written down.
    fn judged(&mut self, now: Duration, number: u32, verdict: &V) -> Result<()>;

    /// Nobody can judge this mean, or any later one.
    ///
    /// # Errors
    /// If it cannot be written down.
    fn stays_unjudged(&mut self, _number: u32) -> Result<()> {
        Ok(())
    }

    /// Something has happened to a trainer that is worth a line.
    fn noted(&mut self, now: Duration, trainer: usize, what: Noted);

    /// Whether the user wants an end.
    fn is_stopped(&self) -> bool {
        false
    }
}

//! What a worker remembers between two agreements.

use std::time::Duration;

use super::agreement::Extras;
use crate::worker::Worker;

/// What has happened on this worker since workers last agreed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Since {
    loss: f64,
    rounds: u32,
    /// What the own rows of the last round count for.
    pub rows: f64,
}

impl Since {
    /// Adds a round of this loss.
    pub fn add(&mut self, loss: f64) {
        (self.loss, self.rounds) = (self.loss + loss, self.rounds + 1);
    }

    /// What rides along with the reduction, after this time.
    pub fn extras(&self, worker: &Worker, elapsed: Duration) -> Extras {
        Extras {
            loss: self.loss / f64::from(self.rounds),
            stop: f64::from(u8::from(worker.is_interrupted())),
            seconds: elapsed.as_secs_f64(),
            rows: self.rows,
        }
    }
}

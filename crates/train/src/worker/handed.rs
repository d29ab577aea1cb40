//! The rows that a worker's next stage begins with.

use laconic_nn::{Operand, Precision};

use super::Worker;
use crate::error::{Result, TrainError};

/// Rows of own nodes that a stage gets from the one before, or features.
pub struct Handed {
    /// What it trains on.
    pub training: Operand,
    /// What it is evaluated on, where that is something else: rows that have seen more of the graph.
    pub evaluation: Option<Operand>,
}

impl Handed {
    /// The same rows, stored so.
    #[must_use]
    pub fn stored(self, precision: Precision) -> Handed {
        let evaluation = self.evaluation.map(|rows| rows.converted(precision));
        Handed { training: self.training.converted(precision), evaluation }
    }
}

impl From<Operand> for Handed {
    fn from(training: Operand) -> Handed {
        Handed { training, evaluation: None }
    }
}

impl Worker {
    /// Takes what the next stage begins with out of the worker, since a stage consumes its rows: own features, or what
    /// the stage before has handed on.
    ///
    /// # Errors
    /// If it has been taken, and no stage has handed anything on since.
    pub fn take_handed(&mut self) -> Result<Handed> {
        self.handed.take().ok_or(TrainError::NothingHanded { rank: self.rank().0 })
    }

    /// The rows that the next stage begins with, where it has not begun.
    pub fn handed(&self) -> Option<&Operand> {
        self.handed.as_ref().map(|handed| &handed.training)
    }

    /// Keeps rows for the next stage.
    pub fn keep_handed(&mut self, rows: Handed) {
        self.handed = Some(rows);
    }

    /// Whether there is something that a next stage can begin with.
    pub fn has_handed(&self) -> bool {
        self.handed.is_some()
    }
}

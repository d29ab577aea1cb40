//! Independent trainers: each takes steps on its own rows, and every so often the mean of their models stands for all.
//!
//! Nothing here sends, waits or looks at a clock. An [`Aggregator`] and each [`Trainer`] are told what has happened and
//! when, and say what is to be done about it. What tells them is either a queue of simulated events
//! ([`simulated::run`]), where a whole run with slow links and failing trainers is a function of its seed, or the
//! network (`run/trainers/server.rs`). Both run the same protocol, so that a fault that a simulation finds is a fault
//! of runs.
//!
//! Sources: RandomTMA and SuperTMA (arXiv 2305.09887) for means by time, LLCG (arXiv 2111.08202) for corrections;
//! quorum, grace and trainers that come back are in neither.

mod aggregator;
mod change;
pub mod conditions;
mod events;
pub mod lane;
pub mod link;
mod mean;
mod message;
mod phase;
mod played;
pub mod simulated;
mod terms;
mod trainer;
mod watch;

use std::sync::Arc;

use laconic_wire::Frame;

use crate::error::{Result, TrainError};

pub use aggregator::Aggregator;
pub use change::{Change, Changes, Form, Sent};
pub use events::{Action, Ending, Event, Kept, Noted, Reached};
pub use mean::{Contribution, Mean, mean};
pub use message::{FromTrainer, Leave, Taken, ToTrainer};
pub use played::Played;
pub use terms::Terms;
pub use trainer::{Answer, Trainer};
pub use watch::Watch;

/// A model: all values of a network, in one flat slice that many may hold.
pub type Model = Arc<[f32]>;

/// Refuses a model that holds what is no number; it is `of` the mean of this number.
///
/// # Errors
/// If it does.
pub fn check_numbers(model: &[f32], number: u32, of: &str) -> Result<()> {
    let Some(odd) = model.iter().find(|value| !value.is_finite()) else { return Ok(()) };
    Err(TrainError::Diverged { round: number, what: format!("a value of {of} mean {number} is {odd}") })
}

/// What a trainer trains: its own rows, its own optimiser.
pub trait Learner {
    /// Takes one step; returns its loss.
    ///
    /// # Errors
    /// If training has left the numbers.
    fn step(&mut self) -> Result<f64>;

    /// The model as it is.
    fn parameters(&self) -> &[f32];

    /// Goes on from this model. The optimiser keeps what it remembers.
    fn adopt(&mut self, model: &[f32]);

    /// Goes on from the mean of this number, 0 for the initial model, which [`Learner::adopt`] has given it; so many of
    /// its steps have entered means.
    fn sets_out(&mut self, _number: u32, _taken: Taken) {}

    /// What it wants to be told other trainers since the last time, with their numbers; nobody waits for that.
    fn tells(&mut self) -> Vec<(usize, Frame)> {
        Vec::new()
    }

    /// What another trainer has told it.
    fn is_told(&mut self, _from: usize, _frame: Frame) {}

    /// Forgets everything, as a process does that is started again: the initial model, a fresh optimiser.
    fn restart(&mut self);

    /// What its training rows count for.
    fn rows(&self) -> f64;

    /// Steps of an epoch over its rows.
    fn steps_of_epoch(&self) -> u64;
}

/// Who judges means, and corrects them where it is asked to.
pub trait Judge {
    /// What is known of a model.
    type Verdict: Clone;

    /// Judges the mean of this number; `None` where somebody who had a part in it is gone.
    ///
    /// # Errors
    /// If it is none to be judged.
    fn judge(&mut self, number: u32, model: &[f32]) -> Result<Option<Self::Verdict>>;

    /// A trainer is gone, and whoever judged its nodes with it.
    fn loses_trainer(&mut self) {}

    /// The figure that chooses the best: more is better. `None` where nothing was measured.
    fn worth(&self, verdict: &Self::Verdict) -> Option<f64>;

    /// Takes this many steps of its own on the mean of this number (LLCG), by an optimiser that it keeps; this `share`
    /// of what the learning rate runs towards was over when trainers set out for it.
    ///
    /// # Errors
    /// As [`Learner::step`].
    fn correct(&mut self, number: u32, model: &[f32], steps: u32, share: f64) -> Result<Vec<f32>>;
}

#[cfg(test)]
mod tests;

//! What trainers and their aggregator say to each other.

use super::Model;
use super::change::Sent;

/// What a trainer says.
#[derive(Debug, Clone, PartialEq)]
pub enum FromTrainer {
    /// It is here, for the first time or again, and has no model of the run's.
    Came {
        /// Steps of an epoch over its rows.
        steps_of_epoch: u64,
        /// What its training rows count for.
        rows: f64,
    },
    /// Its model, for a mean.
    Model {
        /// The number of the mean that it is for.
        number: u32,
        /// Steps since the last mean that it took up.
        steps: u64,
        /// The mean loss of these.
        loss: f64,
        /// The model, or what it has changed since the mean before.
        model: Sent,
    },
    /// It has taken its leave.
    Bye(Leave),
}

/// Steps of a trainer that have entered means. Its next ones are behind them, also where it begins anew: schedules of
/// the learning rate, batches and dropout go on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Taken {
    /// In stages before this one.
    pub before: u64,
    /// In this stage.
    pub here: u64,
    /// Where the learning rate runs towards a time: the share of it that is over, from 0 to 1.
    pub share: Option<f64>,
}

/// What a trainer leaves with.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Leave {
    /// Steps that it took.
    pub steps: u64,
    /// The largest resident size of its process, in bytes.
    pub memory: u64,
}

/// What the aggregator says.
#[derive(Debug, Clone, PartialEq)]
pub enum ToTrainer {
    /// Take up the mean of this number and train.
    Go {
        /// 0 for the initial model, which everybody draws from the key.
        number: u32,
        /// The trainer's steps until then.
        taken: Taken,
        /// The mean, or what has changed since the one before; `None` for the initial model.
        model: Option<Sent>,
    },
    /// After the current step, send the model for the mean of this number.
    Call {
        /// The number.
        number: u32,
    },
    /// It is over; this is what the run has chosen, where there is a stage to come.
    End {
        /// The chosen model.
        chosen: Option<Model>,
    },
}

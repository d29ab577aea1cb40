//! What an aggregator is told, and what it wants to be done.

use std::time::Duration;

use super::Model;
use super::mean::Mean;
use super::message::{FromTrainer, ToTrainer};

/// Something that has happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A trainer has said something.
    Heard(usize, FromTrainer),
    /// A trainer is gone: its end of the link is.
    Lost(usize),
    /// The mean of this number was judged: its worth, more is better, if anything was measured.
    Judged(u32, Option<f64>),
    /// Nobody can judge the mean of this number, or any later one.
    Unjudged(u32),
    /// A mean was corrected.
    Corrected(Model),
    /// Time has passed.
    Tick,
    /// The user wants an end.
    Stopped,
}

/// Something to be done, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Trainers go from now on.
    Begin,
    /// Say this to a trainer.
    Say(usize, ToTrainer),
    /// Write this down before anything else is done: what the run goes on from when everything is lost.
    Keep(Box<Kept>),
    /// Judge this mean, while trainers go on; then tell ([`Event::Judged`]).
    Judge(u32, Model),
    /// Correct the mean of this number, which trainers wait for and set out for when this share of what the learning
    /// rate runs towards was over; then tell ([`Event::Corrected`]).
    Correct(u32, Model, f64),
    /// Something for the log, about a trainer.
    Note(usize, Noted),
    /// It is over.
    Finish(Ending),
}

/// What is noted of a trainer, with the number of the last mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// It had not come when the others began.
    NotCome,
    /// It has come, for the first time or again.
    Came(u32),
    /// It is gone.
    Lost(u32),
    /// It had not answered when the mean was taken.
    Missing(u32),
    /// It has answered after the mean was taken.
    Late(u32),
}

/// A mean that is worth keeping.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// The mean as trainers take it up.
    pub mean: Mean,
    /// How long the run had gone on then.
    pub elapsed: Duration,
    /// Steps of each trainer that have entered means so far.
    pub steps: Vec<u64>,
    /// The share of what the learning rate runs towards that was over when trainers set out for it.
    pub share: f64,
    /// Whether it is the last.
    pub last: bool,
}

/// What a run goes on from; nothing where it begins.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reached {
    /// The last mean, if there is one.
    pub kept: Option<Kept>,
    /// Whether the verdict on it was lost, if there was one to come: then it is judged again.
    pub owes: bool,
    /// Worth of the best so far, and judged means since.
    pub best: (Option<f64>, u32),
    /// Steps of each trainer that have entered means of stages before; none of who is not named.
    pub entered: Vec<u64>,
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// At its limit.
    Limit,
    /// No better mean had come for as long as patience lasts.
    Patience,
    /// The user wanted it so.
    Stopped,
    /// Too few trainers were left, or answered, for a mean.
    NoQuorum {
        /// How many had answered.
        answered: usize,
    },
}

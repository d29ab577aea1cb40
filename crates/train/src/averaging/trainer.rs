//! A trainer's side: it takes steps until it is called, or has taken as many as lie between two means.

use laconic_wire::{Rank, WireError};

use super::change::{Changes, Sent};
use super::message::{FromTrainer, ToTrainer};
use super::{Learner, Model, check_numbers};
use crate::config::Pace;
use crate::error::Result;

/// What a trainer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It waits for a model to go on from.
    Waiting,
    /// It takes steps from the mean of this number.
    Working(u32),
    /// It has taken its leave.
    Over,
}

/// What came of a message or a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Nothing to say.
    Nothing,
    /// To be sent to the aggregator.
    Say(FromTrainer),
    /// To be sent to the aggregator, which has chosen this model, where another stage is to come.
    Leave(Option<Model>),
}

/// One trainer, from when it comes until it takes its leave. It never waits for another: who answers a call waits for
/// the aggregator alone.
#[derive(Debug)]
pub struct Trainer {
    interval: Pace,
    state: State,
    /// Steps since it took up a mean, and the sum of their losses.
    since: (u64, f64),
    /// Whether it was called before it had taken a step.
    is_called: bool,
    /// How models travel where something is lost on their way.
    changes: Option<Changes>,
    /// The number of the mean that this trainer went on from, and the mean.
    base: (Option<u32>, Vec<f32>),
}

impl Trainer {
    /// A trainer that is about to come, where means are taken so far apart, and models travel as changes or as they
    /// are.
    pub fn new(interval: Pace, changes: Option<Changes>) -> Trainer {
        Trainer {
            interval,
            state: State::Waiting,
            since: (0, 0.0),
            is_called: false,
            changes,
            base: (None, Vec::new()),
        }
    }

    /// What it says when it comes.
    pub fn comes(&self, learner: &dyn Learner) -> FromTrainer {
        FromTrainer::Came { steps_of_epoch: learner.steps_of_epoch(), rows: learner.rows() }
    }

    /// Whether it has a step to take.
    pub fn is_working(&self) -> bool {
        matches!(self.state, State::Working(_))
    }

    /// Whether it has taken its leave.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Takes a step.
    ///
    /// # Errors
    /// If training has left the numbers.
    pub fn step(&mut self, learner: &mut dyn Learner) -> Result<Answer> {
        let loss = learner.step()?;
        self.since = (self.since.0 + 1, self.since.1 + loss);
        let is_due = self.interval.steps(learner.steps_of_epoch()).is_some_and(|steps| self.since.0 >= steps);
        if is_due || self.is_called { self.answer(learner) } else { Ok(Answer::Nothing) }
    }

    /// Hears the aggregator between two steps.
    ///
    /// # Errors
    /// If what should be a change of the mean before is none, or the model holds what is no number.
    pub fn hears(&mut self, message: &ToTrainer, learner: &mut dyn Learner) -> Result<Answer> {
        Ok(match (message, self.state) {
            (_, State::Over) => Answer::Nothing,
            (ToTrainer::Go { number, taken, model }, _) => {
                if self.take_up(*number, model.as_ref(), learner)? {
                    self.state = State::Working(*number);
                    (self.since, self.is_called) = ((0, 0.0), false);
                    learner.sets_out(*number, *taken);
                }
                Answer::Nothing
            }
            // A model that nobody has trained would only hold the mean back.
            (ToTrainer::Call { number }, State::Working(from)) if *number == from + 1 && self.since.0 == 0 => {
                self.is_called = true;
                Answer::Nothing
            }
            (ToTrainer::Call { number }, State::Working(from)) if *number == from + 1 => self.answer(learner)?,
            // A call that was under way when it had sent its model already, or another mean had come.
            (ToTrainer::Call { .. }, _) => Answer::Nothing,
            (ToTrainer::End { chosen }, _) => {
                self.state = State::Over;
                Answer::Leave(chosen.clone())
            }
        })
    }

    /// Goes on from the mean of this number, if it can be told from what it has.
    fn take_up(&mut self, number: u32, model: Option<&Sent>, learner: &mut dyn Learner) -> Result<bool> {
        match (model, &mut self.changes) {
            // The initial model, which the learner has.
            (None, _) => {}
            (Some(Sent::Whole(model)), _) => learner.adopt(model),
            // Sent to who was here before, of whom the aggregator did not know yet that it is gone: it will send all.
            (Some(Sent::Change(_)), Some(_)) if self.base.0.is_none_or(|base| base + 1 != number) => return Ok(false),
            (Some(Sent::Change(change)), Some(changes)) => {
                let model = changes.decode(number, Rank(0), &self.base.1, change);
                learner.adopt(&model.ok_or_else(|| WireError::malformed("no change of a model"))?);
            }
            (Some(Sent::Change(_)), None) => {
                return Err(WireError::malformed("a change where models travel as they are").into());
            }
        }
        if self.changes.is_some() {
            self.base.0 = Some(number);
            self.base.1.clear();
            self.base.1.extend_from_slice(learner.parameters());
        }
        Ok(true)
    }

    /// Its model for the next mean.
    fn answer(&mut self, learner: &dyn Learner) -> Result<Answer> {
        let State::Working(from) = self.state else { return Ok(Answer::Nothing) };
        self.state = State::Waiting;
        let (steps, losses) = self.since;
        let loss = if steps > 0 { losses / steps as f64 } else { 0.0 };
        let (number, own) = (from + 1, learner.parameters());
        // The last step's loss was that before it.
        check_numbers(own, number, "the model for")?;
        let change = self.changes.as_mut().and_then(|changes| changes.encode(number, &self.base.1, own));
        let model = change.map_or_else(|| Sent::Whole(own.into()), Sent::Change);
        Ok(Answer::Say(FromTrainer::Model { number, steps, loss, model }))
    }
}

//! A trainer by the clock on the wall: it polls for messages of the aggregator between two steps.

use laconic_wire::{Metered, Transport, WireError};

use super::Setup;
use super::server::{AGGREGATOR, REST};
use crate::averaging::link::{Inbox, frames_from_trainer};
use crate::averaging::{Answer, Changes, Form, FromTrainer, Learner, Leave, Model, ToTrainer, Trainer};
use crate::error::{Result, TrainError};
use crate::exchange::steps::Step;
use crate::fit::local::LocalTrainer;
use crate::forecast::memory;
use crate::worker::StopSignal;

/// A trainer's end of the network.
pub(super) struct TrainerClient {
    pub transport: Metered,
    /// Set when everybody is to give up at once.
    pub give_up: StopSignal,
    /// Set when the aggregator beside it has ended: what it has said may still be here, and nothing more comes.
    pub over: StopSignal,
    /// Steps that it has taken so far, over all stages and, as far as they entered means, before it began anew.
    pub steps: u64,
}

impl TrainerClient {
    fn send(&mut self, said: &FromTrainer) -> Result<()> {
        frames_from_trainer(said).into_iter().try_for_each(|frame| Ok(self.transport.send(AGGREGATOR, frame)?))
    }

    /// The next thing that the aggregator has said, if it is here.
    fn receive(&mut self, inbox: &mut Inbox) -> Result<Option<ToTrainer>> {
        let rank = self.transport.rank();
        while let Some(frame) = self.transport.poll(AGGREGATOR)? {
            let heard = inbox.of_aggregator(&frame).map_err(|error| error.from_peer(rank, AGGREGATOR, frame.tag()))?;
            if heard.is_some() {
                return Ok(heard);
            }
            // The model comes right behind.
        }
        Ok(None)
    }

    fn given_up(&self) -> TrainError {
        let (rank, peer) = (self.transport.rank(), AGGREGATOR);
        WireError::Interrupted { rank, peer, tag: Step::TrainerGoes.tag(0) }.into()
    }

    /// Trains a stage until the aggregator ends it; returns what it has chosen, where it says so.
    ///
    /// # Errors
    /// If training has left the numbers, or the aggregator is gone.
    pub fn train(&mut self, setup: &Setup, stage: usize, learner: &mut LocalTrainer<'_>) -> Result<Option<Model>> {
        let changes = Changes::of(&setup.plan, stage, self.transport.rank())?;
        let mut inbox = Inbox::new(Form::of(changes.as_ref(), learner.parameters().len()));
        let mut machine = Trainer::new(setup.trainers.interval, changes);
        self.send(&machine.comes(learner))?;
        loop {
            if self.give_up.is_set() {
                return Err(self.given_up());
            }
            let is_over = self.over.is_set();
            let answer = match self.receive(&mut inbox)? {
                Some(said) => {
                    if let ToTrainer::Go { taken, .. } = said {
                        self.steps = self.steps.max(taken.before.saturating_add(taken.here));
                    }
                    machine.hears(&said, learner)?
                }
                None if is_over => return Err(self.given_up()),
                None if machine.is_working() => {
                    self.steps += 1;
                    machine.step(learner)?
                }
                None => {
                    std::thread::sleep(REST);
                    continue;
                }
            };
            match answer {
                Answer::Nothing => {}
                Answer::Say(said) => self.send(&said)?,
                Answer::Leave(chosen) => {
                    self.send(&FromTrainer::Bye(Leave { steps: self.steps, memory: memory::peak_bytes() }))?;
                    return Ok(chosen);
                }
            }
        }
    }
}

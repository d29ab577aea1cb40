//! What worker 0 of a group that evaluates means tells the others, who own the nodes: to evaluate a model, or that a
//! stage has ended. Steps: one frame to each.

use std::time::Duration;

use laconic_wire::{Count, Frame, Ledger, Rank, Tag, Transport, WireError};

use crate::averaging::Model;
use crate::error::Result;
use crate::exchange::steps::Step;

/// How long who waits for a question sleeps when it has found none: evaluations are far apart.
const REST: Duration = Duration::from_micros(500);

/// Bytes of a number of rounds.
const ROUNDS: usize = size_of::<u32>();

/// What all are to do next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Question {
    /// Evaluate the mean of this number.
    Evaluate { number: u32, model: Model },
    /// The stage has ended; where another is to come, with the model that it goes on from and the rounds before it.
    Ends { rounds: u32, chosen: Option<Model> },
}

impl Question {
    fn tag(&self) -> Tag {
        match self {
            Question::Evaluate { number, .. } => Step::EvaluatedMean.tag(*number),
            Question::Ends { .. } => Step::EvaluationEnds.tag(0),
        }
    }

    fn write(&self, into: &mut Vec<u8>) {
        let model = match self {
            Question::Evaluate { model, .. } => Some(model),
            Question::Ends { rounds, chosen } => {
                into.extend(rounds.to_le_bytes());
                chosen.as_ref()
            }
        };
        model.into_iter().flat_map(|model| &**model).for_each(|value| into.extend(value.to_le_bytes()));
    }

    fn read(frame: &Frame, values: usize) -> Option<Question> {
        let (tag, payload) = (frame.tag(), frame.payload());
        let model = |bytes: &[u8]| -> Option<Model> {
            let fits = bytes.len() == size_of::<f32>() * values;
            fits.then(|| bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect())
        };
        if tag == Step::EvaluatedMean.tag(tag.round) {
            return Some(Question::Evaluate { number: tag.round, model: model(payload)? });
        }
        let (rounds, rest) = payload.split_first_chunk::<ROUNDS>().filter(|_| tag == Step::EvaluationEnds.tag(0))?;
        let chosen = if rest.is_empty() { None } else { Some(model(rest)?) };
        Some(Question::Ends { rounds: u32::from_le_bytes(*rounds), chosen })
    }

    /// Tells all others that are there.
    ///
    /// # Errors
    /// If one of them is gone.
    pub fn ask(&self, transport: &mut dyn Transport) -> Result<()> {
        let mut sent = Ok(());
        for peer in transport.rank().others(transport.size()) {
            let mut frame = Frame::new(self.tag(), transport.buffer());
            self.write(frame.payload_mut());
            sent = sent.and(transport.send(peer, frame));
        }
        Ok(sent?)
    }

    /// Waits for what worker 0 says of models of so many values, without a deadline: it has nothing to ask as long as
    /// trainers train. `None` where `is_over`, and nothing is left to be heard.
    ///
    /// # Errors
    /// If worker 0 is gone, or says something else.
    pub fn hear(transport: &mut dyn Transport, values: usize, is_over: &dyn Fn() -> bool) -> Result<Option<Question>> {
        loop {
            let over = is_over();
            if let Some(frame) = transport.poll(Rank(0))? {
                let question = Question::read(&frame, values).ok_or_else(|| {
                    let malformed = WireError::malformed("nothing that is said of evaluations");
                    malformed.from_peer(transport.rank(), Rank(0), frame.tag())
                })?;
                return Ok(Some(question));
            }
            if over {
                return Ok(None);
            }
            std::thread::sleep(REST);
        }
    }
}

/// Enters what telling `others` to evaluate the mean of this number takes, of a model of so many values.
pub(crate) fn forecast_evaluated(others: impl Iterator<Item = Rank>, number: u32, values: usize, ledger: &mut Ledger) {
    let bytes = (size_of::<f32>() * values) as u64;
    others.for_each(|peer| ledger.record_count(Step::EvaluatedMean.tag(number), peer, Count::of(1, bytes)));
}

/// Enters what telling `others` of the end of a stage takes, whose model has so many values where another goes on from
/// it.
pub(crate) fn forecast_ends(others: impl Iterator<Item = Rank>, chosen: Option<usize>, ledger: &mut Ledger) {
    let bytes = (ROUNDS + size_of::<f32>() * chosen.unwrap_or(0)) as u64;
    others.for_each(|peer| ledger.record_count(Step::EvaluationEnds.tag(0), peer, Count::of(1, bytes)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_wire::threads;

    #[test]
    fn every_question_is_heard_as_it_was_asked_and_nothing_else_is_one() {
        let [mut asks, mut hears] = <[_; 2]>::try_from(threads(2, Duration::from_secs(5))).unwrap_or_else(|_| panic!());
        let model: Model = [1.5f32, -0.0].as_slice().into();
        for question in [
            Question::Evaluate { number: 7, model: model.clone() },
            Question::Ends { rounds: 9, chosen: Some(model.clone()) },
            Question::Ends { rounds: 0, chosen: None },
        ] {
            question.ask(&mut asks).unwrap();
            assert_eq!(Question::hear(&mut hears, 2, &|| true).unwrap(), Some(question));
        }
        assert_eq!(Question::hear(&mut hears, 2, &|| true).unwrap(), None);
        Question::Evaluate { number: 8, model }.ask(&mut asks).unwrap();
        let error = Question::hear(&mut hears, 3, &|| true).unwrap_err().to_string();
        assert!(error.contains("nothing that is said of evaluations"), "{error}");
    }
}

//! Messages of trainers and their aggregator as frames: one of a few bytes that says what it is, and behind it the
//! model, if there is one. Models are of the kind `parameters`, all else is `control`.

use laconic_wire::{Direction, Frame, Kind, Tag, WireError};

use super::Model;
use super::message::{FromTrainer, Leave, ToTrainer};
use crate::exchange::steps::Step;

/// The tag of a model for, or of, the mean of this number.
fn model_tag(direction: Direction, number: u32) -> Tag {
    Tag { kind: Kind::Parameters, direction, layer: 0, round: number, step: 0 }
}

/// A message with what travels of it: tags and payloads.
type Payloads = Vec<(Tag, Vec<u8>)>;

fn bytes_of(model: &Model) -> Vec<u8> {
    model.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// What a trainer says, as payloads.
pub fn from_trainer(message: &FromTrainer) -> Payloads {
    match message {
        FromTrainer::Came { steps_of_epoch, rows } => {
            vec![(Step::TrainerComes.tag(0), [steps_of_epoch.to_le_bytes(), rows.to_le_bytes()].concat())]
        }
        FromTrainer::Model { number, steps, loss, model } => {
            let said = [steps.to_le_bytes(), loss.to_le_bytes()].concat();
            vec![(Step::TrainerAnswers.tag(*number), said), (model_tag(Direction::Forward, *number), bytes_of(model))]
        }
        FromTrainer::Bye(Leave { steps, memory }) => {
            vec![(Step::TrainerLeaves.tag(0), [steps.to_le_bytes(), memory.to_le_bytes()].concat())]
        }
    }
}

/// What the aggregator says, as payloads.
pub fn to_trainer(message: &ToTrainer) -> Payloads {
    let with = |tag: Tag, number: u32, model: &Option<Model>| {
        let said = (tag, vec![u8::from(model.is_some())]);
        let model = model.as_ref().map(|model| (model_tag(Direction::Reverse, number), bytes_of(model)));
        std::iter::once(said).chain(model).collect()
    };
    match message {
        ToTrainer::Go { number, model } => with(Step::TrainerGoes.tag(*number), *number, model),
        ToTrainer::Call { number } => vec![(Step::TrainerCalled.tag(*number), Vec::new())],
        ToTrainer::End { chosen } => with(Step::TrainerDismissed.tag(0), 0, chosen),
    }
}

/// Tags and sizes of what a trainer says, without making it.
pub fn sizes_from_trainer(message: &FromTrainer) -> Vec<(Tag, usize)> {
    match message {
        FromTrainer::Came { .. } => vec![(Step::TrainerComes.tag(0), 16)],
        FromTrainer::Model { number, model, .. } => {
            vec![(Step::TrainerAnswers.tag(*number), 16), (model_tag(Direction::Forward, *number), 4 * model.len())]
        }
        FromTrainer::Bye(_) => vec![(Step::TrainerLeaves.tag(0), 16)],
    }
}

/// Tags and sizes of what the aggregator says, without making it.
pub fn sizes_to_trainer(message: &ToTrainer) -> Vec<(Tag, usize)> {
    let with = |tag: Tag, number: u32, model: &Option<Model>| {
        let model = model.as_ref().map(|model| (model_tag(Direction::Reverse, number), 4 * model.len()));
        std::iter::once((tag, 1)).chain(model).collect()
    };
    match message {
        ToTrainer::Go { number, model } => with(Step::TrainerGoes.tag(*number), *number, model),
        ToTrainer::Call { number } => vec![(Step::TrainerCalled.tag(*number), 0)],
        ToTrainer::End { chosen } => with(Step::TrainerDismissed.tag(0), 0, chosen),
    }
}

/// Frames of these payloads.
pub fn frames(payloads: Payloads) -> impl Iterator<Item = Frame> {
    payloads.into_iter().map(|(tag, payload)| {
        let mut frame = Frame::new(tag, Vec::with_capacity(payload.len() + laconic_wire::HEADER_BYTES));
        frame.payload_mut().extend(payload);
        frame
    })
}

/// One end's view of what comes from the other: puts a message together from its frames.
#[derive(Debug)]
pub struct Inbox {
    parameters: usize,
    said: Option<(Tag, Vec<u8>)>,
}

type Read<T> = std::result::Result<Option<T>, WireError>;

impl Inbox {
    /// An inbox for models of so many values.
    pub fn new(parameters: usize) -> Inbox {
        Inbox { parameters, said: None }
    }

    /// How many values a model has.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// What a trainer has said, once it is complete.
    ///
    /// # Errors
    /// If these are no frames of a trainer.
    pub fn of_trainer(&mut self, frame: &Frame) -> Read<FromTrainer> {
        let (tag, payload) = (frame.tag(), frame.payload());
        let number = tag.round;
        if let Some(model) = self.model(Direction::Forward, tag, payload)? {
            let (_, said) = self.said.take().ok_or_else(|| odd("a model that nobody announced"))?;
            let [steps, loss] = words(&said)?;
            let loss = f64::from_bits(loss);
            if !loss.is_finite() {
                return Err(odd("a loss that is no number"));
            }
            return Ok(Some(FromTrainer::Model { number, steps, loss, model }));
        }
        if tag == Step::TrainerComes.tag(0) {
            let [steps_of_epoch, rows] = words(payload)?;
            let rows = f64::from_bits(rows);
            if !(rows.is_finite() && rows >= 0.0) {
                return Err(odd("rows that cannot be counted"));
            }
            return Ok(Some(FromTrainer::Came { steps_of_epoch: steps_of_epoch.max(1), rows }));
        }
        if tag == Step::TrainerAnswers.tag(number) {
            self.said = Some((tag, payload.to_vec()));
            return Ok(None);
        }
        if tag == Step::TrainerLeaves.tag(0) {
            let [steps, memory] = words(payload)?;
            return Ok(Some(FromTrainer::Bye(Leave { steps, memory })));
        }
        Err(odd("nothing that a trainer says"))
    }

    /// What the aggregator has said, once it is complete.
    ///
    /// # Errors
    /// If these are no frames of an aggregator.
    pub fn of_aggregator(&mut self, frame: &Frame) -> Read<ToTrainer> {
        let (tag, payload) = (frame.tag(), frame.payload());
        let number = tag.round;
        let message = |of: Tag, model: Option<Model>| match of == Step::TrainerDismissed.tag(0) {
            true => ToTrainer::End { chosen: model },
            false => ToTrainer::Go { number: of.round, model },
        };
        if let Some(model) = self.model(Direction::Reverse, tag, payload)? {
            let (of, _) = self.said.take().ok_or_else(|| odd("a model that nobody announced"))?;
            return Ok(Some(message(of, Some(model))));
        }
        if tag == Step::TrainerCalled.tag(number) {
            return Ok(Some(ToTrainer::Call { number }));
        }
        if ![Step::TrainerGoes.tag(number), Step::TrainerDismissed.tag(0)].contains(&tag) {
            return Err(odd("nothing that an aggregator says"));
        }
        match payload {
            [0] => Ok(Some(message(tag, None))),
            [1] => {
                self.said = Some((tag, Vec::new()));
                Ok(None)
            }
            _ => Err(odd("neither a model to come nor none")),
        }
    }

    /// The model of this frame, if it is one, of the number that was announced.
    fn model(&self, direction: Direction, tag: Tag, payload: &[u8]) -> Read<Model> {
        if tag != model_tag(direction, tag.round) {
            return Ok(None);
        }
        if self.said.as_ref().is_none_or(|(said, _)| said.round != tag.round) {
            return Err(odd("a model of another mean than was announced"));
        }
        let (values, rest) = payload.as_chunks::<4>();
        if values.len() != self.parameters || !rest.is_empty() {
            return Err(WireError::PayloadSize {
                what: "a model",
                expected: 4 * self.parameters as u64,
                found: payload.len() as u64,
            });
        }
        Ok(Some(values.iter().map(|value| f32::from_le_bytes(*value)).collect()))
    }
}

fn odd(what: &'static str) -> WireError {
    WireError::malformed(what)
}

fn words<const N: usize>(bytes: &[u8]) -> std::result::Result<[u64; N], WireError> {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<u64>>();
    let found = bytes.len() as u64;
    let size = WireError::PayloadSize { what: "a message of a trainer", expected: 8 * N as u64, found };
    if rest.is_empty() { words.try_into().map_err(|_| size) } else { Err(size) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(payloads: Payloads) -> Vec<(Tag, usize)> {
        payloads.into_iter().map(|(tag, payload)| (tag, payload.len())).collect()
    }

    #[test]
    fn every_message_reads_back_as_itself() {
        let model: Model = [1.5f32, f32::NAN, -0.0].as_slice().into();
        let said = [
            FromTrainer::Came { steps_of_epoch: 7, rows: 2.5 },
            FromTrainer::Model { number: 9, steps: 3, loss: 0.25, model: [0.5f32, 1.0, 2.0].as_slice().into() },
            FromTrainer::Bye(Leave { steps: 5, memory: 1 << 40 }),
        ];
        let mut inbox = Inbox::new(3);
        for message in said {
            let heard = frames(from_trainer(&message)).filter_map(|f| inbox.of_trainer(&f).unwrap());
            assert_eq!(heard.collect::<Vec<_>>(), std::slice::from_ref(&message));
            assert_eq!(sizes(from_trainer(&message)), sizes_from_trainer(&message));
        }
        let said = [
            ToTrainer::Go { number: 0, model: None },
            ToTrainer::Call { number: 4 },
            ToTrainer::Go { number: 4, model: Some([1.0f32, 2.0, 3.0].as_slice().into()) },
            ToTrainer::End { chosen: Some([3.0f32, 2.0, 1.0].as_slice().into()) },
            ToTrainer::End { chosen: None },
        ];
        for message in said {
            let heard = frames(to_trainer(&message)).filter_map(|f| inbox.of_aggregator(&f).unwrap());
            assert_eq!(heard.collect::<Vec<_>>(), std::slice::from_ref(&message));
            assert_eq!(sizes(to_trainer(&message)), sizes_to_trainer(&message));
        }
        // Bits of values survive, whatever they are.
        let go = to_trainer(&ToTrainer::Go { number: 1, model: Some(model.clone()) });
        let Some(ToTrainer::Go { model: Some(heard), .. }) =
            frames(go).filter_map(|f| inbox.of_aggregator(&f).unwrap()).next()
        else {
            panic!("a model came")
        };
        assert!(heard.iter().zip(model.iter()).all(|(a, b)| a.to_bits() == b.to_bits()));
    }

    proptest! {
        #[test]
        fn no_frames_make_an_inbox_panic(
            frames in prop::collection::vec(
                (0u16..50, 0u8..9, any::<bool>(), 0u32..3, prop::collection::vec(any::<u8>(), 0..20)),
                0..12,
            )
        ) {
            let mut inbox = Inbox::new(2);
            for (step, kind, reverse, round, payload) in frames {
                let direction = if reverse { Direction::Reverse } else { Direction::Forward };
                let tag = Tag { kind: Kind::ALL[kind as usize], direction, layer: 0, round, step };
                let mut frame = Frame::new(tag, Vec::new());
                frame.payload_mut().extend(payload);
                let _ = inbox.of_trainer(&frame);
                let _ = inbox.of_aggregator(&frame);
            }
        }
    }
}

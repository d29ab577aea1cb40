//! Messages of trainers and their aggregator as frames: one of a few bytes that says what it is, and behind it the
//! model, if there is one. Models are of the kind `parameters`, all else is `control`.

use laconic_wire::{Content, Direction, Frame, FramePurpose, NO_CODEC, Tag, WireError};

use super::Model;
use super::change::{Change, ChangeForm, Form, STEPS, Sent};
use super::message::{FromTrainer, Leave, Taken, ToTrainer};
use crate::exchange::steps::Step;

/// More rows than that count for nobody; sums of weights stay numbers.
const ROWS_MAX: f64 = 1e200;

/// The tag of a model for, or of, the mean of this number: of a whole one, or of a change.
fn model_tag(direction: Direction, number: u32, step: u16) -> Tag {
    let (content, purpose) = (Content::Models, FramePurpose::Training);
    Tag { content, purpose, direction, layer: 0, round: number, step }
}

/// A frame that is to be: tag, codec and payload.
type Parcel<'a> = (Tag, u8, Payload<'a>);

/// A payload, which is put together only where it travels.
enum Payload<'a> {
    Bytes(Vec<u8>),
    Model(&'a Model),
    Change(&'a Change),
}

impl Payload<'_> {
    fn len(&self) -> usize {
        match self {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Model(model) => 4 * model.len(),
            Payload::Change(change) => change.bytes.len(),
        }
    }

    fn append(&self, into: &mut Vec<u8>) {
        match self {
            Payload::Bytes(bytes) => into.extend(bytes),
            Payload::Model(model) => model.iter().for_each(|value| into.extend(value.to_le_bytes())),
            Payload::Change(change) => into.extend_from_slice(&change.bytes),
        }
    }
}

fn whole(direction: Direction, number: u32, model: &Model) -> Parcel<'_> {
    (model_tag(direction, number, STEPS[0]), NO_CODEC, Payload::Model(model))
}

fn sent(direction: Direction, number: u32, sent: &Sent) -> Parcel<'_> {
    match sent {
        Sent::Whole(model) => whole(direction, number, model),
        Sent::Change(change) => (model_tag(direction, number, STEPS[1]), change.codec, Payload::Change(change)),
    }
}

fn words_of<const N: usize>(tag: Tag, words: [u64; N]) -> Parcel<'static> {
    (tag, NO_CODEC, Payload::Bytes(words.map(u64::to_le_bytes).concat()))
}

/// What a trainer says, frame by frame.
fn of_trainer(message: &FromTrainer) -> Vec<Parcel<'_>> {
    match message {
        FromTrainer::Came { steps_of_epoch, rows } => {
            vec![words_of(Step::TrainerComes.tag(0), [*steps_of_epoch, rows.to_bits()])]
        }
        FromTrainer::Model { number, steps, loss, model } => vec![
            words_of(Step::TrainerAnswers.tag(*number), [*steps, loss.to_bits()]),
            sent(Direction::Forward, *number, model),
        ],
        FromTrainer::Bye(Leave { steps, memory }) => vec![words_of(Step::TrainerLeaves.tag(0), [*steps, *memory])],
    }
}

/// What the aggregator says, frame by frame.
fn of_aggregator(message: &ToTrainer) -> Vec<Parcel<'_>> {
    let said = |tag: Tag, bytes: Vec<u8>| (tag, NO_CODEC, Payload::Bytes(bytes));
    let with = |tag: Tag, words: &[u64], model: Option<_>| {
        let mut bytes = vec![u8::from(model.is_some())];
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        std::iter::once(said(tag, bytes)).chain(model).collect()
    };
    match message {
        ToTrainer::Go { number, taken: Taken { before, here, share }, model } => {
            let model = model.as_ref().map(|model| sent(Direction::Reverse, *number, model));
            let words: Vec<u64> = [*before, *here].into_iter().chain(share.map(f64::to_bits)).collect();
            with(Step::TrainerGoes.tag(*number), &words, model)
        }
        ToTrainer::Call { number } => vec![said(Step::TrainerCalled.tag(*number), Vec::new())],
        ToTrainer::End { chosen } => {
            let model = chosen.as_ref().map(|model| whole(Direction::Reverse, 0, model));
            with(Step::TrainerDismissed.tag(0), &[], model)
        }
    }
}

/// The frames of what a trainer says.
pub fn frames_from_trainer(message: &FromTrainer) -> Vec<Frame> {
    frames(of_trainer(message))
}

/// The frames of what the aggregator says.
pub fn frames_to_trainer(message: &ToTrainer) -> Vec<Frame> {
    frames(of_aggregator(message))
}

/// Tags and payload bytes of what a trainer says, without making it.
pub fn sizes_from_trainer(message: &FromTrainer) -> Vec<(Tag, usize)> {
    of_trainer(message).into_iter().map(|(tag, _, payload)| (tag, payload.len())).collect()
}

/// Tags and payload bytes of what the aggregator says, without making it.
pub fn sizes_to_trainer(message: &ToTrainer) -> Vec<(Tag, usize)> {
    of_aggregator(message).into_iter().map(|(tag, _, payload)| (tag, payload.len())).collect()
}

fn frames(contents: Vec<Parcel<'_>>) -> Vec<Frame> {
    let frame = |(tag, codec, payload): Parcel<'_>| {
        let mut frame = Frame::new(tag, Vec::with_capacity(payload.len() + laconic_wire::HEADER_BYTES));
        frame.set_codec(codec);
        payload.append(frame.payload_mut());
        frame
    };
    contents.into_iter().map(frame).collect()
}

/// One end's view of what comes from the other: puts a message together from its frames.
#[derive(Debug)]
pub struct Inbox {
    form: Form,
    said: Option<(Tag, Vec<u8>)>,
}

type Read<T> = std::result::Result<Option<T>, WireError>;

impl Inbox {
    /// An inbox for models that look so.
    pub fn new(form: Form) -> Inbox {
        Inbox { form, said: None }
    }

    /// What models look like.
    pub fn form(&self) -> Form {
        self.form
    }

    /// What a trainer has said, once it is complete.
    ///
    /// # Errors
    /// If these are no frames of a trainer.
    pub fn of_trainer(&mut self, frame: &Frame) -> Read<FromTrainer> {
        let (tag, payload) = (frame.tag(), frame.payload());
        let number = tag.round;
        if let Some(model) = self.model(Direction::Forward, frame)? {
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
            if !(0.0..=ROWS_MAX).contains(&rows) {
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
        if self.said.is_none() && STEPS.iter().any(|&step| tag == model_tag(Direction::Reverse, number, step)) {
            // The rest of what was being said to who was here before.
            return Ok(None);
        }
        if let Some(model) = self.model(Direction::Reverse, frame)? {
            let (of, words) = self.said.take().ok_or_else(|| odd("a model that nobody announced"))?;
            return match model {
                Sent::Whole(model) if of == Step::TrainerDismissed.tag(0) => {
                    Ok(Some(ToTrainer::End { chosen: Some(model) }))
                }
                Sent::Change(_) if of == Step::TrainerDismissed.tag(0) => Err(odd("a chosen model that is a change")),
                model => Ok(Some(ToTrainer::Go { number: of.round, taken: taken(&words)?, model: Some(model) })),
            };
        }
        if tag == Step::TrainerCalled.tag(number) {
            return Ok(Some(ToTrainer::Call { number }));
        }
        if ![Step::TrainerGoes.tag(number), Step::TrainerDismissed.tag(0)].contains(&tag) {
            return Err(odd("nothing that an aggregator says"));
        }
        let dismisses = tag == Step::TrainerDismissed.tag(0);
        match payload {
            [0] if dismisses => Ok(Some(ToTrainer::End { chosen: None })),
            [0, words @ ..] if !dismisses => Ok(Some(ToTrainer::Go { number, taken: taken(words)?, model: None })),
            [1, words @ ..] if words.is_empty() == dismisses => {
                if !dismisses {
                    taken(words)?;
                }
                self.said = Some((tag, words.to_vec()));
                Ok(None)
            }
            _ => Err(odd("neither a model to come nor none")),
        }
    }

    /// The model of this frame, if it is one, of the number that was announced.
    fn model(&self, direction: Direction, frame: &Frame) -> Read<Sent> {
        let (tag, payload) = (frame.tag(), frame.payload());
        let Some(step) = STEPS.iter().position(|&step| tag == model_tag(direction, tag.round, step)) else {
            return Ok(None);
        };
        if self.said.as_ref().is_none_or(|(said, _)| said.round != tag.round) {
            return Err(odd("a model of another mean than was announced"));
        }
        let form = match (step, self.form.change) {
            (0, _) => ChangeForm { codec: NO_CODEC, bytes: 4 * self.form.values, varies: false },
            (_, Some(change)) => change,
            (_, None) => return Err(odd("a change where models travel as they are")),
        };
        if !form.fits(form.codec, payload.len()) {
            let (expected, found) = (form.bytes as u64, payload.len() as u64);
            return Err(WireError::PayloadSize { what: "a model", expected, found });
        }
        if frame.codec() != form.codec {
            return Err(odd("a model through another codec"));
        }
        Ok(Some(match step {
            0 => {
                let (values, _) = payload.as_chunks::<4>();
                Sent::Whole(values.iter().map(|value| f32::from_le_bytes(*value)).collect())
            }
            _ => Sent::Change(Change { codec: form.codec, bytes: payload.into() }),
        }))
    }
}

fn odd(what: &'static str) -> WireError {
    WireError::malformed(what)
}

fn taken(bytes: &[u8]) -> std::result::Result<Taken, WireError> {
    if bytes.len() == 16 {
        let [before, here] = words(bytes)?;
        return Ok(Taken { before, here, share: None });
    }
    let [before, here, share] = words(bytes)?;
    let share = f64::from_bits(share);
    if !(0.0..=1.0).contains(&share) {
        return Err(odd("a share that is none"));
    }
    Ok(Taken { before, here, share: Some(share) })
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

    const FORM: Form = Form { values: 3, change: Some(ChangeForm { codec: 7, bytes: 5, varies: false }) };

    fn sizes(frames: &[Frame]) -> Vec<(Tag, usize)> {
        frames.iter().map(|frame| (frame.tag(), frame.payload().len())).collect()
    }

    fn change(bytes: [u8; 5]) -> Sent {
        Sent::Change(Change { codec: 7, bytes: bytes.as_slice().into() })
    }

    fn whole(values: [f32; 3]) -> Sent {
        Sent::Whole(values.as_slice().into())
    }

    fn taken(before: u64, here: u64, share: Option<f64>) -> Taken {
        Taken { before, here, share }
    }

    #[test]
    fn every_message_reads_back_as_itself() {
        let said = [
            FromTrainer::Came { steps_of_epoch: 7, rows: 2.5 },
            FromTrainer::Model { number: 9, steps: 3, loss: 0.25, model: whole([0.5, 1.0, 2.0]) },
            FromTrainer::Model { number: 10, steps: 3, loss: 0.25, model: change([1, 2, 3, 4, 5]) },
            FromTrainer::Bye(Leave { steps: 5, memory: 1 << 40 }),
        ];
        let mut inbox = Inbox::new(FORM);
        for message in said {
            let frames = frames_from_trainer(&message);
            let heard = frames.iter().filter_map(|frame| inbox.of_trainer(frame).unwrap());
            assert_eq!(heard.collect::<Vec<_>>(), std::slice::from_ref(&message));
            assert_eq!(sizes(&frames), sizes_from_trainer(&message));
        }
        let said = [
            ToTrainer::Go { number: 0, taken: Taken::default(), model: None },
            ToTrainer::Call { number: 4 },
            ToTrainer::Go { number: 4, taken: taken(7, 1 << 40, Some(0.25)), model: Some(whole([1.0, 2.0, 3.0])) },
            ToTrainer::Go { number: 5, taken: taken(0, 9, None), model: Some(change([9, 8, 7, 6, 5])) },
            ToTrainer::End { chosen: Some([3.0f32, 2.0, 1.0].as_slice().into()) },
            ToTrainer::End { chosen: None },
        ];
        for message in said {
            let frames = frames_to_trainer(&message);
            let heard = frames.iter().filter_map(|frame| inbox.of_aggregator(frame).unwrap());
            assert_eq!(heard.collect::<Vec<_>>(), std::slice::from_ref(&message));
            assert_eq!(sizes(&frames), sizes_to_trainer(&message));
        }
        // Bits of values survive, whatever they are.
        let model = [1.5f32, f32::NAN, -0.0];
        let go = frames_to_trainer(&ToTrainer::Go { number: 1, taken: Taken::default(), model: Some(whole(model)) });
        let heard = go.iter().filter_map(|frame| inbox.of_aggregator(frame).unwrap()).next();
        let Some(ToTrainer::Go { model: Some(Sent::Whole(heard)), .. }) = heard else { panic!("a model came") };
        assert!(heard.iter().zip(&model).all(|(a, b)| a.to_bits() == b.to_bits()));
    }

    #[test]
    fn models_that_look_otherwise_than_was_agreed_are_refused() {
        let number = 3;
        let long = Sent::Change(Change { codec: 7, bytes: [0u8; 6].as_slice().into() });
        let other = Sent::Change(Change { codec: 8, bytes: [0u8; 5].as_slice().into() });
        for (form, model) in [
            (FORM, long),
            (FORM, other),
            (FORM, Sent::Whole([0.0f32; 4].as_slice().into())),
            (Form { change: None, ..FORM }, change([0; 5])),
        ] {
            let mut inbox = Inbox::new(form);
            let frames = frames_from_trainer(&FromTrainer::Model { number, steps: 1, loss: 0.0, model: model.clone() });
            assert!(inbox.of_trainer(&frames[0]).unwrap().is_none());
            assert!(inbox.of_trainer(&frames[1]).is_err(), "{model:?} where {form:?}");
        }
    }

    #[test]
    fn a_message_of_the_aggregator_of_another_length_is_refused() {
        let (goes, dismissed) = (Step::TrainerGoes.tag(3), Step::TrainerDismissed.tag(0));
        let of = |model: u8, rest: usize| [&[model][..], &vec![0; rest]].concat();
        for (tag, payload, is_right) in [
            (goes, of(0, 16), true),
            (goes, of(1, 16), true),
            (goes, of(0, 0), false),
            (goes, of(1, 0), false),
            (goes, of(1, 15), false),
            // With the share of a time that is over.
            (goes, of(0, 24), true),
            (goes, [&of(0, 16)[..], &1.5f64.to_le_bytes()].concat(), false),
            (goes, of(0, 32), false),
            (goes, of(2, 16), false),
            (dismissed, of(0, 0), true),
            (dismissed, of(1, 0), true),
            (dismissed, of(0, 16), false),
            (dismissed, of(1, 16), false),
        ] {
            let mut frame = Frame::new(tag, Vec::new());
            frame.payload_mut().extend(&payload);
            assert_eq!(Inbox::new(FORM).of_aggregator(&frame).is_ok(), is_right, "{tag}: {payload:?}");
        }
    }

    fn content() -> impl Strategy<Value = Content> {
        prop::sample::select(Content::ALL.to_vec())
    }

    proptest! {
        #[test]
        fn no_frames_make_an_inbox_panic(
            frames in prop::collection::vec(
                (0u16..50, content(), any::<bool>(), 0u32..3, prop::collection::vec(any::<u8>(), 0..20)),
                0..12,
            )
        ) {
            let mut inbox = Inbox::new(FORM);
            for (step, content, reverse, round, payload) in frames {
                let direction = if reverse { Direction::Reverse } else { Direction::Forward };
                let purpose = FramePurpose::Training;
                let tag = Tag { content, purpose, direction, layer: 0, round, step };
                let mut frame = Frame::new(tag, Vec::new());
                frame.payload_mut().extend(payload);
                let _ = inbox.of_trainer(&frame);
                let _ = inbox.of_aggregator(&frame);
            }
        }
    }
}

//! Models as changes, through codecs that lose something.

use laconic_wire::codec::{
    Bits, Codec, CodecId, CodecKind, CodecRegistry, Level, Message, Options, RowsMut, RowsRef, Store,
};
use laconic_wire::{VectorCoder, WireError};

use super::*;

/// A grid that every value is rounded down to.
struct Quarters;

static QUARTERS: CodecKind = CodecKind { name: "quarters", number: 40, build, ..CodecKind::PLAIN };

fn build(_: &Options, _: &CodecRegistry) -> std::result::Result<Box<dyn Codec>, WireError> {
    Ok(Box::new(Quarters))
}

fn rounded(value: f32) -> f32 {
    (value * 4.0).floor() / 4.0
}

impl Codec for Quarters {
    fn id(&self) -> CodecId {
        QUARTERS.id()
    }

    fn bytes(&self, _: &Level<'_>, rows: usize, columns: usize) -> usize {
        2 * rows * columns
    }

    fn encode(&mut self, _: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> std::result::Result<(), WireError> {
        for value in (0..rows.rows.len()).flat_map(|row| rows.row(row)) {
            into.extend(((value * 4.0).floor() as i16).to_le_bytes());
        }
        Ok(())
    }

    fn decode(
        &mut self,
        _: Message<'_>,
        payload: &[u8],
        mut into: RowsMut<'_>,
        store: Store,
    ) -> std::result::Result<(), WireError> {
        let columns = into.columns;
        for (at, value) in payload.as_chunks().0.iter().enumerate() {
            let value = f32::from(i16::from_le_bytes(*value)) / 4.0;
            let to = &mut into.row(at / columns)[at % columns];
            *to = if store == Store::Set { value } else { *to + value };
        }
        Ok(())
    }
}

fn quarters(feedback: bool) -> impl Fn(Rank) -> Option<Changes> {
    move |own| {
        let coder = VectorCoder::new(Box::new(Quarters), &QUARTERS, Level::WHOLE, 0);
        Some(Changes::new(if feedback { coder.with_feedback() } else { coder }, 0, own))
    }
}

fn quantised(bits: u8) -> impl Fn(Rank) -> Option<Changes> {
    move |own| {
        let registry = CodecRegistry::default();
        let (kind, options) = (registry.get("quantised").unwrap(), Options::default());
        let level = Level { ratio: 1.0, bits: Bits::Uniform(bits) };
        let coder = VectorCoder::new(registry.build(kind.name, &options).unwrap(), kind, level, 3);
        Some(Changes::new(coder.with_feedback(), 0, own))
    }
}

/// What one end has sent so far is short of.
#[derive(Default, Clone)]
struct Left([f32; 2]);

impl Left {
    /// What the other end reads of a change.
    fn sends(&mut self, change: [f32; 2], feedback: bool) -> [f32; 2] {
        let whole: [f32; 2] = std::array::from_fn(|at| change[at] + if feedback { self.0[at] } else { 0.0 });
        let read = whole.map(rounded);
        self.0 = std::array::from_fn(|at| whole[at] - read[at]);
        read
    }
}

#[test]
fn means_of_changes_are_those_of_a_loop_that_rounds_and_keeps_what_was_left_over() {
    let terms = terms(3, Pace::Steps(4), Pace::Steps(40));
    for feedback in [true, false] {
        let (_, log, _) = walk_with(terms, &conditions(&[1.0, 2.0, 5.0]), &Reached::default(), &quarters(feedback));
        let (mut model, mut left) = ([0.0f32; 2], vec![Left::default(); 4]);
        for (number, (_, kept)) in log.kept.iter().enumerate() {
            let mut sum = [0.0f64; 2];
            for (trainer, target) in targets(3).iter().enumerate() {
                let mut own = model;
                for _ in 0..4 {
                    own.iter_mut().zip(target).for_each(|(at, to)| *at -= 0.1 * (*at - to));
                }
                let read = left[trainer + 1].sends([own[0] - model[0], own[1] - model[1]], feedback);
                (0..2).for_each(|at| sum[at] += f64::from(model[at] + read[at]));
            }
            let mean = sum.map(|sum| (sum / 3.0) as f32);
            // Nobody goes on from the last, and so it is not rounded.
            let is_last = number + 1 == log.kept.len();
            let read = left[0].sends([mean[0] - model[0], mean[1] - model[1]], feedback);
            model = if is_last { mean } else { [model[0] + read[0], model[1] + read[1]] };
            assert_eq!(kept.mean.model[..], model, "mean {}, feedback {feedback}", number + 1);
        }
        assert_eq!(log.kept.len(), 10);
    }
}

#[test]
fn a_mean_costs_as_much_as_the_codec_makes_of_it() {
    let terms = terms(3, Pace::Steps(4), Pace::Steps(40));
    let (played, log, _) = walk_with(terms, &conditions(&[1.0; 3]), &Reached::default(), &quarters(true));
    let parameters = |ledgers: &[laconic_wire::Ledger]| {
        ledgers.iter().map(|ledger| ledger.totals_by_kind()[Kind::Parameters].payload).sum::<u64>()
    };
    let means = log.kept.len() as u64;
    assert_eq!(parameters(&played.sent[1..]), means * 3 * 2 * 2);
    assert_eq!(parameters(&played.sent[..1]), (means - 1) * 3 * 2 * 2);
}

#[test]
fn with_error_feedback_coarse_changes_come_to_the_same_model_in_the_end() {
    let terms = terms(3, Pace::Steps(4), Pace::Steps(400));
    let apart = |coding: &dyn Fn(Rank) -> Option<Changes>| {
        let (_, log, _) = walk_with(terms, &conditions(&[1.0; 3]), &Reached::default(), coding);
        // The mean of the last ten: rounding lets each go up and down.
        let tail = &log.kept[log.kept.len() - 10..];
        let mean = |at: usize| tail.iter().map(|(_, kept)| kept.mean.model[at]).sum::<f32>() / 10.0;
        [2.0, 6.0].into_iter().enumerate().map(|(at, to)| (mean(at) - to).abs()).fold(0.0, f32::max)
    };
    let (exact, fed, lost) = (apart(&|_| None), apart(&quarters(true)), apart(&quarters(false)));
    assert!(exact < 1e-3 && fed < 0.15 && lost > 0.25, "{exact} exact, {fed} with feedback, {lost} without");
    assert!(apart(&quantised(4)) < 0.15);
}

#[test]
fn whoever_takes_up_a_mean_takes_up_the_one_that_was_kept_whatever_fails() {
    let mut taken_up = 0;
    for seed in 0..400u64 {
        let trainers = 2 + (seed % 4) as usize;
        let pace = if seed % 3 == 0 { Pace::Steps(10) } else { Pace::Time(10 * SECOND) };
        let corrections = if seed % 2 == 0 { 0 } else { 20 };
        let terms = Terms { corrections, ..terms(trainers, pace, Pace::Time(200 * SECOND)) };
        let weather = weather(seed, trainers, 200.0);
        let calm = Conditions { faults: Vec::new(), ..weather.clone() };
        let (_, first, adopted) = walk_with(terms, &weather, &Reached::default(), &quantised(2));
        // Whether it was lost or not, it goes on from what was kept.
        let from = first.kept.last().map(|(_, kept)| reached(kept, false)).unwrap_or_default();
        let (_, second, later) = walk_with(terms, &calm, &from, &quantised(2));
        let all = first.kept.iter().chain(&second.kept);
        let kept: Vec<&[f32]> = all.map(|(_, kept)| &kept.mean.model[..]).collect();
        for model in adopted.iter().chain(&later) {
            assert!(kept.contains(&&model[..]), "seed {seed}: {model:?} is none of {kept:?}");
        }
        taken_up += adopted.len() + later.len();
    }
    assert!(taken_up > 10_000, "{taken_up}");
}

#[test]
fn who_comes_while_a_mean_is_corrected_gets_the_corrected_one() {
    let terms = Terms { corrections: 2, ..terms(3, Pace::Steps(4), Pace::Steps(80)) };
    let initial: Model = [0.0f32; 2].as_slice().into();
    let mut aggregator = Aggregator::new(terms, &Reached::default(), quarters(true)(Rank(0)), initial, Duration::ZERO);
    let came = |trainer| Event::Heard(trainer, FromTrainer::Came { steps_of_epoch: 4, rows: 1.0 });
    (0..3).for_each(|trainer| drop(aggregator.on(SECOND, came(trainer))));
    drop(aggregator.on(SECOND, Event::Lost(2)));
    for trainer in 0..2 {
        let model = Sent::Change(Change { codec: QUARTERS.number, bytes: [4, 0, 4, 0].as_slice().into() });
        let answer = FromTrainer::Model { number: 1, steps: 4, loss: 0.0, model };
        drop(aggregator.on(2 * SECOND, Event::Heard(trainer, answer)));
    }
    let said = |actions: &[Action]| {
        let to = |action: &Action| match action {
            Action::Say(2, ToTrainer::Go { number, model, .. }) => Some((*number, model.clone())),
            _ => None,
        };
        actions.iter().find_map(to)
    };
    assert_eq!(said(&aggregator.on(3 * SECOND, came(2))), None, "a mean is being corrected");
    let corrected: Model = [5.0f32, 6.0].as_slice().into();
    let actions = aggregator.on(4 * SECOND, Event::Corrected(corrected.clone()));
    assert_eq!(said(&actions), Some((1, Some(Sent::Whole(corrected)))));
}

#[test]
fn who_stops_a_run_that_owes_a_verdict_has_it_judged() {
    let kept = walk(terms(3, Pace::Steps(4), Pace::Steps(12)), &conditions(&[1.0; 3]), None).1.kept[1].1.clone();
    let terms = terms(3, Pace::Steps(4), Pace::Steps(12));
    let mut aggregator = Aggregator::new(terms, &reached(&kept, true), None, kept.mean.model.clone(), Duration::ZERO);
    let actions = aggregator.on(SECOND, Event::Stopped);
    assert!(actions.contains(&Action::Judge(2, kept.mean.model.clone())), "{actions:?}");
    assert!(!actions.contains(&Action::Finish(Ending::Stopped)), "the verdict is waited for");
    assert_eq!(aggregator.on(SECOND, Event::Judged(2, Some(0.5))), [Action::Finish(Ending::Stopped)]);
}

#[test]
fn what_is_no_change_loses_its_trainer_and_nobody_else() {
    let terms = terms(3, Pace::Steps(4), Pace::Steps(8));
    let initial: Model = [0.0f32; 2].as_slice().into();
    let mut aggregator = Aggregator::new(terms, &Reached::default(), quarters(true)(Rank(0)), initial, Duration::ZERO);
    let came = |trainer| Event::Heard(trainer, FromTrainer::Came { steps_of_epoch: 4, rows: 1.0 });
    (0..3).for_each(|trainer| drop(aggregator.on(SECOND, came(trainer))));
    let answer = |trainer, bytes: &[u8]| {
        let model = Sent::Change(Change { codec: QUARTERS.number, bytes: bytes.into() });
        Event::Heard(trainer, FromTrainer::Model { number: 1, steps: 4, loss: 0.0, model })
    };
    let actions = aggregator.on(2 * SECOND, answer(0, &[1, 2, 3]));
    assert!(actions.contains(&Action::Note(0, Noted::Lost(0))), "{actions:?}");
    drop(aggregator.on(2 * SECOND, answer(1, &[4, 0, 0, 0])));
    let actions = aggregator.on(2 * SECOND, answer(2, &[0, 0, 4, 0]));
    let kept = actions.iter().find_map(|action| if let Action::Keep(kept) = action { Some(kept) } else { None });
    let mean = &kept.expect("two are enough").mean;
    assert_eq!((&mean.members[..], &mean.model[..]), (&[(1, 4), (2, 4)][..], &[0.5, 0.5][..]));
}

#[test]
fn who_answers_while_everybody_is_dismissed_is_not_told_the_end_twice() {
    let terms = Terms { patience: 1, ..terms(2, Pace::Steps(4), Pace::Steps(40)) };
    let initial: Model = [0.0f32; 2].as_slice().into();
    let mut aggregator = Aggregator::new(terms, &Reached::default(), None, initial.clone(), Duration::ZERO);
    let answer = |number| FromTrainer::Model { number, steps: 4, loss: 0.0, model: Sent::Whole(initial.clone()) };
    for trainer in [0, 1] {
        aggregator.on(SECOND, Event::Heard(trainer, FromTrainer::Came { steps_of_epoch: 1, rows: 1.0 }));
    }
    for number in [1, 2] {
        for trainer in [0, 1] {
            aggregator.on(2 * SECOND, Event::Heard(trainer, answer(number)));
        }
        let ends = aggregator.on(3 * SECOND, Event::Judged(number, Some(0.5)));
        let told = ends.iter().filter(|action| matches!(action, Action::Say(_, ToTrainer::End { .. }))).count();
        assert_eq!(told, if number == 2 { 2 } else { 0 }, "{ends:?}");
    }
    assert_eq!(aggregator.on(4 * SECOND, Event::Heard(0, answer(3))), []);
}

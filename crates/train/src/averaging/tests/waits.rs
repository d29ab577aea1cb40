//! How long a mean waits, and for whom.

use super::*;
use crate::error::TrainError;

/// Speeds, and faults of trainers in the first `until` seconds, drawn from a seed; links are fast.
fn faults(seed: u64, trainers: usize, until: f64) -> Conditions {
    let key = Key::new(seed, Purpose::Test);
    let mut at = 0u64;
    let mut draw = || {
        at += 1;
        key.with(at).unit()
    };
    let speeds: Vec<f64> = (0..trainers).map(|_| 0.5 + 4.0 * draw()).collect();
    let count = 1 + (draw() * 6.0) as usize;
    let mut fault = || Fault {
        trainer: Some((draw() * trainers as f64) as usize),
        kind: [Failing::Killed, Failing::SwitchedOff, Failing::Stalled][(draw() * 3.0) as usize],
        at: seconds(1.0 + draw() * until),
        back: Some(seconds(draw() * 60.0)),
    };
    let faults = (0..count).map(|_| fault()).collect();
    Conditions { faults, ..conditions(&speeds) }
}

/// Whatever has happened before, by time or by steps: who came back late, while models were collected, or answered when
/// the mean was taken already, is in those that follow, and these come at their time.
#[test]
fn whoever_is_there_takes_part_in_every_mean_once_faults_are_over() {
    for seed in 0..400u64 {
        let trainers = 2 + (seed % 4) as usize;
        let pace = if seed % 2 == 0 { Pace::Time(10 * SECOND) } else { Pace::Steps(10) };
        // Enough are there for a mean.
        let terms = Terms { quorum: 1, ..terms(trainers, pace, Pace::Time(400 * SECOND)) };
        let weather = faults(seed, trainers, 150.0);
        let (played, log) = walk(terms, &weather, None);
        assert_eq!(played.ending, Some(Ending::Limit), "seed {seed}");
        let calm = log.kept.iter().filter(|(at, _)| *at > 270 * SECOND).collect::<Vec<_>>();
        assert!(calm.len() >= 6, "seed {seed}: {} means", calm.len());
        for (at, kept) in &calm {
            let members: Vec<usize> = kept.mean.members.iter().map(|(trainer, _)| *trainer).collect();
            assert!(members.iter().copied().eq(0..trainers), "seed {seed}: {members:?} after {at:?}");
            assert!(kept.mean.members.iter().all(|(_, steps)| *steps > 0), "seed {seed}: {:?}", kept.mean.members);
        }
        if let Pace::Time(_) = pace {
            let late = |pair: &[&(Duration, Kept)]| pair[1].0.saturating_sub(pair[0].0) > seconds(12.1);
            assert!(!calm.windows(2).any(late), "seed {seed}: a mean was waited for");
        }
    }
}

/// By steps the others wait for the grace and ask then, or where there is no quorum for the deadline.
#[test]
fn a_slow_trainer_gives_the_steps_that_it_has() {
    for (speeds, quorum, waited) in [(&[1.0, 1.0, 0.5][..], 2, 5.0), (&[1.0, 0.1], 2, 60.0)] {
        let trainers = speeds.len();
        let terms = Terms { quorum, ..terms(trainers, Pace::Steps(100), Pace::Steps(500)) };
        let (played, log) = walk(terms, &conditions(speeds), None);
        assert_eq!((played.ending, log.kept.len()), (Some(Ending::Limit), 5), "{speeds:?}");
        for (_, kept) in &log.kept {
            let slow = kept.mean.members[trainers - 1];
            let steps = ((100.0 + waited) * speeds[trainers - 1]) as u64;
            assert!(slow.0 == trainers - 1 && (steps..=steps + 2).contains(&slow.1), "{speeds:?}: {slow:?}");
        }
    }
}

/// No step takes longer than the deadline, so that many steps take no longer than as many; then they are called, and
/// have the deadline once more.
#[test]
fn a_run_whose_trainers_all_stall_ends() {
    let mut conditions = conditions(&[1.0; 3]);
    let stalled = |trainer| Fault {
        trainer: Some(trainer),
        at: seconds(15.0),
        kind: Failing::Stalled,
        back: Some(Duration::from_secs(1_000_000)),
    };
    conditions.faults = (0..3).map(stalled).collect();
    let terms = terms(3, Pace::Steps(10), Pace::Steps(1000));
    let (played, log) = walk(terms, &conditions, None);
    assert_eq!((played.ending, log.kept.len()), (Some(Ending::NoQuorum { answered: 0 }), 1));
    assert!(played.end > seconds(660.0) && played.end < seconds(680.0), "{:?}", played.end);
}

#[test]
fn nobody_waits_twice_for_who_says_nothing() {
    let mut conditions = conditions(&[1.0; 3]);
    let back = Some(100 * SECOND);
    conditions.faults = vec![Fault { trainer: Some(1), at: seconds(12.5), kind: Failing::Stalled, back }];
    let (_, log) = walk(terms(3, Pace::Time(10 * SECOND), Pace::Time(200 * SECOND)), &conditions, None);
    let apart: Vec<f64> = log.kept.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0).as_secs_f64()).collect();
    assert_eq!(apart.iter().filter(|apart| **apart > 14.0).count(), 1, "{apart:?}");
    let missing = log.notes.iter().filter(|(_, trainer, note)| *trainer == 1 && matches!(note, Noted::Missing(_)));
    assert_eq!(missing.count(), 1, "{:?}", log.notes);
    let members = |kept: &Kept| kept.mean.members.len();
    assert!(log.kept.iter().rev().take(5).all(|(_, kept)| members(kept) == 3), "it is back");
}

/// A limit in time that passes while models are collected ends the run with them, and no mean of untrained models
/// follows.
#[test]
fn the_mean_that_is_collected_at_the_limit_is_the_last() {
    for past in [1, 50, 900] {
        let limit = Pace::Time(30 * SECOND + Duration::from_millis(past));
        let (played, log) = walk(terms(3, Pace::Time(10 * SECOND), limit), &conditions(&[1.0, 0.7, 2.0]), None);
        assert_eq!(played.ending, Some(Ending::Limit));
        assert!(last(&log).last && log.kept.iter().all(|(_, kept)| kept.mean.loss > 0.0), "{past}");
        assert!(log.kept.iter().all(|(_, kept)| kept.mean.members.iter().all(|(_, steps)| *steps > 0)), "{past}");
    }
}

/// One whose model holds what is no number is lost, and the mean is of the others; where nobody is left, that is why.
#[test]
fn a_model_that_is_no_number_enters_no_mean() {
    let run_with = |bad: usize, trainers: usize| {
        let mut learners: Vec<Walker> = targets(trainers).into_iter().map(walker).collect();
        learners[bad].target[1] = f32::INFINITY;
        let (mut judge, mut log) = (Distance { to: vec![0.0; 2] }, Log::default());
        let (terms, start) = (terms(trainers, Pace::Steps(4), Pace::Steps(20)), Reached::default());
        let weather = conditions(&vec![1.0; trainers]);
        let played = run(
            terms,
            &weather,
            &mut learners,
            &mut judge,
            Start { reached: &start, hands_on: false },
            &|_| None,
            &mut log,
        );
        (played, log)
    };
    let (played, log) = run_with(1, 3);
    assert_eq!(played.unwrap().ending, Some(Ending::Limit));
    assert!(log.kept.iter().all(|(_, kept)| kept.mean.members.iter().map(|(of, _)| *of).eq([0, 2])));
    assert!(log.notes.iter().any(|(_, trainer, note)| *trainer == 1 && matches!(note, Noted::Lost(_))));
    let (played, log) = run_with(0, 1);
    assert!(matches!(played, Err(TrainError::Diverged { .. })), "{played:?}");
    assert!(log.kept.is_empty());
    // The same from one that does not look at itself.
    let terms = terms(2, Pace::Steps(4), Pace::Steps(20));
    let initial: Model = vec![0.0; 2].into();
    let mut aggregator = Aggregator::new(terms, &Reached::default(), None, initial, Duration::ZERO);
    let came = || FromTrainer::Came { steps_of_epoch: 10, rows: 1.0 };
    aggregator.on(SECOND, Event::Heard(0, came()));
    aggregator.on(SECOND, Event::Heard(1, came()));
    let model = |value: f32| {
        let model = Sent::Whole(vec![value; 2].into());
        FromTrainer::Model { number: 1, steps: 4, loss: 1.0, model }
    };
    let lost = aggregator.on(2 * SECOND, Event::Heard(0, model(f32::NAN)));
    assert!(matches!(lost[..], [Action::Note(0, Noted::Lost(0))]), "{lost:?}");
    // Two were to answer.
    assert!(aggregator.on(3 * SECOND, Event::Heard(1, model(1.0))).is_empty());
    assert!(!aggregator.on(64 * SECOND, Event::Tick).iter().any(|action| matches!(action, Action::Keep(_))));
}

/// A mean of half an interval would have the run go on with others than one that was not stopped.
#[test]
fn an_end_that_is_wanted_between_two_means_by_steps_leaves_the_last_whole_one() {
    let terms = terms(3, Pace::Steps(1000), Pace::Steps(5000));
    let mut aggregator = Aggregator::new(terms, &Reached::default(), None, vec![0.0; 2].into(), Duration::ZERO);
    for trainer in 0..3 {
        aggregator.on(SECOND, Event::Heard(trainer, FromTrainer::Came { steps_of_epoch: 10, rows: 1.0 }));
    }
    let model = |steps| {
        let model = Sent::Whole(vec![1.0; 2].into());
        FromTrainer::Model { number: 1, steps, loss: 1.0, model }
    };
    assert!(aggregator.on(10 * SECOND, Event::Heard(2, model(1000))).is_empty());
    let told = aggregator.on(11 * SECOND, Event::Stopped);
    assert_eq!(told, (0..3).map(|of| Action::Say(of, ToTrainer::End { chosen: None })).collect::<Vec<_>>());
    let bye = |trainer| Event::Heard(trainer, FromTrainer::Bye(Leave::default()));
    let last: Vec<Action> = (0..3).flat_map(|trainer| aggregator.on(12 * SECOND, bye(trainer))).collect();
    assert_eq!(last, [Action::Finish(Ending::Stopped)], "no mean was taken");
}

/// Who has been missing from a mean, and has said nothing since, holds up nobody at the end.
#[test]
fn who_has_fallen_silent_is_not_waited_for_when_the_run_ends() {
    let terms = terms(3, Pace::Steps(10), Pace::Steps(20));
    let mut aggregator = Aggregator::new(terms, &Reached::default(), None, vec![0.0; 2].into(), Duration::ZERO);
    for trainer in 0..3 {
        aggregator.on(SECOND, Event::Heard(trainer, FromTrainer::Came { steps_of_epoch: 10, rows: 1.0 }));
    }
    let model = |number| {
        let model = Sent::Whole(vec![1.0; 2].into());
        FromTrainer::Model { number, steps: 10, loss: 1.0, model }
    };
    let mut heard = |at: u32, trainer, said| aggregator.on(at * SECOND, Event::Heard(trainer, said));
    (0..2).for_each(|trainer| drop(heard(2, trainer, model(1))));
    // A grace, a call, another grace: the third is missed.
    aggregator.on(8 * SECOND, Event::Tick);
    let taken = aggregator.on(14 * SECOND, Event::Tick);
    assert!(taken.contains(&Action::Note(2, Noted::Missing(1))), "{taken:?}");
    let mut heard = |trainer, said| aggregator.on(15 * SECOND, Event::Heard(trainer, said));
    let mut all = Vec::new();
    (0..2).for_each(|trainer| all.extend(heard(trainer, model(2))));
    all.extend(aggregator.on(15 * SECOND, Event::Judged(1, Some(0.1))));
    all.extend(aggregator.on(15 * SECOND, Event::Judged(2, Some(0.2))));
    let bye = |trainer| Event::Heard(trainer, FromTrainer::Bye(Leave::default()));
    (0..2).for_each(|trainer| all.extend(aggregator.on(15 * SECOND, bye(trainer))));
    assert_eq!(all.last(), Some(&Action::Finish(Ending::Limit)), "{all:?}");
}

/// No mean that had its quorum is lost to a verdict that ends the run meanwhile.
#[test]
fn a_mean_that_has_its_quorum_when_patience_runs_out_is_the_last() {
    let terms = Terms { patience: 1, ..terms(3, Pace::Steps(10), Pace::Steps(5000)) };
    let mut aggregator = Aggregator::new(terms, &Reached::default(), None, vec![0.0; 2].into(), Duration::ZERO);
    for trainer in 0..3 {
        aggregator.on(SECOND, Event::Heard(trainer, FromTrainer::Came { steps_of_epoch: 10, rows: 1.0 }));
    }
    let mut answer = |at: u32, trainer, number| {
        let model = Sent::Whole(vec![number as f32; 2].into());
        let model = FromTrainer::Model { number, steps: 10, loss: 1.0, model };
        aggregator.on(at * SECOND, Event::Heard(trainer, model))
    };
    (1..=2).for_each(|number| (0..3).for_each(|trainer| drop(answer(10 * number, trainer, number))));
    (0..2).for_each(|trainer| assert!(answer(30, trainer, 3).is_empty()));
    assert!(aggregator.on(31 * SECOND, Event::Judged(1, Some(1.0))).is_empty());
    assert!(aggregator.on(31 * SECOND, Event::Judged(2, Some(0.5))).is_empty());
    let called = aggregator.on(36 * SECOND, Event::Tick);
    assert_eq!(called, [Action::Say(2, ToTrainer::Call { number: 3 })]);
    let end = aggregator.on(41 * SECOND, Event::Tick);
    let is_last = |action: &Action| matches!(action, Action::Keep(kept) if kept.last && kept.mean.number == 3);
    assert!(end.iter().any(is_last), "{end:?}");
    let ends = end.iter().filter(|action| matches!(action, Action::Say(_, ToTrainer::End { .. })));
    assert_eq!(ends.count(), 3, "{end:?}");
}

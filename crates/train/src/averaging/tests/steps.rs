//! Trainers are told which of their steps are behind them.

use super::*;

/// A trainer that is killed between two means and back before the next has the steps of before its last mean behind
/// it, and one that never failed all of its own; all of them those that the kept means say.
#[test]
fn who_comes_back_goes_on_behind_its_steps_that_entered_means() {
    let mut conditions = conditions(&[1.0, 2.0, 5.0]);
    conditions.faults =
        vec![Fault { trainer: Some(0), at: seconds(25.0), kind: Failing::Killed, back: Some(20 * SECOND) }];
    let terms = terms(3, Pace::Time(10 * SECOND), Pace::Time(100 * SECOND));
    let mut learners: Vec<Walker> = targets(3).into_iter().map(walker).collect();
    let (mut judge, mut log) = (Distance { to: vec![0.0; 2] }, Log::default());
    let from = Reached { entered: vec![70, 80], ..Reached::default() };
    run(terms, &conditions, &mut learners, &mut judge, Start { reached: &from, hands_on: false }, &|_| None, &mut log)
        .unwrap();
    assert_eq!(learners[0].lives, 1);
    for (trainer, learner) in learners.iter().enumerate() {
        for (number, taken) in &learner.behind {
            let here = log.kept.iter().find(|(_, kept)| kept.mean.number == *number);
            let here = here.map_or(0, |(_, kept)| kept.steps[trainer]);
            let before = [70, 80, 0][trainer];
            assert_eq!(*taken, Taken { before, here, share: None }, "trainer {trainer} behind mean {number}");
        }
    }
    // Two means of ten steps each were taken before it was killed, and it was away for the two after these.
    let told: Vec<u64> = learners[0].behind.iter().map(|(_, taken)| taken.here).collect();
    assert_eq!(told[..3], [0, 10, 20], "{told:?}");
    assert!(told[3] == 20 && told.windows(2).all(|pair| pair[0] <= pair[1]), "{told:?}");
}

/// Who goes on from a kept mean has what it says behind it.
#[test]
fn a_run_that_goes_on_tells_trainers_the_steps_of_its_last_mean() {
    let terms = terms(3, Pace::Steps(4), Pace::Steps(20));
    let conditions = conditions(&[1.0; 3]);
    let (_, log) = walk(terms, &conditions, None);
    let (_, kept) = &log.kept[2];
    let mut learners: Vec<Walker> = targets(3).into_iter().map(walker).collect();
    let (mut judge, from) = (Distance { to: vec![0.0; 2] }, reached(kept, false));
    run(
        terms,
        &conditions,
        &mut learners,
        &mut judge,
        Start { reached: &from, hands_on: false },
        &|_| None,
        &mut Log::default(),
    )
    .unwrap();
    for learner in &learners {
        let told: Vec<_> = learner.behind.iter().map(|(number, taken)| (*number, taken.here)).collect();
        assert_eq!(told, [(3, 12), (4, 16)]);
    }
}

//! The protocol, with learners whose runs can be worked out on paper or by a few lines of their own.

use std::time::Duration;

use laconic_key::{Key, Purpose};
use laconic_wire::{Kind, LinkShape, Rank};

use super::conditions::{Conditions, Fault};
use super::lane::Doing;
use super::played::Played;
use super::simulated::{Start, run};
use super::*;
use crate::config::{Failing, Pace, Weighting};

mod changes;
mod steps;
mod waits;

const SECOND: Duration = Duration::from_secs(1);

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Steps towards its own target by a fixed share of the way, as gradient descent on ½‖x − target‖² does.
struct Walker {
    at: Vec<f32>,
    target: Vec<f32>,
    rate: f32,
    lives: u32,
    adopted: Vec<Vec<f32>>,
    /// The means that it set out from, and its steps that were in them then.
    behind: Vec<(u32, Taken)>,
}

impl Learner for Walker {
    fn step(&mut self) -> Result<f64> {
        let distance: f32 = self.at.iter().zip(&self.target).map(|(at, to)| (at - to) * (at - to)).sum();
        self.at.iter_mut().zip(&self.target).for_each(|(at, to)| *at -= self.rate * (*at - to));
        Ok(f64::from(distance) / 2.0)
    }

    fn parameters(&self) -> &[f32] {
        &self.at
    }

    fn adopt(&mut self, model: &[f32]) {
        self.at.copy_from_slice(model);
        self.adopted.push(model.to_vec());
    }

    fn sets_out(&mut self, number: u32, taken: Taken) {
        self.behind.push((number, taken));
    }

    fn restart(&mut self) {
        self.at.fill(0.0);
        self.lives += 1;
    }

    fn rows(&self) -> f64 {
        1.0
    }

    fn steps_of_epoch(&self) -> u64 {
        10
    }
}

/// Judges by the distance to the mean of all targets; corrects by adding 1 for each step.
struct Distance {
    to: Vec<f32>,
}

impl Judge for Distance {
    type Verdict = f64;

    fn judge(&mut self, _: u32, model: &[f32]) -> Result<Option<f64>> {
        Ok(Some(model.iter().zip(&self.to).map(|(at, to)| f64::from((at - to).abs())).sum()))
    }

    fn worth(&self, verdict: &f64) -> Option<f64> {
        Some(-verdict)
    }

    fn correct(&mut self, _: u32, model: &[f32], steps: u32, _: f64) -> Result<Vec<f32>> {
        Ok(model.iter().map(|value| value + steps as f32).collect())
    }
}

/// Everything that was written down.
#[derive(Default)]
struct Log {
    kept: Vec<(Duration, Kept)>,
    judged: Vec<(Duration, u32, f64)>,
    notes: Vec<(Duration, usize, Noted)>,
}

impl Watch<f64> for Log {
    fn kept(&mut self, now: Duration, kept: &Kept, _: u64) -> Result<()> {
        self.kept.push((now, kept.clone()));
        Ok(())
    }

    fn judged(&mut self, now: Duration, number: u32, verdict: &f64) -> Result<()> {
        self.judged.push((now, number, *verdict));
        Ok(())
    }

    fn noted(&mut self, now: Duration, trainer: usize, what: Noted) {
        self.notes.push((now, trainer, what));
    }
}

fn terms(trainers: usize, interval: Pace, limit: Pace) -> Terms {
    Terms {
        trainers,
        interval,
        limit,
        horizon: None,
        weighting: Weighting::Uniform,
        quorum: trainers / 2 + 1,
        grace: 5 * SECOND,
        deadline: 60 * SECOND,
        start: 60 * SECOND,
        corrections: 0,
        judge_every: 1,
        patience: 0,
    }
}

fn conditions(speeds: &[f64]) -> Conditions {
    let link = LinkShape { latency: Duration::from_millis(10), bits_per_second: 8e6 };
    Conditions {
        hosted: None,
        speeds: speeds.to_vec(),
        correction_speed: 1.0,
        verdict: Duration::ZERO,
        links: vec![link; speeds.len() + 1],
        faults: Vec::new(),
    }
}

fn targets(trainers: usize) -> Vec<Vec<f32>> {
    (0..trainers).map(|trainer| vec![1.0 + trainer as f32, 8.0 - 2.0 * trainer as f32]).collect()
}

fn walker(target: Vec<f32>) -> Walker {
    Walker { at: vec![0.0; 2], target, rate: 0.1, lives: 0, adopted: Vec::new(), behind: Vec::new() }
}

/// A run of walkers to targets of their own.
fn walk(terms: Terms, conditions: &Conditions, from: Option<&Kept>) -> (Played, Log) {
    walk_on(terms, conditions, &Reached { kept: from.cloned(), ..Reached::default() })
}

/// The same from a kept mean on which the verdict may be owed.
fn walk_on(terms: Terms, conditions: &Conditions, from: &Reached) -> (Played, Log) {
    let (played, log, _) = walk_with(terms, conditions, from, &|_| None);
    (played, log)
}

/// The same with models that travel as changes, and what trainers took up.
fn walk_with(
    terms: Terms,
    conditions: &Conditions,
    from: &Reached,
    coding: &dyn Fn(Rank) -> Option<Changes>,
) -> (Played, Log, Vec<Vec<f32>>) {
    let all = targets(terms.trainers);
    let count = all.len() as f32;
    let to = (0..2).map(|column| all.iter().map(|target| target[column]).sum::<f32>() / count).collect();
    let mut learners: Vec<Walker> = all.into_iter().map(walker).collect();
    let mut log = Log::default();
    let start = Start { reached: from, hands_on: false };
    let played = run(terms, conditions, &mut learners, &mut Distance { to }, start, coding, &mut log);
    (played.unwrap(), log, learners.into_iter().flat_map(|learner| learner.adopted).collect())
}

fn reached(kept: &Kept, owes: bool) -> Reached {
    Reached { kept: Some(kept.clone()), owes, ..Reached::default() }
}

fn last(log: &Log) -> &Kept {
    &log.kept.last().expect("a mean was taken").1
}

#[test]
fn means_by_steps_are_those_of_a_loop_over_rounds() {
    let (played, log) = walk(terms(3, Pace::Steps(4), Pace::Steps(20)), &conditions(&[1.0, 2.0, 5.0]), None);
    assert_eq!(played.ending, Some(Ending::Limit));
    assert_eq!(played.steps, [20, 20, 20]);
    let mut model = vec![0.0f32; 2];
    for (number, (_, kept)) in log.kept.iter().enumerate() {
        let mut sum = [0.0f64; 2];
        for target in targets(3) {
            let mut own = model.clone();
            for _ in 0..4 {
                own.iter_mut().zip(&target).for_each(|(at, to)| *at -= 0.1 * (*at - to));
            }
            sum.iter_mut().zip(&own).for_each(|(sum, own)| *sum += f64::from(*own));
        }
        model = sum.iter().map(|sum| (sum / 3.0) as f32).collect();
        assert_eq!((kept.mean.number, &kept.mean.model[..]), (number as u32 + 1, &model[..]));
        assert_eq!(kept.mean.members, [(0, 4), (1, 4), (2, 4)]);
    }
    assert_eq!(log.kept.len(), 5);
    assert_eq!(log.judged.iter().map(|(_, number, _)| *number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

#[test]
fn bytes_of_a_mean_are_twice_the_trainers_times_the_parameters() {
    let (played, log) = walk(terms(5, Pace::Steps(4), Pace::Steps(24)), &conditions(&[1.0; 5]), None);
    let parameters = |ledgers: &[laconic_wire::Ledger]| {
        ledgers.iter().map(|ledger| ledger.totals_by_kind()[Kind::Parameters].payload).sum::<u64>()
    };
    // Every model goes up, and every mean but the last comes down: nobody needs that any more.
    let means = log.kept.len() as u64;
    assert_eq!(parameters(&played.sent[1..]), means * 5 * 2 * 4);
    assert_eq!(parameters(&played.sent[..1]), (means - 1) * 5 * 2 * 4);
    assert_eq!(played.sent[0].totals_by_peer().get(&Rank(3)).unwrap().frames, 1 + 2 * (means - 1) + 1);
}

#[test]
fn means_by_time_come_an_interval_after_the_one_before_and_the_last_at_the_limit() {
    let every = Pace::Time(10 * SECOND);
    let (played, log) = walk(terms(2, every, Pace::Time(35 * SECOND)), &conditions(&[4.0, 1.0]), None);
    // 10 ms there and 10 ms back, up to a step of the slower one, and little for a few bytes.
    let mut before = seconds(0.01);
    for (at, kept) in &log.kept[..3] {
        let took = at.saturating_sub(before);
        assert!(took >= 10 * SECOND && took <= seconds(11.1), "mean {} after {took:?}", kept.mean.number);
        before = *at;
    }
    let (end, kept) = log.kept.last().unwrap();
    assert!(kept.last && *end >= 35 * SECOND && *end < seconds(36.1), "{end:?}");
    assert_eq!(played.ending, Some(Ending::Limit));
}

#[test]
fn with_one_trainer_the_mean_is_its_own_model_bit_for_bit() {
    let alone = |interval| walk(terms(1, interval, Pace::Steps(30)), &conditions(&[1.0]), None);
    let (_, rarely) = alone(Pace::Steps(30));
    let (_, often) = alone(Pace::Steps(1));
    let mut plain = walker(targets(1).remove(0));
    for _ in 0..30 {
        plain.step().unwrap();
    }
    assert_eq!(last(&rarely).mean.model[..], plain.at[..]);
    assert_eq!(last(&often).mean.model[..], plain.at[..]);
}

#[test]
fn corrections_come_between_a_mean_and_its_handing_out_and_none_are_no_member() {
    let plain = terms(3, Pace::Steps(4), Pace::Steps(8));
    let (_, without) = walk(plain, &conditions(&[1.0; 3]), None);
    let (_, with) = walk(Terms { corrections: 2, ..plain }, &conditions(&[1.0; 3]), None);
    let [first, corrected] = [&without, &with].map(|log| log.kept[0].1.mean.model.clone());
    assert_eq!(corrected[..], first.iter().map(|value| value + 2.0).collect::<Vec<_>>()[..]);
    // Trainers wait for the correction.
    assert_eq!(with.kept[0].0.saturating_sub(without.kept[0].0), 2 * SECOND);
}

#[test]
fn trainers_do_not_wait_for_a_slow_one() {
    let every = Pace::Time(100 * SECOND);
    let steps = |speeds: &[f64]| {
        let (played, _) = walk(terms(3, every, Pace::Time(1000 * SECOND)), &conditions(speeds), None);
        played.steps.iter().zip(speeds).map(|(steps, speed)| *steps as f64 / speed).collect::<Vec<_>>()
    };
    let (even, uneven) = (steps(&[1.0, 1.0, 1.0]), steps(&[1.0, 0.25, 1.0]));
    for trainer in [0, 2] {
        let share = uneven[trainer] / even[trainer];
        assert!(share > 0.95, "{share}: steps of trainer {trainer} where another is four times slower");
    }
}

#[test]
fn who_stalls_misses_means_and_takes_up_the_latest_when_it_is_back() {
    let mut conditions = conditions(&[1.0; 3]);
    let stall = Fault { trainer: Some(1), at: seconds(12.5), kind: Failing::Stalled, back: Some(30 * SECOND) };
    conditions.faults = vec![stall];
    let (played, log) = walk(terms(3, Pace::Time(10 * SECOND), Pace::Time(80 * SECOND)), &conditions, None);
    let members: Vec<Vec<usize>> =
        log.kept.iter().map(|(_, kept)| kept.mean.members.iter().map(|(trainer, _)| *trainer).collect()).collect();
    let missing = members.iter().filter(|members| !members.contains(&1)).count();
    assert!(members[0] == [0, 1, 2] && missing >= 1 && *members.last().unwrap() == [0, 1, 2], "{members:?}");
    assert_eq!(played.lanes[1].iter().filter(|(doing, ..)| *doing == Doing::Stalled).count(), 1);
    let noted = |is: fn(&Noted) -> bool| log.notes.iter().any(|(_, trainer, note)| *trainer == 1 && is(note));
    assert!(noted(|note| matches!(note, Noted::Missing(_))), "{:?}", log.notes);
    assert!(noted(|note| matches!(note, Noted::Late(_))), "{:?}", log.notes);
    // The others went on: all means but those that waited out the grace come at their time.
    assert!(log.kept.len() >= 5, "{members:?}");
}

#[test]
fn a_trainer_that_never_comes_is_in_no_mean_and_the_mean_is_of_the_others() {
    let mut conditions = conditions(&[1.0; 3]);
    conditions.faults = vec![Fault { trainer: Some(2), at: Duration::ZERO, kind: Failing::Killed, back: None }];
    let (played, log) = walk(terms(3, Pace::Steps(400), Pace::Steps(400)), &conditions, None);
    assert_eq!(played.ending, Some(Ending::Limit));
    assert_eq!(last(&log).mean.members, [(0, 400), (1, 400)]);
    // Each has walked to its own target; the divisor is the number of those who took part.
    let model = last(&log).mean.model.clone();
    assert!((model[0] - 1.5).abs() < 1e-4 && (model[1] - 7.0).abs() < 1e-4, "{model:?}");
}

#[test]
fn who_comes_back_forgets_its_state_and_gets_the_current_mean() {
    let mut conditions = conditions(&[1.0; 3]);
    conditions.faults =
        vec![Fault { trainer: Some(0), at: seconds(25.0), kind: Failing::Killed, back: Some(20 * SECOND) }];
    let (_, log) = walk(terms(3, Pace::Time(10 * SECOND), Pace::Time(90 * SECOND)), &conditions, None);
    let took_part = |kept: &Kept| kept.mean.members.iter().any(|(trainer, _)| *trainer == 0);
    let parts: Vec<bool> = log.kept.iter().map(|(_, kept)| took_part(kept)).collect();
    assert!(parts[0] && !parts[3] && parts[parts.len() - 1], "{parts:?}");
    let absent = parts.iter().filter(|part| !**part).count();
    assert!((1..=3).contains(&absent), "{parts:?}");
}

#[test]
fn without_a_quorum_the_run_ends_and_says_so() {
    let mut conditions = conditions(&[1.0; 3]);
    let killed = |trainer| Fault { trainer: Some(trainer), at: seconds(15.0), kind: Failing::Killed, back: None };
    conditions.faults = vec![killed(0), killed(1)];
    let (played, log) = walk(terms(3, Pace::Time(10 * SECOND), Pace::Time(1000 * SECOND)), &conditions, None);
    assert_eq!(played.ending, Some(Ending::NoQuorum { answered: 1 }));
    assert_eq!(log.kept.len(), 1);
}

#[test]
fn a_kept_mean_whose_verdict_was_lost_is_judged_when_the_run_goes_on() {
    let (every, limit) = (Pace::Steps(4), Pace::Steps(12));
    let (_, log) = walk(terms(3, every, limit), &conditions(&[1.0; 3]), None);
    let second = &log.kept[1].1;
    for (judge_every, owes, judged) in [(1, true, &[2, 3][..]), (1, false, &[3]), (3, true, &[3]), (2, true, &[2, 3])] {
        let terms = Terms { judge_every, ..terms(3, every, limit) };
        let (played, log) = walk_on(terms, &conditions(&[1.0; 3]), &reached(second, owes));
        let numbers: Vec<u32> = log.judged.iter().map(|(_, number, _)| *number).collect();
        assert_eq!((played.ending, &numbers[..]), (Some(Ending::Limit), judged), "every {judge_every}, {owes}");
    }
}

#[test]
fn a_run_that_was_at_its_end_takes_no_mean_more_when_it_goes_on() {
    for (every, limit) in [(Pace::Steps(4), Pace::Steps(12)), (Pace::Time(10 * SECOND), Pace::Time(40 * SECOND))] {
        let (_, log) = walk(terms(3, every, limit), &conditions(&[1.0; 3]), None);
        let last = last(&log);
        assert!(last.last);
        for owes in [true, false] {
            let (played, log) = walk_on(terms(3, every, limit), &conditions(&[1.0; 3]), &reached(last, owes));
            assert_eq!((played.ending, log.kept.len(), &played.steps[..]), (Some(Ending::Limit), 0, &[0; 3][..]));
            assert_eq!(log.judged.iter().map(|(_, number, _)| *number).eq([last.mean.number]), owes);
        }
    }
}

#[test]
fn patience_ends_a_run_that_gets_no_better() {
    let patient = Terms { patience: 3, ..terms(2, Pace::Steps(50), Pace::Steps(100_000)) };
    let (played, log) = walk(patient, &conditions(&[1.0; 2]), None);
    assert_eq!(played.ending, Some(Ending::Patience));
    assert!(log.kept.len() < 40, "{} means", log.kept.len());
}

/// Conditions drawn from a seed: speeds, links, and faults of every kind at any time.
fn weather(seed: u64, trainers: usize, until: f64) -> Conditions {
    let key = Key::new(seed, Purpose::Initialise);
    let mut at = 0u64;
    let mut draw = || {
        at += 1;
        key.with(at).unit()
    };
    let speeds = (0..trainers).map(|_| 0.2 + 4.0 * draw()).collect::<Vec<_>>();
    let link = |latency: f64, rate: f64| LinkShape {
        latency: seconds(0.001 + 2.0 * latency * latency),
        bits_per_second: 10f64.powf(2.5 + 5.0 * rate),
    };
    let links = (0..=trainers).map(|_| link(draw(), draw())).collect();
    let faults = (0..(draw() * 8.0) as usize).map(|_| {
        let who = (draw() * (trainers as f64 + 0.3)) as usize;
        let kind = [Failing::Killed, Failing::SwitchedOff, Failing::Stalled][(draw() * 3.0) as usize];
        let at = if draw() < 0.15 { Duration::ZERO } else { seconds(draw() * until) };
        let back = (draw() < 0.7 || kind == Failing::Stalled).then(|| seconds(draw() * 100.0));
        let trainer = Some(who).filter(|who| *who < trainers);
        Fault { trainer, at, kind: if trainer.is_none() { Failing::Killed } else { kind }, back }
    });
    let faults = faults.collect();
    Conditions { faults, links, verdict: seconds(draw() * 20.0), ..conditions(&speeds) }
}

#[test]
fn a_thousand_runs_with_random_faults_end_lose_no_mean_and_stay_small() {
    let (mut ended, mut lost, mut resumed) = ([0usize; 2], 0usize, 0usize);
    for seed in 0..1000u64 {
        let trainers = 2 + (seed % 5) as usize;
        let pace = if seed % 3 == 0 { Pace::Steps(10) } else { Pace::Time(10 * SECOND) };
        let limit = if seed % 2 == 0 { Pace::Time(200 * SECOND) } else { Pace::Steps(300) };
        let terms = terms(trainers, pace, limit);
        let weather = weather(seed, trainers, 200.0);
        let (mut kept, mut numbers): (Option<Kept>, Vec<u32>) = (None, Vec::new());
        for start in 0..8 {
            // A run that has lost its aggregator goes on from what was kept, in better weather.
            let calm = Conditions { faults: Vec::new(), ..weather.clone() };
            let (played, log) = walk(terms, if start == 0 { &weather } else { &calm }, kept.as_ref());
            assert!(played.most_queued < 200 * trainers, "seed {seed}: {} events at once", played.most_queued);
            numbers.extend(log.kept.iter().map(|(_, kept)| kept.mean.number));
            for (_, kept) in &log.kept {
                assert!(kept.mean.members.len() >= terms.quorum, "seed {seed}: {:?}", kept.mean.members);
                assert!(kept.mean.model.iter().all(|value| (-1e3..1e3).contains(value)), "seed {seed}");
            }
            kept = log.kept.last().map(|(_, kept)| kept.clone()).or(kept);
            match played.ending {
                Some(Ending::NoQuorum { .. }) => ended[1] += 1,
                Some(ending) => {
                    assert_eq!(ending, Ending::Limit, "seed {seed}");
                    assert!(kept.as_ref().is_some_and(|kept| kept.last), "seed {seed}");
                    ended[0] += 1;
                }
                None => {
                    (lost, resumed) = (lost + 1, resumed + 1);
                    continue;
                }
            }
            resumed -= usize::from(start > 0);
            break;
        }
        // Means are numbered without a gap, over all starts.
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u32), "seed {seed}: {numbers:?}");
    }
    assert_eq!(resumed, 0, "every run that lost its aggregator came to its end");
    assert!(ended[0] > 700 && lost > 50, "{ended:?} at their limit and without a quorum, {lost} lost their aggregator");
}

#[test]
fn the_same_seed_replays_the_same_run() {
    for seed in [3, 17, 256] {
        let terms = terms(4, Pace::Time(10 * SECOND), Pace::Time(150 * SECOND));
        let weather = weather(seed, 4, 150.0);
        let [(first, one), (second, other)] = [(); 2].map(|()| walk(terms, &weather, None));
        assert_eq!(first, second, "seed {seed}");
        assert_eq!((one.kept, one.judged, one.notes), (other.kept, other.judged, other.notes), "seed {seed}");
    }
}

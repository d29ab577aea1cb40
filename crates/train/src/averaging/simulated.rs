//! A whole run of trainers on one thread: a queue of events and a clock that jumps from one to the next.
//!
//! Steps, corrections and verdicts are really computed; how long they take, how long frames travel, and who fails when
//! is given ([`Conditions`]). So a run is a function of its learners, terms and conditions, to the last bit.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use laconic_wire::{Count, Frame, Ledger, Rank, Tag};

use super::aggregator::Aggregator;
use super::change::Changes;
use super::conditions::{Conditions, Fault};
use super::events::{Action, Ending, Event, Reached};
use super::lane::{Doing, Lane};
use super::link;
use super::message::{FromTrainer, Leave, ToTrainer};
use super::played::{AGGREGATOR, Played};
use super::terms::Terms;
use super::trainer::{Answer, Trainer};
use super::watch::Watch;
use super::{Judge, Learner, Model};
use crate::config::Failing;
use crate::error::{Result, TrainError};

/// Something that is going to happen.
enum Coming<V> {
    Step { trainer: usize, life: u32 },
    ToTrainer { trainer: usize, said: ToTrainer },
    ToAggregator { trainer: usize, said: FromTrainer },
    ToOther { from: usize, to: usize, frame: Frame },
    Lost { trainer: usize },
    Verdict { number: u32, worth: Option<f64>, verdict: V },
    NoVerdict { number: u32 },
    Corrected(Model),
    Wake,
    Fails(usize),
    Returns(usize),
    Awakes { trainer: usize, life: u32 },
}

/// A run has fewer events: one that has more does not end.
const EVENTS_MAX: u64 = 1 << 32;

struct Place {
    trainer: Option<Trainer>,
    /// One more each time that it comes.
    life: u32,
    /// Until when it does nothing.
    stalled: Duration,
    is_stepping: bool,
    heard: VecDeque<ToTrainer>,
    steps: u64,
    lane: Lane,
}

struct World<'a, L, J: Judge> {
    now: Duration,
    terms: Terms,
    conditions: &'a Conditions,
    learners: &'a mut [L],
    judge: &'a mut J,
    watch: &'a mut dyn Watch<J::Verdict>,
    coding: &'a dyn Fn(Rank) -> Option<Changes>,
    aggregator: Aggregator,
    places: Vec<Place>,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    coming: std::collections::BTreeMap<u64, Coming<J::Verdict>>,
    next: u64,
    /// When each uplink is free again.
    free: Vec<Duration>,
    /// What everybody has sent, and what has reached them; by rank.
    crossed: [Vec<Ledger>; 2],
    wakes: Option<Duration>,
    ending: Option<Ending>,
    is_lost: bool,
    /// Why the first trainer that could not go on was lost.
    failed: Option<TrainError>,
    most_queued: usize,
}

/// Where a stage begins.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    /// What has been reached before.
    pub reached: &'a Reached,
    /// Whether another stage is to come behind it.
    pub hands_on: bool,
}

/// Runs trainers and their aggregator to the end, from what had been reached or from the beginning. Where another stage
/// is to come, trainers stay, and [`Played::dismiss`] enters what they are told then. `coding` makes each end's way to
/// write changes, where models travel as such.
///
/// # Errors
/// If training leaves the numbers, too few trainers are left for other reasons than faults, or what is to be kept
/// cannot be.
///
/// # Panics
///
/// If there is not one learner and speed a trainer, and one link more.
pub fn run<L: Learner, J: Judge>(
    terms: Terms,
    conditions: &Conditions,
    learners: &mut [L],
    judge: &mut J,
    start: Start<'_>,
    coding: &dyn Fn(Rank) -> Option<Changes>,
    watch: &mut dyn Watch<J::Verdict>,
) -> Result<Played> {
    let (trainers, Start { reached, hands_on }) = (terms.trainers, start);
    assert_eq!((learners.len(), conditions.speeds.len(), conditions.links.len()), (trainers, trainers, trainers + 1));
    let place = || Place {
        trainer: None,
        life: 0,
        stalled: Duration::ZERO,
        is_stepping: false,
        heard: VecDeque::new(),
        steps: 0,
        lane: Lane::default(),
    };
    let initial: Model = learners.first().map_or(&[][..], Learner::parameters).into();
    let changes = coding(Rank(AGGREGATOR as u32));
    let aggregator = Aggregator::new(terms, reached, changes, initial, Duration::ZERO);
    let mut world = World {
        now: Duration::ZERO,
        terms,
        conditions,
        learners,
        judge,
        watch,
        coding,
        aggregator: if hands_on { aggregator.handing_on() } else { aggregator },
        places: (0..trainers).map(|_| place()).collect(),
        queue: BinaryHeap::new(),
        coming: Default::default(),
        next: 0,
        free: vec![Duration::ZERO; trainers + 1],
        crossed: [(); 2].map(|()| vec![Ledger::new(); trainers + 1]),
        wakes: None,
        ending: None,
        is_lost: false,
        failed: None,
        most_queued: 0,
    };
    world.play()?;
    if let (Some(Ending::NoQuorum { .. }), Some(error)) = (world.ending, world.failed.take()) {
        return Err(error);
    }
    Ok(world.played())
}

impl<L: Learner, J: Judge> World<'_, L, J> {
    fn play(&mut self) -> Result<()> {
        for (index, fault) in self.conditions.faults.iter().enumerate() {
            self.put(fault.at, Coming::Fails(index));
        }
        for trainer in 0..self.places.len() {
            // Faults at the very beginning come first: who fails then does not come.
            if !self.conditions.is_absent_at_first(trainer) {
                self.comes(trainer)?;
            }
        }
        self.tell(Event::Tick)?;
        let (mut events, mut stopped) = (0u64, false);
        while self.ending.is_none() && !self.is_lost {
            let Some(Reverse((at, id))) = self.queue.pop() else {
                return Err(TrainError::config("a simulated run has come to a standstill"));
            };
            let coming = self.coming.remove(&id).expect("every event is there once");
            self.now = at;
            self.happens(coming)?;
            self.most_queued = self.most_queued.max(self.queue.len());
            events += 1;
            if events > EVENTS_MAX {
                return Err(TrainError::config("a simulated run does not end"));
            }
            if !stopped && self.watch.is_stopped() {
                stopped = true;
                self.tell(Event::Stopped)?;
            }
        }
        Ok(())
    }

    fn played(self) -> Played {
        let end = self.now;
        let present = self.places.iter().map(|place| place.trainer.is_some()).collect();
        let [sent, received] = self.crossed;
        Played {
            ending: self.ending,
            end,
            sent,
            received,
            steps: self.places.iter().map(|place| place.steps).collect(),
            lanes: self.places.into_iter().map(|place| place.lane.ends(end)).collect(),
            most_queued: self.most_queued,
            present,
            hosted: self.conditions.hosted,
        }
    }

    fn put(&mut self, at: Duration, coming: Coming<J::Verdict>) {
        self.queue.push(Reverse((at, self.next)));
        self.coming.insert(self.next, coming);
        self.next += 1;
    }

    /// Whether both are in the aggregator's process.
    fn stays(&self, (from, to): (usize, usize)) -> bool {
        from.min(to) == AGGREGATOR && self.conditions.hosted.is_some_and(|hosted| hosted + 1 == from.max(to))
    }

    /// When these frames, which `from` sends now, will all be there.
    fn arrives(&mut self, (from, to): (usize, usize), frames: &[(Tag, usize)]) -> Duration {
        if self.stays((from, to)) {
            return self.now;
        }
        let shape = self.conditions.links[from];
        for (tag, payload) in frames {
            let framed = Count::of(1, *payload as u64).framed as usize;
            self.free[from] = self.free[from].max(self.now).saturating_add(shape.transfer(framed));
            self.crossed[0][from].record(*tag, Rank(to as u32), *payload);
        }
        self.free[from].saturating_add(shape.latency)
    }

    /// Enters what has reached its receiver.
    fn reaches(&mut self, (from, to): (usize, usize), frames: &[(Tag, usize)]) {
        if self.stays((from, to)) {
            return;
        }
        frames.iter().for_each(|(tag, payload)| self.crossed[1][to].record(*tag, Rank(from as u32), *payload));
    }

    fn happens(&mut self, coming: Coming<J::Verdict>) -> Result<()> {
        match coming {
            Coming::Step { trainer, life } => self.steps(trainer, life),
            Coming::ToTrainer { trainer, said } => {
                if self.places[trainer].trainer.is_some() {
                    self.reaches((AGGREGATOR, trainer + 1), &link::sizes_to_trainer(&said));
                    self.places[trainer].heard.push_back(said);
                    self.listens(trainer)?;
                }
                Ok(())
            }
            Coming::ToAggregator { trainer, said } => {
                let frames = link::sizes_from_trainer(&said);
                self.reaches((trainer + 1, AGGREGATOR), &frames);
                self.tell(Event::Heard(trainer, said))
            }
            Coming::ToOther { from, to, frame } => {
                if self.places[to].trainer.is_some() {
                    self.reaches((from + 1, to + 1), &[(frame.tag(), frame.payload().len())]);
                    self.learners[to].is_told(from, frame);
                }
                Ok(())
            }
            Coming::Lost { trainer } => {
                // Who has come back before that was noticed is not lost.
                if self.places[trainer].trainer.is_some() { Ok(()) } else { self.tell(Event::Lost(trainer)) }
            }
            Coming::Verdict { number, worth, verdict } => {
                self.watch.judged(self.now, number, &verdict)?;
                self.tell(Event::Judged(number, worth))
            }
            Coming::NoVerdict { number } => {
                self.watch.stays_unjudged(number)?;
                self.tell(Event::Unjudged(number))
            }
            Coming::Corrected(model) => self.tell(Event::Corrected(model)),
            Coming::Wake => {
                self.wakes = None;
                self.tell(Event::Tick)
            }
            Coming::Fails(index) => self.fails(index),
            Coming::Returns(trainer) => self.comes(trainer),
            Coming::Awakes { trainer, life } if self.places[trainer].life == life => {
                if self.places[trainer].stalled <= self.now && self.places[trainer].trainer.is_some() {
                    let doing = self.places[trainer].at_work();
                    self.places[trainer].lane.turn(self.now, doing);
                    self.listens(trainer)?;
                }
                Ok(())
            }
            Coming::Awakes { .. } => Ok(()),
        }
    }

    /// A trainer starts, for the first time or again.
    fn comes(&mut self, trainer: usize) -> Result<()> {
        let place = &mut self.places[trainer];
        if place.trainer.is_some() {
            return Ok(());
        }
        if place.life > 0 {
            self.learners[trainer].restart();
        }
        place.life += 1;
        (place.stalled, place.is_stepping) = (Duration::ZERO, false);
        place.lane.turn(self.now, Doing::Averaging);
        let machine = Trainer::new(self.terms.interval, (self.coding)(Rank(trainer as u32 + 1)));
        let said = machine.comes(&self.learners[trainer]);
        place.trainer = Some(machine);
        self.says(trainer, said);
        Ok(())
    }

    fn says(&mut self, trainer: usize, said: FromTrainer) {
        let frames = link::sizes_from_trainer(&said);
        let at = self.arrives((trainer + 1, AGGREGATOR), &frames);
        self.put(at, Coming::ToAggregator { trainer, said });
    }

    /// A trainer ends a step, hears what has come meanwhile, and begins the next.
    fn steps(&mut self, trainer: usize, life: u32) -> Result<()> {
        let place = &mut self.places[trainer];
        if place.life != life {
            return Ok(());
        }
        let Some(machine) = &mut place.trainer else { return Ok(()) };
        if place.stalled > self.now {
            let at = place.stalled;
            self.put(at, Coming::Step { trainer, life });
            return Ok(());
        }
        place.is_stepping = false;
        place.steps += 1;
        match machine.step(&mut self.learners[trainer]) {
            Ok(answer) => {
                self.tells_others(trainer);
                self.answers(trainer, answer);
                self.listens(trainer)
            }
            Err(error) => self.is_lost_to(trainer, error),
        }
    }

    /// Puts what a trainer has told the others on its way.
    fn tells_others(&mut self, trainer: usize) {
        for (to, frame) in self.learners[trainer].tells() {
            let at = self.arrives((trainer + 1, to + 1), &[(frame.tag(), frame.payload().len())]);
            self.put(at, Coming::ToOther { from: trainer, to, frame });
        }
    }

    fn answers(&mut self, trainer: usize, answer: Answer) {
        match answer {
            Answer::Nothing => {}
            Answer::Say(said) => self.says(trainer, said),
            Answer::Leave(_) => {
                self.places[trainer].lane.turn(self.now, Doing::Absent);
                let steps = self.places[trainer].steps;
                self.says(trainer, FromTrainer::Bye(Leave { steps, memory: 0 }));
            }
        }
    }

    /// A trainer that is not in the middle of a step hears what has come, and goes on.
    fn listens(&mut self, trainer: usize) -> Result<()> {
        let now = self.now;
        if self.places[trainer].is_stepping || self.places[trainer].stalled > now {
            return Ok(());
        }
        while let Some(said) = self.places[trainer].heard.pop_front() {
            let Some(machine) = &mut self.places[trainer].trainer else { return Ok(()) };
            match machine.hears(&said, &mut self.learners[trainer]) {
                Ok(answer) => self.answers(trainer, answer),
                Err(error) => return self.is_lost_to(trainer, error),
            }
        }
        let place = &mut self.places[trainer];
        let Some(machine) = &place.trainer else { return Ok(()) };
        if machine.is_over() {
            return Ok(());
        }
        let doing = place.at_work();
        place.lane.turn(now, doing);
        if doing == Doing::Working {
            place.is_stepping = true;
            let (life, takes) = (place.life, Duration::from_secs_f64(1.0 / self.conditions.speeds[trainer]));
            self.put(now.saturating_add(takes), Coming::Step { trainer, life });
        }
        Ok(())
    }

    /// A trainer whose training has left the numbers ends, as its thread or process would; the others go on.
    fn is_lost_to(&mut self, trainer: usize, error: TrainError) -> Result<()> {
        if !matches!(error, TrainError::Diverged { .. }) {
            return Err(error);
        }
        self.failed.get_or_insert(error);
        self.goes(trainer);
        Ok(())
    }

    /// A trainer is there no more, which the aggregator sees when its link has carried everything.
    fn goes(&mut self, trainer: usize) {
        let (now, place) = (self.now, &mut self.places[trainer]);
        if place.trainer.take().is_some() {
            place.heard.clear();
            place.lane.turn(now, Doing::Absent);
            let at = self.free[trainer + 1].max(now).saturating_add(self.conditions.links[trainer + 1].latency);
            self.put(at, Coming::Lost { trainer });
        }
    }

    fn fails(&mut self, index: usize) -> Result<()> {
        let Fault { trainer, kind, back, .. } = self.conditions.faults[index];
        let Some(trainer) = trainer else {
            self.is_lost = kind != Failing::Stalled;
            return Ok(());
        };
        let now = self.now;
        let back = back.map(|after| now.saturating_add(after));
        let place = &mut self.places[trainer];
        if kind == Failing::Stalled {
            if place.trainer.is_some() {
                place.stalled = place.stalled.max(back.unwrap_or(now));
                place.lane.turn(now, Doing::Stalled);
                let (at, life) = (place.stalled, place.life);
                self.put(at, Coming::Awakes { trainer, life });
            }
            return Ok(());
        }
        if place.trainer.is_some() {
            self.judge.loses_trainer();
        }
        if kind == Failing::Killed {
            self.goes(trainer);
        } else if place.trainer.take().is_some() {
            place.heard.clear();
            place.lane.turn(now, Doing::Absent);
        }
        if let Some(at) = back {
            self.put(at, Coming::Returns(trainer));
        }
        Ok(())
    }

    /// Tells the aggregator, and does what it says.
    fn tell(&mut self, event: Event) -> Result<()> {
        for action in self.aggregator.on(self.now, event) {
            match action {
                Action::Begin => self.watch.began(self.now),
                Action::Say(trainer, said) => {
                    let frames = link::sizes_to_trainer(&said);
                    let at = self.arrives((AGGREGATOR, trainer + 1), &frames);
                    self.put(at, Coming::ToTrainer { trainer, said });
                }
                Action::Keep(kept) => {
                    let sent = self.crossed[0].iter().map(|ledger| ledger.total().framed).sum();
                    self.watch.kept(self.now, &kept, sent)?;
                }
                Action::Judge(number, model) => {
                    let coming = match self.judge.judge(number, &model)? {
                        Some(verdict) => Coming::Verdict { number, worth: self.judge.worth(&verdict), verdict },
                        None => Coming::NoVerdict { number },
                    };
                    self.put(self.now.saturating_add(self.conditions.verdict), coming);
                }
                Action::Correct(number, model, share) => {
                    let steps = self.terms.corrections;
                    let corrected = self.judge.correct(number, &model, steps, share)?;
                    let takes = Duration::from_secs_f64(f64::from(steps) / self.conditions.correction_speed);
                    self.put(self.now.saturating_add(takes), Coming::Corrected(corrected.into()));
                }
                Action::Note(trainer, what) => self.watch.noted(self.now, trainer, what),
                Action::Finish(ending) => self.ending = Some(ending),
            }
        }
        if let Some(at) = self.aggregator.wakes()
            && self.wakes.is_none_or(|wakes| at < wakes)
        {
            self.wakes = Some(at);
            self.put(at.max(self.now), Coming::Wake);
        }
        Ok(())
    }
}

impl Place {
    /// What a trainer that does not stall does.
    fn at_work(&self) -> Doing {
        match &self.trainer {
            Some(machine) if machine.is_working() => Doing::Working,
            Some(_) => Doing::Averaging,
            None => Doing::Absent,
        }
    }
}

//! The aggregator's side: it calls for models, waits for them as long as the terms say, and hands the mean out.

mod peer;
mod waits;

use std::time::Duration;

use super::change::{Changes, Replicas};
use super::events::{Action, Ending, Event, Kept, Noted, Reached};
use super::mean::{Contribution, Mean, mean};
use super::message::{FromTrainer, Taken, ToTrainer};
use super::phase::{Phase, Standing};
use super::terms::Terms;
use super::{Model, check_numbers};
use crate::config::Pace;
use peer::Peer;

/// The one who takes means. It never waits for a trainer that is gone, and for one that stalls only as long as its
/// terms say; what it does follows from what it is told and when.
#[derive(Debug)]
pub struct Aggregator {
    terms: Terms,
    phase: Phase,
    /// When the trainers went, which limits in time count from; and how long the run had gone on before.
    begun: Duration,
    before: Duration,
    /// What is known of each trainer.
    peers: Vec<Peer>,
    number: u32,
    model: Option<Model>,
    /// What trainers have of it.
    replicas: Replicas,
    members: Vec<(usize, u64)>,
    loss: f64,
    /// Worth of the best so far, and judged means since.
    best: (Option<f64>, u32),
    /// The number of the last mean, once it is to be judged before the end.
    awaits: Option<u32>,
    /// Whether nobody knows the verdict on the mean that the run goes on from.
    owes: bool,
    /// Whether trainers stay until they are told what was chosen.
    hands_on: bool,
    /// Whether the user wants an end.
    stopping: bool,
    /// The share of what the learning rate runs towards that was over when trainers set out.
    share: f64,
    /// The number of the last mean that is to be judged, until it is.
    unjudged: Option<u32>,
}

impl Aggregator {
    /// An aggregator that goes on from this, or begins; trainers begin with the model `initial`, and all models travel
    /// as changes or as they are.
    pub fn new(terms: Terms, reached: &Reached, changes: Option<Changes>, initial: Model, now: Duration) -> Aggregator {
        let (trainers, kept) = (terms.trainers, reached.kept.as_ref());
        let of =
            |steps: Option<&Vec<u64>>, trainer: usize| steps.and_then(|all| all.get(trainer)).copied().unwrap_or(0);
        let peer =
            |trainer| Peer::absent(of(kept.map(|kept| &kept.steps), trainer), of(Some(&reached.entered), trainer));
        Aggregator {
            terms,
            phase: Phase::Gathering { since: now, enough: None },
            begun: now,
            before: kept.map_or(Duration::ZERO, |kept| kept.elapsed),
            peers: (0..trainers).map(peer).collect(),
            number: kept.map_or(0, |kept| kept.mean.number),
            model: kept.map(|kept| kept.mean.model.clone()),
            replicas: Replicas::new(changes, initial, trainers),
            members: Vec::new(),
            loss: 0.0,
            best: reached.best,
            awaits: None,
            owes: reached.owes,
            hands_on: false,
            stopping: false,
            share: 0.0,
            unjudged: None,
        }
    }

    /// The same for a stage after which another comes: trainers stay until whoever runs this tells them what was
    /// chosen.
    #[must_use]
    pub fn handing_on(self) -> Aggregator {
        Aggregator { hands_on: true, ..self }
    }

    /// Whether anybody is here who has not fallen silent.
    fn is_anybody_here(&self) -> bool {
        self.peers.iter().any(Peer::is_here)
    }

    fn working(&self) -> usize {
        self.peers.iter().filter(|peer| peer.is_working()).count()
    }

    /// The trainers of whom this is so.
    fn those(&self, is: impl Fn(&Peer) -> bool) -> Vec<usize> {
        (0..self.peers.len()).filter(|&trainer| is(&self.peers[trainer])).collect()
    }

    /// What is to be done about something that happened now.
    pub fn on(&mut self, now: Duration, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Heard(trainer, said) => self.hear(now, trainer, said, &mut actions),
            Event::Lost(trainer) => self.lose(now, trainer, &mut actions),
            Event::Judged(number, worth) => self.judged(now, number, worth, &mut actions),
            Event::Unjudged(number) => self.stays_unjudged(number, &mut actions),
            Event::Corrected(model) => {
                if let Phase::Correcting { last } = self.phase {
                    self.hand_out(now, model, last, &mut actions);
                }
            }
            Event::Tick => {}
            Event::Stopped => self.stop(now, &mut actions),
        }
        self.look_at_the_clock(now, &mut actions);
        actions
    }

    fn hear(&mut self, now: Duration, trainer: usize, said: FromTrainer, actions: &mut Vec<Action>) {
        self.peers[trainer].silent = false;
        match said {
            FromTrainer::Came { steps_of_epoch, rows } => {
                self.peers[trainer].told = Some((rows, steps_of_epoch));
                // What it may have sent before it was lost stays; nobody waits for more.
                self.peers[trainer].expected = false;
                self.replicas.forget(trainer);
                match self.phase {
                    Phase::Gathering { since, enough } => {
                        let peer = &mut self.peers[trainer];
                        (peer.standing, peer.lost) = (Standing::Working, false);
                        let enough = enough.or((self.working() >= self.terms.quorum).then_some(now));
                        self.phase = Phase::Gathering { since, enough };
                        self.begin_if_all_are_here(now, actions);
                    }
                    Phase::Closing(..) | Phase::Over => self.answer_with_the_end(trainer, actions),
                    _ => {
                        actions.push(Action::Note(trainer, Noted::Came(self.number)));
                        self.go_or_wait(trainer, actions);
                        self.check(now, actions);
                    }
                }
            }
            FromTrainer::Model { number, steps, loss, model } => {
                if matches!(self.phase, Phase::Closing(..) | Phase::Over) {
                    // Who was at work has been told already.
                    if !self.peers[trainer].is_at_work() {
                        self.answer_with_the_end(trainer, actions);
                    }
                    return;
                }
                let collects = matches!(self.phase, Phase::Working(_) | Phase::Collecting { .. });
                if number != self.number + 1 || !collects {
                    actions.push(Action::Note(trainer, Noted::Late(self.number)));
                    self.go_or_wait(trainer, actions);
                    return;
                }
                // Who has said what is no change of a model, or no numbers, says nothing that could be waited for.
                let model = self.replicas.read(trainer, self.number, self.model.as_ref(), model);
                let Some(model) = model.filter(|model| check_numbers(model, number, "a model for").is_ok()) else {
                    return self.lose(now, trainer, actions);
                };
                let rows = self.peers[trainer].told.map_or(0.0, |(rows, _)| rows);
                let answer = Some(Contribution { trainer, steps, rows, loss, model });
                self.peers[trainer].answer = answer;
                self.peers[trainer].standing = Standing::Answered;
                if let Phase::Working(_) = self.phase {
                    self.collect(now, false);
                }
                self.check(now, actions);
            }
            FromTrainer::Bye(_) => {
                self.peers[trainer].standing = Standing::Left;
                self.check(now, actions);
                self.finish_if_done(actions);
            }
        }
    }

    /// Begins when nobody else will come.
    fn begin_if_all_are_here(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.peers.iter().all(|peer| peer.lost || peer.is_working()) {
            match self.working() {
                come if come >= self.terms.quorum => self.begin(now, actions),
                come => self.give_up(now, come, actions),
            }
        }
    }

    /// All trainers that are here begin.
    fn begin(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.begun = now;
        self.share = self.share_at(now);
        actions.push(Action::Begin);
        for trainer in self.those(|peer| !peer.is_working()) {
            actions.push(Action::Note(trainer, Noted::NotCome));
        }
        // A run that goes on may have reached its end before.
        let is_at_its_end = self.number > 0 && (self.is_at_its_limit() || self.ends_at().is_some_and(|end| now >= end));
        self.judge_owed(is_at_its_end, actions);
        if is_at_its_end || self.is_out_of_patience() {
            let ending = if is_at_its_end { Ending::Limit } else { Ending::Patience };
            return self.close(now, ending, actions);
        }
        for trainer in self.those(Peer::is_working) {
            self.go(trainer, actions);
        }
        self.phase = Phase::Working(now);
    }

    /// Has the mean of the current number judged if it is one to be; the last is, before the end.
    fn judge(&mut self, model: Model, last: bool, actions: &mut Vec<Action>) {
        let every = self.terms.judge_every;
        if last || (every > 0 && self.number.is_multiple_of(every)) {
            self.unjudged = Some(self.number);
            actions.push(Action::Judge(self.number, model));
        }
        if last {
            self.awaits = Some(self.number);
        }
    }

    /// The same of the mean that the run goes on from, where the verdict on it was lost.
    fn judge_owed(&mut self, last: bool, actions: &mut Vec<Action>) {
        if let Some(model) = self.model.clone().filter(|_| std::mem::take(&mut self.owes)) {
            self.judge(model, last, actions);
        }
    }

    fn is_out_of_patience(&self) -> bool {
        self.terms.patience > 0 && self.best.1 >= self.terms.patience
    }

    /// Sends a trainer on its way from the latest mean.
    fn go(&mut self, trainer: usize, actions: &mut Vec<Action>) {
        let model = self.replicas.next(trainer, self.number, self.model.as_ref());
        let by_time = matches!(self.terms.horizon, Some(Pace::Time(_)));
        let peer = &mut self.peers[trainer];
        (peer.standing, peer.called) = (Standing::Working, false);
        let taken = Taken { before: peer.entered, here: peer.steps, share: by_time.then_some(self.share) };
        actions.push(Action::Say(trainer, ToTrainer::Go { number: self.number, taken, model }));
    }

    /// The same, unless a mean is being corrected, which it gets then as everybody does. Who comes when the others have
    /// been called is called with them.
    fn go_or_wait(&mut self, trainer: usize, actions: &mut Vec<Action>) {
        match self.phase {
            Phase::Correcting { .. } => self.peers[trainer].standing = Standing::Answered,
            Phase::Collecting { called: true, .. } => {
                self.go(trainer, actions);
                self.call_one(trainer, actions);
            }
            _ => self.go(trainer, actions),
        }
    }

    fn answer_with_the_end(&mut self, trainer: usize, actions: &mut Vec<Action>) {
        if !self.is_followed() {
            self.peers[trainer].standing = Standing::Answered;
            actions.push(Action::Say(trainer, ToTrainer::End { chosen: None }));
        } else {
            self.peers[trainer].standing = Standing::Working;
        }
    }

    /// The user's wish: by time one last mean of those who are here. By steps the last that was taken is the last: one
    /// of half an interval would have a run that goes on take others than one that was not stopped.
    fn stop(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.stopping = true;
        let by_steps = !matches!(self.terms.interval, Pace::Time(_));
        match &mut self.phase {
            Phase::Working(_) | Phase::Collecting { called: false, .. } if by_steps => {
                self.awaits = self.awaits.or(self.unjudged);
                self.close(now, Ending::Stopped, actions);
            }
            Phase::Gathering { .. } => {
                self.judge_owed(true, actions);
                self.close(now, Ending::Stopped, actions);
            }
            Phase::Working(_) => self.call(now, true, actions),
            Phase::Collecting { last, called, .. } => {
                *last = true;
                // Who would go on for a whole interval.
                if !std::mem::replace(called, true) {
                    self.call_all(actions);
                }
            }
            Phase::Correcting { last } => *last = true,
            Phase::Closing(..) | Phase::Over => {}
        }
    }

    fn lose(&mut self, now: Duration, trainer: usize, actions: &mut Vec<Action>) {
        if let Phase::Gathering { .. } = self.phase {
            self.peers[trainer].standing = Standing::Absent;
            self.peers[trainer].lost = true;
            return self.begin_if_all_are_here(now, actions);
        }
        if [Standing::Absent, Standing::Left].contains(&self.peers[trainer].standing) {
            return;
        }
        // What it has sent before it was lost counts: it is a model like the others.
        self.peers[trainer].standing = Standing::Absent;
        actions.push(Action::Note(trainer, Noted::Lost(self.number)));
        match self.phase {
            Phase::Closing(..) => self.finish_if_done(actions),
            _ => self.check(now, actions),
        }
    }

    /// Takes the mean of those who answered.
    fn take(&mut self, now: Duration, last: bool, actions: &mut Vec<Action>) {
        let answers: Vec<Contribution> = self.peers.iter_mut().filter_map(|peer| peer.answer.take()).collect();
        self.number += 1;
        for of in &answers {
            let steps = &mut self.peers[of.trainer].steps;
            *steps = steps.saturating_add(of.steps);
        }
        let Mean { members, loss, model, .. } = mean(self.number, answers, self.terms.weighting, self.loss);
        (self.members, self.loss) = (members, loss);
        if self.terms.corrections > 0 {
            self.phase = Phase::Correcting { last };
            actions.push(Action::Correct(self.number, model, self.share));
        } else {
            self.hand_out(now, model, last, actions);
        }
    }

    /// Whether any trainer has taken as many steps as it should.
    fn is_at_its_limit(&self) -> bool {
        let limit = self.terms.limit;
        self.peers.iter().any(|peer| peer.steps_of(limit).is_some_and(|limit| peer.steps >= limit))
    }

    /// Which share of what the learning rate runs towards is over now: of the trainer that has come furthest, where
    /// that is steps.
    fn share_at(&self, now: Duration) -> f64 {
        let share = match self.terms.horizon {
            None => 0.0,
            Some(Pace::Time(end)) => self.elapsed(now).as_secs_f64() / end.as_secs_f64(),
            Some(end) => {
                let of = |peer: &Peer| peer.steps_of(end).map_or(0.0, |end| peer.steps as f64 / end as f64);
                self.peers.iter().map(of).fold(0.0, f64::max)
            }
        };
        share.clamp(0.0, 1.0)
    }

    /// How long the run has gone on.
    fn elapsed(&self, now: Duration) -> Duration {
        self.before.saturating_add(now.saturating_sub(self.begun))
    }

    /// Hands the mean out to those who wait for it.
    fn hand_out(&mut self, now: Duration, model: Model, last: bool, actions: &mut Vec<Action>) {
        let last = last || self.is_at_its_limit() || self.ends_at().is_some_and(|end| now >= end);
        // Nobody goes on from the last mean.
        let before = self.model.as_ref();
        let model = if last { model } else { self.replicas.as_read(self.number, before, model) };
        self.model = Some(model.clone());
        let mean = Mean { number: self.number, members: self.members.clone(), loss: self.loss, model: model.clone() };
        let steps = self.peers.iter().map(|peer| peer.steps).collect();
        let (elapsed, share) = (self.elapsed(now), self.share);
        actions.push(Action::Keep(Box::new(Kept { mean, elapsed, steps, share, last })));
        self.share = self.share_at(now);
        self.judge(model, last, actions);
        if last {
            let ending = match (self.stopping, self.is_out_of_patience()) {
                (true, _) => Ending::Stopped,
                (false, true) => Ending::Patience,
                (false, false) => Ending::Limit,
            };
            return self.close(now, ending, actions);
        }
        // Who came while models were collected, and was not called, has taken up the mean before.
        let is_behind = |peer: &Peer| peer.is_working() && !peer.called;
        for trainer in self.those(|peer| peer.standing == Standing::Answered || is_behind(peer)) {
            self.go(trainer, actions);
        }
        self.phase = Phase::Working(now);
    }

    /// No verdict will come on this mean, which nothing waits for any more.
    fn stays_unjudged(&mut self, number: u32, actions: &mut Vec<Action>) {
        for asked in [&mut self.awaits, &mut self.unjudged] {
            asked.take_if(|asked| *asked == number);
        }
        if let Phase::Closing(..) = self.phase {
            self.finish_if_done(actions);
        }
    }

    fn judged(&mut self, now: Duration, number: u32, worth: Option<f64>, actions: &mut Vec<Action>) {
        let (best, since) = self.best;
        let is_better = best.zip(worth).is_none_or(|(best, worth)| worth > best);
        self.best = if is_better { (worth, 0) } else { (best, since + 1) };
        for asked in [&mut self.awaits, &mut self.unjudged] {
            asked.take_if(|asked| *asked == number);
        }
        let is_out_of_patience = self.is_out_of_patience();
        match &mut self.phase {
            Phase::Closing(..) => self.finish_if_done(actions),
            Phase::Over => {}
            // It has had its quorum.
            Phase::Collecting { enough: Some(_), last, .. } | Phase::Correcting { last } => *last |= is_out_of_patience,
            _ if is_out_of_patience => self.close(now, Ending::Patience, actions),
            _ => {}
        }
    }

    /// Dismisses everybody.
    fn close(&mut self, now: Duration, ending: Ending, actions: &mut Vec<Action>) {
        if matches!(self.phase, Phase::Closing(..) | Phase::Over) {
            return;
        }
        self.phase = Phase::Closing(now, ending);
        if !self.is_followed() {
            self.say_end(actions);
        }
        self.finish_if_done(actions);
    }

    /// Whether another stage is to come, which it does not where the user wants an end, or too few are left.
    fn is_followed(&self) -> bool {
        self.hands_on && !matches!(self.phase, Phase::Closing(_, Ending::Stopped | Ending::NoQuorum { .. }))
    }

    fn say_end(&self, actions: &mut Vec<Action>) {
        let at_work = self.those(Peer::is_at_work).into_iter();
        actions.extend(at_work.map(|trainer| Action::Say(trainer, ToTrainer::End { chosen: None })));
    }

    fn finish_if_done(&mut self, actions: &mut Vec<Action>) {
        let Phase::Closing(_, ending) = self.phase else { return };
        // Where another stage is to come, its trainers stay until the chosen model is known.
        if self.awaits.is_none() && (self.is_followed() || !self.is_anybody_here()) {
            self.phase = Phase::Over;
            actions.push(Action::Finish(ending));
        }
    }

    fn give_up(&mut self, now: Duration, answered: usize, actions: &mut Vec<Action>) {
        // Who wants an end gets one also where the last mean cannot be taken any more.
        let ending = if self.stopping { Ending::Stopped } else { Ending::NoQuorum { answered } };
        self.close(now, ending, actions);
    }
}

//! How long an aggregator waits for what, and what it does then.

use std::time::Duration;

use super::Aggregator;
use super::peer::Peer;
use crate::averaging::events::{Action, Noted};
use crate::averaging::message::ToTrainer;
use crate::averaging::phase::{Phase, Standing};
use crate::config::Pace;

impl Aggregator {
    /// When it wants to be told that time has passed, if nothing else happens before.
    pub fn wakes(&self) -> Option<Duration> {
        let limit = self.ends_at();
        match self.phase {
            Phase::Gathering { since, enough } => Some(match enough {
                Some(enough) => enough.saturating_add(self.terms.grace),
                None => since.saturating_add(self.terms.start),
            }),
            Phase::Working(since) => match self.terms.interval {
                Pace::Time(interval) => Some(since.saturating_add(interval).min(limit.unwrap_or(Duration::MAX))),
                _ => limit.into_iter().chain([self.patience_with_silence(since)]).min(),
            },
            Phase::Collecting { since, enough, .. } => Some(match enough {
                Some(enough) => enough.saturating_add(self.terms.grace),
                None => since.saturating_add(self.terms.deadline),
            }),
            Phase::Closing(since, _) => self.is_anybody_here().then(|| since.saturating_add(self.terms.grace)),
            Phase::Correcting { .. } | Phase::Over => None,
        }
    }

    /// When a limit in time is reached.
    pub(super) fn ends_at(&self) -> Option<Duration> {
        let Pace::Time(limit) = self.terms.limit else { return None };
        Some(self.begun.saturating_add(limit.saturating_sub(self.before)))
    }

    /// Where trainers answer after so many steps: how long none of them may. No step takes longer than the deadline.
    fn patience_with_silence(&self, since: Duration) -> Duration {
        let working = self.peers.iter().filter(|peer| peer.is_working());
        let steps = |peer: &Peer| self.terms.interval.steps(peer.told.map_or(1, |(_, of_epoch)| of_epoch));
        let most = working.filter_map(steps).max().unwrap_or(1);
        let deadline = self.terms.deadline;
        since.saturating_add(deadline.saturating_mul(u32::try_from(most.max(1)).unwrap_or(u32::MAX)))
    }

    /// Begins to collect models: those of all who work now are waited for.
    pub(super) fn collect(&mut self, now: Duration, last: bool) {
        self.peers.iter_mut().for_each(|peer| peer.expected = peer.is_here());
        self.phase = Phase::Collecting { since: now, enough: None, called: false, last };
    }

    /// Calls all who work.
    pub(super) fn call(&mut self, now: Duration, last: bool, actions: &mut Vec<Action>) {
        self.collect(now, last);
        self.call_all(actions);
        self.phase = Phase::Collecting { since: now, enough: None, called: true, last };
        self.check(now, actions);
    }

    /// Calls one that works for its model as it is.
    pub(super) fn call_one(&mut self, trainer: usize, actions: &mut Vec<Action>) {
        self.peers[trainer].called = true;
        actions.push(Action::Say(trainer, ToTrainer::Call { number: self.number + 1 }));
    }

    /// The same for all who work and were not called; who says nothing has been.
    pub(super) fn call_all(&mut self, actions: &mut Vec<Action>) {
        for trainer in self.those(|peer| peer.is_working() && !peer.called) {
            self.call_one(trainer, actions);
        }
    }

    /// Takes the mean if all that are waited for have answered.
    pub(super) fn check(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let Phase::Collecting { since, enough, called, last } = self.phase else { return };
        let answered = self.answered();
        if answered < self.terms.quorum {
            return;
        }
        if enough.is_none() {
            self.phase = Phase::Collecting { since, enough: Some(now), called, last };
        }
        if !self.is_anybody_missing() {
            self.take(now, last, actions);
        }
    }

    fn is_anybody_missing(&self) -> bool {
        self.peers.iter().any(|peer| peer.expected && peer.is_working())
    }

    /// How many models there are for the next mean.
    fn answered(&self) -> usize {
        self.peers.iter().filter(|peer| peer.answer.is_some()).count()
    }

    pub(super) fn look_at_the_clock(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.wakes().is_none_or(|at| now < at) {
            return;
        }
        match self.phase {
            Phase::Gathering { enough: Some(_), .. } => self.begin(now, actions),
            Phase::Gathering { .. } => self.give_up(now, self.working(), actions),
            Phase::Working(_) => {
                let limit = self.ends_at().is_some_and(|end| now >= end);
                let by_steps = !matches!(self.terms.interval, Pace::Time(_));
                if by_steps && !limit && self.working() == 0 {
                    self.give_up(now, 0, actions);
                } else {
                    self.call(now, limit, actions);
                }
            }
            // Who has not taken as many steps as lie between two means by now is asked for those that it has.
            Phase::Collecting { since, enough, called: false, last } if self.working() > 0 => {
                let (since, enough) = if enough.is_some() { (since, Some(now)) } else { (now, None) };
                self.phase = Phase::Collecting { since, enough, called: true, last };
                self.call_all(actions);
            }
            Phase::Collecting { enough: Some(_), last, .. } => {
                for trainer in self.those(|peer| peer.expected && peer.is_working()) {
                    self.peers[trainer].silent = true;
                    actions.push(Action::Note(trainer, Noted::Missing(self.number + 1)));
                }
                self.take(now, last, actions);
            }
            Phase::Collecting { enough: None, .. } => {
                self.give_up(now, self.answered(), actions);
            }
            Phase::Closing(..) => {
                // Who has not taken its leave by now is on its own.
                self.peers.iter_mut().for_each(|peer| peer.standing = Standing::Absent);
                self.finish_if_done(actions);
            }
            Phase::Correcting { .. } | Phase::Over => {}
        }
    }
}

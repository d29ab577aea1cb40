//! What has come of a simulated stage.

use std::time::Duration;

use laconic_wire::{Ledger, Rank, Tag};

use super::Model;
use super::conditions::Conditions;
use super::events::Ending;
use super::lane::Span;
use super::link;
use super::message::{FromTrainer, Leave, ToTrainer};

/// The aggregator's rank; trainers stand behind it.
pub(super) const AGGREGATOR: usize = 0;

/// How a run went.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// How it ended; `None` where the aggregator was lost.
    pub ending: Option<Ending>,
    /// When, on the simulated clock.
    pub end: Duration,
    /// What the aggregator, of rank 0, and each trainer behind it have sent.
    pub sent: Vec<Ledger>,
    /// What has reached them.
    pub received: Vec<Ledger>,
    /// Steps of each trainer.
    pub steps: Vec<u64>,
    /// What each trainer did, from when until when.
    pub lanes: Vec<Vec<Span>>,
    /// The most events that were waiting at once.
    pub most_queued: usize,
    /// Which trainers were there at the end.
    pub present: Vec<bool>,
    /// The one that lives in the aggregator's process.
    pub hosted: Option<usize>,
}

impl Played {
    /// A stage that had been finished before the run goes on: trainers come to it, are told what was chosen, and take
    /// their leave; no time passes.
    pub fn passed(conditions: &Conditions, chosen: &Model) -> Played {
        let trainers = conditions.speeds.len();
        let nothing = || vec![Ledger::new(); trainers + 1];
        let mut played = Played {
            ending: Some(Ending::Limit),
            end: Duration::ZERO,
            sent: nothing(),
            received: nothing(),
            steps: vec![0; trainers],
            lanes: vec![Vec::new(); trainers],
            most_queued: 0,
            present: (0..trainers).map(|trainer| !conditions.is_absent_at_first(trainer)).collect(),
            hosted: conditions.hosted,
        };
        let came = link::sizes_from_trainer(&FromTrainer::Came { steps_of_epoch: 0, rows: 0.0 });
        played.enter(&[(false, came)]);
        played.dismiss(chosen);
        played
    }

    /// Enters what trainers are told at the end of a stage that another follows, and that they take their leave.
    pub fn dismiss(&mut self, chosen: &Model) {
        let end = link::sizes_to_trainer(&ToTrainer::End { chosen: Some(chosen.clone()) });
        let bye = link::sizes_from_trainer(&FromTrainer::Bye(Leave::default()));
        self.enter(&[(true, end), (false, bye)]);
    }

    /// Enters frames that the aggregator sends each trainer that is there and does not live with it, or gets from it.
    fn enter(&mut self, said: &[(bool, Vec<(Tag, usize)>)]) {
        let afar = |rank: &usize| self.present[rank - 1] && self.hosted != Some(rank - 1);
        for rank in (1..self.sent.len()).filter(afar) {
            for (is_told, frames) in said {
                let (from, to) = if *is_told { (AGGREGATOR, rank) } else { (rank, AGGREGATOR) };
                for (tag, payload) in frames {
                    self.sent[from].record(*tag, Rank(to as u32), *payload);
                    self.received[to].record(*tag, Rank(from as u32), *payload);
                }
            }
        }
    }
}

//! The account of a run before it runs: from what will be sent, who holds the whole graph, and how often workers wait.

use laconic_wire::{Ledger, PerKind, Rank, Waits};

use super::Forecast;
use super::book::Book;
use super::contents::{Leaving, What};
use super::costs::Costs;
use super::traffic::forecast_worker;
use crate::config::MeansEvaluator;
use crate::error::Result;
use crate::exchange::shapes::{PeerRows, Shapes};
use crate::plan::Plan;
use crate::record::account::{Account, MEANS, Party, RoundTrips, Sight, Subject};
use crate::schedule::Position;

/// Who takes part, as far as an account asks.
#[derive(Debug, Clone, Copy)]
pub struct Cast {
    /// Workers, the aggregator of independent trainers among them.
    pub workers: usize,
    /// Who evaluates means, where workers are independent trainers behind an aggregator of rank 0.
    pub evaluator: Option<MeansEvaluator>,
    /// Whether there are parameters; else what sums their gradients brings nothing but losses.
    pub learns: bool,
    /// Epsilon of labels that are told, where they are answers at random.
    pub label_epsilon: Option<f64>,
}

impl Cast {
    /// Who has to hold the whole graph.
    fn holder(self) -> Party {
        match self.evaluator {
            Some(MeansEvaluator::Aggregator) => Party::Aggregator,
            // One part is the whole, whoever has it.
            Some(MeansEvaluator::Workers) if self.workers == 2 => Party::Worker,
            None if self.workers == 1 => Party::Worker,
            _ => Party::Nobody,
        }
    }

    /// Who a worker is.
    fn party(self, rank: Rank) -> Party {
        if self.evaluator.is_some() && rank == Rank(0) { Party::Aggregator } else { Party::Peers }
    }

    /// The account of a run in which this leaves workers, of so many rounds, with so many waits of each kind.
    pub fn account<'a>(self, leaves: impl Iterator<Item = &'a Leaving>, rounds: Option<u64>, waits: &Waits) -> Account {
        let mut account = Account::held_by(self.holder());
        for leaving in leaves {
            let item = leaving.item;
            let what = match item.what {
                What::Means | What::EvaluatedMeans => MEANS,
                what => what.content().name(),
            };
            let for_evaluations = item.evaluates || item.what.evaluates();
            let subjects = Subject::of(item.what.content()).iter();
            for subject in subjects.filter(|subject| self.learns || **subject != Subject::Models) {
                let by = self.party(leaving.to);
                account.enter(Sight { of: *subject, what: what.to_owned(), by, for_evaluations });
            }
        }
        let round_trips = rounds.map(|_| RoundTrips::of(&waits.by_kind()));
        Account { rounds, round_trips, label_epsilon: self.label_epsilon, ..account }
    }
}

impl Costs {
    /// Who has to hold the whole graph, who sees what, and how often somebody waits.
    pub fn account(&self) -> Account {
        let averaging = self.averaging.as_ref();
        let cast = Cast {
            workers: self.size(),
            evaluator: averaging.map(|means| means.evaluator),
            learns: learns(&self.plan),
            label_epsilon: label_epsilon(&self.plan),
        };
        let rounds = averaging.map_or_else(|| Some(rounds(&self.plan)), |means| means.number);
        cast.account(self.leaves.iter().flatten(), rounds, &self.waits)
    }
}

/// Rounds over all stages.
fn rounds(plan: &Plan) -> u64 {
    plan.stages.iter().map(|stage| u64::from(stage.rounds)).sum()
}

/// Epsilon of labels that are told.
fn label_epsilon(plan: &Plan) -> Option<f64> {
    plan.inputs.response.as_ref().map(|response| response.epsilon)
}

/// Whether any stage has parameters.
fn learns(plan: &Plan) -> bool {
    plan.stages.iter().any(|stage| !stage.network.is_empty())
}

/// The account of a whole run as one of its workers knows it, which has the shapes of its own part alone: of others it
/// takes it that what crosses one way does so the other way, too. `sent` is what all of them will send, by kind: what
/// is not in there does not cross.
///
/// # Errors
/// If a codec cannot be made.
pub fn of_run(forecast: &Forecast<'_>, own: &Shapes, sent: &PerKind<u64>) -> Result<Account> {
    let position = Position::default();
    let forecast = Forecast { position: &position, ..*forecast };
    let (mut leaves, mut waits) = (Vec::new(), Waits::default());
    for rank in (0..own.workers() as u32).take(2) {
        // One that sends worker 0 what it alone gets, and worker 0.
        let mut book = Book::of(Ledger::of_totals().noting_waits());
        forecast_worker(&forecast, &likely(forecast.plan, own, rank), None, &mut book)?;
        leaves.extend(book.leaves());
        waits.join(&book.ledger.take_waits());
    }
    let crosses = |leaving: &&Leaving| sent[leaving.kind()] > 0;
    let plan = forecast.plan;
    let cast =
        Cast { workers: own.workers(), evaluator: None, learns: learns(plan), label_epsilon: label_epsilon(plan) };
    Ok(cast.account(leaves.iter().filter(crosses), Some(rounds(plan)), &waits))
}

/// The shapes that a worker of this number may have, by those of another one.
fn likely(plan: &Plan, own: &Shapes, rank: u32) -> Shapes {
    let most = own.links.iter().map(|link| link.send.max(link.receive)).max().unwrap_or(0).max(1);
    let among = |links: &[PeerRows]| -> Vec<PeerRows> {
        let each = links.iter().enumerate();
        let row = |(peer, _): (usize, &PeerRows)| if peer == rank as usize { 0 } else { most };
        each.map(|link| PeerRows { send: row(link), receive: row(link) }).collect()
    };
    let mut likely = Shapes { rank, links: among(&own.links), ..own.clone() };
    if let (Some(training), false) = (&mut likely.training, plan.deletes_edges) {
        training.links = among(&training.links);
    }
    likely
}

//! The end of a run of trainers: ledgers on disk, the summary, and what each had.

use std::sync::Arc;
use std::time::Instant;

use laconic_wire::{Count, Ledger, PerKind, Rank};

use super::Setup;
use super::desk::Desk;
use crate::averaging::Ending;
use crate::averaging::simulated::Played;
use crate::error::{Result, TrainError};
use crate::forecast::memory;
use crate::record::card::Card;
use crate::record::folder::write_results;
use crate::record::ledger::PartFile;
use crate::record::report::{Memory, Seconds, WorkerReport};
use crate::record::summary::{RunFacts, Summary};
use crate::record::traffic::Earlier;
use crate::record::weights;
use crate::run::options::Outcome;

/// What a run has come to, and what was known at its start.
pub(super) struct Closing<'a> {
    pub setup: &'a Setup,
    pub desk: Desk,
    pub card: Card,
    pub earlier: Earlier,
    pub forecast: (Vec<Ledger>, bool),
    pub by_kind: PerKind<u64>,
    /// Which start of the run this was.
    pub start: u32,
    /// The mean that it went on from.
    pub after_round: u32,
    /// Its stages.
    pub played: Vec<Played>,
    /// How the last of them ended; `None` where the aggregator was lost.
    pub ending: Option<Ending>,
    pub began: Instant,
}

/// Writes down and sums up.
///
/// # Errors
/// If too few trainers were left, the aggregator was lost, or the results cannot be written down.
pub(super) fn close(closing: Closing<'_>) -> Result<Vec<Outcome>> {
    let Closing { setup, mut desk, card, earlier, forecast, by_kind, start, after_round, played, ending, began } = closing;
    let ranks = setup.parts.len() + 1;
    let [sent, received] = ledgers(&played, ranks);
    if let Some(out) = &setup.process.out {
        for (rank, ledger) in Rank::all(ranks).zip(&sent) {
            PartFile::open(out, rank, start)?.append(ledger.iter())?;
        }
    }
    let word = match ending {
        Some(Ending::Limit) => "limit",
        Some(Ending::Patience) => "patience",
        Some(Ending::Stopped) => "stopped",
        Some(Ending::NoQuorum { answered }) => {
            let wanted = setup.trainers.quorum(setup.parts.len());
            let means = desk.progress.done;
            return Err(TrainError::NoQuorum { answered, wanted, means });
        }
        None => return Err(TrainError::AggregatorLost { means: desk.progress.done }),
    };
    let trained = desk.trained(ending == Some(Ending::Stopped))?;
    let digest = weights::digest(&trained.chosen, &trained.last);
    let end: f64 = played.iter().map(|of| of.end.as_secs_f64()).sum();
    let report = |rank: usize| {
        let totals = |ledger: &Ledger| {
            let by_peer = ledger.totals_by_peer();
            Rank::all(ranks).map(|peer| by_peer.get(&peer).copied().unwrap_or_default()).collect::<Vec<Count>>()
        };
        let seconds = Seconds { total: began.elapsed().as_secs_f64(), link_model: end, ..Seconds::default() };
        let memory = Memory { peak: memory::peak_bytes(), predicted: setup.process.memory / ranks as u64 };
        WorkerReport {
            kinds: sent[rank].totals_by_kind(),
            sent: totals(&sent[rank]),
            received: totals(&received[rank]),
            seconds,
            memory,
            digest,
            ..WorkerReport::empty(ranks)
        }
    };
    let facts = RunFacts {
        given: &setup.plan.config,
        plan: &setup.plan,
        card: &card,
        notes: &setup.process.notes,
        trained: &trained,
        earlier: &earlier,
        after_round,
        predicted: &by_kind,
        one_process: true,
    };
    let mut summary = Summary::of(&facts, (0..ranks).map(report).collect())?;
    summary.bytes.is_bound = !forecast.1;
    summary.averaging = Some(desk.summary(word));
    if let Some(out) = &setup.process.out {
        let card = Card { run: desk.recorder.run().to_owned(), ..card };
        let written = write_results((out, card), &mut summary, (&setup.plan.stages, &trained), setup.process.resume);
        written.map_err(|error| desk.recorder.located(error))?;
    }
    let mut summary = Some(summary);
    let ledgers = sent.into_iter().zip(received).zip(forecast.0);
    let outcome = |(rank, ((sent, received), predicted)): (usize, ((Ledger, Ledger), Ledger))| Outcome {
        rank: rank as u32,
        plan: Arc::clone(&setup.plan),
        trained: trained.clone(),
        sent,
        received,
        predicted,
        summary: summary.take(),
    };
    Ok(ledgers.enumerate().map(outcome).collect())
}

/// What all stages together have sent and received.
fn ledgers(played: &[Played], ranks: usize) -> [Vec<Ledger>; 2] {
    let mut all = [(); 2].map(|()| vec![Ledger::new(); ranks]);
    for of in played {
        for (into, from) in all.iter_mut().zip([&of.sent, &of.received]) {
            into.iter_mut().zip(from).for_each(|(into, from)| into.add_times(from, 1));
        }
    }
    all
}

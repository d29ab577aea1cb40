//! The end of a run of trainers: ledgers on disk, the summary, and what each had.

use std::sync::Arc;
use std::time::{Duration, Instant};

use laconic_wire::{Count, Entry, Ledger, Rank};

use super::run_recorder::RunRecorder;
use super::server::AggregatorServer;
use super::{Opened, Setup};
use crate::averaging::link::sizes_to_trainer;
use crate::averaging::{Ending, Leave, Played, ToTrainer};
use crate::config::TransportKind;
use crate::error::{Result, TrainError};
use crate::forecast::account::Cast;
use crate::forecast::memory;
use crate::record::card::Card;
use crate::record::folder::write_results;
use crate::record::report::{Memory, Seconds, WorkerReport};
use crate::record::summary::{BytesSummary, RunFacts, Summary};
use crate::record::trainers::AveragingSummary;
use crate::record::weights;
use crate::run::options::Outcome;

/// What a run has come to, and what was known at its start.
pub(super) struct Closing<'a> {
    pub setup: &'a Setup,
    pub opened: Opened,
    pub traffic: Traffic,
    /// How its last stage ended; `None` where the aggregator was lost.
    pub ending: Option<Ending>,
    /// How long trainers went, on the run's clock.
    pub end: Duration,
    pub began: Instant,
    /// What trainers in processes of their own have left with.
    pub leaves: Vec<Option<Leave>>,
}

/// What everybody has sent and received, by rank.
pub(super) struct Traffic {
    pub sent: Vec<Ledger>,
    pub received: Vec<Ledger>,
}

impl Traffic {
    /// What the stages of a simulated run have sent, and trainers each other besides.
    pub fn of_stages(played: &[Played], exchanged: &[Ledger]) -> Traffic {
        let ranks = exchanged.len() + 1;
        let mut all = [(); 2].map(|()| vec![Ledger::new(); ranks]);
        for of in played {
            for (into, from) in all.iter_mut().zip([&of.sent, &of.received]) {
                into.iter_mut().zip(from).for_each(|(into, from)| into.add_times(from, 1));
            }
        }
        let [sent, received] = all;
        Traffic { sent, received }.with(exchanged)
    }

    /// What has crossed the aggregator's end, and what trainers have sent each other.
    pub fn of_server(server: &AggregatorServer, exchanged: &[Ledger]) -> Traffic {
        let of_aggregator = server.transport.sent();
        let sent = std::iter::once(of_aggregator).chain(&server.from).cloned().collect::<Vec<Ledger>>();
        let mut received = vec![Ledger::new(); sent.len()];
        for (from, ledger) in Rank::all(sent.len()).zip(&sent) {
            for (to, into) in Rank::all(sent.len()).zip(&mut received).filter(|(to, _)| *to != from) {
                // Who did not take its leave may have missed something.
                if to == Rank(0) || server.leaves[to.index() - 1].is_some() {
                    mirror((from, ledger), (to, into));
                }
            }
        }
        Traffic { sent, received }.with(exchanged)
    }

    /// With what workers have sent to evaluate means together, by rank.
    #[must_use]
    pub fn with_evaluations(mut self, evaluations: &[Ledger]) -> Traffic {
        for (from, ledger) in evaluations.iter().enumerate() {
            self.sent[from].add_times(ledger, 1);
            for (entry, count) in ledger.iter() {
                self.received[entry.peer.index()].enter(Entry { peer: Rank(from as u32), ..entry }, count);
            }
        }
        self
    }

    /// With what trainers have sent each other.
    fn with(mut self, exchanged: &[Ledger]) -> Traffic {
        for (from, ledger) in exchanged.iter().enumerate() {
            self.sent[from + 1].add_times(ledger, 1);
            for (entry, count) in ledger.iter() {
                self.received[entry.peer.index()].enter(Entry { peer: Rank(from as u32 + 1), ..entry }, count);
            }
        }
        self
    }
}

/// Enters what `from` has sent to `to` as received; as one sum, where its accounts are written down already.
fn mirror((from, sent): (Rank, &Ledger), (to, received): (Rank, &mut Ledger)) {
    let mut rest = sent.totals_by_peer().get(&to).copied().unwrap_or_default();
    for (entry, count) in sent.iter().filter(|(entry, _)| entry.peer == to) {
        received.enter(Entry { peer: from, ..entry }, count);
        rest.frames -= count.frames;
        rest.payload -= count.payload;
        rest.framed -= count.framed;
    }
    received.record_count(crate::exchange::steps::Step::TrainerComes.tag(0), from, rest);
}

/// Writes down and sums up.
///
/// # Errors
/// If too few trainers were left, the aggregator was lost, or the results cannot be written down.
pub(super) fn close(closing: Closing<'_>) -> Result<Vec<Outcome>> {
    let Closing { setup, opened, traffic, ending, end, began, leaves } = closing;
    let Opened { mut run_recorder, card, earlier, snapshot, by_kind, start, shape } = opened;
    let after_round = snapshot.map_or(0, |snapshot| snapshot.rounds());
    let Traffic { sent, received } = traffic;
    if let Some(out) = &setup.process.out {
        if !run_recorder.ledgers.are_written() {
            run_recorder.ledgers.open(out, start, setup.parts.len() + 1)?;
        }
        // What is still in memory.
        run_recorder.ledgers.append(sent.iter().map(|ledger| ledger.iter().collect()))?;
    }
    let word = word(setup, &run_recorder, ending)?;
    let trained = run_recorder.trained(ending == Some(Ending::Stopped))?;
    let told = run_recorder.progress.best.as_ref().map(|best| best.parts.all().to_vec()).unwrap_or_default();
    let digest = weights::digest(&trained.chosen, &trained.last);
    let times = [began.elapsed().as_secs_f64(), if simulated(setup) { end.as_secs_f64() } else { 0.0 }];
    let facts = RunFacts {
        given: &setup.plan.config,
        plan: &setup.plan,
        card: &card,
        notes: &setup.process.notes,
        trained: &trained,
        parts: (shape, &told),
        earlier: &earlier,
        after_round,
        predicted: &by_kind,
        one_process: setup.process.is_shared,
    };
    let mut summary = Summary::of(&facts, reports(setup, [&sent, &received], (digest, times), &leaves))?;
    settle_prediction(&mut summary.bytes, setup, &mut run_recorder);
    let means = &setup.forecast.means;
    let means_predicted = (!means.is_empty()).then(|| means.iter().sum());
    let (hosted_part, evaluator) = (setup.trainers.hosted, setup.trainers.evaluator());
    let averaging = run_recorder.summary(word);
    summary.averaging = Some(AveragingSummary { means_predicted, hosted_part, evaluator, ..averaging });
    let label_epsilon = setup.plan.inputs.response.as_ref().map(|response| response.epsilon);
    let cast = Cast { workers: setup.parts.len() + 1, evaluator: Some(evaluator), learns: true, label_epsilon };
    // Of a run that goes on, what is still to come alone was foreseen.
    let rounds = means_predicted.filter(|_| after_round == 0);
    summary.account = Some(cast.account(setup.forecast.leaves.iter().flatten(), rounds, &setup.forecast.waits));
    if let Some(out) = &setup.process.out {
        let card = Card { run: run_recorder.recorder.run().to_owned(), ..card };
        let written = write_results((out, card), &mut summary, &setup.plan.stages, &trained, setup.process.resume);
        written.and_then(|()| run_recorder.write_lanes(out)).map_err(|error| run_recorder.recorder.located(error))?;
    }
    let mut summary = Some(summary);
    let ledgers = sent.into_iter().zip(received).zip(setup.forecast.books.clone());
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

/// What the prediction was worth: nothing where nobody knew how many means there would be. Where steps decide that, it
/// is of trainers that keep up with each other; of others it is a bound with a call of each for every mean, unless
/// somebody has begun anew, whom nobody had foreseen.
fn settle_prediction(bytes: &mut BytesSummary, setup: &Setup, run_recorder: &mut RunRecorder) {
    let forecast = &setup.forecast;
    bytes.is_bound = !forecast.is_exact;
    if forecast.means.is_empty() {
        bytes.predicted = None;
        return;
    }
    let Some(predicted) = bytes.predicted.filter(|predicted| forecast.is_exact && *predicted != bytes.total) else {
        return;
    };
    let call = sizes_to_trainer(&ToTrainer::Call { number: 1 });
    let call: u64 = call.iter().map(|(_, payload)| Count::of(1, *payload as u64).framed).sum();
    let means: u64 = forecast.means.iter().sum();
    let most = predicted.saturating_add(call.saturating_mul(means).saturating_mul(setup.parts.len() as u64));
    bytes.is_bound = true;
    bytes.predicted = (bytes.total <= most).then_some(most);
    let most = bytes.predicted.map(|most| format!("; with a call of each for every mean it is at most {most}"));
    let what = "bytes were predicted for trainers that keep up with each other and do not fail, which not all did";
    run_recorder.say(format!("{predicted} {what}{}", most.unwrap_or_default()));
}

fn simulated(setup: &Setup) -> bool {
    setup.config.transport.kind == TransportKind::Simulated
}

/// What the summary calls this ending.
///
/// # Errors
/// If too few trainers were left, or the aggregator was lost.
fn word(setup: &Setup, run_recorder: &RunRecorder, ending: Option<Ending>) -> Result<&'static str> {
    let means = run_recorder.finished.iter().map(|(_, means)| means).sum::<u32>() + run_recorder.progress.done;
    match ending {
        Some(Ending::Limit) => Ok("limit"),
        Some(Ending::Patience) => Ok("patience"),
        Some(Ending::Stopped) => Ok("stopped"),
        Some(Ending::NoQuorum { answered }) => {
            let wanted = setup.trainers.quorum(setup.parts.len());
            Err(TrainError::NoQuorum { answered, wanted, gathering: !run_recorder.has_begun, means })
        }
        None => Err(TrainError::AggregatorLost { means }),
    }
}

/// What each rank has to say at the end: what it has sent and received; `times` are real seconds, and those of a
/// simulated clock.
fn reports(
    setup: &Setup,
    [sent, received]: [&[Ledger]; 2],
    (digest, [total, link_model]): ([u8; 32], [f64; 2]),
    leaves: &[Option<Leave>],
) -> Vec<WorkerReport> {
    let ranks = sent.len();
    let totals = |ledger: &Ledger| {
        let by_peer = ledger.totals_by_peer();
        Rank::all(ranks).map(|peer| by_peer.get(&peer).copied().unwrap_or_default()).collect::<Vec<Count>>()
    };
    let predicted = |rank: usize| match setup.memory.get(rank) {
        Some(own) => *own,
        None if setup.process.is_shared => setup.process.memory / ranks as u64,
        None => setup.process.memory,
    };
    // A trainer with a process of its own says what that took.
    let own = |rank: usize| leaves.get(rank.wrapping_sub(1)).copied().flatten().map(|leave| leave.memory);
    let report = |(rank, (sent, received)): (usize, (&Ledger, &Ledger))| WorkerReport {
        kinds: sent.totals_by_kind(),
        sent: totals(sent),
        received: totals(received),
        seconds: Seconds { total, link_model, ..Seconds::default() },
        memory: Memory { peak: own(rank).unwrap_or_else(memory::peak_bytes), predicted: predicted(rank) },
        digest,
        ..WorkerReport::empty(ranks)
    };
    sent.iter().zip(received).enumerate().map(report).collect()
}

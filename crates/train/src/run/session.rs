//! One worker's whole life, whatever carries its frames: open, train, close.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use laconic_graph::part::Part;
use laconic_wire::{
    Clock, Count, Ledger, LinkShape, Metered, Mode, PerKind, Rank, Shaped, ThreadClock, Transport, VirtualClock,
    WallClock, WireError, collectives,
};

use super::options::Outcome;
use crate::config::ramp::Clock as RampClock;
use crate::config::{Config, MessagesConfig};
use crate::error::{Result, TrainError};
use crate::exchange::shapes::Shapes;
use crate::exchange::steps::{Step, checkpoint_tag, missing_at_start};
use crate::fit::observe::Recorder;
use crate::fit::stages::{self, Trained};
use crate::forecast::book::Book;
use crate::forecast::contents::denied;
use crate::forecast::traffic::{clocked, forecast_rungs, forecast_worker, on_best_rung};
use crate::forecast::{Forecast, account, memory};
use crate::plan::Plan;
use crate::plan::identity::Identity;
use crate::record::account::Account;
use crate::record::card::Card;
use crate::record::checkpoint::Checkpoint;
use crate::record::claim::Claim;
use crate::record::earlier::read_earlier;
use crate::record::folder::{TIMELINE, continue_folder, write_own, write_results};
use crate::record::observer::Observer;
use crate::record::recorder::{Destination, FolderRecorder, heard};
use crate::record::report::{Memory, Seconds, WorkerReport};
use crate::record::state::{self, Owner};
use crate::record::summary::{RunFacts, Summary};
use crate::record::traffic::{Earlier, Started};
use crate::record::weights;
use crate::schedule::Position;
use crate::worker::agree::agree;
use crate::worker::{StopSignal, Worker, WorkerOptions};

/// The process that a worker runs in.
#[derive(Clone, Default)]
pub(super) struct Process {
    /// The run's folder.
    pub out: Option<PathBuf>,
    /// Whether each worker has a folder of its own.
    pub own_folder: bool,
    /// Whether to go on from the folder's checkpoint.
    pub resume: bool,
    /// The keys that may be other than the checkpoint's.
    pub changes: Vec<String>,
    /// Whether all accounts of the ledgers stay in memory.
    pub keeps_accounts: bool,
    /// The memory that all workers in this process were estimated to take, in bytes.
    pub memory: u64,
    /// Compute threads of each worker.
    pub threads: usize,
    /// Whether all workers share one process.
    pub is_shared: bool,
    /// Set when the run is to stop.
    pub stop: StopSignal,
    /// What was noted about the data.
    pub notes: Vec<String>,
}

/// A worker between its start and its end.
pub(super) struct Session {
    start: Instant,
    process: Process,
    /// The configuration as it was given; the worker's plan has what a byte budget made of it.
    given: Arc<Config>,
    /// What is written about the data.
    card: Card,
    worker: Worker,
    clock: Option<VirtualClock>,
    earlier: Earlier,
    /// The round that the run goes on from; 0 at the beginning.
    after_round: u32,
    forecast: Predicted,
    recorder: FolderRecorder,
}

/// What was predicted before the first round.
struct Predicted {
    /// What this worker will send; totals alone where accounts are not kept.
    ledger: Ledger,
    /// Framed bytes of all workers by kind, with what was sent before the run was resumed.
    by_kind: PerKind<u64>,
    /// This worker's memory, in bytes.
    memory: u64,
}

impl Session {
    /// Starts the worker, chooses messages within the budget, takes up the checkpoint, and predicts; then, when no
    /// worker has found a reason not to run, the run's folder begins.
    ///
    /// # Errors
    /// If another worker does not answer, the checkpoint is another run's, a byte budget cannot be kept, or the folder
    /// cannot be written.
    pub fn open(
        plan: Plan,
        mut transport: Box<dyn Transport>,
        part: Part,
        process: Process,
        observer: Box<dyn Observer>,
    ) -> Result<Session> {
        let start = Instant::now();
        let given = plan.config.clone();
        let folder = process.out.as_deref().filter(|_| process.own_folder || transport.rank() == Rank(0));
        let mut claim = folder.map(|folder| Claim::new(folder, &plan, process.resume)).transpose()?;
        let deadline = transport.patience().deadline();
        transport.end_mut().set_deadline(given.start_deadline());
        let ready = Ready::new(plan, transport, part, &process).map_err(at_start)?;
        let Ready { mut worker, clock, plan, identity, card, resumed, forecast } = ready;
        worker.transport.end_mut().set_deadline(deadline);
        let earlier = resumed.as_ref().map(|resumed| &resumed.earlier).cloned().unwrap_or_default();
        let moved = begin(&process, worker.rank(), claim.as_mut())?;
        let after_round = resumed.as_ref().map_or(0, |resumed| resumed.checkpoint.snapshot.rounds());
        let workers = worker.size() as u32;
        let now = Started { workers, after_round };
        let starts = match &resumed {
            Some(resumed) => Started::then(&resumed.checkpoint.starts, resumed.start, now),
            None => vec![now],
        };
        let destination = Destination {
            rank: worker.rank(),
            folder: process.out.clone(),
            own_folder: process.own_folder,
            claim,
            starts,
            keeps_accounts: process.keeps_accounts,
            heard: heard(&worker.transport),
        };
        let checkpoint = resumed.map(|resumed| resumed.checkpoint);
        if let (Some(checkpoint), Some(out)) = (&checkpoint, destination.out()) {
            continue_folder((out, &worker.plan), checkpoint, &identity, &destination.starts)?;
        }
        let (before, stop) = (earlier.kinds, process.stop.clone());
        let mut recorder = FolderRecorder::new(destination, &plan, identity, checkpoint, before, observer, stop)?;
        let rounds: Vec<u32> = plan.stages.iter().map(|stage| stage.rounds).collect();
        recorder.observer().started(&given, worker.size(), moved.as_deref());
        plan.notes().iter().chain(&foreseen_of_links(&worker)).for_each(|note| recorder.observer().noted(note));
        earlier.notes().iter().for_each(|note| recorder.observer().warned(note));
        earlier.other_workers(workers, after_round).iter().for_each(|note| recorder.observer().noted(note));
        recorder.observer().stages(&rounds);
        recorder.observer().predicted(&forecast.by_kind, process.memory, rounds.iter().sum());
        worker.use_plan(plan)?;
        Ok(Session { start, process, given, card, worker, clock, earlier, after_round, forecast, recorder })
    }

    /// Trains all stages, once.
    ///
    /// # Errors
    /// If another worker does not answer, or training leaves the numbers.
    pub fn train(&mut self) -> Result<Trained> {
        let trained = stages::train(&mut self.worker, &mut self.recorder);
        if trained.is_err() {
            // What has left is written down however a run ends; why it ends is said by the first error.
            let _ = self.recorder.crossed(&mut self.worker.transport);
        }
        trained.map_err(|error| self.recorder.located(error))
    }

    /// Writes down and reports what came out; worker 0 summarises.
    ///
    /// # Errors
    /// If another worker does not answer, or the results cannot be written down.
    pub fn close(mut self, trained: Trained) -> Result<Outcome> {
        let rank = self.worker.rank();
        let [sent, received] = self.recorder.close(&mut self.worker.transport, trained.rounds)?;
        if let Some(out) = &self.process.out {
            TIMELINE.write_part(out, rank, self.worker.halo.timeline.rows(rank).as_bytes())?;
        }
        let report = self.report(&trained, &sent, &received);
        let reports = report.collect(&mut self.worker.transport, trained.rounds)?;
        self.worker.transport.finish()?;
        let summary = reports.map(|reports| self.summarise(&trained, reports)).transpose()?;
        if let (None, true, Some(out)) = (&summary, self.process.own_folder, &self.process.out) {
            let (card, stages) = (self.named_card(), &self.worker.plan.stages);
            let written = write_own((out, card), stages, &trained, (self.worker.size(), self.process.resume));
            written.map_err(|error| self.recorder.located(error))?;
        }
        Ok(Outcome {
            rank: rank.0,
            plan: self.worker.plan.clone(),
            trained,
            sent,
            received,
            predicted: self.forecast.ledger,
            summary,
        })
    }

    fn report(&self, trained: &Trained, sent: &Ledger, received: &Ledger) -> WorkerReport {
        let worker = &self.worker;
        let totals = |ledger: &Ledger| {
            let by_peer = ledger.totals_by_peer();
            Rank::all(worker.size()).map(|peer| by_peer.get(&peer).copied().unwrap_or_default()).collect::<Vec<Count>>()
        };
        let total = self.start.elapsed().as_secs_f64();
        let mut seconds = Seconds {
            total,
            round_median: worker.times.median_round(),
            compute: 0.0,
            waiting: worker.transport.waited().as_secs_f64(),
            codec: worker.coding().as_secs_f64(),
            evaluation: worker.times.evaluation.as_secs_f64(),
            link_model: match &self.clock {
                // Time that really passes is the same on every clock, but for when it began.
                Some(_) if worker.plan.config.transport.shape_sleeps => total,
                clock => clock.as_ref().map_or(0.0, |clock| clock.now().as_secs_f64()),
            },
        };
        // A link model's virtual clock counts waiting that did not really happen.
        let accounted = seconds.waiting + seconds.codec + seconds.evaluation;
        seconds.compute = (seconds.total.max(seconds.link_model) - accounted).max(0.0);
        WorkerReport {
            kinds: sent.totals_by_kind(),
            sent: totals(sent),
            received: totals(received),
            seconds,
            memory: Memory { peak: memory::peak_bytes(), predicted: self.forecast.memory },
            values: worker.values(),
            skipped: worker.halo.skipped,
            fetched: [worker.fetched.read, worker.fetched.crossed],
            digest: weights::digest(&trained.chosen, &trained.last),
        }
    }

    fn summarise(&self, trained: &Trained, reports: Vec<WorkerReport>) -> Result<Summary> {
        let plan = &self.worker.plan;
        let facts = RunFacts {
            given: &self.given,
            plan,
            card: &self.card,
            notes: &[&self.process.notes[..], &foreseen_of_links(&self.worker)].concat(),
            trained,
            parts: (self.worker.evaluator.parts(), &self.worker.told),
            earlier: &self.earlier,
            after_round: self.after_round,
            predicted: &self.forecast.by_kind,
            one_process: self.process.is_shared,
        };
        let mut summary = Summary::of(&facts, reports)?;
        summary.account = Some(self.account()?);
        if let Some(out) = &self.process.out {
            let written =
                write_results((out, self.named_card()), &mut summary, &plan.stages, trained, self.process.resume);
            written.map_err(|error| self.recorder.located(error))?;
        }
        Ok(summary)
    }

    /// What is written about the data, and of which run.
    fn named_card(&self) -> Card {
        Card { run: self.recorder.run().to_owned(), ..self.card.clone() }
    }

    /// Who sees what, and how often somebody waits, as far as this worker can know.
    fn account(&self) -> Result<Account> {
        let (worker, position) = (&self.worker, Position::default());
        let forecast = Forecast { plan: &worker.plan, evaluator: &worker.evaluator, position: &position };
        account::of_run(&forecast, &worker.shapes, &self.forecast.by_kind)
    }
}

/// What is known of figures of links before any is learned.
fn foreseen_of_links(worker: &Worker) -> Vec<String> {
    let [_, val, test] = worker.global_rows.map(|edges| edges as u64);
    worker.plan.foreseen([val, test])
}

/// A worker that can run. Whatever may refuse a run does so here, while nothing of it is written down yet.
struct Ready {
    worker: Worker,
    clock: Option<VirtualClock>,
    /// With the messages that a byte budget has chosen.
    plan: Arc<Plan>,
    /// What all workers run.
    identity: Identity,
    /// What is written about the data.
    card: Card,
    /// What to go on from.
    resumed: Option<Resumed>,
    forecast: Predicted,
}

impl Ready {
    /// Starts the worker. Its last step is one that all take together, so who gets through it knows that no other has
    /// refused.
    fn new(plan: Plan, transport: Box<dyn Transport>, part: Part, process: &Process) -> Result<Ready> {
        let mut transport = Metered::new(transport).behind(plan.config.policy.door()?);
        let relations = if plan.is_relational() { part.global.relations } else { 0 };
        let card = Card { relations, ..Card::of(&part) }.of_model(&plan);
        let identity = agree(&mut transport, Identity::of(&plan, &part.global)?, &part)?;
        let (transport, clock) = shape(&plan.config, process.threads, transport)?;
        let simulated = clock.clone().map(|clock| Arc::new(clock) as Arc<dyn Clock>);
        let options = WorkerOptions { threads: process.threads, stop: process.stop.clone(), clock: simulated };
        let mut worker = Worker::start(Arc::new(plan), transport, part, options)?;
        if worker.global_rows[0] == 0.0 {
            return Err(TrainError::config(worker.plan.task.words.unlearned));
        }
        let resumed = if process.resume { Some(hand_round(&mut worker, process, &identity)?) } else { None };
        let plan = Arc::new(within_budget(&mut worker, resumed.as_ref().map(|resumed| &resumed.checkpoint))?);
        if let (Some(resumed), Some(out), true) = (&resumed, process.out.as_deref(), plan.remembers()) {
            // Read again when the folder has begun; what cannot be read refuses the run while nothing has changed.
            let (rank, run) = (worker.rank().0, resumed.checkpoint.run.clone());
            state::read(out, &Owner { run, rank, round: resumed.checkpoint.snapshot.rounds() })?;
        }
        let forecast = forecast_rest(&mut worker, &plan, resumed.as_ref(), process.keeps_accounts)?;
        Ok(Ready { worker, clock, plan, identity, card, resumed, forecast })
    }
}

/// A wait that was in vain before the run had started, with what the other worker was still to do.
pub(super) fn at_start(error: TrainError) -> TrainError {
    match error {
        TrainError::Wire(source @ WireError::Deadline { tag, .. }) => {
            TrainError::Start { source, stage: missing_at_start(tag) }
        }
        other => other,
    }
}

/// Begins the run's folder; returns where an earlier run was moved to. A process of its own makes the folder on its
/// machine if it is not there.
fn begin(process: &Process, rank: Rank, claim: Option<&mut Claim>) -> Result<Option<PathBuf>> {
    match (claim, &process.out) {
        (Some(claim), _) => claim.begin(),
        (None, Some(out)) if !process.is_shared && rank != Rank(0) => {
            std::fs::create_dir_all(out).map_err(|source| TrainError::io(out, source)).map(|()| None)
        }
        _ => Ok(None),
    }
}

/// Puts the configured link model around a transport.
fn shape(config: &Config, threads: usize, transport: Metered) -> Result<(Metered, Option<VirtualClock>)> {
    if config.transport.shape.is_empty() {
        return Ok((transport, None));
    }
    let shape: LinkShape = config.transport.shape.parse()?;
    let mode = if config.transport.shape_sleeps { Mode::Real } else { Mode::Virtual };
    // On a virtual clock a worker's own work is what its thread computes, as if the machine were its own. That says so
    // only of work on this one thread, and not of sleeping.
    let alone = mode == Mode::Virtual && threads == 1;
    let base: Arc<dyn Clock> = if alone { Arc::new(ThreadClock) } else { Arc::new(WallClock::new()) };
    let mut clock = None;
    let transport = transport.around(|inner| {
        let shaped = Shaped::new(inner, shape, mode, base);
        clock = Some(shaped.clock());
        Box::new(shaped)
    });
    Ok((transport, clock))
}

/// The plan with the messages that a byte budget had chosen when the checkpoint was written, if there was one.
fn as_before(plan: &Plan, checkpoint: &Checkpoint) -> Result<Option<Plan>> {
    let Some(chosen) = &checkpoint.messages else { return Ok(None) };
    // The budget itself may be another now.
    let budget = plan.config.messages.budget.clone();
    plan.with_messages(&MessagesConfig { budget, ..chosen.clone() }).map(Some)
}

/// The worker's plan with its clock of bytes, and with codecs as the byte budget allows, or has allowed before the run
/// went on. All workers choose the same.
fn within_budget(worker: &mut Worker, goes_on: Option<&Checkpoint>) -> Result<Plan> {
    let plan = worker.plan.clone();
    let before = goes_on.map(|checkpoint| as_before(&plan, checkpoint)).transpose()?.flatten();
    let all = if plan.messages.follow(RampClock::Bytes) { gather_shapes(worker)? } else { Vec::new() };
    let Some(bytes) = plan.messages.budget else {
        return clocked(before.unwrap_or_else(|| Plan::clone(&plan)), &worker.evaluator, &all);
    };
    let mut totals = forecast_rungs(&plan, &worker.evaluator, std::slice::from_ref(&worker.shapes), &all)?;
    collectives::all_reduce_f64(&mut worker.transport, Step::Rungs.tag(0), &mut totals)?;
    match before {
        Some(before) => clocked(before, &worker.evaluator, &all),
        None => on_best_rung(&plan, &worker.evaluator, &all, &totals, bytes),
    }
}

/// The shapes of all workers.
fn gather_shapes(worker: &mut Worker) -> Result<Vec<Shapes>> {
    let (rank, size, tag) = (worker.rank(), worker.size(), Step::Shapes.tag(0));
    let all = collectives::all_gather(&mut worker.transport, tag, &worker.shapes.to_bytes())?;
    let read = |(peer, bytes): (Rank, &Vec<u8>)| {
        let shapes = Shapes::from_bytes(bytes, peer.index(), size);
        shapes.ok_or_else(|| WireError::malformed("shapes of another form").from_peer(rank, peer, tag).into())
    };
    Rank::all(size).zip(&all).map(read).collect()
}

/// Where a resumed run goes on from.
struct Resumed {
    checkpoint: Checkpoint,
    /// How many bytes worker 0 handed round.
    bytes: usize,
    /// Which start of the run this is.
    start: u32,
    /// What was sent before; known to worker 0 alone.
    earlier: Earlier,
}

/// Worker 0 reads the checkpoint and hands it to all with the number of this start, so that no other needs the file.
fn hand_round(worker: &mut Worker, process: &Process, identity: &Identity) -> Result<Resumed> {
    let (mut bytes, mut earlier, mut parts) = (Vec::new(), Earlier::default(), Vec::new());
    if worker.rank() == Rank(0) {
        let out = process.out.as_deref();
        let out = out.ok_or_else(|| TrainError::config("a run without a folder cannot be resumed"))?;
        let file = Checkpoint::read_bytes(out)?;
        let mut checkpoint = Checkpoint::from_bytes(&file).map_err(|error| error.within(out))?;
        let refuse = |what| TrainError::config(format!("{}: {what}", out.display()));
        let as_before = as_before(&worker.plan, &checkpoint)?;
        let own = as_before.as_ref().unwrap_or(&worker.plan).own_memory();
        let before = &checkpoint.identity;
        identity.check_goes_on(before, &process.changes, own).map_err(refuse)?;
        earlier = read_earlier(out, &checkpoint)?;
        // What parts have told worker 0 is nobody else's to know.
        parts = std::mem::take(&mut checkpoint.snapshot.counters.parts);
        bytes = [&earlier.next_start().to_le_bytes()[..], &checkpoint.to_bytes()?].concat();
    }
    collectives::broadcast(&mut worker.transport, checkpoint_tag(), Rank(0), &mut bytes)?;
    let (start, file) = bytes.split_first_chunk().ok_or_else(|| TrainError::checkpoint("expected the run's start"))?;
    let (mut checkpoint, start) = (Checkpoint::from_bytes(file)?, u32::from_le_bytes(*start));
    checkpoint.snapshot.counters.parts = parts;
    Ok(Resumed { checkpoint, bytes: bytes.len(), start, earlier })
}

/// Forecasts what is still to be sent, and refuses what does not fit into the budget.
fn forecast_rest(
    worker: &mut Worker,
    plan: &Plan,
    resumed: Option<&Resumed>,
    keeps_accounts: bool,
) -> Result<Predicted> {
    let position = resumed.map(|resumed| resumed.checkpoint.snapshot.position()).unwrap_or_default();
    let forecast = Forecast { plan, evaluator: &worker.evaluator, position: &position };
    let mut book = Book::of(if keeps_accounts { Ledger::new() } else { Ledger::of_totals() });
    forecast_worker(&forecast, &worker.shapes, resumed.map(|resumed| resumed.bytes), &mut book)?;
    if let Some((to, tag)) = denied(&plan.config, &book.leaves())? {
        return Err(worker.transport.keep_back(to, tag).into());
    }
    let ledger = book.ledger;
    let memory = memory::forecast(&worker.shapes, plan, keeps_accounts).total();
    let mut all = ledger.totals_by_kind().iter().map(|(_, count)| count.framed as f64).collect::<Vec<f64>>();
    collectives::all_reduce_f64(&mut worker.transport, Step::PredictedBytes.tag(0), &mut all)?;
    let before = resumed.map(|resumed| resumed.earlier.kinds).unwrap_or_default();
    let mut by_kind = before.map(|before| before.framed);
    by_kind.iter_mut().zip(&all).for_each(|((_, bytes), sum)| *bytes += *sum as u64);
    let total: u64 = by_kind.iter().map(|(_, bytes)| bytes).sum();
    if plan.messages.budget.is_some_and(|budget| total > budget) {
        let what = "what was sent before the run broke off, and starting again, leave too little of it";
        let budget = &plan.config.messages.budget;
        let needs = format!("it takes {total} bytes in all; --set messages.budget=\"{total} B\" goes on with them");
        return Err(TrainError::config(format!("messages.budget = {budget:?}: {what}: {needs}")));
    }
    Ok(Predicted { ledger, by_kind, memory })
}

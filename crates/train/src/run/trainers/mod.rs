//! Runs of trainers on their own: who stands where, what is started, and what comes out.
//!
//! The aggregator has rank 0 and every part, so that it can judge means on the whole graph; the trainer of a part that
//! is not dropped stands behind it. With `schedule.halo = "none"` a trainer meets nobody: it is a worker alone on the
//! graph of its own nodes. With `frozen` trainers exchange the inputs of each stage before they go.

mod close;
mod desk;
mod simulated;

use std::sync::Arc;

use laconic_graph::part::Part;
use laconic_graph::skew::LabelSkew;
use laconic_nn::Operand;
use laconic_wire::{Ledger, Metered, PerKind, Rank, threads};

use self::desk::Desk;
use super::options::{Options, Outcome};
use super::session::Process;
use super::source::Source;
use crate::averaging::Terms;
use crate::config::{Config, Pace, TransportKind};
use crate::error::{Result, TrainError};
use crate::exchange::shapes::Shapes;
use crate::fit::progress::Snapshot;
use crate::forecast::memory::{self, Memory};
use crate::forecast::trainers::{StageMeans, forecast_stage};
use crate::plan::identity::Identity;
use crate::plan::{Plan, TrainersPlan};
use crate::record::card::Card;
use crate::record::checkpoint::Checkpoint;
use crate::record::claim::Claim;
use crate::record::earlier::read_earlier;
use crate::record::folder::continue_folder;
use crate::record::recorder::{Destination, FolderRecorder};
use crate::record::report::WorkerReport;
use crate::record::traffic::Earlier;
use crate::worker::{Worker, WorkerOptions};

/// Everything that is known of a run before it starts.
pub(super) struct Setup {
    /// The run on the whole graph, as the aggregator sees it.
    pub plan: Arc<Plan>,
    pub trainers: TrainersPlan,
    /// The numbers of the parts that are trained on: of each trainer.
    pub parts: Vec<u32>,
    pub config: Config,
    pub process: Process,
    /// Steps of each trainer's epoch.
    pub of_epoch: Vec<u64>,
}

impl Setup {
    /// What trainers and aggregator agree on for a stage.
    pub fn terms(&self, stage: usize) -> Terms {
        let TrainersPlan { interval, weighting, grace, corrections, .. } = self.trainers;
        let train = &self.config.train;
        Terms {
            trainers: self.parts.len(),
            interval,
            limit: self.limit(stage),
            weighting,
            quorum: self.trainers.quorum(self.parts.len()),
            grace,
            deadline: self.config.deadline(),
            start: self.config.start_deadline(),
            corrections,
            judge_every: train.eval_every,
            patience: train.patience,
        }
    }

    /// The end of a stage: the run's, or so many epochs as belong to this stage.
    fn limit(&self, stage: usize) -> Pace {
        match self.config.schedule.limit {
            Some(limit) => limit,
            None => Pace::Epochs(self.config.rounds_of(stage).into()),
        }
    }

    /// The means of each stage, as far as they can be known; `None` where one is open.
    fn means(&self) -> Option<Vec<StageMeans>> {
        let stages = self.plan.stages.iter().enumerate();
        let of = |(index, stage): (usize, &crate::schedule::Stage)| {
            let plan = TrainersPlan { limit: self.limit(index), ..self.trainers.clone() };
            StageMeans::of(&plan, &self.of_epoch, stage.network.len(), index + 1 < self.plan.stages.len())
        };
        stages.map(of).collect()
    }

    /// What everybody will send, by rank, and whether that is exact; nothing where the number of means is open.
    pub fn forecast(&self) -> (Vec<Ledger>, bool) {
        let ranks = self.parts.len() + 1;
        let mut ledgers = vec![Ledger::new(); ranks];
        let Some(means) = self.means() else { return (ledgers, false) };
        for stage in &means {
            forecast_stage(stage, self.parts.len(), WorkerReport::bytes(ranks), &mut ledgers);
        }
        (ledgers, means.iter().all(|stage| stage.is_exact))
    }
}

/// The data of a run: each trainer's, and the whole.
pub(super) struct Data {
    /// What each trainer sees: the graph of its own nodes, or its part with the edges that end there.
    pub parts: Vec<Part>,
    pub whole: Part,
}

/// Runs trainers and their aggregator in this process.
///
/// # Errors
/// If the configuration or the data cannot be used, too few trainers are left, or the aggregator fails.
pub(super) fn run(config: &Config, mut source: Source, options: Options) -> Result<Vec<Outcome>> {
    let all = source.parts();
    let config = options.members.resolved(config, all)?;
    let every = (0..all).map(|part| source.take(part)).collect::<Result<Vec<Part>>>()?;
    let whole = Part::whole(&every)?;
    let plan = Plan::with(&options.members, &config, &whole.global)?
        .with_label_skew(LabelSkew::of_parts(&every).map(|labels| labels.skew));
    let Some(trainers) = plan.trainers.clone() else {
        return Err(TrainError::config("schedule.kind: workers that exchange rows are no trainers on their own"));
    };
    let parts = trainers.parts(all)?;
    let mut data = Vec::new();
    let mut of_epoch = Vec::new();
    for part in every.into_iter().filter(|part| parts.contains(&part.index)) {
        let (index, part) = (part.index, part.induced());
        let own = Plan::with(&options.members, &config, &part.global)
            .map_err(|error| TrainError::config(format!("the trainer of part {index}: {error}")))?;
        of_epoch.push(own.batching.as_ref().map_or(1, |batching| u64::from(batching.batches)));
        data.push(part);
    }
    let data = Data { parts: data, whole };
    let Options { out, resume, changes, interrupt, abort: _, mut observer, keep_accounts, force, .. } = options;
    source.notes().iter().for_each(|note| observer.noted(note));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let simulated = config.transport.kind == TransportKind::Simulated;
    let each = match (config.train.threads, simulated) {
        (0, true) => cores,
        (0, false) => (cores / parts.len()).max(1),
        (threads, _) => threads,
    };
    let memory = admit(&plan, &data, force, observer.as_mut())?;
    let process = Process {
        out,
        resume,
        changes,
        keeps_accounts: keep_accounts,
        memory,
        threads: each,
        is_shared: true,
        stop: crate::worker::StopSignal::of(interrupt),
        notes: source.notes().to_vec(),
    };
    let plan = Arc::new(plan);
    let setup = Setup { plan, trainers, parts, config, process, of_epoch };
    let desk = Opening::new(&setup, &data.whole)?.begin(&setup, observer)?;
    simulated::play(&setup, data, desk)
}

/// What the workers of these parts will take, in bytes.
fn admit(plan: &Plan, data: &Data, forced: bool, observer: &mut dyn crate::record::observer::Observer) -> Result<u64> {
    let mut all = Memory::default();
    for part in data.parts.iter().chain([&data.whole]) {
        all.add_all(&memory::forecast(&Shapes::outline(part, plan.self_loops), plan, true));
    }
    if let Some(warning) = memory::admit(&all, data.parts.len() + 1, forced)? {
        observer.warned(&warning);
    }
    Ok(all.total())
}

/// A worker that meets nobody.
pub(super) fn alone(plan: Plan, part: Part, setup: &Setup) -> Result<(Worker, Operand)> {
    let end = threads(1, setup.config.deadline()).remove(0);
    let options =
        WorkerOptions { threads: setup.process.threads, stop: setup.process.stop.clone(), clock: None };
    let part = Part { index: 0, parts: 1, ..part };
    Worker::start(Arc::new(plan), Metered::new(Box::new(end)), part, options)
}

/// The folder of a run before it begins.
struct Opening {
    claim: Option<Claim>,
    identity: Identity,
    card: Card,
    checkpoint: Option<Checkpoint>,
    earlier: Earlier,
}

/// The desk with what the summary needs of the start.
struct Opened {
    desk: Desk,
    card: Card,
    earlier: Earlier,
    snapshot: Option<Snapshot>,
    forecast: (Vec<Ledger>, bool),
    by_kind: PerKind<u64>,
    start: u32,
}

impl Opening {
    fn new(setup: &Setup, whole: &Part) -> Result<Opening> {
        let Setup { plan, process, .. } = setup;
        let claim = process.out.as_deref().map(|out| Claim::new(out, plan, process.resume)).transpose()?;
        let identity = Identity::of(plan, &whole.global)?;
        let relations = if plan.layer.is_relational { whole.global.relations } else { 0 };
        let card = Card { relations, ..Card::of(whole) }.of_model(plan);
        let mut opening = Opening { claim, identity, card, checkpoint: None, earlier: Earlier::default() };
        if process.resume {
            let out = process.out.as_deref();
            let out = out.ok_or_else(|| TrainError::config("a run without a folder cannot be resumed"))?;
            let file = Checkpoint::read_bytes(out)?;
            let checkpoint = Checkpoint::from_bytes(&file).map_err(|error| error.within(out))?;
            let refuse = |what| TrainError::config(format!("{}: {what}", out.display()));
            opening.identity.check_goes_on(&checkpoint.identity, &process.changes).map_err(refuse)?;
            checkpoint.snapshot.check_fits(&plan.stages)?;
            opening.earlier = read_earlier(out, setup.parts.len() + 1, &checkpoint.snapshot)?;
            opening.checkpoint = Some(checkpoint);
        }
        Ok(opening)
    }

    fn begin(self, setup: &Setup, observer: Box<dyn crate::record::observer::Observer>) -> Result<Opened> {
        let Setup { plan, process, .. } = setup;
        let Opening { mut claim, identity, card, checkpoint, earlier } = self;
        let moved = claim.as_mut().map(Claim::begin).transpose()?.flatten();
        let start = if process.resume { earlier.next_start() } else { 0 };
        let folder = process.out.clone();
        let destination =
            Destination { rank: Rank(0), folder, claim, start, keeps_accounts: process.keeps_accounts, heard: 0 };
        if let (Some(checkpoint), Some(out)) = (&checkpoint, destination.out()) {
            continue_folder(out, plan, (checkpoint, &identity))?;
        }
        let snapshot = checkpoint.as_ref().map(|checkpoint| checkpoint.snapshot.clone());
        let goes_on = (checkpoint, earlier.kinds);
        let mut recorder = FolderRecorder::new(destination, plan, identity, goes_on, observer)?;
        let forecast = setup.forecast();
        let mut by_kind = earlier.kinds.map(|count| count.framed);
        for ledger in &forecast.0 {
            let totals = ledger.totals_by_kind();
            by_kind.iter_mut().zip(totals.iter()).for_each(|((_, sum), (_, count))| *sum += count.framed);
        }
        let means: Vec<u32> = setup.means().unwrap_or_default().iter().map(|stage| stage.means as u32).collect();
        let watch = recorder.observer();
        watch.started(&setup.config, setup.parts.len(), moved.as_deref());
        plan.notes().iter().for_each(|note| watch.noted(note));
        watch.stages(&means);
        watch.predicted(&by_kind, process.memory, means.iter().sum());
        let desk = Desk::new(plan.clone(), recorder, setup.parts.clone(), process.stop.clone());
        Ok(Opened { desk, card, earlier, snapshot, forecast, by_kind, start })
    }
}

//! Runs of independent trainers: who stands where, what is started, and what comes out.
//!
//! The aggregator has rank 0; the trainer of each part that is not dropped stands behind it. With
//! `schedule.evaluator = "aggregator"` the aggregator has every part as well and judges means on the whole graph; with
//! `workers` it has none, and all workers judge means together over a network of their own (`evaluators.rs`). With
//! `schedule.halo = "none"` a trainer meets nobody: it is a worker alone on the graph of its own nodes. With `frozen`
//! trainers exchange the inputs of each stage before they go. Where models read what owners tell once, they meet for
//! that in either case; who evaluates means beside a trainer reads the columns that it has.

mod client;
mod close;
mod columns;
mod evaluators;
mod local_trainers;
mod on_threads;
pub(super) mod processes;
mod run_recorder;
mod server;
mod simulated;
pub(super) mod spread;

use std::sync::Arc;

use laconic_graph::part::Part;
use laconic_graph::skew::LabelSkew;
use laconic_wire::{PerKind, Rank, Tag, WireError};

use self::run_recorder::RunRecorder;
use super::options::{Options, Outcome};
use super::session::Process;
use super::source::Source;
use crate::averaging::Terms;
use crate::config::{Config, TrainersHalo, TransportKind};
use crate::error::{Result, TrainError};
use crate::fit::progress::Snapshot;
use crate::forecast::contents::denied;
use crate::forecast::memory::{self, Memory};
use crate::forecast::trained::{
    evaluated_by_workers, shapes_among, shapes_of_evaluators, trained, unlike_epochs, with_something_to_learn,
    without_trainer,
};
use crate::forecast::trainers::{Meetings, TrainersForecast};
use crate::plan::identity::Identity;
use crate::plan::{Plan, TrainersPlan};
use crate::record::card::Card;
use crate::record::checkpoint::Checkpoint;
use crate::record::claim::Claim;
use crate::record::earlier::read_earlier;
use crate::record::folder::continue_folder;
use crate::record::observer::{Observer, Silent};
use crate::record::recorder::{Destination, FolderRecorder};
use crate::record::traffic::{Earlier, Started};
use crate::worker::StopSignal;
use crate::worker::class_weights::class_weights_over;
use crate::worker::evaluate::Evaluator;
use crate::worker::parts::Shape as PartShape;

/// Everything that is known of a run before it starts.
pub(super) struct Setup {
    /// The run on the whole graph, as the aggregator sees it.
    pub plan: Arc<Plan>,
    pub trainers: TrainersPlan,
    /// The numbers of the parts that are trained on: of each trainer.
    pub parts: Vec<u32>,
    /// Which trainer lives in the aggregator's process, where one does.
    pub hosted: Option<usize>,
    pub config: Config,
    /// Steps of each trainer's epoch.
    pub of_epoch: Vec<u64>,
    /// What classes count for over all trainers, where that follows from how many training nodes there are.
    pub class_weights: Option<Vec<f32>>,
    pub process: Process,
    pub forecast: TrainersForecast,
    /// What each process was estimated to take, by rank, where each has said so; else `process` says it of all.
    pub memory: Vec<u64>,
    /// Set when everybody is to give up at once.
    pub give_up: StopSignal,
    /// Set when the aggregator of this process has ended: a trainer beside it that was not dismissed is heard no more.
    pub over: StopSignal,
}

impl Setup {
    /// Bytes that trainers have sent each other when a stage begins, which the aggregator does not see: as many as
    /// were predicted.
    pub fn exchanged_until(&self, stage: usize) -> u64 {
        let of_stage = |round: u32| round as usize <= stage && self.trainers.halo != TrainersHalo::Stale;
        self.forecast.exchanged.iter().filter(|(round, _)| of_stage(*round)).map(|(_, bytes)| bytes).sum()
    }

    /// Bytes that trainers have told each other until each mean is taken, likewise; the last for all that follow.
    pub fn told(&self) -> Vec<u64> {
        let mut told = Vec::new();
        if self.trainers.halo == TrainersHalo::Stale {
            for &(round, bytes) in &self.forecast.exchanged {
                let round = round as usize;
                told.resize(told.len().max(round + 2), 0);
                told[round + 1] += bytes;
            }
            (1..told.len()).for_each(|mean| told[mean] += told[mean - 1]);
        }
        told
    }

    /// The first of what the trainer of this rank would tell others once that its policy denies, and whom.
    ///
    /// # Errors
    /// If the policy denies what there is not.
    pub fn untold(&self, rank: Rank) -> Result<Option<(Rank, Tag)>> {
        let Some(list) = self.config.policy.list()? else { return Ok(None) };
        let mut tags = self.plan.inputs.told.iter().filter_map(|kind| kind.tag());
        let denied = tags.find(|tag| list.denies(tag.content, tag.purpose));
        let others = (1..=self.parts.len() as u32).map(Rank).find(|peer| *peer != rank);
        Ok(others.filter(|_| rank != Rank(0)).zip(denied))
    }

    /// What trainers and aggregator agree on for a stage.
    pub fn terms(&self, stage: usize) -> Terms {
        let TrainersPlan { interval, weighting, grace, corrections, .. } = self.trainers;
        let (train, rate) = (&self.config.train, &self.plan.rate);
        Terms {
            trainers: self.parts.len(),
            interval,
            limit: self.config.end_of(stage),
            horizon: rate.follows_the_share().then(|| self.config.horizon_of(stage)),
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
}

/// The data of a run: each trainer's, and what means are evaluated on.
pub(super) struct Data {
    /// What each trainer of this process sees: the graph of its own nodes, or its part with the edges that end there.
    pub parts: Vec<Part>,
    pub evaluated: Evaluated,
}

/// What means are evaluated on.
pub(super) enum Evaluated {
    /// By the aggregator, on the whole graph.
    Whole(Box<Whole>),
    /// By all workers together: the part of each in the order of ranks, the first of which, the aggregator's, is empty.
    Parts(Vec<Part>),
}

impl Evaluated {
    /// Of all parts, of which these are trained on.
    fn of(trainers: &TrainersPlan, every: &[Part], parts: &[u32]) -> Result<Evaluated> {
        Ok(match trainers.by_workers {
            None => Evaluated::Whole(Box::new(Whole::of(every)?)),
            Some(edges) => Evaluated::Parts(evaluated_by_workers(every, parts, edges)),
        })
    }

    /// What evaluating, and taking means of so many models, holds in memory.
    fn memory(&self, plan: &Plan, trainers: usize) -> Memory {
        let mut held = memory::of_aggregator(self.of_aggregator(), plan, trainers);
        if let Evaluated::Parts(parts) = self {
            parts[1..].iter().for_each(|part| held.add_all(&memory::of_evaluator(part, plan)));
        }
        held
    }

    /// What the aggregator holds of it.
    fn of_aggregator(&self) -> &Part {
        match self {
            Evaluated::Whole(whole) => &whole.part,
            Evaluated::Parts(parts) => &parts[0],
        }
    }
}

/// The whole graph, with the part of each node by ascending ids.
pub(super) struct Whole {
    pub part: Part,
    pub owners: Vec<u32>,
}

impl Whole {
    fn of(every: &[Part]) -> Result<Whole> {
        let part = Part::whole(every)?;
        let mut owned: Vec<(u64, u32)> =
            every.iter().flat_map(|part| part.nodes.iter().map(|node| (*node, part.index))).collect();
        owned.sort_unstable();
        Ok(Whole { part, owners: owned.into_iter().map(|(_, owner)| owner).collect() })
    }
}

/// Runs trainers and their aggregator in this process.
///
/// # Errors
/// If the configuration or the data cannot be used, too few trainers are left, or the aggregator fails.
pub(super) fn run(config: &Config, source: Source, mut options: Options) -> Result<Vec<Outcome>> {
    let observer = std::mem::replace(&mut options.observer, Box::new(Silent));
    let (setup, data, opened) = prepare(config, source, options, observer)?;
    match setup.config.transport.kind {
        TransportKind::Simulated => simulated::play(&setup, data, opened),
        _ => on_threads::run(&setup, data, opened),
    }
}

/// Resolves everything, and begins the run's folder when nothing refuses the run any more.
fn prepare(
    config: &Config,
    mut source: Source,
    options: Options,
    mut observer: Box<dyn Observer>,
) -> Result<(Setup, Data, Opened)> {
    let all = source.parts();
    let config = options.members.resolved(config, all)?;
    let every = (0..all).map(|part| source.take(part)).collect::<Result<Vec<Part>>>()?;
    let global = every.first().map(|part| part.global.clone()).unwrap_or_default();
    let plan = Plan::with(&options.members, &config, &global)?
        .with_label_skew(LabelSkew::of_parts(&every).map(|labels| labels.skew));
    source.add_note(plan.check_weights(&every)?);
    source.add_note(plan.two_sided(every.iter()));
    let trainers = plan.trainers.clone().ok_or_else(|| TrainError::config("schedule.kind: no trainers"))?;
    let dropped = trainers.parts(all)?;
    let parts = with_something_to_learn(&every, dropped.clone(), &plan);
    without_trainer(&dropped, &parts).for_each(|note| observer.noted(&note));
    let class_weights = weights_among(&plan, &every, &parts);
    let evaluated = Evaluated::of(&trainers, &every, &parts)?;
    let (own, of_epoch) = trained((&options.members, &config), every, &trainers, &parts, None)?;
    unlike_epochs(&plan, &of_epoch).iter().for_each(|note| observer.noted(note));
    let mut data = Data { parts: own, evaluated };
    let Options { out, resume, changes, interrupt, abort, keep_accounts: keeps_accounts, force, .. } = options;
    source.notes().iter().for_each(|note| observer.noted(note));
    let (hosted, is_shared) = (trainers.hosted(&parts)?, config.transport.kind != TransportKind::Processes);
    let is_here = |place: usize| is_shared || hosted == Some(place);
    let here = data.parts.iter().enumerate().filter(|(place, _)| is_here(*place)).map(|(_, part)| part);
    let memory =
        admit(&plan, (data.evaluated.memory(&plan, parts.len()), &here.collect::<Vec<_>>()), force, observer.as_mut())?;
    let (threads, notes) = (threads_of(&config, parts.len()), source.notes().to_vec());
    let one = Process { is_shared, threads, stop: StopSignal::of(interrupt), notes, ..Process::default() };
    let process = Process { out, resume, changes, keeps_accounts, memory, ..one };
    let opening = Opening::new(&plan, &process, data.evaluated.of_aggregator())?;
    let forecast = forecast_of(&plan, &of_epoch, hosted, &data, opening.snapshot())?;
    let (plan, give_up, over) = (Arc::new(plan), StopSignal::of(abort), StopSignal::default());
    let setup = Setup {
        plan,
        trainers,
        parts,
        hosted,
        config,
        of_epoch,
        class_weights,
        process,
        forecast,
        memory: Vec::new(),
        give_up,
        over,
    };
    if setup.config.transport.kind == TransportKind::Simulated {
        // Before the folder of an earlier run is touched.
        simulated::conditions(&setup)?;
    }
    // Each other is in its trainer's process.
    let mut places = 0..;
    data.parts.retain(|_| places.next().is_some_and(is_here));
    let opened = opening.begin(&setup, observer)?;
    Ok((setup, data, opened))
}

/// What all will send, unless something of it may not leave.
fn forecast_of(
    plan: &Plan,
    of_epoch: &[u64],
    hosted: Option<usize>,
    data: &Data,
    from: Option<&Snapshot>,
) -> Result<TrainersForecast> {
    let meets = plan.trainers.as_ref().is_some_and(TrainersPlan::meet);
    let exchanging = if meets { shapes_among(&data.parts, plan)? } else { Vec::new() };
    let evaluating = match &data.evaluated {
        Evaluated::Whole(_) => Vec::new(),
        Evaluated::Parts(parts) => shapes_of_evaluators(parts, plan)?,
    };
    let global = &data.evaluated.of_aggregator().global;
    let meetings = Meetings { exchanging: &exchanging, evaluating: &evaluating, global };
    let forecast = TrainersForecast::of(plan, of_epoch, hosted, &meetings, from)?;
    for (rank, leaves) in forecast.leaves.iter().enumerate() {
        if let Some((to, tag)) = denied(&plan.config, leaves)? {
            return Err(WireError::Denied { from: Rank(rank as u32), to, tag }.into());
        }
    }
    Ok(forecast)
}

/// What classes count for over all trainers, of these parts.
fn weights_among(plan: &Plan, every: &[Part], parts: &[u32]) -> Option<Vec<f32>> {
    let trained: Vec<&Part> = every.iter().filter(|part| parts.contains(&part.index)).collect();
    class_weights_over(plan, &trained)
}

/// Compute threads of each: all cores where one is at work at a time, else its share of them.
fn threads_of(config: &Config, trainers: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match (config.train.threads, config.transport.kind) {
        (0, TransportKind::Simulated) => cores,
        (0, _) => (cores / trainers).max(1),
        (threads, _) => threads,
    }
}

/// What the aggregator and the trainers of these parts will take, in bytes.
fn admit(plan: &Plan, (mut all, own): (Memory, &[&Part]), forced: bool, observer: &mut dyn Observer) -> Result<u64> {
    own.iter().for_each(|part| all.add_all(&memory::of_trainer(part, plan)));
    if let Some(warning) = memory::admit(&all, (1 + own.len(), 1), forced)? {
        observer.warned(&warning);
    }
    Ok(all.total())
}

/// Whether only the end of a run tells what its trainers have sent: to each other, or, where nothing is sent, at all.
fn is_told_at_the_end(plan: &Plan) -> bool {
    let meet = |of: &TrainersPlan| of.meet() || of.by_workers.is_some();
    plan.config.transport.kind == TransportKind::Simulated || plan.trainers.as_ref().is_some_and(meet)
}

/// The folder of a run before it begins.
struct Opening {
    claim: Option<Claim>,
    identity: Identity,
    card: Card,
    checkpoint: Option<Checkpoint>,
    earlier: Earlier,
    shape: Option<PartShape>,
}

/// The recorder with what the summary needs of the start.
struct Opened {
    run_recorder: RunRecorder,
    card: Card,
    earlier: Earlier,
    snapshot: Option<Snapshot>,
    by_kind: PerKind<u64>,
    start: u32,
    /// What parts tell of themselves, where they do.
    shape: Option<PartShape>,
}

impl Opening {
    /// Looks at the folder of a run, and reads what is there where it goes on.
    fn new(plan: &Plan, process: &Process, whole: &Part) -> Result<Opening> {
        let claim = process.out.as_deref().map(|out| Claim::new(out, plan, process.resume)).transpose()?;
        let identity = Identity::of(plan, &whole.global)?;
        let relations = if plan.is_relational() { whole.global.relations } else { 0 };
        let card = Card { relations, ..Card::of(whole) }.of_model(plan);
        let shape = Evaluator::of(plan, &whole.global).parts();
        let mut opening = Opening { claim, identity, card, checkpoint: None, earlier: Earlier::default(), shape };
        if process.resume {
            let out = process.out.as_deref();
            let out = out.ok_or_else(|| TrainError::config("a run without a folder cannot be resumed"))?;
            let file = Checkpoint::read_bytes(out)?;
            let checkpoint = Checkpoint::from_bytes(&file).map_err(|error| error.within(out))?;
            let refuse = |what| TrainError::config(format!("{}: {what}", out.display()));
            let own = plan.own_memory();
            opening.identity.check_goes_on(&checkpoint.identity, &process.changes, own).map_err(refuse)?;
            checkpoint.snapshot.check_fits(&plan.stages)?;
            opening.earlier = read_earlier(out, &checkpoint)?;
            if is_told_at_the_end(plan) {
                let killed = opening.earlier.starts.iter().filter(|start| !start.closed);
                opening.earlier.unheard = killed.map(|start| start.start).collect();
            }
            opening.checkpoint = Some(checkpoint);
        }
        Ok(opening)
    }

    /// What the run goes on from.
    fn snapshot(&self) -> Option<&Snapshot> {
        self.checkpoint.as_ref().map(|checkpoint| &checkpoint.snapshot)
    }

    fn begin(self, setup: &Setup, observer: Box<dyn Observer>) -> Result<Opened> {
        let Setup { plan, process, .. } = setup;
        let Opening { mut claim, identity, card, checkpoint, earlier, shape } = self;
        let moved = claim.as_mut().map(Claim::begin).transpose()?.flatten();
        let start = if process.resume { earlier.next_start() } else { 0 };
        let after_round = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.snapshot.rounds());
        let before = checkpoint.as_ref().map_or(&[][..], |checkpoint| &checkpoint.starts);
        // The aggregator is one of them.
        let now = Started { workers: setup.parts.len() as u32 + 1, after_round };
        let (starts, folder) = (Started::then(before, start, now), process.out.clone());
        let destination = Destination {
            rank: Rank(0),
            folder,
            own_folder: false,
            claim,
            starts,
            keeps_accounts: process.keeps_accounts,
            heard: 0,
        };
        if let (Some(checkpoint), Some(out)) = (&checkpoint, destination.out()) {
            continue_folder((out, plan), checkpoint, &identity, &destination.starts)?;
        }
        let snapshot = checkpoint.as_ref().map(|checkpoint| checkpoint.snapshot.clone());
        let (before, stop) = (earlier.kinds, process.stop.clone());
        let mut recorder = FolderRecorder::new(destination, plan, identity, checkpoint, before, observer, stop)?;
        let mut by_kind = earlier.kinds.map(|count| count.framed);
        for ledger in &setup.forecast.books {
            let totals = ledger.totals_by_kind();
            by_kind.iter_mut().zip(totals.iter()).for_each(|((_, sum), (_, count))| *sum += count.framed);
        }
        let means: Vec<u32> =
            setup.forecast.means.iter().map(|&means| u32::try_from(means).unwrap_or(u32::MAX)).collect();
        let watch = recorder.observer();
        watch.started(&setup.config, setup.parts.len(), moved.as_deref());
        plan.notes().iter().for_each(|note| watch.noted(note));
        earlier.notes().iter().for_each(|note| watch.warned(note));
        watch.stages(&means);
        watch.predicted(&by_kind, process.memory, means.iter().fold(0, |sum, means| sum.saturating_add(*means)));
        let run_recorder =
            RunRecorder::new(plan.clone(), recorder, setup.parts.clone(), setup.of_epoch.clone(), process.stop.clone());
        Ok(Opened { run_recorder, card, earlier, snapshot, by_kind, start, shape })
    }
}

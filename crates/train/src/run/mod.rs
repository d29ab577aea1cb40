//! Running a configuration: transports, workers, and what is written.
//!
//! Every worker runs `work`, whatever carries its frames. What differs between kinds of transport is only who starts the workers.

pub mod predict;
pub mod source;
pub mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use laconic_graph::part::{GlobalCounts, Part};
use laconic_wire::{
    Clock, Count, Direction, Kind, Ledger, LinkShape, Mode, Rank, Shaped, Tag, ThreadClock, Transport, VirtualClock,
    WallClock, collectives, threads,
};

use crate::config::Config;
use crate::error::{Result, TrainError};
use crate::fit::RoundReport;
use crate::forecast::budget;
use crate::forecast::memory;
use crate::forecast::traffic::{BUDGET_STEP, by_kind, predict_rungs, predict_worker};
use crate::record::checkpoint::Checkpoint;
use crate::record::earlier::Earlier;
use crate::record::folder::{LEDGER, Recorder, TIMELINE, prepare_folder, write_results};
use crate::record::summary::{
    BytesSummary, MetricsSummary, ParametersSummary, Summary, WorkerReport, bit_shares, combine, named_kinds, seconds,
};
use crate::record::weights;
use crate::run::source::Source;
use crate::schedule::staged::Trained;
use crate::schedule::{Forecast, Schedule, Stage, named};
use crate::worker::discover::control;
use crate::worker::{Worker, Workplace};

/// What a user sees of a run while it goes on; called on worker 0.
pub trait Observer: Send {
    /// Before anything else: the resolved configuration, the number of workers, and where an earlier run was moved to.
    fn started(&mut self, _config: &Config, _workers: usize, _moved: Option<&Path>) {}
    /// Before the first round: predicted framed bytes over all workers by kind, memory of this worker, rounds in all.
    fn predicted(&mut self, _by_kind: &[u64; 7], _memory: u64, _rounds: u32) {}
    /// After each round.
    fn round(&mut self, _report: &RoundReport) {}
    /// After a checkpoint was written.
    fn checkpoint(&mut self, _round: u32) {}
}

/// An observer that looks away.
pub struct Silent;
impl Observer for Silent {}

/// How to run.
pub struct Options {
    /// The folder to write into; nothing is written without.
    pub out: Option<PathBuf>,
    /// Whether to go on from the folder's checkpoint.
    pub resume: bool,
    /// Set to stop at the end of the round, with a checkpoint.
    pub interrupt: Arc<AtomicBool>,
    /// Set to give up at once.
    pub abort: Arc<AtomicBool>,
    /// Who watches.
    pub observer: Box<dyn Observer>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            out: None,
            resume: false,
            interrupt: Arc::default(),
            abort: Arc::default(),
            observer: Box::new(Silent),
        }
    }
}

/// What one worker ends with.
pub struct Outcome {
    /// The worker.
    pub rank: u32,
    /// Parameters and figures; the same on every worker.
    pub trained: Trained,
    /// What it sent.
    pub sent: Ledger,
    /// What it received.
    pub received: Ledger,
    /// What it was predicted to send.
    pub predicted: Ledger,
    /// The summary of the whole run, on worker 0.
    pub summary: Option<Summary>,
}

/// The tag of the checkpoint that worker 0 hands round when a run is resumed.
pub fn checkpoint_tag() -> Tag {
    Tag { kind: Kind::Parameters, direction: Direction::Forward, layer: 0, round: 0, step: 0 }
}

/// Refuses data that cannot be trained on, and keys that name a worker or layer that is not there.
pub fn check_trainable(config: &Config, global: &GlobalCounts, workers: usize) -> Result<()> {
    let refuse = |what: String| Err(TrainError::config(what));
    let name = &global.dataset;
    if global.columns == 0 {
        return refuse(format!("{name} has no node features; give some with data.features_path"));
    }
    if global.classes == 0 {
        return refuse(format!("{name} has no labels to learn"));
    }
    if global.train == 0 {
        return refuse(format!("{name}: no node is in the training split; give data.split = {{ train = …, val = … }}"));
    }
    if let Some(fault) = config.transport.fault.as_ref().filter(|fault| fault.rank as usize >= workers) {
        return refuse(format!("transport.fault.rank = {}: there are {workers} workers", fault.rank));
    }
    let (_, stages) = plan_stages(config, global.columns, global.classes)?;
    let last = stages.iter().map(|stage| usize::from(stage.first_layer) + stage.network.units().len() - 1).max();
    let beyond = |layer: &&String| layer.parse().is_ok_and(|layer: usize| Some(layer) > last);
    if let Some(layer) = config.messages.layers.keys().find(beyond) {
        return refuse(format!("messages.layers.{layer}: the last layer is {}", last.unwrap_or(0)));
    }
    Ok(())
}

/// The schedule and stages of a configuration for data of these widths.
pub fn plan_stages(config: &Config, columns: usize, classes: usize) -> Result<(&'static dyn Schedule, Vec<Stage>)> {
    let schedule = named(&config.schedule.kind)
        .ok_or_else(|| TrainError::config(format!("schedule.kind = {:?} is unknown", config.schedule.kind)))?;
    let architecture = config.model.architecture(columns, classes);
    let stages = schedule.stages(config, config.model.kind(), &architecture);
    Ok((schedule, stages))
}

/// Runs all workers as threads of this process and returns what each ended with, in rank order.
pub fn run_threads(config: &Config, mut source: Source, options: Options) -> Result<Vec<Outcome>> {
    let size = source.parts() as usize;
    let config = Arc::new(config.resolved(size as u32));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let each = if config.train.threads > 0 { config.train.threads } else { (cores / size).max(1) };
    let (report, reports) = mpsc::channel();
    let Options { out, resume, interrupt, abort, mut observer } = options;
    // Before any worker starts, so that none waits while another's part is being opened.
    let parts = (0..size as u32).map(|rank| source.take(rank)).collect::<Result<Vec<Part>>>()?;
    check_trainable(&config, &parts[0].global, size)?;
    start_folder(&config, out.as_deref().filter(|_| !resume), size, observer.as_mut())?;
    let mut observer = Some(observer);
    for (rank, (mut end, part)) in threads(size, config.deadline()).into_iter().zip(parts).enumerate() {
        end.set_interrupt(abort.clone());
        let (config, report, interrupt) = (config.clone(), report.clone(), interrupt.clone());
        let place = Place { out: out.clone(), resume, threads: each, one_process: true };
        let observer = if rank == 0 { observer.take() } else { None };
        let work = move || {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                work(config, Box::new(end), part, place, interrupt, observer.unwrap_or(Box::new(Silent)))
            }));
            let result = caught.unwrap_or_else(|panic| {
                let said = panic.downcast_ref::<String>().cloned();
                let message = said.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default();
                Err(TrainError::Panicked { rank: rank as u32, message })
            });
            // Nobody listens any more once the run has been given up.
            let _ = report.send((rank, result));
        };
        let spawned = std::thread::Builder::new().name(format!("worker-{rank}")).spawn(work);
        spawned.map_err(|source| TrainError::io("worker thread", source))?;
    }
    drop(report);
    gather(&reports, size, &config, &interrupt)
}

/// Makes the folder of a run that starts anew and says that it starts.
fn start_folder(config: &Config, out: Option<&Path>, workers: usize, observer: &mut dyn Observer) -> Result<()> {
    let moved = out.map(|out| prepare_folder(out, config)).transpose()?.flatten();
    observer.started(config, workers, moved.as_deref());
    Ok(())
}

/// Waits for all workers. After a first failure the others get the deadline to end too; the error that explains most is reported.
fn gather(
    reports: &mpsc::Receiver<(usize, Result<Outcome>)>,
    size: usize,
    config: &Config,
    interrupt: &AtomicBool,
) -> Result<Vec<Outcome>> {
    let mut outcomes: Vec<Option<Outcome>> = (0..size).map(|_| None).collect();
    let mut errors: Vec<(usize, TrainError)> = Vec::new();
    let mut patience: Option<Instant> = None;
    for _ in 0..size {
        let next = match patience {
            None => reports.recv().ok(),
            Some(until) => reports.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
        };
        match next {
            Some((rank, Ok(outcome))) => outcomes[rank] = Some(outcome),
            Some((rank, Err(error))) => {
                errors.push((rank, error));
                interrupt.store(true, Ordering::Relaxed);
                patience.get_or_insert(Instant::now() + config.deadline().min(Duration::from_secs(5)));
            }
            None => break,
        }
    }
    match root_cause(errors) {
        Some(error) => Err(error),
        None => Ok(outcomes.into_iter().flatten().collect()),
    }
}

/// The error that explains the others. A worker that stalls makes others wait, and those make others wait: so from a deadline the
/// way leads to whom it waited for, as long as that one waited in vain too.
fn root_cause(mut errors: Vec<(usize, TrainError)>) -> Option<TrainError> {
    errors.sort_by_key(|(rank, error)| (error.is_consequence(), error.waited_for().is_some(), *rank));
    let mut at = 0;
    for _ in 0..errors.len() {
        let Some(peer) = errors[at].1.waited_for() else { break };
        let of_peer = |(rank, error): &(usize, TrainError)| *rank == peer as usize && error.waited_for().is_some();
        let Some(next) = errors.iter().position(of_peer) else { break };
        at = next;
    }
    (!errors.is_empty()).then(|| errors.swap_remove(at).1)
}

/// What a worker knows of the process that it runs in.
struct Place {
    out: Option<PathBuf>,
    resume: bool,
    threads: usize,
    one_process: bool,
}

/// Runs the one worker of this MPI process.
#[cfg(feature = "mpi")]
pub fn run_mpi(config: &Config, options: Options) -> Result<Outcome> {
    use laconic_wire::transport::mpi::MpiTransport;
    let mut transport = MpiTransport::init(config.deadline())?;
    transport.set_interrupt(options.abort.clone());
    let (rank, size) = (transport.rank(), transport.size());
    let mut source = Source::open(config, Some(size as u32))?;
    let config = &config.resolved(size as u32);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let local: usize = std::env::var("OMPI_COMM_WORLD_LOCAL_SIZE").ok().and_then(|v| v.parse().ok()).unwrap_or(size);
    let threads = if config.train.threads > 0 { config.train.threads } else { (cores / local.max(1)).max(1) };
    let part = source.take(rank.0)?;
    check_trainable(config, &part.global, size)?;
    let mut observer = if rank == Rank(0) { options.observer } else { Box::new(Silent) };
    if rank == Rank(0) {
        start_folder(config, options.out.as_deref().filter(|_| !options.resume), size, observer.as_mut())?;
    }
    let place = Place { out: options.out, resume: options.resume, threads, one_process: false };
    work(Arc::new(config.clone()), Box::new(transport), part, place, options.interrupt, observer)
}

/// Puts the configured link model around a transport.
fn shape(
    config: &Config,
    threads: usize,
    transport: Box<dyn Transport>,
) -> Result<(Box<dyn Transport>, Option<VirtualClock>)> {
    if config.transport.shape.is_empty() {
        return Ok((transport, None));
    }
    let shape: LinkShape = config.transport.shape.parse()?;
    let mode = if config.transport.shape_sleeps { Mode::Real } else { Mode::Virtual };
    // On a virtual clock a worker's own work is what its thread computes, as if the machine were its own. That says so only of
    // work on this one thread, and not of sleeping.
    let alone = mode == Mode::Virtual && threads == 1;
    let base: Arc<dyn Clock> = if alone { Arc::new(ThreadClock) } else { Arc::new(WallClock::new()) };
    let shaped = Shaped::new(transport, shape, mode, base);
    let clock = shaped.clock();
    Ok((Box::new(shaped), Some(clock)))
}

/// One worker's whole life.
fn work(
    config: Arc<Config>,
    transport: Box<dyn Transport>,
    part: Part,
    place: Place,
    interrupt: Arc<AtomicBool>,
    observer: Box<dyn Observer>,
) -> Result<Outcome> {
    let start = Instant::now();
    let (transport, clock) = shape(&config, place.threads, transport)?;
    let (schedule, stages) = plan_stages(&config, part.global.columns, part.global.classes)?;
    let simulated = clock.clone().map(|clock| Arc::new(clock) as Arc<dyn Clock>);
    let workplace = Workplace { threads: place.threads, interrupt, clock: simulated };
    let (mut worker, x) = Worker::start(config.clone(), transport, part, &stages, workplace)?;
    let (rank, given) = (worker.rank(), config);
    let config = within_budget(&given, &mut worker, &stages)?;
    let checkpoint = if place.resume { Some(hand_round(&mut worker, place.out.as_deref())?) } else { None };
    let position = checkpoint.as_ref().map(|(c, _)| c.position()).unwrap_or_default();
    let earlier = match &checkpoint {
        Some((checkpoint, _)) if rank == Rank(0) => Earlier::of(place.out.as_deref(), checkpoint),
        _ => Earlier::default(),
    };
    let before = earlier.kinds;
    let forecast = Forecast { config: &config, stages: &stages, evaluator: &worker.evaluator, position: &position };
    let predicted = predict_worker(schedule, &forecast, &worker.shapes, checkpoint.as_ref().map(|(_, len)| *len))?;
    let predicted_memory = memory::predict(&worker.shapes, &stages);
    let mut all: Vec<f64> = by_kind(&predicted).iter().map(|count| count.framed as f64).collect();
    collectives::all_reduce_f64(&mut worker.channel, control(0, 3), &mut all)?;
    let mut predicted_by_kind = [0u64; 7];
    for ((total, sum), before) in predicted_by_kind.iter_mut().zip(&all).zip(&before) {
        *total = *sum as u64 + before.framed;
    }
    let rounds = stages.iter().map(|stage| stage.rounds).sum();
    let out = place.out.clone().filter(|_| rank == Rank(0));
    if let Some(budget) = config.messages.budget_bytes()?
        && predicted_by_kind.iter().sum::<u64>() > budget
    {
        let what = "what was sent before the run broke off, and starting again, leave too little of it";
        return Err(TrainError::config(format!("messages.budget = {:?}: {what}", config.messages.budget)));
    }
    worker.use_messages(config.clone(), &stages);
    let fingerprint = given.fingerprint();
    let checkpoint = checkpoint.map(|(checkpoint, _)| checkpoint);
    let (folder, own_state) = (place.out.clone(), config.has_own_state());
    let mut hooks = Recorder {
        out,
        folder,
        rank,
        own_state,
        remembered: 0,
        fingerprint,
        before,
        checkpoint,
        observer,
        before_rescue: before,
        log: None,
    };
    hooks.open_log(&position)?;
    hooks.observer.predicted(&predicted_by_kind, predicted_memory, rounds);
    worker.prepare_assigner(&stages)?;
    let trained = schedule.run(&mut worker, &stages, x, &mut hooks)?;

    let (mut sent, mut received) = (worker.channel.sent().clone(), worker.channel.received().clone());
    let size = worker.channel.size();
    WorkerReport::count_itself(rank, size, trained.rounds, &mut sent, &mut received);
    if let Some(out) = &place.out {
        let mut rows = Vec::new();
        sent.write_csv_rows(rank, &mut rows).map_err(|source| TrainError::io(out, source))?;
        LEDGER.write_part(out, rank, &rows)?;
        TIMELINE.write_part(out, rank, worker.halo.timeline.rows(rank).as_bytes())?;
    }
    let waiting = seconds(worker.channel.waited());
    let coding = seconds(worker.halo.coding());
    let evaluation = seconds(worker.times.evaluation);
    let total = seconds(start.elapsed());
    let link_model = clock.map_or(0.0, |clock| seconds(clock.now()));
    // A link model's virtual clock counts waiting that did not really happen.
    let compute = (total.max(link_model) - waiting - coding - evaluation).max(0.0);
    let totals = |ledger: &Ledger| {
        let by_peer = ledger.totals_by_peer();
        Rank::all(size).map(|peer| by_peer.get(&peer).copied().unwrap_or_default()).collect::<Vec<Count>>()
    };
    let report = WorkerReport {
        kinds: by_kind(&sent),
        sent: totals(&sent),
        received: totals(&received),
        seconds: [total, worker.times.median_round(), compute, waiting, coding, evaluation, link_model],
        memory: [memory::peak_bytes(), predicted_memory],
        values: worker.halo.values,
        digest: weights::digest(&trained.chosen, &trained.last),
    };
    let reports = report.collect(&mut worker.channel, trained.rounds)?;
    worker.channel.finish()?;
    let summary = match reports {
        Some(reports) => {
            let predicted_total = predicted_by_kind.iter().sum();
            let mut summary = summarise(&given, &trained, &reports, &earlier, predicted_total, place.one_process)?;
            summary.bytes.predicted_by_kind = named_kinds(&predicted_by_kind);
            summary.bytes.is_bound = !config.messages.is_predictable();
            summary.messages = (config.messages != given.messages).then(|| config.messages.clone());
            if let Some(out) = &hooks.out {
                write_results(out, &summary, &stages, &trained, &earlier.rows)?;
            }
            Some(summary)
        }
        None => None,
    };
    Ok(Outcome { rank: rank.0, trained, sent, received, predicted, summary })
}

/// The configuration with codecs as the byte budget allows; itself without a budget. All workers choose the same.
fn within_budget(config: &Arc<Config>, worker: &mut Worker, stages: &[Stage]) -> Result<Arc<Config>> {
    let Some(budget) = config.messages.budget_bytes()? else { return Ok(config.clone()) };
    let mut totals = predict_rungs(config, stages, &worker.evaluator, &worker.shapes)?;
    collectives::all_reduce_f64(&mut worker.channel, control(0, BUDGET_STEP), &mut totals)?;
    let rung = budget::choose(&totals, budget)?;
    Ok(Arc::new(budget::candidates(config).swap_remove(rung)))
}

/// Worker 0 reads the checkpoint and hands it to all, so that no other needs the file. Returns it with its size.
fn hand_round(worker: &mut Worker, out: Option<&Path>) -> Result<(Checkpoint, usize)> {
    let mut bytes = Vec::new();
    if worker.rank() == Rank(0) {
        let out = out.ok_or_else(|| TrainError::config("a run without a folder cannot be resumed"))?;
        bytes = Checkpoint::read_bytes(out)?;
        if Checkpoint::from_bytes(&bytes)?.fingerprint != worker.config.fingerprint() {
            let what = "the checkpoint belongs to another model, partition, schedule, seed or preparation of the data";
            return Err(TrainError::config(format!("{}: {what}", out.display())));
        }
    }
    collectives::broadcast(&mut worker.channel, checkpoint_tag(), Rank(0), &mut bytes)?;
    Ok((Checkpoint::from_bytes(&bytes)?, bytes.len()))
}

fn summarise(
    config: &Config,
    trained: &Trained,
    reports: &[WorkerReport],
    earlier: &Earlier,
    predicted: u64,
    one_process: bool,
) -> Result<Summary> {
    let mut reports = reports.to_vec();
    for (kind, before) in reports[0].kinds.iter_mut().zip(&earlier.kinds) {
        *kind += *before;
    }
    let (mut bytes, seconds, memory) = combine(&reports, one_process)?;
    earlier.add_links(&mut bytes.by_link);
    let received = bytes.received + earlier.framed();
    let digest: String = reports[0].digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Summary {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        config: serde_json::to_value(config).map_err(|e| TrainError::config(e.to_string()))?,
        seed: config.train.seed,
        workers: reports.len() as u32,
        transport: config.transport.kind.clone(),
        interrupted: trained.interrupted,
        rounds: trained.rounds,
        metrics: MetricsSummary { best_round: trained.best_round, scores: trained.scores.clone() },
        bytes: BytesSummary { predicted, received, ..bytes },
        seconds,
        memory,
        bits: bit_shares(&reports),
        messages: None,
        parameters: ParametersSummary {
            count: trained.chosen.iter().map(|values| values.len() as u64).sum(),
            digest: format!("blake3:{digest}"),
        },
    })
}

/// Ends every process of this MPI job with this exit code; for errors after which the others would only wait.
#[cfg(feature = "mpi")]
pub fn abort_mpi(code: u8) -> ! {
    // An abort kills at once: worker 0 first gets the time to write down what it had reached.
    std::thread::sleep(Duration::from_millis(500));
    laconic_wire::transport::mpi::abort(code.into())
}

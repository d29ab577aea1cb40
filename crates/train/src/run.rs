//! Running a configuration: transports, workers, and what is written.
//!
//! Every worker runs [`work`], whatever carries its frames. What differs between kinds of transport is only who starts the workers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use laconic_graph::part::Part;
use laconic_wire::{
    Clock, Count, Direction, Kind, Ledger, LinkShape, Mode, Rank, Shaped, Tag, Transport, VirtualClock, WallClock,
    collectives, threads,
};

use crate::checkpoint::{Checkpoint, write_aside};
use crate::config::Config;
use crate::data::Source;
use crate::discover::control;
use crate::earlier::Earlier;
use crate::error::{Result, TrainError};
use crate::fit::{RoundReport, median_seconds};
use crate::memory;
use crate::model;
use crate::report::{BytesSummary, MetricsSummary, ParametersSummary, Summary, WorkerReport, combine, seconds};
use crate::schedule::staged::{Hooks, Trained};
use crate::schedule::{Forecast, Position, Schedule, Stage, named};
use crate::traffic::{by_kind, predict_worker};
use crate::worker::Worker;

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
    let config = Arc::new(config.clone());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let each = if config.train.threads > 0 { config.train.threads } else { (cores / size).max(1) };
    let (report, reports) = mpsc::channel();
    let Options { out, resume, interrupt, abort, mut observer } = options;
    start_folder(&config, out.as_deref().filter(|_| !resume), size, observer.as_mut())?;
    let mut observer = Some(observer);
    for (rank, mut end) in threads(size, config.deadline()).into_iter().enumerate() {
        end.set_interrupt(abort.clone());
        let (config, report, interrupt) = (config.clone(), report.clone(), interrupt.clone());
        let place = Place { out: out.clone(), resume, threads: each, one_process: true };
        let observer = if rank == 0 { observer.take() } else { None };
        let part = source.take(rank as u32);
        let work = move || {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                work(config, Box::new(end), part?, place, interrupt, observer.unwrap_or(Box::new(Silent)))
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
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let local: usize = std::env::var("OMPI_COMM_WORLD_LOCAL_SIZE").ok().and_then(|v| v.parse().ok()).unwrap_or(size);
    let threads = if config.train.threads > 0 { config.train.threads } else { (cores / local.max(1)).max(1) };
    let part = source.take(rank.0)?;
    let mut observer = if rank == Rank(0) { options.observer } else { Box::new(Silent) };
    if rank == Rank(0) {
        start_folder(config, options.out.as_deref().filter(|_| !options.resume), size, observer.as_mut())?;
    }
    let place = Place { out: options.out, resume: options.resume, threads, one_process: false };
    work(Arc::new(config.clone()), Box::new(transport), part, place, options.interrupt, observer)
}

/// Puts the configured link model around a transport.
fn shape(config: &Config, transport: Box<dyn Transport>) -> Result<(Box<dyn Transport>, Option<VirtualClock>)> {
    if config.transport.shape.is_empty() {
        return Ok((transport, None));
    }
    let shape: LinkShape = config.transport.shape.parse()?;
    let mode = if config.transport.shape_sleeps { Mode::Real } else { Mode::Virtual };
    let shaped = Shaped::new(transport, shape, mode, Arc::new(WallClock::new()));
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
    let (transport, clock) = shape(&config, transport)?;
    let (schedule, stages) = plan_stages(&config, part.global.columns, part.global.classes)?;
    let (mut worker, x) = Worker::start(config.clone(), transport, part, place.threads, interrupt)?;
    let rank = worker.rank();
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
    let mut hooks = WorkerHooks { out, before, checkpoint: checkpoint.map(|(c, _)| c), observer, log: None };
    hooks.open_log(&position)?;
    hooks.observer.predicted(&predicted_by_kind, predicted_memory, rounds);
    let trained = schedule.run(&mut worker, &stages, x, &mut hooks)?;

    let (mut sent, mut received) = (worker.channel.sent().clone(), worker.channel.received().clone());
    let size = worker.channel.size();
    WorkerReport::count_itself(rank, size, trained.rounds, &mut sent, &mut received);
    if let Some(out) = &place.out {
        write_ledger_rows(out, rank, &sent)?;
    }
    let waiting = seconds(worker.channel.waited());
    let coding = seconds(worker.halo.coding());
    let evaluation = seconds(worker.times.evaluation);
    let total = seconds(start.elapsed());
    let compute = (total - waiting - coding - evaluation).max(0.0);
    let link_model = clock.map_or(0.0, |clock| seconds(clock.now()));
    let totals = |ledger: &Ledger| {
        let by_peer = ledger.totals_by_peer();
        Rank::all(size).map(|peer| by_peer.get(&peer).copied().unwrap_or_default()).collect::<Vec<Count>>()
    };
    let report = WorkerReport {
        kinds: by_kind(&sent),
        sent: totals(&sent),
        received: totals(&received),
        seconds: [total, median_seconds(&worker.times.rounds), compute, waiting, coding, evaluation, link_model],
        memory: [memory::peak_bytes(), predicted_memory],
        digest: model::digest(&trained.chosen, &trained.last),
    };
    let reports = report.collect(&mut worker.channel, trained.rounds)?;
    worker.channel.finish()?;
    let summary = match reports {
        Some(reports) => {
            let predicted_total = predicted_by_kind.iter().sum();
            let summary = summarise(&config, &trained, &reports, &earlier, predicted_total, place.one_process)?;
            if let Some(out) = &hooks.out {
                write_results(out, &summary, &stages, &trained, &earlier.rows)?;
            }
            Some(summary)
        }
        None => None,
    };
    Ok(Outcome { rank: rank.0, trained, sent, received, predicted, summary })
}

/// Worker 0 reads the checkpoint and hands it to all, so that no other needs the file. Returns it with its size.
fn hand_round(worker: &mut Worker, out: Option<&Path>) -> Result<(Checkpoint, usize)> {
    let mut bytes = Vec::new();
    if worker.rank() == Rank(0) {
        let out = out.ok_or_else(|| TrainError::config("a run without a folder cannot be resumed"))?;
        bytes = Checkpoint::read_bytes(out)?;
        Checkpoint::from_bytes(&bytes)?;
    }
    collectives::broadcast(&mut worker.channel, checkpoint_tag(), Rank(0), &mut bytes)?;
    Ok((Checkpoint::from_bytes(&bytes)?, bytes.len()))
}

struct WorkerHooks {
    /// Set on worker 0 if the run is written down.
    out: Option<PathBuf>,
    before: [Count; 7],
    checkpoint: Option<Checkpoint>,
    observer: Box<dyn Observer>,
    log: Option<std::fs::File>,
}

/// The file with a line a round.
pub const METRICS: &str = "metrics.jsonl";

impl WorkerHooks {
    /// Opens the log of rounds, keeping those before the checkpoint.
    fn open_log(&mut self, position: &Position) -> Result<()> {
        let Some(out) = &self.out else { return Ok(()) };
        let path = out.join(METRICS);
        let done: u32 = position.finished.iter().sum::<u32>() + position.done;
        let old = if done > 0 { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        let keeps = |line: &&str| serde_json::from_str::<RoundReport>(line).is_ok_and(|report| report.round <= done);
        let kept: String = old.lines().filter(keeps).flat_map(|line| [line, "\n"]).collect();
        write_aside(&path, kept.as_bytes())?;
        let log = std::fs::OpenOptions::new().append(true).open(&path);
        self.log = Some(log.map_err(|source| TrainError::io(&path, source))?);
        Ok(())
    }
}

impl Hooks for WorkerHooks {
    fn round(&mut self, report: &RoundReport) -> Result<()> {
        use std::io::Write;
        if let Some(log) = &mut self.log {
            let line = serde_json::to_string(report).map_err(|e| TrainError::file(METRICS, e.to_string()))? + "\n";
            log.write_all(line.as_bytes()).map_err(|source| TrainError::io(METRICS, source))?;
        }
        self.observer.round(report);
        Ok(())
    }

    fn checkpoint(&mut self, make: &dyn Fn() -> Checkpoint) -> Result<()> {
        if let Some(out) = &self.out {
            let checkpoint = make();
            checkpoint.write(out)?;
            self.observer.checkpoint(checkpoint.rounds());
        }
        Ok(())
    }

    fn resume(&mut self) -> Option<Checkpoint> {
        self.checkpoint.take()
    }

    fn bytes_before(&self) -> [Count; 7] {
        self.before
    }
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
        parameters: ParametersSummary {
            count: trained.chosen.iter().map(|values| values.len() as u64).sum(),
            digest: format!("blake3:{digest}"),
        },
    })
}

/// The file with one worker's ledger rows, until worker 0 has put them together.
fn ledger_part(out: &Path, rank: usize) -> PathBuf {
    out.join(format!("ledger.{rank}.csv"))
}

fn write_ledger_rows(out: &Path, rank: Rank, ledger: &Ledger) -> Result<()> {
    std::fs::create_dir_all(out).map_err(|source| TrainError::io(out, source))?;
    let (path, mut rows) = (ledger_part(out, rank.index()), Vec::new());
    ledger.write_csv_rows(rank, &mut rows).map_err(|source| TrainError::io(&path, source))?;
    write_aside(&path, &rows)
}

/// Writes summary, weights and the ledger of all workers whose rows are on this machine.
fn write_results(out: &Path, summary: &Summary, stages: &[Stage], trained: &Trained, earlier: &str) -> Result<()> {
    let mut ledger = format!("{}\n{earlier}", Ledger::CSV_HEADER).into_bytes();
    for rank in 0..summary.workers as usize {
        let path = ledger_part(out, rank);
        if let Ok(rows) = std::fs::read(&path) {
            ledger.extend(rows);
            std::fs::remove_file(&path).map_err(|source| TrainError::io(&path, source))?;
        }
    }
    write_aside(&out.join("ledger.csv"), &ledger)?;
    let weights = model::weights(&stages[..trained.chosen.len()], &trained.chosen);
    let width = |layer: Option<&laconic_nn::Unit>, width: fn(&dyn laconic_nn::Layer) -> usize| {
        layer.map_or(0, |unit| width(unit.layer.as_ref())).to_string()
    };
    let inputs = width(stages.first().and_then(|s| s.network.units().first()), |layer| layer.inputs());
    let classes = width(stages.last().and_then(|s| s.network.units().last()), |layer| layer.outputs());
    let digest = summary.parameters.digest.clone();
    let format = "laconic-model-1".to_owned();
    let metadata = [("format", format), ("digest", digest), ("inputs", inputs), ("classes", classes)];
    model::write(&out.join(model::FILE), &weights, metadata.into())?;
    let text = serde_json::to_string_pretty(summary).map_err(|e| TrainError::file("summary.json", e.to_string()))?;
    write_aside(&out.join("summary.json"), (text + "\n").as_bytes())
}

/// Makes a run's folder and writes the resolved configuration into it. A run that stands there already is moved aside, to the first
/// free name `DIR.1`, `DIR.2`, …, which is returned.
pub fn prepare_folder(out: &Path, config: &Config) -> Result<Option<PathBuf>> {
    let mut moved = None;
    if out.join("config.toml").exists() {
        let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let free = (1..).map(|n| out.with_file_name(format!("{name}.{n}"))).find(|path| !path.exists());
        let free = free.expect("there are infinitely many numbers");
        std::fs::rename(out, &free).map_err(|source| TrainError::io(out, source))?;
        moved = Some(free);
    }
    std::fs::create_dir_all(out).map_err(|source| TrainError::io(out, source))?;
    write_aside(&out.join("config.toml"), config.to_toml().as_bytes())?;
    Ok(moved)
}

/// What every worker of a configuration would send, worker by worker, with stages and shapes; nothing runs.
pub fn forecast(config: &Config, parts: &[Part]) -> Result<Vec<(crate::discover::Shapes, Ledger, u64)>> {
    let global = &parts.first().ok_or_else(|| TrainError::config("there are no parts"))?.global;
    let (schedule, stages) = plan_stages(config, global.columns, global.classes)?;
    let evaluator = crate::evaluate::Evaluator::new(&config.train.metrics, global.classes, global.multi_label)?;
    let position = Position::default();
    let forecast = Forecast { config, stages: &stages, evaluator: &evaluator, position: &position };
    let plans = laconic_graph::plan::plan_all(parts, config.model.has_self_loops())?;
    let one = |(part, (plan, topology)): (&Part, &(_, _))| {
        let shapes = crate::discover::Shapes::of(part, plan, topology);
        let ledger = predict_worker(schedule, &forecast, &shapes, None)?;
        let memory = memory::predict(&shapes, &stages);
        Ok((shapes, ledger, memory))
    };
    parts.iter().zip(&plans).map(one).collect()
}

/// Ends every process of this MPI job with this exit code; for errors after which the others would only wait.
#[cfg(feature = "mpi")]
pub fn abort_mpi(code: u8) -> ! {
    laconic_wire::transport::mpi::abort(code.into())
}

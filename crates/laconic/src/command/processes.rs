//! The workers of a run as processes of this machine: who starts them, watches them, and says how the run ended.

use std::hash::{BuildHasher, RandomState};
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;
use laconic_train::config::{AggregatorPlace, TrainersHalo};
use laconic_train::record::observer::Stand;
use laconic_train::run::source::Source;
use laconic_train::run::{Failed, root_cause, run_process};
use laconic_train::{Config, Members, Options, Summary, TrainError};
use laconic_wire::Address;
use serde::{Deserialize, Serialize};

use super::child::{Child, Failure, LOOK_EVERY, answer_parent, task_of_parent};
use super::signals::Signals;
use super::stopped::Stopped;
use crate::output::Output;
use crate::progress::Progress;
use crate::waiting::Waiting;
use crate::waiting::reading;

/// The command that a worker is started with; no user needs it.
pub const COMMAND: &str = "worker";

/// How many processes are started at most: each has two threads for every other one.
const WORKERS_MAX: u32 = 64;

/// How long the others get to end, once a first worker has failed.
const GRACE: Duration = Duration::from_secs(5);

/// The exit code where a worker ended without a word.
const NETWORK: u8 = 4;

/// What the workers of a run are to do.
#[derive(Clone, Serialize, Deserialize)]
pub struct Task {
    /// The run's configuration.
    pub config: Config,
    /// The keys that may differ from the checkpoint's, where the run goes on from it.
    pub goes_on: Option<Vec<String>>,
    /// Whether to start in too little memory.
    pub force: bool,
}

impl Task {
    /// How to run it, for whoever listens to these signals and watches with this observer.
    pub fn options(&self, signals: &Signals, progress: Progress) -> Options {
        Options {
            out: Some(self.config.out.dir.clone()),
            resume: self.goes_on.is_some(),
            changes: self.goes_on.clone().unwrap_or_default(),
            interrupt: signals.interrupt.clone(),
            abort: signals.abort.clone(),
            observer: Box::new(progress),
            force: self.force,
            ..Options::default()
        }
    }
}

/// What one of them is to do, and where it meets the others.
#[derive(Serialize, Deserialize)]
struct ProcessTask {
    task: Task,
    address: Address,
}

/// How a worker ended.
#[derive(Serialize, Deserialize)]
enum Ended {
    /// Worker 0 sums up.
    Done(Option<Box<Summary>>),
    Failed {
        text: String,
        code: u8,
        failed: Failed,
    },
}

/// A worker's process, and how it ended.
struct Worker {
    rank: u32,
    process: Child,
    ended: Option<Ended>,
    /// Whether it ended without saying how.
    silent: bool,
}

impl Worker {
    /// Looks whether it has ended since.
    fn look(&mut self) -> std::io::Result<()> {
        if self.ended.is_none()
            && let Some(status) = self.process.status()?
        {
            let answer = self.process.answer();
            self.silent = answer.is_none();
            self.ended = Some(answer.unwrap_or_else(|| self.without_a_word(status)));
        }
        Ok(())
    }

    fn without_a_word(&self, status: ExitStatus) -> Ended {
        let (rank, id) = (self.rank, self.process.id());
        let text = format!("network: worker {rank}, process {id}, ended without a word: {status}");
        Ended::Failed { text, code: NETWORK, failed: Failed { rank, is_consequence: false, waited_for: None } }
    }

    /// Whether its process ended without a word.
    fn is_lost(&self) -> bool {
        self.ended.is_some() && self.silent
    }

    fn has_failed(&self) -> bool {
        matches!(self.ended, Some(Ended::Failed { .. }))
    }
}

/// Runs the task, each worker in a process, and waits for them.
///
/// # Errors
/// The error that explains most, where one fails.
pub fn run(task: &Task, signals: &Signals, told: &Output) -> Result<Summary> {
    let workers = Source::workers(&task.config)?;
    if workers > WORKERS_MAX {
        let what =
            format!("{workers} parts would be as many processes of this machine: expected at most {WORKERS_MAX}");
        return Err(TrainError::config(format!("transport.kind = \"processes\": {what}")).into());
    }
    let trainers = Trainers::of(&task.config, workers)?;
    let workers = trainers.as_ref().map_or(workers, |trainers| trainers.ranks);
    let folder = meeting_place()?;
    let secret = RandomState::new().hash_one(std::process::id());
    std::fs::create_dir(folder.path().join("exchange")).map_err(|source| TrainError::io(folder.path(), source))?;
    let address = |rank| Address { folder: folder.path().to_owned(), secret, rank, size: workers };
    let start = |rank| -> Result<Worker> {
        let process = Child::start(COMMAND, &ProcessTask { task: task.clone(), address: address(rank) }, told)?;
        Ok(Worker { rank, process, ended: None, silent: false })
    };
    let mut started: Vec<Worker> = Vec::with_capacity(workers as usize);
    let hosted = trainers.as_ref().and_then(|trainers| trainers.hosted);
    for rank in (0..workers).filter(|rank| Some(*rank) != hosted) {
        match start(rank) {
            Ok(worker) => started.push(worker),
            Err(error) => {
                started.iter_mut().for_each(|worker| worker.process.kill());
                return Err(error.context("cannot start the process of a worker"));
            }
        }
    }
    let grace = GRACE.min(Duration::from_secs_f64(task.config.transport.deadline_s));
    match trainers {
        Some(trainers) => {
            let deadlines = [task.config.transport.deadline_s, task.config.transport.start_deadline_s];
            Watch::new(trainers, deadlines, told).run(&mut started, &start, signals)?;
        }
        None => wait(&mut started, grace, signals, told)?,
    }
    how_it_ended(started, trainers.is_some())
}

/// The longest path of a folder in which sockets have room: some systems take 104 bytes in all.
const PATH_MAX: usize = 80;

/// A folder that only this user can look into, whatever the umask; in `/tmp` where the path of TMPDIR is too long for
/// sockets.
fn meeting_place() -> Result<tempfile::TempDir> {
    let usual = std::env::temp_dir();
    let place = if usual.as_os_str().len() > PATH_MAX { std::path::PathBuf::from("/tmp") } else { usual };
    let mut builder = tempfile::Builder::new();
    builder.prefix("laconic-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    Ok(builder.tempdir_in(&place).map_err(|source| TrainError::io(place, source))?)
}

/// The rank and the process of each worker that has not ended.
fn alive(workers: &[Worker]) -> impl Iterator<Item = (u32, u32)> {
    let alive = workers.iter().filter(|worker| worker.ended.is_none());
    alive.map(|worker| (worker.rank, worker.process.id()))
}

/// Waits until all have ended. After a first failure the others get some time to end by themselves, so that their
/// errors say what they waited for.
fn wait(workers: &mut [Worker], grace: Duration, signals: &Signals, told: &Output) -> Result<()> {
    let (mut until, mut stopped): (Option<Instant>, _) = (None, Stopped::default());
    loop {
        workers.iter_mut().try_for_each(Worker::look)?;
        if workers.iter().all(|worker| worker.ended.is_some()) {
            return Ok(());
        }
        stopped.look(alive(workers), told);
        if workers.iter().any(Worker::has_failed) {
            until.get_or_insert(Instant::now() + grace);
        }
        let gives_up = signals.abort.load(Ordering::Relaxed) || until.is_some_and(|until| Instant::now() > until);
        for worker in workers.iter_mut().filter(|worker| worker.ended.is_none()) {
            if signals.interrupt.load(Ordering::Relaxed) {
                worker.process.ask_to_stop();
            }
            if gives_up {
                worker.process.kill();
                worker.ended = Some(Ended::Done(None));
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Independent trainers: which of them is lost does not stop the others.
#[derive(Clone, Copy)]
struct Trainers {
    /// The aggregator and the trainers.
    ranks: u32,
    /// The trainer that lives in the aggregator's process, by its rank.
    hosted: Option<u32>,
    /// Whether one that was lost can take up its work again: not where trainers have met before they went.
    come_back: bool,
}

/// How often a trainer is started again at most.
const LIVES_MAX: u32 = 10;

impl Trainers {
    /// Of a run of so many parts; `None` where its workers exchange rows.
    fn of(config: &Config, parts: u32) -> Result<Option<Trainers>> {
        let members = Members::default();
        if !members.has_trainers(config)? {
            return Ok(None);
        }
        let kept: Vec<u32> = (0..parts).filter(|part| !config.averaging.drop.contains(part)).collect();
        // Where its part has no trainer everybody says so.
        let place = |own: u32| kept.iter().position(|part| *part == own);
        let hosted = match config.schedule.aggregator {
            AggregatorPlace::Own => None,
            AggregatorPlace::Part(part) => place(part).map(|place| place as u32 + 1),
        };
        let meet = config.schedule.halo != TrainersHalo::None || members.told_inputs(config).next().is_some();
        let come_back = !meet && !members.workers_evaluate_means(config)?;
        Ok(Some(Trainers { ranks: kept.len() as u32 + 1, hosted, come_back }))
    }
}

/// An aggregator that leads gives a sign much more often than that.
const SILENCE: Duration = Duration::from_secs(1);

/// Who watches independent trainers and their aggregator.
struct Watch<'a> {
    trainers: Trainers,
    /// How long the aggregator may say nothing while it takes means, and while it prepares something.
    deadlines: [Duration; 2],
    told: &'a Output,
    /// When whoever is left is ended.
    until: Option<Instant>,
    /// Whether it was said that the aggregator says nothing.
    warned: bool,
    /// Whether it was said that it was asked to stop and says nothing.
    said_that_it_was_asked: bool,
    stopped: Stopped,
}

impl Watch<'_> {
    fn new(trainers: Trainers, deadlines: [f64; 2], told: &Output) -> Watch<'_> {
        let deadlines = deadlines.map(Duration::from_secs_f64);
        let (warned, said_that_it_was_asked) = (false, false);
        Watch { trainers, deadlines, told, until: None, warned, said_that_it_was_asked, stopped: Stopped::default() }
    }

    /// Waits until the aggregator has ended; a trainer that ends without a word is started again.
    fn run(mut self, workers: &mut [Worker], start: &dyn Fn(u32) -> Result<Worker>, signals: &Signals) -> Result<()> {
        let mut lives = vec![1u32; workers.len()];
        loop {
            workers.iter_mut().try_for_each(Worker::look)?;
            let wants_an_end = signals.interrupt.load(Ordering::Relaxed);
            self.stopped.look(alive(workers), self.told);
            self.look_at_the_aggregator(&mut workers[0], wants_an_end);
            let over = workers[0].ended.is_some();
            if over || self.is_in_vain(workers) {
                self.until.get_or_insert(Instant::now() + GRACE);
            }
            if workers.iter().all(|worker| worker.ended.is_some()) {
                return Ok(());
            }
            let is_late = self.until.is_some_and(|until| Instant::now() > until);
            let gives_up = signals.abort.load(Ordering::Relaxed) || is_late;
            for (worker, lives) in workers.iter_mut().zip(&mut lives) {
                if worker.ended.is_none() {
                    if wants_an_end && worker.rank == 0 {
                        worker.process.ask_to_stop();
                    }
                    if gives_up {
                        worker.process.kill();
                        worker.ended = Some(Ended::Done(None));
                    }
                } else if worker.is_lost() && !over && *lives < LIVES_MAX {
                    let comes_back = self.trainers.come_back;
                    if let Some(Ended::Failed { text, .. }) = &worker.ended {
                        self.told.say(if comes_back { format!("{text}; started again") } else { text.clone() });
                    }
                    if comes_back {
                        *worker = start(worker.rank)?;
                        *lives += 1;
                    } else {
                        // It is said once.
                        *lives = LIVES_MAX;
                    }
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Whether a trainer was lost while trainers meet, which then wait for it in vain.
    fn is_in_vain(&self, workers: &[Worker]) -> bool {
        let (sign, _) = workers[0].process.sign();
        let meets = sign.is_empty() || [Stand::Prepares, Stand::Gathers].iter().any(|at| sign == format!("{at:?}"));
        meets && !self.trainers.come_back && workers.iter().any(|worker| worker.rank > 0 && worker.is_lost())
    }

    /// Says so when the aggregator gives no sign of life, and ends it when it goes on like that. The links to a process
    /// that is stopped, or waits for its disk, stay open, and its trainers would wait for ever.
    fn look_at_the_aggregator(&mut self, aggregator: &mut Worker, wants_an_end: bool) {
        let (sign, silence) = aggregator.process.sign();
        if aggregator.ended.is_some() {
            return;
        }
        let takes_means = [Stand::Gathers, Stand::Leads].iter().any(|at| sign == format!("{at:?}"));
        let [deadline, start] = self.deadlines;
        let (key, patience) = match (takes_means, wants_an_end) {
            (true, true) => ("transport.deadline_s", deadline),
            (true, false) => ("transport.deadline_s", deadline * 2),
            // Whoever prepares says nothing; one that is stopped is known to do nothing either.
            (false, _) if self.stopped.time(0) > deadline => ("transport.deadline_s", deadline),
            (false, _) => ("transport.start_deadline_s", start + deadline),
        };
        let who = format!("worker 0, process {}, the aggregator", aggregator.process.id());
        let seconds = silence.as_secs_f64();
        if silence > deadline && takes_means && !std::mem::replace(&mut self.warned, true) {
            let more = deadline.as_secs_f64();
            self.told.say(format!("{who}, has given no sign of life for {seconds:.0} s; the run ends in {more:.0} s"));
        }
        self.warned &= silence > deadline;
        let is_silent = takes_means && silence > SILENCE || self.stopped.time(0) > SILENCE;
        if wants_an_end && is_silent && !std::mem::replace(&mut self.said_that_it_was_asked, true) {
            let left = match takes_means {
                true => patience.saturating_sub(silence),
                false => deadline.saturating_sub(self.stopped.time(0)),
            };
            let left = left.as_secs_f64();
            self.told.say(format!(
                "{who}, was asked to stop after this mean, and has given no sign of life for {seconds:.0} s; the run \
                 ends without it in {left:.0} s, or at once by another Ctrl-C"
            ));
        }
        if silence > patience {
            let why = "it is stopped, or waits for its disk";
            let text = format!("network: {who}, has given no sign of life for {seconds:.0} s ({key}): {why}");
            aggregator.process.kill();
            let failed = Failed { rank: 0, is_consequence: false, waited_for: None };
            (aggregator.ended, aggregator.silent) = (Some(Ended::Failed { text, code: NETWORK, failed }), true);
        }
    }
}

fn how_it_ended(workers: Vec<Worker>, on_their_own: bool) -> Result<Summary> {
    let (mut summary, mut failures): (_, Vec<(Failed, Failure)>) = (None, Vec::new());
    for worker in workers {
        match worker.ended {
            Some(Ended::Failed { mut text, code, failed }) => {
                if on_their_own && worker.rank == 0 && worker.silent {
                    text += "; if a mean was taken, `laconic resume` goes on from the last";
                }
                failures.push((failed, Failure { text, code }));
            }
            Some(Ended::Done(Some(of_all))) => summary = Some(*of_all),
            _ => {}
        }
    }
    if let (true, Some(summary)) = (on_their_own, &summary) {
        // The aggregator has come to an end, whoever was lost on the way.
        return Ok(summary.clone());
    }
    let cause = root_cause(failures.iter().map(|(failed, _)| *failed).collect());
    if let Some(rank) = cause
        && let Some((_, failure)) = failures.into_iter().find(|(failed, _)| failed.rank == rank)
    {
        return Err(failure.into());
    }
    let text = "network: the workers ended before there was a summary".to_owned();
    summary.ok_or_else(|| Failure { text, code: NETWORK }.into())
}

/// A worker's own process: connects, trains, and says how it ended.
pub fn worker(output: &Output) -> Result<u8> {
    let signals = Signals::install(false)?;
    let ProcessTask { task, address } = task_of_parent(&signals)?;
    let waiting = if address.rank == 0 { output.begins(reading(&task.config.data)) } else { Waiting::nothing() };
    let progress = Progress::new(output, waiting);
    let progress = if address.rank == 0 { progress.with_signs() } else { progress };
    let options = task.options(&signals, progress);
    let ended = match run_process(&task.config, &address, options) {
        Ok(summary) => Ended::Done(summary.map(Box::new)),
        Err(error) => {
            let failed = Failed::of(address.rank, &error);
            Ended::Failed { text: error.to_string(), code: error.exit_code(), failed }
        }
    };
    if !answer_parent(&ended)? {
        // Who made the folder in which workers met can remove it no more; another worker may have done so already.
        let _ = std::fs::remove_dir_all(&address.folder);
    }
    Ok(0)
}

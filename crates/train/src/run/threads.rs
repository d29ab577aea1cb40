//! All workers as threads of this process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use laconic_graph::part::Part;
use laconic_graph::skew::LabelSkew;
use laconic_wire::{Transport, threads};
use serde::{Deserialize, Serialize};

use super::options::{Options, Outcome};
use super::panic::panicked;
use super::session::{Process, Session};
use super::source::Source;
use super::start::admit;
use super::trainers;
use crate::config::Config;
use crate::error::{Result, TrainError};
use crate::plan::Plan;
use crate::record::observer::{Observer, Silent};
use crate::worker::StopSignal;

/// How long the others get to end, once a first worker has failed.
const GRACE: Duration = Duration::from_secs(5);

/// Runs all workers as threads of this process and returns what each ended with, in rank order. No thread outlives the
/// call.
///
/// # Errors
/// If the configuration or the data cannot be used, or a worker fails: then the error that explains most.
pub fn run_threads(config: &Config, mut source: Source, options: Options) -> Result<Vec<Outcome>> {
    if options.members.has_trainers(config)? {
        return trainers::run(config, source, options);
    }
    let size = source.parts() as usize;
    let config = options.members.resolved(config, size as u32)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let each = if config.train.threads > 0 { config.train.threads } else { (cores / size).max(1) };
    // Before any worker starts, so that none waits while another's part is being opened.
    let parts = (0..size as u32).map(|rank| source.take(rank)).collect::<Result<Vec<Part>>>()?;
    let plan = Plan::with(&options.members, &config, &parts[0].global)?
        .with_label_skew(LabelSkew::of_parts(&parts).map(|labels| labels.skew));
    plan.check_workers(size)?;
    source.add_note(plan.check_weights(&parts)?);
    source.add_note(plan.two_sided(parts.iter()));
    let Options { out, resume, changes, interrupt, abort, mut observer, keep_accounts, force, .. } = options;
    source.notes().iter().for_each(|note| observer.noted(note));
    if size > cores {
        observer.noted(&format!("{size} workers share {cores} cores: seconds are not those of a machine each"));
    }
    let keeps_accounts = keep_accounts || out.is_none();
    let memory = admit(&plan, &parts, 1, keeps_accounts, force, observer.as_mut())?;
    let (stop, give_up) = (StopSignal::of(interrupt), StopSignal::of(abort));
    let (stops, notes) = (stop.clone(), source.notes().to_vec());
    let one = Process { is_shared: true, threads: each, stop: stops, notes, ..Process::default() };
    let process = Process { out, resume, changes, keeps_accounts, memory, ..one };
    let work = |transport: Box<dyn Transport>, part: Part, observer: Box<dyn Observer>| {
        let mut session = Session::open(plan.clone(), transport, part, process.clone(), observer)?;
        let trained = session.train()?;
        session.close(trained)
    };
    let (report, reports) = mpsc::channel();
    let mut observer = Some(observer);
    std::thread::scope(|scope| {
        for (rank, (mut end, part)) in threads(size, config.deadline()).into_iter().zip(parts).enumerate() {
            give_up.flags().into_iter().for_each(|flag| end.add_interrupt(flag));
            let (report, work) = (report.clone(), &work);
            let observer = if rank == 0 { observer.take() } else { None };
            let live = move || {
                let observer = observer.unwrap_or(Box::new(Silent));
                let caught = catch_unwind(AssertUnwindSafe(|| work(Box::new(end), part, observer)));
                let result = caught.unwrap_or_else(|panic| Err(panicked(rank as u32, panic.as_ref())));
                // Somebody listens until all have reported.
                let _ = report.send((rank, result));
            };
            let thread = std::thread::Builder::new().name(format!("worker-{rank}"));
            if let Err(source) = thread.spawn_scoped(scope, live) {
                give_up.set();
                return Err(TrainError::io("worker thread", source));
            }
        }
        gather(&reports, size, config.deadline().min(GRACE), &stop, &give_up)
    })
}

/// Waits for all workers. After a first failure the others get some time to end by themselves, so that their errors say
/// what they waited for, then every wait of theirs ends; the error that explains most is reported.
fn gather(
    reports: &Receiver<(usize, Result<Outcome>)>,
    size: usize,
    grace: Duration,
    stop: &StopSignal,
    give_up: &StopSignal,
) -> Result<Vec<Outcome>> {
    let mut outcomes: Vec<Option<Outcome>> = (0..size).map(|_| None).collect();
    let mut errors: Vec<(usize, TrainError)> = Vec::new();
    let mut until: Option<Instant> = None;
    for _ in 0..size {
        let next = match until {
            None => reports.recv().ok(),
            Some(until) => reports.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
        };
        match next {
            Some((rank, Ok(outcome))) => outcomes[rank] = Some(outcome),
            Some((rank, Err(error))) => {
                errors.push((rank, error));
                stop.set();
                until.get_or_insert(Instant::now() + grace);
            }
            None => break,
        }
    }
    give_up.set();
    let failed = errors.iter().map(|(rank, error)| Failed::of(*rank as u32, error)).collect();
    match root_cause(failed).and_then(|rank| errors.into_iter().find(|(failed, _)| *failed == rank as usize)) {
        Some((_, error)) => Err(error),
        None => Ok(outcomes.into_iter().flatten().collect()),
    }
}

/// A worker that failed, as far as causes are told from consequences by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The worker's number.
    pub rank: u32,
    /// Whether it only says that another is gone ([`TrainError::is_consequence`]).
    pub is_consequence: bool,
    /// Whom it waited for in vain ([`TrainError::waited_for`]).
    pub waited_for: Option<u32>,
}

impl Failed {
    /// What is to be known of an error.
    pub fn of(rank: u32, error: &TrainError) -> Failed {
        Failed { rank, is_consequence: error.is_consequence(), waited_for: error.waited_for() }
    }
}

/// The number of the worker whose error explains the others', if any failed. A worker that stalls makes others wait,
/// and those make others wait: so from a deadline the way leads to whom it waited for, as long as that one waited in
/// vain too.
pub fn root_cause(mut failed: Vec<Failed>) -> Option<u32> {
    failed.sort_by_key(|of| (of.is_consequence, of.waited_for.is_some(), of.rank));
    let mut at = *failed.first()?;
    for _ in 0..failed.len() {
        let next = at.waited_for.and_then(|peer| failed.iter().find(|of| of.rank == peer && of.waited_for.is_some()));
        let Some(next) = next else { break };
        at = *next;
    }
    Some(at.rank)
}

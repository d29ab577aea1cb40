//! The library's front door to training: one run, or those that `messages = "auto"` tries.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use laconic_wire::PerKind;

use super::climb::climb;
use super::graph::CutGraph;
use super::ladder::{Ladder, Rung};
use crate::config::{Config, TransportKind};
use crate::error::{Result, TrainError};
use crate::fit::observe::RoundReport;
use crate::record::observer::{Observer, Stand};
use crate::record::summary::Summary;
use crate::run::{self, Data, Options, Run};

impl AsMut<Summary> for Summary {
    fn as_mut(&mut self) -> &mut Summary {
        self
    }
}

impl AsMut<Summary> for Run {
    fn as_mut(&mut self) -> &mut Summary {
        &mut self.summary
    }
}

/// Trains with all workers as threads of this process; with `messages = "auto"` and `schedule.hand_on = "auto"` several
/// runs one after the other, of which one is returned.
///
/// # Errors
/// If the configuration or the data cannot be used, or a worker fails.
pub fn train(config: &Config, data: impl Into<Data>, options: Options) -> Result<Run> {
    if !config.is_several() {
        return run::train(config, data, options);
    }
    if !matches!(config.transport.kind, TransportKind::Threads | TransportKind::Simulated) {
        let what = "the library trains with workers that are threads; `laconic train` has processes";
        return Err(TrainError::config(format!("{}: {what}", config.several_by())));
    }
    if options.resume {
        let what = "a run that was tried is resumed by its own configuration";
        return Err(TrainError::config(format!("{}: {what}", config.several_by())));
    }
    let Options { out, changes, interrupt, abort, observer, members, keep_accounts, force, .. } = options;
    let graph = CutGraph::open(&members, config, data.into())?;
    let mut ladder = Ladder::of(&members, config, &graph)?;
    let observer = Shared(Arc::new(Mutex::new(observer)));
    graph.notes.iter().for_each(|note| observer.with(|observer| observer.noted(note)));
    for left in &ladder.left_out {
        observer.with(|observer| observer.noted(&left.said()));
    }
    let one = |rung: &Rung, place| {
        observer.with(|observer| observer.noted(&rung.said(place)));
        let options = Options {
            out: out.clone(),
            own_folder: false,
            resume: false,
            changes: changes.clone(),
            interrupt: interrupt.clone(),
            abort: abort.clone(),
            observer: Box::new(observer.clone()),
            members: members.clone(),
            keep_accounts,
            force,
        };
        run::train(&rung.config, graph.data(), options)
    };
    climb(&mut ladder, out.as_deref(), one)
}

/// One observer of several runs.
#[derive(Clone)]
struct Shared(Arc<Mutex<Box<dyn Observer>>>);

impl Shared {
    fn with<T>(&self, tell: impl FnOnce(&mut dyn Observer) -> T) -> T {
        // One that has panicked has ended its run.
        tell(self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut())
    }
}

impl Observer for Shared {
    fn watches(&mut self, rank: u32) {
        self.with(|observer| observer.watches(rank));
    }

    fn started(&mut self, config: &Config, workers: usize, moved: Option<&Path>) {
        self.with(|observer| observer.started(config, workers, moved));
    }

    fn noted(&mut self, note: &str) {
        self.with(|observer| observer.noted(note));
    }

    fn warned(&mut self, what: &str) {
        self.with(|observer| observer.warned(what));
    }

    fn stages(&mut self, rounds: &[u32]) {
        self.with(|observer| observer.stages(rounds));
    }

    fn predicted(&mut self, by_kind: &PerKind<u64>, memory: u64, rounds: u32) {
        self.with(|observer| observer.predicted(by_kind, memory, rounds));
    }

    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        self.with(|observer| observer.round(report))
    }

    fn checkpoint(&mut self, round: u32) {
        self.with(|observer| observer.checkpoint(round));
    }

    fn stands(&mut self, at: Stand) {
        self.with(|observer| observer.stands(at));
    }
}

//! Training from Python.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use laconic_train::config::{DataConfig, TransportKind};
use laconic_train::plan::Resumed;
use laconic_train::run::source::prepared_of;
use laconic_train::{Config, Data, Members, Observer, Options, RoundReport, TrainError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::codec;
use crate::error;
use crate::graph::Graph;
use crate::threads::may_compute;

/// How often signals are looked for while a run goes on.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Tells Python of a run: `watch(kind, text)`.
struct Told {
    watch: Py<PyAny>,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Told {
    /// Whether the answer stops the run. What is raised stops it, too, and is raised once more in the end.
    fn tell(&self, kind: &str, text: &str) -> bool {
        // None while the interpreter ends: nobody listens any more.
        let answer =
            Python::try_attach(|py| self.watch.call1(py, (kind, text)).and_then(|answer| answer.is_truthy(py)));
        match answer {
            None => true,
            Some(Ok(stops)) => stops,
            Some(Err(error)) => {
                // What was raised later is dropped when nobody holds the lock: it may run code of its own as it goes.
                let later = self.raised.lock().map(|mut raised| match raised.is_none() {
                    true => raised.replace(error),
                    false => Some(error),
                });
                drop(later);
                true
            }
        }
    }
}

impl Observer for Told {
    fn started(&mut self, _config: &Config, _workers: usize, moved: Option<&Path>) {
        if let Some(moved) = moved {
            self.tell("note", &format!("the earlier run in this folder is in {} now", moved.display()));
        }
    }

    fn noted(&mut self, note: &str) {
        self.tell("note", note);
    }

    fn warned(&mut self, what: &str) {
        self.tell("warning", what);
    }

    fn stages(&mut self, rounds: &[u32]) {
        self.tell("stages", &format!("{rounds:?}"));
    }

    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        // A note may have raised an error.
        if self.raised.lock().is_ok_and(|raised| raised.is_some()) {
            return ControlFlow::Break(());
        }
        if report.scores.is_none() {
            return ControlFlow::Continue(());
        }
        match serde_json::to_string(report).map(|line| self.tell("round", &line)) {
            Ok(true) => ControlFlow::Break(()),
            // A report that is no JSON is none that anybody waits for.
            Ok(false) | Err(_) => ControlFlow::Continue(()),
        }
    }
}

/// What carries the bytes of a run of this configuration: `transport.kind`.
#[pyfunction]
#[pyo3(signature = (config, settings))]
pub fn transport(config: Option<PathBuf>, settings: Vec<String>) -> PyResult<&'static str> {
    Ok(configured(config.as_deref(), &settings)?.1.transport.kind.name())
}

/// Trains with workers as threads of this process, or as the one worker of a process of MPI, and writes the folder of
/// the run: on a graph, or without one, as under MPI, on what `data.path` names. `config` is a configuration in TOML,
/// `settings` are KEY=VALUE. Returns whether the run was stopped.
#[pyfunction]
#[pyo3(signature = (graph, config, settings, out, watch, *, force = false))]
pub fn train(
    py: Python<'_>,
    graph: Option<Py<Graph>>,
    config: Option<PathBuf>,
    settings: Vec<String>,
    out: PathBuf,
    watch: Py<PyAny>,
    force: bool,
) -> PyResult<bool> {
    may_compute()?;
    let (members, config) = configured(config.as_deref(), &settings)?;
    run(py, graph, config, watch, Options { out: Some(out), force, members, ..Options::default() })
}

/// Goes on with the run in a folder, as the program does, with workers as threads of this process.
#[pyfunction]
#[pyo3(signature = (graph, folder, settings, watch))]
pub fn resume(
    py: Python<'_>,
    graph: Option<Py<Graph>>,
    folder: PathBuf,
    settings: Vec<String>,
    watch: Py<PyAny>,
) -> PyResult<bool> {
    may_compute()?;
    let members = codec::members().map_err(error::of)?;
    let Resumed { config, changes, .. } = members.resumed(&folder, &settings).map_err(error::of)?;
    run(py, graph, config, watch, Options { out: Some(folder), resume: true, changes, members, ..Options::default() })
}

/// What names stand for, and the configuration of a file and of what is set over it.
fn configured(file: Option<&Path>, settings: &[String]) -> PyResult<(Members, Config)> {
    let members = codec::members().map_err(error::of)?;
    let config = file.map_or_else(|| members.parse("", settings), |path| members.load(path, settings));
    Ok((members, config.map_err(error::of)?))
}

/// Runs; whether the run was stopped.
fn run(
    py: Python<'_>,
    graph: Option<Py<Graph>>,
    mut config: Config,
    watch: Py<PyAny>,
    options: Options,
) -> PyResult<bool> {
    if let Some(graph) = &graph {
        config.data = in_memory(&config.data, graph.get());
    }
    let data = match graph.as_ref().map(Py::get) {
        None => Data::Configured,
        Some(Graph { dataset, roles, .. }) => {
            let (dataset, roles) = (dataset.clone(), roles.clone());
            let prepared = py.detach(|| prepared_of(dataset, roles, &config.data)).map_err(error::of)?;
            for note in &prepared.notes {
                watch.call1(py, ("note", note))?;
            }
            Data::Dataset(Box::new(prepared.dataset), prepared.split)
        }
    };
    let raised = Arc::new(Mutex::new(None));
    let observer = Box::new(Told { watch, raised: raised.clone() });
    let options = Options { observer, ..options };
    let (ended, signal) = watched(py, options, move |options| match config.transport.kind {
        TransportKind::Mpi => as_worker(&config, options),
        _ => laconic_train::train(&config, data, options).map(|run| run.summary.interrupted),
    })?;
    let raised = raised.lock().ok().and_then(|mut raised| raised.take());
    if let Some(error) = raised.or(signal) {
        return Err(error);
    }
    ended.map_err(error::of)
}

/// Runs the one worker of this process of an MPI job; whether the run was stopped, as far as this worker reports it.
#[cfg(feature = "mpi")]
fn as_worker(config: &Config, options: Options) -> Result<bool, TrainError> {
    Ok(laconic_train::run::run_mpi(config, options)?.summary.is_some_and(|summary| summary.interrupted))
}

#[cfg(not(feature = "mpi"))]
fn as_worker(_config: &Config, _options: Options) -> Result<bool, TrainError> {
    let how = "pip install . --config-settings build-args=--features=mpi makes one with it";
    Err(TrainError::config(format!("transport.kind = \"mpi\": this package was built without MPI; {how}")))
}

/// How the data of a graph in memory are read: as its file, if it has one, and otherwise as what the graph is saved as.
/// What becomes of them then is as it was asked for.
fn in_memory(asked: &DataConfig, graph: &Graph) -> DataConfig {
    DataConfig {
        typed: graph.is_typed(),
        keep_self_loops: graph.keeps_self_loops(),
        path: graph.source.clone().unwrap_or_default(),
        split: asked.split.clone(),
        split_index: asked.split_index,
        features: asked.features,
        inductive: asked.inductive,
        ..DataConfig::default()
    }
}

/// What comes of something long in a thread of its own, and the signal that has stopped it: a first one stops it with
/// the round, a second one at once.
fn watched<T: Send + 'static>(
    py: Python<'_>,
    options: Options,
    work: impl FnOnce(Options) -> Result<T, TrainError> + Send + 'static,
) -> PyResult<(Result<T, TrainError>, Option<PyErr>)> {
    let (interrupt, abort) = (options.interrupt.clone(), options.abort.clone());
    let (says, hears) = channel();
    let works = std::thread::Builder::new().name("laconic".to_owned());
    let works = works.spawn(move || {
        // Nobody listens any more only if the interpreter has gone.
        let _ = says.send(work(options));
    })?;
    // One end of a channel may not be shared, which leaving the interpreter asks for.
    let hears = Mutex::new(hears);
    let next = || hears.lock().map_or(Err(RecvTimeoutError::Disconnected), |hears| hears.recv_timeout(LOOK_EVERY));
    let panicked = || PyRuntimeError::new_err("the run panicked");
    let mut signal = None;
    let ended = loop {
        match py.detach(next) {
            Ok(ended) => break ended,
            Err(RecvTimeoutError::Disconnected) => return Err(panicked()),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals() {
                    interrupt.store(true, Ordering::Relaxed);
                    abort.fetch_or(signal.is_some(), Ordering::Relaxed);
                    signal.get_or_insert(error);
                }
            }
        }
    };
    py.detach(|| works.join()).map_err(|_| panicked())?;
    Ok((ended, signal))
}

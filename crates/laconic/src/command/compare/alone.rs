//! A run in a process of its own, so that the memory it is charged with is its own.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use laconic_graph::part::{open_meta, open_part};
use laconic_train::{Config, Options, TrainError, train};
use serde::{Deserialize, Serialize};

use crate::command::child::{Child, Failure, LOOK_EVERY, answer_parent, task_of_parent};
use crate::command::signals::Signals;
use crate::output::Output;
use crate::progress::Progress;

/// The command that a child is started with; no user needs it.
pub const COMMAND: &str = "compare-run";

/// What a child is to do.
#[derive(Serialize, Deserialize)]
pub struct Task {
    /// The run's configuration.
    pub config: Config,
    /// A folder with the parts to train on.
    pub parts: PathBuf,
    /// Whether to go on from the checkpoint.
    pub resume: bool,
    /// Whether to start in too little memory.
    pub force: bool,
    /// What the progress bar is called.
    pub name: String,
}

/// How it ended.
#[derive(Serialize, Deserialize)]
enum Ended {
    Done,
    Interrupted,
    Failed { text: String, code: u8 },
}

/// Runs the task in a child; `false` where it was stopped.
pub fn run(task: &Task, signals: &Signals, told: &Output) -> Result<bool> {
    let mut child = Child::start(COMMAND, task, told).context("cannot start the process of a run")?;
    let status = loop {
        if signals.abort.load(Ordering::Relaxed) {
            child.kill();
        }
        if signals.interrupt.load(Ordering::Relaxed) {
            child.ask_to_stop();
        }
        if let Some(status) = child.status()? {
            break status;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    match child.answer() {
        Some(Ended::Done) => Ok(true),
        Some(Ended::Interrupted) => Ok(false),
        Some(Ended::Failed { text, code }) => Err(Failure { text, code }.into()),
        None => bail!("its process ended without a word: {status}"),
    }
}

/// The child: reads its task, trains, and says how it ended.
pub fn child(output: &Output) -> Result<u8> {
    let signals = Signals::install(false)?;
    let task = task_of_parent(&signals)?;
    let ended = match train_task(task, &signals, output) {
        Ok(true) => Ended::Interrupted,
        Ok(false) => Ended::Done,
        Err(error) => Ended::Failed { text: error.to_string(), code: error.exit_code() },
    };
    answer_parent(&ended)?;
    Ok(0)
}

/// Whether the run was interrupted.
fn train_task(task: Task, signals: &Signals, output: &Output) -> Result<bool, TrainError> {
    let Task { config, parts, resume, force, name } = task;
    let count = open_meta(&parts)?.parts;
    let parts = (0..count).map(|index| open_part(&parts, index)).collect::<Result<Vec<_>, _>>()?;
    let options = Options {
        out: Some(config.out.dir.clone()),
        resume,
        interrupt: signals.interrupt.clone(),
        abort: signals.abort.clone(),
        observer: Box::new(Progress::of_one(output, name)),
        force,
        ..Options::default()
    };
    Ok(train(&config, parts, options)?.summary.interrupted)
}

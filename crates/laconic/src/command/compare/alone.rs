//! A run in a process of its own, so that the memory it is charged with is its own.
//!
//! The parent writes one line of JSON to the child's standard input and reads one from its standard output. That the
//! input ends asks the child to stop after the round, whether the parent wants so or is gone.

use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use laconic_graph::part::{open_meta, open_part};
use laconic_train::{Config, Options, TrainError, train};
use serde::{Deserialize, Serialize};

use crate::command::signals::Signals;
use crate::output::Output;
use crate::progress::Progress;

/// The command that a child is started with; no user needs it.
pub const COMMAND: &str = "compare-run";

/// How often the parent looks whether the child has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

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

/// The error of a child, with its exit code.
#[derive(Debug)]
pub struct Failure {
    text: String,
    /// The program's exit code for it.
    pub code: u8,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// Runs the task in a child; `false` where it was stopped.
pub fn run(task: &Task, signals: &Signals, told: &Output) -> Result<bool> {
    let mut child = start(told).context("cannot start the process of a run")?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (mut input, mut output) = input.zip(output).context("a process without standard input and output")?;
    let line = serde_json::to_string(task)? + "\n";
    // One that cannot read has ended, which is seen below.
    let _ = input.write_all(line.as_bytes());
    let mut input = Some(input);
    let read = std::thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let status = loop {
        if signals.abort.load(Ordering::Relaxed) {
            let _ = child.kill();
        }
        if signals.interrupt.load(Ordering::Relaxed) {
            input = None;
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    drop(input);
    let text = read.join().ok().and_then(std::io::Result::ok).unwrap_or_default();
    match serde_json::from_str(&text) {
        Ok(Ended::Done) => Ok(true),
        Ok(Ended::Interrupted) => Ok(false),
        Ok(Ended::Failed { text, code }) => Err(Failure { text, code }.into()),
        Err(_) => bail!("its process ended without a word: {status}"),
    }
}

fn start(told: &Output) -> std::io::Result<Child> {
    // This very program, also where another has taken its place on disk since.
    let own = Path::new("/proc/self/exe");
    let program = if own.exists() { own.to_owned() } else { std::env::current_exe()? };
    let mut command = Command::new(program);
    let every = told.every().as_secs_f64().to_string();
    command
        .arg(COMMAND)
        .args(told.is_quiet().then_some("--quiet"))
        .args(["--log-every", &every])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}

/// The child: reads its task, trains, and says how it ended.
pub fn child(output: &Output) -> Result<u8> {
    let signals = Signals::install(false)?;
    let mut line = String::new();
    let mut input = std::io::stdin().lock();
    input.read_line(&mut line).context("standard input")?;
    drop(input);
    let task: Task = serde_json::from_str(&line).context("expected the task of a comparison on standard input")?;
    watch(signals.interrupt.clone());
    let ended = match train_task(task, &signals, output) {
        Ok(true) => Ended::Interrupted,
        Ok(false) => Ended::Done,
        Err(error) => Ended::Failed { text: error.to_string(), code: error.exit_code() },
    };
    println!("{}", serde_json::to_string(&ended)?);
    Ok(0)
}

/// Asks to stop when the parent says so, or is gone.
fn watch(interrupt: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        interrupt.store(true, Ordering::Relaxed);
    });
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

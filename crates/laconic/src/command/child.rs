//! This very program in processes of its own, each with one task.
//!
//! The parent writes one line of JSON to a child's standard input and reads one from its standard output. That the
//! input ends asks the child to stop after the round, whether the parent wants so or is gone.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::signals::Signals;
use crate::output::Output;
use crate::sign::SIGN;
use crate::typed::again;

/// How often a parent looks whether a child has ended.
pub const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The error of a child, with its exit code.
#[derive(Debug)]
pub struct Failure {
    /// What went wrong.
    pub text: String,
    /// The program's exit code for it.
    pub code: u8,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// A child at work. Dropped before it has ended, it is asked to stop and left alone.
pub struct Child {
    process: std::process::Child,
    input: Option<ChildStdin>,
    said: Option<JoinHandle<std::io::Result<String>>>,
    /// The last sign of life, and when it came; at first that it was started.
    sign: Arc<Mutex<(String, Instant)>>,
}

impl Child {
    /// Starts a child with this task. Signals of the terminal go to the parent alone, which passes on what they ask.
    pub fn start(command: &str, task: &impl Serialize, told: &Output) -> Result<Child> {
        let mut process = spawn(command, told)?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let (mut input, output) = input.zip(output).context("a process without standard input and output")?;
        let line = serde_json::to_string(task)? + "\n";
        // One that cannot read has ended, which is seen later.
        let _ = input.write_all(line.as_bytes());
        let sign = Arc::new(Mutex::new((String::new(), Instant::now())));
        let last = sign.clone();
        let read = move || {
            let mut text = String::new();
            for line in BufReader::new(output).lines() {
                let line = line?;
                match line.strip_prefix(SIGN) {
                    Some(what) => {
                        *last.lock().unwrap_or_else(PoisonError::into_inner) = (what.to_owned(), Instant::now());
                    }
                    None => text += &line,
                }
            }
            Ok(text)
        };
        Ok(Child { process, input: Some(input), said: Some(std::thread::spawn(read)), sign })
    }

    /// The last sign of life, empty where none has come, and how long ago it came, or the process was started.
    pub fn sign(&self) -> (String, Duration) {
        let sign = self.sign.lock().unwrap_or_else(PoisonError::into_inner);
        (sign.0.clone(), sign.1.elapsed())
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// How it has ended, if it has.
    pub fn status(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Asks it to stop after the round.
    pub fn ask_to_stop(&mut self) {
        self.input = None;
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        // One that has ended needs no end.
        let _ = self.process.kill();
    }

    /// What it said before it ended; `None` if that is nothing, or no such answer.
    pub fn answer<T: DeserializeOwned>(&mut self) -> Option<T> {
        let text = self.said.take()?.join().ok()?.ok()?;
        serde_json::from_str(&text).ok()
    }
}

fn spawn(command: &str, told: &Output) -> std::io::Result<std::process::Child> {
    let mut process = match again() {
        Some([program, words @ ..]) => {
            let mut process = Command::new(program);
            process.args(words);
            process
        }
        // This very program, also where another has taken its place on disk since.
        _ => {
            let own = Path::new("/proc/self/exe");
            Command::new(if own.exists() { own.to_owned() } else { std::env::current_exe()? })
        }
    };
    let every = told.every().as_secs_f64().to_string();
    process.arg(command).args(told.is_quiet().then_some("--quiet")).args(["--log-every", &every]);
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        process.process_group(0);
        if again().is_none() {
            process.arg0("laconic");
        }
    }
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
}

/// The child's side: its task. From then on the parent can ask it to stop.
pub fn task_of_parent<T: DeserializeOwned>(signals: &Signals) -> Result<T> {
    let mut line = String::new();
    let mut input = std::io::stdin().lock();
    input.read_line(&mut line).context("standard input")?;
    drop(input);
    let task = serde_json::from_str(&line).context("expected a task on standard input")?;
    watch(signals.interrupt.clone());
    Ok(task)
}

/// The child's side: how it ended. A parent that is gone reads nothing; whether it is there.
pub fn answer_parent(ended: &impl Serialize) -> Result<bool> {
    let line = serde_json::to_string(ended)? + "\n";
    match std::io::stdout().write_all(line.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.context("standard output").map(|()| true),
    }
}

/// Asks to stop when the parent says so, or is gone.
fn watch(interrupt: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        interrupt.store(true, Ordering::Relaxed);
    });
}

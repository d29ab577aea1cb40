//! What goes where: results for machines on standard output, words for people on standard error.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use crate::visible::visible;
use crate::waiting::{Ticker, Waiting};

/// How often nothing but a line says that something is still at work, at most.
pub const WAITING_MIN: Duration = Duration::from_millis(100);

/// The two streams. Copies share the one document.
#[derive(Clone)]
pub struct Output {
    json: bool,
    quiet: bool,
    every: Duration,
    /// Whether standard output has its one document.
    has_result: Arc<AtomicBool>,
}

/// An error: the only document on standard output where there is no result.
#[derive(Serialize, JsonSchema)]
pub struct Failed<'a> {
    error: Reason<'a>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reason<'a> {
    /// The exit code, as `laconic --help` lists them.
    code: u8,
    /// `usage`, `configuration`, `data`, `network`, `file`, `divergence`, `policy`, `program` or `stopped`.
    kind: &'a str,
    /// What people read.
    message: &'a str,
}

impl Output {
    /// `json`: the result as JSON on standard output; `quiet`: nothing but errors on standard error; `every`: the time
    /// between two lines about something long where there is no terminal.
    pub fn new(json: bool, quiet: bool, every: Duration) -> Output {
        Output { json, quiet, every, has_result: Arc::default() }
    }

    /// Whether progress bars make sense.
    pub fn is_lively(&self) -> bool {
        !self.quiet && std::io::stderr().is_terminal()
    }

    /// Whether people want to read along.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The time between two lines about something long where there is no terminal.
    pub fn every(&self) -> Duration {
        self.every
    }

    /// Says something to people.
    pub fn say(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            say(&text.to_string());
        }
    }

    /// Says what begins now and may take long, and again every so often until the answer is dropped.
    pub fn begins(&self, what: impl std::fmt::Display) -> Waiting {
        self.say(&what);
        match self.quiet {
            true => Waiting::nothing(),
            false => Waiting::new(&what.to_string(), self.every.max(WAITING_MIN), |line| say(&line)),
        }
    }

    /// Breaks long silences of a command that began at `start`; none where nothing is to be said.
    pub fn ticker(&self, start: Instant) -> Option<Ticker> {
        (!self.quiet).then(|| Ticker::new(start, self.every.max(WAITING_MIN), |line| say(&line)))
    }

    /// The result: as text, or as JSON where that was asked for.
    pub fn result(&self, text: impl std::fmt::Display, json: &impl Serialize) -> anyhow::Result<()> {
        if self.json {
            return self.document(json);
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", visible(&text.to_string()))?;
        Ok(out.flush()?)
    }

    /// What went wrong, to people and, where that was asked for, as JSON. Says nothing to machines that have a result
    /// already, so that they always read one document.
    pub fn failed(&self, (code, kind): (u8, &str), message: &str) {
        say(&format!("laconic: {message}"));
        self.no_result((code, kind), message);
    }

    /// Says to machines alone why there is no result, if there is none.
    pub fn no_result(&self, (code, kind): (u8, &str), message: &str) {
        if self.json && !self.has_result.load(Ordering::Relaxed) {
            // Who has closed standard output reads nothing.
            let _ = self.document(&Failed { error: Reason { code, kind, message } });
        }
    }

    fn document(&self, json: &impl Serialize) -> anyhow::Result<()> {
        self.has_result.store(true, Ordering::Relaxed);
        let mut out = std::io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, json)?;
        writeln!(out)?;
        Ok(out.flush()?)
    }
}

/// A line on standard error, which may be closed: that is no reason to stop working.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", visible(text));
}

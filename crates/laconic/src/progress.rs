//! What a person sees of a run while it goes on.

use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use laconic_train::config::TransportKind;
use laconic_train::{Config, Observer, RoundReport};
use laconic_wire::PerKind;

use crate::bytes::human_bytes;
use crate::output::Output;
use crate::visible::visible;

/// A progress bar on a terminal; elsewhere a line now and then.
pub struct Progress {
    name: String,
    quiet: bool,
    lively: bool,
    bar: Option<ProgressBar>,
    last_line: Instant,
    rounds: u32,
    /// Whose memory is predicted.
    whose: String,
}

/// How often a line is printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

impl Progress {
    /// Progress for this output.
    pub fn new(output: &Output) -> Progress {
        let (quiet, lively) = (output.is_quiet(), output.is_lively());
        Progress {
            name: String::new(),
            quiet,
            lively,
            bar: None,
            last_line: Instant::now(),
            rounds: 0,
            whose: String::new(),
        }
    }

    /// A progress bar with a name and no words.
    pub fn bar_only(output: &Output, name: impl Into<String>) -> Progress {
        Progress { quiet: true, name: name.into(), ..Progress::new(output) }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.println(visible(text)),
            None => Output::new(false, false).say(text),
        }
    }
}

impl Observer for Progress {
    fn started(&mut self, config: &Config, workers: usize, moved: Option<&Path>) {
        self.say(config.to_toml().unwrap_or_default().trim_end());
        if let Some(moved) = moved {
            self.say(&format!("an earlier run was moved to {}", moved.display()));
        }
        self.say(&format!("{workers} workers"));
        let shares = config.transport.kind == TransportKind::Threads && workers > 1;
        self.whose = if shares { format!("{workers} workers") } else { "worker 0".to_owned() };
    }

    fn warned(&mut self, what: &str) {
        self.say(&format!("warning: {what}"));
    }

    fn noted(&mut self, note: &str) {
        self.say(&format!("note: {note}"));
    }

    fn predicted(&mut self, by_kind: &PerKind<u64>, memory: u64, rounds: u32) {
        let total: u64 = by_kind.iter().map(|(_, bytes)| bytes).sum();
        let named = by_kind.iter().filter(|(_, bytes)| **bytes > 0);
        let parts: Vec<String> =
            named.map(|(kind, bytes)| format!("{} {}", kind.name(), human_bytes(*bytes))).collect();
        self.say(&format!("predicted: {} ({})", human_bytes(total), parts.join(", ")));
        self.say(&format!("predicted: {} of memory for {}, {rounds} rounds", human_bytes(memory), self.whose));
        self.rounds = rounds;
        if self.lively {
            let bar = ProgressBar::new(rounds.into());
            let style = "{elapsed_precise} [{bar:30}] {pos}/{len} {msg} eta {eta}";
            bar.set_style(ProgressStyle::with_template(style).expect("the template is fixed").progress_chars("=> "));
            self.bar = Some(bar);
        }
    }

    fn round(&mut self, report: &RoundReport) {
        let figure = |scores: &std::collections::BTreeMap<String, f64>| {
            scores.iter().filter(|(name, _)| *name != "loss").map(|(n, v)| format!("{n} {v:.4}")).next()
        };
        let val = report.scores.as_ref().and_then(|scores| figure(&scores.val)).unwrap_or_default();
        let message = format!("{} stage {} loss {:.4} val {val}", self.name, report.stage, report.loss);
        if let Some(bar) = &self.bar {
            bar.set_position(report.round.into());
            bar.set_message(message);
            if report.round == self.rounds {
                bar.finish_and_clear();
            }
        } else if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            self.say(&format!("round {}/{} {message}", report.round, self.rounds));
        }
    }
}

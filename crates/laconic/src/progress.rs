//! What a person sees of a run while it goes on.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use laconic_train::config::{AggregatorPlace, TransportKind};
use laconic_train::record::observer::Stand;
use laconic_train::{Config, Members, Observer, RoundReport};
use laconic_wire::PerKind;

use crate::bytes::{figure, human_bytes, plural};
use crate::output::{Output, WAITING_MIN, say};
use crate::sign;
use crate::visible::visible;
use crate::waiting::{Ticker, Waiting};

/// A progress bar on a terminal; elsewhere a line at the first round, at the first of each stage, at the last, and
/// every so often in between.
pub struct Progress {
    /// What comes before each line, for a run that is one of several.
    name: String,
    quiet: bool,
    lively: bool,
    every: Duration,
    /// What is under way before the run starts.
    waiting: Option<Waiting>,
    bar: Option<ProgressBar>,
    /// Breaks a long silence.
    ticker: Option<Ticker>,
    /// When the command began: what its lines count from.
    start: Instant,
    /// When this start's first round ended, and which it was.
    first: Option<(Instant, u32)>,
    last_line: Instant,
    /// Rounds of each stage.
    stages: Vec<u32>,
    /// The stage of the last round.
    stage: Option<usize>,
    /// What had been sent when that was last known.
    sent: Option<u64>,
    /// The last validation figure.
    val: String,
    /// Whose memory is predicted.
    whose: String,
    /// What a round is called: independent trainers have means.
    unit: &'static str,
    /// Where a parent wants signs of life: the last that was given, and when.
    signs: Option<(Option<Stand>, Instant)>,
}

impl Progress {
    /// Progress of a run, of which `waiting` says before it starts that it will.
    pub fn new(output: &Output, waiting: Waiting) -> Progress {
        Progress {
            name: String::new(),
            quiet: output.is_quiet(),
            lively: output.is_lively(),
            every: output.every(),
            waiting: Some(waiting),
            bar: None,
            ticker: None,
            start: Instant::now(),
            first: None,
            last_line: Instant::now(),
            stages: Vec::new(),
            stage: None,
            sent: None,
            val: String::new(),
            whose: String::new(),
            unit: "round",
            signs: None,
        }
    }

    /// The same in a process whose parent wants signs of life.
    #[must_use]
    pub fn with_signs(self) -> Progress {
        Progress { signs: Some((None, Instant::now())), ..self }
    }

    /// Progress of one of several runs: rounds alone, under the run's name.
    pub fn of_one(output: &Output, name: impl Into<String>) -> Progress {
        Progress { name: name.into(), ..Progress::new(output, Waiting::nothing()) }
    }

    fn say(&self, text: &str) {
        self.ticker.iter().for_each(Ticker::said);
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.println(visible(text)),
            None => say(text),
        }
    }

    /// Says something about the whole run, unless it is one of several.
    fn introduce(&self, text: &str) {
        if self.name.is_empty() {
            self.say(text);
        }
    }

    fn rounds(&self) -> u32 {
        self.stages.iter().sum()
    }

    /// Seconds since the command began, and to come if rounds go on as they went.
    fn seconds(&mut self, round: u32) -> (f64, f64) {
        let &mut (since, first) = self.first.get_or_insert_with(|| (Instant::now(), round));
        let each = if round > first { since.elapsed().as_secs_f64() / f64::from(round - first) } else { 0.0 };
        (self.start.elapsed().as_secs_f64(), each * f64::from(self.rounds().saturating_sub(round)))
    }

    /// What a line about this run begins with, where it is one of several.
    fn named(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!("{}: ", self.name) }
    }

    /// Says from now on, where nothing else is said for long, that this is under way.
    fn is_at(&mut self, what: String) {
        if self.quiet || self.lively {
            return;
        }
        let (start, every, name) = (self.start, self.every.max(WAITING_MIN), self.named());
        let ticker = || Ticker::new(start, every, move |line| say(&format!("{name}{line}")));
        self.ticker.get_or_insert_with(ticker).at(what);
    }

    fn is_in_round(&mut self, round: u32) {
        let of = if self.rounds() > 0 { format!(" of {}", self.rounds()) } else { String::new() };
        self.is_at(format!("in {} {round}{of}", self.unit));
    }

    fn line(&mut self, report: &RoundReport) -> String {
        let (so_far, to_come) = self.seconds(report.round);
        let name = self.named();
        let stage = match self.stages.len() {
            0 | 1 => String::new(),
            stages => format!(", stage {} of {stages}", report.stage + 1),
        };
        let val = if self.val.is_empty() { String::new() } else { format!(", val {}", self.val) };
        let sent = self.sent.map(|sent| format!(", sent {}", human_bytes(sent))).unwrap_or_default();
        let eta = if to_come > 0.0 { format!(", eta {to_come:.0} s") } else { String::new() };
        let (unit, round, loss) = (self.unit, report.round, report.loss);
        let of = if self.rounds() > 0 { format!(" of {}", self.rounds()) } else { String::new() };
        format!("{name}{unit} {round}{of}{stage}, loss {loss:.4}{val}{sent}, {so_far:.0} s{eta}")
    }
}

impl Observer for Progress {
    fn watches(&mut self, rank: u32) {
        if rank > 0 {
            // The first of a run's processes speaks for all.
            (self.quiet, self.lively, self.waiting) = (true, false, None);
        }
    }

    fn started(&mut self, config: &Config, workers: usize, moved: Option<&Path>) {
        self.waiting = None;
        self.is_at("preparing the first round".to_owned());
        if let Some(moved) = moved {
            self.introduce(&format!("an earlier run was moved to {}", moved.display()));
        }
        self.introduce(&format!("configuration: {}", config.out.dir.join("config.toml").display()));
        let shares = config.transport.kind != TransportKind::Processes && config.transport.kind != TransportKind::Mpi;
        if Members::default().has_trainers(config).unwrap_or(false) {
            self.unit = "mean";
            let all = format!("{} and their aggregator", plural(workers as u64, "trainer"));
            self.introduce(&all);
            self.whose = match (shares, config.schedule.aggregator) {
                (true, _) => all,
                (false, AggregatorPlace::Own) => "the aggregator".to_owned(),
                (false, AggregatorPlace::Part(part)) => format!("the aggregator with the trainer of part {part}"),
            };
            return;
        }
        self.introduce(&plural(workers as u64, "worker"));
        self.whose = if shares && workers > 1 { format!("{workers} workers") } else { "worker 0".to_owned() };
    }

    fn stands(&mut self, at: Stand) {
        let Some((last, given)) = &mut self.signs else { return };
        if *last != Some(at) || given.elapsed() > sign::EVERY {
            (*last, *given) = (Some(at), Instant::now());
            sign::give(&format!("{at:?}"));
        }
    }

    fn warned(&mut self, what: &str) {
        self.introduce(&format!("warning: {what}"));
    }

    fn noted(&mut self, note: &str) {
        self.introduce(&format!("note: {note}"));
    }

    fn stages(&mut self, rounds: &[u32]) {
        self.stages = rounds.to_vec();
    }

    fn predicted(&mut self, by_kind: &PerKind<u64>, memory: u64, rounds: u32) {
        let total: u64 = by_kind.iter().map(|(_, bytes)| bytes).sum();
        let named = by_kind.iter().filter(|(_, bytes)| **bytes > 0);
        let parts: Vec<String> =
            named.map(|(kind, bytes)| format!("{} {}", kind.name(), human_bytes(*bytes))).collect();
        let (memory, whose, unit) = (human_bytes(memory), &self.whose, self.unit);
        if self.unit == "mean" && rounds == 0 {
            self.introduce("predicted: neither means nor bytes, as one of interval and limit is a time and one is not");
            self.introduce(&format!("predicted: {memory} of memory for {whose}"));
        } else {
            self.introduce(&match parts.is_empty() {
                true => "predicted: nothing crosses".to_owned(),
                false => format!("predicted: {} ({})", human_bytes(total), parts.join(", ")),
            });
            self.introduce(&format!("predicted: {memory} of memory for {whose}, {rounds} {unit}s"));
        }
        self.is_in_round(1);
        if self.lively {
            let (bar, style) = match rounds {
                0 => (ProgressBar::no_length(), "{elapsed_precise} {pos} {msg}"),
                _ => (ProgressBar::new(rounds.into()), "{elapsed_precise} [{bar:30}] {pos}/{len} {msg} eta {eta}"),
            };
            let bar = bar.with_finish(ProgressFinish::AndClear);
            bar.set_style(ProgressStyle::with_template(style).expect("the template is fixed").progress_chars("=> "));
            self.bar = Some(bar);
        }
    }

    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        if let Some(scores) = &report.scores {
            let mut figures = scores.val.iter().filter(|(name, _)| *name != "loss");
            self.val = figures.next().map(|(name, value)| format!("{name} {}", figure(*value))).unwrap_or_default();
        }
        self.sent = report.bytes.or(self.sent);
        let begins = self.stage.replace(report.stage) != Some(report.stage);
        let is_last = report.round == self.rounds();
        if let Some(bar) = &self.bar {
            bar.set_position(report.round.into());
            bar.set_message(format!("{} stage {} loss {:.4} val {}", self.name, report.stage, report.loss, self.val));
            if is_last {
                bar.finish_and_clear();
            }
        } else if begins || is_last || self.last_line.elapsed() >= self.every {
            self.last_line = Instant::now();
            let line = self.line(report);
            self.say(&line);
        }
        match is_last {
            true => self.is_at("writing what the run leaves".to_owned()),
            false => self.is_in_round(report.round + 1),
        }
        ControlFlow::Continue(())
    }
}

//! A real training run, watched.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use laconic_graph::memory;
use laconic_graph::part::Part;
use laconic_train::forecast::memory::peak_bytes;
use laconic_train::{Config, Observer, Options, RoundReport};
use laconic_wire::{Ledger, LinkShape, PerKind};

use super::measure::Times;
use crate::output::Output;
use crate::progress::Progress;

/// What a run came to.
pub struct Trained {
    /// The rounds of each stage that count.
    pub stages: Vec<Rounds>,
    /// What it took besides all rounds.
    pub start_seconds: f64,
    /// The largest resident size since it began, where the system counts anew; else since the program began.
    pub peak_bytes: u64,
    pub predicted_bytes: u64,
    ledgers: Vec<Ledger>,
}

/// Rounds of one stage.
pub struct Rounds {
    pub times: Times,
    pub worst: f64,
    /// The number of the last one, over all stages.
    last: u32,
}

/// Stage, number and seconds of each round.
type Seen = Arc<Mutex<Vec<(usize, u32, f64)>>>;

/// Hands on what it is told, and notes how long rounds take.
struct Watch {
    shown: Progress,
    seen: Seen,
}

impl Observer for Watch {
    fn started(&mut self, config: &Config, workers: usize, moved: Option<&Path>) {
        self.shown.started(config, workers, moved);
    }

    fn noted(&mut self, note: &str) {
        self.shown.noted(note);
    }

    fn warned(&mut self, what: &str) {
        self.shown.warned(what);
    }

    fn stages(&mut self, rounds: &[u32]) {
        self.shown.stages(rounds);
    }

    fn predicted(&mut self, by_kind: &PerKind<u64>, memory: u64, rounds: u32) {
        self.shown.predicted(by_kind, memory, rounds);
    }

    fn round(&mut self, report: &RoundReport) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push((report.stage, report.round, report.seconds));
        drop(seen);
        self.shown.round(report);
    }
}

/// Lets Linux count the largest resident size from here on; where it does not, all that was before counts, too.
pub fn count_anew() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Trains on these parts; the first rounds of each stage do not count.
pub fn train(config: &Config, parts: Vec<Part>, first: u32, output: &Output) -> Result<Trained> {
    memory::give_back();
    count_anew();
    let seen = Seen::default();
    let observer = Box::new(Watch { shown: Progress::of_one(output, "epoch"), seen: seen.clone() });
    let run = laconic_train::train(config, parts, Options { observer, ..Options::default() })?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let mut by_stage: BTreeMap<usize, Vec<(u32, f64)>> = BTreeMap::new();
    seen.iter().for_each(|&(stage, round, seconds)| by_stage.entry(stage).or_default().push((round, seconds)));
    let all: f64 = seen.iter().map(|(_, _, seconds)| seconds).sum();
    let mut stages = Vec::new();
    for (stage, rounds) in by_stage {
        let steady: Vec<f64> = rounds.iter().skip(first as usize).map(|(_, seconds)| *seconds).collect();
        let worst = steady.iter().copied().fold(0.0, f64::max);
        let (Some(times), Some(&(last, _))) = (Times::of(steady), rounds.last()) else {
            bail!("stage {stage} ended after {} rounds, of which the first {first} do not count", rounds.len())
        };
        stages.push(Rounds { times, worst, last });
    }
    let summary = run.summary;
    let total = summary.seconds.simulated.unwrap_or(summary.seconds.total);
    Ok(Trained {
        stages,
        start_seconds: (total - all).max(0.0),
        peak_bytes: peak_bytes(),
        predicted_bytes: summary.memory.predicted_bytes,
        ledgers: run.ledgers,
    })
}

/// What the busiest worker sends in a round.
pub struct OnLink {
    /// Bytes, framing included.
    pub bytes: u64,
    pub bytes_per_second: f64,
    /// Of all messages to one worker, one after the other.
    pub latency_seconds: f64,
}

impl Trained {
    /// What a round of each stage has to send over this link; nothing without one.
    ///
    /// # Errors
    /// If there is no such link.
    pub fn on_links(&self, link: Option<&str>) -> Result<Vec<Option<OnLink>>> {
        let Some(link) = link else { return Ok(self.stages.iter().map(|_| None).collect()) };
        let LinkShape { latency, bits_per_second } = link.parse::<LinkShape>()?;
        let of_round = |round: u32| {
            let bytes = self.ledgers.iter().map(|ledger| ledger.total_of_round(round).framed).max().unwrap_or(0);
            let messages = self.ledgers.iter().map(|ledger| messages(ledger, round)).max().unwrap_or(0);
            let latency_seconds = messages as f64 * latency.as_secs_f64();
            OnLink { bytes, bytes_per_second: bits_per_second / 8.0, latency_seconds }
        };
        Ok(self.stages.iter().map(|stage| Some(of_round(stage.last)).filter(|link| link.bytes > 0)).collect())
    }
}

/// The most frames that a round sends to one worker.
fn messages(ledger: &Ledger, round: u32) -> u64 {
    let mut by_peer: BTreeMap<_, u64> = BTreeMap::new();
    for (entry, count) in ledger.iter().filter(|(entry, _)| entry.round == round) {
        *by_peer.entry(entry.peer).or_default() += count.frames;
    }
    by_peer.into_values().max().unwrap_or(0)
}

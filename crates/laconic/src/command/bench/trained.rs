//! A real training run, watched.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use laconic_graph::memory;
use laconic_graph::part::Part;
use laconic_train::forecast::memory::peak_bytes;
use laconic_train::schedule::Stage;
use laconic_train::{Config, Observer, Options, RoundReport};
use laconic_wire::{Direction, Kind, Ledger, LinkShape, PerKind};

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
    fn watches(&mut self, rank: u32) {
        self.shown.watches(rank);
    }

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

    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push((report.stage, report.round, report.seconds));
        drop(seen);
        self.shown.round(report)
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

/// What a round sends that goes on without others.
pub struct OnLink {
    /// Bytes of the busiest worker, framing included.
    pub bytes: u64,
    pub bytes_per_second: f64,
    /// Of the exchanges that wait for one another.
    pub latency_seconds: f64,
}

impl Trained {
    /// What a round of each stage has to send over this link; nothing without one.
    ///
    /// # Errors
    /// If there is no such link.
    pub fn on_links(&self, link: Option<&str>, stages: &[Stage]) -> Result<Vec<Option<OnLink>>> {
        let Some(link) = link else { return Ok(self.stages.iter().map(|_| None).collect()) };
        let LinkShape { latency, bits_per_second } = link.parse::<LinkShape>()?;
        let of_round = |(rounds, stage): (&Rounds, &Stage)| {
            // Under the number of the last one stands what the next stage trains on, too.
            let sent: Vec<Sent> =
                self.ledgers.iter().map(|ledger| sent(ledger, rounds.last.saturating_sub(1))).collect();
            let of_worker = |sent: &Sent| sent.values().map(|count| count.framed).sum::<u64>();
            let bytes = sent.iter().map(of_worker).max().unwrap_or(0);
            let latency_seconds = f64::from(in_turn(&sent, stage.late.is_some())) * latency.as_secs_f64();
            OnLink { bytes, bytes_per_second: bits_per_second / 8.0, latency_seconds }
        };
        let rounds = self.stages.iter().zip(stages);
        Ok(rounds.map(|of| Some(of_round(of)).filter(|link| link.bytes > 0)).collect())
    }
}

/// What a worker sends in a round to all others, and the most frames to one of them, by exchange.
type Sent = BTreeMap<(Kind, u16, Direction), Exchange>;

/// An exchange at one worker's end.
#[derive(Debug, Clone, Copy, Default)]
struct Exchange {
    framed: u64,
    /// Frames to one worker, at most.
    frames: u64,
}

/// What training sends in a round; evaluations, checkpoints and agreements are no part of it.
fn sent(ledger: &Ledger, round: u32) -> Sent {
    let trains =
        |kind| matches!(kind, Kind::Features | Kind::Activations | Kind::ActivationGradients) || is_of_model(kind);
    let mut sent = Sent::new();
    for (entry, count) in ledger.iter().filter(|(entry, _)| entry.round == round && trains(entry.kind)) {
        let Exchange { framed, frames } = sent.entry((entry.kind, entry.layer, entry.direction)).or_default();
        (*framed, *frames) = (*framed + count.framed, count.frames.max(*frames));
    }
    sent
}

fn is_of_model(kind: Kind) -> bool {
    matches!(kind, Kind::ParameterGradients | Kind::Parameters)
}

/// How many exchanges of a round wait for one another, at least: those in which all workers have something to send.
/// Frames of one exchange travel side by side. Sums of the model take two, to who adds up and back. Nobody waits for
/// rows that are `late`, and inputs need no other exchange.
fn in_turn(sent: &[Sent], late: bool) -> u32 {
    let Some((first, others)) = sent.split_first() else { return 0 };
    let waits = |kind| is_of_model(kind) || (!late && kind != Kind::Features);
    let turns = |(exchange, of): (&(Kind, u16, Direction), &Exchange)| {
        let all_send = waits(exchange.0) && others.iter().all(|sent| sent.contains_key(exchange));
        let times = if is_of_model(exchange.0) && of.frames > 1 { 2 } else { 1 };
        if all_send { times } else { 0 }
    };
    first.iter().map(turns).sum()
}

#[cfg(test)]
mod tests {
    use laconic_wire::{Count, Entry, Rank};

    use super::*;

    /// Three workers: two layers' rows and their gradients to both others, one layer's from worker 0 alone, a sum of
    /// the model, and what is no part of a round.
    #[test]
    fn frames_to_several_workers_are_one_turn() {
        let ledger = |rank: u32| {
            let mut ledger = Ledger::new();
            let mut enter = |kind, layer, direction, times: u32| {
                for peer in (0..3).filter(|peer| *peer != rank).map(Rank) {
                    for _ in 0..times {
                        ledger.enter(Entry { round: 7, peer, kind, layer, direction }, Count::of(1, 76));
                    }
                }
            };
            for layer in [1, 2] {
                enter(Kind::Activations, layer, Direction::Forward, 1);
                enter(Kind::ActivationGradients, layer, Direction::Reverse, 1);
            }
            enter(Kind::Activations, 3, Direction::Forward, u32::from(rank == 0));
            enter(Kind::ParameterGradients, 0, Direction::Forward, 2);
            enter(Kind::Evaluation, 1, Direction::Forward, 5);
            enter(Kind::Control, 0, Direction::Forward, 5);
            sent(&ledger, 7)
        };
        let all = [0, 1, 2].map(ledger);
        assert_eq!((in_turn(&all, false), in_turn(&all, true), in_turn(&[], false)), (4 + 2, 2, 0));
        // A hundred bytes a frame with its header, to two others.
        let framed = all.each_ref().map(|sent| sent.values().map(|count| count.framed).sum::<u64>());
        assert_eq!(framed, [2 * 100 * (4 + 1 + 2), 2 * 100 * (4 + 2), 2 * 100 * (4 + 2)]);
    }
}

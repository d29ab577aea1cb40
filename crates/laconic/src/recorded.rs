//! A run that is over, read back from its folder, with limits on everything that is read.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use laconic_nn::metric::Metric;
use laconic_train::config::MeansEvaluator;
use laconic_train::record::account::Party;
use laconic_train::record::claim::METRICS;
use laconic_train::record::summary::BytesSummary;
use laconic_train::worker::evaluate::Figures;
use laconic_train::{RoundReport, Summary, TrainError};

use crate::bytes::plural;
use crate::learned::Learned;
use crate::plot::thin;

/// Larger files are refused.
const BYTES_MAX: u64 = 256 << 20;

/// Points of a curve that are kept.
const POINTS_MAX: usize = 2000;

/// Parts whose trainers' stays are kept, and stays of one of them.
const PARTS_MAX: usize = 1024;
const STAYS_MAX: usize = 2000;

/// Everything that a plot needs of a run.
pub struct Recorded {
    /// The text of `summary.json`, parsed.
    pub summary: Summary,
    /// What was learned.
    pub task: Learned,
    /// The metric that chose the best round; `None` where nothing was tested.
    pub metric: Option<String>,
    /// The rounds of `metrics.jsonl`.
    pub curves: Curves,
}

/// A run over its rounds, thinned.
#[derive(Debug, Default, PartialEq)]
pub struct Curves {
    /// Training loss by round.
    pub loss: Vec<(f64, f64)>,
    /// Validation metric by round.
    pub val: Vec<(f64, f64)>,
    /// Training metric by round.
    pub train: Vec<(f64, f64)>,
    /// Loss on validation nodes by round.
    pub val_loss: Vec<(f64, f64)>,
    /// The first round of every stage but the first.
    pub stages: Vec<f64>,
    /// Test metric of the best validation round so far, by bytes sent.
    pub test_by_bytes: Vec<(f64, f64)>,
    /// The same by seconds that rounds took.
    pub test_by_seconds: Vec<(f64, f64)>,
    /// The same by the link model's clock; empty where rounds do not say it.
    pub test_by_clock: Vec<(f64, f64)>,
    /// What judged means of independent trainers are worth: the validation metric, or the negative loss; by the run's
    /// clock and by bytes.
    pub worth: [Vec<(f64, f64)>; 2],
    /// For each part whose trainer took part in means of independent trainers, in which: from and to, both included.
    pub members: BTreeMap<u32, Vec<(u32, u32)>>,
    /// Seconds of all rounds.
    pub seconds: f64,
    /// The clock after the last round.
    pub clock: Option<f64>,
    /// What is added to the clock of a round: the time before the run was resumed.
    clock_before: f64,
}

impl Recorded {
    /// Reads the folder of a run.
    pub fn read(folder: &Path) -> Result<Recorded, TrainError> {
        let path = folder.join("summary.json");
        let text = read_text(&path)?;
        let summary: Summary = serde_json::from_str(&text)
            .map_err(|error| TrainError::file(&path, format!("expected a run's summary: {error}")))?;
        let metric = metric(&summary);
        // Older runs do not say it, and learned classes.
        let task = serde_json::from_value(summary.config["task"]["kind"].clone()).unwrap_or_default();
        let by_loss = summary.config["train"]["select_by"] == "loss";
        let curves = Curves::read(&folder.join(METRICS), metric.as_deref(), by_loss, &summary.bytes)?;
        Ok(Recorded { summary, task, metric, curves })
    }

    /// Which process had to hold the whole graph; `None` where none had to.
    pub fn whole_graph_at(&self) -> Option<&'static str> {
        if let Some(account) = &self.summary.account {
            return Some(account.holds_graph).filter(|holder| *holder != Party::Nobody).map(Party::name);
        }
        // Older programs have written no account.
        let averaging = self.summary.averaging.as_ref();
        match averaging.map(|averaging| averaging.evaluator) {
            Some(MeansEvaluator::Aggregator) => Some("aggregator"),
            // One part is the whole, whoever has it.
            Some(MeansEvaluator::Workers) if self.summary.config["partition"]["parts"] == 1 => Some("worker"),
            None if self.summary.workers == 1 => Some("worker"),
            _ => None,
        }
    }

    /// The test metric of the best round.
    pub fn test(&self) -> Option<f64> {
        self.summary.metrics.scores.test.get(self.metric.as_ref()?).copied().flatten()
    }

    /// The test loss of the best round.
    pub fn test_loss(&self) -> Option<f64> {
        self.summary.metrics.scores.test.get("loss").copied().flatten()
    }

    /// How its graph was cut: `4 parts by multilevel`.
    pub fn partition(&self) -> String {
        let summary = &self.summary;
        let config = &summary.config;
        let is_cut =
            config["data"]["path"].as_str().is_some_and(|path| std::path::Path::new(path).join("meta.json").is_file());
        // One of the workers is the aggregator of independent trainers, of whose parts some may be left out.
        let all = config["partition"]["parts"].as_u64().filter(|_| summary.averaging.is_some());
        let parts = plural(all.unwrap_or(summary.workers.into()), "part");
        match config["partition"]["method"].as_str().filter(|_| !is_cut) {
            Some(method) => format!("{parts} by {method}"),
            None => parts,
        }
    }

    /// How many pairs that are none were drawn for each held-out edge; `None` where the data give them.
    pub fn drawn_negatives(&self) -> Option<u32> {
        self.summary.config["task"]["eval_negatives"].as_u64().and_then(|drawn| u32::try_from(drawn).ok())
    }

    /// Seconds from start to end: the link model's clock, or real time. A resumed run's summary knows its last part
    /// alone; its rounds know all of them, so the larger number is nearer the truth.
    pub fn seconds(&self, by_clock: bool) -> f64 {
        let seconds = &self.summary.seconds;
        if by_clock {
            seconds.simulated.unwrap_or(0.0).max(self.curves.clock.unwrap_or(0.0))
        } else {
            seconds.total.max(self.curves.seconds)
        }
    }
}

/// The metric that chose the best round: the first that was asked for, else the first that is usual of those measured.
fn metric(summary: &Summary) -> Option<String> {
    let measured = &summary.metrics.scores.test;
    let asked = summary.config["train"]["metrics"][0].as_str().filter(|name| measured.contains_key(*name));
    let usual = Metric::ALL.iter().map(|metric| metric.name()).find(|name| measured.contains_key(*name));
    asked.or(usual).map(str::to_owned)
}

impl Curves {
    /// Bytes are those that one start would have sent.
    fn read(path: &Path, metric: Option<&str>, by_loss: bool, sent: &BytesSummary) -> Result<Curves, TrainError> {
        let (mut curves, mut chosen) = (Curves::default(), Chosen { by_loss, best: None });
        let mut read = |number: usize, line: &str| {
            let mut report: RoundReport = serde_json::from_str(line)
                .map_err(|error| TrainError::file(path, format!("line {number}: expected a round: {error}")))?;
            report.bytes = report.bytes.map(|bytes| bytes.saturating_sub(sent.not_straight_until(report.round)));
            curves.enter(&report, &mut chosen, metric.unwrap_or_default());
            Ok(())
        };
        read_lines(path, &mut read)?;
        let all =
            [&mut curves.loss, &mut curves.val, &mut curves.train, &mut curves.val_loss, &mut curves.test_by_bytes];
        let all = all.into_iter().chain(&mut curves.worth);
        for curve in all.chain([&mut curves.test_by_seconds, &mut curves.test_by_clock]) {
            *curve = thin(curve, POINTS_MAX);
        }
        Ok(curves)
    }

    fn enter(&mut self, report: &RoundReport, chosen: &mut Chosen, metric: &str) {
        let round = f64::from(report.round);
        self.seconds += report.seconds;
        let clock = report.clock.map(|clock| self.continue_clock(clock));
        if report.stage > self.stages.len() {
            self.stages.push(round);
        }
        self.loss.push((round, report.loss));
        self.enter_members(report);
        let Some(scores) = &report.scores else { return };
        let of = |figures: &Figures, name: &str| figures.get(name).copied().flatten();
        self.train.extend(of(&scores.train, metric).map(|train| (round, train)));
        let (val, val_loss) = (of(&scores.val, metric), of(&scores.val, "loss"));
        self.val_loss.extend(val_loss.map(|loss| (round, loss)));
        if let Some(val) = val {
            self.val.push((round, val));
        }
        // As training chooses: by the loss, too, where the metric is not defined.
        let judged = val.filter(|_| !chosen.by_loss).or(val_loss.map(|loss| -loss));
        if let Some(judged) = judged.filter(|_| !report.members.is_empty()) {
            self.worth[0].extend(clock.map(|clock| (clock, judged)));
            self.worth[1].extend(report.bytes.map(|bytes| (bytes as f64, judged)));
        }
        let Some(test) = of(&scores.test, metric) else { return };
        let best = chosen.after(judged, test);
        if let Some(bytes) = report.bytes {
            self.test_by_bytes.push((bytes as f64, best));
        }
        self.test_by_seconds.push((self.seconds, best));
        if let Some(clock) = clock {
            self.test_by_clock.push((clock, best));
        }
    }

    /// Who took part in a mean. Of a part that comes and goes too often, stays that are next to each other become one.
    fn enter_members(&mut self, report: &RoundReport) {
        for part in &report.members {
            if self.members.len() >= PARTS_MAX && !self.members.contains_key(part) {
                continue;
            }
            let stays = self.members.entry(*part).or_default();
            match stays.last_mut() {
                Some((_, to)) if report.round <= to.saturating_add(1) => *to = report.round.max(*to),
                _ => stays.push((report.round, report.round)),
            }
            if stays.len() > STAYS_MAX {
                *stays = stays.chunks(2).map(|pair| (pair[0].0, pair[pair.len() - 1].1)).collect();
            }
        }
    }

    /// The time since the run first started. A resumed run's clock may start anew: then what was before is added.
    fn continue_clock(&mut self, clock: f64) -> f64 {
        let last = self.clock.unwrap_or(0.0);
        if clock + self.clock_before < last {
            self.clock_before = last;
        }
        *self.clock.insert(clock + self.clock_before)
    }
}

/// The best by validation so far, ties to the earlier; the latest where nothing validates. Over stages too: the model
/// that an earlier stage ended with is still there while the next one starts from nothing.
#[derive(Default)]
struct Chosen {
    /// Whether the smallest loss is the best, not the largest metric.
    by_loss: bool,
    best: Option<(Option<f64>, f64)>,
}

impl Chosen {
    /// The test figure of the choice after one more evaluation.
    fn after(&mut self, val: Option<f64>, test: f64) -> f64 {
        let (best_val, best_test) = self.best.unwrap_or((None, test));
        let better = best_val.zip(val).is_none_or(|(old, new)| new > old);
        let best = if better { (val, test) } else { (best_val, best_test) };
        self.best = Some(best);
        best.1
    }
}

/// The text of a file that is not too large.
pub fn read_text(path: &Path) -> Result<String, TrainError> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text).map_err(|source| TrainError::io(path, source))?;
    Ok(text)
}

/// Hands each line of a file that is not too large to `each`, with its number from 1.
pub fn read_lines(path: &Path, each: &mut dyn FnMut(usize, &str) -> Result<(), TrainError>) -> Result<(), TrainError> {
    for (index, line) in BufReader::new(open(path)?).lines().enumerate() {
        each(index + 1, &line.map_err(|source| TrainError::io(path, source))?)?;
    }
    Ok(())
}

/// Opens a file; a file that grows while it is read is cut off at the limit.
fn open(path: &Path) -> Result<impl Read + use<>, TrainError> {
    let io = |source| TrainError::io(path, source);
    let about = std::fs::metadata(path).map_err(io)?;
    if !about.is_file() {
        return Err(TrainError::file(path, "expected a file"));
    }
    if about.len() > BYTES_MAX {
        return Err(TrainError::file(path, format!("expected at most {BYTES_MAX} bytes, found {}", about.len())));
    }
    Ok(std::fs::File::open(path).map_err(io)?.take(BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_shows_the_best_by_validation_so_far_or_the_latest() {
        let mut chosen = Chosen::default();
        let rounds = [(0.5, 0.4), (0.5, 0.9), (0.6, 0.3), (0.1, 0.2), (0.7, 0.8)];
        let figures = rounds.map(|(val, test)| chosen.after(Some(val), test));
        assert_eq!(figures, [0.4, 0.4, 0.3, 0.3, 0.8]);
        let mut chosen = Chosen::default();
        assert_eq!([0.2, 0.1].map(|test| chosen.after(None, test)), [0.2, 0.1]);
    }

    #[test]
    fn the_clock_of_a_resumed_run_goes_on() {
        let mut curves = Curves::default();
        let times = [1.0, 2.5, 0.5, 1.0, 0.25].map(|clock| curves.continue_clock(clock));
        assert_eq!((times, curves.clock), ([1.0, 2.5, 3.0, 3.5, 3.75], Some(3.75)));
    }
}

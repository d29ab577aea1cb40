//! `summary.json`: what other programs read of a run.

use std::collections::BTreeMap;
use std::path::Path;

use laconic_wire::{Count, PerKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::account::Account;
use super::aside::{read_within, write_aside};
use super::card::Card;
use super::digests::digest_text;
use super::parts::{ClassSummary, Confusion, Judged, PartsSummary, Told};
use super::purposes::Purposes;
use super::report::{Seconds, WorkerReport};
use super::traffic::{Earlier, LinkBytes, StartBytes};
use super::trainers::AveragingSummary;
use super::tries::AutoSummary;
use super::verdict;
use crate::config::{Config, MessagesConfig, WIDTHS};
use crate::error::{Result, TrainError};
use crate::fit::choice::fallback;
use crate::fit::stages::Trained;
use crate::plan::Plan;
use crate::worker::evaluate::Scores;
use crate::worker::parts::{PartCounts, Shape};

/// The file in a run's folder.
pub(super) const FILE: &str = "summary.json";

/// `summary.json`: a run in figures, a contract with other programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The program's version.
    pub version: String,
    /// The resolved configuration, section by section.
    #[schemars(with = "Config")]
    pub config: serde_json::Value,
    /// (where somebody held the whole) `blake3:…` of the dataset, as `laconic data info` says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data_digest: String,
    /// (classes that have names) The name of each class, in the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_names: Vec<String>,
    /// (parts that have names) What each part is called, in the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub part_names: Vec<String>,
    /// `train.seed` of the run.
    pub seed: u64,
    /// How many workers there were.
    pub workers: u32,
    /// `transport.kind`: what carried the bytes.
    pub transport: String,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// Rounds done, over all stages.
    pub rounds: u32,
    /// Figures of the best validation round.
    pub metrics: MetricsSummary,
    /// (`train.part_figures`) The figures of the best round of each part alone, for `val` and `test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Judged<PartsSummary>>,
    /// (`train.part_figures`, classes of nodes) What became of each class over all parts, for `val` and `test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Judged<Vec<ClassSummary>>>,
    /// (`train.part_figures`, one class a node, at most 100 classes) Nodes by true class, the row, and by what they
    /// were taken for, the column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confusion: Option<Judged<Confusion>>,
    /// Bytes over all workers, framing included.
    pub bytes: BytesSummary,
    /// Where the time went.
    pub seconds: SecondsSummary,
    /// What it took, in bytes.
    pub memory: MemorySummary,
    /// (values of rows) The share that was sent in so many bits.
    #[serde(default)]
    #[schemars(extend("x-name" = "WIDTH"))]
    pub bits: BTreeMap<String, f64>,
    /// (a budget that chose other codecs) `[messages]` as it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesConfig>,
    /// (something to note) What became of the columns of tables, what is unusual about the data, and what the
    /// configuration asks for and the run had no use for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// (`policy.label_epsilon`) Epsilon of all that was told of a node's label together, for `model.inputs`: it was one
    /// answer. It is not said of models, gradients and rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_epsilon: Option<f64>,
    /// How many, and their digest.
    pub parameters: ParametersSummary,
    /// (independent trainers) How models were averaged; worker 0 is their aggregator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub averaging: Option<AveragingSummary>,
    /// (`messages = "auto"`) The runs that were tried, of which this one was kept; `bytes` are its own alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<AutoSummary>,
    /// (not of older programs) Who saw what, and how often somebody waited: as foreseen for the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

impl Summary {
    /// Writes it into the folder of its run.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub(crate) fn write(&self, out: &Path) -> Result<()> {
        let path = out.join(FILE);
        let text = serde_json::to_string_pretty(self).map_err(|error| TrainError::file(&path, error.to_string()))?;
        write_aside(&path, (text + "\n").as_bytes())
    }

    /// Framed bytes of the reports that workers close the run with; independent trainers send none.
    pub(super) fn bytes_of_reports(&self) -> u64 {
        WorkerReport::of_all(if self.averaging.is_some() { 1 } else { self.workers })
    }
}

/// `metrics`: the figures of the best round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsSummary {
    /// The best round by validation, counted over stages; the figures are those of this round, over all parts
    /// together.
    pub best_round: u32,
    /// Its figures, computed over all parts together.
    #[serde(flatten)]
    pub scores: Scores,
}

/// `bytes`: what all workers sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BytesSummary {
    /// Payload and framing of all workers, counted at the senders.
    pub total: u64,
    /// What was predicted before the run; null where nobody could know it. Of trainers by steps it is raised by a call
    /// of each for every mean where one was late.
    pub predicted: Option<u64>,
    /// Whether the prediction is a bound, because sizes depend on what happens during the run.
    #[serde(default)]
    pub is_bound: bool,
    /// What was predicted, by kind of message.
    #[serde(default)]
    #[schemars(extend("x-name" = "KIND"))]
    pub predicted_by_kind: BTreeMap<String, u64>,
    /// Payload alone, without framing.
    pub payload: u64,
    /// How many frames.
    pub frames: u64,
    /// What the receivers counted; equals `total` unless frames were lost.
    pub received: u64,
    /// Bytes by the kind of message.
    #[schemars(extend("x-name" = "KIND"))]
    pub by_kind: BTreeMap<String, u64>,
    /// Bytes by what they are for.
    #[serde(default)]
    pub by_purpose: Purposes,
    /// What was predicted, by what it is for.
    #[serde(default)]
    pub predicted_by_purpose: Purposes,
    /// Messages that `messages.skip` left out: an empty frame went in place of each.
    #[serde(default)]
    pub skipped: u64,
    /// Rows of other workers that batches (`batch.size`) read, batch by batch.
    #[serde(default)]
    pub rows_read: u64,
    /// Those of them that crossed: the others were kept from batches before (`batch.cache`).
    #[serde(default)]
    pub rows_fetched: u64,
    /// Bytes by sender and receiver.
    pub by_link: Vec<LinkBytes>,
    /// Bytes by the starts of the run: one, and one more each time that it was resumed.
    #[serde(default)]
    pub starts: Vec<StartBytes>,
    /// Bytes of rounds that were sent again because the run had broken off after its last checkpoint, over all starts;
    /// counted in `total` as often as they were sent.
    #[serde(default)]
    pub repeated: u64,
    /// Bytes without a row in `ledger.csv` here: those of workers on other machines, and rows that were removed.
    #[serde(default)]
    pub unlisted: u64,
    /// (unless it was resumed and rows are missing here, trainers have several stages, or a run whose trainers
    /// exchange rows was killed) What one start would have sent: `total` without what was `repeated`, and without what
    /// later starts said `again`. Batches that fetch rows, links and trainers say a little more again than this leaves
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub straight: Option<u64>,
    /// (as `straight`) What one start would have sent, by kind of message; empty where it is not known.
    #[serde(default)]
    #[schemars(extend("x-name" = "KIND"))]
    pub straight_by_kind: BTreeMap<String, u64>,
}

impl BytesSummary {
    /// What the run costs, by purpose and in all: in one start, as far as that is known.
    pub fn cost(&self) -> (Purposes, u64) {
        match self.straight {
            Some(straight) => (Purposes::of_names(&self.straight_by_kind), straight),
            None => (Purposes::of_names(&self.by_kind), self.total),
        }
    }

    /// What was predicted of it; `None` where nobody could know it.
    pub fn predicted_cost(&self) -> Option<u64> {
        self.predicted.map(|predicted| predicted.saturating_sub(self.total.saturating_sub(self.cost().1)))
    }

    /// Of the bytes that had been sent when this round was written down, those that one start would not have sent.
    pub fn not_straight_until(&self, round: u32) -> u64 {
        let trains = |start: &StartBytes| start.again < start.bytes;
        let of = self.starts.iter().rposition(|start| trains(start) && start.after_round < round).unwrap_or(0);
        let before = self.starts.iter().take(of).map(|start| start.repeated + start.again).sum::<u64>();
        before + self.starts.get(of).filter(|_| of > 0).map_or(0, |start| start.again)
    }

    /// Takes from what one start would have sent what the last one has said again.
    pub(super) fn without(&mut self, again: &PerKind<u64>) {
        for (kind, bytes) in again.iter() {
            if let Some(straight) = self.straight_by_kind.get_mut(kind.name()) {
                *straight = straight.saturating_sub(*bytes);
            }
        }
        let straight = self.straight_by_kind.values().sum::<u64>();
        self.straight = Some(straight);
        let known: u64 = self.starts.iter().map(|start| start.repeated + start.again).sum();
        let rest = self.total.saturating_sub(straight + known);
        self.starts.iter_mut().last().into_iter().for_each(|start| start.again += rest);
    }
}

/// `seconds`: total and median are the slowest worker's, the others means over workers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SecondsSummary {
    /// Of the slowest worker, from start-up to the end.
    pub total: f64,
    /// The median of the slowest worker's rounds, evaluation apart.
    pub epoch_median: f64,
    /// Everything but the following: the mean over workers, as the next three.
    pub compute: f64,
    /// Waiting for other workers.
    pub waiting: f64,
    /// Encoding and decoding.
    pub codec: f64,
    /// Evaluation, without waiting and coding.
    pub evaluation: f64,
    /// (`transport.shape`, or independent trainers that are simulated) The link model's clock at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<f64>,
}

/// `memory`: of the processes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySummary {
    /// The largest resident size of any process.
    pub peak_bytes: u64,
    /// What was predicted for it, program and libraries apart.
    pub predicted_bytes: u64,
}

/// `parameters`: of all stages together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParametersSummary {
    /// Values of all stages.
    pub count: u64,
    /// `blake3:…` over the chosen parameters and the last.
    pub digest: String,
}

/// The configuration as JSON. By way of text, in which a number of 32 bits has the digits that it was typed with.
fn as_typed(config: &Config) -> serde_json::Result<serde_json::Value> {
    serde_json::from_str(&serde_json::to_string(config)?)
}

/// What a summary is made from besides the reports.
pub struct RunFacts<'a> {
    /// The configuration as it was given.
    pub given: &'a Config,
    /// The run, with the messages that a byte budget has chosen.
    pub plan: &'a Plan,
    /// What is written about the data.
    pub card: &'a Card,
    /// What was noted about the data.
    pub notes: &'a [String],
    /// What training ended with.
    pub trained: &'a Trained,
    /// What parts tell of themselves, where they do, and what they have told.
    pub parts: (Option<Shape>, &'a [PartCounts]),
    /// The run before it was resumed.
    pub earlier: &'a Earlier,
    /// The round that it went on from then; 0 without.
    pub after_round: u32,
    /// Predicted framed bytes over all workers, by kind.
    pub predicted: &'a PerKind<u64>,
    /// Whether all workers shared one process, whose memory is theirs together.
    pub one_process: bool,
}

impl RunFacts<'_> {
    /// What parts have told of themselves.
    fn told(&self) -> Told {
        let metrics: Vec<&str> = self.plan.metrics.iter().map(|metric| metric.name()).collect();
        // Who trains alone on one part of several has that one.
        let first = self.given.data.part.unwrap_or(0);
        let (shape, parts) = self.parts;
        Told::of(shape, parts, first, (&metrics, &self.card.about.classes))
    }
}

/// The messages that a byte budget chose for the run in this folder, which its figures were taken with.
///
/// # Errors
/// If the summary cannot be read.
pub fn chosen_messages(folder: &Path, config: &Config) -> Result<Option<MessagesConfig>> {
    let path = folder.join(FILE);
    if config.messages.budget.is_empty() || !path.exists() {
        return Ok(None);
    }
    let summary: Summary =
        serde_json::from_slice(&read(folder)?).map_err(|error| TrainError::file(&path, error.to_string()))?;
    Ok(summary.messages)
}

/// The text of the summary in this folder.
///
/// # Errors
/// If there is none, or it is larger than any summary.
pub(super) fn read(folder: &Path) -> Result<Vec<u8>> {
    const BYTES_MAX: u64 = 1 << 30;
    read_within(&folder.join(FILE), BYTES_MAX)
}

impl Summary {
    /// What the reports of all workers say together.
    ///
    /// # Errors
    /// If workers hold different parameters.
    pub fn of(facts: &RunFacts<'_>, mut reports: Vec<WorkerReport>) -> Result<Summary> {
        let RunFacts { given, plan, trained, earlier, .. } = *facts;
        if let Some(rank) = reports.iter().position(|r| r.digest != reports[0].digest) {
            return Err(TrainError::ReplicasDiffer { rank: rank as u32 });
        }
        for (kind, before) in earlier.kinds.iter() {
            reports[0].kinds[kind] += *before;
        }
        let mut notes = facts.notes.to_vec();
        notes.extend(plan.with_messages(&given.messages)?.notes());
        let bytes = bytes(facts, &reports);
        notes.extend(nothing_skipped(given, bytes.skipped));
        notes.extend(earlier.notes());
        notes.extend(earlier.other_workers(reports.len() as u32, facts.after_round));
        notes.extend(trained.scores.notes.iter().cloned());
        notes.extend(fallback(plan, &trained.scores));
        let told = facts.told();
        notes.extend(told.note);
        let mut scores = trained.scores.clone();
        let verdicts = verdict::of_run(plan, facts.card.multi_label, &scores, told.classes.as_ref());
        notes.extend(verdicts.iter().cloned());
        scores.notes.extend(verdicts);
        let chosen = &plan.config.messages;
        Ok(Summary {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config: as_typed(given).map_err(|e| TrainError::config(e.to_string()))?,
            data_digest: facts.card.data_digest.clone(),
            class_names: facts.card.about.classes.clone(),
            part_names: plan.part_names.clone(),
            seed: given.train.seed,
            workers: reports.len() as u32,
            transport: given.transport.kind.name().to_owned(),
            interrupted: trained.interrupted,
            rounds: trained.rounds,
            metrics: MetricsSummary { best_round: trained.best_round, scores },
            parts: told.parts,
            classes: told.classes,
            confusion: told.confusion,
            bytes,
            seconds: seconds(&reports),
            memory: memory(&reports, facts.one_process),
            bits: bit_shares(&reports),
            messages: (*chosen != given.messages).then(|| chosen.clone()),
            notes,
            label_epsilon: given.policy.label_epsilon,
            parameters: ParametersSummary {
                count: trained.chosen.iter().map(|values| values.len() as u64).sum(),
                digest: digest_text(&reports[0].digest),
            },
            averaging: None,
            auto: None,
            account: None,
        })
    }
}

/// Says so where messages were to be skipped and all were sent.
fn nothing_skipped(given: &Config, skipped: u64) -> Option<String> {
    let skip = given.messages.skip.filter(|_| skipped == 0)?;
    Some(format!(
        "messages.skip: no message was left out, since in none rows moved by so little (change = {})",
        skip.change
    ))
}

fn bytes(facts: &RunFacts<'_>, reports: &[WorkerReport]) -> BytesSummary {
    let mut kinds = PerKind::<Count>::default();
    let (mut total, mut received, mut by_link) = (Count::default(), facts.earlier.framed(), Vec::new());
    for (from, report) in reports.iter().enumerate() {
        for (kind, count) in report.kinds.iter() {
            kinds[kind] += *count;
            total += *count;
        }
        received += report.received.iter().map(|c| c.framed).sum::<u64>();
        for (to, count) in report.sent.iter().enumerate().filter(|(to, _)| *to != from) {
            let Count { frames, payload, framed: bytes } = *count;
            by_link.push(LinkBytes { from: from as u32, to: to as u32, frames, payload, bytes });
        }
    }
    let since: Count =
        by_link.iter().map(|link| Count { frames: link.frames, payload: link.payload, framed: link.bytes }).sum();
    facts.earlier.add_links(&mut by_link);
    let mut starts = facts.earlier.starts.clone();
    starts.push(StartBytes {
        start: facts.earlier.next_start(),
        after_round: facts.after_round,
        frames: since.frames,
        payload: since.payload,
        bytes: since.framed,
        workers: reports.len() as u32,
        repeated: 0,
        again: 0,
        closed: true,
    });
    // Those of this start are still to be told from what it said again.
    let mut straight = kinds.map(|count| count.framed);
    for (kind, bytes) in straight.iter_mut() {
        *bytes = *bytes - facts.earlier.kinds[kind].framed + facts.earlier.straight[kind];
    }
    let (by_kind, is_known) = (kinds.map(|count| count.framed), facts.earlier.unheard.is_empty());
    BytesSummary {
        total: total.framed,
        predicted: Some(facts.predicted.iter().map(|(_, bytes)| bytes).sum()),
        is_bound: !facts.plan.is_predictable(),
        predicted_by_kind: by_name(facts.predicted),
        payload: total.payload,
        frames: total.frames,
        received,
        by_kind: by_name(&by_kind),
        by_purpose: Purposes::of(&by_kind),
        predicted_by_purpose: Purposes::of(facts.predicted),
        skipped: reports.iter().map(|report| report.skipped).sum(),
        rows_read: reports.iter().map(|report| report.fetched[0]).sum(),
        rows_fetched: reports.iter().map(|report| report.fetched[1]).sum(),
        by_link,
        repeated: starts.iter().map(|start| start.repeated).sum(),
        starts,
        unlisted: 0,
        straight: is_known.then(|| straight.iter().map(|(_, bytes)| bytes).sum()),
        straight_by_kind: if is_known { by_name(&straight) } else { BTreeMap::new() },
    }
}

fn seconds(reports: &[WorkerReport]) -> SecondsSummary {
    let mean = |of: fn(&Seconds) -> f64| reports.iter().map(|r| of(&r.seconds)).sum::<f64>() / reports.len() as f64;
    let most = |of: fn(&Seconds) -> f64| reports.iter().map(|r| of(&r.seconds)).fold(0.0, f64::max);
    SecondsSummary {
        total: most(|s| s.total),
        epoch_median: most(|s| s.round_median),
        compute: mean(|s| s.compute),
        waiting: mean(|s| s.waiting),
        codec: mean(|s| s.codec),
        evaluation: mean(|s| s.evaluation),
        simulated: Some(most(|s| s.link_model)).filter(|s| *s > 0.0),
    }
}

fn memory(reports: &[WorkerReport], one_process: bool) -> MemorySummary {
    let predicted = reports.iter().map(|r| r.memory.predicted);
    MemorySummary {
        peak_bytes: reports.iter().map(|r| r.memory.peak).max().unwrap_or(0),
        predicted_bytes: if one_process { predicted.sum() } else { predicted.max().unwrap_or(0) },
    }
}

/// Bytes by the names of the kinds.
pub fn by_name(bytes: &PerKind<u64>) -> BTreeMap<String, u64> {
    bytes.iter().map(|(kind, bytes)| (kind.name().to_owned(), *bytes)).collect()
}

/// The share of values that was sent in each width of bits, over all workers.
fn bit_shares(reports: &[WorkerReport]) -> BTreeMap<String, f64> {
    let sums = WIDTHS.iter().enumerate().map(|(i, width)| (width, reports.iter().map(|r| r.values[i]).sum::<u64>()));
    let sums: Vec<(&u8, u64)> = sums.filter(|(_, sum)| *sum > 0).collect();
    let total: u64 = sums.iter().map(|(_, sum)| sum).sum();
    sums.into_iter().map(|(width, sum)| (width.to_string(), sum as f64 / total as f64)).collect()
}

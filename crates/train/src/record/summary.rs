//! What a run leaves behind: each worker's closing report, and the summary that other programs read.

use std::collections::BTreeMap;
use std::time::Duration;

use laconic_wire::{Count, Frame, Kind, Ledger, Rank, Tag, Transport};
use serde::{Deserialize, Serialize};

use crate::config::{MessagesConfig, WIDTHS};
use crate::error::{Result, TrainError};
use crate::worker::discover::control;
use crate::worker::evaluate::Scores;

/// The closing report that every worker sends to worker 0. Its size depends on the number of workers alone, and it counts itself.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerReport {
    /// Sent by kind, in the order of [`Kind::ALL`].
    pub kinds: [Count; 7],
    /// Sent to each worker.
    pub sent: Vec<Count>,
    /// Received from each worker.
    pub received: Vec<Count>,
    /// Total, median round, compute, waiting, codec, evaluation; and the link model's clock (0 without one).
    pub seconds: [f64; 7],
    /// Peak and predicted.
    pub memory: [u64; 2],
    /// Values sent by their width, in the order of [`crate::config::WIDTHS`].
    pub values: [u64; WIDTHS.len()],
    /// The digest of the parameters.
    pub digest: [u8; 32],
}

impl WorkerReport {
    fn len(size: usize) -> usize {
        24 * (Kind::ALL.len() + 2 * size) + 8 * 7 + 8 * 2 + 8 * WIDTHS.len() + 32
    }

    fn tag(round: u32) -> Tag {
        control(round, 5)
    }

    /// Enters what [`WorkerReport::collect`] sends.
    pub fn predict(rank: Rank, size: usize, round: u32, ledger: &mut Ledger) {
        if rank != Rank(0) {
            ledger.record(Self::tag(round), Rank(0), Self::len(size));
        }
    }

    /// Books the report's own frame on both sides before it is written: its size is known.
    pub fn count_itself(rank: Rank, size: usize, round: u32, sent: &mut Ledger, received: &mut Ledger) {
        Self::predict(rank, size, round, sent);
        if rank == Rank(0) {
            Rank(0).others(size).for_each(|peer| received.record(Self::tag(round), peer, Self::len(size)));
        }
    }

    /// Sends the report to worker 0, which gets all of them.
    pub fn collect(self, channel: &mut dyn Transport, round: u32) -> Result<Option<Vec<WorkerReport>>> {
        let (rank, size) = (channel.rank(), channel.size());
        if rank != Rank(0) {
            let mut frame = Frame::new(Self::tag(round), channel.buffer());
            self.encode(frame.payload_mut());
            channel.send(Rank(0), frame)?;
            return Ok(None);
        }
        let mut reports = vec![self];
        for peer in rank.others(size) {
            let frame = channel.recv(peer, Self::tag(round))?;
            reports.push(
                Self::decode(frame.payload(), size)
                    .ok_or_else(|| TrainError::config(format!("worker {} sent a report of another shape", peer.0)))?,
            );
            channel.recycle(frame);
        }
        Ok(Some(reports))
    }

    fn encode(&self, into: &mut Vec<u8>) {
        for count in self.kinds.iter().chain(&self.sent).chain(&self.received) {
            into.extend([count.frames, count.payload, count.framed].iter().flat_map(|v| v.to_le_bytes()));
        }
        self.seconds.iter().for_each(|v| into.extend(v.to_le_bytes()));
        self.memory.iter().chain(&self.values).for_each(|v| into.extend(v.to_le_bytes()));
        into.extend(self.digest);
    }

    fn decode(bytes: &[u8], size: usize) -> Option<WorkerReport> {
        if bytes.len() != Self::len(size) {
            return None;
        }
        let (numbers, digest) = bytes.split_last_chunk::<32>()?;
        let mut words = numbers.as_chunks::<8>().0.iter().copied();
        let mut next = || words.next().map(u64::from_le_bytes);
        let mut count = || Some(Count { frames: next()?, payload: next()?, framed: next()? });
        let mut kinds = [Count::default(); 7];
        for kind in &mut kinds {
            *kind = count()?;
        }
        let sent = (0..size).map(|_| count()).collect::<Option<_>>()?;
        let received = (0..size).map(|_| count()).collect::<Option<_>>()?;
        let mut seconds = [0.0; 7];
        for value in &mut seconds {
            *value = f64::from_bits(next()?);
        }
        let memory = [next()?, next()?];
        let mut values = [0; WIDTHS.len()];
        for value in &mut values {
            *value = next()?;
        }
        Some(WorkerReport { kinds, sent, received, seconds, memory, values, digest: *digest })
    }
}

/// `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The program's version.
    pub version: String,
    /// The resolved configuration.
    pub config: serde_json::Value,
    /// `train.seed`.
    pub seed: u64,
    /// Number of workers.
    pub workers: u32,
    /// `transport.kind`.
    pub transport: String,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// Rounds done, over all stages.
    pub rounds: u32,
    /// Figures of the best validation round.
    pub metrics: MetricsSummary,
    /// Bytes over all workers, framing included.
    pub bytes: BytesSummary,
    /// Where the time went.
    pub seconds: SecondsSummary,
    /// Memory.
    pub memory: MemorySummary,
    /// The share of the values of rows that was sent in each width of bits.
    #[serde(default)]
    pub bits: BTreeMap<String, f64>,
    /// The messages that a byte budget has chosen, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesConfig>,
    /// Parameters.
    pub parameters: ParametersSummary,
}

/// `metrics`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricsSummary {
    /// The best round by validation, counted over stages.
    pub best_round: u32,
    /// Its figures, computed over all parts together.
    #[serde(flatten)]
    pub scores: Scores,
}

/// `bytes`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BytesSummary {
    /// Payload and framing, counted at the senders.
    pub total: u64,
    /// What was predicted before the run.
    pub predicted: u64,
    /// Whether the prediction is a bound, because sizes depend on what happens during the run.
    #[serde(default)]
    pub is_bound: bool,
    /// What was predicted, by kind.
    #[serde(default)]
    pub predicted_by_kind: BTreeMap<String, u64>,
    /// Payload alone.
    pub payload: u64,
    /// Frames.
    pub frames: u64,
    /// What the receivers counted; equals `total` unless frames were lost.
    pub received: u64,
    /// By kind.
    pub by_kind: BTreeMap<String, u64>,
    /// By link.
    pub by_link: Vec<LinkBytes>,
}

/// One entry of `bytes.by_link`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkBytes {
    /// Sender.
    pub from: u32,
    /// Receiver.
    pub to: u32,
    /// Frames.
    pub frames: u64,
    /// Payload bytes.
    pub payload: u64,
    /// Payload and framing.
    pub bytes: u64,
}

/// `seconds`: total and median are the slowest worker's, the others means over workers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SecondsSummary {
    /// From start-up to the end.
    pub total: f64,
    /// The median round, evaluation apart.
    pub epoch_median: f64,
    /// Everything but the following.
    pub compute: f64,
    /// Waiting for other workers.
    pub waiting: f64,
    /// Encoding and decoding.
    pub codec: f64,
    /// Evaluation.
    pub evaluation: f64,
    /// The link model's clock at the end, where there is a link model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<f64>,
}

/// `memory`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySummary {
    /// The largest resident size of any process.
    pub peak_bytes: u64,
    /// What was predicted for it, program and libraries apart.
    pub predicted_bytes: u64,
}

/// `parameters`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParametersSummary {
    /// Values of all stages.
    pub count: u64,
    /// `blake3:…` over the chosen parameters and the last.
    pub digest: String,
}

/// What the reports of all workers say together.
pub fn combine(reports: &[WorkerReport], one_process: bool) -> Result<(BytesSummary, SecondsSummary, MemorySummary)> {
    if let Some(rank) = reports.iter().position(|r| r.digest != reports[0].digest) {
        return Err(TrainError::ReplicasDiffer { rank: rank as u32 });
    }
    let mut kinds = [Count::default(); 7];
    let (mut total, mut received, mut by_link) = (Count::default(), 0, Vec::new());
    for (from, report) in reports.iter().enumerate() {
        for (sum, count) in kinds.iter_mut().zip(report.kinds) {
            *sum += count;
            total += count;
        }
        received += report.received.iter().map(|c| c.framed).sum::<u64>();
        for (to, count) in report.sent.iter().enumerate().filter(|(to, _)| *to != from) {
            let Count { frames, payload, framed: bytes } = *count;
            by_link.push(LinkBytes { from: from as u32, to: to as u32, frames, payload, bytes });
        }
    }
    let mean = |index: usize| reports.iter().map(|r| r.seconds[index]).sum::<f64>() / reports.len() as f64;
    let most = |index: usize| reports.iter().map(|r| r.seconds[index]).fold(0.0, f64::max);
    let predicted = reports.iter().map(|r| r.memory[1]);
    let bytes = BytesSummary {
        total: total.framed,
        predicted: 0,
        is_bound: false,
        predicted_by_kind: BTreeMap::new(),
        payload: total.payload,
        frames: total.frames,
        received,
        by_kind: by_kind_names(&kinds),
        by_link,
    };
    let seconds = SecondsSummary {
        total: most(0),
        epoch_median: most(1),
        compute: mean(2),
        waiting: mean(3),
        codec: mean(4),
        evaluation: mean(5),
        simulated: Some(most(6)).filter(|s| *s > 0.0),
    };
    let memory = MemorySummary {
        peak_bytes: reports.iter().map(|r| r.memory[0]).max().unwrap_or(0),
        predicted_bytes: if one_process { predicted.sum() } else { predicted.max().unwrap_or(0) },
    };
    Ok((bytes, seconds, memory))
}

/// Framed bytes by the names of the kinds.
pub fn by_kind_names(kinds: &[Count; 7]) -> BTreeMap<String, u64> {
    Kind::ALL.iter().zip(kinds).map(|(kind, count)| (kind.name().to_owned(), count.framed)).collect()
}

/// Bytes by the names of the kinds.
pub fn named_kinds(bytes: &[u64; 7]) -> BTreeMap<String, u64> {
    Kind::ALL.iter().zip(bytes).map(|(kind, bytes)| (kind.name().to_owned(), *bytes)).collect()
}

/// The share of values that was sent in each width of bits, over all workers.
pub fn bit_shares(reports: &[WorkerReport]) -> BTreeMap<String, f64> {
    let sums = WIDTHS.iter().enumerate().map(|(i, width)| (width, reports.iter().map(|r| r.values[i]).sum::<u64>()));
    let sums: Vec<(&u8, u64)> = sums.filter(|(_, sum)| *sum > 0).collect();
    let total: u64 = sums.iter().map(|(_, sum)| sum).sum();
    sums.into_iter().map(|(width, sum)| (width.to_string(), sum as f64 / total as f64)).collect()
}

/// Seconds as a number.
pub fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

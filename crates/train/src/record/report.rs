//! The closing report that every worker sends to worker 0.

use laconic_wire::{Count, Frame, Ledger, PerKind, Rank, Tag, Transport, WireError};

use crate::config::WIDTHS;
use crate::error::Result;
use crate::exchange::steps::Step;

/// Where one worker's time went, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seconds {
    /// From start-up to the end.
    pub total: f64,
    /// The median round, evaluation apart.
    pub round_median: f64,
    /// Everything but the following.
    pub compute: f64,
    /// Waiting for other workers.
    pub waiting: f64,
    /// Encoding and decoding.
    pub codec: f64,
    /// Evaluation, without waiting and coding.
    pub evaluation: f64,
    /// The link model's clock at the end; 0 without one.
    pub link_model: f64,
}

impl Seconds {
    fn each(&mut self) -> [&mut f64; 7] {
        let Seconds { total, round_median, compute, waiting, codec, evaluation, link_model } = self;
        [total, round_median, compute, waiting, codec, evaluation, link_model]
    }
}

/// One worker's memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// The largest resident size of its process.
    pub peak: u64,
    /// What was predicted.
    pub predicted: u64,
}

/// What a worker ends with, for the summary. Its size depends on the number of workers alone, and it counts itself.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerReport {
    /// Sent by kind.
    pub kinds: PerKind<Count>,
    /// Sent to each worker.
    pub sent: Vec<Count>,
    /// Received from each worker.
    pub received: Vec<Count>,
    /// Where its time went.
    pub seconds: Seconds,
    /// What it took.
    pub memory: Memory,
    /// Values sent by their width, in the order of [`WIDTHS`].
    pub values: [u64; WIDTHS.len()],
    /// Messages that were skipped.
    pub skipped: u64,
    /// Rows of other workers that batches read, and those of them that crossed.
    pub fetched: [u64; 2],
    /// The digest of the parameters.
    pub digest: [u8; DIGEST],
}

const DIGEST: usize = 32;

impl WorkerReport {
    fn tag(round: u32) -> Tag {
        Step::Report.tag(round)
    }

    /// A report about nothing, among so many workers.
    pub fn empty(size: usize) -> WorkerReport {
        WorkerReport {
            kinds: Default::default(),
            sent: vec![Count::default(); size],
            received: vec![Count::default(); size],
            seconds: Seconds::default(),
            memory: Memory::default(),
            values: Default::default(),
            skipped: 0,
            fetched: [0; 2],
            digest: [0; DIGEST],
        }
    }

    /// Shows every number in the order in which they travel, and takes what becomes of it: the one description of the
    /// format.
    fn visit(&mut self, number: &mut dyn FnMut(&mut u64)) {
        let kinds = self.kinds.iter_mut().map(|(_, count)| count);
        for count in kinds.chain(&mut self.sent).chain(&mut self.received) {
            [&mut count.frames, &mut count.payload, &mut count.framed].into_iter().for_each(&mut *number);
        }
        for seconds in self.seconds.each() {
            let mut bits = seconds.to_bits();
            number(&mut bits);
            *seconds = f64::from_bits(bits);
        }
        [&mut self.memory.peak, &mut self.memory.predicted].into_iter().for_each(&mut *number);
        self.values.iter_mut().chain([&mut self.skipped]).chain(&mut self.fetched).for_each(number);
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.clone().visit(&mut |number| bytes.extend(number.to_le_bytes()));
        bytes.extend(self.digest);
        bytes
    }

    fn from_bytes(bytes: &[u8], size: usize) -> Option<WorkerReport> {
        let mut report = WorkerReport::empty(size);
        let (numbers, digest) = bytes.split_last_chunk::<DIGEST>()?;
        let (words, rest) = numbers.as_chunks::<8>();
        let (mut words, mut complete) = (words.iter(), rest.is_empty());
        report.visit(&mut |number| match words.next() {
            Some(word) => *number = u64::from_le_bytes(*word),
            None => complete = false,
        });
        report.digest = *digest;
        (complete && words.next().is_none()).then_some(report)
    }

    /// The bytes of a report among so many workers.
    fn bytes(size: usize) -> usize {
        WorkerReport::empty(size).to_bytes().len()
    }

    /// Framed bytes of the reports of so many workers, of which the first sends none.
    pub fn of_all(workers: u32) -> u64 {
        u64::from(workers.saturating_sub(1)) * Count::of(1, WorkerReport::bytes(workers as usize) as u64).framed
    }

    /// Enters what [`WorkerReport::collect`] sends.
    pub fn forecast(rank: Rank, size: usize, round: u32, ledger: &mut Ledger) {
        if rank != Rank(0) {
            ledger.record(Self::tag(round), Rank(0), Self::bytes(size));
        }
    }

    /// Books the report's own frame on both sides before it is written: its size is known.
    pub fn count_itself(rank: Rank, size: usize, round: u32, sent: &mut Ledger, received: &mut Ledger) {
        Self::forecast(rank, size, round, sent);
        if rank == Rank(0) {
            Rank(0).others(size).for_each(|peer| received.record(Self::tag(round), peer, Self::bytes(size)));
        }
    }

    /// Sends the report to worker 0, which gets all of them.
    ///
    /// # Errors
    /// If another worker does not answer, or sends something else.
    pub fn collect(self, transport: &mut dyn Transport, round: u32) -> Result<Option<Vec<WorkerReport>>> {
        let (rank, size) = (transport.rank(), transport.size());
        if rank != Rank(0) {
            let mut frame = Frame::new(Self::tag(round), transport.buffer());
            frame.payload_mut().extend(self.to_bytes());
            transport.send(Rank(0), frame)?;
            return Ok(None);
        }
        let mut reports = vec![self];
        for peer in rank.others(size) {
            let frame = transport.recv(peer, Self::tag(round))?;
            let report = Self::from_bytes(frame.payload(), size).ok_or_else(|| {
                let what = WireError::malformed("a report of another shape");
                what.from_peer(rank, peer, Self::tag(round))
            })?;
            reports.push(report);
            transport.recycle(frame);
        }
        Ok(Some(reports))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_report_reads_back_as_itself_and_in_no_other_size() {
        let mut report = WorkerReport::empty(3);
        let mut next = 0;
        report.visit(&mut |number| {
            next += 1;
            *number = next;
        });
        report.digest = [7; DIGEST];
        let bytes = report.to_bytes();
        assert_eq!(
            bytes.len(),
            24 * (laconic_wire::Kind::ALL.len() + 2 * 3) + 8 * 7 + 8 * 2 + 8 * (WIDTHS.len() + 3) + 32
        );
        assert_eq!(WorkerReport::from_bytes(&bytes, 3), Some(report));
        assert_eq!(WorkerReport::from_bytes(&bytes, 2), None);
        assert_eq!(WorkerReport::from_bytes(&bytes[1..], 3), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>, size in 0usize..5) {
            let _ = WorkerReport::from_bytes(&bytes, size);
        }
    }
}

//! What went over which link, and what had before a run was resumed.

use laconic_wire::{Count, PerKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One entry of `bytes.by_link`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkBytes {
    /// The worker that sent.
    pub from: u32,
    /// The worker that received.
    pub to: u32,
    /// How many frames.
    pub frames: u64,
    /// Bytes without framing.
    pub payload: u64,
    /// Payload and framing.
    pub bytes: u64,
}

/// One entry of `bytes.starts`: what was sent from when the run was started or resumed until it ended or broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StartBytes {
    /// 0 for the first start, one more each time that the run was resumed.
    pub start: u32,
    /// The round that it went on from; 0 at the beginning, and where it broke off before it trained.
    pub after_round: u32,
    /// How many frames.
    pub frames: u64,
    /// Bytes without framing.
    pub payload: u64,
    /// Payload and framing.
    pub bytes: u64,
    /// How many workers there were; 0 where an earlier program did not write it down.
    #[serde(default)]
    pub workers: u32,
    /// Bytes of rounds that a later start did again.
    pub repeated: u64,
    /// Bytes that one start would not have sent: start-up, frozen inputs and the checkpoint of a run that goes on, and
    /// what the start before said because it was stopped.
    #[serde(default)]
    pub again: u64,
    /// Whether it ended in order. Of one that was killed, what had left in the round under way is missing.
    pub closed: bool,
}

/// A start of a run, as its checkpoint knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// How many workers there were; 0 where earlier programs did not write it down.
    pub workers: u32,
    /// The round that it went on from; 0 at the beginning.
    pub after_round: u32,
}

impl Started {
    /// What is known of a run's starts when it starts for the `start`-th time, counted from 0.
    pub fn then(before: &[Started], start: u32, now: Started) -> Vec<Started> {
        let mut starts = before.to_vec();
        starts.resize(start as usize, Started { workers: 0, after_round: 0 });
        starts.push(now);
        starts
    }
}

/// Traffic before the run was resumed.
#[derive(Debug, Clone, Default)]
pub struct Earlier {
    /// By the kind of frame.
    pub kinds: PerKind<Count>,
    /// By link; empty where nothing is known.
    pub links: Vec<LinkBytes>,
    /// By the starts of the run.
    pub starts: Vec<StartBytes>,
    /// What one start would have sent until the round that the run goes on from, by kind; framed.
    pub straight: PerKind<u64>,
    /// Bytes that the checkpoint knows of and the ledger here has no rows of.
    pub missing: u64,
    /// Starts that were killed before their trainers had said what they sent to each other.
    pub unheard: Vec<u32>,
}

impl Earlier {
    /// Framed bytes of all kinds.
    pub fn framed(&self) -> u64 {
        self.kinds.iter().map(|(_, count)| count.framed).sum()
    }

    /// What is to be said where rows are missing.
    pub fn notes(&self) -> Vec<String> {
        let missing = (self.missing > 0).then(|| {
            let what = "bytes that were sent before the run went on have no row in its ledger here; they count by kind";
            format!("{} {what}: are the rows on another machine, or was a ledger.K.csv removed or cut?", self.missing)
        });
        let unheard = (!self.unheard.is_empty()).then(|| {
            let starts: Vec<String> = self.unheard.iter().map(u32::to_string).collect();
            format!(
                "this run was killed (start {}) before trainers had said what they sent to each other, or in a \
                 simulated run at all: that is in no figure of bytes here, and what one start would have sent \
                 (bytes.straight) is not known",
                starts.join(", ")
            )
        });
        missing.into_iter().chain(unheard).collect()
    }

    /// The number of the start that goes on from here.
    pub fn next_start(&self) -> u32 {
        self.starts.last().map_or(0, |last| last.start.saturating_add(1))
    }

    /// What is to be said of a run that has gone over other numbers of workers than `now`.
    pub fn other_workers(&self, now: u32, after_round: u32) -> Option<String> {
        let mut known: Vec<&StartBytes> = self.starts.iter().filter(|start| start.workers > 0).collect();
        known.dedup_by_key(|start| start.workers);
        if known.iter().all(|start| start.workers == now) {
            return None;
        }
        let until = known.iter().skip(1).map(|next| next.after_round).chain([after_round]);
        let spans = known.iter().zip(until).map(|(start, round)| format!("{} until round {round}", start.workers));
        Some(format!("workers of this run: {}, {now} since", spans.collect::<Vec<_>>().join(", ")))
    }

    /// Adds what was sent before to what was sent since, link by link; workers of before may have had others.
    pub fn add_links(&self, links: &mut Vec<LinkBytes>) {
        for earlier in &self.links {
            match links.iter_mut().find(|link| (link.from, link.to) == (earlier.from, earlier.to)) {
                Some(link) => {
                    link.frames += earlier.frames;
                    link.payload += earlier.payload;
                    link.bytes += earlier.bytes;
                }
                None => links.push(*earlier),
            }
        }
        links.sort_by_key(|link| (link.from, link.to));
    }
}

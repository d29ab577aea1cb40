//! What stands between a site's worker and its links: the policy, and the log that is written before a frame is handed
//! on.

use std::sync::{Arc, Mutex, PoisonError};

use laconic_federation::{AuditLog, Crossing, Decision, Direction, Entry, Gate, Passed, Way};
use laconic_wire::transport::guarded::Guard;
use laconic_wire::{Frame, Rank};

/// The log of a run, and why the guard has stopped a frame. The guard writes while the run lasts, and whoever has
/// started the run closes.
pub struct Record {
    /// Nothing once it is closed.
    pub log: Option<AuditLog>,
    /// A sentence, where something was stopped.
    pub stopped: Option<String>,
}

/// A site's guard.
pub struct SiteGuard {
    gate: Gate,
    /// What the sites are called, by rank.
    names: Vec<String>,
    record: Arc<Mutex<Record>>,
}

impl SiteGuard {
    /// A guard that nothing has passed.
    pub fn new(gate: Gate, names: Vec<String>, record: Arc<Mutex<Record>>) -> SiteGuard {
        SiteGuard { gate, names, record }
    }

    /// Whether a frame passes; it is written down either way. What cannot be written down does not pass.
    fn passes(&mut self, way: Way, peer: Rank, frame: &Frame) -> bool {
        let tag = frame.tag();
        let crossing = Crossing {
            way,
            peer: &self.names[peer.index()],
            content: tag.content.name(),
            purpose: tag.purpose.name(),
            layer: tag.layer,
            direction: match tag.direction {
                laconic_wire::Direction::Forward => Direction::Forward,
                laconic_wire::Direction::Reverse => Direction::Reverse,
            },
            bytes: frame.framed_bytes() as u64,
        };
        let decision = self.gate.pass(&crossing);
        let passed = Passed {
            crossing,
            round: tag.round,
            step: u32::from(tag.step),
            frames: 1,
            payload: frame.payload().len() as u64,
            mac: None,
        };
        let (entry, why) = match &decision {
            Decision::Allowed { .. } => (Entry::Crossing(passed), None),
            Decision::Denied { why } => {
                let Crossing { peer, content, purpose, .. } = crossing;
                (Entry::Refused { way, peer, content, purpose, reason: why }, Some(why.clone()))
            }
        };
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let written = match &mut record.log {
            Some(log) => log.write(&entry).map_err(|error| error.to_string()),
            None => Err("the log is closed".to_owned()),
        };
        let why = why.or(written.err());
        let passes = why.is_none();
        if let Some(why) = why {
            record.stopped.get_or_insert(why);
        }
        passes
    }
}

impl Guard for SiteGuard {
    fn leaves(&mut self, to: Rank, frame: &Frame) -> bool {
        self.passes(Way::Out, to, frame)
    }

    fn comes(&mut self, from: Rank, frame: &Frame) -> bool {
        self.passes(Way::In, from, frame)
    }
}

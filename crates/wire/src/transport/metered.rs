//! The one door every byte passes: a wrapper that keeps the ledger.

use super::{End, Transport};
use crate::{Count, Entry, Frame, Ledger, Rank, Result, Tag};
use std::collections::BTreeMap;

/// Counts every frame once where it is sent and, as the other side of a double entry, once where it is received.
///
/// When everything sent has been received, the accounts of a link agree: what rank 0 sent to rank 1 is what rank 1
/// received from rank 0. What stays in a process is not counted ([`End::is_same_process`]).
pub struct Metered {
    inner: Box<dyn Transport>,
    sent: Ledger,
    received: Ledger,
}

impl Metered {
    /// Wraps a transport, with empty ledgers.
    pub fn new(inner: Box<dyn Transport>) -> Metered {
        Metered { inner, sent: Ledger::new(), received: Ledger::new() }
    }

    /// The same ledgers with another transport around the one that carries the frames, such as a link model.
    #[must_use]
    pub fn around(self, wrap: impl FnOnce(Box<dyn Transport>) -> Box<dyn Transport>) -> Metered {
        Metered { inner: wrap(self.inner), ..self }
    }

    /// What this worker sent: the ledger that counts.
    pub fn sent(&self) -> &Ledger {
        &self.sent
    }

    /// What this worker received, the other side of the double entry.
    pub fn received(&self) -> &Ledger {
        &self.received
    }

    /// Takes the accounts out of both ledgers, sent and received, so that they can be kept elsewhere; totals stay.
    pub fn take_accounts(&mut self) -> [BTreeMap<Entry, Count>; 2] {
        [self.sent.take_accounts(), self.received.take_accounts()]
    }

    /// Enters what has come.
    fn enter(&mut self, from: Rank, frame: &Frame) {
        if !self.end().is_same_process(from) {
            self.received.record(frame.tag(), from, frame.payload().len());
        }
    }
}

impl Transport for Metered {
    fn end(&self) -> &End {
        self.inner.end()
    }

    fn end_mut(&mut self) -> &mut End {
        self.inner.end_mut()
    }

    fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
        let (tag, payload_bytes) = (frame.tag(), frame.payload().len());
        self.inner.send(to, frame)?;
        if !self.end().is_same_process(to) {
            self.sent.record(tag, to, payload_bytes);
        }
        Ok(())
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        let frame = self.inner.recv(from, tag)?;
        self.enter(from, &frame);
        Ok(frame)
    }

    fn poll(&mut self, from: Rank) -> Result<Option<Frame>> {
        let frame = self.inner.poll(from)?;
        if let Some(frame) = &frame {
            self.enter(from, frame);
        }
        Ok(frame)
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.finish()
    }
}

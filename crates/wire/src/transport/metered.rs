//! The one door every byte passes: a wrapper that keeps the ledger.

use super::{Patience, Transport};
use crate::{Frame, Ledger, Rank, Result, Tag};
use std::time::Duration;

/// Counts every frame once where it is sent and, as the other side of a double entry, once where it is received.
///
/// When everything sent has been received, the accounts of a link agree: what rank 0 sent to rank 1 is what rank 1
/// received from rank 0.
#[derive(Debug)]
pub struct Metered<T> {
    inner: T,
    sent: Ledger,
    received: Ledger,
}

impl<T: Transport> Metered<T> {
    /// Wraps a transport, with empty ledgers.
    pub fn new(inner: T) -> Metered<T> {
        Metered { inner, sent: Ledger::new(), received: Ledger::new() }
    }

    /// What this worker sent: the ledger that counts.
    pub fn sent(&self) -> &Ledger {
        &self.sent
    }

    /// What this worker received.
    pub fn received(&self) -> &Ledger {
        &self.received
    }

    /// The sent and the received ledger so far; both start again empty.
    pub fn take_ledgers(&mut self) -> (Ledger, Ledger) {
        (std::mem::take(&mut self.sent), std::mem::take(&mut self.received))
    }

    /// The transport inside.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// The transport inside, the sent and the received ledger.
    pub fn into_parts(self) -> (T, Ledger, Ledger) {
        (self.inner, self.sent, self.received)
    }
}

impl<T: Transport> Transport for Metered<T> {
    fn rank(&self) -> Rank {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn patience(&self) -> &Patience {
        self.inner.patience()
    }

    fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
        let (tag, payload_bytes) = (frame.tag(), frame.payload().len());
        self.inner.send(to, frame)?;
        self.sent.record(tag, to, payload_bytes);
        Ok(())
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        let frame = self.inner.recv(from, tag)?;
        self.received.record(tag, from, frame.payload().len());
        Ok(frame)
    }

    fn recycle(&mut self, frame: Frame) {
        self.inner.recycle(frame);
    }

    fn buffer_of(&mut self, payload_bytes: usize) -> Vec<u8> {
        self.inner.buffer_of(payload_bytes)
    }

    fn waited(&self) -> Duration {
        self.inner.waited()
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.finish()
    }
}

//! The one way that every byte takes: a wrapper that asks at the door and keeps the ledger.

use super::{End, Transport};
use crate::door::{Door, farewell, is_farewell, notice, refusal};
use crate::{Count, Entry, Frame, FramePurpose, Ledger, Rank, Result, Tag, WireError};
use std::collections::{BTreeMap, VecDeque};

/// Counts every frame once where it is sent and, as the other side of a double entry, once where it is received.
///
/// When everything sent has been received, the accounts of a link agree: what rank 0 sent to rank 1 is what rank 1
/// received from rank 0. What stays in a process is not counted ([`End::is_same_process`]).
///
/// Where there is a [`Door`], it is asked before a frame is sent. A frame that may not pass stays here, all other
/// workers are told, and each of them has the same error, [`WireError::Denied`].
pub struct Metered {
    inner: Box<dyn Transport>,
    door: Option<Box<dyn Door>>,
    /// What all frames are for, whatever their tags say.
    counted_as: Option<FramePurpose>,
    /// Whether the others have been told that a frame was kept back, by this worker or on.
    has_told: bool,
    /// Frames of workers that are gone, which have been looked at and are still to be handed out.
    left: VecDeque<(Rank, Frame)>,
    sent: Ledger,
    received: Ledger,
}

impl Metered {
    /// Wraps a transport, with empty ledgers.
    pub fn new(inner: Box<dyn Transport>) -> Metered {
        Metered {
            inner,
            door: None,
            counted_as: None,
            has_told: false,
            left: VecDeque::new(),
            sent: Ledger::new(),
            received: Ledger::new(),
        }
    }

    /// The same behind this door.
    #[must_use]
    pub fn behind(self, door: Option<Box<dyn Door>>) -> Metered {
        Metered { door, ..self }
    }

    /// The same where all that is said serves one purpose, such as evaluations that workers meet for and for nothing
    /// else: frames travel under it, whatever their senders think, and are handed out under the one that is waited for.
    #[must_use]
    pub fn counted_as(self, purpose: FramePurpose) -> Metered {
        Metered { counted_as: Some(purpose), ..self }
    }

    /// The tag that a frame travels under.
    fn counted(&self, tag: Tag) -> Tag {
        Tag { purpose: self.counted_as.unwrap_or(tag.purpose), ..tag }
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

    /// Keeps back what is to go to `to` under this tag, as the door would: tells all others, and returns the error.
    pub fn keep_back(&mut self, to: Rank, tag: Tag) -> WireError {
        let error = WireError::Denied { from: self.rank(), to, tag };
        self.tell(&error);
        error
    }

    /// Tells all others that this worker takes part no more, though its process may go on: they need not wait for it.
    /// Whoever is gone already needs no word.
    pub fn take_leave(&mut self) {
        for peer in self.rank().others(self.size()) {
            let mut frame = farewell(self.inner.buffer());
            frame.set_purpose(self.counted(frame.tag()).purpose);
            let _ = self.pass(peer, frame);
        }
    }

    /// Tells all others of a frame that is kept back, once, and that they cannot wait for it. Whoever is gone already
    /// needs no word.
    fn tell(&mut self, error: &WireError) {
        let WireError::Denied { from, to, tag } = *error else { return };
        if std::mem::replace(&mut self.has_told, true) {
            return;
        }
        for peer in self.rank().others(self.size()) {
            let frame = notice(from, to, tag, self.inner.buffer());
            let _ = self.pass(peer, frame);
        }
    }

    /// Why a worker is gone to which something was to be sent, where it has said so before it left.
    fn explained(&mut self, error: WireError) -> WireError {
        let WireError::Gone { peer, sending: true, .. } = error else { return error };
        while let Ok(Some(frame)) = self.inner.poll(peer) {
            if let Some(denied) = refusal(&frame) {
                self.tell(&denied);
                return denied;
            }
            self.left.push_back((peer, frame));
        }
        error
    }

    /// Sends a frame and counts it.
    fn pass(&mut self, to: Rank, frame: Frame) -> Result<()> {
        let (tag, payload_bytes) = (frame.tag(), frame.payload().len());
        self.inner.send(to, frame)?;
        if !self.end().is_same_process(to) {
            self.sent.record(tag, to, payload_bytes);
        }
        Ok(())
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

    fn send(&mut self, to: Rank, mut frame: Frame) -> Result<()> {
        let tag = self.counted(frame.tag());
        frame.set_purpose(tag.purpose);
        let (payload_bytes, is_here) = (frame.payload().len(), self.end().is_same_process(to));
        if self.door.as_mut().is_some_and(|door| !is_here && !door.passes(to, tag, payload_bytes)) {
            return Err(self.keep_back(to, tag));
        }
        // What stands below may keep a frame back, too.
        self.pass(to, frame).inspect_err(|error| self.tell(error)).map_err(|error| self.explained(error))
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        // The others may wait for this worker, not for the one that keeps something back: so they are told, too.
        let mut frame = self.inner.recv(from, self.counted(tag)).inspect_err(|error| self.tell(error))?;
        self.enter(from, &frame);
        frame.set_purpose(tag.purpose);
        Ok(frame)
    }

    fn poll(&mut self, from: Rank) -> Result<Option<Frame>> {
        let waiting = self.left.iter().position(|(peer, _)| *peer == from).and_then(|at| self.left.remove(at));
        let frame = match waiting {
            Some((_, frame)) => Some(frame),
            None => self.inner.poll(from)?,
        };
        if let Some(frame) = &frame {
            self.enter(from, frame);
            if let Some(error) = refusal(frame) {
                self.tell(&error);
                return Err(error);
            }
            if is_farewell(frame) {
                return Err(self.end().gone(from));
            }
        }
        Ok(frame)
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.finish()
    }
}

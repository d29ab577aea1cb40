//! A guard at one end of all links: sees every frame that leaves and every one that comes, whole, and may stop either.

use super::{End, Transport};
use crate::{Content, Frame, Rank, Result, Tag, WireError};

/// Decides about frames both ways, and may write down what it sees. [`Guarded`] holds one.
pub trait Guard: Send {
    /// Whether a frame may go to `to`. Asked before it is sent.
    fn leaves(&mut self, to: Rank, frame: &Frame) -> bool;

    /// Whether a frame of `from` may be handed to the worker. Asked when the worker takes it.
    fn comes(&mut self, from: Rank, frame: &Frame) -> bool;
}

/// A transport behind a guard. A frame that is stopped ends in [`WireError::Denied`]; notices that one was kept back
/// always pass.
pub struct Guarded {
    inner: Box<dyn Transport>,
    guard: Box<dyn Guard>,
}

impl Guarded {
    /// Puts a guard before a transport.
    pub fn new(inner: Box<dyn Transport>, guard: Box<dyn Guard>) -> Guarded {
        Guarded { inner, guard }
    }

    fn admit(&mut self, from: Rank, frame: Frame) -> Result<Frame> {
        if frame.tag().content == Content::Refusal || self.guard.comes(from, &frame) {
            return Ok(frame);
        }
        Err(WireError::Denied { from, to: self.rank(), tag: frame.tag() })
    }
}

impl Transport for Guarded {
    fn end(&self) -> &End {
        self.inner.end()
    }

    fn end_mut(&mut self) -> &mut End {
        self.inner.end_mut()
    }

    fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
        let tag = frame.tag();
        if tag.content != Content::Refusal && !self.guard.leaves(to, &frame) {
            return Err(WireError::Denied { from: self.rank(), to, tag });
        }
        self.inner.send(to, frame)
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        let frame = self.inner.recv(from, tag)?;
        self.admit(from, frame)
    }

    fn poll(&mut self, from: Rank) -> Result<Option<Frame>> {
        let frame = self.inner.poll(from)?;
        frame.map(|frame| self.admit(from, frame)).transpose()
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.finish()
    }
}

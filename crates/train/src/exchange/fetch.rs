//! Rows that a peer has asked for by themselves, not along the links of the halo: through the same codecs, under the
//! same door.

use std::time::Instant;

use laconic_wire::codec::{RowsMut, RowsRef, Store};
use laconic_wire::{Frame, Rank, Tag, Transport};

use super::halo::{Halo, Request, refused};
use super::timeline::Phase;
use crate::error::Result;
use crate::messages::coders::End;
use crate::selection::Scope;

impl Halo {
    fn end_of_rows(&self, peer: Rank, outgoing: bool, rows: usize) -> End<'static> {
        End { rank: self.rank, peer, outgoing, rows, drawn: None }
    }

    /// Encodes rows and queues them.
    ///
    /// # Errors
    /// If the peer is gone, or a codec refuses the rows.
    pub fn send_rows(&mut self, transport: &mut dyn Transport, tag: Tag, peer: Rank, rows: RowsRef<'_>) -> Result<()> {
        let (start, from) = (Instant::now(), self.timeline.now());
        let key = self.key(Request::now(tag, Scope::Whole), self.rank, peer);
        let end = self.end_of_rows(peer, true, rows.rows.len());
        let (coder, reading) = self.coders.coder_of(tag, false)?;
        let setting = coder.setting(&reading, end);
        let size = coder.bytes(&setting, rows.rows.len(), rows.columns);
        let mut frame = Frame::new(tag, transport.buffer_of(size));
        coder
            .write(&key, end, &setting, rows, &mut frame, &mut self.values)
            .map_err(|error| refused(error, self.rank, peer, tag))?;
        self.coding += start.elapsed();
        self.timeline.note(Phase::Encode, tag, from);
        Ok(transport.send(peer, frame)?)
    }

    /// Waits for rows and sets them.
    ///
    /// # Errors
    /// If the peer does not answer, or sends what does not fit.
    pub fn receive_rows(
        &mut self,
        transport: &mut dyn Transport,
        tag: Tag,
        peer: Rank,
        into: RowsMut<'_>,
    ) -> Result<()> {
        let from = self.timeline.now();
        let frame = transport.recv(peer, tag)?;
        self.timeline.note(Phase::Wait, tag, from);
        let (start, from) = (Instant::now(), self.timeline.now());
        let key = self.key(Request::now(tag, Scope::Whole), peer, self.rank);
        let end = self.end_of_rows(peer, false, into.rows.len());
        let (coder, reading) = self.coders.coder_of(tag, false)?;
        let setting = coder.setting(&reading, end);
        let read = coder.read(&key, &setting, &frame, into, Store::Set);
        read.map_err(|error| error.from_peer(self.rank, peer, tag))?;
        self.coding += start.elapsed();
        self.timeline.note(Phase::Decode, tag, from);
        transport.recycle(frame);
        Ok(())
    }
}

//! The all-reduce of parameter gradients, exact or compressed.

use super::chunk;
use crate::codec::Store;
use crate::error::expect_payload;
use crate::vector::{Hop, Memories, VectorCoder};
use crate::{Frame, Ledger, Rank, Result, Tag, Transport, WireError};

use std::ops::Range;

/// How the values of an all-reduce become bytes, with what rounding has left over of values and of sums, where there is
/// error feedback ([`VectorCoder`]). One reducer serves one sequence of sums of the same values, a worker's gradients;
/// leftovers of another length are forgotten.
pub struct Reducer {
    coder: VectorCoder,
    /// What rounding has taken from the values that were sent, `[len]`; empty for zeros.
    residual: Vec<f32>,
    /// What rounding has taken from the sums of the own chunk; empty for zeros.
    sum_residual: Vec<f32>,
    /// The sum of the ranks below this one.
    below: Vec<f32>,
    /// The sums of the extras.
    extras: Vec<f64>,
}

impl Reducer {
    /// Values as they are: the sums are those of f32 in rank order. Values need not be finite.
    pub fn exact() -> Reducer {
        Reducer::new(VectorCoder::exact())
    }

    /// Values through a codec.
    pub fn new(coder: VectorCoder) -> Reducer {
        let (residual, sum_residual, below, extras) = Default::default();
        Reducer { coder, residual, sum_residual, below, extras }
    }

    /// The name of its codec.
    pub fn name(&self) -> &'static str {
        self.coder.name()
    }

    /// What rounding has left over of the values, `[len]`, and of the own chunk's sums; empty before the first call and
    /// without feedback.
    pub fn residuals(&self) -> [&[f32]; 2] {
        [&self.residual, &self.sum_residual]
    }

    /// Goes on from these, as [`residuals`](Reducer::residuals) gave them; empty ones are zeros.
    pub fn restore(&mut self, residuals: [Vec<f32>; 2]) {
        [self.residual, self.sum_residual] = residuals;
    }

    /// What its codec remembers ([`VectorCoder::memories`]).
    pub fn memories(&self) -> Memories {
        self.coder.memories()
    }

    /// Takes it back. `None` where it is not that.
    pub fn remember(&mut self, memories: &Memories) -> Option<()> {
        self.coder.remember(memories)
    }

    /// The part of a slice of `len` values that a rank reduces: as [`super::chunk`], but of whole matrices where the
    /// codec takes them.
    fn chunk(&self, len: usize, size: usize, rank: Rank) -> Range<usize> {
        self.coder.without_cuts(chunk(len, size, rank), len)
    }

    fn bytes(&self, place: Range<usize>) -> usize {
        self.coder.bytes(place)
    }
}

/// Sums `values` over all ranks, elementwise, in rank order, the same bits on every rank; and, in the same frames, the
/// `extras`, which are few and never compressed: losses and counts.
///
/// Reduce-scatter by direct exchange, then an all-gather of the chunks under the next step of the tag; 2 steps. A rank
/// sends each peer the peer's chunk with the extras behind it, unless both are empty, then all of them the sums of its
/// own chunk: `2·(P−1)/P` times the codec's bytes of all values where chunks are even, and `(P−1)·8·extras` bytes. A
/// sum is `((x₀ + x₁) + x₂) + …` with every `x` but the summing rank's own as the codec makes it, and is encoded once;
/// its owner decodes it like everybody else. One rank alone sends nothing and has nothing rounded.
///
/// With the codec `exact` the bits are those of the serial sum. Allocates next to nothing once the transport's buffers
/// and the reducer have grown.
///
/// # Errors
///
/// Those of sending, receiving and coding, with the peer that is late, gone or wrong; then the values are of no use.
pub fn all_reduce(
    transport: &mut dyn Transport,
    tag: Tag,
    values: &mut [f32],
    extras: &mut [f64],
    reducer: &mut Reducer,
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    if size == 1 {
        return Ok(());
    }
    let own = reducer.chunk(values.len(), size, rank);
    if reducer.coder.has_feedback() {
        reducer.add_residuals(values);
    }
    for peer in rank.others(size) {
        send_chunk(transport, tag, peer, (values, extras), reducer)?;
    }
    if !own.is_empty() || !extras.is_empty() {
        sum_chunk(transport, tag, (&mut values[own.clone()], own.start), extras, reducer)?;
    }
    if !own.is_empty() {
        send_sums(transport, tag.later(1), (&mut values[own.clone()], own.start), reducer)?;
    }
    for peer in Rank::all(size).filter(|&peer| peer != rank) {
        let place = reducer.chunk(values.len(), size, peer);
        if !place.is_empty() {
            let frame = recv_coded(transport, peer, tag.later(1), (place.clone(), 0), reducer)?;
            let hop = Hop { tag: tag.later(1), from: peer, to: peer };
            reducer.coder.decode(hop, frame.payload(), (&mut values[place.clone()], place.start), Store::Set)?;
            transport.recycle(frame);
        }
    }
    Ok(())
}

impl Reducer {
    /// Adds what was left over to the values; it starts anew if there is none of this length.
    fn add_residuals(&mut self, values: &mut [f32]) {
        if self.residual.len() != values.len() {
            self.residual.clear();
            self.residual.resize(values.len(), 0.0);
        }
        values.iter_mut().zip(&self.residual).for_each(|(value, left)| *value += left);
        self.residual.fill(0.0);
    }
}

/// Sends a peer its chunk and the extras.
fn send_chunk(
    transport: &mut dyn Transport,
    tag: Tag,
    peer: Rank,
    (values, extras): (&[f32], &[f64]),
    reducer: &mut Reducer,
) -> Result<()> {
    let place = reducer.chunk(values.len(), transport.size(), peer);
    let (theirs, hop) = (&values[place.clone()], Hop { tag, from: transport.rank(), to: peer });
    let bytes = reducer.bytes(place.clone());
    if bytes == 0 && extras.is_empty() {
        return Ok(());
    }
    let mut frame = coded_frame(transport, tag, bytes + 8 * extras.len(), reducer);
    reducer.coder.encode(hop, theirs, place.start, frame.payload_mut())?;
    if reducer.coder.has_feedback() {
        let residual = &mut reducer.residual[place.clone()];
        reducer.coder.leave_over(hop, frame.payload(), (theirs, place.start), residual)?;
    }
    extras.iter().for_each(|value| frame.payload_mut().extend_from_slice(&value.to_le_bytes()));
    transport.send(peer, frame)
}

/// Adds everyone's values of the own chunk and everyone's extras, in rank order.
fn sum_chunk(
    transport: &mut dyn Transport,
    tag: Tag,
    (own, start): (&mut [f32], usize),
    extras: &mut [f64],
    reducer: &mut Reducer,
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let place = start..start + own.len();
    let (mut below, mut sums) = (std::mem::take(&mut reducer.below), std::mem::take(&mut reducer.extras));
    below.resize(own.len(), 0.0);
    sums.clear();
    for peer in Rank::all(size) {
        if peer == rank {
            // The ranks below are added to the own values at once; a sum of two does not depend on their order.
            if rank > Rank(0) {
                own.iter_mut().zip(&below).for_each(|(own, below)| *own += below);
            }
            add_in_order(&mut sums, extras.iter().copied());
            continue;
        }
        let frame = recv_coded(transport, peer, tag, (place.clone(), extras.len()), reducer)?;
        let (values, theirs) = frame.payload().split_at(frame.payload().len() - 8 * extras.len());
        let hop = Hop { tag, from: peer, to: rank };
        match peer {
            Rank(0) => reducer.coder.decode(hop, values, (&mut below, start), Store::Set)?,
            _ if peer < rank => reducer.coder.decode(hop, values, (&mut below, start), Store::Add)?,
            _ => reducer.coder.decode(hop, values, (&mut *own, start), Store::Add)?,
        }
        add_in_order(&mut sums, theirs.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)));
        transport.recycle(frame);
    }
    extras.copy_from_slice(&sums);
    (reducer.below, reducer.extras) = (below, sums);
    Ok(())
}

/// Adds the terms to the sums; the first ones are the sums.
fn add_in_order(sums: &mut Vec<f64>, terms: impl ExactSizeIterator<Item = f64>) {
    if sums.len() < terms.len() {
        sums.extend(terms);
    } else {
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
}

/// Encodes the sums of the own chunk once, sends them to everybody, and decodes them.
fn send_sums(
    transport: &mut dyn Transport,
    tag: Tag,
    (own, start): (&mut [f32], usize),
    reducer: &mut Reducer,
) -> Result<()> {
    let (rank, size, bytes) = (transport.rank(), transport.size(), reducer.bytes(start..start + own.len()));
    let (hop, feedback) = (Hop { tag, from: rank, to: rank }, reducer.coder.has_feedback());
    if feedback && reducer.sum_residual.len() == own.len() {
        own.iter_mut().zip(&reducer.sum_residual).for_each(|(sum, left)| *sum += left);
    }
    let mut frame = coded_frame(transport, tag, bytes, reducer);
    reducer.coder.encode(hop, own, start, frame.payload_mut())?;
    if feedback {
        reducer.sum_residual.clear();
        reducer.sum_residual.extend_from_slice(own);
    }
    if !reducer.coder.is_exact() {
        // Once, as everybody does: a codec may remember what it has read.
        reducer.coder.decode(hop, frame.payload(), (&mut *own, start), Store::Set)?;
    }
    if feedback {
        reducer.sum_residual.iter_mut().zip(own.iter()).for_each(|(left, sum)| *left -= sum);
    }
    for peer in rank.others(size).take(size - 2) {
        let mut copy = coded_frame(transport, tag, bytes, reducer);
        copy.payload_mut().extend_from_slice(frame.payload());
        transport.send(peer, copy)?;
    }
    transport.send(rank.others(size).last().expect("more than one rank"), frame)
}

fn coded_frame(transport: &mut dyn Transport, tag: Tag, bytes: usize, reducer: &Reducer) -> Frame {
    let mut frame = Frame::new(tag, transport.buffer_of(bytes));
    frame.set_codec(reducer.coder.number());
    frame
}

/// A frame with these values, and so many extras, that the reducer's codec wrote.
fn recv_coded(
    transport: &mut dyn Transport,
    peer: Rank,
    tag: Tag,
    (place, extras): (Range<usize>, usize),
    reducer: &Reducer,
) -> Result<Frame> {
    let frame = transport.recv(peer, tag)?;
    let (found, most) = (frame.payload().len(), reducer.bytes(place) + 8 * extras);
    let fits = found == most || (reducer.coder.varies() && (8 * extras..most).contains(&found));
    if let (false, Err(error)) = (fits, expect_payload("all-reduce", most, found)) {
        return Err(error.from_peer(transport.rank(), peer, tag));
    }
    let (expected, found) = (reducer.coder.number(), frame.codec());
    if expected == found {
        return Ok(frame);
    }
    let error = WireError::OtherCodec { expected, name: reducer.name(), found };
    Err(error.from_peer(transport.rank(), peer, tag))
}

/// The payloads that [`all_reduce`] sends from `rank`, with their receivers and steps.
fn payloads(
    size: usize,
    rank: Rank,
    len: usize,
    extras: usize,
    reducer: &Reducer,
) -> impl Iterator<Item = (Rank, u16, usize)> {
    let bytes = move |rank| reducer.bytes(reducer.chunk(len, size, rank));
    let sums = bytes(rank);
    let both = move |peer| [(peer, 0, bytes(peer) + 8 * extras), (peer, 1, sums)];
    rank.others(size).flat_map(both).filter(|&(.., bytes)| bytes > 0)
}

/// Enters what [`all_reduce`] of `len` values and `extras` extras sends from `rank`; at most, where its codec varies.
pub fn forecast_all_reduce(
    ledger: &mut Ledger,
    tag: Tag,
    size: usize,
    rank: Rank,
    len: usize,
    extras: usize,
    reducer: &Reducer,
) {
    for (peer, step, bytes) in payloads(size, rank, len, extras, reducer) {
        ledger.record(tag.later(step), peer, bytes);
    }
}

//! Collective operations: every rank calls the same function with the same tag.
//!
//! Free functions over any [`Transport`]. Each doc states, for `P` ranks, the steps (frames that must follow one
//! another) and the bytes that one rank sends; each has a `forecast_*` function that enters the same into a [`Ledger`],
//! link by link, without sending, and those whose total is asked for every round have it in closed form. Reductions add
//! in rank order, so their bits never depend on what arrives first. There is no special rank: nothing is gathered in
//! one place and sent out again. One rank alone sends nothing.

mod all_reduce;

pub use all_reduce::{Reducer, all_reduce, forecast_all_reduce};

use crate::error::expect_payload;
use crate::{Count, Frame, Ledger, Rank, Result, Tag, Transport};
use std::ops::Range;

/// The part of a slice of `len` elements that `rank` reduces: consecutive, in rank order, sizes differ by at most one.
pub fn chunk(len: usize, size: usize, rank: Rank) -> Range<usize> {
    let (each, more) = (len / size, len % size);
    let start = |rank: usize| rank * each + rank.min(more);
    start(rank.index())..start(rank.index() + 1)
}

/// Everyone's bytes, by rank; the lengths may differ and may be 0.
///
/// Each to all; 1 step, `(P−1)·len` bytes and `P−1` frames.
///
/// # Errors
///
/// Those of sending and receiving, with the peer that is late, gone or wrong.
pub fn all_gather(transport: &mut dyn Transport, tag: Tag, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
    let (rank, size) = (transport.rank(), transport.size());
    for peer in rank.others(size) {
        send_bytes(transport, peer, tag, mine)?;
    }
    let of_rank = |peer| if peer == rank { Ok(mine.to_vec()) } else { recv_bytes(transport, peer, tag) };
    Rank::all(size).map(of_rank).collect()
}

/// Enters what [`all_gather`] sends from a `rank` whose bytes are `len`.
pub fn forecast_all_gather(ledger: &mut Ledger, tag: Tag, size: usize, rank: Rank, len: usize) {
    rank.others(size).for_each(|peer| ledger.record(tag, peer, len));
}

/// Sums a few values over all ranks in rank order: losses, counts, clocks.
///
/// An all-gather; 1 step, `(P−1)·8·len` bytes. For many values use [`all_reduce()`], whose bytes do not grow with `P`.
///
/// # Errors
///
/// Those of sending and receiving, with the peer that is late, gone or wrong.
pub fn all_reduce_f64(transport: &mut dyn Transport, tag: Tag, values: &mut [f64]) -> Result<()> {
    let mine: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let everyones = all_gather(transport, tag, &mine)?;
    for (peer, theirs) in Rank::all(transport.size()).zip(&everyones) {
        expect_payload("all-reduce", mine.len(), theirs.len())
            .map_err(|error| error.from_peer(transport.rank(), peer, tag))?;
        for (value, &bytes) in values.iter_mut().zip(theirs.as_chunks().0) {
            let term = f64::from_le_bytes(bytes);
            *value = if peer == Rank(0) { term } else { *value + term };
        }
    }
    Ok(())
}

/// What [`all_reduce_f64`] of `len` values sends from every rank.
pub fn all_reduce_f64_bytes(size: usize, len: usize) -> Count {
    let peers = size as u64 - 1;
    Count::of(peers, peers * 8 * len as u64)
}

/// Enters what [`all_reduce_f64`] of `len` values sends from `rank`.
pub fn forecast_all_reduce_f64(ledger: &mut Ledger, tag: Tag, size: usize, rank: Rank, len: usize) {
    forecast_all_gather(ledger, tag, size, rank, len * 8);
}

/// Sends `outgoing[r]` to rank `r` and returns what the ranks sent here; lengths may differ and may be 0.
///
/// Direct exchange; 1 step, the bytes of `outgoing` except the own item, `P−1` frames: empty ones travel as well, since
/// the receiver cannot know that they are.
///
/// # Errors
///
/// Those of sending and receiving, with the peer that is late, gone or wrong.
///
/// # Panics
///
/// If there is not one item for every rank.
pub fn all_to_all(transport: &mut dyn Transport, tag: Tag, mut outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    let (rank, size) = (transport.rank(), transport.size());
    assert_eq!(outgoing.len(), size, "one item for every rank");
    for peer in rank.others(size) {
        send_bytes(transport, peer, tag, &outgoing[peer.index()])?;
    }
    for peer in Rank::all(size).filter(|&peer| peer != rank) {
        outgoing[peer.index()] = recv_bytes(transport, peer, tag)?;
    }
    Ok(outgoing)
}

/// Enters what [`all_to_all`] sends from `rank`, given the lengths of its items.
pub fn forecast_all_to_all(ledger: &mut Ledger, tag: Tag, rank: Rank, lens: &[usize]) {
    rank.others(lens.len()).for_each(|peer| ledger.record(tag, peer, lens[peer.index()]));
}

/// Copies the root's bytes to every rank.
///
/// Along a binomial tree: who has the bytes passes them on to one more rank in each step; `⌈log₂ P⌉` steps, `len` bytes
/// for each rank below this one in the tree, at most `⌈log₂ P⌉·len`.
///
/// # Errors
///
/// Those of sending and receiving, with the peer that is late, gone or wrong.
///
/// # Panics
///
/// If the group has no such root.
pub fn broadcast(transport: &mut dyn Transport, tag: Tag, root: Rank, bytes: &mut Vec<u8>) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    assert!(root.index() < size, "rank {root} is none of the {size} workers");
    if let Some(parent) = parent(size, root, rank) {
        let frame = transport.recv(parent, tag)?;
        bytes.clear();
        bytes.extend_from_slice(frame.payload());
        transport.recycle(frame);
    }
    for child in children(size, root, rank) {
        send_bytes(transport, child, tag, bytes)?;
    }
    Ok(())
}

/// Whom `rank` gets the root's bytes from: the rank whose distance from the root lacks the highest bit of this one's.
fn parent(size: usize, root: Rank, rank: Rank) -> Option<Rank> {
    let distance = (rank.index() + size - root.index()) % size;
    let highest = distance.checked_ilog2()?;
    Some(Rank(((distance - (1 << highest) + root.index()) % size) as u32))
}

/// Whom `rank` passes them on to, nearest first, which is also who has most to pass on last.
fn children(size: usize, root: Rank, rank: Rank) -> impl Iterator<Item = Rank> {
    let distance = (rank.index() + size - root.index()) % size;
    let first = distance.checked_ilog2().map_or(0, |highest| highest + 1);
    let distances = (first..usize::BITS).map(move |bit| distance.saturating_add(1 << bit));
    distances.take_while(move |&child| child < size).map(move |child| Rank(((child + root.index()) % size) as u32))
}

/// Enters what [`broadcast`] of `len` bytes sends from `rank`.
pub fn forecast_broadcast(ledger: &mut Ledger, tag: Tag, size: usize, ranks: (Rank, Rank), len: usize) {
    let (root, rank) = ranks;
    children(size, root, rank).for_each(|peer| ledger.record(tag, peer, len));
}

/// Returns when every rank has called it.
///
/// Each to all with empty frames; 1 step, `P−1` frames. A tree needs fewer, but with it a missing rank shows up as a
/// chain of ranks that wait for one another, and here everyone names the one that is missing.
///
/// # Errors
///
/// Those of sending and receiving, with the peer that is late, gone or wrong.
pub fn barrier(transport: &mut dyn Transport, tag: Tag) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    for peer in rank.others(size) {
        send_bytes(transport, peer, tag, &[])?;
    }
    for peer in Rank::all(size).filter(|&peer| peer != rank) {
        let frame = recv_sized(transport, peer, tag, "barrier", 0)?;
        transport.recycle(frame);
    }
    Ok(())
}

/// Enters what [`barrier`] sends from `rank`.
pub fn forecast_barrier(ledger: &mut Ledger, tag: Tag, size: usize, rank: Rank) {
    forecast_all_gather(ledger, tag, size, rank, 0);
}

/// Sends bytes to one rank; the receiver knows that they come.
///
/// # Errors
///
/// Those of sending, with the peer that is gone.
pub fn send_bytes(transport: &mut dyn Transport, to: Rank, tag: Tag, bytes: &[u8]) -> Result<()> {
    let mut frame = Frame::new(tag, transport.buffer_of(bytes.len()));
    frame.payload_mut().extend_from_slice(bytes);
    transport.send(to, frame)
}

/// What a rank has sent by [`send_bytes`].
///
/// # Errors
///
/// Those of receiving, with the peer that is late, gone or wrong.
pub fn recv_bytes(transport: &mut dyn Transport, from: Rank, tag: Tag) -> Result<Vec<u8>> {
    let frame = transport.recv(from, tag)?;
    let bytes = frame.payload().to_vec();
    transport.recycle(frame);
    Ok(bytes)
}

fn recv_sized(
    transport: &mut dyn Transport,
    from: Rank,
    tag: Tag,
    what: &'static str,
    expected: usize,
) -> Result<Frame> {
    let frame = transport.recv(from, tag)?;
    match expect_payload(what, expected, frame.payload().len()) {
        Ok(()) => Ok(frame),
        Err(error) => Err(error.from_peer(transport.rank(), from, tag)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_slice_in_rank_order_and_differ_by_at_most_one() {
        for (len, size) in [(0, 3), (1, 3), (2, 3), (10, 3), (12, 4), (7, 7), (5, 1)] {
            let chunks: Vec<_> = Rank::all(size).map(|rank| chunk(len, size, rank)).collect();
            assert_eq!(chunks.iter().cloned().flatten().collect::<Vec<_>>(), (0..len).collect::<Vec<_>>());
            let sizes = || chunks.iter().map(ExactSizeIterator::len);
            assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1, "{chunks:?}");
        }
    }

    #[test]
    fn the_broadcast_tree_reaches_every_rank_once_from_its_parent() {
        for size in 1..20 {
            for root in Rank::all(size) {
                let mut reached: Vec<Rank> = vec![root];
                for rank in Rank::all(size) {
                    for child in children(size, root, rank) {
                        assert_eq!(parent(size, root, child), Some(rank));
                        reached.push(child);
                    }
                }
                reached.sort_unstable();
                assert_eq!(reached, Rank::all(size).collect::<Vec<_>>(), "size {size}, root {root}");
                assert!(children(size, root, root).count() <= size.next_power_of_two().ilog2() as usize);
            }
        }
    }
}

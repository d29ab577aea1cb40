//! From lists of drawn neighbours to blocks with rows of their own.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use crate::sample::hop::{Drawn, Hop, Sampled};
use crate::sample::lists::Lists;

/// Makes batches, in buffers that it keeps. Works on the threads of the rayon pool that it is called in; batches do not
/// depend on how many there are.
#[derive(Debug)]
pub struct Sampler {
    /// For each node its row in the batch, or [`NOBODY`], or while a hop is under way a claim.
    slots: Vec<AtomicU32>,
    drawn: Drawn,
    pieces: Vec<Piece>,
}

/// What one thread draws of a hop.
#[derive(Debug, Default)]
struct Piece {
    drawn: Drawn,
    /// Where each destination's edges end.
    ends: Vec<usize>,
    degrees: Vec<u32>,
    /// Nodes that had no row when they were drawn, each with the destination that it was drawn for.
    found: Vec<(u32, u32)>,
}

/// In the slot of a node that is not in the batch.
const NOBODY: u32 = u32::MAX;

/// In the slot of a node that has no row yet, plus the first destination that it was drawn for. Rows lie below, and the
/// smallest value stays: of several destinations, whichever thread has them, the first one claims the node.
const CLAIM: u32 = 1 << 31;

/// A thread takes at least so many destinations.
const DESTINATIONS_MIN: usize = 512;

/// Pieces for each thread, which may be of very different work.
const PIECES_PER_THREAD: usize = 4;

/// Destinations whose edges are drawn before their sources get rows: what was drawn is still in the nearest cache, and
/// there is much to look up that does not wait for another.
const DESTINATIONS_AT_A_TIME: usize = 256;

impl Sampler {
    /// A sampler for lists that number nodes below `nodes`.
    ///
    /// # Panics
    ///
    /// If these are more than 2^31.
    pub fn new(nodes: usize) -> Self {
        assert!(nodes <= CLAIM as usize, "{nodes} nodes: a batch numbers at most 2^31");
        let slots = (0..nodes).map(|_| AtomicU32::new(NOBODY)).collect();
        Sampler { slots, drawn: Drawn::default(), pieces: Vec::new() }
    }

    /// Samples the neighbourhoods of `seeds`, which may repeat, for so many layers, from the last one to the first,
    /// into the buffers of `into`.
    ///
    /// # Panics
    ///
    /// If a seed or a source that the lists give is not below the number of nodes.
    pub fn sample<L: Lists>(&mut self, lists: &L, seeds: &[u32], layers: usize, into: &mut Sampled) {
        let Sampled { nodes, seeds: rows, hops } = into;
        nodes.clear();
        rows.clear();
        rows.extend(seeds.iter().map(|&seed| self.row_of(seed, nodes)));
        hops.resize_with(layers, Hop::default);
        for (layer, hop) in hops.iter_mut().enumerate().rev() {
            hop.restart(nodes.len(), lists.loops());
            let threads = rayon::current_num_threads();
            if threads > 1 && nodes.len() >= 2 * DESTINATIONS_MIN {
                self.side_by_side(lists, layer, threads, nodes, hop);
            } else {
                self.in_turn(lists, layer, nodes, hop);
            }
            hop.sources = nodes.len();
        }
        self.forget(nodes);
    }

    /// The graph that the edges of `lists` make among `members`, each once: one hop for all layers, whose sources are
    /// its destinations. Degrees are those of that graph, as in ClusterGCN.
    ///
    /// # Panics
    ///
    /// As [`Sampler::sample`], and if a member is given twice.
    pub fn induced<L: Lists>(&mut self, lists: &L, members: &[u32], into: &mut Sampled) {
        let Sampled { nodes, seeds: rows, hops } = into;
        nodes.clear();
        rows.clear();
        rows.extend(members.iter().map(|&member| self.row_of(member, nodes)));
        assert_eq!(nodes.len(), members.len(), "each member once");
        hops.resize_with(1, Hop::default);
        let hop = &mut hops[0];
        hop.restart(nodes.len(), lists.loops());
        let mut drawn = std::mem::take(&mut self.drawn);
        hop.swap(&mut drawn);
        drawn.restart(lists.weighted(), lists.related());
        for &node in nodes.iter() {
            let start = drawn.sources.len();
            lists.append_all(0, &[node], &mut drawn, &mut hop.offsets, &mut hop.degrees);
            drawn.retain_from(start, |source| match *self.slots[source as usize].get_mut() {
                NOBODY => None,
                row => Some(row),
            });
            let end = drawn.sources.len();
            *hop.offsets.last_mut().expect("one a row") = end;
            *hop.degrees.last_mut().expect("one a row") = (end - start - usize::from(hop.loops)) as u32;
        }
        hop.swap(&mut drawn);
        self.drawn = drawn;
        self.forget(nodes);
    }

    fn forget(&mut self, nodes: &[u32]) {
        for &node in nodes {
            *self.slots[node as usize].get_mut() = NOBODY;
        }
    }

    /// The row of a node, which gets the next one where it has none.
    #[inline]
    fn row_of(&mut self, node: u32, nodes: &mut Vec<u32>) -> u32 {
        let slot = self.slots[node as usize].get_mut();
        if *slot == NOBODY {
            *slot = nodes.len() as u32;
            nodes.push(node);
        }
        *slot
    }

    /// Turns nodes into their rows; those that have none get the next ones. Without a branch on what is read, so that
    /// nothing waits for what is far away.
    fn rename(&mut self, sources: &mut [u32], nodes: &mut Vec<u32>) {
        let mut rows = nodes.len();
        nodes.resize(rows + sources.len(), 0);
        for source in sources {
            let slot = self.slots[*source as usize].get_mut();
            nodes[rows] = *source;
            let (is_new, next) = (*slot == NOBODY, rows as u32);
            *slot = if is_new { next } else { *slot };
            *source = *slot;
            rows += usize::from(is_new);
        }
        nodes.truncate(rows);
    }

    fn in_turn<L: Lists>(&mut self, lists: &L, layer: usize, nodes: &mut Vec<u32>, hop: &mut Hop) {
        let mut drawn = std::mem::take(&mut self.drawn);
        hop.swap(&mut drawn);
        drawn.restart(lists.weighted(), lists.related());
        let destinations = nodes.len();
        for start in (0..destinations).step_by(DESTINATIONS_AT_A_TIME) {
            let before = drawn.sources.len();
            let chunk = &nodes[start..destinations.min(start + DESTINATIONS_AT_A_TIME)];
            lists.append_all(layer, chunk, &mut drawn, &mut hop.offsets, &mut hop.degrees);
            self.rename(&mut drawn.sources[before..], nodes);
        }
        hop.swap(&mut drawn);
        self.drawn = drawn;
    }

    /// The same on several threads: first all draw and claim the nodes that they find for the destination that they
    /// draw for; then claims that held get rows, in order of destinations; then all look the rows up.
    fn side_by_side<L: Lists>(&mut self, lists: &L, layer: usize, threads: usize, nodes: &mut Vec<u32>, hop: &mut Hop) {
        let destinations = nodes.len();
        let size = destinations.div_ceil(threads * PIECES_PER_THREAD).max(DESTINATIONS_MIN);
        let count = destinations.div_ceil(size);
        if self.pieces.len() < count {
            self.pieces.resize_with(count, Piece::default);
        }
        let (slots, pieces) = (&self.slots[..], &mut self.pieces[..count]);
        pieces.par_iter_mut().enumerate().for_each(|(index, piece)| {
            let rows = index * size..destinations.min((index + 1) * size);
            piece.draw(lists, layer, &nodes[rows.clone()], rows.start, slots);
        });
        pieces.par_iter_mut().for_each(|piece| piece.keep_claims(slots));

        let found = pieces.iter().map(|piece| piece.found.len());
        let new = divide(nodes, destinations, found);
        pieces.par_iter().zip(new).for_each(|(piece, (start, new))| piece.number(start, new, slots));

        let edges = pieces.iter().map(|piece| piece.drawn.sources.len());
        let columns = divide(&mut hop.columns, 0, edges);
        let offsets = divide(&mut hop.offsets, 1, pieces.iter().map(|piece| piece.ends.len()));
        (pieces.par_iter().zip(columns).zip(offsets)).for_each(|((piece, (start, columns)), (_, offsets))| {
            for (column, &source) in columns.iter_mut().zip(&piece.drawn.sources) {
                *column = slots[source as usize].load(Ordering::Relaxed);
            }
            for (offset, end) in offsets.iter_mut().zip(&piece.ends) {
                *offset = start + end;
            }
        });
        pieces.iter().for_each(|piece| hop.degrees.extend_from_slice(&piece.degrees));
        hop.weights = join(hop.weights.take(), pieces.iter().map(|piece| piece.drawn.weights.as_deref()));
        hop.relations = join(hop.relations.take(), pieces.iter().map(|piece| piece.drawn.relations.as_deref()));
    }
}

impl Piece {
    fn draw<L: Lists>(&mut self, lists: &L, layer: usize, nodes: &[u32], first: usize, slots: &[AtomicU32]) {
        self.drawn.restart(lists.weighted(), lists.related());
        self.ends.clear();
        self.degrees.clear();
        self.found.clear();
        for (chunk, row) in nodes.chunks(DESTINATIONS_AT_A_TIME).zip((first..).step_by(DESTINATIONS_AT_A_TIME)) {
            let (drawn_before, rows_before) = (self.drawn.sources.len(), self.ends.len());
            lists.append_all(layer, chunk, &mut self.drawn, &mut self.ends, &mut self.degrees);
            let mut at = drawn_before;
            for (&end, row) in self.ends[rows_before..].iter().zip(row..) {
                let claim = CLAIM + row as u32;
                for &source in &self.drawn.sources[at..end] {
                    let slot = &slots[source as usize];
                    if slot.load(Ordering::Relaxed) > claim && slot.fetch_min(claim, Ordering::Relaxed) > claim {
                        self.found.push((source, row as u32));
                    }
                }
                at = end;
            }
        }
    }

    /// Forgets nodes that somebody else claimed for an earlier destination.
    fn keep_claims(&mut self, slots: &[AtomicU32]) {
        self.found.retain(|&(node, row)| slots[node as usize].load(Ordering::Relaxed) == CLAIM + row);
    }

    /// Gives the nodes that were found rows from `start` on.
    fn number(&self, start: usize, nodes: &mut [u32], slots: &[AtomicU32]) {
        for ((into, &(node, _)), row) in nodes.iter_mut().zip(&self.found).zip(start..) {
            *into = node;
            slots[node as usize].store(row as u32, Ordering::Relaxed);
        }
    }
}

/// Makes room for so many values after the first `kept`, and gives each of those ranges with where it starts.
fn divide<T: Copy + Default>(
    values: &mut Vec<T>,
    kept: usize,
    lengths: impl Iterator<Item = usize> + Clone,
) -> Vec<(usize, &mut [T])> {
    values.resize(kept + lengths.clone().sum::<usize>(), T::default());
    let (mut start, mut rest) = (kept, &mut values[kept..]);
    let part = |length: usize| {
        let (part, others) = std::mem::take(&mut rest).split_at_mut(length);
        rest = others;
        start += length;
        (start - length, part)
    };
    lengths.map(part).collect()
}

/// The columns of all pieces one after the other, in the buffer of `into`; `None` where the pieces have none.
fn join<'a, T: Copy + 'a>(into: Option<Vec<T>>, mut pieces: impl Iterator<Item = Option<&'a [T]>>) -> Option<Vec<T>> {
    let mut joined = into.unwrap_or_default();
    joined.clear();
    pieces.try_for_each(|piece| piece.map(|piece| joined.extend_from_slice(piece)))?;
    Some(joined)
}

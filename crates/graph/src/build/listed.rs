//! Edges of which more is known than their ends, put in order on all threads of the pool.
//!
//! As in `plain.rs` the edges go to buckets of consecutive destinations, each with its place in the list and its
//! weight, and each bucket is sorted by itself: no edge is looked up in the list again for its source or its weight,
//! which would wait for a line of memory each. Takes 16 bytes an edge beside what goes in and what comes out.

use std::mem;
use std::ops::Range;

use rayon::prelude::*;

use super::plain::Buckets;
use super::{prefix_sums, rewind, transpose};
use crate::edges::{EdgeData, Relations, in_pieces};
use crate::graph::Graph;

/// So many edges have places of 32 bits, twice.
const PLACES: usize = 1 << 31;

/// An edge on its way to its row: target, source, twice the place in the list (and one more for the other direction),
/// and the bits of the weight.
type Edge = [u32; 4];

/// What edges of one row are sorted by: source and place.
fn in_row(&[_, source, place, _]: &Edge) -> u64 {
    u64::from(source) << 32 | u64::from(place)
}

/// Edges in rows of their targets: sources ascend, edges of one source stand in the order in which they are listed; and
/// how many from a node to itself were left out. With `both` each stands in the row of its source, too.
pub(super) fn rows(
    (nodes, both): (usize, bool),
    ends: (&[u32], &[u32]),
    data: &EdgeData,
    keep_self_loops: bool,
) -> (Graph, u64) {
    match Listed::of((nodes, both), ends, data, keep_self_loops) {
        Some((listed, loops)) => (listed.graph(data), loops),
        None => counted((nodes, both), ends, data, keep_self_loops),
    }
}

/// Edges in buckets, which need the lists that they are from no more.
pub(super) struct Listed(Buckets<Edge>);

impl Listed {
    /// These edges, and how many from a node to itself were left out; `None` where there are too many for places of 32
    /// bits.
    pub(super) fn of(
        (nodes, both): (usize, bool),
        (sources, targets): (&[u32], &[u32]),
        data: &EdgeData,
        keep_self_loops: bool,
    ) -> Option<(Listed, u64)> {
        if sources.len() >= PLACES {
            return None;
        }
        let size = sources.len().div_ceil(rayon::current_num_threads()).max(1);
        let shares: Vec<Range<usize>> =
            (0..sources.len()).step_by(size).map(|start| start..sources.len().min(start + size)).collect();
        let weights = data.weights.as_deref();
        let bucketed = Buckets::of(nodes, &shares, |edges| {
            edges.clone().flat_map(|edge| {
                let (source, target, place) = (sources[edge], targets[edge], 2 * edge as u32);
                let weight = weights.map_or(0, |weights| weights[edge].to_bits());
                let is_kept = keep_self_loops || source != target;
                let there = is_kept.then_some((target, [target, source, place, weight]));
                let back = (both && source != target).then_some((source, [source, target, place + 1, weight]));
                there.into_iter().chain(back)
            })
        });
        let is_loop = |(source, target): &(&u32, &u32)| source == target;
        let loops = if keep_self_loops { 0 } else { sources.par_iter().zip(targets).filter(is_loop).count() };
        Some((Listed(bucketed), loops as u64))
    }

    /// The rows of these edges, with what the same `data` knows of them.
    pub(super) fn graph(self, data: &EdgeData) -> Graph {
        let Buckets { nodes, rows, mut keys, buckets } = self.0;
        let edges = keys.len();
        let (mut offsets, mut sources) = (vec![0u64; nodes + 1], laconic_array::zeros(edges));
        // What is known of an edge besides its weight is looked up by its place.
        let mut order = laconic_array::zeros(if data.relations.is_some() || data.held.is_some() { edges } else { 0 });
        let mut weights = laconic_array::zeros(if data.weights.is_some() { edges } else { 0 });
        let into = {
            let of_order = if order.is_empty() { vec![0; buckets.len()] } else { buckets.clone() };
            let of_weights = if weights.is_empty() { vec![0; buckets.len()] } else { buckets.clone() };
            let (order, weights) = (in_pieces(&mut order, &of_order), in_pieces(&mut weights, &of_weights));
            in_pieces(&mut sources, &buckets).into_par_iter().zip(order).zip(weights)
        };
        let of_rows = offsets[1..].par_chunks_mut(rows).enumerate();
        into.zip(in_pieces(&mut keys, &buckets)).zip(of_rows).for_each_init(
            Vec::new,
            |sorted, ((((sources, order), weights), keys), (bucket, counts))| {
                in_rows(keys, bucket * rows, counts, sorted);
                let sorted = &sorted[..];
                sources.iter_mut().zip(sorted).for_each(|(into, &[_, source, ..])| *into = source);
                order.iter_mut().zip(sorted).for_each(|(into, &[_, _, place, _])| *into = place);
                weights.iter_mut().zip(sorted).for_each(|(into, &[.., weight])| *into = f32::from_bits(weight));
            },
        );
        prefix_sums(&mut offsets);
        let of_edges = EdgeData { weights: data.weights.as_ref().map(|_| weights), ..picked(data, &order) };
        Graph { data: of_edges, ..Graph::new(offsets, sources) }
    }
}

/// Puts a bucket's edges `into` their rows, the first of which is of node `first`; and how many each row has.
fn in_rows(edges: &[Edge], first: usize, counts: &mut [u64], into: &mut Vec<Edge>) {
    let row = |edge: &Edge| edge[0] as usize - first;
    edges.iter().for_each(|edge| counts[row(edge)] += 1);
    let mut places: Vec<usize> =
        counts.iter().scan(0, |end, &count| Some(mem::replace(end, *end + count as usize))).collect();
    // Put into their rows first: what is left to sort are the few edges of each.
    into.resize(edges.len(), [0; 4]);
    for edge in edges {
        let place = &mut places[row(edge)];
        into[*place] = *edge;
        *place += 1;
    }
    let mut left = &mut into[..];
    for &count in counts.iter() {
        left.split_off_mut(..count as usize).expect("as many as were counted").sort_unstable_by_key(in_row);
    }
}

/// What is known of the edges at these places, besides weights.
fn picked(data: &EdgeData, order: &[u32]) -> EdgeData {
    fn of<T: Copy + Send + Sync>(values: &[T], order: &[u32]) -> Vec<T> {
        order.par_iter().map(|&place| values[place as usize / 2]).collect()
    }
    EdgeData {
        weights: None,
        relations: data.relations.as_ref().map(|all| Relations { count: all.count, of: of(&all.of, order) }),
        held: data.held.as_ref().map(|held| of(held, order)),
    }
}

/// The same by two counting sorts on one thread, by source and then by target: for any number of edges.
fn counted(
    (nodes, both): (usize, bool),
    (sources, targets): (&[u32], &[u32]),
    data: &EdgeData,
    keep_self_loops: bool,
) -> (Graph, u64) {
    let mut self_loops = 0;
    let mut offsets = vec![0u64; nodes + 1];
    for (&s, &t) in sources.iter().zip(targets) {
        if s == t && !keep_self_loops {
            self_loops += 1;
            continue;
        }
        offsets[s as usize + 1] += 1;
        if both && s != t {
            offsets[t as usize + 1] += 1;
        }
    }
    prefix_sums(&mut offsets);
    let kept = offsets[nodes] as usize;
    let mut rows = Graph { offsets, sources: laconic_array::zeros(kept), data: data.blank(kept) };
    let mut put = |row: u32, end: u32, edge: usize| {
        let place = &mut rows.offsets[row as usize];
        rows.sources[*place as usize] = end;
        rows.data.set(*place as usize, data, edge);
        *place += 1;
    };
    for (edge, (&s, &t)) in sources.iter().zip(targets).enumerate() {
        if s != t || keep_self_loops {
            put(s, t, edge);
            if both && s != t {
                put(t, s, edge);
            }
        }
    }
    rewind(&mut rows.offsets);
    (transpose(&rows), self_loops)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With more destinations than a bucket has, many duplicates, and edges from a node to itself.
    #[test]
    fn buckets_put_edges_in_the_order_that_counting_does() {
        let mut state = 7u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for (nodes, edges) in [(1, 3), (40, 0), (40, 3000), (5000, 20_000)] {
            let ends: Vec<[u32; 2]> = (0..edges).map(|_| [draw(nodes), draw(nodes)].map(|end| end as u32)).collect();
            let [sources, targets]: [Vec<u32>; 2] = [0, 1].map(|end| ends.iter().map(|ends| ends[end]).collect());
            let data = EdgeData {
                weights: Some((0..edges).map(|edge| edge as f32).collect()),
                relations: Some(Relations { count: 3, of: (0..edges).map(|edge| edge as u16 % 3).collect() }),
                held: Some((0..edges).map(|edge| (edge % 2) as u8).collect()),
            };
            for (both, keep) in [(false, false), (false, true), (true, false), (true, true)] {
                let ends = (&sources[..], &targets[..]);
                let by_counting = counted((nodes, both), ends, &data, keep);
                assert_eq!(rows((nodes, both), ends, &data, keep), by_counting, "{nodes} {both} {keep}");
            }
        }
    }
}

//! Edges of which more is known than their ends, put in order on all threads of the pool.
//!
//! As in `plain.rs` the edges go to buckets of consecutive destinations, each by its place in the list, and each
//! bucket is sorted by itself. Takes 16 bytes an edge beside what goes in and what is known of edges.

use std::mem;
use std::ops::Range;

use rayon::prelude::*;

use super::plain::Buckets;
use super::{prefix_sums, rewind, transpose};
use crate::edges::{EdgeData, Relations, in_pieces};
use crate::graph::Graph;

/// So many edges have places of 32 bits, twice.
const PLACES: usize = 1 << 31;

/// Edges in rows of their targets: sources ascend, edges of one source stand in the order in which they are listed; and
/// how many from a node to itself were left out. With `both` each stands in the row of its source, too.
pub(super) fn rows(
    (nodes, both): (usize, bool),
    ends: (&[u32], &[u32]),
    data: &EdgeData,
    keep_self_loops: bool,
) -> (Graph, u64) {
    if ends.0.len() >= PLACES {
        return counted((nodes, both), ends, data, keep_self_loops);
    }
    let (sources, targets) = ends;
    let size = sources.len().div_ceil(rayon::current_num_threads()).max(1);
    let shares: Vec<Range<usize>> =
        (0..sources.len()).step_by(size).map(|start| start..sources.len().min(start + size)).collect();
    // Twice the place in the list, and one more for the other direction.
    let bucketed = Buckets::of(nodes, &shares, |edges| {
        edges.clone().flat_map(|edge| {
            let (source, target, place) = (sources[edge], targets[edge], 2 * edge as u32);
            let there = (keep_self_loops || source != target).then_some((place, target));
            there.into_iter().chain((both && source != target).then_some((place + 1, source)))
        })
    });
    let ends_of = |place: u32| {
        let edge = place as usize / 2;
        if place.is_multiple_of(2) { (sources[edge], targets[edge]) } else { (targets[edge], sources[edge]) }
    };
    let (graph, order) = sorted(nodes, bucketed, |place| ends_of(place).0);
    let is_loop = |(source, target): (&u32, &u32)| source == target;
    let loops = if keep_self_loops { 0 } else { sources.par_iter().zip(targets).filter(|&ends| is_loop(ends)).count() };
    (Graph { data: picked(data, &order), ..graph }, loops as u64)
}

/// The rows of these edges, of which nothing else is known yet, and their places.
fn sorted(nodes: usize, mut bucketed: Buckets, source_of: impl Fn(u32) -> u32 + Sync) -> (Graph, Vec<u32>) {
    let (edges, rows) = (bucketed.keys.len(), bucketed.rows);
    let (mut offsets, mut sources, mut order) =
        (vec![0u64; nodes + 1], laconic_array::zeros(edges), laconic_array::zeros(edges));
    let into = in_pieces(&mut sources, &bucketed.buckets).into_par_iter().zip(in_pieces(&mut order, &bucketed.buckets));
    let keys = in_pieces(&mut bucketed.keys, &bucketed.buckets);
    let of_rows = offsets[1..].par_chunks_mut(rows).enumerate();
    into.zip(keys).zip(of_rows).for_each(|(((sources, order), keys), (bucket, counts))| {
        let row = |key: &u64| (key >> 32) as usize - bucket * rows;
        keys.iter().for_each(|key| counts[row(key)] += 1);
        let mut places: Vec<usize> =
            counts.iter().scan(0, |end, &count| Some(mem::replace(end, *end + count as usize))).collect();
        // Put into their rows first: what is left to sort are the few edges of each.
        let mut in_rows = vec![0u64; keys.len()];
        for key in keys.iter() {
            let place = &mut places[row(key)];
            in_rows[*place] = u64::from(source_of(*key as u32)) << 32 | u64::from(*key as u32);
            *place += 1;
        }
        let mut left = &mut in_rows[..];
        for &count in counts.iter() {
            left.split_off_mut(..count as usize).expect("as many as were counted").sort_unstable();
        }
        for (key, (source, at)) in in_rows.into_iter().zip(sources.iter_mut().zip(order)) {
            (*source, *at) = ((key >> 32) as u32, key as u32);
        }
    });
    prefix_sums(&mut offsets);
    (Graph::new(offsets, sources), order)
}

/// What is known of the edges at these places.
fn picked(data: &EdgeData, order: &[u32]) -> EdgeData {
    fn of<T: Copy + Send + Sync>(values: &[T], order: &[u32]) -> Vec<T> {
        order.par_iter().map(|&place| values[place as usize / 2]).collect()
    }
    EdgeData {
        weights: data.weights.as_ref().map(|weights| of(weights, order)),
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

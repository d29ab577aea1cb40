//! Edges of which nothing but their ends is known, put in order on all threads of the pool.
//!
//! Each thread deals its share of the edges out to buckets of consecutive destinations, and each bucket is sorted by
//! itself while it lies in a cache: what is read and written moves from front to back, where a counting sort over all
//! nodes waits for a line of memory with every edge. Takes 8 bytes an edge beside what goes in, and 12 when that has
//! gone. `external/rows.rs` does the same on the disk.

use rayon::prelude::*;

use super::Removed;
use crate::graph::Graph;

/// Buckets at most, so that the lines that each of them is written to lie in a first cache.
const BUCKETS: usize = 256;

/// Destinations of a bucket at least.
const ROWS: usize = 1024;

/// An edge as a number: in their order edges are sorted by destination, and these by source.
fn key(source: u32, target: u32) -> u64 {
    u64::from(target) << 32 | u64::from(source)
}

/// The graph of these edges, each once and in ascending rows, and what was left out. All ends are nodes.
pub(super) fn sorted(nodes: usize, sources: Vec<u32>, targets: Vec<u32>, keep_self_loops: bool) -> (Graph, Removed) {
    let given = sources.len();
    let rows = nodes.div_ceil(BUCKETS).next_power_of_two().max(ROWS);
    let (mut keys, buckets) = dealt((nodes, rows), sources, targets, keep_self_loops);
    let distinct: Vec<usize> = cut(&mut keys, &buckets).into_par_iter().map(sort_and_merge).collect();
    let edges = distinct.iter().sum();
    let (mut offsets, mut ends) = (vec![0u64; nodes + 1], vec![0u32; edges]);
    let starts: Vec<u64> = distinct
        .iter()
        .scan(0, |until, &edges| {
            *until += edges as u64;
            Some(*until - edges as u64)
        })
        .collect();
    let of_rows = offsets[1..].par_chunks_mut(rows).zip(cut(&mut ends, &distinct)).enumerate();
    of_rows.zip(cut(&mut keys, &buckets)).zip(starts).for_each(|(((bucket, (offsets, ends)), keys), start)| {
        for (end, key) in ends.iter_mut().zip(keys) {
            *end = *key as u32;
            offsets[(*key >> 32) as usize - bucket * rows] += 1;
        }
        let mut until = start;
        for offset in offsets {
            until += *offset;
            *offset = until;
        }
    });
    let kept: usize = buckets.iter().sum();
    let removed = Removed { self_loops: (given - kept) as u64, duplicates: (kept - edges) as u64 };
    (Graph::new(offsets, ends), removed)
}

/// The keys of all edges that are kept, bucket by bucket of so many rows, and how many each has.
fn dealt(
    (nodes, rows): (usize, usize),
    sources: Vec<u32>,
    targets: Vec<u32>,
    keep_self_loops: bool,
) -> (Vec<u64>, Vec<usize>) {
    let (buckets, shift) = (nodes.div_ceil(rows), rows.trailing_zeros());
    let size = sources.len().div_ceil(rayon::current_num_threads()).max(1);
    let shares = || sources.par_chunks(size).zip(targets.par_chunks(size));
    let is_kept = |source: u32, target: u32| keep_self_loops || source != target;
    let counts: Vec<Vec<usize>> = shares()
        .map(|(sources, targets)| {
            let mut counts = vec![0; buckets];
            for (&source, &target) in sources.iter().zip(targets) {
                counts[(target >> shift) as usize] += usize::from(is_kept(source, target));
            }
            counts
        })
        .collect();
    let of_buckets: Vec<usize> = (0..buckets).map(|bucket| counts.iter().map(|counts| counts[bucket]).sum()).collect();
    let mut keys = vec![0; of_buckets.iter().sum()];
    let mut places: Vec<Vec<&mut [u64]>> = counts.iter().map(|_| Vec::with_capacity(buckets)).collect();
    for (bucket, keys) in cut(&mut keys, &of_buckets).into_iter().enumerate() {
        let of_shares: Vec<usize> = counts.iter().map(|counts| counts[bucket]).collect();
        places.iter_mut().zip(cut(keys, &of_shares)).for_each(|(places, keys)| places.push(keys));
    }
    shares().zip(places).for_each(|((sources, targets), mut places)| {
        let mut next = vec![0; buckets];
        for (&source, &target) in sources.iter().zip(targets) {
            if is_kept(source, target) {
                let bucket = (target >> shift) as usize;
                places[bucket][next[bucket]] = key(source, target);
                next[bucket] += 1;
            }
        }
    });
    (keys, of_buckets)
}

/// Values in pieces of these lengths.
fn cut<'a, T>(values: &'a mut [T], lengths: &[usize]) -> Vec<&'a mut [T]> {
    let mut rest = values;
    let piece = |&length: &usize| rest.split_off_mut(..length).expect("values of all pieces");
    lengths.iter().map(piece).collect()
}

/// Puts values in order, each once before what is left over; says how many there are.
fn sort_and_merge(keys: &mut [u64]) -> usize {
    // One that has a hub's edges is for all threads.
    keys.par_sort_unstable();
    let mut end = 0;
    for at in 0..keys.len() {
        if end == 0 || keys[end - 1] != keys[at] {
            keys[end] = keys[at];
            end += 1;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use laconic_key::{Key, Purpose};

    use super::*;

    /// Several buckets and shares, the last of each shorter, with nodes that have no edges and one that has most.
    #[test]
    fn edges_of_many_buckets_are_those_of_an_ordered_set_on_any_number_of_threads() {
        for (nodes, edges) in [(5 * ROWS as u64 + 17, 40_000), (ROWS as u64, 3_000), (1, 9), (3 * ROWS as u64, 0)] {
            let key = Key::new(nodes, Purpose::Test);
            let end = |edge: u64, which: u64| {
                let draw = key.with(edge).with(which);
                if draw.with(1).unit() < 0.2 { nodes as u32 / 2 } else { draw.with(2).below(nodes) as u32 }
            };
            let ends = |which: u64| (0..edges).map(|edge| end(edge, which)).collect::<Vec<u32>>();
            for keep_self_loops in [false, true] {
                let listed = || ends(0).into_iter().zip(ends(1)).filter(|(s, t)| keep_self_loops || s != t);
                let set: BTreeSet<(u32, u32)> = listed().map(|(s, t)| (t, s)).collect();
                for threads in [1, 2, 3] {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    let made = || sorted(nodes as usize, ends(0), ends(1), keep_self_loops);
                    let (graph, removed) = pool.install(made);
                    graph.check().unwrap();
                    let of_row = |row: usize| graph.in_neighbours(row).iter().map(move |&source| (row as u32, source));
                    assert!((0..graph.nodes()).flat_map(of_row).eq(set.iter().copied()), "{nodes} nodes");
                    assert_eq!(graph.nodes() as u64, nodes);
                    let kept = listed().count() as u64;
                    let expected = Removed { self_loops: edges - kept, duplicates: kept - set.len() as u64 };
                    assert_eq!(removed, expected);
                }
            }
        }
    }
}

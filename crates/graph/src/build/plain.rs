//! Edges of which nothing but their ends is known, put in order on all threads of the pool.
//!
//! Each thread distributes its share of the edges to buckets of consecutive destinations, and each bucket is sorted by
//! itself while it lies in a cache: what is read and written moves from front to back, where a counting sort over all
//! nodes waits for a line of memory with every edge. Takes 8 bytes an edge beside what goes in, and 12 when that has
//! gone. `external/rows.rs` does the same on the disk.

use std::ops::Range;

use laconic_array::Element;
use rayon::prelude::*;

use super::Removed;
use crate::edges::in_pieces;
use crate::graph::Graph;

/// Buckets at most, so that the lines that each of them is written to lie in an L1 cache.
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
    let size = given.div_ceil(rayon::current_num_threads()).max(1);
    let shares: Vec<_> = sources.chunks(size).zip(targets.chunks(size)).collect();
    let bucketed = Buckets::of(nodes, &shares, |(sources, targets)| {
        let ends = sources.iter().zip(*targets);
        let kept = ends.filter(|(source, target)| keep_self_loops || source != target);
        kept.map(|(&source, &target)| (target, key(source, target)))
    });
    drop((sources, targets));
    let kept = bucketed.keys.len();
    let graph = bucketed.sorted();
    let (self_loops, duplicates) = ((given - kept) as u64, (kept - graph.edges()) as u64);
    let removed = Removed { self_loops, duplicates, ..Removed::default() };
    (graph, removed)
}

/// The edges of a graph in both directions, each once; the graph has none twice.
pub(super) fn both_directions(graph: &Graph) -> Graph {
    let shares = graph.pieces(rayon::current_num_threads());
    let turned = Buckets::of(graph.nodes(), &shares, |rows| {
        let of_row = |row: usize| graph.in_neighbours(row).iter().map(move |&end| (end, key(row as u32, end)));
        rows.clone().flat_map(of_row)
    });
    union(graph, &turned.sorted())
}

/// All edges of two graphs with ascending rows, each once in either.
fn union(a: &Graph, b: &Graph) -> Graph {
    let nodes = a.nodes();
    let mut offsets = vec![0u64; nodes + 1];
    offsets[1..].par_iter_mut().enumerate().with_min_len(ROWS).for_each(|(row, count)| {
        merge(a.in_neighbours(row), b.in_neighbours(row), |_| *count += 1);
    });
    for row in 0..nodes {
        offsets[row + 1] += offsets[row];
    }
    let mut sources = laconic_array::zeros::<u32>(offsets[nodes] as usize);
    let pieces: Vec<Range<usize>> = (0..nodes).step_by(ROWS).map(|row| row..nodes.min(row + ROWS)).collect();
    let lengths: Vec<usize> = pieces.iter().map(|rows| (offsets[rows.end] - offsets[rows.start]) as usize).collect();
    in_pieces(&mut sources, &lengths).into_par_iter().zip(pieces).for_each(|(sources, rows)| {
        let mut places = sources.iter_mut();
        for row in rows {
            merge(a.in_neighbours(row), b.in_neighbours(row), |source| {
                *places.next().expect("as many as were counted") = source;
            });
        }
    });
    Graph::new(offsets, sources)
}

/// Calls `each` for all sources of two ascending lists, once for one that is in both.
fn merge(mut a: &[u32], mut b: &[u32], mut each: impl FnMut(u32)) {
    while let (Some(&of_a), Some(&of_b)) = (a.first(), b.first()) {
        each(of_a.min(of_b));
        a = &a[usize::from(of_a <= of_b)..];
        b = &b[usize::from(of_b <= of_a)..];
    }
    a.iter().chain(b).for_each(|&source| each(source));
}

/// Edges, bucket by bucket of consecutive destinations.
pub(super) struct Buckets<K> {
    pub(super) nodes: usize,
    /// Destinations of a bucket.
    pub(super) rows: usize,
    pub(super) keys: Vec<K>,
    /// How many edges each bucket has.
    pub(super) buckets: Vec<usize>,
}

impl<K: Element> Buckets<K> {
    /// Those that each of the `shares` has: the destination of each, and what stands for it; a share is for one thread,
    /// which goes through it twice.
    pub(super) fn of<S: Sync, E: Iterator<Item = (u32, K)>>(
        nodes: usize,
        shares: &[S],
        edges: impl Fn(&S) -> E + Sync,
    ) -> Buckets<K> {
        let rows = nodes.div_ceil(BUCKETS).next_power_of_two().max(ROWS);
        let (count, shift) = (nodes.div_ceil(rows), rows.trailing_zeros());
        let of_share = |share: &S| {
            let mut counts = vec![0; count];
            edges(share).for_each(|(target, _)| counts[(target >> shift) as usize] += 1);
            counts
        };
        let counts: Vec<Vec<usize>> = shares.par_iter().map(of_share).collect();
        let buckets: Vec<usize> = (0..count).map(|bucket| counts.iter().map(|counts| counts[bucket]).sum()).collect();
        let mut keys = laconic_array::zeros(buckets.iter().sum());
        let mut places: Vec<Vec<&mut [K]>> = counts.iter().map(|_| Vec::with_capacity(count)).collect();
        for (bucket, keys) in in_pieces(&mut keys, &buckets).into_iter().enumerate() {
            let of_shares: Vec<usize> = counts.iter().map(|counts| counts[bucket]).collect();
            places.iter_mut().zip(in_pieces(keys, &of_shares)).for_each(|(places, keys)| places.push(keys));
        }
        shares.par_iter().zip(places).for_each(|(share, mut places)| {
            let mut next = vec![0; count];
            for (target, key) in edges(share) {
                let bucket = (target >> shift) as usize;
                places[bucket][next[bucket]] = key;
                next[bucket] += 1;
            }
        });
        Buckets { nodes, rows, keys, buckets }
    }
}

impl Buckets<u64> {
    /// The graph of these edges, each once.
    fn sorted(self) -> Graph {
        let Buckets { nodes, rows, mut keys, buckets } = self;
        let distinct: Vec<usize> = in_pieces(&mut keys, &buckets).into_par_iter().map(sort_and_merge).collect();
        let edges = distinct.iter().sum();
        let (mut offsets, mut ends) = (vec![0u64; nodes + 1], laconic_array::zeros::<u32>(edges));
        let starts: Vec<u64> = distinct
            .iter()
            .scan(0, |until, &edges| {
                *until += edges as u64;
                Some(*until - edges as u64)
            })
            .collect();
        let of_rows = offsets[1..].par_chunks_mut(rows).zip(in_pieces(&mut ends, &distinct)).enumerate();
        of_rows.zip(in_pieces(&mut keys, &buckets)).zip(starts).for_each(
            |(((bucket, (offsets, ends)), keys), start)| {
                for (end, key) in ends.iter_mut().zip(keys) {
                    *end = *key as u32;
                    offsets[(*key >> 32) as usize - bucket * rows] += 1;
                }
                let mut until = start;
                for offset in offsets {
                    until += *offset;
                    *offset = until;
                }
            },
        );
        Graph::new(offsets, ends)
    }
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
                    let (self_loops, duplicates) = (edges - kept, kept - set.len() as u64);
                    let expected = Removed { self_loops, duplicates, ..Removed::default() };
                    assert_eq!(removed, expected);
                    let both = pool.install(|| both_directions(&graph));
                    both.check().unwrap();
                    let of_row = |row: usize| both.in_neighbours(row).iter().map(move |&source| (row as u32, source));
                    let turned: BTreeSet<(u32, u32)> = set.iter().flat_map(|&(t, s)| [(t, s), (s, t)]).collect();
                    assert!((0..both.nodes()).flat_map(of_row).eq(turned), "{nodes} nodes in both directions");
                }
            }
        }
    }
}

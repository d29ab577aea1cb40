//! Many small clusters, cut as if each were a node, and then nodes moved one by one.

use std::ops::RangeInclusive;

use super::balance::Balance;
use super::contraction::{Contraction, PAIR_BYTES, pairs_max};
use super::loads::{Loads, Tally};
use super::{NOWHERE, greedy, kept};
use crate::error::Result;
use crate::partition::{RowsInput, multilevel};
use crate::source::RowSource;

/// One to gather, one to contract, one to move.
pub(super) const PASSES_MIN: u32 = 3;

/// So many clusters at least come to a part: few make large jumps, many leave little to gain from contracting.
const CLUSTERS_PER_PART: usize = 16;

/// Bytes for so many nodes: the cluster of each, its size and what a node counts of it, and the graph of clusters at
/// its largest. What balancing edges takes comes on top.
pub(super) fn memory(nodes: u64, parts: u32) -> u64 {
    16 * nodes + 24 * u64::from(parts) + PAIR_BYTES * pairs_max(nodes)
}

/// The first step where the graph of clusters is too large; none before it has so high a number.
const INSTEAD: u32 = 1 << 16;

/// The parts. Where the graph of clusters is too large, the nodes are put greedily in the passes that are left.
pub(super) fn assign(input: &RowsInput, imbalance: f64, balance: &Balance, passes: u32) -> Result<Vec<u32>> {
    let nodes = input.rows.nodes();
    let gathering = (passes - 1) / 2;
    let moving = passes - 1 - gathering;
    // After what has been gathered is cut, parts of nodes are kept, moved or not.
    let moves = gathering + 1..=passes;
    let instead = || {
        let steps = INSTEAD..=INSTEAD + moving - 1;
        greedy::assign(input, greedy::Score::fennel(input, balance), balance, steps)
    };
    if kept(input, INSTEAD..=INSTEAD + moving, input.parts as usize)?.is_some() {
        return instead();
    }
    if let Some((done, mut of)) = kept(input, moves.clone(), input.parts as usize)? {
        move_nodes(input, &mut of, balance, (done - 1, moves))?;
        return Ok(of);
    }
    let mut of = gather(input, balance, gathering)?;
    let clusters = renumber(&mut of);
    (input.tell)(&format!("contracting {nodes} nodes to {clusters} clusters"));
    let mut contraction = Contraction::new(nodes as u64);
    let fits = contract(input.rows, &of, &mut contraction)?;
    // The clusterer may have as few nodes left as it may make parts.
    if !fits || clusters < input.parts {
        (input.tell)("the graph of clusters is too large: nodes are put one by one");
        return instead();
    }
    cut(input, &mut of, (contraction, clusters), (imbalance, balance))?;
    input.kept.keep(*moves.start(), &of)?;
    move_nodes(input, &mut of, balance, (0, moves))?;
    Ok(of)
}

/// Has the clusters cut, and turns the cluster of each node into its part.
fn cut(
    input: &RowsInput,
    of: &mut [u32],
    (contraction, clusters): (Contraction, u32),
    (imbalance, balance): (f64, &Balance),
) -> Result<()> {
    let (offsets, neighbours, edge_weights) = contraction.finish(clusters);
    let node_weights = weights(of, clusters, balance);
    (input.tell)(&format!("cutting {clusters} clusters with {} edges", neighbours.len() / 2));
    let job = multilevel::Job {
        edges: (&offsets, &neighbours),
        node_weights: &node_weights,
        edge_weights: Some(&edge_weights),
        parts: input.parts,
        imbalance,
        objective: Default::default(),
        seed: input.seed,
    };
    let part_of = job.run()?;
    of.iter_mut().for_each(|place| *place = part_of[*place as usize]);
    Ok(())
}

/// What each cluster counts for: its nodes, and its edges where these are balanced, in a unit in which METIS can add
/// them all up.
fn weights(of: &[u32], clusters: u32, balance: &Balance) -> Vec<metis::Idx> {
    let mut sums = vec![[0u64; 2]; clusters as usize];
    for (node, &cluster) in of.iter().enumerate() {
        let [nodes, edges] = &mut sums[cluster as usize];
        (*nodes, *edges) = (*nodes + 1, *edges + balance.edges(node));
    }
    let all: u64 = sums.iter().map(|sum| sum[1]).sum();
    let unit = (all >> 30) + 1;
    let counted = if balance.by_edges() { 2 } else { 1 };
    let of_cluster = |[nodes, edges]: [u64; 2]| [nodes as metis::Idx, (edges / unit) as metis::Idx];
    sums.into_iter().flat_map(|sum| of_cluster(sum).into_iter().take(counted)).collect()
}

/// Label propagation with bounded sizes: each node to the cluster of most of its neighbours that has room.
fn gather(input: &RowsInput, balance: &Balance, passes: u32) -> Result<Vec<u32>> {
    let nodes = input.rows.nodes();
    let size_max = (nodes / (input.parts as usize * CLUSTERS_PER_PART)).max(1) as u32;
    let edges_max = balance.edges_most / CLUSTERS_PER_PART as u64;
    let (done, mut of) = match kept(input, 1..=passes, nodes)? {
        Some(kept) => kept,
        None => (0, (0..nodes as u32).collect()),
    };
    let mut sizes = vec![0u32; nodes];
    of.iter().for_each(|&cluster| sizes[cluster as usize] += 1);
    let mut edges = vec![0u64; if balance.by_edges() { nodes } else { 0 }];
    if balance.by_edges() {
        of.iter().enumerate().for_each(|(node, &cluster)| edges[cluster as usize] += balance.edges(node));
    }
    let mut near = Tally::new(nodes);
    for pass in done + 1..=passes {
        (input.tell)(&format!("gathering nodes into clusters, pass {pass} of {passes}"));
        input.rows.pass(&mut |rows| {
            for (node, neighbours) in rows.iter() {
                near.count(node, neighbours, &of);
                let old = of[node];
                let has_room = |cluster: u32| {
                    let held = edges.get(cluster as usize).map_or(0, |edges| edges + balance.edges(node));
                    sizes[cluster as usize] < size_max && held <= edges_max
                };
                // Of equals, the smaller one grows.
                let worth = |cluster: u32| (near.at(cluster), std::cmp::Reverse(sizes[cluster as usize]));
                let mut best = old;
                for &cluster in near.seen() {
                    if cluster != old && has_room(cluster) && worth(cluster) > worth(best) {
                        best = cluster;
                    }
                }
                sizes[old as usize] -= 1;
                sizes[best as usize] += 1;
                if balance.by_edges() {
                    edges[old as usize] -= balance.edges(node);
                    edges[best as usize] += balance.edges(node);
                }
                of[node] = best;
            }
            Ok(())
        })?;
        input.kept.keep(pass, &of)?;
    }
    Ok(of)
}

/// Numbers the clusters that are not empty, in the order of their first nodes; returns how many there are.
fn renumber(of: &mut [u32]) -> u32 {
    let mut numbers = vec![NOWHERE; of.len()];
    let mut next = 0;
    for cluster in of {
        let number = &mut numbers[*cluster as usize];
        if *number == NOWHERE {
            *number = next;
            next += 1;
        }
        *cluster = *number;
    }
    next
}

/// Counts the edges between clusters; whether there are few enough.
fn contract(rows: &dyn RowSource, of: &[u32], contraction: &mut Contraction) -> Result<bool> {
    rows.pass(&mut |rows| {
        for (node, neighbours) in rows.iter() {
            neighbours.iter().for_each(|&neighbour| contraction.add(of[node], of[neighbour as usize]));
        }
        Ok(())
    })?;
    Ok(contraction.fits())
}

/// Moves each node to where most of its neighbours are and room is, and out of parts that are too large.
fn move_nodes(
    input: &RowsInput,
    of: &mut [u32],
    balance: &Balance,
    (done, steps): (u32, RangeInclusive<u32>),
) -> Result<()> {
    let passes = steps.end() - steps.start();
    let mut loads = Loads::new(input.parts, balance);
    of.iter().enumerate().for_each(|(node, &part)| loads.put(part, node));
    let mut near = Tally::new(input.parts as usize);
    for pass in done + 1..=passes {
        (input.tell)(&format!("moving nodes, pass {pass} of {passes}"));
        input.rows.pass(&mut |rows| {
            for (node, neighbours) in rows.iter() {
                let old = of[node];
                near.count(node, neighbours, of);
                let refuge = || loads.emptiest().find(|&part| loads.has_room(part, node));
                let mut best = if loads.is_over(old) { refuge().unwrap_or(old) } else { old };
                for &part in near.seen() {
                    let nearer = near.at(part).cmp(&near.at(best));
                    let is_worth_more =
                        nearer.then(loads.size_for(best, node).total_cmp(&loads.size_for(part, node))).is_gt();
                    if part != old && loads.has_room(part, node) && is_worth_more {
                        best = part;
                    }
                }
                if best != old {
                    loads.take(old, node);
                    loads.put(best, node);
                    of[node] = best;
                }
            }
            Ok(())
        })?;
        input.kept.keep(steps.start() + pass, of)?;
    }
    Ok(())
}

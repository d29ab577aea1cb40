//! The minimum vertex cover of each cut: a row of its owner crosses, or a sum for the one who needs it,
//! whichever stands for more edges (SuperGCN, arXiv 2411.16025).
//!
//! The edges between two parts form a bipartite graph. Each is served by one of two rows: its source's, which serves
//! all edges from there, or a sum over neighbours that its owner makes for one destination, which serves all edges that
//! end there. The fewest rows are a minimum vertex cover, and that is as large as a maximum matching (Kőnig): found in
//! O(edges · √nodes) by Hopcroft and Karp. A fold of sums is the fold of rows wherever it is linear in them.
//!
//! Of n rows a sum goes out divided by the largest power of two that is not above n, and comes in multiplied by it,
//! which no number notices. So what crosses is about as large as rows are, and codecs that share a scale among rows, or
//! words among points, do not lose rows beside sums over hundreds.
//!
//! Nobody is told anything but 16 bytes a peer. Where each edge leads both ways, with one weight, either part sees all
//! edges between them as its own in-edges, and both compute the same cover from them: nodes whose rows travel in one
//! direction get sums in the other. So as many rows cross either way. The bytes are a digest of the edges.

use crate::edges::{EdgeData, Edges};
use crate::error::{GraphError, Result};
use crate::plan::halo::{HaloPlan, Link};
use crate::plan::matching::{Sides, minimum_cover};
use crate::plan::told::{Digesting, IdDigest};
use crate::plan::topology::Topology;

/// An edge between two parts, by the places of its ends in what the part of the lower number and the other one send
/// each other; the same seen from either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Between {
    ends: [u32; 2],
    /// The bits of its weight.
    weight: u32,
}

/// All edges between a part and each other one.
#[derive(Debug)]
pub struct Cuts {
    rank: u32,
    peers: Vec<Vec<Between>>,
}

/// A part's halo where rows or sums cross. Halo rows are ordered by owner, of each first rows and then sums, by their
/// places in the links that they stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct Covered {
    /// What crosses: [`Link::send`] are rows of [`Covered::outgoing`].
    pub links: Vec<Link>,
    /// Own rows → what goes out: a row by itself, or the neighbours that a sum is made of, with the weights of edges
    /// divided by the sum's scale.
    pub outgoing: Edges<u32>,
    /// Halo rows → own rows; an edge from a sum weighs as much as its scale.
    pub halo: Edges<u32>,
    /// For each halo row its node's id, and that of the own node where it is a sum for that.
    pub halo_ids: Vec<u64>,
}

impl Cuts {
    /// Those of a part as planned.
    ///
    /// # Errors
    ///
    /// If an edge from another part has none in return.
    pub fn of(plan: &HaloPlan, topology: &Topology) -> Result<Cuts> {
        let rows = topology.halo.rows();
        let mut cuts = Cuts { rank: plan.rank, peers: Vec::with_capacity(plan.links.len()) };
        for (peer, link) in plan.links.iter().enumerate() {
            let place = places(link, rows);
            let mut edges = Vec::new();
            for (row, place) in place.into_iter().enumerate() {
                for edge in of_peer(&topology.halo, link, row) {
                    let there = topology.halo.sources[edge] - link.receive.start;
                    let here = place.ok_or_else(|| one_way(topology, link.receive.start + there, peer))?;
                    let ends = if peer as u32 > plan.rank { [here, there] } else { [there, here] };
                    edges.push(Between { ends, weight: weight(&topology.halo.data, edge).to_bits() });
                }
            }
            edges.sort_unstable();
            cuts.peers.push(edges);
        }
        Ok(cuts)
    }

    /// What tells the edges between a part and each peer from others: both have the same wherever each edge leads both
    /// ways, with one weight.
    pub fn digests(&self) -> Vec<IdDigest> {
        let digest = |edges: &Vec<Between>| {
            let mut digesting = Digesting::default();
            edges.iter().for_each(|edge| {
                digesting.add(u64::from(edge.ends[0]) << 32 | u64::from(edge.ends[1]));
                digesting.add(edge.weight.into());
            });
            digesting.finish()
        };
        self.peers.iter().map(digest).collect()
    }

    /// What crosses in place of each row that is needed, once all peers are known to see the same edges. `ids` are
    /// those of own rows.
    pub fn cover(&self, plan: &HaloPlan, topology: &Topology, ids: &[u64]) -> Covered {
        let mut covering = Covering::default();
        let mut links = Vec::with_capacity(plan.links.len());
        for (peer, (link, edges)) in plan.links.iter().zip(&self.peers).enumerate() {
            let sides = [link.send.len(), link.receive.len()];
            let is_lower = peer as u32 > self.rank;
            let seen: Vec<[u32; 2]> = edges.iter().map(|edge| edge.ends).collect();
            let [low, high] = minimum_cover(Sides { count: turned(is_lower, sides), edges: &seen });
            let [own, theirs] = turned(is_lower, [low, high]);
            let send = covering.send(link, edges, is_lower, [&own, &theirs]);
            let receive = covering.receive(link, topology, ids, [&own, &theirs]);
            links.push(Link { send, receive });
        }
        let places: Vec<_> = plan.links.iter().map(|link| places(link, topology.halo.rows())).collect();
        let halo = covering.fold(plan, topology, &places);
        Covered { links, outgoing: covering.outgoing, halo, halo_ids: covering.halo_ids }
    }
}

impl Covered {
    /// How many rows and sums go out.
    pub fn sent_rows(&self) -> usize {
        self.outgoing.rows()
    }
}

/// Two of either side, the part's own first where it has the lower number.
fn turned<T>(is_lower: bool, [own, theirs]: [T; 2]) -> [T; 2] {
    if is_lower { [own, theirs] } else { [theirs, own] }
}

/// Where own rows stand among those that a peer needs.
fn places(link: &Link, rows: usize) -> Vec<Option<u32>> {
    let mut place = vec![None; rows];
    link.send.iter().zip(0..).for_each(|(&row, at)| place[row as usize] = Some(at));
    place
}

/// The edges from a peer's rows to an own one; sources ascend.
fn of_peer(halo: &Edges<u32>, link: &Link, row: usize) -> std::ops::Range<usize> {
    let all = halo.in_edges(row);
    let before = |bound: u32| all.start + halo.sources[all.clone()].partition_point(|&source| source < bound);
    before(link.receive.start)..before(link.receive.end)
}

fn weight(data: &EdgeData, edge: usize) -> f32 {
    data.weights.as_ref().map_or(1.0, |weights| weights[edge])
}

/// What a sum over so many edges is divided by: about as many, and a power of two.
fn scale(edges: u64) -> f32 {
    2.0f32.powi(edges.max(1).ilog2() as i32)
}

fn one_way(topology: &Topology, halo_row: u32, peer: usize) -> GraphError {
    let id = topology.halo_ids[halo_row as usize];
    GraphError::invalid(format!("node {id} of part {peer} has an edge to this part, and none leads back"))
}

/// What crosses, link by link.
#[derive(Default)]
struct Covering {
    outgoing: Edges<u32>,
    halo_ids: Vec<u64>,
    /// For each halo row of the links so far, the one that stands in its place.
    rows: Vec<Option<u32>>,
    /// For each link, the sums that come along it: by places of own nodes.
    sums: Vec<Vec<Option<u32>>>,
}

impl Covering {
    /// Notes what goes to a peer.
    fn send(&mut self, link: &Link, edges: &[Between], is_lower: bool, [own, theirs]: [&[bool]; 2]) -> Vec<u32> {
        let Edges { offsets, sources, data } = &mut self.outgoing;
        if offsets.is_empty() {
            *offsets = vec![0];
        }
        let first = offsets.len() as u32 - 1;
        let weights = data.weights.get_or_insert_default();
        for (&row, _) in link.send.iter().zip(own).filter(|(_, is_in)| **is_in) {
            sources.push(row);
            weights.push(1.0);
            offsets.push(sources.len() as u64);
        }
        let mut left: Vec<(u32, u32, u32)> = Vec::new();
        for edge in edges {
            let [here, there] = turned(is_lower, edge.ends);
            if !own[here as usize] && theirs[there as usize] {
                left.push((there, here, edge.weight));
            }
        }
        left.sort_unstable();
        for of_one in left.chunk_by(|a, b| a.0 == b.0) {
            let scale = scale(of_one.len() as u64);
            for &(_, here, weight) in of_one {
                sources.push(link.send[here as usize]);
                weights.push(f32::from_bits(weight) / scale);
            }
            offsets.push(sources.len() as u64);
        }
        (first..offsets.len() as u32 - 1).collect()
    }

    /// Notes what comes from a peer, and where.
    fn receive(
        &mut self,
        link: &Link,
        topology: &Topology,
        ids: &[u64],
        [own, theirs]: [&[bool]; 2],
    ) -> std::ops::Range<u32> {
        let first = self.halo_ids.len() as u32;
        for (row, &is_in) in link.receive.clone().zip(theirs) {
            self.rows.push(is_in.then_some(self.halo_ids.len() as u32));
            if is_in {
                self.halo_ids.push(topology.halo_ids[row as usize]);
            }
        }
        let mut sums = vec![None; own.len()];
        for ((sum, &row), _) in sums.iter_mut().zip(&link.send).zip(own).filter(|(_, is_in)| **is_in) {
            *sum = Some(self.halo_ids.len() as u32);
            self.halo_ids.push(ids[row as usize]);
        }
        self.sums.push(sums);
        first..self.halo_ids.len() as u32
    }

    /// The edges from what comes to own rows.
    fn fold(&self, plan: &HaloPlan, topology: &Topology, places: &[Vec<Option<u32>>]) -> Edges<u32> {
        let halo = &topology.halo;
        let mut folded = Edges::new(vec![0], Vec::with_capacity(halo.edges()));
        let mut weights = Vec::with_capacity(halo.edges());
        let mut push = |source: u32, weight: f32| {
            folded.sources.push(source);
            weights.push(weight);
        };
        let mut offsets = vec![0];
        for row in 0..halo.rows() {
            let mut count = 0;
            for (peer, link) in plan.links.iter().enumerate() {
                let (mut sum, mut summed) = (None, 0);
                for edge in of_peer(halo, link, row) {
                    match self.rows[halo.sources[edge] as usize] {
                        Some(source) => {
                            push(source, weight(&halo.data, edge));
                            count += 1;
                        }
                        None => {
                            sum = places[peer][row].and_then(|at| self.sums[peer][at as usize]);
                            summed += 1;
                        }
                    }
                }
                if let Some(sum) = sum {
                    push(sum, scale(summed));
                    count += 1;
                }
            }
            offsets.push(offsets[row] + count);
        }
        folded.offsets = offsets;
        folded.data.weights = Some(weights);
        folded
    }
}

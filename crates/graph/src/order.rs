//! The order in which a worker keeps its own rows: as they are given; such that rows which read the same rows stand
//! near each other, so that what one has read is still in the cache when the next one reads it; or at random, to see
//! what any other order is worth, or how far the order of sums alone leads.

use laconic_key::{Key, Purpose};
use rayon::prelude::*;

use crate::dataset::{Features, Labels};
use crate::edges::Edges;
use crate::narrow::Steps;
use crate::part::Part;
use crate::plan::{HaloPlan, Topology};

/// A way to order rows.
#[derive(Debug)]
pub struct OrderKind {
    /// What configurations call it.
    pub name: &'static str,
    /// Makes the order of own rows; `None` where they stay as they are.
    make: Option<fn(&Topology) -> Order>,
}

/// All of them; the first is the one that nobody has to ask for.
pub const ORDERS: [OrderKind; 3] = [
    OrderKind { name: "given", make: None },
    OrderKind { name: "locality", make: Some(by_locality) },
    OrderKind { name: "random", make: Some(at_random) },
];

impl OrderKind {
    /// The one of this name.
    pub fn from_name(name: &str) -> Option<&'static OrderKind> {
        const KINDS: &[OrderKind] = &ORDERS;
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// One of another name, at random if this one is not.
    pub fn other_than(name: &str) -> &'static OrderKind {
        const KINDS: &[OrderKind] = &ORDERS;
        KINDS.iter().rev().find(|kind| kind.name != name).expect("several orders")
    }

    /// The order of a part's own rows, which depends on its edges alone; `None` where they stay as they are.
    pub fn of(&self, topology: &Topology) -> Option<Order> {
        self.make.map(|make| make(topology))
    }
}

/// An order of rows: a permutation of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// For each place the row that goes there.
    rows: Vec<u32>,
    /// For each row its place.
    places: Vec<u32>,
}

impl Order {
    /// The order in which these rows come, each of them once.
    ///
    /// # Panics
    ///
    /// If a row comes twice, or is not below their number.
    pub fn new(rows: Vec<u32>) -> Order {
        const NOWHERE: u32 = u32::MAX;
        let mut places = vec![NOWHERE; rows.len()];
        for (&row, place) in rows.iter().zip(0..) {
            let before = std::mem::replace(&mut places[row as usize], place);
            assert_eq!(before, NOWHERE, "row {row} comes twice");
        }
        Order { rows, places }
    }

    /// The same order, or the given one where there is `None`, with rows of fewer steps first; `None` where rows stay
    /// as they are given.
    pub fn by_steps(order: Option<Order>, steps: &Steps) -> Option<Order> {
        let is_given = order.is_none();
        let mut rows = order.map_or_else(|| (0..steps.rows() as u32).collect(), |order| order.rows);
        if is_given && rows.is_sorted_by_key(|&row| steps.of(row)) {
            return None;
        }
        rows.sort_by_key(|&row| steps.of(row));
        Some(Order::new(rows))
    }

    /// What puts rows back that it has moved.
    #[must_use]
    pub fn inverse(&self) -> Order {
        Order { rows: self.places.clone(), places: self.rows.clone() }
    }

    /// For each place the row that goes there.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Moves the rows of `values`, of `width` values each, to their places. Takes the memory of one row and a bit for
    /// each.
    ///
    /// # Panics
    ///
    /// If there are not as many rows.
    pub fn move_rows<T: Copy>(&self, values: &mut [T], width: usize) {
        assert_eq!(values.len(), self.rows.len() * width, "so many rows of {width} values");
        let mut is_done = vec![0u64; self.rows.len().div_ceil(64)];
        let mut kept = Vec::with_capacity(width);
        for first in 0..self.rows.len() {
            if is_done[first / 64] >> (first % 64) & 1 != 0 {
                continue;
            }
            // Round the cycle that the place is on.
            kept.clear();
            kept.extend_from_slice(&values[first * width..][..width]);
            let mut place = first;
            loop {
                is_done[place / 64] |= 1 << (place % 64);
                let row = self.rows[place] as usize;
                if row == first {
                    break;
                }
                values.copy_within(row * width..(row + 1) * width, place * width);
                place = row;
            }
            values[place * width..][..width].copy_from_slice(&kept);
        }
    }

    /// What is known of rows, in their places; nothing where nothing is known of any.
    fn move_known<T: Copy>(&self, values: &mut [T], width: usize) {
        if !values.is_empty() {
            self.move_rows(values, width);
        }
    }

    /// The same edges with each row in its place. Those into a row keep their order.
    pub fn destinations(&self, edges: &Edges<u32>) -> Edges<u32> {
        let mut moved = Edges {
            offsets: Vec::with_capacity(edges.offsets.len()),
            sources: laconic_array::with_capacity(edges.sources.len()),
            data: edges.data.like(edges.edges()),
        };
        moved.offsets.push(0);
        for &row in &self.rows {
            let of_row = edges.in_edges(row as usize);
            moved.sources.extend_from_slice(&edges.sources[of_row.clone()]);
            moved.data.extend(&edges.data, of_row);
            moved.offsets.push(moved.sources.len() as u64);
        }
        moved
    }

    /// The same edges between rows, both ends in their places. Those into a row keep their order.
    pub fn both_ends(&self, edges: &Edges<u32>) -> Edges<u32> {
        let mut moved = self.destinations(edges);
        moved.sources.par_iter_mut().for_each(|source| *source = self.places[*source as usize]);
        moved
    }

    /// The blocks of a part whose own rows are in their places; those of the halo stay where they are.
    #[must_use]
    pub fn blocks(&self, topology: Topology) -> Topology {
        let Topology { own, halo, halo_ids } = topology;
        Topology { own: self.both_ends(&own), halo: self.destinations(&halo), halo_ids }
    }

    /// The links of a part whose own rows are in their places. What travels, and in which order, stays the same.
    #[must_use]
    pub fn links(&self, mut plan: HaloPlan) -> HaloPlan {
        plan.links.iter_mut().flat_map(|link| &mut link.send).for_each(|row| *row = self.places[*row as usize]);
        plan
    }

    /// Moves all that a part knows of its own nodes to their places, but for their edges and the user's ids, and for
    /// dense features that somebody lends: moved, they would be copied.
    pub fn move_nodes(&self, part: &mut Part) {
        self.move_rows(&mut part.nodes, 1);
        self.move_known(&mut part.left_out, 1);
        self.move_known(&mut part.roles, 1);
        match &mut part.labels {
            Labels::None => {}
            Labels::Single { values, .. } => self.move_rows(values, 1),
            Labels::Multi { classes, values } => self.move_rows(values, *classes),
        }
        match &mut part.features {
            Features::None => {}
            Features::Dense { values, .. } if values.lender().is_some() => {}
            Features::Dense { columns, values } => self.move_rows(values, *columns),
            Features::Sparse { offsets, indices, values, .. } => {
                let (mut bounds, mut columns, mut stored) =
                    (vec![0], Vec::with_capacity(indices.len()), Vec::with_capacity(values.len()));
                for &row in &self.rows {
                    let of_row = offsets[row as usize] as usize..offsets[row as usize + 1] as usize;
                    columns.extend_from_slice(&indices[of_row.clone()]);
                    stored.extend_from_slice(&values[of_row]);
                    bounds.push(columns.len() as u64);
                }
                (*offsets, *indices, *values) = (bounds, columns, stored);
            }
        }
    }
}

/// An order that knows nothing of the graph; always the same one for as many rows.
fn at_random(topology: &Topology) -> Order {
    let mut rows: Vec<u32> = (0..topology.own.rows() as u32).collect();
    Key::new(0, Purpose::RowOrder).shuffle(&mut rows);
    Order::new(rows)
}

/// No cluster gets more nodes: so many rows of 256 values are 4 MB, which a cache has room for.
const CLUSTER_MAX: u32 = 4096;

/// So often nodes choose their cluster. On graphs of papers and of communities later rounds move few.
const ROUNDS: usize = 5;

/// Clusters of nodes with many edges between them, one after the other in the order in which a search through the graph
/// comes to them, and their nodes in that order. Measured against the search alone (breadth first, with and without an
/// order by degree) and a hierarchy of communities merged by modularity (Arai et al., 2016), it was as fast as the
/// better of these or faster on citations, communities and hubs.
///
/// Rows that read the same halo rows belong together as well, so the halo's rows are nodes here. Steps: O(edges) for
/// each round, one after the other, so that the order does not depend on how many threads there are.
fn by_locality(topology: &Topology) -> Order {
    let near = Near::of(topology);
    let order = near.by_degree();
    let clusters = near.clusters(&order);
    let found = near.found(&order);
    let mut first = vec![u32::MAX; clusters.len()];
    for (&cluster, &found) in clusters.iter().zip(&found) {
        let first = &mut first[cluster as usize];
        *first = found.min(*first);
    }
    let mut rows: Vec<u32> = (0..topology.own.rows() as u32).collect();
    rows.par_sort_unstable_by_key(|&row| (first[clusters[row as usize] as usize], found[row as usize]));
    Order::new(rows)
}

/// Who is near whom: each own row has its sources, and each halo row, after them, the rows that read it.
struct Near {
    offsets: Vec<usize>,
    ends: Vec<u32>,
}

impl Near {
    fn of(topology: &Topology) -> Near {
        let Topology { own, halo, halo_ids } = topology;
        let rows = own.rows();
        let mut offsets = vec![0; rows + halo_ids.len() + 1];
        for row in 0..rows {
            offsets[row + 1] = offsets[row] + own.in_edges(row).len() + halo.in_edges(row).len();
        }
        halo.sources.iter().for_each(|&source| offsets[rows + source as usize + 1] += 1);
        for row in rows..rows + halo_ids.len() {
            offsets[row + 1] += offsets[row];
        }
        let mut ends = vec![0; own.edges() + 2 * halo.edges()];
        let mut next = offsets[rows..].to_vec();
        for row in 0..rows {
            let (of_own, of_halo) = ends[offsets[row]..offsets[row + 1]].split_at_mut(own.in_edges(row).len());
            of_own.copy_from_slice(own.in_neighbours(row));
            of_halo.iter_mut().zip(halo.in_neighbours(row)).for_each(|(end, source)| *end = rows as u32 + source);
            for &source in halo.in_neighbours(row) {
                let next = &mut next[source as usize];
                ends[*next] = row as u32;
                *next += 1;
            }
        }
        Near { offsets, ends }
    }

    fn nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    fn to(&self, node: u32) -> &[u32] {
        &self.ends[self.offsets[node as usize]..self.offsets[node as usize + 1]]
    }

    /// All nodes, those of few edges first: hubs, which belong nowhere, choose last and are searched from last.
    fn by_degree(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.nodes() as u32).collect();
        order.par_sort_by_key(|&node| self.to(node).len());
        order
    }

    /// The cluster of each node: label propagation (Raghavan et al., 2007), where nodes take the label that most of
    /// those near them have, one node after the other, unless so many have it already.
    fn clusters(&self, order: &[u32]) -> Vec<u32> {
        let mut labels: Vec<u32> = (0..self.nodes() as u32).collect();
        let (mut sizes, mut counts) = (vec![1u32; labels.len()], vec![0u32; labels.len()]);
        let mut seen = Vec::new();
        for _ in 0..ROUNDS {
            let mut moved = false;
            for &node in order {
                let near = self.to(node).iter().filter(|&&other| other != node);
                for label in near.map(|&other| labels[other as usize]) {
                    if counts[label as usize] == 0 {
                        seen.push(label);
                    }
                    counts[label as usize] += 1;
                }
                let own = labels[node as usize];
                let mut best = own;
                for &label in &seen {
                    if counts[label as usize] > counts[best as usize] && sizes[label as usize] < CLUSTER_MAX {
                        best = label;
                    }
                }
                seen.drain(..).for_each(|label| counts[label as usize] = 0);
                sizes[own as usize] -= 1;
                sizes[best as usize] += 1;
                labels[node as usize] = best;
                moved |= best != own;
            }
            if !moved {
                break;
            }
        }
        labels
    }

    /// When each node is found by a search breadth first, from the first node of `order` that has not been, and again.
    fn found(&self, order: &[u32]) -> Vec<u32> {
        const NOT_YET: u32 = u32::MAX;
        let mut found = vec![NOT_YET; self.nodes()];
        let (mut queue, mut next): (Vec<u32>, usize) = (Vec::with_capacity(found.len()), 0);
        for &start in order {
            let mut find = |node: u32, queue: &mut Vec<u32>| {
                if found[node as usize] == NOT_YET {
                    found[node as usize] = queue.len() as u32;
                    queue.push(node);
                }
            };
            find(start, &mut queue);
            while let Some(&node) = queue.get(next) {
                self.to(node).iter().for_each(|&other| find(other, &mut queue));
                next += 1;
            }
        }
        found
    }
}

//! Whether edges join nodes of two sides and none within a side, though nobody says that nodes are of two types.

use crate::graph::Graph;

/// Fewer cycles may all be even by chance: each is with a chance of a half.
const CYCLES_MIN: u64 = 10;
/// Fewer edges from nodes that none leads to say nothing either.
const EDGES_MIN: u64 = 20;

/// A bipartite graph.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sides {
    /// Nodes with edges on each side; edges lead more often to the second.
    pub nodes: [u64; 2],
    /// The area under the ROC curve that who tells the sides apart, and nothing else, reaches against targets drawn
    /// from all nodes.
    pub area: f64,
}

/// Nodes in connected pieces, each with the side that it is on there: a union-find forest with parities.
struct Forest {
    /// The parent of each node, and whether it is on the other side.
    above: Vec<(u32, bool)>,
    /// Edges that lead to it: 1; from it: 2.
    ends: Vec<u8>,
    joined: u64,
    /// Edges by whether they lead to a larger number.
    edges: [u64; 2],
}

impl Forest {
    fn of(nodes: usize) -> Forest {
        let above = (0..nodes as u32).map(|node| (node, false)).collect();
        Forest { above, ends: vec![0; nodes], joined: 0, edges: [0; 2] }
    }

    /// The root of a node's piece, and whether the node is on the other side than it.
    fn root(&mut self, mut node: u32) -> (u32, bool) {
        let mut is_other = false;
        loop {
            let (parent, flips) = self.above[node as usize];
            if parent == node {
                return (node, is_other);
            }
            // Halves the way for who comes next.
            let (grand, more) = self.above[parent as usize];
            self.above[node as usize] = (grand, flips ^ (more && grand != parent));
            (node, is_other) = (parent, is_other ^ flips);
        }
    }

    /// One more edge; `None` if it joins two nodes of a side.
    fn join(&mut self, source: u32, target: u32) -> Option<()> {
        self.edges[usize::from(source < target)] += 1;
        self.ends[target as usize] |= 1;
        self.ends[source as usize] |= 2;
        let ((a, one), (b, other)) = (self.root(source), self.root(target));
        if a == b {
            return (one != other).then_some(());
        }
        self.above[a.max(b) as usize] = (a.min(b), one == other);
        self.joined += 1;
        Some(())
    }

    /// Whether that edges join two sides is more than chance.
    fn says_something(&self) -> bool {
        let [down, up] = self.edges;
        let leads_one_way = self.ends.iter().all(|&ends| ends != 3);
        // Both directions of an edge are one here.
        down.max(up).saturating_sub(self.joined) >= CYCLES_MIN || leads_one_way && down + up >= EDGES_MIN
    }

    /// The sides, of so many nodes in all, where each piece turns to the second what edges lead to more often.
    fn sides(mut self, all: u64, edges: impl Iterator<Item = u32>) -> Option<Sides> {
        if !self.says_something() {
            return None;
        }
        let nodes = self.above.len();
        let (mut members, mut leads_to) = (vec![[0u64; 2]; nodes], vec![[0u64; 2]; nodes]);
        for node in (0..nodes as u32).filter(|&node| self.ends[node as usize] > 0).collect::<Vec<u32>>() {
            let (root, is_other) = self.root(node);
            members[root as usize][usize::from(is_other)] += 1;
        }
        for target in edges {
            let (root, is_other) = self.root(target);
            leads_to[root as usize][usize::from(is_other)] += 1;
        }
        let (mut of, mut to) = ([0u64; 2], [0u64; 2]);
        for (members, leads_to) in members.into_iter().zip(leads_to) {
            let turns = (leads_to[0], members[0]) > (leads_to[1], members[1]);
            for side in [0, 1] {
                of[side] += members[side ^ usize::from(turns)];
                to[side] += leads_to[side ^ usize::from(turns)];
            }
        }
        let count: f64 = to.iter().map(|&edges| edges as f64).sum();
        let of_side = |side: usize| to[side] as f64 / count * (1.0 - of[side] as f64 / all as f64 / 2.0);
        Some(Sides { nodes: of, area: of_side(0) + of_side(1) })
    }
}

/// Each row's sources, none twice after each other.
fn different<Id: Copy + PartialEq>(sources: &[Id]) -> impl Iterator<Item = Id> {
    sources.chunk_by(|a, b| a == b).map(|of| of[0])
}

impl Sides {
    /// Of a graph, unless an edge joins two nodes of a side, or there are too few edges to say.
    pub fn of(graph: &Graph) -> Option<Sides> {
        let nodes = graph.nodes();
        let ends = || (0..nodes).flat_map(|node| different(graph.in_neighbours(node)).map(move |s| (s, node as u32)));
        let mut forest = Forest::of(nodes);
        for (source, target) in ends().filter(|(source, target)| source != target) {
            forest.join(source, target)?;
        }
        forest.sides(nodes as u64, ends().map(|edge| edge.1))
    }

    /// The same of nodes with the sources of the edges that end at them, in any order; `None` also where these are not
    /// all of so many nodes, or nodes are called by other numbers than those below.
    pub fn of_rows<'a>(all: u64, rows: impl Iterator<Item = (u64, &'a [u64])> + Clone) -> Option<Sides> {
        if rows.clone().count() as u64 != all || all > u64::from(u32::MAX) {
            return None;
        }
        let known = |id: u64| u32::try_from(id).ok().filter(|_| id < all);
        let (mut forest, mut targets) = (Forest::of(all as usize), Vec::new());
        for (target, sources) in rows {
            for source in different(sources).filter(|&source| source != target) {
                let (source, target) = (known(source)?, known(target)?);
                forest.join(source, target)?;
                targets.push(target);
            }
        }
        forest.sides(all, targets.into_iter())
    }

    /// What is to be said of it where links are learned from a graph whose nodes have no types.
    pub fn said(&self) -> String {
        let Sides { nodes: [first, second], area } = self;
        format!(
            "edges join nodes of two sides, of {first} and {second}, and none within a side, and these data have no \
             types of nodes: pairs that are no edges have targets of both sides, so that a model which tells the sides \
             apart and nothing else has a roc_auc of {area:.2}; nodes of two types (node_type of an npz with \
             data.typed = true, or a folder with a table a type) have targets of their own"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_key::{Key, Purpose};
    use std::collections::BTreeSet;

    fn graph(nodes: usize, edges: &[(u32, u32)]) -> Graph {
        Graph::from_edges(nodes, edges).unwrap()
    }

    /// Edges from 30 nodes to 50, in both directions if asked for; ten further nodes have none.
    fn bipartite(both: bool) -> Vec<(u32, u32)> {
        let key = Key::new(3, Purpose::Test);
        let end = |edge: u64, of: u64, below: u64| key.with(edge).with(of).below(below) as u32;
        let one_way: Vec<(u32, u32)> = (0..200).map(|edge| (end(edge, 0, 30), 30 + end(edge, 1, 50))).collect();
        let back = one_way.iter().map(|&(a, b)| (b, a));
        let mut all: Vec<(u32, u32)> = if both { one_way.iter().copied().chain(back).collect() } else { one_way };
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn sides_are_found_whatever_the_direction_and_the_partition_and_one_edge_within_a_side_ends_it() {
        for both in [false, true] {
            let edges = bipartite(both);
            let found = Sides::of(&graph(90, &edges)).expect("two sides");
            let ends = || edges.iter().flat_map(|edge| [edge.0, edge.1]);
            let [left, right] = [0..30u32, 30..80].map(|side| {
                let on_it: BTreeSet<u32> = ends().filter(|end| side.contains(end)).collect();
                on_it
            });
            let (a, b) = (left.len() as u64, right.len() as u64);
            assert_eq!(found.nodes, if both && a > b { [b, a] } else { [a, b] });
            // Pair by pair: each edge against each of all 90 nodes in the place of its target.
            let (mut sum, mut pairs) = (0.0, 0.0);
            for &(_, target) in &edges {
                for other in 0..90 {
                    let is_like = [&left, &right].iter().any(|side| side.contains(&target) && side.contains(&other));
                    sum += if is_like { 0.5 } else { 1.0 };
                    pairs += 1.0;
                }
            }
            assert!((found.area - sum / pairs).abs() < 1e-12, "{found:?}, not {}", sum / pairs);
            // Parts have them in another order.
            let into = |node: u64| {
                let sources = edges.iter().filter(move |edge| u64::from(edge.1) == node);
                (node, sources.map(|edge| u64::from(edge.0)).collect::<Vec<u64>>())
            };
            let rows: Vec<(u64, Vec<u64>)> = (0..90).map(|at| into(at * 7 % 90)).collect();
            let some = |count: usize| rows[..count].iter().map(|(node, sources)| (*node, &sources[..]));
            assert_eq!(Sides::of_rows(90, some(90)), Some(found));
            assert_eq!(Sides::of_rows(90, some(60)), None);
            for within in [(3, 4), (40, 55)] {
                assert_eq!(Sides::of(&graph(90, &[&edges[..], &[within]].concat())), None);
            }
        }
    }

    #[test]
    fn what_any_few_edges_have_is_no_sign_of_two_sides() {
        // A tree, a square, no edges at all.
        let both = |node: u32| [(node, (node - 1) / 3), ((node - 1) / 3, node)];
        let tree: Vec<(u32, u32)> = (1..200).flat_map(both).collect();
        assert_eq!(Sides::of(&graph(200, &tree)), None);
        assert_eq!(Sides::of(&graph(4, &[(0, 1), (1, 2), (2, 3), (3, 0)])), None);
        assert_eq!(Sides::of(&graph(4, &[])), None);
        // Leaves that edges of 20 roots lead to are another side, without any cycle.
        let leaves: Vec<(u32, u32)> = (20..100).map(|leaf| (leaf % 20, leaf)).collect();
        assert_eq!(Sides::of(&graph(100, &leaves)).map(|sides| sides.nodes), Some([20, 80]));
    }
}

//! How full parts are.

use super::balance::Balance;

/// What is in each part, and which parts have least.
pub(super) struct Loads<'a> {
    /// Nodes and edges.
    loads: Vec<[u64; 2]>,
    balance: &'a Balance,
    /// A tournament for each measure of [`Loads::measure`]: place `i` has the part that wins against those of places
    /// `2i` and `2i + 1`, and parts stand from place `parts` on.
    emptiest: Vec<Vec<u32>>,
}

impl<'a> Loads<'a> {
    /// Empty parts.
    pub(super) fn new(parts: u32, balance: &'a Balance) -> Loads<'a> {
        let leaves = parts as usize;
        let mut places = vec![0; 2 * leaves];
        (0..parts).for_each(|part| places[leaves + part as usize] = part);
        (1..leaves).rev().for_each(|place| places[place] = places[2 * place].min(places[2 * place + 1]));
        let emptiest = vec![places; if balance.by_edges() { 3 } else { 1 }];
        Loads { loads: vec![[0; 2]; leaves], balance, emptiest }
    }

    /// The nodes and the edges of a part, each in nodes.
    pub(super) fn sizes(&self, part: u32) -> [f64; 2] {
        self.balance.sizes(self.loads[part as usize])
    }

    /// How large a part is for who is about to get this node: of edges for who has many, else of nodes.
    pub(super) fn size_for(&self, part: u32, node: usize) -> f64 {
        mean(self.sizes(part), self.balance.demand(node))
    }

    /// Whether a node fits. One with fewer edges than the mean fits wherever one more node does: so a part that is full
    /// of edges and one that is full of nodes can change one for the other.
    pub(super) fn has_room(&self, part: u32, node: usize) -> bool {
        let [nodes, edges] = self.loads[part as usize];
        let has_edges = edges.saturating_add(self.balance.edges(node)) <= self.balance.edges_most;
        nodes < self.balance.nodes_most && (has_edges || self.balance.demand(node) < 1.0)
    }

    /// Whether a part has more than it may.
    pub(super) fn is_over(&self, part: u32) -> bool {
        let [nodes, edges] = self.loads[part as usize];
        nodes > self.balance.nodes_most || edges > self.balance.edges_most
    }

    /// The part with the fewest nodes, where one more always has room. Where edges are balanced also the one with the
    /// fewest edges, and the one that is farthest from having as much as it may. Of equals the one of the lowest
    /// number.
    pub(super) fn emptiest(&self) -> impl Iterator<Item = u32> {
        self.emptiest.iter().map(|places| places[1])
    }

    pub(super) fn put(&mut self, part: u32, node: usize) {
        let [nodes, edges] = &mut self.loads[part as usize];
        (*nodes, *edges) = (*nodes + 1, *edges + self.balance.edges(node));
        self.play(part);
    }

    pub(super) fn take(&mut self, part: u32, node: usize) {
        let [nodes, edges] = &mut self.loads[part as usize];
        (*nodes, *edges) = (*nodes - 1, *edges - self.balance.edges(node));
        self.play(part);
    }

    /// Nodes, edges, or how full the part is of what it has more of.
    fn measure(&self, what: usize, part: u32) -> f64 {
        let [nodes, edges] = self.loads[part as usize].map(|count| count as f64);
        let Balance { nodes_most, edges_most, .. } = *self.balance;
        match what {
            0 => nodes,
            1 => edges,
            _ => (nodes / nodes_most as f64).max(edges / edges_most as f64),
        }
    }

    fn play(&mut self, part: u32) {
        for what in 0..self.emptiest.len() {
            let mut place = (self.loads.len() + part as usize) / 2;
            while place > 0 {
                let [one, other] = [0, 1].map(|side| self.emptiest[what][2 * place + side]);
                let order = self.measure(what, one).total_cmp(&self.measure(what, other)).then(one.cmp(&other));
                self.emptiest[what][place] = if order.is_lt() { one } else { other };
                place /= 2;
            }
        }
    }
}

/// The mean of what nodes come to and what edges do, which count for so many nodes.
pub(super) fn mean([nodes, edges]: [f64; 2], demand: f64) -> f64 {
    (nodes + demand * edges) / (1.0 + demand)
}

/// How many neighbours of one node are where.
pub(super) struct Tally {
    counts: Vec<u32>,
    seen: Vec<u32>,
}

impl Tally {
    /// For so many places.
    pub(super) fn new(places: usize) -> Tally {
        Tally { counts: vec![0; places], seen: Vec::new() }
    }

    /// Counts where the neighbours of `node` are, itself and those that are nowhere left out.
    pub(super) fn count(&mut self, node: usize, neighbours: &[u32], of: &[u32]) {
        for &place in &self.seen {
            self.counts[place as usize] = 0;
        }
        self.seen.clear();
        for &neighbour in neighbours {
            let place = of[neighbour as usize];
            if place != super::NOWHERE && neighbour as usize != node {
                let count = &mut self.counts[place as usize];
                if *count == 0 {
                    self.seen.push(place);
                }
                *count += 1;
            }
        }
    }

    /// The places that any neighbour is in.
    pub(super) fn seen(&self) -> &[u32] {
        &self.seen
    }

    /// How many neighbours are in `place`.
    pub(super) fn at(&self, place: u32) -> u32 {
        self.counts[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use laconic_key::{Key, Purpose};

    use super::Loads;
    use crate::graph::Graph;
    use crate::partition::RowsInput;
    use crate::partition::streaming::balance::Balance;

    #[test]
    fn the_emptiest_parts_are_those_that_a_search_finds() {
        let key = Key::new(1, Purpose::Test);
        let nodes = 40usize;
        let arcs: Vec<(u32, u32)> =
            (0..nodes as u32).flat_map(|node| (0..node % 7).map(move |to| (to, node))).collect();
        let graph = Graph::from_edges(nodes, &arcs).unwrap();
        for (by_edges, parts) in [1u32, 2, 3, 7, 20].into_iter().flat_map(|parts| [(false, parts), (true, parts)]) {
            let input =
                RowsInput { rows: &graph, in_edges: &graph, roles: None, parts, seed: 0, tell: &|_| (), kept: &() };
            let balance = Balance::of(&input, 0.1, by_edges).unwrap();
            let (mut loads, mut held) = (Loads::new(parts, &balance), vec![Vec::<usize>::new(); parts as usize]);
            for step in 0..300 {
                let part = key.with(step).below(u64::from(parts)) as usize;
                let taken = if step % 3 == 2 { held[part].pop() } else { None };
                let node = key.with(step).with(1).below(nodes as u64) as usize;
                match taken {
                    Some(node) => loads.take(part as u32, node),
                    None => {
                        held[part].push(node);
                        loads.put(part as u32, node);
                    }
                }
                let edges = |held: &Vec<usize>| held.iter().map(|&node| graph.in_edges(node).len()).sum::<usize>();
                let by = |of: &dyn Fn(&Vec<usize>) -> usize| {
                    (0..parts).min_by_key(|&part| (of(&held[part as usize]), part)).expect("a part")
                };
                // In whole numbers: shares of both bounds, over their product.
                let full = |held: &Vec<usize>| {
                    let [nodes, edges] = [held.len(), edges(held)].map(|count| count as u64);
                    (nodes * balance.edges_most).max(edges * balance.nodes_most) as usize
                };
                let found: Vec<u32> = loads.emptiest().collect();
                match by_edges {
                    true => assert_eq!(found, [by(&|held| held.len()), by(&edges), by(&full)], "{parts} {step}"),
                    false => assert_eq!(found, [by(&|held| held.len())], "{parts} {step}"),
                }
            }
        }
    }
}

//! Minimum vertex covers of bipartite graphs, by a maximum matching (Hopcroft and Karp, 1973) and Kőnig's theorem.

/// No node.
const NOBODY: u32 = u32::MAX;

/// A bipartite graph.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides<'a> {
    /// How many nodes either side has.
    pub count: [usize; 2],
    /// Its edges, a node of each side, ascending; parallel ones may repeat.
    pub edges: &'a [[u32; 2]],
}

/// The nodes of either side that are in a minimum vertex cover: each edge has an end there, and no set of fewer nodes
/// has. The same for the same edges, wherever it is computed.
pub(super) fn minimum_cover(sides: Sides<'_>) -> [Vec<bool>; 2] {
    let mut matching = Matching::new(sides);
    while matching.layer() {
        matching.augment();
    }
    matching.cover()
}

/// A matching that grows.
struct Matching<'a> {
    edges: &'a [[u32; 2]],
    /// Where the edges of each left node begin, and where the last ones end.
    offsets: Vec<usize>,
    /// The partner of each left and each right node.
    partners: [Vec<u32>; 2],
    /// How many steps each left node is from one without a partner.
    level: Vec<u32>,
    /// The next edge that a search tries from each left node.
    next: Vec<usize>,
    /// Left nodes in the order in which they were reached.
    queue: Vec<u32>,
}

impl<'a> Matching<'a> {
    fn new(Sides { count: [left, right], edges }: Sides<'a>) -> Matching<'a> {
        let mut offsets = vec![0; left + 1];
        edges.iter().for_each(|edge| offsets[edge[0] as usize + 1] += 1);
        (0..left).for_each(|node| offsets[node + 1] += offsets[node]);
        Matching {
            edges,
            offsets,
            partners: [vec![NOBODY; left], vec![NOBODY; right]],
            level: vec![NOBODY; left],
            next: vec![0; left],
            queue: Vec::with_capacity(left),
        }
    }

    /// Left nodes by their distance from those without a partner, along edges to the right and partners back. Says
    /// whether a right node without a partner is within reach.
    fn layer(&mut self) -> bool {
        self.queue.clear();
        for (node, level) in self.level.iter_mut().enumerate() {
            let is_free = self.partners[0][node] == NOBODY;
            *level = if is_free { 0 } else { NOBODY };
            if is_free {
                self.queue.push(node as u32);
            }
        }
        let (mut at, mut is_found) = (0, false);
        while let Some(&node) = self.queue.get(at) {
            at += 1;
            for edge in &self.edges[self.offsets[node as usize]..self.offsets[node as usize + 1]] {
                let partner = self.partners[1][edge[1] as usize];
                if partner == NOBODY {
                    is_found = true;
                } else if self.level[partner as usize] == NOBODY {
                    self.level[partner as usize] = self.level[node as usize] + 1;
                    self.queue.push(partner);
                }
            }
        }
        is_found
    }

    /// Adds a maximal set of shortest augmenting paths.
    fn augment(&mut self) {
        self.next.copy_from_slice(&self.offsets[..self.level.len()]);
        let mut path = Vec::new();
        for start in 0..self.level.len() {
            if self.partners[0][start] == NOBODY {
                self.search(start as u32, &mut path);
            }
        }
    }

    /// One augmenting path from a left node, depth first without recursion: graphs may be long chains.
    fn search(&mut self, start: u32, path: &mut Vec<u32>) {
        path.clear();
        path.push(start);
        while let Some(&node) = path.last() {
            let at = node as usize;
            let Some(edge) = (self.next[at]..self.offsets[at + 1]).find(|&edge| self.leads_on(node, edge)) else {
                self.next[at] = self.offsets[at + 1];
                path.pop();
                if let Some(&before) = path.last() {
                    self.next[before as usize] += 1;
                }
                continue;
            };
            self.next[at] = edge;
            match self.partners[1][self.edges[edge][1] as usize] {
                NOBODY => return self.take(path),
                partner => path.push(partner),
            }
        }
    }

    fn leads_on(&self, node: u32, edge: usize) -> bool {
        let partner = self.partners[1][self.edges[edge][1] as usize];
        partner == NOBODY || self.level[partner as usize] == self.level[node as usize] + 1
    }

    /// Matches each left node of a path with the right node that its search stands at.
    fn take(&mut self, path: &[u32]) {
        for &node in path.iter().rev() {
            let edge = self.next[node as usize];
            let right = self.edges[edge][1];
            self.partners[0][node as usize] = right;
            self.partners[1][right as usize] = node;
            self.next[node as usize] = edge + 1;
        }
    }

    /// Left nodes that alternating paths from free ones do not reach, and right nodes that they do; after a search
    /// that has found no path.
    fn cover(&self) -> [Vec<bool>; 2] {
        let left = self.level.iter().map(|&level| level == NOBODY).collect();
        let reached = |&partner: &u32| partner != NOBODY && self.level[partner as usize] != NOBODY;
        [left, self.partners[1].iter().map(reached).collect()]
    }
}

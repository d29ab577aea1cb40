//! Neighbours as inputs see them: each once, and no node its own.

use laconic_graph::plan::Topology;
use laconic_nn::Block;

/// For each own row the rows that it has edges from, ascending: own rows have their numbers, and halo rows follow
/// these. Edges between the same two nodes count once, and loops not at all, or a node would be told of itself.
#[derive(Debug)]
pub struct Neighbours {
    offsets: Vec<usize>,
    sources: Vec<u32>,
}

impl Neighbours {
    /// Those along the edges of both blocks, own → own and halo → own.
    pub fn of(own: &Block, halo: &Block) -> Neighbours {
        let (rows, own, halo) = (own.destinations(), own.forward(), halo.forward());
        let of_own = |row: usize| &own.columns[own.offsets[row]..own.offsets[row + 1]];
        Neighbours::of_rows(rows, of_own, |row| &halo.columns[halo.offsets[row]..halo.offsets[row + 1]])
    }

    /// The same along the edges of a part's graph.
    pub fn of_topology(topology: &Topology) -> Neighbours {
        let rows = topology.own.rows();
        Neighbours::of_rows(rows, |row| topology.own.in_neighbours(row), |row| topology.halo.in_neighbours(row))
    }

    fn of_rows<'a>(rows: usize, own: impl Fn(usize) -> &'a [u32], halo: impl Fn(usize) -> &'a [u32]) -> Neighbours {
        let mut found = Neighbours { offsets: vec![0], sources: Vec::new() };
        let mut row_of = Vec::new();
        for row in 0..rows {
            row_of.extend(own(row).iter().copied().filter(|&source| source as usize != row));
            row_of.extend(halo(row).iter().map(|&source| rows as u32 + source));
            row_of.sort_unstable();
            row_of.dedup();
            found.sources.append(&mut row_of);
            found.offsets.push(found.sources.len());
        }
        found
    }

    /// How many own rows there are.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The rows that an own row has edges from.
    pub fn of_row(&self, row: usize) -> &[u32] {
        &self.sources[self.offsets[row]..self.offsets[row + 1]]
    }

    /// The halo row that a number stands for; `None` where it is an own row.
    pub fn halo(&self, source: u32) -> Option<usize> {
        (source as usize).checked_sub(self.rows())
    }

    /// Whether an own row has an edge from another.
    pub fn has(&self, row: usize, source: usize) -> bool {
        self.of_row(row).binary_search(&(source as u32)).is_ok()
    }
}

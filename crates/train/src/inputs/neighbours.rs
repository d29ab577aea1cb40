//! Neighbours as inputs see them: each once, and no node its own.

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
        let rows = own.destinations();
        let (own, halo) = (own.forward(), halo.forward());
        let mut found =
            Neighbours { offsets: vec![0], sources: Vec::with_capacity(own.columns.len() + halo.columns.len()) };
        let mut row_of = Vec::new();
        for row in 0..rows {
            let own = own.columns[own.offsets[row]..own.offsets[row + 1]].iter().copied();
            let halo = halo.columns[halo.offsets[row]..halo.offsets[row + 1]].iter();
            row_of.extend(own.filter(|&source| source as usize != row));
            row_of.extend(halo.map(|&source| rows as u32 + source));
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

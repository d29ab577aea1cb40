//! Neighbours as inputs see them: each once, and no node its own.

use laconic_nn::Block;

/// A row and where it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Neighbour {
    /// An own row.
    Own(usize),
    /// A halo row.
    Halo(usize),
}

/// Calls `task` for every own row with the rows that it has edges from: edges between the same two nodes count once,
/// and loops not at all, or a node would be told of itself.
pub(super) fn each_row(own: &Block, halo: &Block, mut task: impl FnMut(usize, &[Neighbour])) {
    let mut found = Vec::new();
    let (own, halo) = (own.forward(), halo.forward());
    for row in 0..own.offsets.len() - 1 {
        found.clear();
        let sources = |csr: &laconic_nn::block::Csr<'_>| csr.offsets[row]..csr.offsets[row + 1];
        found.extend(own.columns[sources(&own)].iter().map(|&source| Neighbour::Own(source as usize)));
        found.extend(halo.columns[sources(&halo)].iter().map(|&source| Neighbour::Halo(source as usize)));
        found.sort_unstable();
        found.dedup();
        found.retain(|&neighbour| neighbour != Neighbour::Own(row));
        task(row, &found);
    }
}

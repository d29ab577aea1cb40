//! Edges that a batch must not read, since it is to predict them: as if its graph did not have them.

use std::collections::HashMap;

use laconic_graph::sample::Skip;

use crate::worker::local::Local;

/// What one batch goes without.
#[derive(Debug, Clone, Default)]
pub struct LeftOut {
    /// The edges that end at own nodes, by number.
    pub skip: Skip,
    /// By number, what is left of degrees: their inverse, and its root. Of own nodes, and of foreign ones that the
    /// batch reads.
    pub degrees: HashMap<u32, [f32; 2]>,
}

impl LeftOut {
    /// A batch without these edges, by the numbers of their sources and of their targets, which are own rows.
    pub fn new(local: &Local, edges: impl IntoIterator<Item = (u32, u32)>) -> LeftOut {
        let skip = Skip::new(edges);
        let degrees = skip.destinations().map(|row| (row, degrees(local, &skip, row))).collect();
        LeftOut { skip, degrees }
    }
}

/// The degree of an own row without what is left out.
fn degrees(local: &Local, skip: &Skip, row: u32) -> [f32; 2] {
    let gone: Vec<u32> = skip.sources_into(row).collect();
    let mut degree = 0.0f64;
    for (block, first) in [(&local.own, 0), (&local.halo, local.ids.len() as u32)] {
        let csr = block.forward();
        for edge in csr.offsets[row as usize]..csr.offsets[row as usize + 1] {
            if gone.binary_search(&(first + csr.columns[edge])).is_err() {
                degree += block.weights().map_or(1.0, |weights| f64::from(weights[edge]));
            }
        }
    }
    let degree = degree as f32 + local.left_out(row);
    [1.0, 0.5].map(|power: f32| if degree > 0.0 { degree.powf(-power) } else { 0.0 })
}

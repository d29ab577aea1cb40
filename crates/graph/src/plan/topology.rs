//! The two blocks of a part's graph: own → own and halo → own.

use crate::part::Part;
use crate::plan::index::IdIndex;

/// A sparse operator with one row for each own node, by destination; columns ascend within a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Csr {
    /// `offsets[r]..offsets[r + 1]` are the positions in `sources` of row `r`; length rows + 1.
    pub offsets: Vec<usize>,
    /// The column of each edge: the row number of its source.
    pub sources: Vec<u32>,
    /// The weight of each edge; `None` where every edge weighs 1.
    pub weights: Option<Vec<f32>>,
}

/// The edges that end at own nodes, split by who owns the source.
///
/// With self loops asked for, loops that the graph has are taken out and one `(v, v)` a node is put in. Its weight is
/// that of the loop taken out, the last one where there were several, and 1 where there was none: what
/// `add_remaining_self_loops` of PyTorch Geometric does. Without, the graph's own loops stay as they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Own rows × own rows.
    pub own: Csr,
    /// Own rows × halo rows.
    pub halo: Csr,
    /// The global id of each halo row.
    pub halo_ids: Vec<u64>,
}

impl Topology {
    /// Own rows with the edges between them alone: a graph without the edges to other parts.
    pub fn own_alone(&self) -> Topology {
        let halo = Csr { offsets: vec![0; self.own.offsets.len()], ..Csr::default() };
        Topology { own: self.own.clone(), halo, halo_ids: Vec::new() }
    }
}

/// Splits the edges of `part`; `halo_rows[i]` is the halo row of the `i`-th id of `needed`.
pub(super) fn split(part: &Part, needed: &[u64], halo_rows: &[u32], self_loops: bool) -> (Csr, Csr) {
    let (own_index, halo_index) = (IdIndex::new(&part.nodes), IdIndex::new(needed));
    let (mut own, mut halo) = (Csr::empty(part), Csr::empty(part));
    let mut row_own: Vec<(u32, f32)> = Vec::new();
    let mut row_halo: Vec<(u32, f32)> = Vec::new();
    for row in 0..part.rows() {
        row_own.clear();
        row_halo.clear();
        let mut loop_weight = 1.0;
        for edge in part.in_edges(row) {
            let (id, weight) = (part.sources[edge], part.weights.as_ref().map_or(1.0, |weights| weights[edge]));
            match own_index.row(id) {
                Some(column) if self_loops && column as usize == row => loop_weight = weight,
                Some(column) => row_own.push((column, weight)),
                None => {
                    let at = halo_index.row(id).expect("every source that is not owned is needed");
                    row_halo.push((halo_rows[at as usize], weight));
                }
            }
        }
        if self_loops {
            let place = row_own.partition_point(|&(column, _)| (column as usize) < row);
            row_own.insert(place, (row as u32, loop_weight));
        }
        // Stable, so that parallel edges keep their order.
        row_halo.sort_by_key(|&(column, _)| column);
        own.push_row(&row_own);
        halo.push_row(&row_halo);
    }
    (own, halo)
}

impl Csr {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of edges.
    pub fn edges(&self) -> usize {
        self.sources.len()
    }

    fn empty(part: &Part) -> Self {
        let mut offsets = Vec::with_capacity(part.rows() + 1);
        offsets.push(0);
        Csr { offsets, sources: Vec::new(), weights: part.weights.as_ref().map(|_| Vec::new()) }
    }

    fn push_row(&mut self, edges: &[(u32, f32)]) {
        self.sources.extend(edges.iter().map(|edge| edge.0));
        if let Some(weights) = &mut self.weights {
            weights.extend(edges.iter().map(|edge| edge.1));
        }
        self.offsets.push(self.sources.len());
    }
}

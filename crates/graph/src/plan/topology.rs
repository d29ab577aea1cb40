//! The two blocks of a part's graph: own → own and halo → own.

use crate::edges::{EdgeData, Edges};
use crate::part::Part;
use crate::plan::index::IdIndex;

/// The edges that end at own nodes, split by who owns the source.
///
/// With self loops asked for, loops that the graph has are taken out and one `(v, v)` a node is put in. Its weight is
/// that of the loop taken out, the last one where there were several, and 1 where there was none: what
/// `add_remaining_self_loops` of PyTorch Geometric does. Without, the graph's own loops stay as they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Own rows × own rows.
    pub own: Edges<u32>,
    /// Own rows × halo rows.
    pub halo: Edges<u32>,
    /// The global id of each halo row.
    pub halo_ids: Vec<u64>,
}

impl Topology {
    /// Own rows with the edges between them alone: a graph without the edges to other parts.
    pub fn own_alone(&self) -> Topology {
        let halo = Edges::new(vec![0; self.own.offsets.len()], Vec::new());
        Topology { own: self.own.clone(), halo, halo_ids: Vec::new() }
    }
}

/// Splits the edges of `part`; `halo_rows[i]` is the halo row of the `i`-th id of `needed`.
pub(super) fn split(part: &Part, needed: &[u64], halo_rows: &[u32], self_loops: bool) -> (Edges<u32>, Edges<u32>) {
    let (own_index, halo_index) = (IdIndex::new(&part.nodes), IdIndex::new(needed));
    let edges = &part.edges;
    let (mut own, mut halo) = (empty(edges), empty(edges));
    // By column, with the edge that stands there: none where a loop is put in.
    let mut row_own: Vec<(u32, Option<usize>)> = Vec::new();
    let mut row_halo: Vec<(u32, Option<usize>)> = Vec::new();
    for row in 0..part.rows() {
        row_own.clear();
        row_halo.clear();
        let mut last_loop = None;
        for edge in edges.in_edges(row) {
            let id = edges.sources[edge];
            match own_index.row(id) {
                Some(column) if self_loops && column as usize == row => last_loop = Some(edge),
                Some(column) => row_own.push((column, Some(edge))),
                None => {
                    let at = halo_index.row(id).expect("every source that is not owned is needed");
                    row_halo.push((halo_rows[at as usize], Some(edge)));
                }
            }
        }
        if self_loops {
            let place = row_own.partition_point(|&(column, _)| (column as usize) < row);
            row_own.insert(place, (row as u32, last_loop));
        }
        // Stable, so that parallel edges keep their order.
        row_halo.sort_by_key(|&(column, _)| column);
        push_row(&mut own, &row_own, &edges.data);
        push_row(&mut halo, &row_halo, &edges.data);
    }
    (own, halo)
}

fn empty(edges: &Edges<u64>) -> Edges<u32> {
    let mut offsets = Vec::with_capacity(edges.offsets.len());
    offsets.push(0);
    Edges { offsets, sources: Vec::new(), data: edges.data.like(0) }
}

fn push_row(into: &mut Edges<u32>, row: &[(u32, Option<usize>)], from: &EdgeData) {
    into.sources.extend(row.iter().map(|&(column, _)| column));
    for &(_, edge) in row {
        match edge {
            Some(edge) => into.data.extend(from, edge..edge + 1),
            None => into.data.push_plain(),
        }
    }
    into.offsets.push(into.sources.len() as u64);
}

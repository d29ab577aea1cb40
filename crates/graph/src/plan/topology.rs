//! The two blocks of a part's graph: own → own and halo → own.

use std::ops::Range;

use rayon::prelude::*;

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

/// Splits the edges of `part`, on all threads of the pool; `halo_rows[i]` is the halo row of the `i`-th id of `needed`.
pub(super) fn split(part: &Part, needed: &[u64], halo_rows: &[u32], self_loops: bool) -> (Edges<u32>, Edges<u32>) {
    let splitter =
        Splitter { part, own: IdIndex::new(&part.nodes), needed: IdIndex::new(needed), halo_rows, self_loops };
    let pieces = part.edges.pieces(8 * rayon::current_num_threads());
    let pieces: Vec<_> = pieces.into_par_iter().map(|rows| splitter.rows(rows)).collect();
    let sizes = pieces.iter().map(|(own, halo)| (own.edges(), halo.edges()));
    let (of_own, of_halo) = sizes.fold((0, 0), |(own, halo), (more_own, more_halo)| (own + more_own, halo + more_halo));
    let (mut own, mut halo) = (empty(&part.edges, of_own), empty(&part.edges, of_halo));
    for (of_own, of_halo) in pieces {
        append(&mut own, of_own);
        append(&mut halo, of_halo);
    }
    (own, halo)
}

/// Who owns the sources of a part's edges.
struct Splitter<'a> {
    part: &'a Part,
    own: IdIndex<'a>,
    needed: IdIndex<'a>,
    halo_rows: &'a [u32],
    self_loops: bool,
}

impl Splitter<'_> {
    /// The edges that end at some rows, one offset a row and the first.
    fn rows(&self, rows: Range<usize>) -> (Edges<u32>, Edges<u32>) {
        let edges = &self.part.edges;
        let (mut own, mut halo) = (empty(edges, 0), empty(edges, 0));
        // By halo row, with the edge that starts there.
        let mut row_halo: Vec<(u32, usize)> = Vec::new();
        for row in rows {
            // The loop that is put in: of the edges that are, the last; columns ascend, so all loops stand together.
            let (mut is_put, mut last_loop) = (!self.self_loops, None);
            for edge in edges.in_edges(row) {
                let id = edges.sources[edge];
                let Some(column) = self.own.row(id) else {
                    let at = self.needed.row(id).expect("every source that is not owned is needed");
                    row_halo.push((self.halo_rows[at as usize], edge));
                    continue;
                };
                if !is_put && column as usize == row {
                    last_loop = Some(edge);
                    continue;
                }
                if !is_put && column as usize > row {
                    push(&mut own, row as u32, &edges.data, last_loop);
                    is_put = true;
                }
                push(&mut own, column, &edges.data, Some(edge));
            }
            if !is_put {
                push(&mut own, row as u32, &edges.data, last_loop);
            }
            // Parallel edges keep their order.
            row_halo.sort_unstable();
            for (column, edge) in row_halo.drain(..) {
                push(&mut halo, column, &edges.data, Some(edge));
            }
            own.offsets.push(own.sources.len() as u64);
            halo.offsets.push(halo.sources.len() as u64);
        }
        (own, halo)
    }
}

/// No row yet, with room for so many edges.
fn empty(like: &Edges<u64>, edges: usize) -> Edges<u32> {
    Edges { offsets: vec![0], sources: Vec::with_capacity(edges), data: like.data.like(edges) }
}

/// Appends an edge that `from` knows of, or one that is like any other.
fn push(into: &mut Edges<u32>, source: u32, from: &EdgeData, edge: Option<usize>) {
    into.sources.push(source);
    match edge {
        Some(edge) => into.data.extend(from, edge..edge + 1),
        None => into.data.push_plain(),
    }
}

/// Appends the rows of a piece.
fn append(into: &mut Edges<u32>, piece: Edges<u32>) {
    let before = into.edges() as u64;
    into.offsets.extend(piece.offsets[1..].iter().map(|offset| before + offset));
    into.data.extend(&piece.data, 0..piece.edges());
    into.sources.extend_from_slice(&piece.sources);
}

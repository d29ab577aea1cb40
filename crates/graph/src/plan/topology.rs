//! The two blocks of a part's graph: own → own and halo → own.

use std::ops::Range;

use rayon::prelude::*;

use crate::edges::{EdgeData, Edges, in_pieces};
use crate::part::Part;
use crate::plan::sides::{Divided, Sides};

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
    let in_order = (0..).zip(halo_rows).all(|(at, &row): (u32, _)| at == row);
    let splitter = Splitter {
        part,
        sides: Sides::new(&part.nodes, needed),
        halo_rows: (!in_order).then_some(halo_rows),
        self_loops,
    };
    let pieces = part.edges.pieces(8 * rayon::current_num_threads());
    let pieces: (Vec<_>, Vec<_>) = pieces.into_par_iter().map(|rows| splitter.rows(rows)).unzip();
    (joined(&part.edges, pieces.0), joined(&part.edges, pieces.1))
}

/// Who owns the sources of a part's edges.
struct Splitter<'a> {
    part: &'a Part,
    sides: Sides<'a>,
    /// Nothing where needed ids have their halo rows in order, as those of one peer do.
    halo_rows: Option<&'a [u32]>,
    self_loops: bool,
}

impl Splitter<'_> {
    /// The edges that end at some rows, one offset a row and the first.
    fn rows(&self, rows: Range<usize>) -> (Edges<u32>, Edges<u32>) {
        let edges = &self.part.edges;
        // Room for all on either side, of which none is taken that is not written to.
        let most = (edges.offsets[rows.end] - edges.offsets[rows.start]) as usize;
        let loops = if self.self_loops { rows.len() } else { 0 };
        let (mut own, mut halo) = (empty(edges, most + loops), empty(edges, most));
        let mut divided = Divided::default();
        for row in rows {
            let of_row = edges.in_edges(row);
            self.sides.divide(&edges.sources[of_row.clone()], &mut divided);
            // The loop that is put in: of the edges that are, the last; columns ascend, so all loops stand together.
            let (mut is_put, mut last_loop) = (!self.self_loops, None);
            for &(column, edge) in divided.own() {
                let edge = of_row.start + edge as usize;
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
            let of_halo = divided.halo();
            if let Some(halo_rows) = self.halo_rows {
                of_halo.iter_mut().for_each(|(column, _)| *column = halo_rows[*column as usize]);
                // Parallel edges keep their order.
                of_halo.sort_unstable();
            }
            for &(column, edge) in &*of_halo {
                push(&mut halo, column, &edges.data, Some(of_row.start + edge as usize));
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

/// Pieces one behind the other, copied on all threads.
fn joined(like: &Edges<u64>, pieces: Vec<Edges<u32>>) -> Edges<u32> {
    let (rows, edges) = (pieces.iter().map(Edges::rows).sum::<usize>(), pieces.iter().map(Edges::edges).sum());
    let mut data = like.data.like(edges);
    pieces.iter().for_each(|piece| data.extend(&piece.data, 0..piece.edges()));
    let (mut offsets, mut sources) = (vec![0; rows + 1], laconic_array::zeros(edges));
    let lengths = |of: fn(&Edges<u32>) -> usize| pieces.iter().map(of).collect::<Vec<usize>>();
    let of_rows = in_pieces(&mut offsets[1..], &lengths(Edges::rows));
    let of_edges = in_pieces(&mut sources, &lengths(Edges::edges));
    let mut starts = vec![0; pieces.len()];
    (1..pieces.len()).for_each(|at| starts[at] = starts[at - 1] + pieces[at - 1].edges() as u64);
    pieces.into_par_iter().zip(starts).zip(of_rows).zip(of_edges).for_each(|(((piece, start), offsets), sources)| {
        offsets.iter_mut().zip(&piece.offsets[1..]).for_each(|(offset, end)| *offset = start + end);
        sources.copy_from_slice(&piece.sources);
    });
    Edges { offsets, sources, data }
}

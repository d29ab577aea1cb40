//! Input rows of other workers that batches read: on their way some batches ahead, those that are read again kept.

use laconic_nn::{Matrix, Operand, SparseRows};
use laconic_wire::codec::{RowSet, RowsMut, RowsRef};
use laconic_wire::{Direction, FramePurpose, Tag};

use super::keep::{Keeper, Turn};
use super::known::Known;
use crate::error::Result;
use crate::schedule::Stage;
use crate::worker::Worker;

/// In the table of places of a row that has none.
const NOWHERE: u32 = u32::MAX;

/// The step of rows of batches, under the tag of the layer that reads them.
const STEP: u16 = 6;

/// The rows of a batch on their way.
#[derive(Debug, Clone, Default)]
pub(super) struct Trip {
    /// The round that it is for.
    pub round: u32,
    /// Own rows that each peer gets.
    pub send: Vec<Vec<u32>>,
    /// Nodes whose rows come from each peer.
    pub receive: Vec<Vec<u32>>,
    /// What becomes of rows after the batch.
    pub turn: Turn,
}

/// The rows of other workers that are here.
pub struct RemoteRows {
    columns: usize,
    tag: Tag,
    keeper: Keeper,
    /// What the batch at work leaves to be done.
    turn: Turn,
    /// For each node, its place among the kept rows.
    kept_at: Vec<u32>,
    kept: Matrix,
    free: Vec<u32>,
    /// For each node, its place among the rows that were fetched for the batch at work.
    here_at: Vec<u32>,
    here: Matrix,
    here_nodes: Vec<u32>,
}

/// The tag of rows of batches from a round on.
pub fn row_tag(stage: &Stage, round: u32) -> Tag {
    let (content, purpose, layer) = (stage.inputs, FramePurpose::Training, stage.first_layer);
    Tag { content, purpose, direction: Direction::Forward, layer, round, step: STEP }
}

impl RemoteRows {
    /// Room for `cache` bytes of rows of `columns` values.
    pub fn new(stage: &Stage, columns: usize, cache: u64) -> RemoteRows {
        RemoteRows {
            columns,
            tag: row_tag(stage, 0),
            keeper: Keeper::new(usize::try_from(cache / (4 * columns.max(1)) as u64).unwrap_or(usize::MAX)),
            turn: Turn::default(),
            kept_at: Vec::new(),
            kept: Matrix::default(),
            free: Vec::new(),
            here_at: Vec::new(),
            here: Matrix::default(),
            here_nodes: Vec::new(),
        }
    }

    /// Decides which of the foreign nodes that each batch of a window reads have to cross: those that are not kept.
    /// What was planned before must have come, or been forgotten.
    pub(super) fn plan(&mut self, known: &Known, batches: &[Vec<u32>]) -> Vec<Turn> {
        self.kept_at.resize(known.len(), NOWHERE);
        self.here_at.resize(known.len(), NOWHERE);
        self.keeper.plan(known.len(), batches)
    }

    /// Forgets all rows: a window was left before its end, so that not all came that were to be kept.
    pub(super) fn forget(&mut self) {
        self.keeper.clear();
        self.turn = Turn::default();
        self.kept_at.fill(NOWHERE);
        self.free = (0..self.kept.rows() as u32).collect();
    }

    /// Keeps rows of the last batch, in the places of those that are dropped.
    fn settle(&mut self) {
        let Turn { drop, keep, .. } = std::mem::take(&mut self.turn);
        self.free.extend(drop.iter().map(|&node| std::mem::replace(&mut self.kept_at[node as usize], NOWHERE)));
        for node in keep {
            let row = self.here.row(self.here_at[node as usize] as usize);
            self.kept_at[node as usize] = match self.free.pop() {
                Some(place) => {
                    self.kept.row_mut(place as usize).copy_from_slice(row);
                    place
                }
                None => {
                    self.kept.push(row);
                    self.kept.rows() as u32 - 1
                }
            };
        }
    }

    fn tag(&self, round: u32) -> Tag {
        Tag { round, ..self.tag }
    }

    /// Sends the own rows of a batch to those who read them.
    ///
    /// # Errors
    /// If a peer is gone, or a codec refuses the rows.
    pub(super) fn send(&self, worker: &mut Worker, x: &Operand, trip: &Trip) -> Result<()> {
        for peer in worker.rank().others(worker.size()) {
            let rows = &trip.send[peer.index()];
            if rows.is_empty() {
                continue;
            }
            let tag = self.tag(trip.round);
            let Worker { halo, transport, .. } = worker;
            match x {
                Operand::Dense(matrix) => {
                    let rows = RowsRef { data: matrix.data(), columns: self.columns, rows: RowSet::Indices(rows) };
                    halo.send_rows(transport, tag, peer, rows)?;
                }
                Operand::Placed(matrix, places) => {
                    let rows: Vec<u32> = rows.iter().map(|&row| places[row as usize]).collect();
                    let rows = RowsRef { data: matrix.data(), columns: self.columns, rows: RowSet::Indices(&rows) };
                    halo.send_rows(transport, tag, peer, rows)?;
                }
                Operand::Sparse(sparse) => {
                    let dense = dense(sparse, rows);
                    let all = RowSet::Range(0..dense.rows());
                    let rows = RowsRef { data: dense.data(), columns: self.columns, rows: all };
                    halo.send_rows(transport, tag, peer, rows)?;
                }
            }
        }
        Ok(())
    }

    /// Waits for the rows of a batch; what is not kept of the batch before is gone.
    ///
    /// # Errors
    /// If a peer does not answer, or sends what does not fit.
    pub(super) fn receive(&mut self, worker: &mut Worker, trip: &Trip) -> Result<()> {
        self.settle();
        self.turn = trip.turn.clone();
        for node in self.here_nodes.drain(..) {
            self.here_at[node as usize] = NOWHERE;
        }
        self.here.reshape(trip.receive.iter().map(Vec::len).sum(), self.columns);
        let (tag, columns, mut start) = (self.tag(trip.round), self.columns, 0);
        for peer in worker.rank().others(worker.size()) {
            let nodes = &trip.receive[peer.index()];
            if nodes.is_empty() {
                continue;
            }
            let rows = RowSet::Range(start..start + nodes.len());
            let into = RowsMut { data: self.here.data_mut(), columns, rows };
            let Worker { halo, transport, .. } = worker;
            halo.receive_rows(transport, tag, peer, into)?;
            for (&node, place) in nodes.iter().zip(start..) {
                self.here_at[node as usize] = place as u32;
                self.here_nodes.push(node);
            }
            start += nodes.len();
        }
        worker.fetched.crossed += start as u64;
        Ok(())
    }

    /// The row of a foreign node that the batch at work reads.
    pub fn row(&self, node: u32) -> &[f32] {
        match (self.kept_at[node as usize], self.here_at[node as usize]) {
            (_, place) if place != NOWHERE => self.here.row(place as usize),
            (place, _) => self.kept.row(place as usize),
        }
    }
}

/// The rows of these nodes: of `x` below `own`, and what `foreign` gives from there on.
pub(crate) fn gather_sparse<'a>(
    x: &SparseRows,
    nodes: &[u32],
    foreign: impl Fn(u32) -> &'a [f32],
    own: usize,
) -> SparseRows {
    if nodes.iter().all(|&node| (node as usize) < own) {
        return x.gather(nodes);
    }
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for &node in nodes {
        if (node as usize) < own {
            let entries = x.offsets()[node as usize]..x.offsets()[node as usize + 1];
            indices.extend_from_slice(&x.indices()[entries.clone()]);
            values.extend_from_slice(&x.values()[entries]);
        } else {
            let stored = foreign(node).iter().zip(0..).filter(|(value, _)| **value != 0.0);
            stored.for_each(|(&value, column)| {
                indices.push(column);
                values.push(value);
            });
        }
        offsets.push(indices.len());
    }
    SparseRows::new(x.columns(), offsets, indices, values)
}

/// Some rows of a sparse matrix, in full.
fn dense(sparse: &SparseRows, rows: &[u32]) -> Matrix {
    let mut out = Matrix::zeros(rows.len(), sparse.columns());
    for (to, &from) in rows.iter().enumerate() {
        let entries = sparse.offsets()[from as usize]..sparse.offsets()[from as usize + 1];
        for (&column, &value) in sparse.indices()[entries.clone()].iter().zip(&sparse.values()[entries]) {
            out.row_mut(to)[column as usize] = value;
        }
    }
    out
}

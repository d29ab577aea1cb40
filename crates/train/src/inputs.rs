//! What the first layer of a network reads: rows that never change while the network trains.
//!
//! Because they never change, their halo crosses once. Where messages have no parameters even the fold is computed once, and a
//! round of training touches no graph; dropout then comes after the fold, which keeps it unbiased.

use laconic_nn::kernels::elementwise::{Dropout, drop_out};
use laconic_nn::{Block, Compute, Layer, Matrix, Nodes, Operand, Rows, Side, State};
use laconic_wire::{Tag, Transport};

use crate::error::Result;
use crate::halo::Halo;

/// What a pass needs besides parameters and inputs.
pub struct Links<'a> {
    /// Threads and scratch memory.
    pub compute: &'a mut Compute,
    /// The network.
    pub channel: &'a mut dyn Transport,
    /// The exchange.
    pub halo: &'a mut Halo,
    /// Whether work goes on while messages travel.
    pub overlap: bool,
}

/// The rows and edges that a pass runs over.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// Destination rows.
    pub nodes: Nodes<'a>,
    /// Own → own edges.
    pub own: &'a Block,
    /// Halo → own edges.
    pub halo: &'a Block,
    /// Global ids of halo rows.
    pub halo_ids: &'a [u64],
}

/// Frozen input rows and what is known of the neighbours'.
pub struct Inputs {
    /// Own rows.
    pub x: Operand,
    /// Neighbours.
    pub neighbours: Neighbours,
}

/// What is known of the neighbours of frozen input rows.
pub enum Neighbours {
    /// Nothing, because the layer reads none.
    Nobody,
    /// The fold of their messages, which have no parameters.
    Folded(Operand),
    /// Copies of the halo's rows: messages have parameters and are made anew each round, here.
    Copies(Operand),
    /// Nothing is kept; every pass exchanges again (`schedule.cache_inputs = false`).
    Exchanged,
}

impl Inputs {
    /// Fetches once what the first layer needs of the neighbours of `x`.
    pub fn freeze(
        links: &mut Links<'_>,
        ground: Ground<'_>,
        layer: &dyn Layer,
        x: Operand,
        tag: Tag,
    ) -> Result<Inputs> {
        if layer.message_width() == 0 {
            return Ok(Inputs { x, neighbours: Neighbours::Nobody });
        }
        let neighbours = if layer.message_has_parameters() && layer.message_reads_nodes() {
            // Copies would not do: their messages need the owner's degrees. No network of ours starts with such a layer.
            Neighbours::Exchanged
        } else if layer.message_has_parameters() {
            let own = dense(links.compute, x.view());
            let mut halo = Matrix::zeros(links.halo.rows(), own.columns());
            links.halo.start(links.channel, tag, &own)?.finish(links.halo, links.channel, &mut halo)?;
            Neighbours::Copies(match x {
                Operand::Dense(_) => Operand::Dense(halo),
                Operand::Sparse(_) => Operand::compact(halo),
            })
        } else {
            let mut folded = Matrix::default();
            fold_once(links, ground, layer, x.view(), tag, &mut folded)?;
            Neighbours::Folded(match x {
                Operand::Dense(_) => Operand::Dense(folded),
                Operand::Sparse(_) => Operand::compact(folded),
            })
        };
        Ok(Inputs { x, neighbours })
    }

    /// The inputs of these rows alone, where no graph is touched any more; `None` where one is.
    pub fn gather(&self, rows: &[u32]) -> Option<Inputs> {
        let neighbours = match &self.neighbours {
            Neighbours::Nobody => Neighbours::Nobody,
            Neighbours::Folded(folded) => Neighbours::Folded(folded.gather(rows)),
            Neighbours::Copies(_) | Neighbours::Exchanged => return None,
        };
        Some(Inputs { x: self.x.gather(rows), neighbours })
    }
}

/// Exchanges and folds messages that have no parameters.
pub(crate) fn fold_once(
    links: &mut Links<'_>,
    ground: Ground<'_>,
    layer: &dyn Layer,
    x: Rows<'_>,
    tag: Tag,
    folded: &mut Matrix,
) -> Result<()> {
    let (mut messages, mut halo, mut state) = (Matrix::default(), Matrix::default(), State::default());
    layer.message(links.compute, &[], &ground.nodes, x, &mut messages);
    halo.reshape(links.halo.rows(), messages.columns());
    let pending = links.halo.start(links.channel, tag, &messages)?;
    layer.fold(links.compute, &[], (Side::Own, ground.own), &messages, folded, &mut state);
    pending.finish(links.halo, links.channel, &mut halo)?;
    layer.fold(links.compute, &[], (Side::Halo, ground.halo), &halo, folded, &mut state);
    layer.finish_fold(links.compute, folded, &mut state);
    Ok(())
}

/// The rows as a dense matrix, which is what travels.
fn dense(compute: &Compute, x: Rows<'_>) -> Matrix {
    let mut out = Matrix::zeros(x.rows(), x.columns());
    laconic_nn::kernels::elementwise::copy_scaled(compute, &mut out, laconic_nn::kernels::Store::Set, x, 1.0, None);
    out
}

/// A copy of rows with dropout, in memory that is used again.
#[derive(Default)]
pub struct Dropped {
    copy: Option<Operand>,
    /// Whether the last view was the copy; the copy's memory stays for the next round either way.
    active: bool,
}

impl Dropped {
    /// `x` itself without dropout, else a copy with it.
    pub fn view<'a>(
        &'a mut self,
        compute: &Compute,
        x: &'a Operand,
        dropout: Option<Dropout>,
        ids: &[u64],
    ) -> Rows<'a> {
        self.active = dropout.is_some();
        let Some(dropout) = dropout else { return x.view() };
        let copy = self.copy.get_or_insert_with(|| match x {
            Operand::Dense(_) => Operand::Dense(Matrix::default()),
            Operand::Sparse(_) => x.clone(),
        });
        drop_out(compute, copy, x, dropout, ids);
        copy.view()
    }

    /// The rows as the last [`Dropped::view`] gave them.
    pub fn last<'a>(&'a self, x: &'a Operand) -> Rows<'a> {
        self.copy.as_ref().filter(|_| self.active).unwrap_or(x).view()
    }
}

//! What the first layer of a network reads: rows that never change while the network trains.
//!
//! Because they never change, their halo crosses once, at once or bit by bit ([`crate::pass::reveal`]). Where messages
//! have no parameters even the fold is computed once, and a round of training touches no graph; dropout then comes
//! after the fold, which keeps it unbiased.

use laconic_nn::kernels::Store;
use laconic_nn::kernels::elementwise::{copy_scaled, drop_out_sparse, fill_rows, scale_and_shift};
use laconic_nn::{
    Absence, At, Block, Compute, Dropout, Ending, Layer, Matrix, Nodes, Operand, Rows, Side, Sources, SparseRows, State,
};
use laconic_wire::Tag;

use crate::error::Result;
use crate::exchange::drawn::Presence;
use crate::exchange::halo::Request;
use crate::exchange::peers::Peers;
use crate::exchange::widths;
use crate::selection::Scope;

/// The rows and edges that a pass runs over.
#[derive(Clone, Copy)]
pub struct LocalGraph<'a> {
    /// What layers may know of destination rows.
    pub nodes: Nodes<'a>,
    /// Own → own edges.
    pub own: &'a Block,
    /// Halo → own edges.
    pub halo: &'a Block,
    /// What layers may know of halo rows: their ids. Degrees count as 1, since owners multiply by them what they send.
    pub halo_nodes: Nodes<'a>,
}

/// Frozen input rows and what is known of the neighbours'.
pub struct Inputs {
    /// The rows of own nodes.
    pub x: Operand,
    /// What is known of the halo's rows.
    pub neighbours: Neighbours,
    /// How much each halo row counts, where copies are kept.
    pub presence: Presence,
}

/// What is known of the neighbours of frozen input rows.
pub enum Neighbours {
    /// Nothing, because the layer reads none.
    Nobody,
    /// The fold of their messages, which have no parameters.
    Folded(Operand),
    /// Copies of the halo's rows: messages have parameters and are made anew each round, here; or batches read them,
    /// and where messages have no parameters they are these.
    Copies(Operand),
    /// Nothing is kept; every pass exchanges again (`schedule.cache_inputs = false`).
    Exchanged,
}

/// The rows that cross for frozen inputs: messages that have no parameters, or else the rows themselves, multiplied by
/// their senders' weights.
pub fn travelling(compute: &mut Compute, layer: &dyn Layer, nodes: &Nodes<'_>, x: Rows<'_>) -> Matrix {
    let mut out = Matrix::stored(x.precision());
    if layer.facts().message_has_parameters {
        out.reshape(x.rows(), x.columns());
        copy_scaled(compute, &mut out, Store::Set, x, 1.0, layer.facts().sender_weight.of(nodes));
    } else {
        layer.message(&mut At { compute, p: &[], nodes: *nodes, state: &mut State::default() }, x, &mut out);
    }
    out
}

/// The rows, where these are what [`travelling`] makes of them and they are at hand.
fn rows_that_travel<'a>(layer: &dyn Layer, nodes: &Nodes<'_>, x: Rows<'a>) -> Option<&'a Matrix> {
    match x {
        Rows::Dense(rows)
            if layer.facts().message_has_parameters && layer.facts().sender_weight.of(nodes).is_none() =>
        {
            Some(rows)
        }
        x => rows_as_messages(layer, x),
    }
}

/// The rows, where a layer's messages are these and they are at hand.
pub(super) fn rows_as_messages<'a>(layer: &dyn Layer, x: Rows<'a>) -> Option<&'a Matrix> {
    match x {
        Rows::Dense(rows) if layer.facts().messages_are_rows() => Some(rows),
        _ => None,
    }
}

impl Inputs {
    /// Fetches once what the first layer needs of the neighbours of `x`.
    ///
    /// # Errors
    /// If another worker does not answer, or a codec refuses the rows.
    pub fn freeze(
        peers: &mut Peers<'_>,
        graph: LocalGraph<'_>,
        layer: &dyn Layer,
        x: Operand,
        at: (Tag, Scope),
    ) -> Result<Inputs> {
        let folds = !layer.facts().message_has_parameters;
        Inputs::fetch(peers, graph, layer, x, (at, folds))
    }

    /// Fetches once what the first layer reads of the neighbours of `x`, and keeps it as it comes.
    ///
    /// # Errors
    /// If another worker does not answer, or a codec refuses the rows.
    pub fn copy(
        peers: &mut Peers<'_>,
        graph: LocalGraph<'_>,
        layer: &dyn Layer,
        x: Operand,
        at: (Tag, Scope),
    ) -> Result<Inputs> {
        Inputs::fetch(peers, graph, layer, x, (at, false))
    }

    fn fetch(
        peers: &mut Peers<'_>,
        graph: LocalGraph<'_>,
        layer: &dyn Layer,
        x: Operand,
        (at, folds): ((Tag, Scope), bool),
    ) -> Result<Inputs> {
        if layer.facts().message_width == 0 {
            return Ok(Inputs { x, neighbours: Neighbours::Nobody, presence: None });
        }
        let made;
        let own = match rows_that_travel(layer, &graph.nodes, x.view()) {
            Some(rows) => rows,
            None => {
                made = travelling(peers.compute, layer, &graph.nodes, x.view());
                &made
            }
        };
        let (halo, presence) = fetch_halo(peers, own, at)?;
        let neighbours = if folds {
            let folded = fold(peers.compute, graph, layer, own, halo, &presence);
            Neighbours::Folded(as_sparse_as(&x, folded))
        } else {
            Neighbours::Copies(as_sparse_as(&x, halo))
        };
        Ok(Inputs { x, neighbours, presence })
    }

    /// Rows of whose neighbours nothing is kept: every pass exchanges and folds.
    pub fn unfolded(x: Operand) -> Inputs {
        Inputs { x, neighbours: Neighbours::Exchanged, presence: None }
    }

    /// Keeps the halo's copies, or where messages have no parameters the fold, as sparse as the own rows are.
    pub fn keep(&mut self, layer: &dyn Layer, rows: Matrix) {
        let rows = as_sparse_as(&self.x, rows);
        self.neighbours =
            if layer.facts().message_has_parameters { Neighbours::Copies(rows) } else { Neighbours::Folded(rows) };
    }

    /// Whether any of its rows are sparse.
    pub fn has_sparse(&self) -> bool {
        let is_sparse = |rows: &Operand| matches!(rows, Operand::Sparse(_));
        is_sparse(&self.x) || matches!(&self.neighbours, Neighbours::Folded(folded) if is_sparse(folded))
    }

    /// The inputs of these rows alone, where no graph is touched any more; `None` where one is.
    pub fn gather(&self, rows: &[u32]) -> Option<Inputs> {
        let neighbours = match &self.neighbours {
            Neighbours::Nobody => Neighbours::Nobody,
            Neighbours::Folded(folded) => Neighbours::Folded(folded.gather(rows)),
            Neighbours::Copies(_) | Neighbours::Exchanged => return None,
        };
        Some(Inputs { x: self.x.gather(rows), neighbours, presence: None })
    }
}

fn as_sparse_as(x: &Operand, rows: Matrix) -> Operand {
    match x {
        Operand::Dense(x) | Operand::Placed(x, _) => Operand::Dense(rows.converted(x.precision())),
        Operand::Sparse(_) => Operand::compact(rows),
    }
}

/// The halo's rows, each of which its owner sends once.
///
/// # Errors
/// If another worker does not answer, or a codec refuses the rows.
pub fn fetch_halo(peers: &mut Peers<'_>, own: &Matrix, (tag, scope): (Tag, Scope)) -> Result<(Matrix, Presence)> {
    let mut halo = Matrix::stored(own.precision());
    halo.reshape(peers.halo.rows(), own.columns());
    let adaptive = peers.halo.coders.coding(tag).is_adaptive();
    if adaptive && scope != Scope::Nothing && !tag.evaluates() {
        // The rows are known before they are sent, so the first assignment need not wait.
        widths::trace_once(peers.halo, tag, own)?;
        widths::assign_widths(peers.halo, peers.transport, &[(tag, own.columns())], tag.round)?;
    }
    let pending = peers.halo.start(peers.compute, peers.transport, Request::now(tag, scope), own)?;
    let presence = pending.presence(peers.halo);
    pending.finish(peers.halo, peers.compute, peers.transport, &mut halo)?;
    peers.halo.release();
    Ok((halo, presence))
}

/// The fold of messages without parameters, of this worker's rows and of the halo's.
fn fold(
    compute: &mut Compute,
    graph: LocalGraph<'_>,
    layer: &dyn Layer,
    own: &Matrix,
    mut halo: Matrix,
    presence: &Presence,
) -> Matrix {
    let (mut folded, mut state) = (Matrix::stored(own.precision()), State::default());
    let at = &mut At { compute, p: &[], nodes: graph.nodes, state: &mut state };
    layer.fold(at, Sources::new(Side::Own, graph.own, own), &mut folded);
    weigh(at.compute, layer, presence, &mut halo, at.state);
    layer.fold(at, Sources::new(Side::Halo, graph.halo, &halo), &mut folded);
    layer.finish_fold(at, &mut folded, Ending::Folds);
    folded
}

/// Takes absent halo rows out of the fold that follows and lets the others count for what they stand for.
pub(crate) fn weigh(
    compute: &Compute,
    layer: &dyn Layer,
    presence: &Presence,
    messages: &mut Matrix,
    state: &mut State,
) {
    state.presence.clear();
    let Some(presence) = presence else { return };
    match layer.facts().absence {
        Absence::Scaled => scale_and_shift(compute, messages, Some(presence), None),
        Absence::Weighed => state.presence.extend_from_slice(presence),
        Absence::Skipped => {
            fill_rows(compute, messages, |row| presence[row] == 0.0, f32::NEG_INFINITY);
        }
    }
}

/// The adjoint of [`weigh`] for gradients of halo rows that are about to return.
pub(crate) fn weigh_adjoint(compute: &Compute, layer: &dyn Layer, presence: &Presence, gradient: &mut Matrix) {
    if let (Absence::Scaled, Some(presence)) = (layer.facts().absence, presence) {
        scale_and_shift(compute, gradient, Some(presence), None);
    }
}

/// The memory of folds that are made anew in every pass, of messages that have no parameters.
#[derive(Default)]
pub(crate) struct Refolding {
    messages: Matrix,
    halo: Matrix,
    state: State,
}

impl Refolding {
    /// Exchanges and folds.
    ///
    /// # Errors
    /// If another worker does not answer, or a codec refuses the rows.
    pub fn fold(
        &mut self,
        peers: &mut Peers<'_>,
        graph: LocalGraph<'_>,
        layer: &dyn Layer,
        (x, tag): (Rows<'_>, Tag),
        folded: &mut Matrix,
    ) -> Result<()> {
        let (Refolding { messages, halo, state }, nodes) = (self, graph.nodes);
        let messages = match rows_as_messages(layer, x) {
            Some(rows) => rows,
            None => {
                layer.message(&mut At { compute: peers.compute, p: &[], nodes, state }, x, messages);
                messages
            }
        };
        halo.store_as(folded.precision());
        halo.reshape(peers.halo.rows(), messages.columns());
        let fold_own = |compute: &mut Compute, _: &mut Matrix| {
            let own = Sources::new(Side::Own, graph.own, messages);
            layer.fold(&mut At { compute, p: &[], nodes, state }, own, folded);
        };
        let presence = peers.exchange(tag, messages, halo, fold_own)?;
        weigh(peers.compute, layer, &presence, halo, state);
        let at = &mut At { compute: peers.compute, p: &[], nodes, state };
        layer.fold(at, Sources::new(Side::Halo, graph.halo, halo), folded);
        layer.finish_fold(at, folded, Ending::Folds);
        Ok(())
    }
}

/// The first rows of an operand; all of them as they stand.
pub(super) fn first_rows(x: &Operand, count: usize) -> Rows<'_> {
    let all = x.view();
    if count < all.rows() { all.span(0..count) } else { all }
}

/// Rows with dropout: dense ones have it made whenever they are read, sparse ones are copied into memory that is used
/// again.
#[derive(Default)]
pub struct Dropped(Option<SparseRows>);

impl Dropped {
    /// `x` itself without dropout, else with it; `ids` are the global ids of its rows.
    pub(super) fn view<'a>(&'a mut self, x: Rows<'a>, dropout: Option<Dropout>, ids: &'a [u64]) -> Rows<'a> {
        if let (Some(dropout), Rows::Sparse(x)) = (dropout, x) {
            // Only values are written to a copy. In batches other rows are stored each time.
            let is_of = |copy: &SparseRows| {
                copy.offsets() == x.offsets() && Some(copy.indices()) == x.indices().get(..copy.indices().len())
            };
            if !self.0.as_ref().is_some_and(is_of) {
                self.0 = None;
            }
            drop_out_sparse(self.0.get_or_insert_with(|| x.copied()), x, dropout, ids);
        }
        self.last(x, dropout, ids)
    }

    /// The rows as the last [`Dropped::view`] gave them.
    pub fn last<'a>(&'a self, x: Rows<'a>, dropout: Option<Dropout>, ids: &'a [u64]) -> Rows<'a> {
        match (dropout, x.dense(), &self.0) {
            (Some(dropout), Some(rows), _) => Rows::Made(rows.with_dropout(dropout, ids)),
            (Some(_), None, Some(copy)) => Rows::Sparse(copy.all()),
            _ => x,
        }
    }
}

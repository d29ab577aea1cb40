//! A unit's neighbourhood: its messages on their way to the fold, and gradients on their way back.
//!
//! What crosses are messages, which are the narrower of a layer's inputs and outputs; or, where rows are late
//! ([`Walk::carries_rows`]), the rows that messages are made of. A late product `h·W` was made with the weights of the
//! round before, and its gradient is that of weights which have moved on. Rows are late alone: the receiver makes
//! messages of them with the weights of now, and the gradients of these weights are made where the messages are
//! (PipeGCN, Wan et al., 2022, algorithm 1, exchanges h and the gradient by h).

use laconic_nn::kernels::Store;
use laconic_nn::kernels::elementwise::{add_rows, copy_scaled, fill};
use laconic_nn::{At, Compute, Ending, Layer, Matrix, Nodes, Precision, Rows, Senders, Side, Sources, State};
use laconic_wire::Direction;

use super::inputs::{rows_as_messages, weigh, weigh_adjoint};
use super::spare::Spare;
use super::walk::{Walk, outputs_replace_folds};
use crate::error::Result;
use crate::exchange::drawn::Presence;

/// What a unit's forward pass knows of neighbours and its backward pass needs; memory is used again every round.
#[derive(Default)]
pub(super) struct Neighbourhood {
    /// Messages of own rows, where they are not these.
    pub messages: Matrix,
    /// Messages of halo rows, until the backward pass has read them, or nobody will.
    pub halo_messages: Matrix,
    /// Own rows' folds of both.
    pub folded: Matrix,
    /// What the layer keeps from one of its functions to the next.
    pub state: State,
    /// How much each halo row counted.
    pub presence: Presence,
    /// Where rows cross: the halo's, multiplied by their senders' weights.
    copies: Matrix,
    /// Where rows cross that are not sent as they stand: own ones, multiplied by their weights.
    weighted: Matrix,
}

/// The gradients of a neighbourhood, for whichever unit is at work.
#[derive(Default)]
pub(super) struct Returning {
    /// Of the folds.
    pub folded: Matrix,
    /// Of own messages.
    pub messages: Matrix,
    /// Of halo messages.
    pub halo: Matrix,
    /// Where rows cross: of the halo's copies.
    copies: Matrix,
    /// Where rows cross: of own weighted rows, as it comes back from the holders of their copies.
    returned: Matrix,
}

/// A unit, and the rows that it reads.
#[derive(Clone, Copy)]
pub(super) struct UnitRows<'a> {
    /// The unit's number.
    pub index: usize,
    pub x: Rows<'a>,
}

/// The rows that a unit reads, where they are its messages.
fn as_messages<'a>(walk: &Walk<'_, '_>, index: usize, x: Rows<'a>) -> Option<&'a Matrix> {
    match x {
        Rows::Dense(rows) if walk.weighs(index).is_some() => Some(rows),
        x => rows_as_messages(walk.network.units()[index].layer.as_ref(), x),
    }
}

/// The messages of own rows: these, or what is made of them in memory that is lent.
fn own_messages<'a>(
    layer: &dyn Layer,
    at: &mut At<'_>,
    x: Rows<'a>,
    as_they_are: Option<&'a Matrix>,
    made: &'a mut Matrix,
    spare: &mut Spare,
) -> &'a Matrix {
    if let Some(rows) = as_they_are {
        return rows;
    }
    spare.shape(made, (x.rows(), layer.facts().message_width));
    layer.message(at, x, made);
    made
}

/// How the folds of unit `index` are stored: as what it outputs, where they are that.
fn stores_folds(walk: &Walk<'_, '_>, index: usize) -> Precision {
    if walk.outputs_replace_folds(index) { walk.stores_outputs(index) } else { walk.context.precision }
}

/// Ends the folds of a unit, which are then what it closes over or what it outputs.
fn finish(layer: &dyn Layer, at: &mut At<'_>, folded: &mut Matrix) {
    let ending = if outputs_replace_folds(layer) { Ending::Outputs } else { Ending::Folds };
    layer.finish_fold(at, folded, ending);
}

/// Gives `dx` the shape of the rows where it is to be set, and not by taking the memory of their messages' gradient.
fn shape_of_rows(spare: &mut Spare, x: Rows<'_>, as_they_are: Option<&Matrix>, dx: &mut Option<(&mut Matrix, Store)>) {
    if let (None, Some((dx, Store::Set))) = (as_they_are, dx) {
        spare.shape(dx, (x.rows(), x.columns()));
    }
}

/// Sets or adds to `dx`, the gradient of own rows, where it is wanted and of their shape, from `dm`, that of their
/// messages, in whose memory it may stand; and adds to `g`.
fn to_rows(
    layer: &dyn Layer,
    at: &mut At<'_>,
    g: &mut [f32],
    senders: Senders<'_>,
    are_rows: bool,
    dm: &mut Matrix,
    dx: &mut Option<(&mut Matrix, Store)>,
) {
    match (are_rows, dx.as_mut()) {
        (true, Some((dx, Store::Set))) => std::mem::swap(&mut **dx, dm),
        (true, Some((dx, Store::Add))) => add_rows(at.compute, dx, dm),
        (_, dx) => layer.message_adjoint(at, g, senders, dm, dx.map(|(dx, store)| (&mut **dx, *store))),
    }
}

/// The rows that cross in the place of messages: these, or their products with their weights in `weighted`.
pub(super) fn rows_to_send<'a>(
    compute: &Compute,
    layer: &dyn Layer,
    nodes: &Nodes<'_>,
    x: Rows<'a>,
    weighted: &'a mut Matrix,
) -> &'a Matrix {
    match (x, layer.facts().sender_weight.of(nodes)) {
        (Rows::Dense(x), None) => x,
        (x, weight) => {
            weighted.reshape(x.rows(), x.columns());
            copy_scaled(compute, weighted, Store::Set, x, 1.0, weight);
            weighted
        }
    }
}

impl Neighbourhood {
    /// Makes messages of `x`, exchanges and folds them, the local block's while the halo's rows travel. The folds are
    /// what the unit outputs where [`Walk::outputs_replace_folds`].
    ///
    /// # Errors
    /// If a peer does not answer, or a codec refuses the rows.
    pub fn gather(&mut self, walk: &mut Walk<'_, '_>, index: usize, x: Rows<'_>, spare: &mut Spare) -> Result<()> {
        let layer = walk.network.units()[index].layer.as_ref();
        let (p, graph) = (&walk.p[walk.network.ranges(index).layer.clone()], walk.graph_of(index));
        let senders = walk.senders(index);
        let (rows_cross, tag) = (walk.carries_rows(layer), walk.context.tag(index, Direction::Forward));
        let Neighbourhood { messages, halo_messages, folded, state, presence, copies, weighted } = self;
        let as_they_are = as_messages(walk, index, x);
        for of_halo in [&mut *copies, &mut *weighted] {
            of_halo.store_as(walk.context.precision);
        }
        let at = &mut At { compute: walk.peers.compute, p, nodes: senders, state };
        let messages = own_messages(layer, at, x, as_they_are, messages, spare);
        spare.shape_as(folded, (graph.nodes.ids.len(), layer.facts().fold_width), stores_folds(walk, index));
        let fold_own = |compute: &mut Compute, _: &mut Matrix| {
            let own = Sources::new(Side::Own, graph.own, messages);
            layer.fold(&mut At { compute, p, nodes: graph.nodes, state }, own, folded);
        };
        let halo_rows = walk.peers.halo.rows();
        spare.shape_halo(halo_messages, (halo_rows, layer.facts().message_width));
        if rows_cross {
            let sent = rows_to_send(walk.peers.compute, layer, &senders, x, weighted);
            copies.reshape(halo_rows, sent.columns());
            *presence = walk.peers.exchange(tag, sent, copies, fold_own)?;
            let at = &mut At { compute: walk.peers.compute, p, nodes: graph.halo_nodes, state };
            layer.message(at, Rows::Dense(copies), halo_messages);
        } else {
            *presence = walk.peers.exchange(tag, messages, halo_messages, fold_own)?;
        }
        weigh(walk.peers.compute, layer, presence, halo_messages, state);
        let at = &mut At { compute: walk.peers.compute, p, nodes: graph.nodes, state };
        layer.fold(at, Sources::new(Side::Halo, graph.halo, halo_messages), folded);
        finish(layer, at, folded);
        if !layer.facts().message_has_parameters || walk.makes_messages_again(index) || walk.forgets() {
            spare.take(&mut self.messages);
        }
        let is_read = layer.facts().message_has_parameters || walk.folds_again(index);
        if !is_read || walk.forgets() {
            spare.take_halo(&mut self.halo_messages);
        }
        Ok(())
    }

    /// [`Neighbourhood::gather`] in the first unit, where copies of the halo's rows are kept and nothing crosses.
    pub fn fold_copies(&mut self, walk: &mut Walk<'_, '_>, x: Rows<'_>, copies: Rows<'_>, spare: &mut Spare) {
        let (layer, graph) = (walk.network.units()[0].layer.as_ref(), walk.graph_of(0));
        let senders = walk.senders(0);
        let p = &walk.p[walk.network.ranges(0).layer.clone()];
        let Neighbourhood { messages, halo_messages, folded, state, .. } = self;
        spare.shape(messages, (x.rows(), layer.facts().message_width));
        spare.shape_as(folded, (graph.nodes.ids.len(), layer.facts().fold_width), stores_folds(walk, 0));
        let at = &mut At { compute: walk.peers.compute, p, nodes: senders, state };
        layer.message(at, x, messages);
        at.nodes = graph.halo_nodes;
        spare.shape_halo(halo_messages, (copies.rows(), layer.facts().message_width));
        layer.message(at, copies, halo_messages);
        at.nodes = graph.nodes;
        weigh(at.compute, layer, &walk.inputs.presence, halo_messages, at.state);
        layer.fold(at, Sources::new(Side::Own, graph.own, messages), folded);
        layer.fold(at, Sources::new(Side::Halo, graph.halo, halo_messages), folded);
        finish(layer, at, folded);
        if walk.makes_messages_again(0) || walk.forgets() {
            spare.take(messages);
        }
        if walk.forgets() {
            spare.take_halo(halo_messages);
        }
    }

    /// Folds again what [`Neighbourhood::gather`] has folded of `x`, where messages have no parameters. What came from
    /// others is still here, as it was weighed, and goes then.
    pub fn refold(&mut self, walk: &mut Walk<'_, '_>, index: usize, x: Rows<'_>, spare: &mut Spare) {
        let layer = walk.network.units()[index].layer.as_ref();
        let Neighbourhood { messages, halo_messages, folded, state, .. } = self;
        let as_they_are = as_messages(walk, index, x);
        let (graph, senders) = (walk.graph_of(index), walk.senders(index));
        let at = &mut At { compute: walk.peers.compute, p: &[], nodes: senders, state };
        let own = own_messages(layer, at, x, as_they_are, messages, spare);
        at.nodes = graph.nodes;
        spare.shape(folded, (graph.nodes.ids.len(), layer.facts().fold_width));
        layer.fold(at, Sources::new(Side::Own, graph.own, own), folded);
        layer.fold(at, Sources::new(Side::Halo, graph.halo, halo_messages), folded);
        layer.finish_fold(at, folded, Ending::Folds);
        spare.take(messages);
        spare.take_halo(halo_messages);
    }

    /// The adjoint of [`Neighbourhood::gather`], from the gradient of the folds: adds to the unit's `g` and, where
    /// wanted, sets or adds to `dx`. The gradients of frozen rows, of which nothing is wanted, only return as far as
    /// the weights are.
    ///
    /// # Errors
    /// If a peer does not answer, or a codec refuses the rows.
    pub fn scatter(
        &mut self,
        walk: &mut Walk<'_, '_>,
        reading: UnitRows<'_>,
        gradients: &mut Returning,
        spare: &mut Spare,
        g: &mut [f32],
        mut dx: Option<(&mut Matrix, Store)>,
    ) -> Result<()> {
        let UnitRows { index, x } = reading;
        let layer = walk.network.units()[index].layer.as_ref();
        let p = &walk.p[walk.network.ranges(index).layer.clone()];
        let (graph, own_nodes) = (walk.graph_of(index), walk.senders(index));
        let (rows_cross, tag) = (walk.carries_rows(layer), walk.context.tag(index, Direction::Reverse));
        let (as_they_are, makes_again) = (as_messages(walk, index, x), walk.makes_messages_again(index));
        let Neighbourhood { messages, halo_messages, state, presence, copies, .. } = self;
        let Returning { folded: dfolded, messages: dm, halo: dhalo, copies: dcopies, returned } = gradients;
        [&mut *dcopies, &mut *returned].into_iter().for_each(|of_rows| of_rows.store_as(walk.context.precision));
        spare.shape_halo(dhalo, (graph.halo.sources(), layer.facts().message_width));
        let at = &mut At { compute: walk.peers.compute, p, nodes: graph.nodes, state };
        layer.fold_adjoint(at, g, Sources::new(Side::Halo, graph.halo, halo_messages), dfolded, dhalo);
        weigh_adjoint(at.compute, layer, presence, dhalo);
        if rows_cross {
            let senders = Senders { side: Side::Halo, x: Rows::Dense(copies), messages: halo_messages };
            at.nodes = graph.halo_nodes;
            layer.message_adjoint(at, g, senders, dhalo, dx.is_some().then_some((dcopies, Store::Set)));
        }
        at.nodes = own_nodes;
        let own_messages = match makes_again {
            true => own_messages(layer, at, x, as_they_are, messages, spare),
            false => as_they_are.unwrap_or(messages),
        };
        let own = Sources::new(Side::Own, graph.own, own_messages);
        spare.shape(dm, (graph.own.sources(), layer.facts().message_width));
        let mut fold_own = |compute: &mut Compute, g: &mut [f32], dm: &mut Matrix| {
            layer.fold_adjoint(&mut At { compute, p, nodes: graph.nodes, state }, g, own, dfolded, dm);
        };
        // Halo gradients go out before the local product, so that the wire works while we do.
        match (rows_cross, &dx) {
            (false, _) => walk.peers.exchange(tag, dhalo, dm, |compute, dm| fold_own(compute, g, dm)).map(drop)?,
            (true, None) => fold_own(walk.peers.compute, g, dm),
            (true, Some(_)) => {
                returned.reshape(x.rows(), x.columns());
                fill(walk.peers.compute, returned, 0.0);
                walk.peers.exchange(tag, dcopies, returned, |compute, _| fold_own(compute, g, dm))?;
            }
        }
        spare.take(dfolded);
        let senders = Senders { side: Side::Own, x, messages: own_messages };
        let at = &mut At { compute: walk.peers.compute, p, nodes: own_nodes, state };
        shape_of_rows(spare, x, as_they_are, &mut dx);
        to_rows(layer, at, g, senders, as_they_are.is_some(), dm, &mut dx);
        [dm, messages].into_iter().for_each(|used| spare.take(used));
        [dhalo, halo_messages].into_iter().for_each(|used| spare.take_halo(used));
        if let (true, Some((dx, _))) = (rows_cross, dx) {
            let weight = layer.facts().sender_weight.of(&own_nodes);
            copy_scaled(walk.peers.compute, dx, Store::Add, Rows::Dense(returned), 1.0, weight);
        }
        Ok(())
    }
}

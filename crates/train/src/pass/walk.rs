//! One pass on its way: what it is for, what it runs over, and the way to the peers.

use laconic_nn::after::After;
use laconic_nn::kernels::Through;
use laconic_nn::network::Network;
use laconic_nn::{Facts, Layer, Nodes, Precision, Undivided};

use super::between::Between;
use super::context::PassContext;
use super::inputs::{Inputs, LocalGraph};
use super::required_rows::RequiredRows;
use crate::exchange::peers::Peers;

/// Whether a unit behind the first reads nothing of its rows but messages, which are these multiplied by a weight: in
/// training what stands before it multiplies them, and none are made.
pub fn reads_weighted_rows(network: &Network, index: usize) -> bool {
    let reads = |layer: &Facts| {
        let is_row = layer.message_width > 0 && layer.message_is_row && !layer.message_has_parameters;
        is_row && !layer.reads_own_row
    };
    index > 0 && network.joined().is_none() && network.units().get(index).is_some_and(|unit| reads(unit.layer.facts()))
}

/// Whether what a layer outputs takes the place of its folds in passes over all rows: folds that are kept or can be
/// made again without asking anybody stand for themselves.
pub fn outputs_replace_folds(layer: &dyn Layer) -> bool {
    let facts = layer.facts();
    facts.outputs_are_folds && facts.message_has_parameters
}

/// Whether what follows unit `index` is done in the place of what the unit outputs: nobody reads that again.
pub fn activates_in_place(network: &Network, index: usize) -> bool {
    let unit = network.units().get(..=index + 1).and_then(|units| units.get(index));
    unit.is_some_and(|unit| unit.after.is_relu_alone() && !outputs_replace_folds(unit.layer.as_ref()))
}

/// Unit `index` as one function, where it has one behind the first layer, whose inputs are frozen.
pub fn undivided(network: &Network, index: usize) -> Option<&dyn Undivided> {
    network.units().get(index).filter(|_| index > 0)?.layer.undivided()
}

/// What both directions of a pass over a network need.
pub struct Walk<'a, 'p> {
    /// Threads, and the way to the peers.
    pub peers: &'a mut Peers<'p>,
    /// The rows and edges that it runs over.
    pub graph: LocalGraph<'a>,
    /// Which of the rows its layers output, where not all.
    pub required_rows: Option<&'a RequiredRows>,
    /// The layers, first to last.
    pub network: &'a Network,
    /// All its parameters, one flat slice.
    pub p: &'a [f32],
    /// What its first layer reads.
    pub inputs: &'a Inputs,
    /// What it is for.
    pub context: PassContext,
}

impl<'a> Walk<'a, '_> {
    /// The rows that unit `index` outputs, and the edges into them.
    pub(super) fn graph_of(&self, index: usize) -> LocalGraph<'a> {
        self.required_rows.map_or(self.graph, |required_rows| required_rows.graph(self.graph, index))
    }

    /// What is known of the rows that unit `index` reads.
    pub(super) fn senders(&self, index: usize) -> Nodes<'a> {
        self.required_rows.map_or(self.graph.nodes, |required_rows| required_rows.senders(self.graph.nodes, index))
    }

    /// Whether nothing but the end of a pass is wanted: no backward pass follows, and nothing is put together.
    pub(super) fn forgets(&self) -> bool {
        !self.context.training && self.network.joined().is_none()
    }

    /// What the rows that unit `index` reads are multiplied by already in training, where its messages are then these.
    pub(super) fn weighs(&self, index: usize) -> Option<&'a [f32]> {
        let reads = self.context.training && reads_weighted_rows(self.network, index);
        self.network.units().get(index).filter(|_| reads)?.layer.facts().sender_weight.of(&self.senders(index))
    }

    /// Unit `index` as one function, where it has one and no row crosses.
    pub(super) fn undivided(&self, index: usize) -> Option<&'a dyn Undivided> {
        undivided(self.network, index).filter(|_| self.peers.halo.is_empty())
    }

    /// Through which values of the rows that unit `index` reads their gradient returns at once: one function turns the
    /// ReLU before it back as well, where nobody else reads what that put out.
    pub(super) fn returns_through(&self, index: usize) -> Through {
        let before = index.checked_sub(1).map(|before| &self.network.units()[before].after);
        let is_relu = before.is_some_and(|after| *after != After::Nothing && after.slope().is_none());
        let alone = self.network.joined().is_none() && self.undivided(index).is_some();
        if is_relu && alone { Through::Positive } else { Through::All }
    }

    /// What messages of unit `index` are its rows times, where these are not multiplied already.
    pub(super) fn sender_weight(&self, index: usize) -> Option<&'a [f32]> {
        let layer = self.network.units()[index].layer.as_ref();
        layer.facts().sender_weight.of(&self.senders(index)).filter(|_| self.weighs(index).is_none())
    }

    /// Whether a unit is the last.
    pub(super) fn is_last(&self, index: usize) -> bool {
        index + 1 == self.network.units().len()
    }

    /// Whether what unit `index` outputs takes the place of its folds.
    pub(super) fn outputs_replace_folds(&self, index: usize) -> bool {
        outputs_replace_folds(self.network.units()[index].layer.as_ref())
    }

    /// Whether the rows that unit `index` reads are made again for its backward pass.
    pub(super) fn makes_rows_again(&self, index: usize) -> bool {
        self.context.recompute && index > 0 && !activates_in_place(self.network, index - 1)
    }

    /// Whether messages of unit `index` that its backward pass reads are recomputed there. That of the last unit begins
    /// at once.
    pub(super) fn makes_messages_again(&self, index: usize) -> bool {
        let live = self.network.units()[index].layer.facts().message_has_parameters;
        self.context.recompute && live && !self.is_last(index)
    }

    /// Whether the backward pass folds what unit `index` has folded once more, of messages without parameters.
    pub(super) fn folds_again(&self, index: usize) -> bool {
        let live = self.network.units()[index].layer.facts().message_has_parameters;
        self.context.recompute && !live && !self.is_last(index)
    }

    /// How what unit `index` outputs is stored: logits and embeddings as they are computed, in `f32`.
    pub(super) fn stores_outputs(&self, index: usize) -> Precision {
        if self.is_last(index) { Precision::F32 } else { self.context.precision }
    }

    /// What follows unit `index`.
    pub(super) fn between(&self, index: usize) -> Between<'a> {
        let weight = self.weighs(index + 1);
        Between { network: self.network, p: self.p, context: self.context, index, weight }
    }

    /// Whether the rows that a layer's messages are made of cross in their place.
    pub(super) fn carries_rows(&self, layer: &dyn Layer) -> bool {
        let carries = self.peers.carries().filter(|_| self.context.training || self.context.tells);
        carries.is_some_and(|carries| carries.rows_of(layer))
    }
}

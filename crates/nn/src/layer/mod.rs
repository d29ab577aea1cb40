//! Graph layers as three pairs of functions: message, fold, close, each with its adjoint.
//!
//! The network stands between *message* and *fold*: a worker makes the messages of its own rows, sends those that other
//! workers need, folds its local block meanwhile, and folds the halo block when the halo's messages are there. The
//! backward pass is the mirror image. Explicit pairs were chosen over an autodiff tape because the reverse exchange
//! must start between two products, nothing may allocate, and memory must be countable; the price is a derivation for
//! each layer.
//!
//! A new layer is one file here and one line in [`LAYERS`].

mod facts;
mod gat;
mod gcn;
mod gin;
mod identity;
mod linear;
mod residual;
mod rgcn;
mod sage;
mod state;
mod undivided;

use std::collections::BTreeMap;

use crate::block::Block;
use crate::kernels::Store;
use crate::matrix::{Matrix, Precision, Rows};
use crate::registry::{Kind, Registry};
use crate::threads::Compute;

pub use facts::{Facts, NodeWeight, Product};
pub use identity::Identity;
pub use linear::Linear;
pub use residual::RESIDUAL;
pub use state::{Slot, State};
pub use undivided::{Undivided, Whole};

/// What a layer may know about rows. Degrees are global: they never depend on the partition.
#[derive(Debug, Clone, Copy)]
pub struct Nodes<'a> {
    /// Global ids of the nodes.
    pub ids: &'a [u64],
    /// 1 / Σ weights of in-edges (their number where there are no weights), self-loops included where the model has
    /// them; 0 for a node without any.
    pub inverse_degree: &'a [f32],
    /// (Σ weights of in-edges)^(−1/2), 0 for a node without any.
    pub inverse_root_degree: &'a [f32],
}

impl<'a> Nodes<'a> {
    /// The first of them; all where there are no more.
    #[must_use]
    pub fn head(self, rows: usize) -> Nodes<'a> {
        let rows = rows.min(self.ids.len());
        Nodes {
            ids: &self.ids[..rows],
            inverse_degree: &self.inverse_degree[..rows],
            inverse_root_degree: &self.inverse_root_degree[..rows],
        }
    }
}

/// Where the source rows of a block live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// On this worker. The local block is folded first.
    Own,
    /// On other workers; the rows here are copies.
    Halo,
}

/// How a layer's fold takes halo rows of which only some are there, each standing for several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// Absent messages are 0 and the others are multiplied by what they stand for: sums stay unbiased.
    Scaled,
    /// Absent messages are −∞, which no maximum takes.
    Skipped,
    /// The fold itself weighs sources by [`State::presence`].
    Weighed,
}

/// What a layer makes of the weights of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeWeights {
    /// Nothing: all edges count the same.
    Unread,
    /// A message is multiplied by the weight of its edge.
    Factors,
    /// The same, divided by the sum of the weights of a node's edges, or by its root: weights all multiplied by the
    /// same give the same, and none may be negative.
    Shares,
}

/// What every function of a layer is given besides its operands.
pub struct At<'a> {
    /// Threads and scratch memory.
    pub compute: &'a mut Compute,
    /// The layer's own slice of the parameters, in the order of [`Facts::parameters`].
    pub p: &'a [f32],
    /// What is known of the rows that are worked on, one entry a row: senders in `message` and its adjoint,
    /// destinations in `close` and its adjoint.
    pub nodes: Nodes<'a>,
    /// What the layer keeps from one of its functions to the next.
    pub state: &'a mut State,
}

/// The edges of one block and what travels along them.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// Where the source rows live.
    pub side: Side,
    /// The edges, sources → destinations.
    pub block: &'a Block,
    /// The sources' messages; sources × [`Facts::message_width`].
    pub messages: &'a Matrix,
    /// Which source row of the own side is the first destination; the others follow it. Destinations are 0 and what
    /// follows in whole graphs, where own rows are both, and in sampled blocks, whose destinations are the first of
    /// their sources; in a piece of a block they begin where the piece does.
    pub first: usize,
}

impl<'a> Sources<'a> {
    /// Sources of which the first are the destinations, where they are of the own side.
    pub fn new(side: Side, block: &'a Block, messages: &'a Matrix) -> Sources<'a> {
        Sources { side, block, messages, first: 0 }
    }
}

/// What [`Layer::close`] and its adjoint read.
#[derive(Debug, Clone, Copy)]
pub struct Closing<'a> {
    /// Own input rows; destinations × inputs.
    pub x: Rows<'a>,
    /// Folded messages; destinations × [`Facts::fold_width`].
    pub folded: Rows<'a>,
}

impl Closing<'_> {
    /// How a layer stores what it keeps of these rows and of what comes `out` of them: as bf16 where any of them is.
    fn precision(&self, out: &Matrix) -> Precision {
        let all = [self.x.precision(), self.folded.precision(), out.precision()];
        if all.contains(&Precision::Bf16) { Precision::Bf16 } else { Precision::F32 }
    }
}

/// The gradients that the adjoint of `close` sets, each where it is wanted.
#[derive(Default)]
pub struct Wanted<'a> {
    /// That of the folds; destinations × [`Facts::fold_width`].
    pub dfolded: Option<&'a mut Matrix>,
    /// That of own input rows through `close` alone, for layers that read them there; destinations × inputs.
    pub dx: Option<&'a mut Matrix>,
}

/// Rows with the messages that were made of them.
#[derive(Clone, Copy)]
pub struct Senders<'a> {
    /// Where the rows live.
    pub side: Side,
    /// The rows; senders × inputs.
    pub x: Rows<'a>,
    /// Their messages; senders × [`Facts::message_width`].
    pub messages: &'a Matrix,
}

/// What [`Layer::finish_fold`] is to leave behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Folds, which [`Layer::close`] reads.
    Folds,
    /// Output rows, where [`Facts::outputs_are_folds`]: what `close` would make of the folds. Its adjoint is then given
    /// these as folds.
    Outputs,
}

/// One graph layer. All matrices have one row a node; `g` is the layer's own slice of the gradients, laid out as
/// [`At::p`].
pub trait Layer: Send + Sync {
    /// What is known of it.
    fn facts(&self) -> &Facts;

    /// Sets `out` to the messages of the rows `x`, which `at.nodes` describes. `at.p` may be empty where messages have
    /// no parameters.
    fn message(&self, at: &mut At<'_>, x: Rows<'_>, out: &mut Matrix);

    /// Folds the messages of a block's sources into `folded`. Called with [`Side::Own`] first, then with
    /// [`Side::Halo`].
    fn fold(&self, at: &mut At<'_>, sources: Sources<'_>, folded: &mut Matrix);

    /// Ends the fold, once every block is in. It may scale rows for their destinations' sake, which of a kept fold then
    /// happens once.
    fn finish_fold(&self, _at: &mut At<'_>, _folded: &mut Matrix, _ending: Ending) {}

    /// Sets `out` to the output rows, from own rows and folds.
    fn close(&self, at: &mut At<'_>, input: Closing<'_>, out: &mut Matrix);

    /// The first half of the adjoint of [`Layer::close`]: from `dz`, the gradient of the output, adds to `g`. Nobody
    /// reads `input` after it, so that the second half may be given its memory.
    fn add_close_gradients(&self, at: &mut At<'_>, g: &mut [f32], input: Closing<'_>, dz: &Matrix);

    /// The second half, where anything is wanted of it: sets that from `dz` (used up).
    fn close_adjoint(&self, at: &mut At<'_>, dz: &mut Matrix, wanted: Wanted<'_>);

    /// The adjoint of [`Layer::fold`], which reads messages where these have parameters alone: adds to `g` and sets
    /// `dmessages` for the block's sources. Called with [`Side::Halo`] first, so that the halo's gradients can leave
    /// before the local product, then with [`Side::Own`].
    fn fold_adjoint(
        &self,
        at: &mut At<'_>,
        g: &mut [f32],
        sources: Sources<'_>,
        dfolded: &Matrix,
        dmessages: &mut Matrix,
    );

    /// The adjoint of [`Layer::message`] for the rows of one side, which reads these and their messages where messages
    /// have parameters alone: from `dmessages` (used up) adds to `g` and, where wanted, sets or adds to `dx`.
    fn message_adjoint(
        &self,
        at: &mut At<'_>,
        g: &mut [f32],
        senders: Senders<'_>,
        dmessages: &mut Matrix,
        dx: Option<(&mut Matrix, Store)>,
    );

    /// The layer on rows of which all neighbours are here, where it has something better for them than to fold and then
    /// to close.
    fn undivided(&self) -> Option<&dyn Undivided> {
        None
    }
}

/// The shape of one layer of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSpec {
    /// Width of the rows that come in.
    pub inputs: usize,
    /// Width of the rows that go out (all heads together, where they are concatenated).
    pub outputs: usize,
    /// The number of attention heads; 1 for layers without.
    pub heads: usize,
    /// Whether heads are concatenated rather than averaged.
    pub concatenate: bool,
    /// Width of a layer's inner perceptron (gin).
    pub inner: usize,
    /// How neighbours are aggregated, where a layer has a choice: `mean` or `max`.
    pub aggregator: Aggregator,
    /// Whether ε is learned (gin).
    pub learn_epsilon: bool,
    /// How many relations the graph's edges are of, 1 where there is one kind of edge.
    pub relations: usize,
    /// Of how many bases relations are mixed (rgcn); 0 where each has a weight of its own.
    pub bases: usize,
    /// Whether what comes in is added to what comes out, times a matrix where widths differ.
    pub residual: bool,
    /// Whether the layer must fold inputs as they are (so that folds of frozen inputs can be kept) even where messages
    /// of the output's width would be narrower.
    pub aggregate_first: bool,
    /// Numbers that only some layer of somebody else's knows, by their keys in the configuration.
    pub options: BTreeMap<String, f64>,
}

impl LayerSpec {
    /// A layer of these widths with everything else at its default.
    pub fn new(inputs: usize, outputs: usize) -> Self {
        LayerSpec {
            inputs,
            outputs,
            heads: 1,
            concatenate: true,
            inner: outputs,
            aggregator: Aggregator::Mean,
            learn_epsilon: true,
            relations: 1,
            bases: 0,
            residual: false,
            aggregate_first: false,
            options: BTreeMap::new(),
        }
    }
}

/// How GraphSAGE aggregates neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregator {
    /// The mean of the neighbours' rows.
    Mean,
    /// The elementwise maximum of the neighbours' rows after a learned linear map and ReLU.
    Max,
}

/// A kind of layer: how it is called, how it is built, what its defaults are.
#[derive(Debug)]
pub struct LayerKind {
    /// The name in configurations.
    pub name: &'static str,
    /// Under which name PyTorch Geometric keeps a list of such layers.
    pub prefix: &'static str,
    /// Whether the model adds self-loops unless told otherwise, as PyTorch Geometric does.
    pub self_loops: bool,
    /// Whether the layer has attention heads, so that its width depends on how they are merged.
    pub has_heads: bool,
    /// Whether it tells edges of different relations apart. Its blocks are made by [`Block::share_relations`].
    pub is_relational: bool,
    /// The keys of `[model]` that it reads besides the widths and what every model has: names of [`LayerSpec`]'s fields
    /// as users write them, or keys of [`LayerSpec::options`].
    pub options: &'static [&'static str],
    /// Builds a layer of this shape; see [`LayerKind::layer`].
    pub build: fn(&LayerSpec) -> Box<dyn Layer>,
}

/// Under which name PyTorch Geometric keeps graph convolutions; other layers are under other names.
const CONVS: &str = "convs";

impl LayerKind {
    /// The layer of this shape, with what stands around it whatever its kind.
    pub fn layer(&self, spec: &LayerSpec) -> Box<dyn Layer> {
        let layer = (self.build)(spec);
        if spec.residual { Box::new(residual::Residual::around(layer)) } else { layer }
    }

    /// Whether the layer is a graph convolution, whose call takes edges besides rows, and not a plain linear map.
    pub fn is_convolution(&self) -> bool {
        self.prefix == CONVS
    }
}

/// Kinds of layers by name.
pub type LayerRegistry = Registry<LayerKind>;

impl Kind for LayerKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ours() -> &'static [Self] {
        LAYERS
    }
}

/// Every kind of layer that this crate has.
pub const LAYERS: &[LayerKind] = &[gcn::KIND, sage::KIND, gin::KIND, gat::KIND, rgcn::KIND, linear::KIND];

/// The kind of layer of this name among ours.
pub fn layer_kind(name: &str) -> Option<&'static LayerKind> {
    LAYERS.iter().find(|kind| kind.name == name)
}

/// A truth value in Python.
fn python(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

fn store(side: Side) -> Store {
    match side {
        Side::Own => Store::Set,
        Side::Halo => Store::Add,
    }
}

#[cfg(test)]
mod tests;

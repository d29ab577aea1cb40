//! Decoders: from the embeddings of two nodes to a score of the edge between them.
//!
//! A decoder sees gathered rows, those of the sources and those of the destinations of some pairs, and gives each pair
//! a logit. Whoever gathers them decides where they come from. As with layers the adjoint is explicit.
//!
//! A new decoder is one file here and one line in [`DECODERS`].

mod distmult;
mod dot;
mod mlp;

use crate::layer::Slot;
use crate::matrix::Matrix;
use crate::parameters::ParameterSpec;
use crate::registry::{Kind, Registry};
use crate::threads::Compute;

/// The name that a decoder's parameters carry in front, such as `decoder.lins.0.weight`.
pub const DECODER: &str = "decoder";

/// What every function of a decoder is given besides its operands.
pub struct Decoding<'a> {
    /// Threads and scratch memory.
    pub compute: &'a mut Compute,
    /// The decoder's own slice of the parameters, in the order of [`Decoder::parameters`].
    pub p: &'a [f32],
    /// What the decoder keeps from scoring some pairs to the adjoint for the same pairs.
    pub memory: &'a mut Slot,
}

/// Embeddings of pairs of nodes: a row a pair.
#[derive(Clone, Copy)]
pub struct Pairs<'a> {
    /// Embeddings of sources; pairs × [`Decoder::width`].
    pub sources: &'a Matrix,
    /// Embeddings of destinations, likewise.
    pub destinations: &'a Matrix,
    /// The relation of each pair, for a decoder that has some; otherwise, or where all are of relation 0, empty.
    pub relations: &'a [u32],
}

impl Pairs<'_> {
    fn relation(&self, pair: usize) -> usize {
        self.relations.get(pair).map_or(0, |&relation| relation as usize)
    }
}

/// One decoder; `g` is its slice of the gradients, laid out as [`Decoding::p`].
pub trait Decoder: Send + Sync {
    /// Width of embeddings.
    fn width(&self) -> usize;

    /// Shapes, names and initial values of the parameters, in the order of the flat slice.
    fn parameters(&self) -> Vec<ParameterSpec>;

    /// Values that are held of each pair besides the embeddings of both ends and their gradients: when it is scored,
    /// and with the adjoint.
    fn held(&self) -> [usize; 2] {
        [0, 0]
    }

    /// Sets `out` to the logits of the pairs; pairs × 1.
    fn score(&self, at: &mut Decoding<'_>, pairs: Pairs<'_>, out: &mut Matrix);

    /// The adjoint of [`Decoder::score`] for the pairs that were scored last: from the gradient of the logits adds to
    /// `g` and sets the gradients of both ends' rows.
    fn score_adjoint(
        &self,
        at: &mut Decoding<'_>,
        g: &mut [f32],
        pairs: Pairs<'_>,
        dscores: &Matrix,
        into: [&mut Matrix; 2],
    );
}

/// The shape of a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecoderSpec {
    /// Width of embeddings.
    pub width: usize,
    /// Hidden layers, for a decoder that has some.
    pub layers: usize,
    /// The number of relations, for a decoder that has some.
    pub relations: usize,
}

impl DecoderSpec {
    /// A decoder of embeddings of this width with everything else at its default.
    pub fn new(width: usize) -> Self {
        DecoderSpec { width, layers: 1, relations: 1 }
    }
}

/// A kind of decoder: how it is called, how it is built.
#[derive(Debug)]
pub struct DecoderKind {
    /// The name in configurations.
    pub name: &'static str,
    /// The keys of `[task]` that it reads.
    pub options: &'static [&'static str],
    /// Whether it scores pairs of several relations differently.
    pub is_relational: bool,
    /// Builds a decoder of this shape.
    pub build: fn(&DecoderSpec) -> Box<dyn Decoder>,
}

/// Every kind of decoder that this crate has.
pub const DECODERS: &[DecoderKind] = &[dot::KIND, mlp::KIND, distmult::KIND];

/// Kinds of decoders by name.
pub type DecoderRegistry = Registry<DecoderKind>;

impl Kind for DecoderKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ours() -> &'static [Self] {
        DECODERS
    }
}

#[cfg(test)]
mod tests;

//! The inner product of both embeddings. It has no parameters, and both directions of a pair have one score.

use super::{Decoder, DecoderKind, DecoderSpec, Decoding, Pairs};
use crate::kernels::pairs::{row_products, scale_rows};
use crate::matrix::Matrix;
use crate::parameters::ParameterSpec;

pub(super) const KIND: DecoderKind = DecoderKind { name: "dot", options: &[], is_relational: false, build };

struct Dot {
    width: usize,
}

fn build(spec: &DecoderSpec) -> Box<dyn Decoder> {
    Box::new(Dot { width: spec.width })
}

impl Decoder for Dot {
    fn width(&self) -> usize {
        self.width
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        Vec::new()
    }

    fn score(&self, Decoding { compute, .. }: &mut Decoding<'_>, pairs: Pairs<'_>, out: &mut Matrix) {
        row_products(compute, out, pairs.sources, pairs.destinations);
    }

    fn score_adjoint(
        &self,
        Decoding { compute, .. }: &mut Decoding<'_>,
        _g: &mut [f32],
        pairs: Pairs<'_>,
        dscores: &Matrix,
        [dsources, ddestinations]: [&mut Matrix; 2],
    ) {
        scale_rows(compute, dsources, dscores, pairs.destinations);
        scale_rows(compute, ddestinations, dscores, pairs.sources);
    }
}

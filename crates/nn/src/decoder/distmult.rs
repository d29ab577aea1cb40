//! DistMult (Yang et al., 2015): `Σ source · relation · destination`, with a learned vector for each relation.

use super::{Decoder, DecoderKind, DecoderSpec, Decoding, Pairs};
use crate::kernels::long::{LONG, in_blocks};
use crate::kernels::pairs::scale_rows;
use crate::matrix::Matrix;
use crate::parameters::{Initial, ParameterSpec};
use crate::threads::row_pieces;

pub(super) const KIND: DecoderKind = DecoderKind { name: "distmult", options: &[], is_relational: true, build };

struct DistMult {
    width: usize,
    relations: usize,
}

fn build(spec: &DecoderSpec) -> Box<dyn Decoder> {
    Box::new(DistMult { width: spec.width, relations: spec.relations })
}

impl DistMult {
    fn vector<'a>(&self, p: &'a [f32], relation: usize) -> &'a [f32] {
        &p[relation * self.width..(relation + 1) * self.width]
    }
}

/// Σ over the columns of the product of three rows.
fn triple(source: &[f32], relation: &[f32], destination: &[f32]) -> f32 {
    source.iter().zip(relation).zip(destination).map(|((s, r), d)| s * r * d).sum()
}

impl Decoder for DistMult {
    fn width(&self) -> usize {
        self.width
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        let bound = 40.0 / self.width.max(1) as f32;
        vec![ParameterSpec::new("relations", &[self.relations, self.width], Initial::Uniform { bound })]
    }

    fn score(&self, Decoding { compute, p, .. }: &mut Decoding<'_>, pairs: Pairs<'_>, out: &mut Matrix) {
        out.reshape(pairs.sources.rows(), 1);
        compute.rows(out.rows_mut(), |pair, out| {
            let relation = self.vector(p, pairs.relation(pair));
            out[0] = triple(pairs.sources.row(pair), relation, pairs.destinations.row(pair));
        });
    }

    fn score_adjoint(
        &self,
        Decoding { compute, p, .. }: &mut Decoding<'_>,
        g: &mut [f32],
        pairs: Pairs<'_>,
        dscores: &Matrix,
        [dsources, ddestinations]: [&mut Matrix; 2],
    ) {
        let rows = pairs.sources.rows();
        let pieces = row_pieces(rows);
        let (size, rooms) = (rows.div_ceil(pieces).max(1), compute.rooms());
        compute.reduce(g, pieces, |piece, partial| {
            let pairs_of = (piece * size).min(rows)..((piece + 1) * size).min(rows);
            in_blocks(&rooms, pairs_of, LONG, partial, |some, partial| {
                for pair in some {
                    let ends = pairs.sources.row(pair).iter().zip(pairs.destinations.row(pair));
                    let into = &mut partial[pairs.relation(pair) * self.width..][..self.width];
                    let factor = dscores.row(pair)[0];
                    into.iter_mut().zip(ends).for_each(|(into, (s, d))| *into += factor * s * d);
                }
            });
        });
        for (into, other) in [(dsources, pairs.destinations), (ddestinations, pairs.sources)] {
            scale_rows(compute, into, dscores, other);
            compute.rows(into.rows_mut(), |pair, into| {
                let relation = self.vector(p, pairs.relation(pair));
                into.iter_mut().zip(relation).for_each(|(value, r)| *value *= r);
            });
        }
    }
}

//! A linear map of a node's own row, `z = x Wᵀ + b`: the layers of `mlp`, and the classifier heads of lazy training.
//! It reads no neighbours, so it exchanges nothing.

use super::{At, Closing, EdgeWeights, Facts, Layer, LayerKind, LayerSpec, Senders, Sources, Wanted};
use crate::kernels::Store;
use crate::kernels::affine::{Left, add_affine_gradients, affine};
use crate::kernels::product::times_weight;
use crate::matrix::{Matrix, Rows};
use crate::parameters::{Initial, ParameterSpec};

pub(super) const KIND: LayerKind = LayerKind {
    name: "mlp",
    prefix: "lins",
    self_loops: false,
    has_heads: false,
    is_relational: false,
    options: &[],
    build,
};

/// The layer; see the module's documentation.
pub struct Linear {
    inputs: usize,
    outputs: usize,
    facts: Facts,
}

impl Linear {
    /// A linear map between these widths.
    pub fn new(inputs: usize, outputs: usize) -> Self {
        let bound = Initial::fan_in(inputs);
        let parameters = vec![
            ParameterSpec::new("weight", &[outputs, inputs], bound),
            ParameterSpec::new("bias", &[outputs], bound),
        ];
        let facts = Facts {
            message_width: 0,
            fold_width: 0,
            shift: Some("bias"),
            edge_weights: EdgeWeights::Unread,
            takes_bf16: true,
            reads_own_row: true,
            pyg: format!("Linear({inputs}, {outputs})"),
            ..Facts::new(inputs, outputs, parameters)
        };
        Linear { inputs, outputs, facts }
    }
}

fn build(spec: &LayerSpec) -> Box<dyn Layer> {
    Box::new(Linear::new(spec.inputs, spec.outputs))
}

impl Layer for Linear {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn message(&self, _at: &mut At<'_>, x: Rows<'_>, out: &mut Matrix) {
        out.reshape(x.rows(), 0);
    }

    fn fold(&self, _at: &mut At<'_>, Sources { block, .. }: Sources<'_>, folded: &mut Matrix) {
        folded.reshape(block.destinations(), 0);
    }

    fn close(&self, At { compute, p, .. }: &mut At<'_>, input: Closing<'_>, out: &mut Matrix) {
        let (weight, bias) = p.split_at(self.inputs * self.outputs);
        out.reshape(input.x.rows(), self.outputs);
        affine(compute, out, &[(Left::Rows(input.x), weight)], bias, |_, _| {});
    }

    fn add_close_gradients(&self, At { compute, .. }: &mut At<'_>, g: &mut [f32], input: Closing<'_>, dz: &Matrix) {
        add_affine_gradients(compute, g, self.inputs * self.outputs, dz, &[(Left::Rows(input.x), 0)]);
    }

    fn close_adjoint(&self, At { compute, p, .. }: &mut At<'_>, dz: &mut Matrix, Wanted { dx, .. }: Wanted<'_>) {
        if let Some(dx) = dx {
            dx.reshape(dz.rows(), self.inputs);
            times_weight(compute, dx, Store::Set, dz, &p[..self.inputs * self.outputs]);
        }
    }

    fn fold_adjoint(
        &self,
        _at: &mut At<'_>,
        _g: &mut [f32],
        Sources { block, .. }: Sources<'_>,
        _dfolded: &Matrix,
        dmessages: &mut Matrix,
    ) {
        dmessages.reshape(block.sources(), 0);
    }

    fn message_adjoint(
        &self,
        _at: &mut At<'_>,
        _g: &mut [f32],
        _senders: Senders<'_>,
        _dmessages: &mut Matrix,
        _dx: Option<(&mut Matrix, Store)>,
    ) {
    }
}

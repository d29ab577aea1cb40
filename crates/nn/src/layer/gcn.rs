//! Graph convolution (Kipf and Welling, 2017, equation 2), as PyTorch Geometric's `GCNConv`:
//! `z = D^(−1/2) A D^(−1/2) x Wᵀ + b`, with in-degrees on both sides and self-loops being edges of the local block.
//!
//! The owner scales a message by its own degree, so that no worker needs to know another node's.

use super::{
    At, Closing, EdgeWeights, Ending, Facts, Layer, LayerKind, LayerSpec, NodeWeight, Nodes, Senders, Sources,
    Undivided, Wanted, Whole, store,
};
use crate::kernels::affine::{Left, add_affine_gradients, affine};
use crate::kernels::elementwise::{copy_scaled, copy_shifted, scale_and_shift, scale_rows};
use crate::kernels::fold::{sum_fold, sum_fold_adjoint};
use crate::kernels::neighbours::{Along, Ends, Sums, neighbours_adjoint};
use crate::kernels::product::{add_weight_gradient, times_weight, times_weight_then, times_weight_transposed};
use crate::kernels::{Store, Through};
use crate::matrix::{Matrix, Rows};
use crate::parameters::{Initial, ParameterSpec};

pub(super) const KIND: LayerKind = LayerKind {
    name: "gcn",
    prefix: "convs",
    self_loops: true,
    has_heads: false,
    is_relational: false,
    options: &[],
    build,
};

struct Gcn {
    inputs: usize,
    outputs: usize,
    /// Whether messages are transformed rows (narrower where outputs < inputs) rather than rows as they are.
    transform_first: bool,
    facts: Facts,
}

fn build(spec: &LayerSpec) -> Box<dyn Layer> {
    let transform_first = !spec.aggregate_first && spec.outputs < spec.inputs;
    let (inputs, outputs) = (spec.inputs, spec.outputs);
    let glorot = Initial::Glorot { fan_in: inputs, fan_out: outputs };
    let parameters = vec![
        ParameterSpec::new("lin.weight", &[outputs, inputs], glorot),
        ParameterSpec::new("bias", &[outputs], Initial::Zeros),
    ];
    let facts = Facts {
        shift: Some("bias"),
        is_linear: true,
        sender_weight: NodeWeight::InverseRootDegree,
        destination_weight: NodeWeight::InverseRootDegree,
        edge_weights: EdgeWeights::Shares,
        takes_bf16: true,
        pyg: format!("GCNConv({inputs}, {outputs}, add_self_loops={{self_loops}})"),
        ..Facts::new(inputs, outputs, parameters)
    };
    let facts = if transform_first { facts.with_transformed_messages(outputs) } else { facts };
    Box::new(Gcn { inputs, outputs, transform_first, facts })
}

impl Gcn {
    fn weight_len(&self) -> usize {
        self.inputs * self.outputs
    }

    fn along<'a>(nodes: &Nodes<'a>, Whole { weight, block }: Whole<'a>) -> Along<'a> {
        Along { block, of_sources: weight, of_destinations: Some(nodes.inverse_root_degree) }
    }
}

impl Undivided for Gcn {
    fn is_for_both_ways(&self) -> bool {
        !self.transform_first
    }

    fn forward(&self, At { compute, p, nodes, .. }: &mut At<'_>, edges: Whole<'_>, x: &Matrix, out: &mut Matrix) {
        let (weight, bias) = p.split_at(self.weight_len());
        out.reshape(edges.block.destinations(), self.outputs);
        let sums = Sums { rows: x, along: Gcn::along(nodes, edges) };
        affine(compute, out, &[(Left::Neighbours(sums), weight)], bias, |_, _| {});
    }

    fn backward(
        &self,
        At { compute, p, nodes, .. }: &mut At<'_>,
        g: &mut [f32],
        edges: Whole<'_>,
        dz: &Matrix,
        x: (&mut Matrix, Through),
    ) {
        let weight = &p[..self.weight_len()];
        let ends = Ends { neighbours: (weight, 0), own: None, bias: weight.len() };
        neighbours_adjoint(compute, g, ends, Gcn::along(nodes, edges), dz, x);
    }
}

impl Layer for Gcn {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn undivided(&self) -> Option<&dyn Undivided> {
        Some(self)
    }

    fn message(&self, At { compute, p, nodes, .. }: &mut At<'_>, x: Rows<'_>, out: &mut Matrix) {
        out.reshape(x.rows(), self.facts.message_width);
        let degree = Some(nodes.inverse_root_degree);
        if self.transform_first {
            times_weight_transposed(compute, out, Store::Set, x, &p[..self.weight_len()]);
            scale_and_shift(compute, out, degree, None);
        } else {
            copy_scaled(compute, out, Store::Set, x, 1.0, degree);
        }
    }

    fn fold(
        &self,
        At { compute, .. }: &mut At<'_>,
        Sources { side, block, messages, .. }: Sources<'_>,
        folded: &mut Matrix,
    ) {
        folded.reshape(block.destinations(), self.facts.message_width);
        sum_fold(compute, folded, store(side), block, messages);
    }

    fn finish_fold(&self, At { compute, nodes, .. }: &mut At<'_>, folded: &mut Matrix, _ending: Ending) {
        scale_and_shift(compute, folded, Some(nodes.inverse_root_degree), None);
    }

    fn close(&self, At { compute, p, .. }: &mut At<'_>, input: Closing<'_>, out: &mut Matrix) {
        let (weight, bias) = p.split_at(self.weight_len());
        out.reshape(input.folded.rows(), self.outputs);
        if self.transform_first {
            copy_shifted(compute, out, input.folded, bias);
        } else {
            affine(compute, out, &[(Left::Rows(input.folded), weight)], bias, |_, _| {});
        }
    }

    fn add_close_gradients(&self, At { compute, .. }: &mut At<'_>, g: &mut [f32], input: Closing<'_>, dz: &Matrix) {
        let terms = [(Left::Rows(input.folded), 0)];
        let terms = if self.transform_first { &[] } else { &terms[..] };
        add_affine_gradients(compute, g, self.weight_len(), dz, terms);
    }

    fn close_adjoint(
        &self,
        At { compute, p, nodes, .. }: &mut At<'_>,
        dz: &mut Matrix,
        Wanted { dfolded, .. }: Wanted<'_>,
    ) {
        let Some(dfolded) = dfolded else { return };
        let scale = nodes.inverse_root_degree;
        if self.transform_first {
            std::mem::swap(dfolded, dz);
            return scale_and_shift(compute, dfolded, Some(scale), None);
        }
        dfolded.reshape(dz.rows(), self.inputs);
        times_weight_then(compute, dfolded, dz, &p[..self.weight_len()], |first, rows| {
            scale_rows(rows, self.inputs, &scale[first..]);
        });
    }

    fn fold_adjoint(
        &self,
        At { compute, .. }: &mut At<'_>,
        _g: &mut [f32],
        Sources { block, .. }: Sources<'_>,
        dfolded: &Matrix,
        dmessages: &mut Matrix,
    ) {
        dmessages.reshape(block.sources(), self.facts.message_width);
        sum_fold_adjoint(compute, dmessages, Store::Set, block, dfolded);
    }

    fn message_adjoint(
        &self,
        At { compute, p, nodes, .. }: &mut At<'_>,
        g: &mut [f32],
        Senders { x, .. }: Senders<'_>,
        dmessages: &mut Matrix,
        dx: Option<(&mut Matrix, Store)>,
    ) {
        let degree = Some(nodes.inverse_root_degree);
        if self.transform_first {
            scale_and_shift(compute, dmessages, degree, None);
            add_weight_gradient(compute, &mut g[..self.weight_len()], dmessages, x);
        }
        if let Some((dx, store)) = dx {
            dx.reshape(dmessages.rows(), self.inputs);
            if self.transform_first {
                times_weight(compute, dx, store, dmessages, &p[..self.weight_len()]);
            } else {
                copy_scaled(compute, dx, store, Rows::Dense(dmessages), 1.0, degree);
            }
        }
    }
}

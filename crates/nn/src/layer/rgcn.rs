//! Relational graph convolution (Schlichtkrull et al., 2018, equations 2 and 3), as PyTorch Geometric's `RGCNConv`
//! with `aggr="mean"`: `z_v = Σ_r 1/|N_r(v)| Σ_{u ∈ N_r(v)} x_u W_r + x_v W_0 + b`, with `W_r = Σ_b a_rb V_b` where
//! there are bases. On weighted edges the mean over a relation's neighbours is a weighted one.
//!
//! In batches of drawn neighbours the mean is over those that were drawn of a relation, and 0 where none was: a ratio
//! of two estimates and no unbiased one, as `gcn`'s sum is; the fewer neighbours a relation has, the further it is off.
//!
//! Sum and product may change places, so either rows cross and the fold has a stretch of columns for each basis, or the
//! rows times all bases cross and the fold is as wide as the output. The narrower crosses: rows, unless the output
//! times the number of bases is narrower still, as it is on top of wide bags of words. A fold of rows depends on
//! parameters, too (on the a_rb), so no fold of frozen inputs is kept; without bases it is as wide as the rows times
//! the number of relations, which is what bases are there against.

use super::{
    At, Closing, EdgeWeights, Facts, Layer, LayerKind, LayerSpec, NodeWeight, Product, Senders, Sources, Wanted, store,
};
use crate::kernels::Store;
use crate::kernels::elementwise::{copy_scaled, scale_and_shift};
use crate::kernels::product::{add_bias_gradient, add_product_gradient, times, times_weight_transposed};
use crate::kernels::relation::{Along, Mix, add_gather_gradient, add_spread_gradient, gather, spread};
use crate::matrix::{Matrix, Rows};
use crate::parameters::{Initial, ParameterSpec, split, split_mut};

pub(super) const KIND: LayerKind = LayerKind {
    name: "rgcn",
    prefix: "convs",
    self_loops: false,
    has_heads: false,
    is_relational: true,
    options: &["bases"],
    build,
};

struct Rgcn {
    inputs: usize,
    outputs: usize,
    relations: usize,
    /// The number of bases; as many as relations where each has a weight of its own.
    bases: usize,
    /// Whether relations are mixed from bases.
    mixes: bool,
    /// Whether messages are rows times every basis rather than the rows.
    transform_first: bool,
    facts: Facts,
}

fn build(spec: &LayerSpec) -> Box<dyn Layer> {
    let (relations, mixes) = (spec.relations.max(1), spec.bases > 0);
    let bases = if mixes { spec.bases } else { relations };
    let transform_first = bases * spec.outputs < spec.inputs;
    let (inputs, outputs) = (spec.inputs, spec.outputs);
    let glorot = |fan_in, fan_out| Initial::Glorot { fan_in, fan_out };
    // PyTorch Geometric initialises a stack of matrices by its last two dimensions.
    let mut parameters = vec![ParameterSpec::new("weight", &[bases, inputs, outputs], glorot(inputs, outputs))];
    if mixes {
        parameters.push(ParameterSpec::new("comp", &[relations, bases], glorot(relations, bases)));
    }
    parameters.push(ParameterSpec::new("root", &[inputs, outputs], glorot(inputs, outputs)));
    parameters.push(ParameterSpec::new("bias", &[outputs], Initial::Zeros));
    // Relations are mixed edge by edge, in the fold.
    let root = inputs * outputs;
    let widths = if transform_first { [bases * outputs, outputs] } else { [inputs, bases * inputs] };
    let mixed = if mixes { format!(", num_bases={bases}") } else { String::new() };
    let facts = Facts {
        message_width: widths[0],
        fold_width: widths[1],
        products: vec![Product::of_inputs(bases * root), Product::of_inputs(root)],
        shift: Some("bias"),
        message_has_parameters: true,
        message_is_row: !transform_first,
        destination_weight: NodeWeight::InverseDegree,
        edge_weights: EdgeWeights::Shares,
        reads_positions: true,
        reads_own_row: true,
        pyg: format!("RGCNConv({inputs}, {outputs}, {relations}{mixed})"),
        ..Facts::new(inputs, outputs, parameters)
    };
    Box::new(Rgcn { inputs, outputs, relations, bases, mixes, transform_first, facts })
}

/// The bases beside each other, as rows are multiplied by all of them at once; inputs × (bases · outputs).
#[derive(Default)]
struct Memory {
    stacked: Vec<f32>,
    gradient: Vec<f32>,
}

/// The layer's parameters or gradients, cut out of its flat slice.
struct Views<T> {
    /// Bases × inputs × outputs.
    weight: T,
    /// Relations × bases; nothing without bases.
    mix: T,
    /// Inputs × outputs.
    root: T,
    bias: T,
}

impl<T> From<[T; 4]> for Views<T> {
    fn from([weight, mix, root, bias]: [T; 4]) -> Self {
        Views { weight, mix, root, bias }
    }
}

impl Rgcn {
    /// Lengths of the views.
    fn lens(&self) -> [usize; 4] {
        let root = self.inputs * self.outputs;
        let mix = if self.mixes { self.relations * self.bases } else { 0 };
        [self.bases * root, mix, root, self.outputs]
    }

    fn views<'a>(&self, p: &'a [f32]) -> Views<&'a [f32]> {
        split(p, self.lens()).into()
    }

    fn views_mut<'a>(&self, g: &'a mut [f32]) -> Views<&'a mut [f32]> {
        split_mut(g, self.lens()).into()
    }

    fn mix<'a>(&self, views: &Views<&'a [f32]>) -> Mix<'a> {
        Mix { bases: self.bases, proportions: self.mixes.then_some(views.mix) }
    }

    /// Calls `each(place among the bases beside each other, place in the parameter)` for each run of `outputs` values.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (bases, inputs, outputs) = (self.bases, self.inputs, self.outputs);
        (0..bases * inputs).map(move |row| {
            let (basis, input) = (row / inputs, row % inputs);
            ((input * bases + basis) * outputs, row * outputs)
        })
    }

    /// Puts the bases beside each other.
    fn stack(&self, stacked: &mut Vec<f32>, weight: &[f32]) {
        stacked.resize(weight.len(), 0.0);
        for (to, from) in self.places() {
            stacked[to..to + self.outputs].copy_from_slice(&weight[from..from + self.outputs]);
        }
    }
}

impl Layer for Rgcn {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn message(&self, At { compute, p, state, .. }: &mut At<'_>, x: Rows<'_>, out: &mut Matrix) {
        out.reshape(x.rows(), self.facts.message_width);
        if !self.transform_first {
            return copy_scaled(compute, out, Store::Set, x, 1.0, None);
        }
        let Memory { stacked, .. } = state.own.get();
        self.stack(stacked, self.views(p).weight);
        times(compute, out, Store::Set, x, stacked);
    }

    fn fold(
        &self,
        At { compute, p, .. }: &mut At<'_>,
        Sources { side, block, messages, .. }: Sources<'_>,
        folded: &mut Matrix,
    ) {
        folded.reshape(block.destinations(), self.facts().fold_width);
        let along = Along::forward(block, self.mix(&self.views(p)));
        if self.transform_first {
            gather(compute, folded, store(side), along, messages);
        } else {
            spread(compute, folded, store(side), along, messages);
        }
    }

    fn close(&self, At { compute, p, .. }: &mut At<'_>, input: Closing<'_>, out: &mut Matrix) {
        let views = self.views(p);
        out.reshape(input.folded.rows(), self.outputs);
        if self.transform_first {
            copy_scaled(compute, out, Store::Set, input.folded, 1.0, None);
        } else {
            times(compute, out, Store::Set, input.folded, views.weight);
        }
        times(compute, out, Store::Add, input.x, views.root);
        scale_and_shift(compute, out, None, Some(views.bias));
    }

    fn add_close_gradients(&self, At { compute, .. }: &mut At<'_>, g: &mut [f32], input: Closing<'_>, dz: &Matrix) {
        let gradients = self.views_mut(g);
        add_bias_gradient(compute, gradients.bias, dz);
        add_product_gradient(compute, gradients.root, input.x, dz);
        if !self.transform_first {
            add_product_gradient(compute, gradients.weight, input.folded, dz);
        }
    }

    fn close_adjoint(&self, At { compute, p, .. }: &mut At<'_>, dz: &mut Matrix, Wanted { dfolded, dx }: Wanted<'_>) {
        let views = self.views(p);
        if let Some(dx) = dx {
            dx.reshape(dz.rows(), self.inputs);
            times_weight_transposed(compute, dx, Store::Set, Rows::Dense(dz), views.root);
        }
        match dfolded {
            Some(dfolded) if self.transform_first => std::mem::swap(dfolded, dz),
            Some(dfolded) => {
                dfolded.reshape(dz.rows(), self.facts().fold_width);
                times_weight_transposed(compute, dfolded, Store::Set, Rows::Dense(dz), views.weight);
            }
            None => {}
        }
    }

    fn fold_adjoint(
        &self,
        At { compute, p, .. }: &mut At<'_>,
        g: &mut [f32],
        Sources { block, messages, .. }: Sources<'_>,
        dfolded: &Matrix,
        dmessages: &mut Matrix,
    ) {
        dmessages.reshape(block.sources(), self.facts.message_width);
        let (mix, gradient) = (self.mix(&self.views(p)), self.views_mut(g).mix);
        let (forward, reverse) = (Along::forward(block, mix), Along::reverse(block, mix));
        if self.transform_first {
            spread(compute, dmessages, Store::Set, reverse, dfolded);
        } else {
            gather(compute, dmessages, Store::Set, reverse, dfolded);
        }
        match (self.mixes, self.transform_first) {
            (true, true) => add_gather_gradient(compute, gradient, forward, messages, dfolded),
            (true, false) => add_spread_gradient(compute, gradient, forward, messages, dfolded),
            (false, _) => {}
        }
    }

    fn message_adjoint(
        &self,
        At { compute, p, state, .. }: &mut At<'_>,
        g: &mut [f32],
        Senders { x, .. }: Senders<'_>,
        dmessages: &mut Matrix,
        dx: Option<(&mut Matrix, Store)>,
    ) {
        if !self.transform_first {
            if let Some((dx, store)) = dx {
                dx.reshape(x.rows(), self.inputs);
                copy_scaled(compute, dx, store, Rows::Dense(dmessages), 1.0, None);
            }
            return;
        }
        let Memory { stacked, gradient } = state.own.get();
        let weight = self.views_mut(g).weight;
        gradient.clear();
        gradient.resize(weight.len(), 0.0);
        add_product_gradient(compute, gradient, x, dmessages);
        for (from, to) in self.places() {
            let run = weight[to..to + self.outputs].iter_mut().zip(&gradient[from..from + self.outputs]);
            run.for_each(|(sum, value)| *sum += value);
        }
        if let Some((dx, store)) = dx {
            self.stack(stacked, self.views(p).weight);
            dx.reshape(x.rows(), self.inputs);
            times_weight_transposed(compute, dx, store, Rows::Dense(dmessages), stacked);
        }
    }
}

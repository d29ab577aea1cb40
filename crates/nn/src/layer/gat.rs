//! Graph attention (Veličković et al., 2018, equations 1 to 6), as PyTorch Geometric's `GATConv`: per head
//! `z_v = Σ_u α_uv q_u`, `q = x Wᵀ`, `α = softmax over in-edges of LeakyReLU(a_src · q_u + a_dst · q_v)`, then heads
//! concatenated or averaged, plus a bias.
//!
//! Only q travels: a receiver computes the halves of the scores from it.

use super::{
    Absence, At, Closing, EdgeWeights, Ending, Facts, Layer, LayerKind, LayerSpec, NodeWeight, Product, Senders, Side,
    Sources, Wanted, python,
};
use crate::kernels::Store;
use crate::kernels::attention::{
    ScoreGradients, Scores, Softmax, Transformed, add_destination_gradient, add_score_gradient, add_vector_gradient,
    attention_adjoint, attention_close, attention_fold, score_halves, transformed_adjoint,
};
use crate::kernels::elementwise::{copy_shifted, fill, scale_and_shift};
use crate::kernels::heads::{average_heads, spread_heads};
use crate::kernels::product::{add_bias_gradient, add_weight_gradient, times_weight, times_weight_transposed};
use crate::matrix::{Matrix, Rows};
use crate::parameters::{Initial, ParameterSpec, split, split_mut};

pub(super) const KIND: LayerKind = LayerKind {
    name: "gat",
    prefix: "convs",
    self_loops: true,
    has_heads: true,
    is_relational: false,
    options: &["heads", "head_merge"],
    build,
};

struct Gat {
    inputs: usize,
    heads: usize,
    /// Columns of one head.
    width: usize,
    concatenate: bool,
    facts: Facts,
}

fn build(spec: &LayerSpec) -> Box<dyn Layer> {
    let width = if spec.concatenate { spec.outputs / spec.heads } else { spec.outputs };
    assert!(!spec.concatenate || width * spec.heads == spec.outputs, "concatenated heads fill the output exactly");
    let (inputs, heads, outputs) = (spec.inputs, spec.heads, spec.outputs);
    let columns = heads * width;
    let glorot = |fan_in, fan_out| Initial::Glorot { fan_in, fan_out };
    // PyTorch Geometric initialises attention vectors [1, heads, width] by their last two dimensions.
    let (vector, shape) = (glorot(heads, width), [1, heads, width]);
    let parameters = vec![
        ParameterSpec::new("lin.weight", &[columns, inputs], glorot(inputs, columns)),
        ParameterSpec::new("att_src", &shape, vector),
        ParameterSpec::new("att_dst", &shape, vector),
        ParameterSpec::new("bias", &[outputs], Initial::Zeros),
    ];
    // Both attention vectors read transformed rows.
    let of_vector = Product::of_inner(columns);
    let concat = python(spec.concatenate);
    let facts = Facts {
        products: vec![Product::of_inputs(inputs * columns), of_vector, of_vector],
        shift: Some("bias"),
        destination_weight: NodeWeight::InverseDegree,
        state_columns: if spec.concatenate { 0 } else { columns },
        state_values: [7 * heads, heads],
        scores: heads,
        reads_positions: true,
        absence: Absence::Weighed,
        edge_weights: EdgeWeights::Unread,
        takes_bf16: true,
        outputs_are_folds: spec.concatenate,
        pyg: format!("GATConv({inputs}, {width}, heads={heads}, concat={concat}, add_self_loops={{self_loops}})"),
        ..Facts::new(inputs, outputs, parameters)
    };
    let facts = facts.with_transformed_messages(columns);
    Box::new(Gat { inputs, heads, width, concatenate: spec.concatenate, facts })
}

/// What goes from fold to close and to their adjoints.
#[derive(Default)]
struct Memory {
    softmax: Softmax,
    /// a_src · q of the own block's sources and of the halo block's; sources × heads.
    source_scores: [Matrix; 2],
    /// The gradient of a_dst · q; destinations × heads.
    destination_gradient: Matrix,
    /// Whether folds were turned into output rows, with the bias.
    is_shifted: bool,
    /// Where heads are averaged: the gradient of each head's fold.
    spread: Matrix,
    score_gradients: ScoreGradients,
}

/// The layer's parameters or gradients, cut out of its flat slice.
struct Views<T> {
    weight: T,
    source: T,
    destination: T,
    bias: T,
}

impl<T> From<[T; 4]> for Views<T> {
    fn from([weight, source, destination, bias]: [T; 4]) -> Self {
        Views { weight, source, destination, bias }
    }
}

impl Gat {
    fn columns(&self) -> usize {
        self.heads * self.width
    }

    /// Lengths of the views.
    fn lens(&self) -> [usize; 4] {
        [self.inputs * self.columns(), self.columns(), self.columns(), self.facts.outputs]
    }

    fn views<'a>(&self, p: &'a [f32]) -> Views<&'a [f32]> {
        split(p, self.lens()).into()
    }

    fn views_mut<'a>(&self, g: &'a mut [f32]) -> Views<&'a mut [f32]> {
        split_mut(g, self.lens()).into()
    }
}

impl Layer for Gat {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn message(&self, At { compute, p, .. }: &mut At<'_>, x: Rows<'_>, out: &mut Matrix) {
        out.reshape(x.rows(), self.columns());
        times_weight_transposed(compute, out, Store::Set, x, self.views(p).weight);
    }

    fn fold(
        &self,
        At { compute, p, state, .. }: &mut At<'_>,
        Sources { side, block, messages, first }: Sources<'_>,
        folded: &mut Matrix,
    ) {
        let views = self.views(p);
        folded.reshape(block.destinations(), self.columns());
        let memory: &mut Memory = state.own.get();
        let source = &mut memory.source_scores[side as usize];
        if side == Side::Own {
            let rows = (messages, first..first + block.destinations());
            memory.softmax.reset(compute, source, rows, [views.source, views.destination], self.heads);
        } else {
            score_halves(compute, source, messages, views.source, self.heads);
        }
        let weight = if side == Side::Halo { state.presence.as_slice() } else { &[] };
        let scores = Scores { block, messages, source, weight };
        attention_fold(compute, folded, &mut memory.softmax, scores);
    }

    fn finish_fold(&self, At { compute, p, state, .. }: &mut At<'_>, folded: &mut Matrix, ending: Ending) {
        let Memory { softmax, is_shifted, .. } = state.own.get();
        *is_shifted = ending == Ending::Outputs;
        let bias = is_shifted.then(|| self.views(p).bias);
        attention_close(compute, folded, softmax, bias);
    }

    fn close(&self, At { compute, p, .. }: &mut At<'_>, input: Closing<'_>, out: &mut Matrix) {
        out.reshape(input.folded.rows(), self.facts.outputs);
        if self.concatenate {
            copy_shifted(compute, out, input.folded, self.views(p).bias);
        } else {
            let Rows::Dense(folded) = input.folded else { unreachable!("attention folds into dense rows") };
            average_heads(compute, out, folded, self.heads);
            scale_and_shift(compute, out, None, Some(self.views(p).bias));
        }
    }

    fn add_close_gradients(
        &self,
        At { compute, p, state, .. }: &mut At<'_>,
        g: &mut [f32],
        input: Closing<'_>,
        dz: &Matrix,
    ) {
        let bias = self.views_mut(g).bias;
        let Rows::Dense(folded) = input.folded else { unreachable!("attention folds into dense rows") };
        let Memory { softmax, spread, is_shifted, .. } = state.own.get();
        let closed = (folded, is_shifted.then_some(self.views(p).bias));
        if self.concatenate {
            softmax.take_up(compute, dz, closed, bias);
        } else {
            add_bias_gradient(compute, bias, dz);
            spread.store_as(dz.precision());
            spread.reshape(dz.rows(), self.columns());
            spread_heads(compute, spread, dz, self.heads);
            softmax.take_up(compute, spread, closed, &mut []);
        }
    }

    fn close_adjoint(&self, At { state, .. }: &mut At<'_>, dz: &mut Matrix, Wanted { dfolded, .. }: Wanted<'_>) {
        let dfolded =
            dfolded.expect("attention has parameters in its messages, so its fold's gradient is always wanted");
        let spread = &mut state.own.get::<Memory>().spread;
        std::mem::swap(dfolded, if self.concatenate { dz } else { spread });
    }

    fn fold_adjoint(
        &self,
        At { compute, p, state, .. }: &mut At<'_>,
        g: &mut [f32],
        Sources { side, block, messages, .. }: Sources<'_>,
        dfolded: &Matrix,
        dmessages: &mut Matrix,
    ) {
        let views = self.views(p);
        let memory: &mut Memory = state.own.get();
        if side == Side::Halo {
            memory.destination_gradient.reshape(block.destinations(), self.heads);
            fill(compute, &mut memory.destination_gradient, 0.0);
        }
        let source = &memory.source_scores[side as usize];
        let weight = if side == Side::Halo { state.presence.as_slice() } else { &[] };
        let scores = Scores { block, messages, source, weight };
        let gradients = &mut memory.score_gradients;
        attention_adjoint(compute, dmessages, gradients, scores, &memory.softmax, (dfolded, views.source));
        add_destination_gradient(compute, &mut memory.destination_gradient, gradients, block);
        add_vector_gradient(compute, self.views_mut(g).source, &gradients.source, messages);
    }

    fn message_adjoint(
        &self,
        At { compute, p, state, .. }: &mut At<'_>,
        g: &mut [f32],
        Senders { side, x, messages }: Senders<'_>,
        dmessages: &mut Matrix,
        dx: Option<(&mut Matrix, Store)>,
    ) {
        let views = self.views(p);
        if side == Side::Own {
            let halves = &state.own.get::<Memory>().destination_gradient;
            if let Some(x) = x.dense() {
                let of = Transformed { x, weight: views.weight, messages, destination: views.destination };
                let dx = dx.map(|(dx, store)| {
                    dx.reshape(x.rows(), self.inputs);
                    (dx, store)
                });
                let [weight, source, destination, _] = self.lens();
                let g = (&mut g[..weight + source + destination], weight + source);
                return transformed_adjoint(compute, g, of, halves, dmessages, dx);
            }
            let gradients = self.views_mut(g);
            add_vector_gradient(compute, gradients.destination, halves, messages);
            add_score_gradient(compute, dmessages, halves, views.destination);
        }
        let gradients = self.views_mut(g);
        add_weight_gradient(compute, gradients.weight, dmessages, x);
        if let Some((dx, store)) = dx {
            dx.reshape(x.rows(), self.inputs);
            times_weight(compute, dx, store, dmessages, views.weight);
        }
    }
}

//! Graph isomorphism network (Xu et al., 2019, equation 4.1), as PyTorch Geometric's `GINConv` with a two-layer
//! perceptron: `z = W_2 ReLU(W_0 ((1 + ε) x + Σ neighbours) + b_0) + b_2`.
//!
//! `W_0` is applied to own row and sum apart where one of them is sparse, else to the sum of both.

use super::{At, Closing, Facts, Layer, LayerKind, LayerSpec, Product, Senders, Sources, Wanted, python, store};
use crate::kernels::Store;
use crate::kernels::affine::{Left, add_affine_gradients, affine, times_weight_onto, times_weight_through_relu};
use crate::kernels::elementwise::{add_scaled, copy_scaled, relu_piece};
use crate::kernels::fold::{sum_fold, sum_fold_adjoint};
use crate::kernels::product::{add_weight_gradient, times_weight};
use crate::matrix::{Matrix, Rows};
use crate::parameters::{Initial, ParameterSpec, split};

pub(super) const KIND: LayerKind = LayerKind {
    name: "gin",
    prefix: "convs",
    self_loops: false,
    has_heads: false,
    is_relational: false,
    options: &["learn_epsilon"],
    build,
};

struct Gin {
    inputs: usize,
    inner: usize,
    outputs: usize,
    learn_epsilon: bool,
    facts: Facts,
}

fn build(spec: &LayerSpec) -> Box<dyn Layer> {
    let LayerSpec { inputs, inner, outputs, learn_epsilon, .. } = *spec;
    let (first, second) = (Initial::fan_in(inputs), Initial::fan_in(inner));
    let mut parameters = vec![
        ParameterSpec::new("nn.0.weight", &[inner, inputs], first),
        ParameterSpec::new("nn.0.bias", &[inner], first),
        ParameterSpec::new("nn.2.weight", &[outputs, inner], second),
        ParameterSpec::new("nn.2.bias", &[outputs], second),
    ];
    if learn_epsilon {
        parameters.push(ParameterSpec::new("eps", &[1], Initial::Zeros));
    }
    let perceptron = format!("Sequential(Linear({inputs}, {inner}), ReLU(), Linear({inner}, {outputs}))");
    let facts = Facts {
        products: vec![Product::of_inputs(inputs * inner), Product::of_inner(inner * outputs)],
        shift: Some("nn.2.bias"),
        is_linear: true,
        state_columns: inner,
        takes_bf16: true,
        reads_own_row: true,
        pyg: format!("GINConv({perceptron}, train_eps={})", python(learn_epsilon)),
        ..Facts::new(inputs, outputs, parameters)
    };
    Box::new(Gin { inputs, inner, outputs, learn_epsilon, facts })
}

/// What goes from close to its adjoint.
#[derive(Default)]
struct Memory {
    /// The perceptron's inner rows after ReLU; destinations × inner. In the backward pass the gradient of what went
    /// into it, then that of the fold, where the two are equally wide.
    hidden: Matrix,
    /// Whether the gradient of the fold is there already.
    is_through: bool,
}

/// The layer's parameters or gradients, cut out of its flat slice.
struct Views<T> {
    first: T,
    first_bias: T,
    second: T,
    second_bias: T,
    epsilon: T,
}

impl<T> From<[T; 5]> for Views<T> {
    fn from([first, first_bias, second, second_bias, epsilon]: [T; 5]) -> Self {
        Views { first, first_bias, second, second_bias, epsilon }
    }
}

impl Gin {
    /// Lengths of the views.
    fn lens(&self) -> [usize; 5] {
        [self.inputs * self.inner, self.inner, self.inner * self.outputs, self.outputs, usize::from(self.learn_epsilon)]
    }

    fn views<'a>(&self, p: &'a [f32]) -> Views<&'a [f32]> {
        split(p, self.lens()).into()
    }

    /// 1 + ε; ε is 0 unless it is learned.
    fn own_factor(&self, p: &[f32]) -> f32 {
        1.0 + self.views(p).epsilon.first().copied().unwrap_or(0.0)
    }
}

impl Layer for Gin {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn message(&self, At { compute, .. }: &mut At<'_>, x: Rows<'_>, out: &mut Matrix) {
        out.reshape(x.rows(), self.inputs);
        copy_scaled(compute, out, Store::Set, x, 1.0, None);
    }

    fn fold(
        &self,
        At { compute, .. }: &mut At<'_>,
        Sources { side, block, messages, .. }: Sources<'_>,
        folded: &mut Matrix,
    ) {
        folded.reshape(block.destinations(), self.inputs);
        sum_fold(compute, folded, store(side), block, messages);
    }

    fn close(&self, At { compute, p, state, .. }: &mut At<'_>, input: Closing<'_>, out: &mut Matrix) {
        let views = self.views(p);
        let hidden = &mut state.own.get::<Memory>().hidden;
        hidden.store_as(input.precision(out));
        hidden.reshape(input.x.rows(), self.inner);
        let factor = self.own_factor(p);
        let end = |_: usize, rows: &mut [f32]| relu_piece(rows);
        match Left::sum(input.folded, factor, input.x) {
            Some(sum) => affine(compute, hidden, &[(sum, views.first)], views.first_bias, end),
            None => {
                let scaled: Vec<f32> = views.first.iter().map(|value| factor * value).collect();
                let terms = [(Left::Rows(input.folded), views.first), (Left::Rows(input.x), &scaled[..])];
                affine(compute, hidden, &terms, views.first_bias, end);
            }
        }
        out.reshape(hidden.rows(), self.outputs);
        let terms = [(Left::Rows(Rows::Dense(hidden)), views.second)];
        affine(compute, out, &terms, views.second_bias, |_, _| {});
    }

    fn add_close_gradients(
        &self,
        At { compute, p, state, .. }: &mut At<'_>,
        g: &mut [f32],
        input: Closing<'_>,
        dz: &Matrix,
    ) {
        let (views, factor) = (self.views(p), self.own_factor(p));
        let [first, first_bias, second, second_bias, epsilon] = self.lens();
        let (inner, outer) = g.split_at_mut(first + first_bias);
        let Memory { hidden, is_through } = state.own.get();
        let terms = [(Left::Rows(Rows::Dense(hidden)), 0)];
        add_affine_gradients(compute, &mut outer[..second + second_bias], second, dz, &terms);
        times_weight_through_relu(compute, hidden, dz, views.second);
        match Left::sum(input.folded, factor, input.x) {
            Some(sum) => add_affine_gradients(compute, inner, first, hidden, &[(sum, 0)]),
            None => {
                add_affine_gradients(compute, inner, first, hidden, &[(Left::Rows(input.folded), 0)]);
                let mut own = vec![0.0; first];
                add_weight_gradient(compute, &mut own, hidden, input.x);
                add_scaled(compute, &mut inner[..first], factor, &own);
            }
        }
        *is_through = epsilon > 0 && self.inner == self.inputs;
        if epsilon > 0 {
            // ε's gradient is ⟨dpre W_0, x⟩, and the first of the two is the gradient of the fold.
            outer[second + second_bias] += times_weight_onto(compute, hidden, views.first, input.x, *is_through);
        }
    }

    /// From the gradient that the first half has left in place of the inner rows.
    fn close_adjoint(
        &self,
        At { compute, p, state, .. }: &mut At<'_>,
        _dz: &mut Matrix,
        Wanted { dfolded, dx }: Wanted<'_>,
    ) {
        let (views, factor) = (self.views(p), self.own_factor(p));
        let Memory { hidden, is_through } = state.own.get();
        let mut unwanted = Matrix::default();
        let dfolded = match (dfolded, &dx) {
            (Some(dfolded), _) => dfolded,
            (None, Some(_)) => &mut unwanted,
            (None, None) => return,
        };
        if *is_through {
            std::mem::swap(dfolded, hidden);
        } else {
            dfolded.reshape(hidden.rows(), self.inputs);
            times_weight(compute, dfolded, Store::Set, hidden, views.first);
        }
        if let Some(dx) = dx {
            dx.reshape(dfolded.rows(), self.inputs);
            copy_scaled(compute, dx, Store::Set, Rows::Dense(dfolded), factor, None);
        }
    }

    fn fold_adjoint(
        &self,
        At { compute, .. }: &mut At<'_>,
        _g: &mut [f32],
        Sources { block, .. }: Sources<'_>,
        dfolded: &Matrix,
        dmessages: &mut Matrix,
    ) {
        dmessages.reshape(block.sources(), self.inputs);
        sum_fold_adjoint(compute, dmessages, Store::Set, block, dfolded);
    }

    fn message_adjoint(
        &self,
        At { compute, .. }: &mut At<'_>,
        _g: &mut [f32],
        _senders: Senders<'_>,
        dmessages: &mut Matrix,
        dx: Option<(&mut Matrix, Store)>,
    ) {
        if let Some((dx, store)) = dx {
            dx.reshape(dmessages.rows(), self.inputs);
            copy_scaled(compute, dx, store, Rows::Dense(dmessages), 1.0, None);
        }
    }
}

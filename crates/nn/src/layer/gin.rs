//! Graph isomorphism network (Xu et al., 2019, equation 4.1), as PyTorch Geometric's `GINConv` with a two-layer
//! perceptron: `z = W_2 ReLU(W_0 ((1 + ε) x + Σ neighbours) + b_0) + b_2`.
//!
//! `W_0` is applied to own row and sum apart, so that each may be sparse.

use super::{At, Closing, Layer, LayerKind, LayerSpec, Product, Senders, Sources, Wanted, python, store};
use crate::kernels::Store;
use crate::kernels::elementwise::{add_scaled, copy_scaled, dot, relu, relu_adjoint, scale, scale_and_shift};
use crate::kernels::fold::{sum_fold, sum_fold_adjoint};
use crate::kernels::product::{add_bias_gradient, add_weight_gradient, times_weight, times_weight_transposed};
use crate::matrix::{Matrix, Rows};
use crate::parameters::{Initial, ParameterSpec, split, split_mut};

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
}

fn build(spec: &LayerSpec) -> Box<dyn Layer> {
    let LayerSpec { inputs, inner, outputs, learn_epsilon, .. } = *spec;
    Box::new(Gin { inputs, inner, outputs, learn_epsilon })
}

/// What goes from close to its adjoint, and buffers of the latter.
#[derive(Default)]
struct Memory {
    /// The perceptron's inner rows after ReLU; destinations × inner.
    hidden: Matrix,
    hidden_gradient: Matrix,
    /// The gradient of `W_0` through own rows alone.
    weight_gradient: Vec<f32>,
    /// The gradient of the fold, where only that of own rows is wanted.
    folded_gradient: Matrix,
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

    fn views_mut<'a>(&self, g: &'a mut [f32]) -> Views<&'a mut [f32]> {
        split_mut(g, self.lens()).into()
    }

    /// 1 + ε; ε is 0 unless it is learned.
    fn own_factor(&self, p: &[f32]) -> f32 {
        1.0 + self.views(p).epsilon.first().copied().unwrap_or(0.0)
    }
}

impl Layer for Gin {
    fn inputs(&self) -> usize {
        self.inputs
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn message_width(&self) -> usize {
        self.inputs
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        let (first, second) = (Initial::fan_in(self.inputs), Initial::fan_in(self.inner));
        let mut specs = vec![
            ParameterSpec::new("nn.0.weight", &[self.inner, self.inputs], first),
            ParameterSpec::new("nn.0.bias", &[self.inner], first),
            ParameterSpec::new("nn.2.weight", &[self.outputs, self.inner], second),
            ParameterSpec::new("nn.2.bias", &[self.outputs], second),
        ];
        if self.learn_epsilon {
            specs.push(ParameterSpec::new("eps", &[1], Initial::Zeros));
        }
        specs
    }

    fn products(&self) -> Vec<Product> {
        vec![Product::of_inputs(self.inputs * self.inner), Product::of_inner(self.inner * self.outputs)]
    }

    fn shift(&self) -> Option<&'static str> {
        Some("nn.2.bias")
    }

    fn message_has_parameters(&self) -> bool {
        false
    }

    fn state_values(&self, rows: usize, _edges: usize) -> usize {
        2 * rows * self.inner
    }

    fn reads_own_row(&self) -> bool {
        true
    }

    fn pyg_constructor(&self, _self_loops: bool) -> String {
        let (inputs, inner, outputs) = (self.inputs, self.inner, self.outputs);
        let perceptron = format!("Sequential(Linear({inputs}, {inner}), ReLU(), Linear({inner}, {outputs}))");
        format!("GINConv({perceptron}, train_eps={})", python(self.learn_epsilon))
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
        hidden.reshape(input.x.rows(), self.inner);
        times_weight_transposed(compute, hidden, Store::Set, input.x, views.first);
        let factor = self.own_factor(p);
        scale(compute, hidden, factor);
        times_weight_transposed(compute, hidden, Store::Add, input.folded, views.first);
        scale_and_shift(compute, hidden, None, Some(views.first_bias));
        relu(compute, hidden);
        out.reshape(hidden.rows(), self.outputs);
        times_weight_transposed(compute, out, Store::Set, Rows::Dense(hidden), views.second);
        scale_and_shift(compute, out, None, Some(views.second_bias));
    }

    fn add_close_gradients(
        &self,
        At { compute, p, state, .. }: &mut At<'_>,
        g: &mut [f32],
        input: Closing<'_>,
        dz: &Matrix,
    ) {
        let (views, factor) = (self.views(p), self.own_factor(p));
        let gradients = self.views_mut(g);
        let Memory { hidden, hidden_gradient: dpre, weight_gradient, .. } = state.own.get();
        add_bias_gradient(compute, gradients.second_bias, dz);
        add_weight_gradient(compute, gradients.second, dz, Rows::Dense(hidden));
        dpre.reshape(dz.rows(), self.inner);
        times_weight(compute, dpre, Store::Set, dz, views.second);
        relu_adjoint(compute, dpre, hidden);
        add_bias_gradient(compute, gradients.first_bias, dpre);
        add_weight_gradient(compute, gradients.first, dpre, input.folded);
        // The part through the own row, G = dpreᵀ x, also holds ε's gradient: ⟨dpre, x W_0ᵀ⟩ = ⟨G, W_0⟩.
        weight_gradient.clear();
        weight_gradient.resize(self.inputs * self.inner, 0.0);
        add_weight_gradient(compute, weight_gradient, dpre, input.x);
        add_scaled(compute, gradients.first, factor, weight_gradient);
        if let Some(epsilon) = gradients.epsilon.first_mut() {
            *epsilon += dot(weight_gradient, views.first);
        }
    }

    /// From what the first half has left of `dz`.
    fn close_adjoint(
        &self,
        At { compute, p, state, .. }: &mut At<'_>,
        _dz: &mut Matrix,
        Wanted { dfolded, dx }: Wanted<'_>,
    ) {
        if dfolded.is_none() && dx.is_none() {
            return;
        }
        let (views, factor) = (self.views(p), self.own_factor(p));
        let Memory { hidden_gradient: dpre, folded_gradient, .. } = state.own.get();
        let dfolded = dfolded.unwrap_or(folded_gradient);
        dfolded.reshape(dpre.rows(), self.inputs);
        times_weight(compute, dfolded, Store::Set, dpre, views.first);
        if let Some(dx) = dx {
            dx.reshape(dpre.rows(), self.inputs);
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

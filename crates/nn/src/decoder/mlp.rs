//! A perceptron on the Hadamard product of both embeddings: hidden layers of the embeddings' width, each followed by
//! PReLU with a slope of its own, then one score. Both directions of a pair have one score.

use super::{Decoder, DecoderKind, DecoderSpec, Decoding, Pairs};
use crate::kernels::Store;
use crate::kernels::elementwise::scale_and_shift;
use crate::kernels::pairs::{multiply, prelu, prelu_adjoint};
use crate::kernels::product::{add_bias_gradient, add_weight_gradient, times_weight, times_weight_transposed};
use crate::matrix::{Matrix, Rows};
use crate::parameters::{Initial, ParameterSpec, split, split_mut};

pub(super) const KIND: DecoderKind =
    DecoderKind { name: "mlp", options: &["decoder_layers"], is_relational: false, build };

/// PyTorch's first slope of a PReLU.
const SLOPE: f32 = 0.25;

struct Mlp {
    width: usize,
    layers: usize,
}

fn build(spec: &DecoderSpec) -> Box<dyn Decoder> {
    Box::new(Mlp { width: spec.width, layers: spec.layers })
}

/// What goes from a score to its adjoint, and buffers of the latter.
#[derive(Default)]
struct Memory {
    product: Matrix,
    /// Of each hidden layer the rows before and after PReLU.
    hidden: Vec<[Matrix; 2]>,
    gradients: [Matrix; 2],
}

impl Memory {
    /// The rows that layer `layer` reads.
    fn input(&self, layer: usize) -> &Matrix {
        layer.checked_sub(1).map_or(&self.product, |below| &self.hidden[below][1])
    }
}

impl Mlp {
    /// Lengths of weight, bias and slope of a hidden layer.
    fn lens(&self) -> [usize; 3] {
        [self.width * self.width, self.width, 1]
    }

    /// Where a hidden layer's values begin; those of the last layer, without slope, come after all of them.
    fn start(&self, layer: usize) -> usize {
        layer * self.lens().iter().sum::<usize>()
    }

    fn hidden<'a>(&self, p: &'a [f32], layer: usize) -> [&'a [f32]; 3] {
        split(&p[self.start(layer)..self.start(layer + 1)], self.lens())
    }

    fn hidden_mut<'a>(&self, g: &'a mut [f32], layer: usize) -> [&'a mut [f32]; 3] {
        split_mut(&mut g[self.start(layer)..self.start(layer + 1)], self.lens())
    }
}

impl Decoder for Mlp {
    fn width(&self) -> usize {
        self.width
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        let bound = Initial::fan_in(self.width);
        let mut specs = Vec::with_capacity(3 * self.layers + 2);
        for layer in 0..self.layers {
            let width = self.width;
            specs.push(ParameterSpec::new(&format!("lins.{layer}.weight"), &[width, width], bound));
            specs.push(ParameterSpec::new(&format!("lins.{layer}.bias"), &[width], bound));
            specs.push(ParameterSpec::new(&format!("acts.{layer}.weight"), &[1], Initial::Constant { value: SLOPE }));
        }
        let last = format!("lins.{}", self.layers);
        specs.push(ParameterSpec::new(&format!("{last}.weight"), &[1, self.width], bound));
        specs.push(ParameterSpec::new(&format!("{last}.bias"), &[1], bound));
        specs
    }

    fn held(&self) -> [usize; 2] {
        let scored = (1 + 2 * self.layers) * self.width;
        [scored, scored + 2 * self.width]
    }

    fn score(&self, Decoding { compute, p, memory }: &mut Decoding<'_>, pairs: Pairs<'_>, out: &mut Matrix) {
        let memory: &mut Memory = memory.get();
        memory.hidden.resize_with(self.layers, Default::default);
        multiply(compute, &mut memory.product, pairs.sources, pairs.destinations);
        for layer in 0..self.layers {
            let [weight, bias, slope] = self.hidden(p, layer);
            let [mut before, mut after] = std::mem::take(&mut memory.hidden[layer]);
            before.reshape(pairs.sources.rows(), self.width);
            times_weight_transposed(compute, &mut before, Store::Set, Rows::Dense(memory.input(layer)), weight);
            scale_and_shift(compute, &mut before, None, Some(bias));
            prelu(compute, &mut after, &before, slope[0]);
            memory.hidden[layer] = [before, after];
        }
        let [weight, bias] = split(&p[self.start(self.layers)..], [self.width, 1]);
        out.reshape(pairs.sources.rows(), 1);
        times_weight_transposed(compute, out, Store::Set, Rows::Dense(memory.input(self.layers)), weight);
        scale_and_shift(compute, out, None, Some(bias));
    }

    fn score_adjoint(
        &self,
        Decoding { compute, p, memory }: &mut Decoding<'_>,
        g: &mut [f32],
        pairs: Pairs<'_>,
        dscores: &Matrix,
        [dsources, ddestinations]: [&mut Matrix; 2],
    ) {
        let memory: &mut Memory = memory.get();
        let [mut gradient, mut below] = std::mem::take(&mut memory.gradients);
        let [dweight, dbias] = split_mut(&mut g[self.start(self.layers)..], [self.width, 1]);
        add_weight_gradient(compute, dweight, dscores, Rows::Dense(memory.input(self.layers)));
        add_bias_gradient(compute, dbias, dscores);
        gradient.reshape(dscores.rows(), self.width);
        times_weight(compute, &mut gradient, Store::Set, dscores, &p[self.start(self.layers)..][..self.width]);
        for layer in (0..self.layers).rev() {
            let [weight, _, slope] = self.hidden(p, layer);
            let [dweight, dbias, dslope] = self.hidden_mut(g, layer);
            prelu_adjoint(compute, &mut gradient, &memory.hidden[layer][0], slope[0], &mut dslope[0]);
            add_weight_gradient(compute, dweight, &gradient, Rows::Dense(memory.input(layer)));
            add_bias_gradient(compute, dbias, &gradient);
            below.reshape(gradient.rows(), self.width);
            times_weight(compute, &mut below, Store::Set, &gradient, weight);
            std::mem::swap(&mut gradient, &mut below);
        }
        multiply(compute, dsources, &gradient, pairs.destinations);
        multiply(compute, ddestinations, &gradient, pairs.sources);
        memory.gradients = [gradient, below];
    }
}

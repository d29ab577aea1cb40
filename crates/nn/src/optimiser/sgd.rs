//! Stochastic gradient descent with momentum and L2 penalty, as PyTorch's `SGD`.

use super::{Optimiser, OptimiserKind, OptimiserSpec};

pub(super) const KIND: OptimiserKind =
    OptimiserKind { name: "sgd", options: &["momentum"], build: |len, spec| Box::new(Sgd::new(len, spec)) };

pub(super) struct Sgd {
    steps: u64,
    velocity: Vec<f32>,
    spec: OptimiserSpec,
}

impl Sgd {
    pub fn new(len: usize, spec: OptimiserSpec) -> Self {
        Sgd { steps: 0, velocity: vec![0.0; len], spec }
    }
}

impl Optimiser for Sgd {
    fn step(&mut self, parameters: &mut [f32], gradients: &mut [f32], rate: f32) {
        self.steps += 1;
        for ((x, g), v) in parameters.iter_mut().zip(gradients).zip(&mut self.velocity) {
            *v = self.spec.momentum * *v + *g + self.spec.weight_decay * *x;
            *x -= rate * *v;
        }
    }

    fn state(&self) -> (u64, Vec<(&'static str, &[f32])>) {
        (self.steps, vec![("velocity", &self.velocity)])
    }

    fn restore(&mut self, steps: u64, slots: Vec<Vec<f32>>) {
        self.steps = steps;
        [self.velocity] = slots.try_into().expect("SGD keeps one velocity");
    }
}

//! Adam (Kingma and Ba, 2015, algorithm 1) with L2 penalty, and AdamW (Loshchilov and Hutter, 2019) with decoupled
//! decay; the operations in PyTorch's order, β = (0.9, 0.999).

use super::{Optimiser, OptimiserKind, OptimiserSpec};

pub(super) const KIND: OptimiserKind =
    OptimiserKind { name: "adam", options: &["epsilon"], build: |len, spec| Box::new(Adam::new(len, spec, false)) };

pub(super) const DECOUPLED: OptimiserKind =
    OptimiserKind { name: "adamw", options: &["epsilon"], build: |len, spec| Box::new(Adam::new(len, spec, true)) };

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;

pub(super) struct Adam {
    steps: u64,
    first: Vec<f32>,
    second: Vec<f32>,
    spec: OptimiserSpec,
    decoupled: bool,
}

impl Adam {
    pub fn new(len: usize, spec: OptimiserSpec, decoupled: bool) -> Self {
        Adam { steps: 0, first: vec![0.0; len], second: vec![0.0; len], spec, decoupled }
    }
}

impl Optimiser for Adam {
    fn step(&mut self, parameters: &mut [f32], gradients: &mut [f32], rate: f32) {
        let OptimiserSpec { weight_decay, epsilon, .. } = self.spec;
        self.steps += 1;
        let power = self.steps.min(1 << 24) as i32;
        let correction1 = 1.0 - f64::from(BETA1).powi(power);
        let correction2 = (1.0 - f64::from(BETA2).powi(power)).sqrt() as f32;
        let size = (f64::from(rate) / correction1) as f32;
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((x, g), (m, v)) in parameters.iter_mut().zip(gradients).zip(moments) {
            if self.decoupled {
                *x *= 1.0 - rate * weight_decay;
            } else {
                *g += weight_decay * *x;
            }
            *m = BETA1 * *m + (1.0 - BETA1) * *g;
            *v = BETA2 * *v + (1.0 - BETA2) * *g * *g;
            *x -= size * *m / (v.sqrt() / correction2 + epsilon);
        }
    }

    fn state(&self) -> (u64, Vec<(&'static str, &[f32])>) {
        (self.steps, vec![("first_moment", &self.first), ("second_moment", &self.second)])
    }

    fn restore(&mut self, steps: u64, slots: Vec<Vec<f32>>) {
        self.steps = steps;
        [self.first, self.second] = slots.try_into().expect("Adam keeps two moments");
    }
}

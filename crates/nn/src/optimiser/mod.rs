//! Optimisers over one flat slice of parameters, learning-rate schedules, gradient clipping.
//!
//! A new optimiser is one file with a `KIND` and one line in [`OPTIMISERS`].

mod adam;
mod rate;
mod sgd;

pub use rate::{Elapsed, RATES, RateKind, RateRegistry, RateSchedule, RateSpec};

use crate::kernels::measure::norm;
use crate::registry::{Kind, Registry};

/// An update rule with its state.
pub trait Optimiser: Send {
    /// One step with learning rate `rate`. `gradients` may be overwritten.
    fn step(&mut self, parameters: &mut [f32], gradients: &mut [f32], rate: f32);

    /// The state that a checkpoint keeps: the number of steps done and, per name, one value a parameter.
    fn state(&self) -> (u64, Vec<(&'static str, &[f32])>);

    /// Sets the state; the names and lengths are those of [`Optimiser::state`].
    ///
    /// # Panics
    ///
    /// If the slots are not as many as the optimiser keeps.
    fn restore(&mut self, steps: u64, slots: Vec<Vec<f32>>);
}

/// What optimisers can be told; each reads what it knows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptimiserSpec {
    /// L2 penalty (adam, sgd) or decoupled decay (adamw).
    pub weight_decay: f32,
    /// The share of the last step that the next one keeps (sgd).
    pub momentum: f32,
    /// What is added to the size of gradients that a step is divided by (adam, adamw).
    pub epsilon: f32,
}

/// A kind of optimiser: how it is called, which options it reads, how it is built.
#[derive(Debug)]
pub struct OptimiserKind {
    /// The name in configurations.
    pub name: &'static str,
    /// The keys of `[train]` that it reads besides the learning rate and the weight decay, which all do.
    pub options: &'static [&'static str],
    /// Builds one for so many parameters.
    pub build: fn(usize, OptimiserSpec) -> Box<dyn Optimiser>,
}

/// Every kind of optimiser that this crate has.
pub const OPTIMISERS: &[OptimiserKind] = &[adam::KIND, adam::DECOUPLED, sgd::KIND];

/// Kinds of optimisers by name.
pub type OptimiserRegistry = Registry<OptimiserKind>;

impl Kind for OptimiserKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ours() -> &'static [Self] {
        OPTIMISERS
    }
}

/// Scales `gradients` down so that their Euclidean norm is at most `norm_max`; returns the norm before.
pub fn clip(gradients: &mut [f32], norm_max: f32) -> f32 {
    let norm = norm(gradients) as f32;
    if norm > norm_max {
        let factor = norm_max / norm;
        gradients.iter_mut().for_each(|g| *g *= factor);
    }
    norm
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: OptimiserSpec = OptimiserSpec { weight_decay: 0.0, momentum: 0.0, epsilon: 1e-8 };

    fn build(name: &str, len: usize, spec: OptimiserSpec) -> Box<dyn Optimiser> {
        (OptimiserRegistry::default().get(name).expect("a known name").build)(len, spec)
    }

    /// Minimises Σ (x − target)² / 2.
    fn minimise(name: &str, spec: OptimiserSpec, rate: f32, steps: usize) -> Vec<f32> {
        let target = [1.0f32, -2.0, 0.5];
        let mut x = vec![0.0f32; 3];
        let mut optimiser = build(name, 3, spec);
        for _ in 0..steps {
            let mut g: Vec<f32> = x.iter().zip(&target).map(|(x, t)| x - t).collect();
            optimiser.step(&mut x, &mut g, rate);
        }
        x
    }

    #[test]
    fn every_optimiser_finds_the_minimum_of_a_bowl() {
        for name in OptimiserRegistry::default().names() {
            let x = minimise(name, OptimiserSpec { momentum: 0.5, ..NONE }, 0.05, 2000);
            for (x, t) in x.iter().zip([1.0, -2.0, 0.5]) {
                assert!((x - t).abs() < 1e-2, "{name}: {x} instead of {t}");
            }
        }
    }

    #[test]
    fn adam_takes_its_first_step_with_the_length_of_the_rate_and_follows_its_recurrence() {
        let x = minimise("adam", NONE, 0.1, 1);
        for (x, sign) in x.iter().zip([1.0f32, -1.0, 1.0]) {
            assert!((x - 0.1 * sign).abs() < 1e-6);
        }
        // Second step by hand for the first coordinate: gradients -1, then -0.9.
        let (m, v) = (0.9 * -0.1 + 0.1 * -0.9, 0.999 * 0.001 + 0.001 * 0.81);
        let step = 0.1 * (m / (1.0 - 0.81)) / ((v / (1.0 - 0.998_001f64)).sqrt() + 1e-8);
        let two = f64::from(minimise("adam", NONE, 0.1, 2)[0]);
        assert!((two - (0.1 - step)).abs() < 1e-6, "{two}");
    }

    #[test]
    fn a_gradient_far_below_epsilon_makes_a_step_in_proportion() {
        let spec = OptimiserSpec { epsilon: 1e-3, ..NONE };
        for gradient in [1e-9f32, -2e-7] {
            let mut x = vec![0.0f32];
            build("adam", 1, spec).step(&mut x, &mut [gradient], 0.1);
            let expected = -0.1 * gradient / (gradient.abs() + 1e-3);
            assert!((x[0] / expected - 1.0).abs() < 1e-5, "{} instead of {expected}", x[0]);
        }
    }

    #[test]
    fn decoupled_decay_shrinks_parameters_without_gradients_and_coupled_decay_enters_the_gradient() {
        let spec = OptimiserSpec { weight_decay: 0.1, ..NONE };
        let mut x = vec![2.0f32];
        build("adamw", 1, spec).step(&mut x, &mut [0.0], 0.5);
        assert!((x[0] - 2.0 * (1.0 - 0.05)).abs() < 1e-6);
        let mut x = vec![2.0f32];
        build("sgd", 1, spec).step(&mut x, &mut [1.0], 0.5);
        assert!((x[0] - (2.0 - 0.5 * 1.2)).abs() < 1e-6);
    }

    #[test]
    fn clipping_keeps_direction_and_bounds_length() {
        let mut g = [3.0, 4.0];
        assert_eq!(clip(&mut g, 1.0), 5.0);
        assert!((g[0] - 0.6).abs() < 1e-6 && (g[1] - 0.8).abs() < 1e-6);
        assert_eq!(clip(&mut g, 2.0), 1.0);
    }

    #[test]
    fn restored_state_continues_with_the_same_bits() {
        for name in OptimiserRegistry::default().names() {
            let spec = OptimiserSpec { weight_decay: 0.01, momentum: 0.9, ..NONE };
            let mut first = build(name, 2, spec);
            let (mut x, gradient) = (vec![1.0f32, -1.0], [0.3f32, 0.7]);
            first.step(&mut x, &mut gradient.clone(), 0.1);
            let (steps, slots) = first.state();
            let mut second = build(name, 2, spec);
            second.restore(steps, slots.into_iter().map(|(_, s)| s.to_vec()).collect());
            let mut y = x.clone();
            first.step(&mut x, &mut gradient.clone(), 0.1);
            second.step(&mut y, &mut gradient.clone(), 0.1);
            assert_eq!(x, y);
        }
    }
}

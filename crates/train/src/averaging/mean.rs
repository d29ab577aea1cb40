//! The mean of models.

use super::Model;
use crate::config::Weighting;

/// A trainer's part in a mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Contribution {
    /// The number of the trainer.
    pub trainer: usize,
    /// Its steps since the last mean that it took up.
    pub steps: u64,
    /// What its training rows count for.
    pub rows: f64,
    /// The mean loss of these steps.
    pub loss: f64,
    /// Its model as it was sent.
    pub model: Model,
}

/// A mean and who took part in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Mean {
    /// Its number, from 1.
    pub number: u32,
    /// Who took part, ascending, with the steps that each had taken since its last mean.
    pub members: Vec<(usize, u64)>,
    /// The mean of the losses of those who took steps, weighted as their models are; where nobody did, as before.
    pub loss: f64,
    /// The mean model itself.
    pub model: Model,
}

/// Σ wᵢ·modelᵢ / Σ wᵢ, added up in f64 in the trainers' order, so that its bits do not depend on who answered first,
/// and the mean of one model is that model. `before` is the loss of the mean before.
///
/// # Panics
///
/// If there is no model, or they differ in length.
pub fn mean(number: u32, mut contributions: Vec<Contribution>, weighting: Weighting, before: f64) -> Mean {
    contributions.sort_by_key(|of| of.trainer);
    let weight = |of: &Contribution| match weighting {
        Weighting::Uniform => 1.0,
        Weighting::Rows => of.rows,
        Weighting::Steps => of.steps as f64,
    };
    let mut weights: Vec<f64> = contributions.iter().map(weight).collect();
    if weights.iter().sum::<f64>() <= 0.0 {
        // Nobody has taken a step, or has rows: all stand where they stood.
        weights.fill(1.0);
    }
    let total: f64 = weights.iter().sum();
    let mut sums = vec![0.0f64; contributions[0].model.len()];
    // Who has taken no step has no loss to tell.
    let (mut loss, mut told) = (0.0, 0.0);
    for (of, weight) in contributions.iter().zip(&weights) {
        assert_eq!(of.model.len(), sums.len(), "models of one network");
        sums.iter_mut().zip(of.model.iter()).for_each(|(sum, value)| *sum += weight * f64::from(*value));
        if of.steps > 0 {
            (loss, told) = (loss + weight * of.loss, told + weight);
        }
    }
    Mean {
        number,
        members: contributions.iter().map(|of| (of.trainer, of.steps)).collect(),
        loss: if told > 0.0 { loss / told } else { before },
        model: sums.into_iter().map(|sum| (sum / total) as f32).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(trainer: usize, steps: u64, rows: f64, model: &[f32]) -> Contribution {
        Contribution { trainer, steps, rows, loss: 2.0 * (1.0 + trainer as f64), model: model.into() }
    }

    #[test]
    fn a_mean_is_the_weighted_arithmetic_mean_in_whatever_order_models_come() {
        let all = || vec![of(2, 6, 1.0, &[7.0, 0.0]), of(0, 2, 3.0, &[1.0, 3.0]), of(1, 0, 0.0, &[4.0, 9.0])];
        let uniform = mean(4, all(), Weighting::Uniform, 0.5);
        assert_eq!(
            (&uniform.model[..], uniform.loss, uniform.number),
            (&[4.0, 4.0][..], 4.0, 4),
            "of the losses 2 and 6 of those that took steps"
        );
        assert_eq!(uniform.members, [(0, 2), (1, 0), (2, 6)]);
        assert_eq!(mean(4, all(), Weighting::Rows, 0.5).model[..], [2.5, 2.25]);
        assert_eq!(mean(4, all(), Weighting::Steps, 0.5).model[..], [5.5, 0.75]);
        let idle = vec![of(0, 0, 0.0, &[1.0]), of(1, 0, 0.0, &[3.0])];
        assert_eq!(mean(1, idle, Weighting::Steps, 0.5).model[..], [2.0]);
    }

    #[test]
    fn the_mean_of_one_model_and_of_equal_ones_is_the_model_itself() {
        let odd = [0.1f32, -3.7e-20, 1.0e20, f32::MIN_POSITIVE];
        for (count, weighting) in [(1, Weighting::Rows), (3, Weighting::Uniform), (5, Weighting::Uniform)] {
            let all = (0..count).map(|trainer| of(trainer, 3, 0.3, &odd)).collect();
            assert_eq!(mean(1, all, weighting, 0.5).model[..], odd);
        }
    }
}

//! PowerSGD (Vogels, Karimireddy and Jaggi, 2019): gradients of matrices are added up over workers as two factors,
//! along directions that all workers share, so that sums of factors are factors of the sum.

use laconic_key::{Key, Purpose};

use super::{Agreement, SummedGradients, Turn, makes};
use crate::error::Result;
use crate::fit::progress::Progress;
use crate::plan::power_sgd::{Factored, factored, sums};
use crate::plan::{AgreementKind, Cadence, Plan};
use crate::saved::{Name, OwnMemory, Saved, odd};
use crate::schedule::Stage;
use crate::worker::Worker;

pub(super) const KIND: AgreementKind = AgreementKind {
    name: "power_sgd",
    suits: Cadence::factors,
    sums: |plan, network| sums(&factored(plan, network)).to_vec(),
    keeps: |plan, network| {
        let [first, second] = sums(&factored(plan, network));
        network.trained() + first + 2 * second
    },
    remembers: Some(OwnMemory { key: "train.power_sgd", what: "what factors have left over of its gradients" }),
    build: || makes(|plan, stage| Box::new(PowerSgd::of(plan, stage))),
};

/// For each matrix M_w of a worker's gradient and what was left over of those before: with Q of the round before,
/// orthonormal, P = Σ M_w Q over workers is made orthonormal, Q = Σ M_wᵀ P, and the sum of gradients is P Qᵀ. A worker
/// keeps what its own share of that lacks, M_w − P (M_wᵀ P)ᵀ.
///
/// The paper has means where this has sums, since here a worker's loss is divided by all workers' rows: with gradients
/// W times as large, its P is the same, and its mean of Q is this sum. The authors' program keeps M_w less the mean of
/// P Qᵀ. Over workers that adds up to W times what these errors do, for gradients W times as large, and all that
/// crosses is a sum, so both go the same way; but how a worker's gradients differ from the mean adds up in it from
/// round to round. That Q is made orthonormal changes no direction of P, since columns are combined with those before
/// them, and keeps numbers in their range.
///
/// What goes as it is has no Q, stands in the first sum, and leaves nothing over. One worker alone has all gradients as
/// they are.
struct PowerSgd {
    all: Vec<Factored>,
    /// What columns of Q are drawn by: the first ones, and later ones where a gradient had no direction for them.
    key: Key,
    /// What factors have left over of own gradients; empty before the first round.
    errors: Vec<f32>,
    /// The sums of the second factors in the round before, the same on all workers: the first sum's directions.
    across: Vec<f32>,
    /// The first factors, and what goes as it is.
    down: Vec<f32>,
    /// The own second factors.
    own: Vec<f32>,
    /// A factor that is being worked out.
    factor: Vec<f64>,
}

/// The names under which they are saved.
const ERRORS: &str = "power_sgd.errors";
const ACROSS: &str = "power_sgd.across";

/// A column of which no larger share is its own has no direction but that of rounding.
const LEAST: f64 = 1e-6;

impl PowerSgd {
    fn of(plan: &Plan, stage: &Stage) -> PowerSgd {
        let key = Key::new(plan.config.train.seed, Purpose::Directions).with(stage.first_layer.into());
        let (errors, across, down, own, factor) = Default::default();
        PowerSgd { all: factored(plan, &stage.network), key, errors, across, down, own, factor }
    }

    /// Makes the gradient the sum over workers.
    fn sum(&mut self, turn: &mut Turn<'_>) -> Result<()> {
        let [first, second] = sums(&self.all);
        self.errors.resize(turn.gradient.len(), 0.0);
        self.across.resize(second, 0.0);
        self.down.resize(first, 0.0);
        turn.gradient.iter_mut().zip(&self.errors).for_each(|(value, error)| *value += error);
        self.multiply(turn.gradient);
        turn.reduction.sum(turn.worker, turn.round, &mut self.down, turn.extras)?;
        self.multiply_back(turn.gradient);
        self.own.clone_from(&self.across);
        turn.reduction.further(turn.worker, turn.round, 1, &mut self.across)?;
        self.put_together(turn.gradient);
        Ok(())
    }

    /// The own first factors, M Q, and what goes as it is.
    fn multiply(&mut self, gradient: &[f32]) {
        let PowerSgd { all, key, across, down, factor, .. } = self;
        for (number, one) in all.iter().enumerate() {
            let (values, into) = (&gradient[one.values.clone()], &mut down[one.first.clone()]);
            if one.rank == 0 {
                into.copy_from_slice(values);
                continue;
            }
            factor.clear();
            factor.extend(across[one.second.clone()].iter().copied().map(f64::from));
            let key = key.with(number as u64);
            orthonormalise(factor, one.rank, |place| key.with(place as u64).normal());
            let mut sums = vec![0.0; one.rank];
            for (row, into) in values.chunks_exact(one.columns).zip(into.chunks_exact_mut(one.rank)) {
                sums.fill(0.0);
                for (&value, factor) in row.iter().zip(factor.chunks_exact(one.rank)) {
                    sums.iter_mut().zip(factor).for_each(|(sum, factor)| *sum += f64::from(value) * factor);
                }
                into.iter_mut().zip(&sums).for_each(|(into, sum)| *into = *sum as f32);
            }
        }
    }

    /// Makes the sums of first factors orthonormal; the own second factors, Mᵀ P.
    fn multiply_back(&mut self, gradient: &[f32]) {
        let PowerSgd { all, across, down, factor, .. } = self;
        for one in all.iter().filter(|one| one.rank > 0) {
            let down = &mut down[one.first.clone()];
            factor.clear();
            factor.extend(down.iter().copied().map(f64::from));
            orthonormalise(factor, one.rank, |_| 0.0);
            down.iter_mut().zip(&*factor).for_each(|(into, value)| *into = *value as f32);
            factor.clear();
            factor.resize(one.second.len(), 0.0);
            let rows = gradient[one.values.clone()].chunks_exact(one.columns);
            for (row, down) in rows.zip(down.chunks_exact(one.rank)) {
                for (&value, sums) in row.iter().zip(factor.chunks_exact_mut(one.rank)) {
                    sums.iter_mut().zip(down).for_each(|(sum, down)| *sum += f64::from(value) * f64::from(*down));
                }
            }
            across[one.second.clone()].iter_mut().zip(&*factor).for_each(|(into, sum)| *into = *sum as f32);
        }
    }

    /// Puts P Qᵀ in the place of gradients, and what the own share lacks into the errors.
    fn put_together(&mut self, gradient: &mut [f32]) {
        for one in &self.all {
            let (values, down) = (&mut gradient[one.values.clone()], &self.down[one.first.clone()]);
            if one.rank == 0 {
                values.copy_from_slice(down);
                continue;
            }
            let [all, own] = [&self.across, &self.own].map(|factor| &factor[one.second.clone()]);
            let rows =
                values.chunks_exact_mut(one.columns).zip(self.errors[one.values.clone()].chunks_mut(one.columns));
            for ((values, errors), down) in rows.zip(down.chunks_exact(one.rank)) {
                let factors = all.chunks_exact(one.rank).zip(own.chunks_exact(one.rank));
                for ((value, error), (all, own)) in values.iter_mut().zip(errors).zip(factors) {
                    *error = (f64::from(*value) - product(down, own)) as f32;
                    *value = product(down, all) as f32;
                }
            }
        }
    }
}

fn product(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
}

/// Makes columns orthonormal, first to last. One with nothing of its own begins anew, and becomes 0 where that has
/// nothing either.
fn orthonormalise(values: &mut [f64], rank: usize, anew: impl Fn(usize) -> f64) {
    for column in 0..rank {
        if !stands_alone(values, rank, column) {
            values.iter_mut().enumerate().skip(column).step_by(rank).for_each(|(at, value)| *value = anew(at));
            stands_alone(values, rank, column);
        }
    }
}

/// Takes from a column what it has of those before it, twice, since once leaves what rounding makes of nearly parallel
/// ones, and makes it 1 long: Gram-Schmidt. False, and all of it 0, where next to nothing is left. What is no number
/// stays none, so that the loss says so.
fn stands_alone(values: &mut [f64], rank: usize, column: usize) -> bool {
    let along =
        |values: &[f64], other: usize| values.chunks_exact(rank).map(|row| row[other] * row[column]).sum::<f64>();
    let length = along(values, column).sqrt();
    for other in (0..column).chain(0..column) {
        let part = along(values, other);
        values.chunks_exact_mut(rank).for_each(|row| row[column] -= part * row[other]);
    }
    let left = along(values, column).sqrt();
    let is_nothing = length.is_finite() && left <= LEAST * length;
    let factor = if is_nothing { 0.0 } else { 1.0 / left };
    values.chunks_exact_mut(rank).for_each(|row| row[column] *= factor);
    !is_nothing
}

impl Agreement for PowerSgd {
    fn rows(&self, worker: &Worker, own: f64) -> f64 {
        SummedGradients.rows(worker, own)
    }

    fn before_step(&mut self, turn: &mut Turn<'_>) -> Result<()> {
        match turn.worker.size() {
            1 => turn.reduction.sum(turn.worker, turn.round, turn.gradient, turn.extras)?,
            _ => self.sum(turn)?,
        }
        SummedGradients.settle(turn);
        Ok(())
    }

    fn save(&self, _: &Progress, saved: &mut Saved) {
        if !self.errors.is_empty() {
            saved.put(Name::one(ERRORS), &self.errors);
            saved.put(Name::one(ACROSS), &self.across);
        }
    }

    fn restore(&mut self, _: &mut Progress, saved: &mut Saved) -> Result<()> {
        let [_, second] = sums(&self.all);
        let trained = self.all.last().map_or(0, |last| last.values.end);
        for (name, into, len) in [(ERRORS, &mut self.errors, trained), (ACROSS, &mut self.across, second)] {
            *into = saved.take(&Name::one(name))?.unwrap_or_default();
            if !into.is_empty() && into.len() != len {
                return Err(odd(&Name::one(name), "values of another model"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix of so many columns.
    fn numbers(seed: u64, count: usize) -> Vec<f64> {
        let key = Key::new(seed, Purpose::Test);
        (0..count as u64).map(|at| key.with(at).normal()).collect()
    }

    fn products(values: &[f64], rank: usize) -> Vec<f64> {
        let of = |one: usize, other: usize| values.chunks_exact(rank).map(|row| row[one] * row[other]).sum();
        (0..rank * rank).map(|at| of(at / rank, at % rank)).collect()
    }

    fn is_near(found: &[f64], expected: impl Fn(usize) -> f64) -> bool {
        found.iter().enumerate().all(|(at, value)| (value - expected(at)).abs() < 1e-12)
    }

    #[test]
    fn columns_become_orthonormal_however_unlike_their_sizes_and_the_first_keeps_its_direction() {
        let (rank, mut values) = (5, numbers(1, 40 * 5));
        for (at, value) in values.iter_mut().enumerate() {
            *value *= [1e-18, 1e12, 1.0, 1e-3, 1e30][at % rank];
        }
        let first: Vec<f64> = values.iter().step_by(rank).copied().collect();
        orthonormalise(&mut values, rank, |_| panic!("no column begins anew"));
        assert!(is_near(&products(&values, rank), |at| f64::from(at % (rank + 1) == 0)));
        let length = first.iter().map(|value| value * value).sum::<f64>().sqrt();
        let now: Vec<f64> = values.iter().step_by(rank).copied().collect();
        assert!(is_near(&now, |at| first[at] / length));
    }

    #[test]
    fn a_column_with_nothing_of_its_own_begins_anew_or_becomes_nothing() {
        let (rank, fresh) = (3, numbers(2, 30));
        // The second column is twice the first, but for what single precision leaves of it; the third is nothing.
        let one = numbers(3, 10);
        let two = |at: usize| f64::from((2.0 * one[at]) as f32);
        let values: Vec<f64> = (0..30).map(|at| [one[at / 3], two(at / 3), 0.0][at % 3]).collect();
        let (mut anew, mut none) = (values.clone(), values);
        orthonormalise(&mut anew, rank, |at| fresh[at]);
        assert!(is_near(&products(&anew, rank), |at| f64::from(at % 4 == 0)));
        orthonormalise(&mut none, rank, |_| 0.0);
        assert!(is_near(&products(&none, rank), |at| f64::from(at == 0)));
        assert!(none.chunks_exact(rank).all(|row| row[1..] == [0.0, 0.0]));
    }

    #[test]
    fn what_is_no_number_stays_none() {
        for odd in [f64::NAN, f64::INFINITY] {
            let mut values = numbers(4, 12);
            values[2] = odd;
            orthonormalise(&mut values, 2, |_| 0.0);
            assert!(values.iter().any(|value| value.is_nan()), "{values:?}");
        }
    }
}

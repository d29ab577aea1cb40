//! Whether two methods differ over the same seeds: the permutation test of paired differences.
//!
//! If both were the same, each difference could as well have had the other sign. So all signs are tried, and p is the
//! share of them whose sum lies at least as far from zero as the one that was found. Nothing is assumed of how figures
//! are distributed.

use laconic_key::{Key, Purpose};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pairs up to which all signs are tried; of more, as many are drawn.
const EXACT_MAX: usize = 20;

/// What a method's runs say against the baseline's with the same seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// Runs of both with the same seeds.
    pub pairs: usize,
    /// The mean over them of this method's figure less the baseline's.
    pub difference: f64,
    /// The probability of so large a mean, either way, if the two were alike.
    pub p: f64,
    /// The least that p could be with so many pairs.
    pub p_least: f64,
}

impl Against {
    /// What these differences say; `None` without any.
    pub fn of(differences: &[f64]) -> Option<Against> {
        let pairs = differences.len();
        if pairs == 0 {
            return None;
        }
        let sum: f64 = differences.iter().sum();
        let trials = 1u32 << pairs.min(EXACT_MAX);
        let p = if pairs <= EXACT_MAX { exact(differences, sum) } else { drawn(differences, sum) };
        let p_least = (2.0 / f64::from(trials)).min(1.0);
        Some(Against { pairs, difference: sum / pairs as f64, p, p_least })
    }

    /// Whether there are too few pairs for any difference to show at the level of 5 %.
    pub fn is_too_small(&self) -> bool {
        self.p_least > 0.05
    }
}

/// Sums in another order differ in the last bits; that is no difference.
fn as_far(sum: f64, found: f64, size: f64) -> bool {
    sum.abs() >= found.abs() - 1e-9 * size
}

fn size(differences: &[f64]) -> f64 {
    differences.iter().map(|d| d.abs()).sum()
}

fn exact(differences: &[f64], found: f64) -> f64 {
    let size = size(differences);
    // One sign changes from each pattern to the next, as in a Gray code.
    let (mut signs, mut sum, mut count) = (vec![1.0; differences.len()], found, 0u64);
    let all = 1u64 << differences.len();
    for pattern in 0..all {
        count += u64::from(as_far(sum, found, size));
        let flip = (pattern + 1).trailing_zeros() as usize;
        if let (Some(sign), Some(difference)) = (signs.get_mut(flip), differences.get(flip)) {
            sum -= 2.0 * *sign * difference;
            *sign = -*sign;
        }
    }
    count as f64 / all as f64
}

/// Signs that are drawn, always the same ones; the pattern that was found counts as one of them.
fn drawn(differences: &[f64], found: f64) -> f64 {
    let (size, trials) = (size(differences), 1u32 << EXACT_MAX);
    let (key, mut count) = (Key::new(0, Purpose::Signs), 1u32);
    for trial in 1..trials {
        let key = key.with(u64::from(trial));
        let signed = |(place, difference): (usize, &f64)| match key.with(place as u64).below(2) {
            0 => *difference,
            _ => -difference,
        };
        let sum = differences.iter().enumerate().map(signed).sum();
        count += u32::from(as_far(sum, found, size));
    }
    f64::from(count) / f64::from(trials)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: every choice of signs, summed anew.
    fn plain(differences: &[f64]) -> f64 {
        let sum = |signs: u32| -> f64 {
            let signed = |(i, d): (usize, &f64)| if signs >> i & 1 == 1 { -d } else { *d };
            differences.iter().enumerate().map(signed).sum()
        };
        let all = 1u32 << differences.len();
        let far = (0..all).filter(|&signs| sum(signs).abs() >= sum(0).abs() - 1e-12).count();
        far as f64 / f64::from(all)
    }

    #[test]
    fn p_is_the_share_of_signs_with_so_large_a_sum() {
        // All one way: only the signs as found and their opposites are as far.
        assert_eq!(Against::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).map(|a| a.p), Some(2.0 / 64.0));
        // Sums of 3 are in two of the four, of which both ways count: |±1 ± 2|.
        assert_eq!(Against::of(&[1.0, -2.0]).map(|a| (a.p, a.difference)), Some((1.0, -0.5)));
        assert_eq!(Against::of(&[0.0; 4]).map(|a| a.p), Some(1.0));
        assert_eq!(Against::of(&[]), None);
        let mut state = 7u64;
        for case in 0..200 {
            let differences: Vec<f64> = (0..1 + case % 9)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    // Few values, so that ties are common.
                    ((state >> 33) % 7) as f64 / 10.0 - 0.3
                })
                .collect();
            assert_eq!(Against::of(&differences).map(|a| a.p), Some(plain(&differences)), "{differences:?}");
        }
    }

    #[test]
    fn many_pairs_are_drawn_near_the_exact_share() {
        // 21 equal differences: the sum is as far as k and 21 − k of them turned; the tail of a binomial.
        let mut differences = [1.0; 21];
        differences[..6].fill(-1.0);
        let choose = |k: u64| (0..k).fold(1u64, |product, i| product * (21 - i) / (i + 1)) as f64;
        let tail = 2.0 * (0..=6).map(choose).sum::<f64>() / 2f64.powi(21);
        let found = Against::of(&differences).expect("pairs").p;
        assert!((found - tail).abs() < 0.002, "{found} for {tail}");
    }

    #[test]
    fn five_pairs_can_show_nothing_and_six_can() {
        let [five, six] = [5, 6].map(|pairs| Against::of(&vec![1.0; pairs]).expect("pairs"));
        assert!(five.is_too_small() && !six.is_too_small());
        assert_eq!((five.p, five.p_least), (0.0625, 0.0625));
    }
}

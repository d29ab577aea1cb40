//! Binary cross-entropies of many logits at once, with their slopes.

use super::dispatch::per_processor;
use super::exponential::{LANES, exp, in_lanes};

/// ln(1 + t) for t between 0 and 1, to three units in the last place: 1 + t or half of it is 1 + x with |x| ≤ √2 − 1,
/// and its logarithm a polynomial of x (Cephes' coefficients). Branch-free, so that it vectorises, and without the
/// system's mathematics library, so that every machine gets the same bits.
#[inline(always)]
fn ln_1p(t: f32) -> f32 {
    let halved = t > std::f32::consts::SQRT_2 - 1.0;
    let x = if halved { (t - 1.0) * 0.5 } else { t };
    let mut p = 7.037_683_6e-2;
    p = p * x - 1.151_461e-1;
    p = p * x + 1.167_699_9e-1;
    p = p * x - 1.242_014_1e-1;
    p = p * x + 1.424_932_3e-1;
    p = p * x - 1.666_805_8e-1;
    p = p * x + 2.000_071_5e-1;
    p = p * x - 2.499_999_4e-1;
    p = p * x + 3.333_333e-1;
    let squared = x * x;
    let of_one_x = x + (p * x * squared - 0.5 * squared);
    if halved { of_one_x + std::f32::consts::LN_2 } else { of_one_x }
}

/// The costs of up to sixteen logits, and their slopes.
#[inline(always)]
fn run(logits: &[f32; LANES], truths: &[u8; LANES], weights: &[f32; LANES]) -> [[f32; LANES]; 2] {
    let [mut costs, mut slopes] = [[0.0; LANES]; 2];
    for lane in 0..LANES {
        // What is there costs ln(1 + e^−l), what is not there ln(1 + e^l).
        let is_there = truths[lane] == 1;
        let against = if is_there { -logits[lane] } else { logits[lane] };
        let weight = if is_there { weights[lane] } else { 1.0 };
        // What is smaller makes no difference but for slopes that processors are slow to multiply.
        let power = if against.abs() > 64.0 { 0.0 } else { exp(-against.abs()) };
        let cost = weight * (if against > 0.0 { against } else { 0.0 } + ln_1p(power));
        let steepness = weight * if against > 0.0 { 1.0 } else { power } / (1.0 + power);
        let slope = if is_there { -steepness } else { steepness };
        let is_known = truths[lane] <= 1;
        costs[lane] = if is_known { cost } else { 0.0 };
        slopes[lane] = if is_known { slope } else { 0.0 };
    }
    [costs, slopes]
}

per_processor! {
    /// Sets `sum` to the sum of the logits' binary cross-entropies, and `slopes` to the derivatives of these. Truths
    /// are 0 or 1; whatever else stands there is unknown, costs nothing and has no slope. `weights` is what each that
    /// is there counts for, or one number for all.
    ///
    /// # Panics
    ///
    /// If there are not as many slopes, logits and truths, or neither one weight nor as many.
    pub(crate) fn cross_entropies(
        slopes: &mut [f32], sum: &mut f64, logits: &[f32], truths: &[u8], weights: &[f32],
    ) {
        assert!(slopes.len() == logits.len() && truths.len() == logits.len(), "a slope and a truth for each logit");
        assert!(weights.len() == 1 || weights.len() == logits.len(), "a weight for each, or one for all");
        let mut sums = [0.0f64; LANES];
        for (piece, slopes) in slopes.chunks_mut(LANES).enumerate() {
            let here = piece * LANES..piece * LANES + slopes.len();
            let weights = if weights.len() == 1 { [weights[0]; LANES] } else { in_lanes(&weights[here.clone()], 1.0) };
            // What is behind the last is unknown.
            let (logits, truths) = (in_lanes(&logits[here.clone()], 0.0), in_lanes(&truths[here], u8::MAX));
            let [costs, all] = run(&logits, &truths, &weights);
            slopes.copy_from_slice(&all[..slopes.len()]);
            sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += f64::from(cost));
        }
        *sum = sums.iter().sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_accurate_to_a_few_units_in_the_last_place() {
        for i in 0..=200_000 {
            let t = i as f32 / 200_000.0;
            let (ours, exact) = (f64::from(ln_1p(t)), f64::from(t).ln_1p());
            assert!((ours - exact).abs() <= 3e-7 * exact, "ln(1 + {t}) = {ours}, not {exact}");
        }
        for t in [1e-38, 1e-20, 1e-7, 3e-5] {
            assert!((ln_1p(t) / t - 1.0).abs() < 3e-5, "{t}");
        }
    }

    #[test]
    fn costs_and_slopes_are_by_the_definition_whatever_the_number_of_logits() {
        for count in 0..70 {
            let logits: Vec<f32> = (0..count).map(|i| ((i * 37 % 61) as f32 - 30.0) * 1.3).collect();
            let truths: Vec<u8> = (0..count).map(|i| [0, 1, 1, 0, 255, 1, 7][i % 7]).collect();
            let weights: Vec<f32> = (0..count).map(|i| 0.25 + (i % 5) as f32).collect();
            for weights in [&weights[..], &[2.5], &[1.0]] {
                let (mut slopes, mut sum) = (vec![f32::NAN; count], f64::NAN);
                if weights.is_empty() {
                    continue;
                }
                cross_entropies(&mut slopes, &mut sum, &logits, &truths, weights);
                let mut expected = 0.0;
                for i in 0..count {
                    let (l, weight) = (f64::from(logits[i]), f64::from(*weights.get(i).unwrap_or(&weights[0])));
                    let (cost, slope) = match truths[i] {
                        0 => (l.max(0.0) + (-l.abs()).exp().ln_1p(), 1.0 / (1.0 + (-l).exp())),
                        1 => (weight * ((-l).max(0.0) + (-l.abs()).exp().ln_1p()), -weight / (1.0 + l.exp())),
                        _ => (0.0, 0.0),
                    };
                    expected += cost;
                    let found = f64::from(slopes[i]);
                    assert!((found - slope).abs() <= 1e-6 * slope.abs(), "{i} of {count}: {found} and {slope}");
                }
                assert!((sum - expected).abs() <= 1e-6 * expected, "{count} logits: {sum} and {expected}");
            }
        }
    }

    #[test]
    fn what_is_no_number_makes_the_sum_none_where_it_is_known() {
        for (truth, is_known) in [(0, true), (1, true), (255, false)] {
            for at in [0, 15, 17] {
                let (mut logits, mut slopes, mut sum) = ([0.5f32; 18], [0.0; 18], 0.0);
                logits[at] = f32::NAN;
                cross_entropies(&mut slopes, &mut sum, &logits, &[truth; 18], &[1.0]);
                assert_eq!((sum.is_nan(), slopes[at].is_nan()), (is_known, is_known), "{truth} at {at}");
            }
        }
        let (mut slopes, mut sum) = ([0.0; 2], 0.0);
        cross_entropies(&mut slopes, &mut sum, &[f32::INFINITY, f32::NEG_INFINITY], &[1, 0], &[1.0]);
        assert_eq!((sum, slopes.map(f32::abs)), (0.0, [0.0; 2]));
        cross_entropies(&mut slopes, &mut sum, &[f32::INFINITY, f32::NEG_INFINITY], &[0, 1], &[1.0]);
        assert_eq!((sum, slopes), (f64::INFINITY, [1.0, -1.0]));
    }
}

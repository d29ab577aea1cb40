//! e^x for many values at once: the powers of a softmax.

use super::dispatch::per_processor;

/// Values that are computed side by side.
pub(super) const LANES: usize = 16;

/// e^x to two units in the last place, between −87 and 87 and as of these beyond: reduction to |r| ≤ ln 2 / 2 and a
/// polynomial of degree 6 (Cephes' coefficients). Branch-free, so that it vectorises, and without the system's
/// mathematics library, so that every machine gets the same bits. Adding 1.5 · 2²³ rounds to a whole number, which then
/// stands in the lowest bits.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const WHOLE: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 87.0);
    let shifted = x * std::f32::consts::LOG2_E + WHOLE;
    let n = shifted - WHOLE;
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 5.000_000_3e-1;
    let value = p * r * r + r + 1.0;
    value * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

/// A few values in lanes, and something else where there are none.
#[inline(always)]
pub(super) fn in_lanes<T: Copy>(values: &[T], missing: T) -> [T; LANES] {
    let mut lanes = [missing; LANES];
    lanes[..values.len()].copy_from_slice(values);
    lanes
}

#[inline(always)]
fn raise(most: &mut [f32; LANES], values: &[f32; LANES]) {
    for (most, value) in most.iter_mut().zip(values) {
        *most = if *value > *most { *value } else { *most };
    }
}

#[inline(always)]
fn powers(values: &[f32; LANES], largest: f32) -> [f32; LANES] {
    let mut powers = *values;
    powers.iter_mut().for_each(|power| *power = exp(*power - largest));
    powers
}

per_processor! {
    /// Sets `out` to e^(value − largest) for each value, `sum` to what that adds up to, and `largest` to the largest
    /// value. What is no number makes the sum none, too.
    ///
    /// # Panics
    ///
    /// If there are not as many values in both.
    pub(crate) fn exponentials(out: &mut [f32], sum: &mut f64, largest: &mut f32, values: &[f32]) {
        assert_eq!(out.len(), values.len(), "a power of each value");
        let (whole, rest) = values.as_chunks::<LANES>();
        let mut most = [f32::NEG_INFINITY; LANES];
        raise(&mut most, &in_lanes(rest, f32::NEG_INFINITY));
        whole.iter().for_each(|values| raise(&mut most, values));
        *largest = most.into_iter().fold(f32::NEG_INFINITY, f32::max);
        let (to_whole, to_rest) = out.as_chunks_mut::<LANES>();
        let of_rest = powers(&in_lanes(rest, *largest), *largest);
        to_rest.copy_from_slice(&of_rest[..rest.len()]);
        let mut sums = in_lanes(to_rest, 0.0);
        for (out, values) in to_whole.iter_mut().zip(whole) {
            *out = powers(values, *largest);
            sums.iter_mut().zip(&*out).for_each(|(sum, power)| *sum += power);
        }
        *sum = sums.iter().map(|&sum| f64::from(sum)).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_is_accurate_to_a_few_units_in_the_last_place() {
        for i in -100_000..100_000 {
            let x = 87.0 * i as f32 / 100_000.0;
            let (ours, exact) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((ours - exact).abs() <= 3e-7 * exact, "exp({x}) = {ours}, not {exact}");
        }
    }

    #[test]
    fn powers_and_their_sum_agree_with_plain_ones_whatever_the_width() {
        for width in 1..70 {
            let values: Vec<f32> = (0..width).map(|i| ((i * 37 % 29) as f32 - 14.0) * 0.7).collect();
            let (mut out, mut sum, mut largest) = (vec![0.0; width], 0.0, 0.0);
            exponentials(&mut out, &mut sum, &mut largest, &values);
            assert_eq!(largest, values.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            let exact: Vec<f64> = values.iter().map(|v| (f64::from(*v) - f64::from(largest)).exp()).collect();
            for (power, exact) in out.iter().zip(&exact) {
                assert!((f64::from(*power) - exact).abs() <= 1e-6 * exact, "{power} and {exact}");
            }
            let exact: f64 = exact.iter().sum();
            assert!((sum - exact).abs() <= 1e-6 * exact, "{width} values: {sum} and {exact}");
        }
    }

    #[test]
    fn what_is_no_number_makes_the_sum_none() {
        for at in [0, 15, 17] {
            let mut values = [0.5f32; 18];
            values[at] = f32::NAN;
            let (mut sum, mut largest) = (0.0, 0.0);
            exponentials(&mut [0.0; 18], &mut sum, &mut largest, &values);
            assert!(sum.is_nan(), "{at}");
        }
    }
}

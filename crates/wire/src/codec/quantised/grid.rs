//! The four bytes in front of a row's codes: the grid of points that the codes count along.

/// Zero point and step as they travel: bfloat16, two bytes each, little-endian, zero point first.
///
/// The format has no infinities: its highest exponent is one more power of two, because the lowest point at or below
/// f32's minimum is -2¹²⁸ and a step of one bit may be as wide as the whole range of f32. A step is never negative, so
/// its sign marks [rows of one value](constant).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Grid {
    fields: [u16; 2],
    zero: f64,
    step: f64,
}

/// The bit of the step's field that says that the row is one value over and over.
const CONSTANT: u16 = 0x8000;

/// How wide a step must be for its inverse, times 2¹⁶, to be an f32.
const STEP_MIN: f64 = 1.0 / (1u128 << 110) as f64;

impl Grid {
    /// The finest grid of `levels + 1` points that reaches from `min`, or less, to `max`, or more; `min < max`.
    ///
    /// Only at the very end of f32's range, if `min` lies below -3.389e38, `max` above 3.389e38 and there is only one
    /// level, the top point may fall short of `max`, by 2⁻⁸ of a step.
    #[inline(always)]
    pub fn covering(min: f32, max: f32, levels: u32) -> Grid {
        // Down is towards zero for positive numbers and away from it for negative ones.
        let bits = min.to_bits();
        let zero = if min < 0.0 { (bits + 0xffff) >> 16 } else { bits >> 16 } as u16;
        Grid::of([zero, round_up((f64::from(max) - widen(zero)) / f64::from(levels))])
    }

    /// The grid whose zero point and step are nearest to these; a step is at least 0.
    pub fn nearest(zero: f64, step: f64) -> Grid {
        Grid::of([nearest(zero), nearest(step.max(0.0))])
    }

    #[inline(always)]
    fn of(fields: [u16; 2]) -> Grid {
        let [zero, step] = fields.map(widen);
        Grid { fields, zero, step }
    }

    /// The lowest point.
    pub fn zero(self) -> f64 {
        self.zero
    }

    /// The distance between points.
    pub fn step(self) -> f64 {
        self.step
    }

    /// Whether every point is a finite f32, so that they may be computed in f32.
    #[inline(always)]
    pub fn is_finite(self, levels: u32) -> bool {
        self.zero.abs() + f64::from(levels) * self.step <= f64::from(f32::MAX)
    }

    /// Whether values may be found on the grid in f32 as well: neither differences nor the step's inverse overflow.
    #[inline(always)]
    pub fn is_ordinary(self, levels: u32) -> bool {
        self.is_finite(levels) && self.step >= STEP_MIN
    }

    /// As it travels.
    #[inline(always)]
    pub fn to_bytes(self) -> [u8; 4] {
        field_bytes(self.fields)
    }

    /// The grid that these bytes, or the value that they and the lowest bit of the byte `behind` stand for.
    #[inline(always)]
    pub fn from_bytes(bytes: [u8; 4], behind: u8) -> Result<Grid, f32> {
        let [zero, step] = [[bytes[0], bytes[1]], [bytes[2], bytes[3]]].map(u16::from_le_bytes);
        if step & CONSTANT == 0 {
            return Ok(Grid::of([zero, step]));
        }
        Err(f32::from_bits(u32::from(zero) << 16 | u32::from(step & !CONSTANT) << 1 | u32::from(behind & 1)))
    }
}

/// The four bytes and the byte behind them of a row of one value, bit for bit: the upper half in the zero point's
/// place, the next fifteen bits behind the step's sign, and the last as the first code's lowest bit.
pub(super) fn constant(value: f32) -> ([u8; 4], u8) {
    let bits = value.to_bits();
    let step = CONSTANT | (bits >> 1) as u16 & !CONSTANT;
    (field_bytes([(bits >> 16) as u16, step]), (bits & 1) as u8)
}

#[inline(always)]
fn field_bytes([zero, step]: [u16; 2]) -> [u8; 4] {
    (u32::from(zero) | u32::from(step) << 16).to_le_bytes()
}

/// The number that a field stands for.
#[inline(always)]
fn widen(field: u16) -> f64 {
    // Two exponents less are a quarter, and keep the highest away from infinity.
    let quarter = |field: u16| f64::from(f32::from_bits(u32::from(field - (2 << 7)) << 16)) * 4.0;
    let magnitude = field & !CONSTANT;
    let value =
        if magnitude >= 0x7f80 { quarter(magnitude) } else { f64::from(f32::from_bits(u32::from(magnitude) << 16)) };
    if field & CONSTANT == 0 { value } else { -value }
}

/// The least field that stands for a number of at least `value`, which is positive; the largest field if there is none.
#[inline(always)]
fn round_up(value: f64) -> u16 {
    let (scaled, exponents) = if value > 1e38 { (value / 4.0, 2 << 7) } else { (value, 0) };
    let nearest = scaled as f32;
    let above = if f64::from(nearest) < scaled { nearest.next_up() } else { nearest };
    (((above.to_bits() + 0xffff) >> 16) + exponents).min(0x7fff) as u16
}

/// The field that stands for the number nearest to `value`, none of the highest exponent.
fn nearest(value: f64) -> u16 {
    let bits = (value as f32).to_bits();
    let magnitude = (((bits & 0x7fff_ffff) + 0x8000) >> 16).min(0x7f7f);
    (magnitude | bits >> 16 & u32::from(CONSTANT)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_covers_its_row_and_is_at_most_two_parts_in_128_wider_than_needed() {
        let ends = [
            -f32::MAX,
            -3.39e38,
            -1e30,
            -1.0,
            -1e-30,
            -1e-44,
            0.0,
            1e-44,
            1e-38,
            0.1,
            1.0,
            1000.0,
            1001.0,
            3.4e38,
            f32::MAX,
        ];
        for levels in [1, 3, 15, 255, 65535] {
            for (i, &min) in ends.iter().enumerate() {
                for &max in &ends[i + 1..] {
                    let grid = Grid::covering(min, max, levels);
                    assert!(grid.zero() <= f64::from(min), "{min:e} {max:e}");
                    let needed = (f64::from(max) - grid.zero()) / f64::from(levels);
                    let short = if levels == 1 && min < -3.38e38 && max > 3.38e38 { 1.0 / 256.0 } else { 1e-15 };
                    assert!(grid.step() >= needed * (1.0 - short), "{min:e} {max:e}: {:e} < {needed:e}", grid.step());
                    assert!(grid.step() <= needed * (1.0 + 1.0 / 128.0) + 1e-40, "{min:e} {max:e}: {:e}", grid.step());
                    assert_eq!(Grid::from_bytes(grid.to_bytes(), 0xff), Ok(grid));
                }
            }
        }
    }

    #[test]
    fn the_nearest_grid_is_within_half_a_bfloat16_of_what_was_asked_for() {
        for value in [1e-30, 0.1, 1.0, 255.9, 3e38] {
            for zero in [value, -value] {
                let grid = Grid::nearest(zero, value);
                assert!((grid.zero() - zero).abs() <= value / 256.0 && (grid.step() - value).abs() <= value / 256.0);
            }
        }
        assert_eq!(Grid::nearest(0.0, -1.0), Grid::nearest(0.0, 0.0));
    }

    #[test]
    fn a_zero_point_of_zero_stays_zero() {
        for max in [1e-44, 1.0, f32::MAX] {
            assert_eq!(Grid::covering(0.0, max, 255).zero(), 0.0);
        }
    }

    #[test]
    fn every_constant_survives_bit_for_bit() {
        for i in 0..=0xffffu32 {
            let bits = i.wrapping_mul(0x0001_0003) ^ i << 20;
            let (bytes, behind) = constant(f32::from_bits(bits));
            assert_eq!(Grid::from_bytes(bytes, behind).map_err(f32::to_bits), Err(bits));
        }
    }
}

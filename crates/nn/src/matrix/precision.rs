//! How dense rows are stored: as `f32`, or as bfloat16 in half the memory. What is computed of them is `f32` either
//! way.

/// How a matrix stores its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Precision {
    /// As `f32`, four bytes each.
    #[default]
    F32,
    /// As [`Bf16`], two bytes each.
    Bf16,
}

impl Precision {
    /// Each of them once.
    pub const ALL: [Precision; 2] = [Precision::F32, Precision::Bf16];

    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
        }
    }

    /// Bytes of a value.
    pub fn bytes(self) -> usize {
        match self {
            Precision::F32 => size_of::<f32>(),
            Precision::Bf16 => size_of::<Bf16>(),
        }
    }
}

/// A bfloat16: the upper half of an `f32`, with its eight exponent bits and seven bits of fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Bf16(u16);

impl Bf16 {
    /// The nearest to a value, of two equally near ones the even one. What is no number stays none.
    #[inline(always)]
    pub fn round(value: f32) -> Bf16 {
        let bits = value.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
        let nearest = if value.is_nan() { bits | 1 << 22 } else { rounded };
        Bf16((nearest >> 16) as u16)
    }

    /// The same value, which every `f32` can be.
    #[inline(always)]
    pub fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    /// Its bits: a sign, eight of exponent, seven of fraction.
    #[inline(always)]
    pub fn bits(self) -> u16 {
        self.0
    }

    /// What has these bits.
    #[inline(always)]
    pub fn of_bits(bits: u16) -> Bf16 {
        Bf16(bits)
    }
}

/// A value as it may be stored.
pub trait Value: Copy + Default + Send + Sync + 'static {
    /// It as `f32`.
    fn get(self) -> f32;

    /// The nearest that can be stored.
    fn of(value: f32) -> Self;

    /// The nearest bfloat16.
    #[inline(always)]
    fn rounded(self) -> Bf16 {
        Bf16::round(self.get())
    }

    /// Values that are stored as `f32`, as these; `None` for others.
    fn plain(stored: &[Self]) -> Option<&[f32]> {
        let _ = stored;
        None
    }

    /// Values that are stored as [`Bf16`], as these; `None` for others.
    fn short(stored: &[Self]) -> Option<&[Bf16]> {
        let _ = stored;
        None
    }

    /// Values as they are stored.
    fn values(stored: &[Self]) -> Values<&[f32], &[Bf16]>;

    /// [`Value::plain`] for changing.
    fn plain_mut(stored: &mut [Self]) -> Option<&mut [f32]> {
        let _ = stored;
        None
    }
}

impl Value for f32 {
    #[inline(always)]
    fn get(self) -> f32 {
        self
    }

    #[inline(always)]
    fn of(value: f32) -> f32 {
        value
    }

    fn plain(stored: &[f32]) -> Option<&[f32]> {
        Some(stored)
    }

    fn values(stored: &[f32]) -> Values<&[f32], &[Bf16]> {
        Values::F32(stored)
    }

    fn plain_mut(stored: &mut [f32]) -> Option<&mut [f32]> {
        Some(stored)
    }
}

impl Value for Bf16 {
    #[inline(always)]
    fn get(self) -> f32 {
        self.widen()
    }

    #[inline(always)]
    fn of(value: f32) -> Bf16 {
        Bf16::round(value)
    }

    #[inline(always)]
    fn rounded(self) -> Bf16 {
        self
    }

    fn short(stored: &[Bf16]) -> Option<&[Bf16]> {
        Some(stored)
    }

    fn values(stored: &[Bf16]) -> Values<&[f32], &[Bf16]> {
        Values::Bf16(stored)
    }
}

/// Values by how they are stored: vectors, slices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values<F, B> {
    /// As `f32`.
    F32(F),
    /// As [`Bf16`].
    Bf16(B),
}

/// Does the same with values of either kind.
macro_rules! each_value {
    ($values:expr, |$name:pat_param| $body:expr) => {
        match $values {
            $crate::matrix::Values::F32($name) => $body,
            $crate::matrix::Values::Bf16($name) => $body,
        }
    };
}
pub(crate) use each_value;

#[cfg(test)]
mod tests {
    use super::*;

    /// Against rounding by arithmetic: of the two neighbours whose lower halves are zero, the nearer one, and of two
    /// equally near ones the one with an even last bit.
    #[test]
    fn rounding_takes_the_nearest_and_of_two_the_even_one() {
        let mut bits = 0x1234_5678u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            for value in [f32::from_bits(bits), f32::from_bits(bits & 0xffff_8000), f32::from_bits(bits & 0xffff_c000)]
            {
                if !value.is_finite() {
                    continue;
                }
                let below = f32::from_bits(value.to_bits() & 0xffff_0000);
                let above = f32::from_bits((value.to_bits() & 0xffff_0000).wrapping_add(0x1_0000));
                let distance = |to: f32| (f64::from(value) - f64::from(to)).abs();
                let is_odd = below.to_bits() >> 16 & 1 == 1;
                let up = distance(above) < distance(below) || (distance(above) == distance(below) && is_odd);
                let nearest = if up && above.is_finite() { above } else { below };
                // Beyond the largest finite value stands infinity, in the place of the next one.
                let rounded = Bf16::round(value).widen();
                assert!(rounded == nearest || (rounded.is_infinite() && !above.is_finite()), "{value}: {rounded}");
            }
        }
    }

    #[test]
    fn what_is_no_number_stays_none_and_what_fits_stays_the_same() {
        for bits in [0x7f80_0001u32, 0xffff_ffff, 0x7fc0_0000, 0xff80_0001] {
            assert!(Bf16::round(f32::from_bits(bits)).widen().is_nan(), "{bits:x}");
        }
        for upper in (0..=u16::MAX).filter(|upper| upper & 0x7fff <= 0x7f80) {
            let value = f32::from_bits(u32::from(upper) << 16);
            assert_eq!(Bf16::round(value).bits(), upper, "{value}");
        }
    }
}

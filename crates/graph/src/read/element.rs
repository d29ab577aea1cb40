//! What values of arrays are read as.

use crate::exact::Wide;

/// A type that arrays can be read as, from whatever number type the file has, as long as no value is changed by it
/// (floating-point values may be rounded to `f32`).
pub trait Element: Copy {
    /// What error messages call the values.
    const NAME: &'static str;
    /// The element equal to an integer.
    fn from_integer(value: i64) -> Option<Self>;
    /// The element equal to an integer that may be beyond those with a sign.
    fn from_unsigned(value: u64) -> Option<Self> {
        i64::try_from(value).ok().and_then(Self::from_integer)
    }
    /// The element equal to a floating-point number.
    fn from_float(value: f64) -> Option<Self>;
}

/// Integers of this type; a floating-point number will do if it is whole.
macro_rules! integer_element {
    ($type:ty, $name:literal) => {
        impl Element for $type {
            const NAME: &'static str = $name;
            fn from_integer(value: i64) -> Option<Self> {
                <$type>::try_from(value).ok()
            }
            fn from_float(value: f64) -> Option<Self> {
                // Beyond 2^53 a floating-point number does not say which integer is meant.
                (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0)
                    .then_some(value as i64)
                    .and_then(Self::from_integer)
            }
        }
    };
}

integer_element!(i64, "an integer of 64 bits");
integer_element!(i32, "an integer of 32 bits");
integer_element!(u32, "an id in 0..4294967296");
integer_element!(u16, "an integer in 0..65536");
integer_element!(u8, "an integer in 0..256");

impl Element for f32 {
    const NAME: &'static str = "a number";
    fn from_integer(value: i64) -> Option<Self> {
        Some(value as f32)
    }
    fn from_unsigned(value: u64) -> Option<Self> {
        Some(value as f32)
    }
    fn from_float(value: f64) -> Option<Self> {
        Some(value as f32)
    }
}

impl Element for f64 {
    const NAME: &'static str = "a number";
    fn from_integer(value: i64) -> Option<Self> {
        Some(value as f64)
    }
    fn from_unsigned(value: u64) -> Option<Self> {
        Some(value as f64)
    }
    fn from_float(value: f64) -> Option<Self> {
        Some(value)
    }
}

impl Element for Wide {
    const NAME: &'static str = "a number";
    fn from_integer(value: i64) -> Option<Self> {
        Some(Wide::integer(value.into()))
    }
    fn from_unsigned(value: u64) -> Option<Self> {
        Some(Wide::integer(value.into()))
    }
    fn from_float(value: f64) -> Option<Self> {
        Some(value.into())
    }
}

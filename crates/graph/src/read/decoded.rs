//! The bytes of an array as values of the type that is wanted.

use super::element::Element;
use crate::memory::afford;
use crate::npy::{Header, Kind};
use std::io::{self, Read};

/// An array in C order (the last dimension runs fastest), whatever order the file has.
#[derive(Debug, Clone, PartialEq)]
pub struct Array<T> {
    /// The dimensions; none for a scalar.
    pub shape: Vec<usize>,
    /// The values in C order.
    pub values: Vec<T>,
}

/// Reads the values, which are no more than the file can hold.
pub(super) fn decode<T: Element>(from: &mut impl Read, header: &Header) -> io::Result<Array<T>> {
    let count = header.values().unwrap_or(u64::MAX) as usize;
    let copies = if header.fortran && header.shape.len() > 1 { 2 } else { 1 };
    let out_of_memory = |what| io::Error::new(io::ErrorKind::OutOfMemory, what);
    afford((count as u64).saturating_mul(copies * size_of::<T>() as u64)).map_err(out_of_memory)?;
    let mut values: Vec<T> = Vec::new();
    values.try_reserve_exact(count).map_err(|error| out_of_memory(error.to_string()))?;
    let mut chunk = vec![0u8; 1 << 16];
    let mut left = count.saturating_mul(header.item_bytes);
    while left > 0 {
        let size = left.min(chunk.len());
        from.read_exact(&mut chunk[..size])?;
        decode_chunk(&mut values, &chunk[..size], header)?;
        left -= size;
    }
    let shape: Vec<usize> = header.shape.iter().map(|&d| d as usize).collect();
    if header.fortran && shape.len() > 1 {
        values = c_order(&values, &shape);
    }
    Ok(Array { shape, values })
}

/// Calls `each` with some values after the other.
pub(super) fn decode_each<T: Element>(
    from: &mut impl Read,
    header: &Header,
    each: &mut dyn FnMut(&[T]),
) -> io::Result<()> {
    let mut left = (header.values().unwrap_or(u64::MAX) as usize).saturating_mul(header.item_bytes);
    let (mut chunk, mut values) = (vec![0u8; 1 << 16], Vec::new());
    while left > 0 {
        let size = left.min(chunk.len());
        from.read_exact(&mut chunk[..size])?;
        values.clear();
        decode_chunk(&mut values, &chunk[..size], header)?;
        each(&values);
        left -= size;
    }
    Ok(())
}

pub(crate) fn decode_chunk<T: Element>(values: &mut Vec<T>, chunk: &[u8], header: &Header) -> io::Result<()> {
    macro_rules! items {
        ($type:ty, $convert:expr) => {
            for item in chunk.chunks_exact(size_of::<$type>()) {
                let mut item: [u8; size_of::<$type>()] = item.try_into().expect("chunks have exactly this size");
                if header.big_endian {
                    item.reverse();
                }
                let value = <$type>::from_le_bytes(item);
                match $convert(value) {
                    Some(element) => values.push(element),
                    None => return Err(bad_value(value, values.len(), T::NAME)),
                }
            }
        };
    }
    match (header.kind, header.item_bytes) {
        (Kind::Bool | Kind::Uint, 1) => items!(u8, |v| T::from_integer(i64::from(v))),
        (Kind::Uint, 2) => items!(u16, |v| T::from_integer(i64::from(v))),
        (Kind::Uint, 4) => items!(u32, |v| T::from_integer(i64::from(v))),
        (Kind::Uint, 8) => items!(u64, T::from_unsigned),
        (Kind::Int, 1) => items!(i8, |v| T::from_integer(i64::from(v))),
        (Kind::Int, 2) => items!(i16, |v| T::from_integer(i64::from(v))),
        (Kind::Int, 4) => items!(i32, |v| T::from_integer(i64::from(v))),
        (Kind::Int, 8) => items!(i64, T::from_integer),
        (Kind::Float, 2) => items!(u16, |v| T::from_float(half(v))),
        (Kind::Bfloat, 2) => items!(u16, |v| T::from_float(f64::from(f32::from_bits(u32::from(v) << 16)))),
        (Kind::Float, 4) => items!(f32, |v| T::from_float(f64::from(v))),
        (Kind::Float, 8) => items!(f64, T::from_float),
        _ => {
            let message = format!("items of type '{}' cannot be read as numbers", header.descr);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
    }
    Ok(())
}

/// A number of IEEE 754's 16 bits.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

fn bad_value(value: impl std::fmt::Display, place: usize, expected: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("value {place} is {value}, expected {expected}"))
}

/// Fortran order to C order, any number of dimensions.
pub(super) fn c_order<T: Copy>(values: &[T], shape: &[usize]) -> Vec<T> {
    let mut strides = vec![1usize; shape.len()];
    for d in 1..shape.len() {
        strides[d] = strides[d - 1] * shape[d - 1];
    }
    let mut at = vec![0usize; shape.len()];
    let mut place = 0;
    let mut ordered = Vec::with_capacity(values.len());
    for _ in 0..values.len() {
        ordered.push(values[place]);
        for d in (0..shape.len()).rev() {
            at[d] += 1;
            place += strides[d];
            if at[d] < shape[d] {
                break;
            }
            place -= strides[d] * shape[d];
            at[d] = 0;
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::c_order;

    #[test]
    fn fortran_order_becomes_c_order() {
        // Column-major 2×3×2 of 0..12 by position.
        let shape = [2usize, 3, 2];
        let ordered = c_order(&(0..12).collect::<Vec<i32>>(), &shape);
        let expected: Vec<i32> =
            (0..2).flat_map(|i| (0..3).flat_map(move |j| (0..2).map(move |k| i + 2 * j + 6 * k))).collect();
        assert_eq!(ordered, expected);
    }
}

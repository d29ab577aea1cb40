//! Values of an array's own, in memory that begins a line of the cache.

use std::mem::take;

use crate::{Element, huge_pages};

/// The bytes of a line of the cache, which is what moves between memory and the processor.
const LINE: usize = 64;

/// Arrays of so many bytes begin a line: rows of many nodes, not what comes and goes.
const LARGE: usize = 64 << 10;

/// A vector whose values begin behind some others that nobody reads.
///
/// A row of 256 values of four bytes that begins a line lies in 16 lines. The C library begins large arrays 16 bytes
/// behind a page, which makes 17 of the 16, and every vector of 64 bytes then crosses from one line into the next.
///
/// The memory is a plain vector's with a line more, so that zeros come from the system as they are and untouched:
/// whoever writes a page first makes the system clear it, so that all threads do that, where this one alone would hold
/// them up. Memory that is asked for with the alignment of a line is cleared by the standard library instead, and both
/// of its ends are cut off: a piece that was given back would then be too small for the next of its size.
pub(crate) struct Owned<T> {
    values: Vec<T>,
    /// Where the values begin.
    start: usize,
    /// By how many values the memory is larger than was asked for.
    padding: usize,
}

impl<T> Owned<T> {
    #[inline]
    pub(crate) fn values(&self) -> &[T] {
        &self.values[self.start..]
    }

    #[inline]
    pub(crate) fn values_mut(&mut self) -> &mut [T] {
        &mut self.values[self.start..]
    }

    pub(crate) fn capacity(&self) -> usize {
        self.values.capacity() - self.padding
    }
}

impl<T: Default> Owned<T> {
    /// No values, in new memory that has room for so many.
    pub(crate) fn with_capacity(len: usize) -> Owned<T> {
        let padding = padding::<T>(len);
        let mut values = huge_pages::with_capacity(len.saturating_add(padding));
        let start = before_line(&values, padding);
        values.resize_with(start, T::default);
        Owned { values, start, padding }
    }

    /// So many values that cannot be copied.
    pub(crate) fn of_defaults(len: usize) -> Owned<T> {
        let mut owned = Owned::with_capacity(len);
        owned.values.resize_with(owned.start + len, T::default);
        owned
    }
}

impl<T: Element> Owned<T> {
    pub(crate) fn zeros(len: usize) -> Owned<T> {
        let padding = padding::<T>(len);
        let mut values = huge_pages::zeros(len.saturating_add(padding));
        let start = before_line(&values, padding);
        values.truncate(start + len);
        Owned { values, start, padding }
    }

    /// A copy in new memory.
    pub(crate) fn copied(of: &[T]) -> Owned<T> {
        let mut copied = Owned::with_capacity(of.len());
        copied.values.extend_from_slice(of);
        copied
    }

    pub(crate) fn extend(&mut self, values: impl Iterator<Item = T>) {
        self.make_room(values.size_hint().0, self.capacity().saturating_mul(2));
        self.values.extend(values);
    }

    /// Makes room for so many values more, where there is none, in memory for `spare` in all that again begins a line.
    fn make_room(&mut self, more: usize, spare: usize) {
        let len = self.values().len().saturating_add(more);
        if len > self.capacity() && padding::<T>(len) > 0 {
            let mut larger = Owned::with_capacity(len.max(spare));
            larger.values.extend_from_slice(self.values());
            *self = larger;
        }
    }

    pub(crate) fn resize(&mut self, len: usize) {
        self.make_room(len.saturating_sub(self.values().len()), 0);
        self.values.resize(self.start + len, T::default());
    }

    pub(crate) fn extend_from_slice(&mut self, values: &[T]) {
        self.make_room(values.len(), self.capacity().saturating_mul(2));
        self.values.extend_from_slice(values);
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        let padding = self.padding - self.start;
        self.values.shrink_to(self.values.len() + padding);
    }

    pub(crate) fn into_vec(mut self) -> Vec<T> {
        self.values.drain(..take(&mut self.start));
        self.values
    }
}

impl<T> From<Vec<T>> for Owned<T> {
    fn from(values: Vec<T>) -> Self {
        Owned { values, start: 0, padding: 0 }
    }
}

/// How many values more than `len` there has to be room for, so that so many can begin a line. None where few are no
/// large array.
fn padding<T>(len: usize) -> usize {
    let size = size_of::<T>();
    let is_large = size > 0 && LINE.is_multiple_of(size) && len >= LARGE / size;
    if is_large { LINE / size - 1 } else { 0 }
}

/// How many values lie before the first that begins a line.
fn before_line<T>(values: &[T], padding: usize) -> usize {
    values.as_ptr().align_offset(LINE).min(padding)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every size, of elements of three sizes, made, copied, grown and shrunk.
    #[test]
    fn large_arrays_begin_a_line_and_hold_what_they_held() {
        fn of<T: Element + PartialEq + std::fmt::Debug + From<u16>>() {
            let large = LARGE / size_of::<T>();
            for len in [0, 1, 100, large - 1, large, large + 1, 3 * large + 5, (9 << 20) / size_of::<T>() + 3] {
                let mut owned = Owned::<T>::zeros(len);
                let begins = |owned: &Owned<T>| assert_eq!(owned.values().as_ptr() as usize % LINE, 0, "{len}");
                assert!(owned.values().len() == len && owned.values().iter().all(|value| *value == T::default()));
                assert!((len..len + 16).contains(&owned.capacity()), "{len}: {}", owned.capacity());
                owned.values_mut().iter_mut().zip((0..=u16::MAX).cycle()).for_each(|(value, at)| *value = T::from(at));
                let copied = Owned::copied(owned.values());
                if len >= large {
                    begins(&owned);
                    begins(&copied);
                }
                assert_eq!(copied.values(), owned.values());
                owned.extend_from_slice(&[T::from(7)]);
                if len >= large {
                    begins(&owned);
                }
                assert_eq!((owned.values().last(), owned.values().len()), (Some(&T::from(7)), len + 1));
                owned.resize(len / 2);
                owned.shrink_to_fit();
                assert_eq!(owned.values(), &copied.values()[..len / 2]);
                owned.resize(len);
                if len >= large {
                    begins(&owned);
                }
                assert!(owned.values()[len / 2..].iter().all(|value| *value == T::default()));
                let vector = copied.into_vec();
                assert!(
                    vector.iter().zip((0..=u16::MAX).cycle()).all(|(value, at)| *value == T::from(at))
                        && vector.len() == len
                );
            }
        }
        of::<u16>();
        of::<f32>();
        of::<f64>();
    }
}

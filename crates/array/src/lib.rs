//! Large arrays of numbers: owned, or lent by whoever keeps them, such as a map of a file or another program.
//!
//! ```
//! use std::sync::Arc;
//! use laconic_array::{Array, Lend};
//!
//! struct Constant;
//!
//! impl Lend<f32> for Constant {
//!     fn values(&self) -> &[f32] {
//!         &[1.0, 2.0]
//!     }
//! }
//!
//! let mut array = Array::lent(Arc::new(Constant));
//! let same = array.clone(); // copies nothing
//! array[0] = 5.0; // copies the values first: what was lent stays as it is
//! assert_eq!((&array[..], &same[..]), (&[5.0, 2.0][..], &[1.0, 2.0][..]));
//! ```

mod halves;
mod huge_pages;
mod owned;

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::path::Path;
use std::sync::Arc;

use owned::Owned;

pub use huge_pages::{with_capacity, zeros};

/// What an array can hold: numbers, and what is stored as numbers.
pub trait Element: Copy + Default + Send + Sync + 'static {}

impl<T: Copy + Default + Send + Sync + 'static> Element for T {}

/// Whoever keeps values that an [`Array`] reads.
pub trait Lend<T>: Send + Sync {
    /// The values. They are the same as long as they are lent.
    fn values(&self) -> &[T];

    /// The file that they are read from whenever somebody looks at them; `None` where they are in memory.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Whether they may be others by now, because the file has been written to.
    fn has_changed(&self) -> bool {
        false
    }

    /// Whether they lie somewhere as they are. Where they do not, such as numbers that are stored in 16 bits,
    /// [`Lend::values`] makes all of them and keeps them, and [`Lend::copy_to`] makes those that are asked for.
    fn is_in_place(&self) -> bool {
        true
    }

    /// How many there are.
    fn count(&self) -> usize {
        self.values().len()
    }

    /// Writes those from place `from` on into `into`.
    fn copy_to(&self, from: usize, into: &mut [T])
    where
        T: Copy,
    {
        into.copy_from_slice(&self.values()[from..][..into.len()]);
    }
}

/// A large array: a slice of its own values or of values that somebody lends.
///
/// Large arrays (64 KiB) begin a line of the processor's cache where their memory was made at once and not by a vector
/// before, and lie in huge pages where the system has some. What is lent is copied before it is changed.
pub struct Array<T>(Held<T>);

enum Held<T> {
    Owned(Owned<T>),
    Lent(Arc<dyn Lend<T>>),
}

impl<T: Default> Array<T> {
    /// So many default values, of a type that cannot be copied: those of atomics are zeros.
    #[must_use]
    pub fn of_defaults(len: usize) -> Array<T> {
        Array(Held::Owned(Owned::of_defaults(len)))
    }
}

impl<T: Element> Array<T> {
    /// An empty array without memory.
    #[must_use]
    pub fn new() -> Array<T> {
        Array::from(Vec::new())
    }

    /// So many zeros in new memory.
    #[must_use]
    pub fn zeros(len: usize) -> Array<T> {
        Array(Held::Owned(Owned::zeros(len)))
    }

    /// An empty array with new memory for so many values.
    #[must_use]
    pub fn with_capacity(len: usize) -> Array<T> {
        Array(Held::Owned(Owned::with_capacity(len)))
    }

    /// Values that somebody else keeps.
    #[must_use]
    pub fn lent(lender: Arc<dyn Lend<T>>) -> Array<T> {
        Array(Held::Lent(lender))
    }

    /// Who lends the values; `None` where they are the array's own.
    #[must_use]
    pub fn lender(&self) -> Option<&dyn Lend<T>> {
        match &self.0 {
            Held::Owned(_) => None,
            Held::Lent(lender) => Some(&**lender),
        }
    }

    /// The file that the values are read from, if it has been written to or cut since it was opened: they may be others
    /// by now. Costs a call of the system where values stay in a file.
    #[must_use]
    pub fn changed_file(&self) -> Option<&Path> {
        self.lender().filter(|lender| lender.has_changed())?.file()
    }

    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Held::Owned(owned) => owned.values().len(),
            Held::Lent(lender) => lender.count(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of a range: where they are, or made in `room` where they are nowhere as such.
    pub fn piece<'a>(&'a self, range: Range<usize>, room: &'a mut Vec<T>) -> &'a [T] {
        match &self.0 {
            Held::Lent(lender) if !lender.is_in_place() => {
                room.clear();
                room.resize(range.len(), T::default());
                lender.copy_to(range.start, room);
                room
            }
            Held::Owned(_) | Held::Lent(_) => &self[range],
        }
    }

    /// Calls `each` with all values in their order: at once where they are, or `most` after `most` where they are
    /// nowhere as such. Unlike the slice, this never makes all of them.
    pub fn pieces(&self, most: usize, mut each: impl FnMut(&[T])) {
        let (len, mut room) = (self.len(), Vec::new());
        let most = if self.is_in_place() { len } else { most }.max(1);
        (0..len).step_by(most).for_each(|start| each(self.piece(start..len.min(start + most), &mut room)));
    }

    /// The value at a place.
    #[must_use]
    pub fn at(&self, place: usize) -> T {
        let mut found = [T::default()];
        self.copy_to(place, &mut found);
        found[0]
    }

    /// Writes the values from place `from` on into `into`.
    pub fn copy_to(&self, from: usize, into: &mut [T]) {
        match &self.0 {
            Held::Owned(owned) => into.copy_from_slice(&owned.values()[from..][..into.len()]),
            Held::Lent(lender) => lender.copy_to(from, into),
        }
    }

    /// Whether the values lie somewhere as they are, so that the slice of all costs nothing.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.lender().is_none_or(Lend::is_in_place)
    }

    /// How many values the array's own memory has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        match &self.0 {
            Held::Owned(owned) => owned.capacity(),
            Held::Lent(_) => 0,
        }
    }

    /// Makes the array this long: cuts it, or adds zeros.
    pub fn resize(&mut self, len: usize) {
        if let Held::Lent(lender) = &self.0 {
            self.0 = Held::Owned(copied(&**lender, len));
        }
        self.own().resize(len);
    }

    /// Gives back memory that holds no values.
    pub fn shrink_to_fit(&mut self) {
        if let Held::Owned(owned) = &mut self.0 {
            owned.shrink_to_fit();
        }
    }

    /// Adds values behind the others.
    pub fn extend_from_slice(&mut self, values: &[T]) {
        self.own().extend_from_slice(values);
    }

    /// The values as a vector. Copies them unless they came from one.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        match self.0 {
            Held::Owned(owned) => owned.into_vec(),
            Held::Lent(lender) => copied(&*lender, usize::MAX).into_vec(),
        }
    }

    /// The array's own values, copied now if they were lent.
    fn own(&mut self) -> &mut Owned<T> {
        if let Held::Lent(lender) = &self.0 {
            self.0 = Held::Owned(copied(&**lender, usize::MAX));
        }
        match &mut self.0 {
            Held::Owned(owned) => owned,
            Held::Lent(_) => unreachable!("it was copied above"),
        }
    }
}

/// The first `most` values of a lender, in new memory.
fn copied<T: Element>(lender: &dyn Lend<T>, most: usize) -> Owned<T> {
    let count = lender.count().min(most);
    if lender.is_in_place() {
        return Owned::copied(&lender.values()[..count]);
    }
    let mut copied = Owned::zeros(count);
    lender.copy_to(0, copied.values_mut());
    copied
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Held::Owned(owned) => owned.values(),
            Held::Lent(lender) => lender.values(),
        }
    }
}

impl<T: Element> DerefMut for Array<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.own().values_mut()
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Array::from(Vec::new())
    }
}

impl<T: Element> Clone for Array<T> {
    fn clone(&self) -> Self {
        match &self.0 {
            Held::Owned(owned) => Array(Held::Owned(Owned::copied(owned.values()))),
            Held::Lent(lender) => Array(Held::Lent(lender.clone())),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&**self).finish()
    }
}

impl<T: PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// The vector's memory, as it is.
impl<T> From<Vec<T>> for Array<T> {
    fn from(values: Vec<T>) -> Self {
        Array(Held::Owned(Owned::from(values)))
    }
}

impl<T: Element> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let values = values.into_iter();
        let mut array = Array::with_capacity(values.size_hint().0);
        array.extend(values);
        array
    }
}

impl<T: Element> Extend<T> for Array<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        self.own().extend(values.into_iter());
    }
}

impl<'a, T> IntoIterator for &'a Array<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Keeper(Vec<f32>);

    impl Lend<f32> for Keeper {
        fn values(&self) -> &[f32] {
            &self.0
        }
    }

    #[test]
    fn what_is_lent_is_read_in_place_and_copied_before_it_changes() {
        let keeper = Arc::new(Keeper((0..50_000).map(|value| value as f32).collect()));
        let place = keeper.values().as_ptr();
        let lent = Array::lent(keeper.clone());
        assert_eq!((lent.as_ptr(), lent.clone().as_ptr(), lent.capacity()), (place, place, 0));
        let mut grown = lent.clone();
        grown.extend_from_slice(&[7.0]);
        grown[3] = -1.0;
        assert_eq!((grown.len(), grown[3], grown[49_999], grown[50_000]), (50_001, -1.0, 49_999.0, 7.0));
        assert!(grown.lender().is_none() && lent.lender().is_some() && lent[3] == 3.0);
        let mut short = lent.clone();
        short.resize(2);
        assert_eq!((&short[..], lent.len()), (&[0.0, 1.0][..], 50_000));
        assert_eq!(lent.into_vec(), keeper.0);
    }

    #[test]
    fn a_vector_is_taken_over_and_given_back_where_it_is() {
        let values = vec![1u32, 2, 3];
        let place = values.as_ptr();
        let array = Array::from(values);
        assert_eq!((array.as_ptr(), &array[..]), (place, &[1, 2, 3][..]));
        let values = array.into_vec();
        assert_eq!(values.as_ptr(), place);
    }
}

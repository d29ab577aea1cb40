//! One value for each kind of frame.

use crate::Kind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// One value for each [`Kind`], in the order of [`Kind::ALL`]. Written as a map by the kinds' names; what is missing
/// there is read as the default.
///
/// ```
/// use laconic_wire::{Kind, PerKind};
/// let mut frames = PerKind::<u64>::default();
/// frames[Kind::Control] += 2;
/// assert_eq!(frames.iter().map(|(_, count)| count).sum::<u64>(), 2);
/// assert_eq!(frames.map(|count| count * 24)[Kind::Control], 48);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Kind, T>", into = "BTreeMap<Kind, T>")]
#[serde(bound(serialize = "T: Clone + Serialize", deserialize = "T: Default + Deserialize<'de>"))]
pub struct PerKind<T>([T; Kind::ALL.len()]);

impl<T> PerKind<T> {
    /// Kinds and values, in the order of [`Kind::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Kind, &T)> {
        Kind::ALL.into_iter().zip(&self.0)
    }

    /// Kinds and values to be changed, in the order of [`Kind::ALL`].
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Kind, &mut T)> {
        Kind::ALL.into_iter().zip(&mut self.0)
    }

    /// What the function makes of each value.
    pub fn map<U>(self, make: impl FnMut(T) -> U) -> PerKind<U> {
        PerKind(self.0.map(make))
    }
}

impl<T> Index<Kind> for PerKind<T> {
    type Output = T;

    fn index(&self, kind: Kind) -> &T {
        &self.0[kind as usize]
    }
}

impl<T> IndexMut<Kind> for PerKind<T> {
    fn index_mut(&mut self, kind: Kind) -> &mut T {
        &mut self.0[kind as usize]
    }
}

impl<T> From<[T; Kind::ALL.len()]> for PerKind<T> {
    fn from(values: [T; Kind::ALL.len()]) -> PerKind<T> {
        PerKind(values)
    }
}

impl<T> From<PerKind<T>> for [T; Kind::ALL.len()] {
    fn from(values: PerKind<T>) -> [T; Kind::ALL.len()] {
        values.0
    }
}

impl<T: Default> From<BTreeMap<Kind, T>> for PerKind<T> {
    fn from(mut values: BTreeMap<Kind, T>) -> PerKind<T> {
        PerKind(Kind::ALL.map(|kind| values.remove(&kind).unwrap_or_default()))
    }
}

impl<T> From<PerKind<T>> for BTreeMap<Kind, T> {
    fn from(values: PerKind<T>) -> BTreeMap<Kind, T> {
        Kind::ALL.into_iter().zip(values.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_place_in_the_order_of_all() {
        let numbers = PerKind::from(std::array::from_fn::<usize, { Kind::ALL.len() }, _>(|at| at));
        for (at, (kind, number)) in numbers.iter().enumerate() {
            assert_eq!((kind, *number, numbers[kind]), (Kind::ALL[at], at, at));
        }
        assert_eq!(<[usize; Kind::ALL.len()]>::from(numbers), std::array::from_fn(|at| at));
    }

    #[test]
    fn what_is_missing_in_a_map_is_the_default() {
        let read = PerKind::from(BTreeMap::from([(Kind::Control, 3)]));
        assert_eq!((read[Kind::Control], read[Kind::Features]), (3, 0));
        assert_eq!(PerKind::from(BTreeMap::from(read)), read);
    }
}

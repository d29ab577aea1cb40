//! Arrays that another program lends, such as NumPy's.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

use laconic_array::Lend;

use crate::npy::Header;

/// An array that another program keeps.
#[derive(Clone)]
pub struct LentArray {
    /// What its items are, and its shape.
    pub header: Header,
    /// Its items, one behind the other in the order that the header says, or as far apart as `steps` say.
    pub bytes: Arc<dyn Lend<u8>>,
    /// Where items are that do not stand one behind the other, such as those of a slice.
    pub steps: Option<Steps>,
}

/// Arrays by name.
pub type LentArrays = BTreeMap<String, LentArray>;

/// Where the items of an array are.
#[derive(Debug, Clone)]
pub struct Steps {
    /// The byte that the first begins with.
    pub start: usize,
    /// Of each dimension, by how many bytes the next item comes later; below 0 where it comes earlier.
    pub sizes: Vec<isize>,
}

impl LentArray {
    /// Whether all items that its shape says are there.
    pub(super) fn is_whole(&self) -> bool {
        let (there, item) = (self.bytes.values().len(), self.header.item_bytes);
        let Some(items) = self.header.values() else { return false };
        match &self.steps {
            None => items.checked_mul(item as u64) == Some(there as u64),
            Some(steps) => steps.sizes.len() == self.header.shape.len() && (items == 0 || self.ends_within(steps)),
        }
    }

    fn ends_within(&self, steps: &Steps) -> bool {
        let [mut first, mut last] = [steps.start as i128; 2];
        for (&size, &step) in self.header.shape.iter().zip(&steps.sizes) {
            let end = i128::from(size - 1) * step as i128;
            (first, last) = (first + end.min(0), last + end.max(0));
        }
        first >= 0 && last + self.header.item_bytes as i128 <= self.bytes.values().len() as i128
    }

    /// Its items one behind the other.
    pub(super) fn items(&self) -> LentItems<'_> {
        let bytes = self.bytes.values();
        match &self.steps {
            None => LentItems::Together(bytes),
            Some(steps) => LentItems::Apart(Apart {
                bytes,
                array: self,
                steps: &steps.sizes,
                place: steps.start as isize,
                index: vec![0; self.header.shape.len()],
                left: self.header.values().unwrap_or(0),
                read: 0,
            }),
        }
    }
}

/// The items of a lent array, as bytes.
pub(super) enum LentItems<'a> {
    Together(&'a [u8]),
    Apart(Apart<'a>),
}

impl LentItems<'_> {
    /// How many bytes are left.
    pub fn len(&self) -> u64 {
        match self {
            LentItems::Together(bytes) => bytes.len() as u64,
            LentItems::Apart(apart) => apart.left.saturating_mul(apart.array.header.item_bytes as u64),
        }
    }
}

impl Read for LentItems<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            LentItems::Together(bytes) => bytes.read(into),
            LentItems::Apart(apart) => apart.read(into),
        }
    }
}

/// Items from anywhere, the last dimension's next one first.
pub(super) struct Apart<'a> {
    bytes: &'a [u8],
    array: &'a LentArray,
    steps: &'a [isize],
    /// Where the next item is, in each dimension and in bytes.
    index: Vec<u64>,
    place: isize,
    /// How many items are left, and how much of the next has been read.
    left: u64,
    read: usize,
}

impl Apart<'_> {
    fn advance(&mut self) {
        (self.left, self.read) = (self.left - 1, 0);
        let shape = &self.array.header.shape;
        for (dimension, index) in self.index.iter_mut().enumerate().rev() {
            (*index, self.place) = (*index + 1, self.place + self.steps[dimension]);
            if *index < shape[dimension] {
                return;
            }
            (*index, self.place) = (0, self.place - self.steps[dimension] * shape[dimension] as isize);
        }
    }
}

impl Read for Apart<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (mut written, item_bytes) = (0, self.array.header.item_bytes);
        while written < into.len() && self.left > 0 {
            let item = usize::try_from(self.place).ok().and_then(|place| self.bytes.get(place..)?.get(..item_bytes));
            let item = item.ok_or(io::ErrorKind::UnexpectedEof)?;
            let some = (item_bytes - self.read).min(into.len() - written);
            into[written..][..some].copy_from_slice(&item[self.read..][..some]);
            (written, self.read) = (written + some, self.read + some);
            if self.read == item_bytes {
                self.advance();
            }
        }
        Ok(written)
    }
}

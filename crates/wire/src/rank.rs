//! Who takes part: ranks `0..size`.

use serde::{Deserialize, Serialize};

/// One worker's number, in `0..size`. Written as the bare number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rank(pub u32);

impl Rank {
    /// The rank as an index into a slice with one item per rank.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// All ranks of a group of `size`, in ascending order.
    pub fn all(size: usize) -> impl DoubleEndedIterator<Item = Rank> + ExactSizeIterator {
        (0..u32::try_from(size).expect("ranks are u32")).map(Rank)
    }

    /// The other `size - 1` ranks, beginning behind this one and going round. Sending in this order keeps the ranks
    /// from all calling on rank 0 first.
    pub fn others(self, size: usize) -> impl Iterator<Item = Rank> {
        (1..size).map(move |step| Rank(((self.index() + step) % size) as u32))
    }
}

impl std::fmt::Display for Rank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_all_ranks_but_this_one() {
        assert_eq!(Rank(2).others(4).collect::<Vec<_>>(), [Rank(3), Rank(0), Rank(1)]);
        assert_eq!(Rank(0).others(1).count(), 0);
    }
}

//! Which side of a part's border an edge starts on, and at which row there.

use super::index::{IdIndex, SPARSE};

/// The own nodes of a part and those that it needs of others, to be told apart.
pub(super) enum Sides<'a> {
    /// Ids that are near each other: a word for each 64 that there could be from the first on.
    Near { first: u64, words: Vec<Word> },
    /// One after the other, whatever ids are like.
    Apart { own: IdIndex<'a>, needed: IdIndex<'a> },
}

/// Both sides of 64 ids beside each other, so that a look-up reads one place whichever it is.
#[derive(Clone, Copy, Default)]
pub(super) struct Word {
    own: u64,
    needed: u64,
    own_before: u32,
    needed_before: u32,
}

/// The edges into a row by the side that they start on: the row there, and which of the edges it is.
#[derive(Default)]
pub(super) struct Divided {
    own: Vec<(u32, u32)>,
    halo: Vec<(u32, u32)>,
    owned: usize,
    others: usize,
}

impl Divided {
    pub(super) fn own(&self) -> &[(u32, u32)] {
        &self.own[..self.owned]
    }

    /// In places among the ids that are needed, to be put in order by those of rows.
    pub(super) fn halo(&mut self) -> &mut [(u32, u32)] {
        &mut self.halo[..self.others]
    }

    /// Puts each id on the side that `place` says. Edges of both kinds follow each other as if by chance, which no
    /// processor foresees: each is written on both sides, and counts on one.
    fn each(&mut self, ids: &[u64], place: impl Fn(u64) -> (bool, u32)) {
        if self.own.len() < ids.len() {
            self.own.resize(ids.len(), (0, 0));
            self.halo.resize(ids.len(), (0, 0));
        }
        let (mut owned, mut others) = (0, 0);
        for (edge, &id) in (0..).zip(ids) {
            let (is_own, row) = place(id);
            self.own[owned] = (row, edge);
            self.halo[others] = (row, edge);
            owned += usize::from(is_own);
            others += usize::from(!is_own);
        }
        (self.owned, self.others) = (owned, others);
    }
}

impl<'a> Sides<'a> {
    /// Both lists ascend, and no id is in both.
    pub(super) fn new(own: &'a [u64], needed: &'a [u64]) -> Self {
        let ends = |ids: &[u64]| ids.first().copied().zip(ids.last().copied());
        let all = ends(own).into_iter().chain(ends(needed));
        let (first, last) = all.fold((u64::MAX, 0), |(first, last), (start, end)| (first.min(start), last.max(end)));
        let count = own.len() + needed.len();
        let is_near = count > 0 && (last - first) / SPARSE < count as u64;
        if is_near {
            Sides::Near { first, words: words(own, needed, first, last) }
        } else {
            Sides::Apart { own: IdIndex::new(own), needed: IdIndex::new(needed) }
        }
    }

    /// Divides the sources of a row's edges, each of which is on one of both sides.
    pub(super) fn divide(&self, ids: &[u64], into: &mut Divided) {
        match self {
            Sides::Near { first, words } => into.each(ids, |id| {
                let at = id - first;
                let (word, bit) = (&words[(at / 64) as usize], 1u64 << (at % 64));
                let is_own = word.own & bit != 0;
                let (bits, before) =
                    if is_own { (word.own, word.own_before) } else { (word.needed, word.needed_before) };
                debug_assert!(bits & bit != 0, "every source that is not owned is needed");
                (is_own, before + (bits & (bit - 1)).count_ones())
            }),
            Sides::Apart { own, needed } => into.each(ids, |id| match own.row(id) {
                Some(row) => (true, row),
                None => (false, needed.row(id).expect("every source that is not owned is needed")),
            }),
        }
    }
}

/// A word for each 64 ids from `first` to `last`.
fn words(own: &[u64], needed: &[u64], first: u64, last: u64) -> Vec<Word> {
    let mut words = vec![Word::default(); ((last - first) / 64) as usize + 1];
    let at = |id: u64| (((id - first) / 64) as usize, 1u64 << ((id - first) % 64));
    for (word, bit) in own.iter().map(|&id| at(id)) {
        words[word].own |= bit;
    }
    for (word, bit) in needed.iter().map(|&id| at(id)) {
        words[word].needed |= bit;
    }
    let (mut own, mut needed) = (0, 0);
    for word in &mut words {
        (word.own_before, word.needed_before) = (own, needed);
        own += word.own.count_ones();
        needed += word.needed.count_ones();
    }
    words
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{Divided, Sides};

    proptest! {
        /// Ids near each other, or far, or both: each edge is found on its side, at its row, in its order, with what
        /// was divided before out of the way.
        #[test]
        fn every_edge_is_on_the_side_and_at_the_row_of_its_source(
            near in proptest::collection::btree_map(0u64..300, any::<bool>(), 0..90),
            far in proptest::collection::btree_map(any::<u64>(), any::<bool>(), 0..4),
            first in prop_oneof![0u64..70, Just(u64::MAX - 300)],
            rows in proptest::collection::vec(proptest::collection::vec(any::<u16>(), 0..40), 1..4),
        ) {
            let near: BTreeMap<u64, bool> = near.into_iter().map(|(id, is_own)| (first + id, is_own)).collect();
            let mut both = near.clone();
            both.extend(far);
            for sides in [near, both] {
                let of = |own: bool| sides.iter().filter(move |(_, is)| **is == own).map(|(&id, _)| id);
                let [own, needed]: [Vec<u64>; 2] = [true, false].map(|is_own| of(is_own).collect());
                let (of_part, mut divided) = (Sides::new(&own, &needed), Divided::default());
                let ids: Vec<u64> = sides.keys().copied().collect();
                for row in &rows {
                    let drawn = |at: &u16| (!ids.is_empty()).then(|| ids[usize::from(*at) % ids.len()]);
                    let sources: Vec<u64> = row.iter().filter_map(drawn).collect();
                    of_part.divide(&sources, &mut divided);
                    let on = |list: &[u64]| -> Vec<(u32, u32)> {
                        let place = |(edge, id): (usize, &u64)| {
                            list.iter().position(|of_list| of_list == id).map(|row| (row as u32, edge as u32))
                        };
                        sources.iter().enumerate().filter_map(place).collect()
                    };
                    prop_assert_eq!(divided.own(), on(&own));
                    prop_assert_eq!(&*divided.halo(), on(&needed));
                }
            }
        }
    }
}

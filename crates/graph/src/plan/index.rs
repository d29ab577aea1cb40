//! From an id to its row in an ascending list.

/// Looks up ids in an ascending list.
pub struct IdIndex<'a> {
    first: u64,
    places: Places<'a>,
}

/// Either takes up to eight bytes an id.
enum Places<'a> {
    /// Ids that are near each other: for each 64 of those that there could be the row of the first that there is, and a
    /// bit for each. A look-up reads one line, of a table that stays in a cache where the ids would not.
    Bits(Vec<Word>),
    /// A table over the leading bits narrows the search to a bucket of, on average, less than one id, so a look-up
    /// costs two cache misses where a binary search over a million ids costs a dozen. Ids that crowd together only make
    /// the bucket longer; the search inside it stays binary.
    Buckets {
        ids: &'a [u64],
        shift: u32,
        /// Bucket `b` holds the rows `starts[b]..starts[b + 1]`.
        starts: Vec<u32>,
    },
}

#[derive(Clone, Copy, Default)]
struct Word {
    bits: u64,
    before: u32,
}

/// So many times as many ids as there are there could be for a bit each.
pub(super) const SPARSE: u64 = 32;

impl<'a> IdIndex<'a> {
    /// An index over `ids`.
    ///
    /// # Panics
    ///
    /// If there are 2³² of them, or the last is below the first; they must ascend.
    pub fn new(ids: &'a [u64]) -> Self {
        let (Some(&first), Some(&last)) = (ids.first(), ids.last()) else {
            return IdIndex { first: 0, places: Places::Bits(Vec::new()) };
        };
        assert!(ids.len() <= u32::MAX as usize && first <= last, "{} ids from {first} to {last}", ids.len());
        let span = last - first;
        let places = if span / SPARSE < ids.len() as u64 { bits(ids, span) } else { buckets(ids, span) };
        IdIndex { first, places }
    }

    /// The row of `id`, if it is in the list.
    #[inline]
    pub fn row(&self, id: u64) -> Option<u32> {
        let at = id.checked_sub(self.first)?;
        match &self.places {
            Places::Bits(words) => {
                let &Word { bits, before } = words.get((at / 64) as usize)?;
                let bit = 1 << (at % 64);
                (bits & bit != 0).then(|| before + (bits & (bit - 1)).count_ones())
            }
            Places::Buckets { ids, shift, starts } => {
                let bucket = (at >> shift) as usize;
                let (&start, &end) = (starts.get(bucket)?, starts.get(bucket + 1)?);
                let found = ids[start as usize..end as usize].binary_search(&id).ok()?;
                Some(start + found as u32)
            }
        }
    }
}

/// The last of `ids` is `span` behind the first.
fn bits(ids: &[u64], span: u64) -> Places<'_> {
    let mut words = vec![Word::default(); (span / 64) as usize + 1];
    for at in ids.iter().map(|id| id - ids[0]) {
        words[(at / 64) as usize].bits |= 1 << (at % 64);
    }
    let mut before = 0;
    for word in &mut words {
        word.before = before;
        before += word.bits.count_ones();
    }
    Places::Bits(words)
}

fn buckets(ids: &[u64], span: u64) -> Places<'_> {
    let mut shift = 0;
    while span >> shift >= 2 * ids.len() as u64 {
        shift += 1;
    }
    let mut starts = vec![0; (span >> shift) as usize + 2];
    for &id in ids {
        starts[((id - ids[0]) >> shift) as usize + 1] += 1;
    }
    for bucket in 1..starts.len() {
        starts[bucket] += starts[bucket - 1];
    }
    Places::Buckets { ids, shift, starts }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::IdIndex;

    fn assert_finds(ids: &[u64], asked: impl IntoIterator<Item = u64>) {
        let index = IdIndex::new(ids);
        for id in asked.into_iter().chain(ids.iter().copied()).chain([0, u64::MAX]) {
            assert_eq!(index.row(id), ids.binary_search(&id).ok().map(|row| row as u32), "{id} among {ids:?}");
        }
    }

    proptest! {
        #[test]
        fn every_id_is_found_at_its_row_and_no_other_id_is_found(
            near in proptest::collection::btree_set(0u64..200, 0..60),
            far in proptest::collection::btree_set(any::<u64>(), 0..20),
            asked in proptest::collection::vec(any::<u64>(), 20),
        ) {
            let ids: Vec<u64> = near.union(&far).copied().collect();
            assert_finds(&ids, asked.into_iter().chain(0..210));
        }

        #[test]
        fn ids_near_each_other_are_found_wherever_they_begin(
            near in proptest::collection::btree_set(0u64..400, 1..200),
            first in prop_oneof![0u64..70, Just(u64::MAX - 400)],
        ) {
            let ids: Vec<u64> = near.into_iter().map(|id| first + id).collect();
            assert_finds(&ids, first.saturating_sub(70)..=first + 400);
        }
    }
}

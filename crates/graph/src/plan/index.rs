//! From an id to its row in an ascending list.

/// Looks up ids in an ascending list: a table over the leading bits narrows the search to a bucket of, on average, less
/// than one id, so a look-up costs two cache misses where a binary search over a million ids costs a dozen. Ids that
/// crowd together only make the bucket longer; the search inside it stays binary.
pub struct IdIndex<'a> {
    ids: &'a [u64],
    first: u64,
    shift: u32,
    /// Bucket `b` holds the rows `starts[b]..starts[b + 1]`.
    starts: Vec<u32>,
}

impl<'a> IdIndex<'a> {
    /// An index over `ids`.
    ///
    /// # Panics
    ///
    /// If there are 2³² of them, or the last is below the first; they must ascend.
    pub fn new(ids: &'a [u64]) -> Self {
        let (Some(&first), Some(&last)) = (ids.first(), ids.last()) else {
            return IdIndex { ids, first: 0, shift: 0, starts: vec![0, 0] };
        };
        assert!(ids.len() <= u32::MAX as usize && first <= last, "{} ids from {first} to {last}", ids.len());
        let mut shift = 0;
        while (last - first) >> shift >= 2 * ids.len() as u64 {
            shift += 1;
        }
        let mut starts = vec![0; ((last - first) >> shift) as usize + 2];
        for &id in ids {
            starts[((id - first) >> shift) as usize + 1] += 1;
        }
        for bucket in 1..starts.len() {
            starts[bucket] += starts[bucket - 1];
        }
        IdIndex { ids, first, shift, starts }
    }

    /// The row of `id`, if it is in the list.
    pub fn row(&self, id: u64) -> Option<u32> {
        let bucket = (id.checked_sub(self.first)? >> self.shift) as usize;
        let (&start, &end) = (self.starts.get(bucket)?, self.starts.get(bucket + 1)?);
        let found = self.ids[start as usize..end as usize].binary_search(&id).ok()?;
        Some(start + found as u32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::IdIndex;

    proptest! {
        #[test]
        fn every_id_is_found_at_its_row_and_no_other_id_is_found(
            near in proptest::collection::btree_set(0u64..200, 0..60),
            far in proptest::collection::btree_set(any::<u64>(), 0..20),
            asked in proptest::collection::vec(any::<u64>(), 20),
        ) {
            let ids: Vec<u64> = near.union(&far).copied().collect();
            let index = IdIndex::new(&ids);
            for id in asked.into_iter().chain(0..210).chain(ids.iter().copied()).chain([u64::MAX]) {
                prop_assert_eq!(index.row(id), ids.binary_search(&id).ok().map(|row| row as u32));
            }
        }
    }
}

//! Which training nodes, or edges, make a batch.

use laconic_key::{Key, Purpose};

/// The number of batches of an epoch over `rows` rows, `size` in each; at least one.
///
/// # Panics
///
/// If `size` is 0.
pub fn batches(rows: u64, size: u64) -> u64 {
    rows.div_ceil(size).max(1)
}

/// The batch of this epoch, below `batches`, in which the node with this global id is learned from. Whoever owns the
/// node knows it without asking, so batches are about equally large, not exactly: sizes are binomial.
///
/// # Panics
///
/// If there are no batches.
pub fn batch_of(seed: u64, epoch: u64, id: u64, batches: u64) -> u64 {
    Key::new(seed, Purpose::Batches).with(epoch).with(id).below(batches)
}

/// The batch of this epoch, below `batches`, in which the edges between two nodes, by global id, are learned from. Both
/// directions of an edge are in one, and those of all relations, so that whoever owns either end knows it without
/// asking.
///
/// # Panics
///
/// If there are no batches.
pub fn batch_of_edge(seed: u64, epoch: u64, (a, b): (u64, u64), batches: u64) -> u64 {
    Key::new(seed, Purpose::Batches).with(epoch).with(a.min(b)).with(a.max(b)).below(batches)
}

#[cfg(test)]
mod tests {
    use super::{batch_of, batch_of_edge, batches};

    #[test]
    fn as_many_batches_as_it_takes() {
        let of = |rows, size| batches(rows, size);
        assert_eq!([of(0, 5), of(1, 5), of(5, 5), of(6, 5), of(90_941, 1024)], [1, 1, 1, 2, 89]);
    }

    #[test]
    fn sizes_of_batches_are_binomial() {
        let (rows, count) = (90_000u64, 90);
        let mut sizes = vec![0u32; count as usize];
        (0..rows).for_each(|id| sizes[batch_of(1, 4, id, count) as usize] += 1);
        // Pearson's statistic: 89 degrees of freedom. Equal sizes would give 0, which is as wrong.
        let expected = rows as f64 / count as f64;
        let statistic: f64 = sizes.iter().map(|&size| (f64::from(size) - expected).powi(2) / expected).sum();
        assert!((statistic - 89.0).abs() < 5.0 * (2.0f64 * 89.0).sqrt(), "{statistic}");
    }

    #[test]
    fn both_directions_of_an_edge_are_in_one_batch_and_sizes_are_binomial() {
        let count = 50;
        let mut sizes = vec![0u32; count as usize];
        for (a, b) in (0..300u64).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let batch = batch_of_edge(1, 4, (a, b), count);
            assert_eq!(batch, batch_of_edge(1, 4, (b, a), count));
            sizes[batch as usize] += 1;
        }
        let expected = f64::from(sizes.iter().sum::<u32>()) / count as f64;
        let statistic: f64 = sizes.iter().map(|&size| (f64::from(size) - expected).powi(2) / expected).sum();
        assert!((statistic - 49.0).abs() < 5.0 * (2.0f64 * 49.0).sqrt(), "{statistic}");
    }

    /// Of pairs in one batch of an epoch, a share of 1 / batches is together in the next one.
    #[test]
    fn batches_of_two_epochs_are_independent() {
        let (rows, count) = (40_000u64, 20);
        let together = (0..rows).filter(|&id| batch_of(1, 4, id, count) == batch_of(1, 5, id, count)).count();
        let bound = 5.0 * (rows as f64 * 19.0 / 400.0).sqrt();
        assert!((together as f64 - rows as f64 / 20.0).abs() < bound, "{together}");
        assert_ne!(
            (0..64).map(|id| batch_of(1, 4, id, 2)).collect::<Vec<_>>(),
            (0..64).map(|id| batch_of(2, 4, id, 2)).collect::<Vec<_>>()
        );
    }
}

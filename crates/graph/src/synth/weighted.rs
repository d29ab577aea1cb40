//! Drawing items in proportion to their weights.

use std::ops::Range;

/// Items laid end to end on a line, each as long as its weight. A uniform point on the line is in an item with
/// probability proportional to its weight, and a uniform point on a stretch of the line draws from the items there: one
/// table serves every class. (Alias tables would need one table a class and one for each complement.)
///
/// Weights are integers, so that sums are exact. A guide over the leading bits of the point makes a draw take constant
/// time on average.
pub(super) struct Weighted {
    /// Where each item starts; and the end of the line.
    starts: Vec<u64>,
    shift: u32,
    /// The item at the point `bucket << shift`.
    guide: Vec<u32>,
}

impl Weighted {
    /// Lays out items of these weights, none of them 0, fewer than 2^32.
    pub(super) fn new(weights: impl ExactSizeIterator<Item = u64>) -> Self {
        let items = weights.len();
        let mut starts = Vec::with_capacity(items + 1);
        let mut end = 0u64;
        starts.push(end);
        for weight in weights {
            assert!(weight > 0, "item {} has no weight", starts.len() - 1);
            end += weight;
            starts.push(end);
        }
        let mut shift = 0;
        while end >> shift > 2 * items as u64 {
            shift += 1;
        }
        let mut item = 0;
        let guide = (0..=end >> shift).map(|bucket| {
            while item + 1 < items && starts[item + 1] <= bucket << shift {
                item += 1;
            }
            item as u32
        });
        let guide = guide.collect();
        Weighted { starts, shift, guide }
    }

    /// The stretch of the line that `items` cover.
    pub(super) fn stretch(&self, items: Range<usize>) -> Range<u64> {
        self.starts[items.start]..self.starts[items.end]
    }

    /// The length of the line.
    pub(super) fn total(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// The item at `point`, which must lie on the line.
    pub(super) fn at(&self, point: u64) -> usize {
        let bucket = (point >> self.shift) as usize;
        let mut item = self.guide[bucket] as usize;
        while self.starts[item + 1] <= point {
            item += 1;
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::Weighted;

    #[test]
    fn every_item_is_hit_by_as_many_points_as_it_weighs() {
        for weights in [vec![1], vec![3, 1, 1, 1, 50, 2, 1], (1..200).collect(), vec![1 << 12, 1, 1, 1 << 12]] {
            let table = Weighted::new(weights.iter().copied());
            assert_eq!(table.total(), weights.iter().sum::<u64>());
            let mut hits = vec![0; weights.len()];
            (0..table.total()).for_each(|point| hits[table.at(point)] += 1);
            assert_eq!(hits, weights);
            assert_eq!(table.stretch(0..weights.len()), 0..table.total());
        }
    }
}

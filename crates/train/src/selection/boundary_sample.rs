//! `boundary_sample` (BNS-GCN, Wan et al., 2022): in each round a random share p of each link's rows travels, the same in all layers
//! and both directions.
//!
//! ⌈p·n⌉ of n rows, so that a link with rows sends at least one and its sums stay unbiased; a row that travels counts n / ⌈p·n⌉
//! times. p = 1 is the full graph, p = 0 leaves the parts alone.

use super::Selection;

struct BoundarySample {
    rate: f64,
}

pub(super) fn make(rate: f64) -> Box<dyn Selection> {
    Box::new(BoundarySample { rate })
}

impl Selection for BoundarySample {
    fn count(&self, rows: usize) -> usize {
        ((self.rate * rows as f64).ceil() as usize).min(rows)
    }
}

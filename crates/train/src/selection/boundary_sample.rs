//! `boundary_sample` (BNS-GCN, Wan et al., 2022): in each round a random share p of each link's rows travels, the same
//! in all layers and both directions.
//!
//! ⌈p·n⌉ of n rows, so that a link with rows sends at least one and its sums stay unbiased; a row that travels counts n
//! / ⌈p·n⌉ times. p = 1 is the full graph, p = 0 leaves the parts alone.

use laconic_wire::WireError;
use laconic_wire::codec::Options;

use super::{Made, Selection, SelectionKind};

pub(super) const KIND: SelectionKind =
    SelectionKind { name: "boundary_sample", options: &["rate"], redraws: true, cuts: false, covers: false, build };

/// The paper's p where none is given.
const RATE: f64 = 0.1;

struct BoundarySample {
    rate: f64,
}

fn build(options: &Options) -> Result<Made, WireError> {
    let rate = options.number("rate")?.unwrap_or(RATE);
    if !(0.0..=1.0).contains(&rate) {
        return Err(options.refuse("rate", "0 to 1"));
    }
    Ok(if rate < 1.0 { Some(Box::new(BoundarySample { rate })) } else { None })
}

impl Selection for BoundarySample {
    fn count(&self, rows: usize) -> usize {
        ((self.rate * rows as f64).ceil() as usize).min(rows)
    }
}

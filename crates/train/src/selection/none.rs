//! `none`: no row travels while training; each worker trains on its own part with the edges to others cut.

use super::{Selection, SelectionKind};

pub(super) const KIND: SelectionKind =
    SelectionKind { name: "none", options: &[], redraws: false, cuts: true, build: |_| Ok(Some(Box::new(Nothing))) };

struct Nothing;

impl Selection for Nothing {
    fn count(&self, _rows: usize) -> usize {
        0
    }
}

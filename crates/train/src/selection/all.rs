//! `all`: every row that an edge needs travels in every round.

use super::SelectionKind;

pub(super) const KIND: SelectionKind =
    SelectionKind { name: "all", options: &[], redraws: false, cuts: false, covers: false, build: |_| Ok(None) };

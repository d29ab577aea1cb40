//! `vertex_cover`: a row, or one sum of several for the node that needs them, whichever stands for more edges: the
//! fewest rows that the edges between two workers can do with (SuperGCN, arXiv 2411.16025). Exact where folds are
//! linear, but for the order of sums.

use super::SelectionKind;

pub(super) const KIND: SelectionKind = SelectionKind {
    name: "vertex_cover",
    options: &[],
    redraws: false,
    cuts: false,
    covers: true,
    build: |_| Ok(None),
};

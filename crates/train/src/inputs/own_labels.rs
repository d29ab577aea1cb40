//! `own_labels`: the shares of classes among a node's neighbours that train in its own part. Nothing is told, so nobody
//! has to allow it: what `labels` adds to it is what labels of others are worth.

use laconic_nn::{Matrix, Operand};

use super::labels::{Counts, Said, as_column_values, said_of_own};
use super::response::Unbiased;
use super::{Heard, InputKind, Telling};
use crate::error::Result;

pub(super) const KIND: InputKind = InputKind {
    name: "own_labels",
    content: None,
    from: &[],
    tells_labels: true,
    tells_sums: false,
    // Edges between parts count for nothing, which of one worker there are none.
    loses: true,
    columns: |wide| wide.classes,
    most: |_, _| 0,
    tell: count,
};

fn count(telling: &mut Telling<'_>, _: &mut Heard) -> Result<Operand> {
    let (neighbours, classes) = (telling.neighbours, telling.classes);
    let (rows, mut own) = (neighbours.rows(), said_of_own(telling));
    own.resize(rows + telling.links.halo_rows(), Said::default());
    let heard = Heard { said: own, ..Heard::default() };
    let mut counts = Counts::of(neighbours, &heard, (classes, Unbiased::TRUE));
    (0..rows).for_each(|row| as_column_values(counts.row_mut(row)));
    Ok(Operand::Dense(Matrix::from_vec(rows, classes, counts.values)))
}

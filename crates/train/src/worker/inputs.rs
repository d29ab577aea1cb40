//! What a worker's first layer reads: own features, and what owners tell once.

use laconic_graph::dataset::Labels;
use laconic_graph::plan::HaloPlan;
use laconic_nn::{Matrix, Operand, Precision, SparseRows};
use laconic_wire::Transport;

use super::local::Local;
use crate::error::Result;
use crate::inputs::{Heard, Telling};
use crate::plan::Plan;

/// The rows that the first layer reads, from own features and what is told of this worker's rows.
///
/// # Errors
/// If another worker does not answer, or tells what cannot be.
pub(super) fn rows(
    plan: &Plan,
    transport: &mut dyn Transport,
    (links, local): (&HaloPlan, &Local),
    features: Operand,
) -> Result<Operand> {
    if plan.inputs.told.is_empty() {
        return Ok(features);
    }
    let labels: Vec<Option<u32>> = (0..local.ids.len()).map(|row| learned_class(local, row)).collect();
    let mut heard = Heard::default();
    let mut rows = match plan.inputs.features {
        true => features,
        false => Operand::Dense(Matrix::zeros(local.ids.len(), 0)),
    };
    for kind in &plan.inputs.told {
        let (own, halo, classes) = (&local.own, &local.halo, plan.inputs.classes);
        let tag = kind.tag();
        let mut telling = Telling { transport, tag, links, own, halo, labels: &labels, classes };
        let told = (kind.tell)(&mut telling, &mut heard)?;
        rows = beside(rows, &told);
    }
    Ok(rows)
}

/// The class of an own row that is learned from.
fn learned_class(local: &Local, row: usize) -> Option<u32> {
    match &local.labels {
        Labels::Single { values, .. } if local.masks[0][row] => u32::try_from(values[row]).ok(),
        _ => None,
    }
}

/// Rows with more columns behind theirs.
fn beside(rows: Operand, more: &Matrix) -> Operand {
    let columns = rows.view().columns() + more.columns();
    match rows {
        Operand::Dense(rows) => {
            let rows = rows.converted(Precision::F32);
            let both = (0..more.rows()).flat_map(|row| rows.row(row).iter().chain(more.row(row)).copied());
            Operand::Dense(Matrix::from_vec(more.rows(), columns, both.collect()))
        }
        Operand::Sparse(rows) => {
            let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in 0..more.rows() {
                let own = rows.offsets()[row]..rows.offsets()[row + 1];
                indices.extend_from_slice(&rows.indices()[own.clone()]);
                values.extend_from_slice(&rows.values()[own]);
                let told = more.row(row).iter().enumerate();
                indices.extend(told.clone().map(|(column, _)| (rows.columns() + column) as u32));
                values.extend(told.map(|(_, value)| value));
                offsets.push(values.len());
            }
            Operand::Sparse(SparseRows::new(columns, offsets, indices, values))
        }
    }
}

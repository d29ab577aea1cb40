//! What a worker's first layer reads: own features, and what owners tell once.

use laconic_graph::dataset::Labels;
use laconic_graph::plan::HaloPlan;
use laconic_nn::{Matrix, Operand, SparseRows};
use laconic_wire::Transport;

use super::local::Local;
use crate::error::Result;
use crate::inputs::{Heard, Neighbours, Telling};
use crate::plan::Plan;

/// The rows that the first layer reads, from own features and what is told of this worker's rows; and how many bytes
/// each peer was told of each input.
///
/// # Errors
/// If another worker does not answer, or tells what cannot be.
pub(super) fn rows(
    plan: &Plan,
    transport: &mut dyn Transport,
    (links, local): (&HaloPlan, &Local),
    features: Operand,
) -> Result<(Operand, Vec<Vec<usize>>)> {
    if plan.inputs.told.is_empty() && plan.inputs.features {
        return Ok((features, Vec::new()));
    }
    let labels: Vec<Option<u32>> = (0..local.ids.len()).map(|row| learned_class(local, row)).collect();
    let (neighbours, classes) = (Neighbours::of(&local.own, &local.halo), plan.inputs.classes);
    // Nobody asks who is alone.
    let response = plan.inputs.response.as_ref().filter(|_| transport.size() > 1);
    let answers = response.map_or_else(|| Ok(labels.clone()), |of| of.answers(&local.ids, &labels, classes))?;
    let (mut heard, mut told, mut sent) = (Heard::default(), Vec::new(), Vec::new());
    for kind in &plan.inputs.told {
        let (tag, labels, answers, neighbours) = (kind.tag(), &labels, &answers, &neighbours);
        let mut telling =
            Telling { transport, tag, links, neighbours, labels, answers, response, classes, sent: Vec::new() };
        told.push((kind.tell)(&mut telling, &mut heard)?);
        sent.push(telling.sent);
    }
    let features = if plan.inputs.features { features } else { Operand::Dense(Matrix::zeros(local.ids.len(), 0)) };
    Ok((beside(features, &told), sent))
}

/// The class of an own row that is learned from.
fn learned_class(local: &Local, row: usize) -> Option<u32> {
    match &local.labels {
        Labels::Single { values, .. } if local.masks[0][row] => u32::try_from(values[row]).ok(),
        _ => None,
    }
}

/// Rows with more columns behind theirs, in memory of their own.
fn beside(rows: Operand, more: &[Matrix]) -> Operand {
    let (count, of_rows) = (rows.view().rows(), rows.view().columns());
    let columns = of_rows + more.iter().map(Matrix::columns).sum::<usize>();
    match rows {
        Operand::Sparse(rows) => {
            let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in 0..count {
                let own = rows.offsets()[row]..rows.offsets()[row + 1];
                indices.extend_from_slice(&rows.indices()[own.clone()]);
                values.extend_from_slice(&rows.values()[own]);
                indices.extend(of_rows as u32..columns as u32);
                more.iter().for_each(|more| values.extend_from_slice(more.row(row)));
                offsets.push(values.len());
            }
            Operand::Sparse(SparseRows::new(columns, offsets, indices, values))
        }
        rows => {
            let mut both = Vec::with_capacity(count * columns);
            for row in 0..count {
                both.extend_from_slice(rows.dense_row(row));
                more.iter().for_each(|more| both.extend_from_slice(more.row(row)));
            }
            Operand::Dense(Matrix::from_vec(count, columns, both))
        }
    }
}

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
    if plan.inputs.given || (plan.inputs.told.is_empty() && plan.inputs.features) {
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
        let (features, least) = (&features, plan.inputs.least);
        let sent_now = Vec::new();
        let mut telling = Telling {
            transport,
            tag,
            links,
            neighbours,
            labels,
            answers,
            least,
            response,
            features,
            classes,
            sent: sent_now,
        };
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

/// Rows with more columns behind theirs, in memory of their own: sparse where some of them are.
fn beside(rows: Operand, more: &[Operand]) -> Operand {
    let (count, all) = (rows.view().rows(), || std::iter::once(&rows).chain(more));
    let columns = all().map(|rows| rows.view().columns()).sum::<usize>();
    if !all().any(|rows| matches!(rows, Operand::Sparse(_))) {
        let mut side_by_side = Vec::with_capacity(count * columns);
        (0..count).for_each(|row| all().for_each(|rows| side_by_side.extend_from_slice(rows.dense_row(row))));
        return Operand::Dense(Matrix::from_vec(count, columns, side_by_side));
    }
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..count {
        let mut before = 0;
        for rows in all() {
            let width = rows.view().columns() as u32;
            match rows {
                Operand::Sparse(rows) => {
                    let own = rows.offsets()[row]..rows.offsets()[row + 1];
                    indices.extend(rows.indices()[own.clone()].iter().map(|column| before + column));
                    values.extend_from_slice(&rows.values()[own]);
                }
                rows => {
                    indices.extend(before..before + width);
                    values.extend_from_slice(rows.dense_row(row));
                }
            }
            before += width;
        }
        offsets.push(values.len());
    }
    Operand::Sparse(SparseRows::new(columns, offsets, indices, values))
}

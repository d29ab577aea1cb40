//! The one round of a stage that is solved: sums over own training rows, added up over workers, and the same equations
//! solved by each.

use laconic_graph::dataset::Labels;
use laconic_nn::Operand;
use laconic_nn::kernels::normal_equations::{NormalEquations, Shape, Solution, solve};

use crate::error::{Result, TrainError};
use crate::schedule::{Ridge, Stage};
use crate::worker::Worker;

/// The shape of the sums of a stage.
pub fn shape(stage: &Stage) -> Shape {
    let facts = stage.first().facts();
    Shape { columns: facts.inputs, outputs: facts.outputs }
}

/// Sums over own training rows; a row counts for what its class weighs.
pub fn own_sums(worker: &Worker, stage: &Stage, rows: &Operand) -> Vec<f32> {
    let (local, mut sums) = (&worker.local, NormalEquations::new(shape(stage)));
    let Labels::Single { values, .. } = &local.labels else { return sums.into_sums() };
    for (row, _) in local.masks[0].iter().enumerate().filter(|(_, trains)| **trains) {
        let class = values[row] as usize;
        sums.add(rows, row, (class, worker.class_weights.get(class).map_or(1.0, |&weight| weight.into())));
    }
    sums.into_sums()
}

/// The parameters that solve a stage for sums over all workers, and the mean of squared errors.
///
/// # Errors
/// If the equations have no solution.
pub fn solved(stage: &Stage, ridge: Ridge, sums: &[f32]) -> Result<(Vec<f32>, f64)> {
    let no_solution = || {
        let what = "the columns that the model reads say too much of the same for so small a penalty, or a feature is \
            no number; expected a larger one";
        TrainError::config(format!("schedule.ridge = {}: {what}", ridge.penalty))
    };
    let Solution { mut weight, bias, error } = solve(shape(stage), sums, ridge.penalty).ok_or_else(no_solution)?;
    weight.extend(bias);
    Ok((weight, error))
}

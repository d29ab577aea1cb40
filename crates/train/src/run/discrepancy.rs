//! How differently parts would have a model move: what is learned on each apart from the others, before anything is.

use laconic_graph::dataset::Split;
use laconic_graph::part::Part;
use laconic_nn::network::is_running;
use laconic_nn::optimiser::OPTIMISERS;

use super::front::{Data, train};
use super::options::Options;
use crate::config::Config;
use crate::error::{Result, TrainError};

/// Changes no parameter: what is left are the initial values.
const NO_STEP: f32 = 1e-30;

/// The largest distance between the gradients of any two parts over the length of their mean, at the initial
/// parameters of the configuration's model: 0 where all parts would have it move alike. Each gradient is that of the
/// mean loss over a part's training nodes, on the graph of the edges between its own nodes, without dropout. Parts
/// without labelled training nodes are left out; `None` where fewer than two are left.
///
/// # Errors
/// If the model cannot be trained on these parts.
pub fn gradient_discrepancy(config: &Config, parts: &[Part]) -> Result<Option<f64>> {
    let learns = |part: &&Part| {
        (0..part.roles.len()).any(|row| part.roles[row] & Split::TRAIN != 0 && part.labels.known(row) > 0)
    };
    let learning: Vec<&Part> = parts.iter().filter(learns).collect();
    let Some(first) = learning.first().filter(|_| learning.len() > 1) else { return Ok(None) };
    let initial = after_a_step(config, first, NO_STEP)?;
    let gradient = |part: &&Part| -> Result<Vec<f64>> {
        let moved = after_a_step(config, part, 1.0)?;
        Ok(initial.iter().zip(moved).map(|(before, after)| before - after).collect())
    };
    let gradients: Vec<Vec<f64>> = learning.iter().map(gradient).collect::<Result<_>>()?;
    let count = gradients.len() as f64;
    let mean = (0..initial.len()).map(|at| gradients.iter().map(|gradient| gradient[at]).sum::<f64>() / count);
    let length = mean.map(|value| value * value).sum::<f64>().sqrt();
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
    let pairs = gradients.iter().enumerate().flat_map(|(at, a)| gradients[..at].iter().map(move |b| apart(a, b)));
    let largest = pairs.fold(0.0, f64::max);
    Ok(Some(if largest == 0.0 { 0.0 } else { largest / length }))
}

/// Plain gradient descent: the optimiser that reads momentum, which is 0, and nothing else.
fn descent() -> &'static str {
    let plain = OPTIMISERS.iter().find(|kind| kind.options.contains(&"momentum"));
    plain.expect("plain descent is among the optimisers").name
}

/// All parameters after one step of plain gradient descent on a part alone.
fn after_a_step(config: &Config, part: &Part, lr: f32) -> Result<Vec<f64>> {
    let mut config = config.clone();
    config.model.dropout = 0.0;
    config.train.epochs = 1;
    config.train.optimiser = descent().to_owned();
    config.train.lr = lr;
    let run = train(&config, Data::Parts(vec![part.clone().alone()]), Options::default());
    let run = run.map_err(|error| TrainError::config(format!("part {}: {error}", part.index)))?;
    let moved = run.weights().into_iter().filter(|(name, _)| !is_running(name));
    Ok(moved.flat_map(|(_, (_, values))| values).map(f64::from).collect())
}

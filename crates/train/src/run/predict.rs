//! Predictions of a finished run: the trained model over every part, exactly, halo exchanged.

use std::sync::Arc;

use laconic_graph::dataset::Ids;
use laconic_graph::part::Part;
use laconic_wire::{Metered, Transport, threads};

use super::threads::panicked;
use crate::config::Config;
use crate::error::{Result, TrainError};
use crate::fit::stages::{self, Inferred};
use crate::plan::{Members, Plan};
use crate::record::weights::{Weights, parameters};
use crate::run::source::Source;
use crate::worker::{Worker, WorkerOptions};

/// What a model says about the nodes of one part.
pub struct Predictions {
    /// Global ids of the part's nodes.
    pub nodes: Vec<u64>,
    /// The user's ids.
    pub ids: Ids,
    /// Whether a node may have several classes.
    pub multi_label: bool,
    /// Logits and embeddings.
    pub inferred: Inferred,
}

/// Runs a model for this many feature columns and classes over all parts, a thread a part. The data need no labels.
pub fn predict_parts(
    (members, config): (&Members, &Config),
    mut source: Source,
    weights: &Weights,
    [columns, classes]: [usize; 2],
) -> Result<Vec<Predictions>> {
    let ends = threads(source.parts() as usize, config.deadline());
    let mut parts = (0..source.parts()).map(|index| source.take(index)).collect::<Result<Vec<Part>>>()?;
    for part in &mut parts {
        if part.global.columns != columns {
            let what = format!("the model reads {columns} feature columns, the data have {}", part.global.columns);
            return Err(TrainError::config(what));
        }
        part.global.classes = classes;
    }
    let plan = Plan::for_model(members, config, [columns, classes])?;
    std::thread::scope(|scope| {
        let one = |(part, end)| {
            let plan = plan.clone();
            scope.spawn(move || predict_part(plan, part, Box::new(end), weights))
        };
        let handles: Vec<_> = parts.into_iter().zip(ends).map(one).collect();
        let results = handles
            .into_iter()
            .enumerate()
            .map(|(rank, handle)| handle.join().unwrap_or_else(|panic| Err(panicked(rank as u32, panic.as_ref()))));
        let (mut done, mut errors) = (Vec::new(), Vec::new());
        for result in results {
            match result {
                Ok(predictions) => done.push(predictions),
                Err(error) => errors.push(error),
            }
        }
        errors.sort_by_key(TrainError::is_consequence);
        errors.into_iter().next().map_or(Ok(done), Err)
    })
}

fn predict_part(plan: Plan, part: Part, end: Box<dyn Transport>, weights: &Weights) -> Result<Predictions> {
    let (nodes, ids) = (part.nodes.clone(), part.ids.clone());
    let multi_label = part.global.multi_label;
    let parameters = parameters(&plan.stages, weights)?;
    let (mut worker, x) = Worker::start(Arc::new(plan), Metered::new(end), part, WorkerOptions::default())?;
    let inferred = stages::infer(&mut worker, &parameters, x)?;
    worker.transport.finish()?;
    Ok(Predictions { nodes, ids, multi_label, inferred })
}

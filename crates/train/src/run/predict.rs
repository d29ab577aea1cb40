//! Predictions of a finished run: the trained model over every part, exactly, halo exchanged.

use std::sync::Arc;

use laconic_graph::dataset::Ids;
use laconic_graph::part::Part;
use laconic_wire::{Transport, threads};

use crate::config::Config;
use crate::error::{Result, TrainError};
use crate::record::weights::{Weights, parameters};
use crate::run::plan_stages;
use crate::run::source::Source;
use crate::schedule::staged::{self, Inferred};
use crate::worker::{Worker, Workplace};

/// What a model says about the nodes of one part.
pub struct Predictions {
    /// Global ids.
    pub nodes: Vec<u64>,
    /// The user's ids.
    pub ids: Ids,
    /// Whether a node may have several classes.
    pub multi_label: bool,
    /// Logits and embeddings.
    pub inferred: Inferred,
}

/// Runs a model for this many feature columns and classes over all parts, a thread a part. The data need no labels.
pub fn predict(
    config: &Config,
    mut source: Source,
    weights: &Weights,
    [columns, classes]: [usize; 2],
) -> Result<Vec<Predictions>> {
    let config = Arc::new(config.clone());
    let ends = threads(source.parts() as usize, config.deadline());
    let mut parts = (0..source.parts()).map(|index| source.take(index)).collect::<Result<Vec<Part>>>()?;
    for part in &mut parts {
        if part.global.columns != columns {
            let what = format!("the model reads {columns} feature columns, the data have {}", part.global.columns);
            return Err(TrainError::config(what));
        }
        part.global.classes = classes;
    }
    std::thread::scope(|scope| {
        let one = |(part, end)| {
            let config = config.clone();
            scope.spawn(move || predict_part(config, part, Box::new(end), weights))
        };
        let handles: Vec<_> = parts.into_iter().zip(ends).map(one).collect();
        let results = handles.into_iter().enumerate().map(|(rank, handle)| {
            let message = "while predicting".to_owned();
            handle.join().unwrap_or(Err(TrainError::Panicked { rank: rank as u32, message }))
        });
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

fn predict_part(config: Arc<Config>, part: Part, end: Box<dyn Transport>, weights: &Weights) -> Result<Predictions> {
    let (nodes, ids) = (part.nodes.clone(), part.ids.clone());
    let multi_label = part.global.multi_label;
    let (_, stages) = plan_stages(&config, part.global.columns, part.global.classes)?;
    let parameters = parameters(&stages, weights)?;
    let workplace = Workplace { threads: 1, interrupt: Arc::default(), clock: None };
    let (mut worker, x) = Worker::start(config, end, part, &stages, workplace)?;
    let inferred = staged::infer(&mut worker, &stages, &parameters, x)?;
    worker.channel.finish()?;
    Ok(Predictions { nodes, ids, multi_label, inferred })
}

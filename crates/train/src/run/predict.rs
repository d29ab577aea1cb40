//! Predictions of a finished run: the trained model over every part, halo exchanged.

use std::sync::Arc;

use laconic_graph::dataset::{Ids, Labels, Split};
use laconic_graph::part::Part;
use laconic_wire::{Metered, Transport, threads};

use super::panic::panicked;
use crate::config::{Config, Widths};
use crate::error::{Result, TrainError};
use crate::exchange::shapes::Shapes;
use crate::fit::stages::{self, Inferred};
use crate::forecast::memory::{self, Memory};
use crate::plan::{Members, Plan};
use crate::record::weights::{Weights, parameters};
use crate::run::source::Source;
use crate::worker::evaluate::Scores;
use crate::worker::{Worker, WorkerOptions};

/// What a model says about the nodes of one part.
pub struct Predictions {
    /// Global ids of the part's nodes.
    pub nodes: Vec<u64>,
    /// The user's ids.
    pub ids: Ids,
    /// What is known of the nodes.
    pub labels: Labels,
    /// What the nodes are for, as [`Part::roles`] has it.
    pub roles: Vec<u8>,
    /// Whether a node may have several classes.
    pub multi_label: bool,
    /// Logits and embeddings.
    pub inferred: Inferred,
    /// Of a model of links, figures of the edges that are held out, over all parts, where some are to be judged.
    pub scores: Option<Scores>,
}

/// Says so where a model reads what is told of labels, and nobody has any to tell.
fn untold(plan: &Plan, parts: &[Part]) -> Option<String> {
    let trains = |part: &Part, row: usize| part.roles.get(row).is_some_and(|roles| roles & Split::TRAIN != 0);
    let tells = |part: &Part| (0..part.rows()).any(|row| trains(part, row) && part.labels.known(row) > 0);
    if parts.iter().any(tells) {
        return None;
    }
    let what = "no node of these data is a labelled training node, so there is nothing";
    if plan.propagates() {
        return Some(format!(
            "labels pass along edges (schedule.kind = {:?}): {what} to pass",
            plan.config.schedule.kind
        ));
    }
    let told = plan.inputs.told.iter().find(|kind| kind.tells_labels)?;
    Some(format!("the model reads {:?} (model.inputs): {what} in these columns", told.name))
}

/// A model about to be run over all parts, a thread a part.
pub struct Prediction {
    plan: Plan,
    parts: Vec<Part>,
    threads: usize,
    notes: Vec<String>,
}

impl Prediction {
    /// For a model of so many feature columns and classes. The data need no labels.
    ///
    /// # Errors
    /// If the data cannot be read, or do not suit the model.
    pub fn of(
        (members, config): (&Members, &Config),
        mut source: Source,
        widths: impl Into<Widths>,
    ) -> Result<Prediction> {
        let widths = widths.into();
        let Widths { columns, classes, relations } = widths;
        let mut plan = Plan::for_model(members, config, widths)?;
        let mut parts = (0..source.parts()).map(|index| source.take(index)).collect::<Result<Vec<Part>>>()?;
        if let Some(part) = parts.first() {
            plan = plan.judging_links(&part.global)?;
        }
        let odd = plan.check_weights(&parts)?;
        let unread = parts.first().map_or_else(Vec::new, |part| plan.unread(&part.global));
        let notes = unread.into_iter().chain(odd).chain(untold(&plan, &parts)).collect();
        for part in &mut parts {
            if part.global.columns != columns {
                let what = format!("the model reads {columns} feature columns, the data have {}", part.global.columns);
                return Err(TrainError::config(what));
            }
            if !plan.task.of_labels {
                // What nodes are is nothing to a model of links.
                (part.labels, part.global.multi_label) = (Labels::None, false);
                part.global.about.classes.clear();
            }
            if part.labels.classes() > classes {
                let what = format!("the model has {classes} classes, the data have {}", part.labels.classes());
                return Err(TrainError::config(what));
            }
            if relations > 0 && part.global.relations != relations {
                let there = part.global.relations;
                return Err(TrainError::config(format!(
                    "the model tells {relations} relations apart, the data {there}"
                )));
            }
            part.global.classes = classes;
            let rows = part.rows();
            if part.labels == Labels::None {
                part.labels = match part.global.multi_label {
                    true => Labels::Multi { classes, values: vec![Labels::UNKNOWN; rows * classes] },
                    false => Labels::Single { classes, values: vec![-1; rows] },
                };
            }
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let each = if config.train.threads > 0 { config.train.threads } else { cores / parts.len().max(1) };
        Ok(Prediction { plan, parts, threads: each.max(1), notes })
    }

    /// The model's run, resolved.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The parts, in the order of what is predicted for them.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What the model does not read of the data, and what is odd about what it reads, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How many workers predict.
    pub fn workers(&self) -> usize {
        self.parts.len()
    }

    /// `blake3:…` of the dataset that the parts were cut from; empty where nobody ever held the whole.
    pub fn data_digest(&self) -> &str {
        self.parts.first().map_or("", |part| &part.global.data_digest)
    }

    /// Refuses what needs more memory than there is, unless it is `forced`; the text is a warning where it comes near.
    ///
    /// # Errors
    /// If there is not enough.
    pub fn admit(&self, forced: bool) -> Result<Option<String>> {
        let mut all = Memory::default();
        for part in &self.parts {
            all.add_all(&memory::of_prediction(&Shapes::outline(part, self.plan.self_loops), &self.plan));
        }
        memory::admit(&all, (self.parts.len(), 1), forced)
    }

    /// Runs the model.
    ///
    /// # Errors
    /// If the weights are no such model's.
    pub fn run(self, weights: &Weights) -> Result<Vec<Predictions>> {
        let Prediction { plan, parts, threads: each, .. } = self;
        let ends = threads(parts.len(), plan.config.deadline());
        std::thread::scope(|scope| {
            let one = |(part, end)| {
                let plan = plan.clone();
                scope.spawn(move || predict_part(plan, part, Box::new(end), weights, each))
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
}

/// Runs a model for this many feature columns and classes over all parts, a thread a part. The data need no labels.
///
/// # Errors
/// As [`Prediction`]'s functions.
pub fn predict_parts(
    names: (&Members, &Config),
    source: Source,
    weights: &Weights,
    widths: impl Into<Widths>,
) -> Result<Vec<Predictions>> {
    Prediction::of(names, source, widths)?.run(weights)
}

fn predict_part(
    plan: Plan,
    part: Part,
    end: Box<dyn Transport>,
    weights: &Weights,
    threads: usize,
) -> Result<Predictions> {
    let (nodes, ids) = (part.nodes.clone(), part.ids.clone());
    let (labels, roles, multi_label) = (part.labels.clone(), part.roles.clone(), part.global.multi_label);
    let parameters = parameters(&plan.stages, weights)?;
    let options = WorkerOptions { threads, ..WorkerOptions::default() };
    let mut worker = Worker::start(Arc::new(plan), Metered::new(end), part, options)?;
    let inferred = stages::infer(&mut worker, &parameters)?;
    let scores = stages::judge(&mut worker, &parameters, &inferred)?;
    worker.transport.finish()?;
    // Everything else is in the order of ids.
    let inferred = inferred.by_id(&worker.local.by_id);
    Ok(Predictions { nodes, ids, labels, roles, multi_label, inferred, scores })
}

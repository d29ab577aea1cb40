//! The front door: train, forecast, load, predict and resume with one call each, on data in memory or on disk.

use std::path::Path;

use laconic_graph::dataset::Dataset;
use laconic_graph::part::{Part, parts_here};
use laconic_wire::Ledger;

use super::options::{Options, Outcome};
use super::other::other_of;
use super::predict::{Predictions, predict_parts};
use super::source::{Source, assigned, foreseen_of};
use super::threads::run_threads;
use crate::config::{Config, Widths};
use crate::error::{Result, TrainError};
use crate::fit::stages::Trained;
use crate::forecast::costs::{Costs, forecast, forecast_counted, forecast_some};
use crate::plan::{Members, Plan};
use crate::record::summary::{Summary, chosen_messages};
use crate::record::weights::{self, Model, Weights, weights};

/// What a run is about.
#[non_exhaustive]
pub enum Data {
    /// What `data.path` names: a dataset in any format that is recognised, or a folder of parts.
    Configured,
    /// A dataset in memory with the number of the split that counts; cut as `[partition]` says.
    Dataset(Box<Dataset>, Option<usize>),
    /// Parts in memory, one for each worker.
    Parts(Vec<Part>),
}

/// A dataset, of whose splits the first counts.
impl From<Dataset> for Data {
    fn from(dataset: Dataset) -> Data {
        let split = (!dataset.splits.is_empty()).then_some(0);
        Data::Dataset(Box::new(dataset), split)
    }
}

impl From<Vec<Part>> for Data {
    fn from(parts: Vec<Part>) -> Data {
        Data::Parts(parts)
    }
}

impl Data {
    pub(crate) fn source(self, members: &Members, config: &Config) -> Result<Source> {
        match self {
            Data::Configured => Source::open(members, config, None),
            Data::Parts(parts) if parts.is_empty() => Err(TrainError::config("there are no parts")),
            Data::Parts(parts) => Ok(Source::of(parts)),
            Data::Dataset(dataset, split) => {
                Ok(Source::of(assigned(members, config, &dataset, split, None)?.cut(&dataset, split)?))
            }
        }
    }
}

/// A finished run.
pub struct Run {
    /// What other programs read of it.
    pub summary: Summary,
    /// What each worker sent, in rank order, by round, peer, kind, layer and direction; totals alone where accounts
    /// were written into a folder and not kept ([`Options::keep_accounts`]).
    pub ledgers: Vec<Ledger>,
    trained: Trained,
    plan: Plan,
}

impl Run {
    fn of(outcomes: Vec<Outcome>) -> Result<Run> {
        let ledgers = outcomes.iter().map(|outcome| outcome.sent.clone()).collect();
        let first = outcomes.into_iter().next().ok_or_else(|| TrainError::config("there are no workers"))?;
        let summary = first.summary.expect("worker 0 summarises a run that ended");
        Ok(Run { summary, ledgers, trained: first.trained, plan: Plan::clone(&first.plan) })
    }

    /// A figure of the test nodes in the best round by validation, such as `accuracy`, `micro_f1` or `loss`; `None`
    /// where no test node has a label, it was not measured, or it is not defined (0/0).
    pub fn test(&self, metric: &str) -> Option<f64> {
        self.summary.metrics.scores.test.get(metric).copied().flatten()
    }

    /// The weights of the best round, under PyTorch Geometric's names.
    pub fn weights(&self) -> Weights {
        weights(&self.plan.stages, &self.trained.chosen)
    }
}

/// Trains with all workers as threads of this process.
///
/// # Errors
/// If the configuration or the data cannot be used, or a worker fails.
pub fn train(config: &Config, data: impl Into<Data>, options: Options) -> Result<Run> {
    options.members.check(config)?;
    let source = data.into().source(&options.members, config)?;
    Run::of(run_threads(config, source, options)?)
}

/// What every worker would send, in all, and the memory that it would take; nothing runs. Of a folder that neither
/// holds all parts nor counts them, bounds for the workers whose parts are there.
///
/// # Errors
/// If the configuration or the data cannot be used, or a byte budget cannot be kept.
pub fn plan(members: &Members, config: &Config, data: impl Into<Data>) -> Result<Costs> {
    members.check(config)?;
    let mut source = data.into().source(members, config)?;
    // The aggregator of independent trainers sees all parts.
    let has_trainers = members.has_trainers(config)?;
    if let Source::Folder(dir, meta, _) = &source
        && !has_trainers
    {
        if let Some(costs) = forecast_counted(members, config, meta, Ledger::of_totals)? {
            return Ok(costs);
        }
        let (here, meta) = (parts_here(dir, meta), meta.clone());
        if !here.is_empty() && here.len() < meta.parts as usize {
            let parts = here.into_iter().map(|index| source.take(index)).collect::<Result<Vec<Part>>>()?;
            return forecast_some(members, config, (&meta, &parts), Ledger::of_totals);
        }
    }
    let mut notes = source.notes().to_vec();
    let is_cut = matches!(source, Source::Cut(..));
    let parts = source.all()?;
    if !is_cut {
        let pieces = parts.iter().map(|part| (&part.labels, part.roles.as_slice()));
        notes.extend(foreseen_of(members, config, pieces)?);
    }
    let mut costs = forecast(members, config, &parts, Ledger::of_totals)?;
    costs.notes.splice(..0, notes);
    Ok(costs)
}

/// What a trained model says about the nodes of a graph, in the order of its parts. The data need no labels, and as
/// many feature columns as the model was trained on.
///
/// # Errors
/// If the data do not suit the model.
pub fn predict(run: &Run, data: impl Into<Data>) -> Result<Vec<Predictions>> {
    let (members, config) = (&run.plan.members, &run.plan.config);
    let source = data.into().source(members, config)?;
    let widths = Widths {
        columns: run.plan.inputs.feature_columns,
        classes: run.plan.stages[run.plan.stages.len() - 1].outputs(),
        relations: if run.plan.is_relational() { run.plan.relations } else { 0 },
    };
    predict_parts((members, config), source, &run.weights(), widths)
}

/// Goes on from the last checkpoint in a run's folder; the end has the parameters of a run that was never stopped, bit
/// for bit.
///
/// # Errors
/// If there is no checkpoint of this run, or as [`train`].
pub fn resume(folder: &Path, options: Options) -> Result<Run> {
    let config = options.members.load(&folder.join("config.toml"), &[])?;
    let options = Options { out: Some(folder.to_owned()), resume: true, ..options };
    let source = Source::open(&options.members, &config, None)?;
    Run::of(run_threads(&config, source, options)?)
}

/// A trained model, as the folder of its run has it.
pub struct Loaded {
    members: Members,
    config: Config,
    model: Model,
}

/// Loads the model of a run that has ended, to predict with.
///
/// # Errors
/// If the folder has no model, the run was stopped before its last stage, or a file is damaged.
pub fn load(folder: &Path, members: Members) -> Result<Loaded> {
    let mut config = members.load(&folder.join("config.toml"), &[])?;
    let model = weights::read_of_run(folder)?;
    if let Some(chosen) = chosen_messages(folder, &config)? {
        config.messages = chosen;
    }
    Ok(Loaded { members, config, model })
}

impl Loaded {
    /// The weights, under PyTorch Geometric's names.
    pub fn weights(&self) -> &Weights {
        &self.model.weights
    }

    /// What each class is called, in the order of the columns of what is predicted.
    pub fn classes(&self) -> Vec<String> {
        (0..self.model.card.classes).map(|class| self.model.card.about.class(class)).collect()
    }

    /// The configuration of the run.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// `blake3:…` of the dataset that it was trained on, prepared as the run did; empty where nobody held the whole.
    pub fn data_digest(&self) -> &str {
        &self.model.card.data_digest
    }

    /// Whether a node may have several classes.
    pub fn is_multi_label(&self) -> bool {
        self.model.card.multi_label
    }

    /// What the model says of nodes that it was not trained on, with one worker: features are prepared here, with the
    /// means and deviations of the run's, and labels, if there are any, are told by the names of their classes.
    ///
    /// # Errors
    /// If the data do not suit the model.
    pub fn predict_other(&self, dataset: Dataset) -> Result<Vec<Predictions>> {
        let (members, config) = (&self.members, &self.config);
        let source = other_of(members, config, dataset, &self.model.card)?;
        predict_parts((members, config), source, &self.model.weights, self.model.widths())
    }

    /// As [`predict`]. Of data in memory features are to be prepared as the run's were, and columns in their order.
    ///
    /// # Errors
    /// If the data do not suit the model.
    pub fn predict(&self, data: impl Into<Data>) -> Result<Vec<Predictions>> {
        let (members, config) = (&self.members, &self.config);
        let source = data.into().source(members, config)?;
        predict_parts((members, config), source, &self.model.weights, self.model.widths())
    }
}

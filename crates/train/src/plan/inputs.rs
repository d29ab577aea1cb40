//! What the first layer of a model reads.

use laconic_graph::part::GlobalCounts;

use super::members::Members;
use super::{Plan, TaskKind};
use crate::config::{Config, Widths, one_of};
use crate::error::{Result, TrainError};
use crate::inputs::{FEATURES, InputKind};

/// `model.inputs`, with names looked up.
#[derive(Debug, Clone, Default)]
pub struct ModelInputs {
    /// Whether own features are among them.
    pub features: bool,
    /// What is told once, in the order of columns.
    pub told: Vec<&'static InputKind>,
    /// The number of classes that is told of.
    pub classes: usize,
}

impl ModelInputs {
    /// What a configuration names, for data of these widths.
    ///
    /// # Errors
    /// If a name is unknown or stands twice, an input comes before one that it is made from, the run has nobody who
    /// tells, or the policy does not allow it.
    pub fn of(members: &Members, config: &Config, classes: usize) -> Result<ModelInputs> {
        let refuse =
            |what: String| Err(TrainError::config(format!("model.inputs = {:?}: {what}", config.model.inputs)));
        let mut found = ModelInputs { classes, ..ModelInputs::default() };
        let names: Vec<&str> = std::iter::once(FEATURES).chain(members.inputs.names()).collect();
        for name in &config.model.inputs {
            one_of("model.inputs", name, &names)?;
            if name == FEATURES && !found.features {
                found.features = true;
                continue;
            }
            let Some(kind) =
                members.inputs.get(name).filter(|kind| found.told.iter().all(|told| told.name != kind.name))
            else {
                return refuse(format!("{name:?} stands there twice"));
            };
            if let Some(from) = kind.from.iter().find(|from| found.told.iter().all(|told| told.name != **from)) {
                return refuse(format!("{name:?} is made from {from:?}, which has to come before it"));
            }
            if !config.policy.allows(kind.content)? {
                let how = "policy.allow = [\"labels\"] does".to_owned();
                return Err(TrainError::NotAllowed { input: kind.name, content: kind.content, how });
            }
            found.told.push(kind);
        }
        match (found.features, found.told.is_empty()) {
            (false, true) => refuse(format!("expected one of {} at least", names.join(", "))),
            (_, true) => Ok(found),
            _ => match found.reason_against(members, config)? {
                Some(what) => refuse(what),
                None => Ok(found),
            },
        }
    }

    /// Why these inputs cannot be told in such a run.
    fn reason_against(&self, members: &Members, config: &Config) -> Result<Option<String>> {
        let name = self.told.first().map_or(FEATURES, |kind| kind.name);
        let selection = members.selection(config)?;
        let made = (selection.build)(&config.messages.selection.config().options);
        let deletes = made.is_ok_and(|made| made.is_some_and(|made| made.deletes_edges()));
        let task: &TaskKind = members.task(config)?;
        Ok(if !task.of_labels {
            Some(format!("{name:?} tells classes of nodes, and task.kind = {:?} learns none", task.name))
        } else if members.has_trainers(config)? {
            let kind = &config.schedule.kind;
            Some(format!(
                "{name:?} is told between workers, and the trainers of schedule.kind = {kind:?} meet nobody; \
                          train.sync_every with \"synchronous\" averages models of workers that do"
            ))
        } else if config.data.inductive {
            Some(format!("{name:?} has edges between training nodes and others, which data.inductive leaves out"))
        } else if deletes {
            let kind = &config.messages.selection.config().kind;
            Some(format!("{name:?} comes along the edges between workers, which messages.selection = {kind} takes out"))
        } else {
            None
        })
    }

    /// How many columns the first layer reads where so many are features.
    pub fn columns(&self, features: usize) -> usize {
        let told: usize = self.told.iter().map(|kind| (kind.columns)(self.classes)).sum();
        told + if self.features { features } else { 0 }
    }
}

impl Plan {
    /// The values of so many own rows that the first layer reads: of features those that are stored, and what is told
    /// beside them.
    pub fn input_values(&self, rows: usize, of_features: usize) -> usize {
        rows * self.inputs.columns(0) + if self.inputs.features { of_features } else { 0 }
    }

    /// Refuses data of which nothing can be told, or that have no features for a model that reads them.
    pub(super) fn check_inputs(config: &Config, counts: &GlobalCounts) -> Result<()> {
        let reads_features = config.model.inputs.iter().any(|name| name == FEATURES);
        let tells = config.model.inputs.iter().any(|name| name != FEATURES);
        if reads_features && counts.columns == 0 {
            let what = "has no node features; give some with data.features_path";
            return Err(TrainError::config(format!("{} {what}", counts.dataset)));
        }
        if tells && counts.multi_label {
            let what = format!("a node of {} may have several classes, and one is told", counts.dataset);
            return Err(TrainError::config(format!("model.inputs = {:?}: {what}", config.model.inputs)));
        }
        Ok(())
    }

    /// The widths of a model's inputs and outputs, where features have these.
    pub(super) fn widths(inputs: &ModelInputs, widths: Widths) -> Widths {
        Widths { columns: inputs.columns(widths.columns), ..widths }
    }
}

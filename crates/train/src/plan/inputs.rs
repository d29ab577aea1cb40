//! What the first layer of a model reads.

use laconic_graph::part::GlobalCounts;
use laconic_nn::layer::LayerKind;
use laconic_wire::{Content, FramePurpose, Tag};

use super::members::Members;
use super::{Plan, TaskKind};
use crate::config::{Config, Widths, one_of};
use crate::error::{Result, TrainError};
use crate::inputs::{FEATURES, InputKind, LEAST, Response, Wide};
use crate::messages::Messages;
use crate::schedule::{Propagated, Stage};

/// `model.inputs`, with names looked up.
#[derive(Debug, Clone, Default)]
pub struct ModelInputs {
    /// Whether own features are among them.
    pub features: bool,
    /// What is told once, in the order of columns.
    pub told: Vec<&'static InputKind>,
    /// How owners answer in place of telling labels as they are.
    pub response: Option<Response>,
    /// How many training nodes a sum of labels is of, at least.
    pub least: u32,
    /// The number of classes that is told of.
    pub classes: usize,
    /// The number of feature columns, whether they are among the inputs or not.
    pub feature_columns: usize,
    /// Whether a worker of this plan has its rows already, in the place of features: somebody else of its process was
    /// told.
    pub given: bool,
}

impl ModelInputs {
    /// What a configuration names, for data of these widths.
    ///
    /// # Errors
    /// If a name is unknown or stands twice, an input comes before one that it is made from, the run has nobody who
    /// tells, or the policy does not allow it.
    pub fn of(members: &Members, config: &Config, widths: Widths) -> Result<ModelInputs> {
        let refuse =
            |what: String| Err(TrainError::config(format!("model.inputs = {:?}: {what}", config.model.inputs)));
        let Widths { columns: feature_columns, classes, .. } = widths;
        let response = config.policy.response()?;
        let least = config.policy.label_group.unwrap_or(LEAST);
        let mut found = ModelInputs { classes, feature_columns, response, least, ..ModelInputs::default() };
        if let Some(propagated) = members.schedule(config)?.propagates {
            let what = format!("schedule.kind = {:?}", config.schedule.kind);
            propagated.contents().iter().try_for_each(|&content| check_leave(config, &what, content))?;
            if let Some(why) = reason_against(members, config)? {
                return Err(TrainError::config(format!("{what} {why}")));
            }
            if found.response.is_some() {
                return Err(TrainError::config(format!("policy.label_epsilon: {what} passes labels on as they are")));
            }
            if let Some(least) = config.policy.label_group {
                let what = format!("policy.label_group = {least}: {what} passes labels on one by one");
                return Err(TrainError::config(what));
            }
            if propagated == Propagated::Labels {
                return Ok(found);
            }
        }
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
            if let Some(content) = kind.content.filter(|_| kind.tells_labels) {
                check_leave(config, &format!("model.inputs has {:?}", kind.name), content)?;
                check_group(config, kind)?;
            }
            found.told.push(kind);
        }
        let tells = found.told.iter().any(|kind| kind.tells_labels && kind.content.is_some());
        if found.response.is_some() && !tells {
            return refuse("policy.label_epsilon is about labels, and none are told".to_owned());
        }
        match (found.features, found.told.is_empty()) {
            (false, true) => refuse(format!("expected one of {} at least", names.join(", "))),
            (_, true) => Ok(found),
            _ => match reason_against(members, config)? {
                Some(what) => refuse(format!("{:?} {what}", found.told.first().map_or(FEATURES, |kind| kind.name))),
                None => Ok(found),
            },
        }
    }

    /// How many columns the first layer reads.
    pub fn columns(&self) -> usize {
        self.told_columns() + if self.features { self.feature_columns } else { 0 }
    }

    /// How wide what is told of is.
    pub fn wide(&self) -> Wide {
        Wide { classes: self.classes, features: self.feature_columns }
    }

    fn told_columns(&self) -> usize {
        self.told.iter().map(|kind| (kind.columns)(self.wide())).sum()
    }

    /// Whether many workers have other inputs than one would.
    pub fn are_lossy(&self) -> bool {
        self.told.iter().any(|kind| kind.loses) || self.response.is_some()
    }
}

/// Refuses layers and codecs that rows which pass along edges cannot be had with.
pub(super) fn check_propagation(
    (config, layer): (&Config, &LayerKind),
    stages: &[Stage],
    messages: &Messages,
) -> Result<()> {
    let Some(stage) = stages.iter().find(|stage| stage.propagation.is_some()) else { return Ok(()) };
    let kind = &config.schedule.kind;
    if layer.is_relational {
        let (arch, what) = (&config.model.arch, "labels pass along edges of one relation");
        return Err(TrainError::config(format!("schedule.kind = {kind:?} with model.arch = {arch:?}: {what}")));
    }
    match stage.propagation_tags(0).into_iter().find(|tag| !messages.coding(*tag).suits_figures()) {
        None => Ok(()),
        Some(Tag { layer, .. }) => {
            let what = "expected exact, half, codewords, or quantised with a fixed number of bits";
            Err(TrainError::config(format!(
                "schedule.kind = {kind:?}: the rows of layer {layer} cross once and are scores already: {what} \
                 (messages.forward, or messages.layers.{layer}.forward)"
            )))
        }
    }
}

/// Refuses what would leave this worker without leave; `what` asks for it.
fn check_leave(config: &Config, what: &str, content: Content) -> Result<()> {
    let (denied, is_allowed) = (config.policy.list()?, config.policy.allowed()?);
    let denied = denied.is_some_and(|list| list.denies(content, FramePurpose::Training));
    let how = match (denied, is_allowed(content)) {
        (true, _) => "policy.deny has it",
        (false, false) => "policy.allow = [\"labels\"] would",
        (false, true) => return Ok(()),
    };
    Err(TrainError::NotAllowed { what: what.to_owned(), content, how })
}

/// Refuses what tells labels one by one where a policy allows sums of several alone.
fn check_group(config: &Config, kind: &InputKind) -> Result<()> {
    match config.policy.label_group {
        Some(0) => Err(TrainError::config("policy.label_group = 0: expected 1 node or more")),
        Some(least) if !kind.tells_sums => {
            let what = format!("model.inputs has {:?}, which tells labels one by one", kind.name);
            Err(TrainError::config(format!("policy.label_group = {least}: {what}; \"label_sums\" tells sums")))
        }
        _ => Ok(()),
    }
}

/// Why classes of nodes cannot be told in such a run, behind the name of what would tell them.
fn reason_against(members: &Members, config: &Config) -> Result<Option<String>> {
    let selection = members.selection(config)?;
    let made = (selection.build)(&config.messages.selection.config().options);
    let deletes = made.is_ok_and(|made| made.is_some_and(|made| made.deletes_edges()));
    let task: &TaskKind = members.task(config)?;
    Ok(if !task.of_labels {
        Some(format!("tells classes of nodes, and task.kind = {:?} learns none", task.name))
    } else if config.data.inductive {
        Some("has edges between training nodes and others, which data.inductive leaves out".to_owned())
    } else if deletes {
        let kind = &config.messages.selection.config().kind;
        Some(format!("comes along the edges between workers, which messages.selection = {kind} takes out"))
    } else {
        None
    })
}

impl Plan {
    /// The values of so many own rows that the first layer reads: of features those that are stored, and what is told
    /// beside them.
    /// Means of sparse features have as many values as all neighbours together, at most, and about.
    pub fn input_values(&self, rows: usize, of_features: usize, edges: usize) -> usize {
        let (wide, all) = (self.inputs.wide(), rows * self.inputs.feature_columns);
        let (mut values, mut of_means) = (if self.inputs.features { of_features } else { 0 }, of_features);
        for kind in &self.inputs.told {
            values += if kind.content == Some(Content::Features) {
                of_means =
                    if of_means < all { (of_means / rows.max(1) * edges).min(all.saturating_sub(1)) } else { all };
                of_means
            } else {
                rows * (kind.columns)(wide)
            };
        }
        values
    }

    /// Refuses data of which nothing can be told, or that have no features for a model that reads them.
    pub(super) fn check_inputs(members: &Members, config: &Config, counts: &GlobalCounts) -> Result<()> {
        let propagates = members.schedule(config)?.propagates;
        if propagates.is_some() && counts.multi_label {
            let (kind, what) = (&config.schedule.kind, "may have several classes, and one is propagated");
            return Err(TrainError::config(format!("schedule.kind = {kind:?}: a node of {} {what}", counts.dataset)));
        }
        if propagates == Some(Propagated::Labels) {
            return Ok(());
        }
        let told = |name: &String| members.inputs.get(name);
        let tells = config.model.inputs.iter().filter_map(told).any(|kind| kind.tells_labels);
        let reads_features = config.model.inputs.iter().any(|name| told(name).is_none_or(|kind| !kind.tells_labels));
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

    /// Whether labels, or what they make of scores, pass along edges.
    pub fn propagates(&self) -> bool {
        self.stages.iter().any(|stage| stage.propagation.is_some())
    }

    /// Refuses layers and codecs that rows which pass along edges cannot be had with.
    pub(super) fn check_propagation(&self) -> Result<()> {
        check_propagation((&self.config, self.layer), &self.stages, &self.messages)
    }

    /// Says by how much owners' answers hide labels, and what that is not said of.
    pub(super) fn labels_answered(&self) -> Option<String> {
        let response = self.inputs.response.as_ref()?;
        let [kept, classes] = [response.odds(self.inputs.classes)[0], self.inputs.classes as f64];
        let rows = if self.stages.iter().any(Stage::reads_neighbours) { ", nor of rows that cross" } else { "" };
        Some(format!(
            "policy.label_epsilon = {}: of {classes} classes owners tell the true one with probability {kept:.3}; all \
             that is told once of a node's label is made of one answer, and costs epsilon once; it is not said of \
             models and gradients, which learn from true labels{rows}",
            response.epsilon
        ))
    }

    /// Says so where layers read neighbours, in whose columns a node's own label is.
    pub(super) fn labels_come_back(&self) -> Option<String> {
        let mut told = self.inputs.told.iter().filter(|kind| kind.tells_labels);
        let told = told.next().filter(|_| self.stages.iter().any(Stage::reads_neighbours))?;
        let what = "so each training node sees its own label through them, and figures of training nodes are better \
            than those of others; model.arch = \"mlp\" reads own rows alone";
        Some(format!("model.inputs has {:?}, and layers read the rows of neighbours: {what}", told.name))
    }
}

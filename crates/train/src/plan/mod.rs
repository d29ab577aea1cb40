//! A run as it will be: what the configuration and the data's counts decide, resolved once, before anything runs.
//!
//! Up to here there are names; after this there are none. Whatever a schedule, codec, selection or layer has to say
//! about itself, the engine finds in the plan.

pub mod batching;
mod cadence;
mod check;
mod covers;
pub mod identity;
mod inputs;
pub(crate) mod kinds;
mod links;
mod load;
mod members;
mod narrow;
mod notes;
mod own;
pub mod power_sgd;
mod precision;
mod resumed;
mod solved;
mod targets;
pub(crate) mod trainers;
mod unread;
mod within;

use std::sync::Arc;

use laconic_graph::links::NegativeScope;
use laconic_graph::order::OrderKind;
use laconic_graph::part::GlobalCounts;
use laconic_nn::Layer;
use laconic_nn::layer::LayerKind;
use laconic_nn::metric::Metric;
use laconic_nn::network::{INPUTS, LIN};
use laconic_nn::optimiser::{OptimiserKind, RateSchedule, RateSpec};

use crate::config::{ClassWeights, Config, EvaluationInputs, MessagesConfig, Pace, Widths};
use crate::error::{Result, TrainError};
use crate::messages::{Messages, evaluates_alone};
use crate::schedule::{Blueprint, Stage};
use crate::selection::{Scope, Selection};
use batching::Batching;
use covers::check_covers;
use solved::check_solved;

pub use cadence::Cadence;
pub(crate) use cadence::ROUNDS_MAX;
pub use inputs::ModelInputs;
pub(crate) use kinds::makes_another;
pub use kinds::{
    AgreementKind, AgreementRegistry, BatchingKind, BatchingRegistry, Made, TaskKind, TaskRegistry, Words,
};
pub use links::{LinkPlan, LinkSets, RankedAmong};
pub use members::Members;
pub use narrow::Reader;
pub use resumed::Resumed;
pub(crate) use targets::has_labels_to_learn;
pub use trainers::TrainersPlan;
pub use within::Within;

/// A run, resolved.
#[derive(Clone)]
pub struct Plan {
    /// What was typed: of it only numbers and paths are read from here on.
    pub config: Arc<Config>,
    /// Who the names in it stand for.
    pub members: Members,
    /// The kind of layer.
    pub layer: &'static LayerKind,
    /// What the first layer reads.
    pub inputs: ModelInputs,
    /// Whether nodes are their own neighbours.
    pub self_loops: bool,
    /// How many relations the data's edges are of; 0 where none is said.
    pub relations: usize,
    /// Whether the data's edges have weights.
    pub weighted: bool,
    /// What the data say of edges and nothing in the model reads, a line each.
    unread: Vec<String>,
    /// How a worker orders its own rows.
    pub order: &'static OrderKind,
    /// What turns gradients into steps.
    pub optimiser: &'static OptimiserKind,
    /// What is learned.
    pub task: &'static TaskKind,
    /// Which pairs it is learned from, and how they are judged; `None` where targets are no pairs.
    pub links: Option<Arc<LinkPlan>>,
    /// What is trained, one stage after the other.
    pub stages: Arc<[Stage]>,
    /// How rows and parameters become bytes.
    pub messages: Messages,
    /// Which halo rows travel in a round of training; `None` where all do.
    pub selection: Option<Arc<dyn Selection>>,
    /// Whether sums of rows stand for rows in exchanges, where that takes fewer.
    pub covers: bool,
    /// Which rows cross for inputs that never change, where the stage does not sample them.
    frozen: Scope,
    /// Which rows evaluations exchange.
    pub evaluation: Scope,
    /// What evaluations know of the neighbours' inputs where these cross once.
    evaluation_inputs: EvaluationInputs,
    /// Whether training sees nothing but training nodes and the edges between them.
    pub inductive: bool,
    /// Whether training is on the graph without the edges between workers.
    pub deletes_edges: bool,
    /// How training is divided into batches; `None` where every round is on all nodes.
    pub batching: Option<Batching>,
    /// When workers agree, evaluate and write checkpoints.
    pub cadence: Cadence,
    /// Where workers are independent trainers: when their models are averaged, and how.
    pub trainers: Option<TrainersPlan>,
    /// How the learning rate changes.
    pub rate: RateSchedule,
    /// What is measured; the first chooses the best round.
    pub metrics: Vec<Metric>,
    /// How far labels of training nodes differ between parts, where somebody sees all of them.
    pub label_skew: Option<f64>,
    /// What each part is called; empty where parts are called by their numbers.
    pub part_names: Vec<String>,
    /// What classes count for in the loss of training.
    pub class_weights: Option<ClassWeights>,
    /// How many counts of classes are added up over workers at the start: none, or for each class its training nodes,
    /// or for each label the nodes that have it and those that have it not.
    pub class_counts: usize,
    /// What the clock of bytes shows before each round of each stage; nothing where no controller follows it.
    bytes_before: Arc<[Vec<f64>]>,
}

fn rate_spec(config: &Config) -> RateSpec {
    RateSpec { step: config.train.lr_step, factor: config.train.lr_factor }
}

/// Refuses what stands for several runs where one is meant.
fn refuse_auto(config: &Config) -> Result<()> {
    if !config.is_several() {
        return Ok(());
    }
    let what = "it stands for several runs, which `laconic train` tries and `laconic plan` predicts";
    Err(TrainError::config(format!("{}: {what}; nothing else reads it", config.several_by())))
}

/// Sets what stages cannot know of themselves: how long rates run, and whether inputs that are masked anew may be kept.
fn fit_stages(stages: &mut [Stage], config: &Config, messages: &Messages) {
    for (index, stage) in stages.iter_mut().enumerate() {
        // Steps of independent trainers follow from their data, too.
        if let (false, Pace::Epochs(epochs)) = (config.train.horizon.is_empty(), config.horizon_of(index)) {
            stage.span = u32::try_from(epochs).unwrap_or(u32::MAX);
        }
        stage.cache_inputs &= !(stage.redraws && messages.redraw(stage.input_tag(0)));
    }
}

impl Plan {
    /// Resolves a configuration for data of these counts.
    ///
    /// # Errors
    /// If the data cannot be trained on, a name is unknown, or a key names a layer that is not there.
    pub fn of(config: &Config, counts: &GlobalCounts) -> Result<Plan> {
        Plan::with(&Members::default(), config, counts)
    }

    /// As [`Plan::of`], with members of one's own.
    ///
    /// # Errors
    /// As [`Plan::of`].
    pub fn with(members: &Members, config: &Config, counts: &GlobalCounts) -> Result<Plan> {
        Plan::check_inputs(members, config, counts)?;
        let task = members.task(config)?;
        (task.check)(config, counts)?;
        check::refuse_uncounted(config, task, counts)?;
        let model = Plan::for_model(members, config, Widths::of(counts))?;
        model.check_solved(counts)?;
        let deletes_edges = model.selection.as_ref().is_some_and(|selection| selection.deletes_edges());
        let (weighted, unread) = (counts.weighted, model.unread(counts));
        let part_names = counts.part_names.clone();
        let (plan, targets) = (task.resolve)(Plan { deletes_edges, weighted, unread, part_names, ..model }, counts)?;
        if plan.links.is_some() != task.of_pairs {
            let what = "its entry says of_pairs, and its plan is another";
            return Err(TrainError::config(format!("task.kind = {:?}: {what}", task.name)));
        }
        let plan = plan.in_batches(counts, targets)?;
        plan.check_trainers()?;
        plan.check_layers()?;
        Ok(plan)
    }

    /// Refuses messages of layers that there are not.
    fn check_layers(&self) -> Result<()> {
        let last = self.stages.iter().map(|stage| usize::from(stage.last_layer())).max();
        let beyond = |layer: &&String| layer.parse().is_ok_and(|layer: usize| Some(layer) > last);
        match self.config.messages.layers.keys().find(beyond) {
            None => Ok(()),
            Some(layer) => {
                let what = format!("messages.layers.{layer}: the last layer is {}", last.unwrap_or(0));
                Err(TrainError::config(what))
            }
        }
    }

    /// As [`Plan::with`], for a model with so many feature columns and classes that is run and not trained: nothing is
    /// measured.
    ///
    /// # Errors
    /// If a name is unknown or a value makes no sense.
    pub fn for_model(members: &Members, config: &Config, widths: impl Into<Widths>) -> Result<Plan> {
        members.check(config)?;
        refuse_auto(config)?;
        let (kind, mut widths): (_, Widths) = (members.layer(config)?, widths.into());
        let links = LinkPlan::of(members, config, widths.relations)?;
        widths.classes = links.as_ref().map_or(widths.classes, |_| config.model.hidden);
        let inputs = ModelInputs::of(members, config, widths)?;
        let architecture = config.model.architecture(Widths { columns: inputs.columns(), ..widths });
        let blueprint = Blueprint { config, kind, architecture: &architecture };
        let mut stages = (members.schedule(config)?.stages)(&blueprint);
        check_solved(members, config, &stages)?;
        check_end_to_end(config, &stages, architecture.jumping.is_some())?;
        if let Some(links) = &links {
            stages = links.with_decoder(stages);
        }
        let messages = Messages::of(&config.messages, &members.codecs, &stages)?;
        fit_stages(&mut stages, config, &messages);
        let selection = members.selection(config)?;
        let drawn = (selection.build)(&config.messages.selection.config().options).map_err(check::refused_selection)?;
        let alone = evaluates_alone(&config.messages);
        let deletes_edges = alone && drawn.as_ref().is_some_and(|selection| selection.deletes_edges());
        let plan = Plan {
            messages,
            evaluation_inputs: config.messages.evaluation_inputs,
            selection: drawn.map(Arc::from),
            covers: selection.covers,
            frozen: if selection.cuts { Scope::Nothing } else { Scope::Whole },
            evaluation: if alone { Scope::Nothing } else { Scope::Whole },
            inductive: false,
            // Where evaluations exchange nothing either, this is the graph that they are on.
            deletes_edges,
            batching: None,
            cadence: Cadence::of(config),
            trainers: TrainersPlan::of(members, config)?,
            rate: RateSchedule { kind: members.rate(config)?, spec: rate_spec(config) },
            optimiser: members.optimiser(config)?,
            order: check::order(config)?,
            task: members.task(config)?,
            links: links.map(Arc::new),
            metrics: Vec::new(),
            label_skew: None,
            part_names: Vec::new(),
            class_weights: None,
            class_counts: 0,
            bytes_before: Arc::default(),
            layer: kind,
            inputs,
            relations: widths.relations,
            weighted: false,
            unread: Vec::new(),
            self_loops: members.has_self_loops(config)?,
            config: Arc::new(config.clone()),
            members: members.clone(),
            stages: stages.into(),
        };
        plan.check_stages().and(Ok(plan))
    }

    /// Refuses what the layers or messages of its stages cannot be had with.
    fn check_stages(&self) -> Result<()> {
        self.check_precision()?;
        check_covers(&self.members, &self.config, &self.stages, &self.messages)?;
        self.check_propagation()
    }

    /// The same run with other messages, as a byte budget chooses them.
    ///
    /// # Errors
    /// If they name a codec that there is not.
    pub fn with_messages(&self, messages: &MessagesConfig) -> Result<Plan> {
        let config = Config { messages: messages.clone(), ..Config::clone(&self.config) };
        let messages = Messages::of(messages, &self.members.codecs, &self.stages)?;
        let plan = Plan { messages, config: Arc::new(config), ..self.clone() };
        plan.check_stages()?;
        Ok(plan)
    }

    /// The run as workers see it who evaluate means and train nothing: they have the whole graph between them, and all
    /// rows that they fetch are for evaluations.
    #[must_use]
    pub fn of_evaluators(&self) -> Plan {
        let mut config = Config::clone(&self.config);
        config.data.inductive = false;
        // Without an exchange in evaluations their inputs know no row of others either.
        let frozen = if evaluates_alone(&config.messages) { Scope::Nothing } else { self.frozen };
        let plan = Plan {
            config: Arc::new(config),
            messages: self.messages.of_evaluations(),
            inductive: false,
            selection: None,
            covers: false,
            frozen,
            evaluation_inputs: EvaluationInputs::Training,
            ..self.clone()
        };
        // What trainers are told is there already.
        if self.trainers.as_ref().is_some_and(|trainers| trainers.tell) { plan.reading_given_rows() } else { plan }
    }

    /// The same run with what its clock of bytes shows before each round of each stage.
    #[must_use]
    pub fn with_clock(self, bytes_before: Vec<Vec<f64>>) -> Plan {
        Plan { bytes_before: bytes_before.into(), ..self }
    }

    /// What the clock of bytes shows before each round of a stage; nothing where no controller follows it.
    pub fn bytes_before(&self, stage: usize) -> &[f64] {
        self.bytes_before.get(stage).map_or(&[], Vec::as_slice)
    }

    /// The same run on parts whose labels differ so far, where that is known.
    #[must_use]
    pub fn with_label_skew(self, label_skew: Option<f64>) -> Plan {
        Plan { label_skew, ..self }
    }

    /// The same run with other stages: for networks that no schedule makes.
    ///
    /// # Errors
    /// If the messages name a codec that there is not.
    pub fn with_stages(self, stages: Vec<Stage>) -> Result<Plan> {
        let stages: Arc<[Stage]> = stages.into();
        let messages = Messages::of(&self.config.messages, &self.members.codecs, &stages)?;
        Ok(Plan { messages, stages, ..self })
    }

    /// Refuses a rehearsed fault of a worker that there is not.
    ///
    /// # Errors
    /// If `transport.fault.rank` is not below `workers`.
    pub fn check_workers(&self, workers: usize) -> Result<()> {
        match self.config.transport.fault.as_ref().filter(|fault| fault.rank as usize >= workers) {
            Some(fault) => {
                let what = format!("transport.fault.rank = {}: there are {workers} workers", fault.rank);
                Err(TrainError::config(what))
            }
            None => Ok(()),
        }
    }

    /// Whether the model tells relations of edges apart.
    pub fn is_relational(&self) -> bool {
        self.layer.is_relational || self.links.as_ref().is_some_and(|links| links.relations > 1)
    }

    /// Whether the bytes of a run follow from shapes alone; otherwise its prediction is a bound.
    pub fn is_predictable(&self) -> bool {
        let fetches = self.stages.iter().any(|stage| self.fetches(stage));
        self.messages.are_predictable() && !self.asks_for_ends() && !fetches && !self.cadence.is_open()
    }

    /// Whether a run that was stopped and goes on comes to what one start comes to, in figures and in
    /// [`straight`](crate::record::summary::BytesSummary::straight) bytes. Independent trainers take a mean when they
    /// are stopped, batches fetch again what they had kept, links ask again who has the ends of pairs, and skipped
    /// messages are counted by each start.
    pub fn goes_on_as_one(&self) -> bool {
        let fetches = self.stages.iter().any(|stage| self.fetches(stage));
        self.trainers.is_none() && !self.asks_for_ends() && !fetches && self.config.messages.skip.is_none()
    }

    /// The first layer that reads neighbours; all that do are of one kind.
    pub fn messaging_layer(&self) -> Option<&dyn Layer> {
        let units = self.stages.iter().flat_map(|stage| stage.network.units());
        units.map(|unit| unit.layer.as_ref()).find(|layer| layer.facts().message_width > 0)
    }

    /// Which rows cross for a stage's frozen inputs while training.
    pub fn frozen_scope(&self, stage: &Stage) -> Scope {
        match self.frozen {
            Scope::Whole if stage.sample_inputs => Scope::Selected,
            scope => scope,
        }
    }

    /// Whether frozen inputs of a stage cross bit by bit, in its rounds.
    pub fn reveals(&self, stage: &Stage) -> bool {
        let crosses = stage.freezes() && !self.reads_own_inputs(stage) && self.frozen_scope(stage) != Scope::Nothing;
        crosses && self.messages.coding(stage.input_tag(0)).reveals()
    }

    /// Whether evaluations have frozen inputs of their own: those of the whole graph, where training sees a part of it;
    /// or the rows that training goes without, or has through a codec that loses something. A stage whose own rows were
    /// handed on apart has inputs of its own for them whatever this says.
    pub fn evaluates_apart(&self, stage: &Stage) -> bool {
        let whole = self.evaluation == Scope::Whole && self.evaluation_inputs == EvaluationInputs::Whole;
        let lossy = || !self.messages.evaluates_as_it_trains(stage.input_tag(0));
        let all_cross = match self.frozen_scope(stage) {
            Scope::Whole => true,
            Scope::Selected => self.selection.is_none(),
            Scope::Nothing => false,
        };
        let lacks = whole && (!all_cross || lossy());
        stage.freezes() && (self.inductive || lacks)
    }

    /// Whether evaluations see more of the graph than training does, where that sees a part of it: not where they go
    /// without the others' rows as well.
    pub fn evaluates_whole_graph(&self) -> bool {
        !self.deletes_edges || self.evaluation == Scope::Whole
    }

    /// Whether edges from nodes that no worker has count in degrees.
    pub fn counts_left_out(&self) -> bool {
        let deletes = |selection: &Arc<dyn Selection>| selection.deletes_edges();
        self.frozen == Scope::Nothing && !self.selection.as_ref().is_none_or(deletes)
    }

    /// Whether several workers train another model than one would, beyond rounding: messages are compressed, left out
    /// or late, models averaged, what owners tell is coded, or what a worker learns from is of its own nodes alone.
    pub fn is_lossy(&self) -> bool {
        let clusters = self.stages.iter().any(|stage| self.clusters(stage));
        let own_pairs = self.links.as_ref().is_some_and(|links| links.scope == NegativeScope::Local);
        let own = clusters || own_pairs;
        own || self.trainers.is_some()
            || self.is_late()
            || self.selection.is_some()
            || self.cadence.is_local()
            || self.cadence.factors()
            || self.messages.are_lossy()
            || self.inputs.are_lossy()
    }

    /// Whether rows of any stage are used a round after they were sent.
    fn is_late(&self) -> bool {
        self.stages.iter().any(|stage| stage.late.is_some())
    }
}

/// Refuses maps of inputs and jumps over layers where the schedule trains one layer after the other.
fn check_end_to_end(config: &Config, stages: &[Stage], jumping: bool) -> Result<()> {
    let units = || stages.iter().flat_map(|stage| stage.network.units());
    if config.model.input_width > 0 && !units().any(|unit| unit.place().0 == INPUTS) {
        let what = "this schedule trains layers on frozen inputs, and these would change with the map; \
            schedule.start = \"mlp\" begins with one";
        return Err(TrainError::config(format!("model.input_width = {}: {what}", config.model.input_width)));
    }
    if jumping && !units().any(|unit| unit.name == LIN) {
        let (name, what) = (&config.model.jumping_knowledge, "this schedule trains one layer after the other");
        return Err(TrainError::config(format!("model.jumping_knowledge = {name:?}: {what}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

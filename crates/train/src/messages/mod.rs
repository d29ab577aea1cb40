//! How rows and parameters become bytes: codecs that choose a codec, and the assigner of bit-widths.

pub mod assign;
pub mod coders;
pub mod coding;

use std::collections::BTreeMap;
use std::sync::Arc;

use laconic_nn::parameters::ParameterSpec;
use laconic_wire::codec::CodecRegistry;
use laconic_wire::collectives::Reducer;
use laconic_wire::{Direction, Tag, VectorCoder};

use crate::config::ramp::Clock;
use crate::config::{CodecChoice, CostsChoice, MessagesConfig, SkipConfig};
use crate::error::{Result, TrainError};
use crate::saved::OwnMemory;
use crate::schedule::Stage;

pub use coding::Coding;

/// `[messages]`, resolved for the layers of a run.
#[derive(Debug, Clone)]
pub struct Messages {
    registry: Arc<CodecRegistry>,
    /// What codes the rows of a direction where its layer says nothing else.
    rows: [Coding; 2],
    /// What codes the rows of layers that say so themselves, and of those that masks leave whole: the last of a
    /// network, where it exchanges every round.
    layers: BTreeMap<(u16, Direction), Coding>,
    /// Everything of the two, as it is named.
    named: Vec<Coding>,
    evaluation: Coding,
    parameters: Coding,
    error_feedback: bool,
    /// When messages are skipped.
    pub skip: Option<SkipConfig>,
    /// Whether the assigner's costs of links are measured.
    pub measures_costs: bool,
    /// The most that the whole run may send, in bytes.
    pub budget: Option<u64>,
}

/// Which columns of rows stay away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnsLeftOut {
    /// Those behind the first ones.
    Last,
    /// Others in every round.
    Random,
}

/// The word for evaluations without the other workers' rows, in place of a codec.
const NO_EVALUATION: &str = "none";

/// Whether evaluations go without the other workers' rows.
pub fn evaluates_alone(config: &MessagesConfig) -> bool {
    config.evaluation == CodecChoice::named(NO_EVALUATION)
}

/// Refuses `reveal` where nothing is revealed: only rows that go forward into a layer whose inputs cross once are.
fn refuse_idle_reveal(config: &MessagesConfig, stages: &[Stage]) -> Result<()> {
    let own = |layer: &str, key: &str| format!("layers.{layer}.{key}");
    let frozen = || stages.iter().filter(|stage| stage.may_freeze()).map(|stage| stage.first_layer.to_string());
    let has_own = |layer: &String| config.layers.get(layer).is_some_and(|layer| layer.forward.is_some());
    let mut idle = vec![("backward".to_owned(), &config.backward)];
    idle.extend([("evaluation".to_owned(), &config.evaluation), ("parameters".to_owned(), &config.parameters)]);
    if frozen().all(|layer| has_own(&layer)) {
        idle.push(("forward".to_owned(), &config.forward));
    }
    for (layer, choices) in &config.layers {
        idle.extend(choices.backward.as_ref().map(|choice| (own(layer, "backward"), choice)));
        let forward = choices.forward.as_ref().filter(|_| frozen().all(|known| known != *layer));
        idle.extend(forward.map(|choice| (own(layer, "forward"), choice)));
    }
    match idle.into_iter().find(|(_, choice)| choice.config().reveal.is_some()) {
        Some((key, _)) => {
            let what =
                "nothing reads it; only rows that go into a first layer once (schedule.cache_inputs) are revealed";
            Err(TrainError::config(format!("messages.{key}.reveal: {what}")))
        }
        None => Ok(()),
    }
}

impl Messages {
    /// Resolves messages for these stages.
    ///
    /// # Errors
    /// If a name is unknown, a value makes no sense, or an option is given that nothing reads.
    pub fn of(config: &MessagesConfig, registry: &Arc<CodecRegistry>, stages: &[Stage]) -> Result<Messages> {
        // Before there are data, any number does.
        let classes = stages.last().map_or(1, Stage::outputs);
        let resolve = |key: &str, choice: &CodecChoice| {
            Coding::of(&format!("messages.{key}"), &choice.with_classes(classes), registry)
        };
        let budget = config.budget_bytes()?;
        let named = [resolve("forward", &config.forward)?, resolve("backward", &config.backward)?];
        // Where evaluations exchange nothing, a trained model still reads its inputs once.
        let exact = CodecChoice::exact();
        let evaluation = if evaluates_alone(config) { &exact } else { &config.evaluation };
        let mut messages = Messages {
            registry: registry.clone(),
            rows: named.clone().map(|coding| coding.within(budget)),
            layers: BTreeMap::new(),
            named: named.to_vec(),
            evaluation: resolve("evaluation", evaluation)?,
            parameters: resolve("parameters", &config.parameters)?,
            error_feedback: config.error_feedback,
            skip: config.skip,
            measures_costs: config.costs == CostsChoice::Measured,
            budget,
        };
        for (layer, choices) in &config.layers {
            let number: u16 =
                layer.parse().ok().filter(|number: &u16| number.to_string() == *layer).ok_or_else(|| {
                    TrainError::config(format!("messages.layers.{layer}: expected the number of a layer"))
                })?;
            let both = [(Direction::Forward, &choices.forward), (Direction::Reverse, &choices.backward)];
            for (direction, choice) in both {
                let Some(choice) = choice else { continue };
                let name = if direction == Direction::Forward { "forward" } else { "backward" };
                let coding = resolve(&format!("layers.{layer}.{name}"), choice)?;
                messages.layers.insert((number, direction), coding.within(budget));
                messages.named.push(coding);
            }
        }
        messages.check(config)?;
        if !stages.is_empty() {
            refuse_idle_reveal(config, stages)?;
        }
        messages.leave_whole(stages);
        Ok(messages)
    }

    /// Takes masks off the messages of the last layers.
    fn leave_whole(&mut self, stages: &[Stage]) {
        let exchanges = |stage: &&Stage| {
            let units = stage.network.units();
            units.len() > 1 && units[units.len() - 1].layer.facts().message_width > 0
        };
        for layer in stages.iter().filter(exchanges).map(Stage::last_layer) {
            for direction in [Direction::Forward, Direction::Reverse] {
                let coding = self.of_layer(layer, direction).of_last().clone();
                self.layers.insert((layer, direction), coding);
            }
        }
    }

    fn check(&self, config: &MessagesConfig) -> Result<()> {
        if !self.evaluation.suits_figures() {
            let what = "expected exact, half, or quantised with a fixed number of bits";
            return Err(TrainError::config(format!("messages.evaluation: {what}")));
        }
        if config.parameters.config().whole_last.is_some() {
            let what = "nothing reads it; only rows are those of a last layer";
            return Err(TrainError::config(format!("messages.parameters.whole_last: {what}")));
        }
        if let Some(what) = self.parameters.unfit_for_parameters(self.has_feedback()) {
            return Err(TrainError::config(format!("messages.parameters: {what}")));
        }
        if self.budget.is_none() && self.lack_limit() {
            let what = "clock = \"bytes\" needs a limit, or messages.budget";
            return Err(TrainError::config(format!("messages: {what}")));
        }
        match self.skip {
            Some(skip) if !(skip.change.is_finite() && skip.change >= 0.0) => {
                Err(TrainError::config(format!("messages.skip.change = {}: expected 0 or more", skip.change)))
            }
            _ => Ok(()),
        }
    }

    /// The codecs that there are.
    pub fn registry(&self) -> &Arc<CodecRegistry> {
        &self.registry
    }

    fn of_layer(&self, layer: u16, direction: Direction) -> &Coding {
        self.layers.get(&(layer, direction)).unwrap_or(&self.rows[direction as usize])
    }

    /// What codes these messages.
    pub fn coding(&self, tag: Tag) -> &Coding {
        if tag.evaluates() { &self.evaluation } else { self.of_layer(tag.layer, tag.direction) }
    }

    /// Whether what crosses once in training is what evaluations would fetch, or better.
    pub fn evaluates_as_it_trains(&self, inputs: Tag) -> bool {
        let training = self.coding(inputs);
        training.kind.lossless || training.is_same_rounding(&self.evaluation)
    }

    /// Whether other columns of these inputs cross in every round: a mask leaves some out and nothing is revealed.
    pub fn redraw(&self, inputs: Tag) -> bool {
        let coding = self.coding(inputs);
        coding.kind.reads.ratio && !coding.reveal
    }

    /// The same messages where nothing depends on what happens during a run: the most that they can be.
    #[must_use]
    pub fn at_most(&self) -> Messages {
        Messages {
            rows: self.rows.clone().map(|coding| coding.at_most()),
            layers: self.layers.iter().map(|(place, coding)| (*place, coding.at_most())).collect(),
            named: self.named.iter().map(Coding::at_most).collect(),
            ..self.clone()
        }
    }

    /// The same messages for workers that only evaluate: all rows are coded as those of evaluations.
    #[must_use]
    pub fn of_evaluations(&self) -> Messages {
        let rows = [self.evaluation.clone(), self.evaluation.clone()];
        let (named, layers) = (rows.to_vec(), BTreeMap::new());
        Messages { rows, layers, named, skip: None, measures_costs: false, ..self.clone() }
    }

    /// Whether the assigner chooses bits of any message.
    pub fn are_adaptive(&self) -> bool {
        self.named.iter().any(Coding::is_adaptive)
    }

    /// Whether a controller reads clocks that only show during a run.
    pub fn read_clocks(&self) -> bool {
        self.named.iter().any(|coding| !coding.has_steady_controllers())
    }

    /// Whether a ramp over bytes leaves it to the budget how many.
    pub fn lack_limit(&self) -> bool {
        self.named.iter().any(Coding::lacks_limit)
    }

    /// Whether a controller follows this clock.
    pub fn follow(&self, clock: Clock) -> bool {
        self.named.iter().any(|coding| coding.clocks().any(|other| other == clock))
    }

    /// Whether the bytes of a run follow from shapes alone; otherwise its prediction is a bound.
    pub fn are_predictable(&self) -> bool {
        self.skip.is_none() && self.parameters_have_a_size() && self.named.iter().all(Coding::is_predictable)
    }

    /// Whether the size of parameters that travel follows from their number alone.
    pub fn parameters_have_a_size(&self) -> bool {
        !self.parameters.kind.varies && !self.parameters.kind.prepares
    }

    /// Whether messages of a link have the same size in every round.
    pub fn have_constant_sizes(&self) -> bool {
        self.rows.iter().chain(self.layers.values()).chain([&self.evaluation]).all(Coding::has_constant_size)
    }

    fn has_feedback(&self) -> bool {
        self.error_feedback && self.round_parameters()
    }

    /// Whether parameters lose anything on their way.
    pub fn round_parameters(&self) -> bool {
        !self.parameters.kind.lossless
    }

    /// What a worker alone remembers and what is sent depends on, if anything.
    pub fn own_memory(&self) -> Option<OwnMemory> {
        let of = |key, what| Some(OwnMemory { key, what });
        if self.has_feedback() {
            return of("messages.error_feedback", "what rounding its sums has left over");
        }
        if self.parameters.kind.remembers {
            return of("messages.parameters", "what its codec had last");
        }
        if self.skip.is_some() {
            return of("messages.skip", "the rows that it sent and received last");
        }
        let at = self.named.iter().position(|coding| coding.is_adaptive() || coding.kind.remembers)?;
        let key = ["messages.forward", "messages.backward"].get(at).copied().unwrap_or("messages.layers");
        let is_adaptive = self.named[at].is_adaptive();
        of(key, if is_adaptive { "the bits that were assigned to its rows" } else { "what its codec had last" })
    }

    /// Whether messages of a link only make sense if the same rows travel every time; the first key that asks for it.
    pub fn same_rows(&self) -> Option<&'static str> {
        let remembers = self.named.iter().any(|coding| coding.kind.remembers);
        self.skip.map(|_| "messages.skip").or(remembers.then_some("a codec that remembers"))
    }

    /// Whether some columns of rows stay away, and whether they are others in every round.
    pub fn drop_columns(&self) -> Option<ColumnsLeftOut> {
        let masks = self.named.iter().filter(|coding| coding.kind.reads.ratio);
        masks.map(|coding| if coding.takes_prefix { ColumnsLeftOut::Last } else { ColumnsLeftOut::Random }).max()
    }

    /// Whether anything is lost between sender and receiver.
    pub fn are_lossy(&self) -> bool {
        let lossless = |coding: &Coding| coding.kind.lossless;
        self.skip.is_some() || self.round_parameters() || !self.named.iter().all(lossless)
    }

    /// Whether the codec of parameters makes no sense of a message without those before it.
    pub fn remember_parameters(&self) -> bool {
        self.parameters.kind.remembers
    }

    /// How these parameters, one behind the other, and gradients of them travel.
    ///
    /// # Errors
    /// If their codec cannot be made.
    pub fn parameters(&self, seed: u64, of: &[ParameterSpec]) -> Result<VectorCoder> {
        let Coding { kind, .. } = &self.parameters;
        let codec = self.parameters.build(&self.registry)?;
        let coder = VectorCoder::new(codec, kind, self.parameters.level_of_parameters(), seed);
        let coder = coder.of_matrices(of.iter().map(ParameterSpec::matrix));
        Ok(if self.has_feedback() { coder.with_feedback() } else { coder })
    }

    /// How they are added up over workers.
    ///
    /// # Errors
    /// As [`Messages::parameters`].
    pub fn reducer(&self, seed: u64, of: &[ParameterSpec]) -> Result<Reducer> {
        Ok(Reducer::new(self.parameters(seed, of)?))
    }
}

//! What a schedule puts together: stages, each a network on inputs that do not change while it trains.

use laconic_nn::Layer;
use laconic_nn::network::Network;
use laconic_wire::{Content, Direction, FramePurpose, Tag};

use super::{Propagated, Propagation};
use crate::config::Carried;

/// How a stage is solved rather than trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ridge {
    /// What squares of weights count for, beside squares of errors that are added up over training nodes.
    pub penalty: f64,
}

/// One stage of a run.
pub struct Stage {
    /// What is trained.
    pub network: Network,
    /// The steps along edges that its inputs are made by, before its rounds.
    pub propagation: Option<Propagation>,
    /// Where its one round solves for the parameters rather than takes a step.
    pub solves: Option<Ridge>,
    /// Whether the inputs' halo is fetched once and kept.
    pub cache_inputs: bool,
    /// Whether inputs that would be kept cross in every round after all, in other columns each time, where a mask
    /// reveals nothing; the plan then takes `cache_inputs` back.
    pub redraws: bool,
    /// Whether the selection applies to inputs that are fetched once.
    pub sample_inputs: bool,
    /// Where rows are used later than they were sent.
    pub late: Option<Lateness>,
    /// What the next stage gets.
    pub hand_on: HandOn,
    /// What its inputs are.
    pub inputs: Content,
    /// The number of the network's first layer, counted over stages.
    pub first_layer: u16,
    /// Rounds at most.
    pub rounds: u32,
    /// Rounds that the learning rate and ramps are spread over: all of them, unless `train.horizon` says otherwise.
    pub span: u32,
    /// Base learning rate.
    pub lr: f32,
}

/// How a stage uses rows later than they were sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lateness {
    /// The share of the moving average in features and in gradients, 0 for none.
    pub smoothing: [f32; 2],
    /// What crosses: rows, or their products with weights.
    pub carries: Carried,
    /// Where independent trainers tell each other rows that nobody waits for: after how many means again. `None` where
    /// all rows are of the round before.
    pub refresh: Option<u32>,
}

impl Carried {
    /// Whether rows cross in place of a layer's messages; where messages are made without parameters, they are the
    /// rows.
    pub fn rows_of(self, layer: &dyn Layer) -> bool {
        self == Carried::Rows && layer.facts().message_has_parameters
    }
}

/// Which rows of a finished stage go on to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandOn {
    /// The rows that the last layer, a classifier, reads: hidden ones after norm and ReLU, or the columns of a
    /// bottleneck. The classifier is thrown away.
    Hidden,
    /// The class scores.
    Scores,
    /// Nothing follows.
    Nothing,
}

/// How far a run has come: rounds of finished stages, and of the one after them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position {
    /// Rounds that each finished stage took.
    pub finished: Vec<u32>,
    /// Rounds done in the next.
    pub done: u32,
    /// Whether patience has ended it.
    pub stopped: bool,
}

/// The step of rows that cross once, frozen inputs, under the tag of their layer; rows of every round have step 0.
const FROZEN: u16 = 1;

/// The step of frozen inputs that cross for evaluation alone.
const FROZEN_FOR_EVALUATION: u16 = 4;

/// The step in tags of labels that are told; those of inputs that are told and of control frames are others.
const TOLD: u16 = 51;

impl Stage {
    /// The layer that reads the stage's inputs.
    pub fn first(&self) -> &dyn Layer {
        self.network.units()[0].layer.as_ref()
    }

    /// Width of the rows that the last layer outputs.
    pub fn outputs(&self) -> usize {
        self.network.units().last().map_or(0, |unit| unit.layer.facts().outputs)
    }

    /// The number of the last layer, or of the last step along edges, counted over stages.
    pub fn last_layer(&self) -> u16 {
        let last = self.first_layer + self.network.units().len() as u16 - 1;
        self.propagation_tags(0).last().map_or(last, |tag| tag.layer.max(last))
    }

    /// Whether the first layer's halo crosses once.
    pub fn freezes(&self) -> bool {
        self.cache_inputs && self.first().facts().message_width > 0
    }

    /// Whether the first layer's halo may cross once.
    pub fn may_freeze(&self) -> bool {
        (self.cache_inputs || self.redraws) && self.first().facts().message_width > 0
    }

    /// Whether a pass over some rows needs no other once the first layer has folded: no further layer reads neighbours,
    /// and no norm is over all rows.
    pub fn reads_no_further(&self) -> bool {
        let mut further = self.network.units().iter().skip(1);
        further.all(|unit| unit.layer.facts().message_width == 0) && !self.network.normalises_columns()
    }

    /// What the layer at `index` of the network reads.
    pub fn content(&self, index: usize) -> Content {
        if index == 0 { self.inputs } else { Content::HiddenRows }
    }

    /// The tag of frozen inputs: features cross before the first layer, hidden rows before later ones.
    pub fn input_tag(&self, rounds_before: u32) -> Tag {
        let (content, purpose, layer) = (self.inputs, FramePurpose::Training, self.first_layer);
        Tag { content, purpose, direction: Direction::Forward, layer, round: rounds_before, step: FROZEN }
    }

    /// The tag under which frozen inputs cross for evaluation alone.
    pub fn evaluation_input_tag(&self, rounds_before: u32) -> Tag {
        let purpose = FramePurpose::Evaluation;
        Tag { purpose, step: FROZEN_FOR_EVALUATION, ..self.input_tag(rounds_before) }
    }

    /// The tag of the labels that the first step reads, where they are told.
    pub fn told_labels(&self, rounds_before: u32) -> Option<Tag> {
        let reads = |propagation: Propagation| propagation.of == Propagated::Labels;
        let tag = self.propagation_tag(0, rounds_before);
        self.propagation.is_some_and(reads).then_some(Tag { content: Content::TrainingLabels, step: TOLD, ..tag })
    }

    /// The tags of the exchanges of rows of a number a class, in their order; none where nothing passes along edges.
    pub fn propagation_tags(&self, rounds_before: u32) -> Vec<Tag> {
        let Some(propagation) = self.propagation else { return Vec::new() };
        let told = u16::from(propagation.of == Propagated::Labels);
        (0..propagation.exchanges()).map(|number| self.propagation_tag(number + told, rounds_before)).collect()
    }

    fn propagation_tag(&self, number: u16, round: u32) -> Tag {
        let (content, purpose, direction) = (Content::PropagatedLabels, FramePurpose::Training, Direction::Forward);
        Tag { content, purpose, direction, layer: self.first_layer + number, round, step: FROZEN }
    }

    /// The layers that exchange in every pass with their tags, those of training and of round 0: all but the first
    /// where it is frozen.
    fn live_layers(&self) -> impl Iterator<Item = (Tag, &dyn Layer)> {
        let units = self.network.units().iter().map(|unit| unit.layer.as_ref()).enumerate();
        let live = units.filter(|(index, layer)| layer.facts().message_width > 0 && (*index > 0 || !self.freezes()));
        live.map(|(index, layer)| {
            let (content, purpose) = (self.content(index), FramePurpose::Training);
            let layer_number = self.first_layer + index as u16;
            (Tag { content, purpose, direction: Direction::Forward, layer: layer_number, round: 0, step: 0 }, layer)
        })
    }

    /// The exchanges of a round of training with their widths: tags of round 0, those of the first layer only where
    /// they happen every round.
    pub fn live_exchanges(&self) -> Vec<(Tag, usize)> {
        let mut exchanges = Vec::new();
        for (forward, layer) in self.live_layers() {
            let rows = self.late.is_some_and(|late| late.carries.rows_of(layer));
            let width = if rows { layer.facts().inputs } else { layer.facts().message_width };
            exchanges.push((forward, width));
            if self.late.is_some_and(|late| late.refresh.is_some()) {
                // Gradients of rows that nobody waits for go nowhere.
                continue;
            }
            // Gradients of inputs are wanted for the parameters of messages alone, which are there where rows cross.
            if forward.layer > self.first_layer || (layer.facts().message_has_parameters && !rows) {
                let content = Content::RowGradients;
                exchanges.push((Tag { content, direction: Direction::Reverse, ..forward }, width));
            }
        }
        exchanges
    }

    /// The exchanges of an evaluation with their widths, likewise: messages, whatever crosses in training.
    pub fn evaluation_exchanges(&self) -> Vec<(Tag, usize)> {
        let evaluation = |(tag, layer): (Tag, &dyn Layer)| {
            (Tag { purpose: FramePurpose::Evaluation, ..tag }, layer.facts().message_width)
        };
        self.live_layers().map(evaluation).collect()
    }
}

//! What a schedule puts together: stages, each a network on inputs that do not change while it trains.

use laconic_nn::Layer;
use laconic_nn::network::Network;
use laconic_wire::{Direction, Kind, Tag};

/// One stage of a run.
pub struct Stage {
    /// What is trained.
    pub network: Network,
    /// Whether the inputs' halo is fetched once and kept.
    pub cache_inputs: bool,
    /// Whether the selection applies to inputs that are fetched once.
    pub sample_inputs: bool,
    /// Rows are used a round after they were sent: smoothing of features and of gradients, 0 for none.
    pub late: Option<[f32; 2]>,
    /// What the next stage gets.
    pub hand_on: HandOn,
    /// The number of the network's first layer, counted over stages.
    pub first_layer: u16,
    /// Rounds at most.
    pub rounds: u32,
    /// Base learning rate.
    pub lr: f32,
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

impl Stage {
    /// The layer that reads the stage's inputs.
    pub fn first(&self) -> &dyn Layer {
        self.network.units()[0].layer.as_ref()
    }

    /// Width of the rows that the last layer puts out.
    pub fn outputs(&self) -> usize {
        self.network.units().last().map_or(0, |unit| unit.layer.outputs())
    }

    /// The number of the last layer, counted over stages.
    pub fn last_layer(&self) -> u16 {
        self.first_layer + self.network.units().len() as u16 - 1
    }

    /// Whether the first layer's halo crosses once.
    pub fn freezes(&self) -> bool {
        // Copies would not do for messages with parameters that need the owner's degrees. No network of ours starts
        // with such a layer.
        let layer = self.first();
        let can = layer.message_width() > 0 && !(layer.message_has_parameters() && layer.message_reads_nodes());
        self.cache_inputs && can
    }

    /// The tag of frozen inputs: features cross before the first layer, hidden rows before later ones.
    pub fn input_tag(&self, rounds_before: u32) -> Tag {
        let kind = if self.first_layer == 0 { Kind::Features } else { Kind::Activations };
        Tag { kind, direction: Direction::Forward, layer: self.first_layer, round: rounds_before, step: FROZEN }
    }

    /// The tag under which frozen inputs cross for evaluation alone.
    pub fn evaluation_input_tag(&self, rounds_before: u32) -> Tag {
        Tag { kind: Kind::Evaluation, step: FROZEN_FOR_EVALUATION, ..self.input_tag(rounds_before) }
    }

    /// The exchanges of a round of training with their widths: tags of round 0, those of the first layer only where
    /// they happen every round.
    pub fn live_exchanges(&self) -> Vec<(Tag, usize)> {
        let mut exchanges = Vec::new();
        for (index, unit) in self.network.units().iter().enumerate() {
            let (layer, width) = (unit.layer.as_ref(), unit.layer.message_width());
            if width == 0 || (index == 0 && self.freezes()) {
                continue;
            }
            let kind = if index == 0 { Kind::Features } else { Kind::Activations };
            let forward =
                Tag { kind, direction: Direction::Forward, layer: self.first_layer + index as u16, round: 0, step: 0 };
            exchanges.push((forward, width));
            if index > 0 || layer.message_has_parameters() {
                let kind = Kind::ActivationGradients;
                exchanges.push((Tag { kind, direction: Direction::Reverse, ..forward }, width));
            }
        }
        exchanges
    }
}

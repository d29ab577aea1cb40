//! What a pass is for, and the tags and dropout that follow from it.

use laconic_key::{Key, Purpose};
use laconic_nn::{Dropout, Precision};
use laconic_wire::{Content, Direction, FramePurpose, Tag};

/// What a pass is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassContext {
    /// The round that messages and dropout masks carry.
    pub round: u32,
    /// What the network's first layer reads.
    pub inputs: Content,
    /// The number of the network's first layer, counted over stages.
    pub first_layer: u16,
    /// With dropout and to be followed by a backward pass, or without.
    pub training: bool,
    /// Without either, for messages of training: others are told the rows of its layers.
    pub tells: bool,
    /// The run's seed.
    pub seed: u64,
    /// Whether rows and folds that can be made again, without asking anybody, are not kept for the backward pass.
    pub recompute: bool,
    /// How rows between layers are stored, and their gradients. Those that the last layer outputs are `f32`.
    pub precision: Precision,
}

impl PassContext {
    pub(super) fn tag(&self, unit: usize, direction: Direction) -> Tag {
        let content = match (direction, unit) {
            (Direction::Reverse, _) => Content::RowGradients,
            (Direction::Forward, 0) => self.inputs,
            (Direction::Forward, _) => Content::HiddenRows,
        };
        let purpose = if self.training || self.tells { FramePurpose::Training } else { FramePurpose::Evaluation };
        Tag { content, purpose, direction, layer: self.first_layer + unit as u16, round: self.round, step: 0 }
    }

    /// The pass of the same round that others are told of.
    #[must_use]
    pub fn telling(self) -> PassContext {
        PassContext { training: false, tells: true, ..self }
    }

    pub(super) fn dropout(&self, purpose: Purpose, unit: usize, probability: f32) -> Option<Dropout> {
        let layer = u64::from(self.first_layer) + unit as u64;
        let key = Key::new(self.seed, purpose).with(self.round.into()).with(layer);
        (self.training && probability > 0.0).then_some(Dropout { probability, key })
    }
}

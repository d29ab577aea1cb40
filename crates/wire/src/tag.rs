//! Tags: which of all frames one is.

use crate::content::{Content, Direction, FramePurpose, Kind};
use std::fmt;

/// What a frame is, so that sender and receiver mean the same one.
///
/// Frames with one content, purpose, direction, layer and step form a stream; from one rank to another the rounds of a
/// stream never decrease. Several frames may share a tag and are then received in the order in which they were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// What its bytes are.
    pub content: Content,
    /// What it is for.
    pub purpose: FramePurpose,
    /// Which way it runs.
    pub direction: Direction,
    /// The layer, 0 where there is none.
    pub layer: u16,
    /// The round of training.
    pub round: u32,
    /// Tells several frames of the same content in a round apart, such as the two halves of an all-reduce.
    pub step: u16,
}

impl Tag {
    /// A frame of this content and purpose that runs forward; of layer 0, round 0 and step 0 unless these are set.
    pub const fn new(content: Content, purpose: FramePurpose) -> Tag {
        Tag { content, purpose, direction: Direction::Forward, layer: 0, round: 0, step: 0 }
    }

    /// The kind that the ledger counts it as.
    pub fn kind(self) -> Kind {
        self.content.kind(self.purpose, self.direction)
    }

    /// Whether it serves nothing but measuring how good the model is.
    pub fn evaluates(self) -> bool {
        self.purpose == FramePurpose::Evaluation
    }

    /// The same tag, `steps` further on.
    ///
    /// # Panics
    ///
    /// At the 65,536th step of one content in a round.
    #[must_use]
    pub fn later(self, steps: u16) -> Tag {
        let step = self.step.checked_add(steps).expect("fewer than 65,536 steps of one content in a round");
        Tag { step, ..self }
    }

    /// Whether both belong to one stream: everything but the round is equal.
    pub fn same_stream(self, other: Tag) -> bool {
        Tag { round: 0, ..self } == Tag { round: 0, ..other }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.kind() {
            Kind::ActivationGradients => "activation gradients",
            Kind::ParameterGradients => "parameter gradients",
            kind => kind.name(),
        };
        write!(f, "{words} of layer {}, {}, round {}", self.layer, self.direction.name(), self.round)?;
        if self.step > 0 {
            write!(f, ", step {}", self.step)?;
        }
        Ok(())
    }
}

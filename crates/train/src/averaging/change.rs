//! Models as what they have changed: both ends have the mean that a trainer went on from, so that what it has changed
//! since is enough, and may travel through a lossy codec (`messages.parameters`). What rounding takes is added to what
//! the same end sends next. Who does not have the mean before gets the whole model.

use std::sync::Arc;

use laconic_wire::codec::Store;
use laconic_wire::{Content, Direction, FramePurpose, Hop, Rank, Tag, VectorCoder};

use super::Model;
use crate::error::Result;
use crate::plan::Plan;

/// The step of the tags of whole models, and of changes.
pub(super) const STEPS: [u16; 2] = [0, 1];

/// A model as it travels.
#[derive(Debug, Clone, PartialEq)]
pub enum Sent {
    /// As it is.
    Whole(Model),
    /// As what it has changed since a mean that the receiver has.
    Change(Change),
}

/// What a model has changed, in a codec's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The number of the codec.
    pub codec: u8,
    /// What it has written.
    pub bytes: Arc<[u8]>,
}

/// What a model that travels may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// Values of the whole model.
    pub values: usize,
    /// What changes look like; `None` where models travel as they are.
    pub change: Option<ChangeForm>,
}

/// What a change that travels may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeForm {
    /// The number of its codec.
    pub codec: u8,
    /// Its bytes; the most where it varies.
    pub bytes: usize,
    /// Whether it may be smaller.
    pub varies: bool,
}

impl Form {
    /// Of models of so many values, which travel as these changes or as they are.
    pub fn of(changes: Option<&Changes>, values: usize) -> Form {
        Form { values, change: changes.map(|of| of.form(values)) }
    }

    /// A model that looks so, of zeros: for its size.
    pub fn empty(&self) -> Sent {
        match self.change {
            Some(ChangeForm { codec, bytes, .. }) => Sent::Change(Change { codec, bytes: vec![0; bytes].into() }),
            None => Sent::Whole(vec![0.0; self.values].into()),
        }
    }
}

impl ChangeForm {
    /// Whether so many bytes of this codec may be a change.
    pub fn fits(&self, codec: u8, bytes: usize) -> bool {
        codec == self.codec && (bytes == self.bytes || (self.varies && bytes < self.bytes))
    }
}

/// One end's way to write changes and to read those of others.
#[derive(Debug)]
pub struct Changes {
    coder: VectorCoder,
    stage: u16,
    own: Rank,
    /// What rounding has taken so far of what this end has sent; empty for zeros.
    left: Vec<f32>,
}

impl Changes {
    /// As a plan asks for them, in this stage; `None` where nothing is lost, and models travel as they are.
    ///
    /// # Errors
    /// If their codec cannot be made.
    pub fn of(plan: &Plan, stage: usize, own: Rank) -> Result<Option<Changes>> {
        let parameters = plan.stages[stage].network.parameters();
        let coder = || plan.messages.parameters(plan.config.train.seed, parameters);
        let coder = plan.messages.round_parameters().then(coder);
        Ok(coder.transpose()?.map(|coder| Changes::new(coder, stage, own)))
    }

    /// That of the end `own`, where the aggregator has rank 0, in this stage.
    pub fn new(coder: VectorCoder, stage: usize, own: Rank) -> Changes {
        Changes { coder, stage: u16::try_from(stage).unwrap_or(u16::MAX), own, left: Vec::new() }
    }

    fn form(&self, values: usize) -> ChangeForm {
        let coder = &self.coder;
        ChangeForm { codec: coder.number(), bytes: coder.bytes(0..values), varies: coder.varies() }
    }

    /// What sets the noise of a change apart. All trainers get the same one of the aggregator.
    fn hop(&self, number: u32, from: Rank) -> Hop {
        let direction = if from == Rank(0) { Direction::Reverse } else { Direction::Forward };
        let (content, purpose) = (Content::Models, FramePurpose::Training);
        let tag = Tag { content, purpose, direction, layer: self.stage, round: number, step: STEPS[1] };
        Hop { tag, from, to: Rank(0) }
    }

    /// What a model for, or of, the mean of this number is more than `base`, and what was left over before. `None` for
    /// values that the codec does not take, which travel as they are.
    pub fn encode(&mut self, number: u32, base: &[f32], model: &[f32]) -> Option<Change> {
        let mut moved: Vec<f32> = model.iter().zip(base).map(|(now, then)| now - then).collect();
        let feeds_back = self.coder.has_feedback();
        if feeds_back {
            self.left.resize(moved.len(), 0.0);
            moved.iter_mut().zip(&self.left).for_each(|(moved, left)| *moved += left);
        }
        let (hop, mut bytes) = (self.hop(number, self.own), Vec::with_capacity(self.coder.bytes(0..moved.len())));
        self.coder.encode(hop, &moved, 0, &mut bytes).ok()?;
        if feeds_back {
            self.coder.leave_over(hop, &bytes, (&moved, 0), &mut self.left).ok()?;
        }
        Some(Change { codec: self.coder.number(), bytes: bytes.into() })
    }

    /// The model that a change by `from` makes of `base`. `None` for bytes that the codec has not written.
    pub fn decode(&mut self, number: u32, from: Rank, base: &[f32], change: &Change) -> Option<Model> {
        if !self.form(base.len()).fits(change.codec, change.bytes.len()) {
            return None;
        }
        let (hop, mut model) = (self.hop(number, from), base.to_vec());
        self.coder.decode(hop, &change.bytes, (&mut model, 0), Store::Add).ok()?;
        Some(model.into())
    }
}

/// How means and models travel, and what the aggregator knows of the means that trainers have.
#[derive(Debug)]
pub(super) struct Replicas {
    /// `None` where models travel as they are.
    changes: Option<Changes>,
    initial: Model,
    /// What the last mean has changed, for those who have the one before.
    change: Option<Change>,
    /// The number of the mean that each trainer has gone on from last; nothing of one that has just come.
    holds: Vec<Option<u32>>,
}

impl Replicas {
    /// So many trainers that begin with this model.
    pub fn new(changes: Option<Changes>, initial: Model, trainers: usize) -> Replicas {
        Replicas { changes, initial, change: None, holds: vec![None; trainers] }
    }

    /// A trainer that comes has nothing yet, or nothing any more.
    pub fn forget(&mut self, trainer: usize) {
        self.holds[trainer] = None;
    }

    /// The mean of this number, or what it has changed, for a trainer that goes on from it now.
    pub fn next(&mut self, trainer: usize, number: u32, mean: Option<&Model>) -> Option<Sent> {
        let held = self.holds[trainer].replace(number);
        let change = self.change.clone().filter(|_| held.is_some_and(|held| held + 1 == number));
        change.map(Sent::Change).or_else(|| mean.cloned().map(Sent::Whole))
    }

    /// The model of a trainer that has gone on from the mean of this number; `None` where it is none.
    pub fn read(&mut self, trainer: usize, number: u32, mean: Option<&Model>, sent: Sent) -> Option<Model> {
        match sent {
            Sent::Whole(model) => Some(model),
            Sent::Change(change) => {
                let base = mean.unwrap_or(&self.initial);
                self.changes.as_mut()?.decode(number + 1, Rank(trainer as u32 + 1), base, &change)
            }
        }
    }

    /// The mean of this number, behind this one, as those have it who get what it has changed: then all are to have
    /// it so.
    pub fn as_read(&mut self, number: u32, before: Option<&Model>, mean: Model) -> Model {
        let Replicas { changes: Some(changes), initial, change, .. } = self else { return mean };
        let base = before.unwrap_or(initial);
        *change = changes.encode(number, base, &mean);
        change.as_ref().and_then(|change| changes.decode(number, Rank(0), base, change)).unwrap_or(mean)
    }
}

//! A batch before it is made, and after.

use laconic_graph::sample::Sampled;

use super::left_out::LeftOut;
use crate::pass::batch::Batch;

/// One batch to be made.
pub struct Job {
    /// The round that it is for.
    pub round: u32,
    /// The nodes that it begins from, each once, by number.
    pub seeds: Vec<u32>,
    /// The edges that it must not read.
    pub left_out: LeftOut,
    /// Its neighbourhoods, where others had to be asked for them; otherwise they are drawn when it is made.
    pub(super) sampled: Option<Sampled>,
}

impl Job {
    /// A round's batch of these seeds.
    pub fn new(round: u32, seeds: Vec<u32>, left_out: LeftOut) -> Job {
        Job { round, seeds, left_out, sampled: None }
    }
}

/// A batch, but for the rows that go in.
pub struct Drawn {
    /// The round that it is for.
    pub round: u32,
    /// Which nodes its rows are, by number; without those of the halo that stand beside them.
    pub nodes: Vec<u32>,
    /// Its edges and what is known of its nodes.
    pub batch: Batch,
}

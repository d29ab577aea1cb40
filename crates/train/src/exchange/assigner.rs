//! What the assigner of bit-widths weighs the messages of one worker by.

use laconic_wire::{Direction, Rank, Tag};

use crate::messages::assign::LinkCost;

/// What weighs the messages of one worker against each other.
#[derive(Default)]
pub struct Assigner {
    /// Per peer, Σ α of each row that it gets; set by [`super::widths::exchange_scores`].
    pub(super) scores: Option<Vec<Vec<f32>>>,
    /// Cost of the link from each worker to each other, `[from · workers + to]`.
    pub(super) costs: Vec<LinkCost>,
}

impl Assigner {
    /// β of each message of a link from what was traced of its rows; without a trace it is 0.
    pub(super) fn betas(&self, tag: Tag, peer: Rank, mut trace: Vec<f64>, rows: usize) -> Vec<f32> {
        trace.resize(rows, 0.0);
        let scores = self.scores.as_ref().filter(|_| tag.direction == Direction::Forward).map(|s| &s[peer.index()]);
        let score = |row: usize| scores.and_then(|s| s.get(row)).map_or(1.0, |&s| f64::from(s));
        trace.iter().enumerate().map(|(row, trace)| (score(row).powi(2) * trace) as f32).collect()
    }
}

//! What the assigner of bit-widths weighs the messages of one worker by.

use laconic_wire::{Rank, Tag};

use crate::messages::assign::LinkCost;

/// What weighs the messages of one worker against each other.
#[derive(Default)]
pub struct Assigner {
    /// By direction and peer, what each row that goes out counts for there; set by [`super::widths::exchange_scores`].
    /// Without any, all count for 1.
    pub(super) scores: [Vec<Vec<f32>>; 2],
    /// Cost of the link from each worker to each other, `[from · workers + to]`.
    pub(super) costs: Vec<LinkCost>,
}

impl Assigner {
    /// β of each message of a link from what was traced of its rows; NaN where nothing was.
    pub(super) fn betas(&self, tag: Tag, peer: Rank, mut trace: Vec<f64>, rows: usize) -> Vec<f32> {
        trace.resize(rows, f64::NAN);
        let scores = self.scores[tag.direction as usize].get(peer.index());
        let score = |row: usize| scores.and_then(|s| s.get(row)).map_or(1.0, |&s| f64::from(s));
        trace.iter().enumerate().map(|(row, trace)| (score(row).powi(2) * trace) as f32).collect()
    }
}

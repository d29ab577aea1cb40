//! How many rows layers put out in rounds of training over all own rows: those that the loss reads, those that these
//! read, and so on down the network; see [`crate::pass::narrowed`].

use super::Plan;
use crate::schedule::Stage;

/// A layer puts out all rows unless it can leave out one of four: what it folds by source is a second time in memory.
const MOST: [usize; 2] = [3, 4];

/// Inputs of some rows are a copy, which is made where these are half of all at most.
const MOST_COPIED: [usize; 2] = [1, 2];

impl Plan {
    /// How many edges away from training nodes rows may be that some layer need not put out, at most; `None` where
    /// every layer puts out all of them.
    pub fn steps_of_training(&self) -> Option<u8> {
        let layers = self.stages.iter().map(|stage| self.layers_that_narrow(stage)).max()?;
        layers.checked_sub(1).map(|steps| u8::try_from(steps).unwrap_or(u8::MAX - 1))
    }

    /// Whether any layer leaves out any of so many `rows`, of which so many are `within` some steps of training nodes.
    pub fn leaves_out(&self, rows: usize, within: &[usize]) -> bool {
        let of_steps = |steps: usize| within.get(steps).copied().unwrap_or(rows);
        self.stages.iter().any(|stage| self.rows_put_out(stage, rows, of_steps).iter().any(|&count| count < rows))
    }

    /// Whether rounds of a stage run over training rows that are kept apart, because no neighbour is read any more.
    pub fn trains_on_rows_alone(&self, stage: &Stage) -> bool {
        let first = stage.first();
        let is_kept = first.message_width() == 0 || (stage.freezes() && !first.message_has_parameters());
        is_kept && stage.reads_no_further() && self.links.is_none()
    }

    /// How many of a stage's last layers may leave out rows.
    pub fn layers_that_narrow(&self, stage: &Stage) -> usize {
        // Batches have rows of their own, and so have rounds that read no neighbours; edges to learn from are anywhere.
        if self.batching.is_some() || self.links.is_some() || self.trains_on_rows_alone(stage) {
            return 0;
        }
        // What is put together for the last layer is of all rows.
        if stage.network.joined().is_some() {
            return 1;
        }
        let before_last = stage.network.units().iter().rev().skip(1);
        // Norms over columns are over all rows.
        1 + before_last.take_while(|unit| !unit.after.normalises_columns()).count()
    }

    /// How many of `rows` own rows each layer of a stage puts out, where so many are `within` some steps of training
    /// nodes.
    pub fn rows_put_out(&self, stage: &Stage, rows: usize, within: impl Fn(usize) -> usize) -> Vec<usize> {
        let layers = stage.network.units().len();
        let narrow = self.layers_that_narrow(stage);
        let is_within = |count: usize, [share, of]: [usize; 2]| of * count <= share * rows;
        let put_out = |layer: usize| {
            let steps = layers - 1 - layer;
            let count = if steps < narrow { within(steps) } else { rows };
            let most = if layer > 0 { Some(MOST) } else { self.keeps_folds(stage).then_some(MOST_COPIED) };
            if most.is_some_and(|most| is_within(count, most)) { count } else { rows }
        };
        (0..layers).map(put_out).collect()
    }

    /// Whether all that the first layer reads of neighbours is kept from the start, row by row.
    fn keeps_folds(&self, stage: &Stage) -> bool {
        let first = stage.first();
        let is_kept = stage.freezes() && !first.message_has_parameters() && !self.reveals(stage);
        (is_kept || first.message_width() == 0) && !self.keeps_halo_apart(stage)
    }
}

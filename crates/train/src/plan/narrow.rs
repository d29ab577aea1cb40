//! How many rows layers output in passes over all own rows: those that the loss or figures read, those that these
//! read, and so on down the network; see [`crate::pass::required_rows`].

use super::Plan;
use crate::schedule::Stage;

/// A layer outputs all rows unless it can leave out one of four: what it folds by source is a second time in memory.
const MOST: [usize; 2] = [3, 4];

/// Who reads what the last layer outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The loss: rows of training nodes.
    Loss,
    /// The figures of evaluations: rows of all splits.
    Figures,
}

impl Plan {
    /// How many edges away from rows that are read in the end rows may be that some layer need not output, at most;
    /// `None` where every layer outputs all of them.
    pub fn steps_to(&self, reader: Reader) -> Option<u16> {
        let layers = self.stages.iter().map(|stage| self.layers_that_narrow(stage, reader)).max()?;
        layers.checked_sub(1).map(|steps| u16::try_from(steps).unwrap_or(u16::MAX - 1))
    }

    /// Whether any layer leaves out any of so many `rows`, of which so many are `within` some steps of those that are
    /// read in the end.
    pub fn leaves_out(&self, reader: Reader, rows: usize, within: &[usize]) -> bool {
        self.stages.iter().any(|stage| self.rows_put_out(stage, reader, rows, within).iter().any(|&count| count < rows))
    }

    /// Whether rounds of a stage run over training rows that are kept apart, because no neighbour is read any more.
    pub fn trains_on_rows_alone(&self, stage: &Stage) -> bool {
        let first = stage.first();
        let is_kept = first.facts().message_width == 0 || (stage.freezes() && !first.facts().message_has_parameters);
        is_kept && stage.reads_no_further() && self.reads_own_outputs()
    }

    /// How many of a stage's last layers may leave out rows.
    pub fn layers_that_narrow(&self, stage: &Stage, reader: Reader) -> usize {
        // Batches have rows of their own, and so have rounds that read no neighbours.
        let has_own = reader == Reader::Loss && (self.batching.is_some() || self.trains_on_rows_alone(stage));
        // Edges to learn from or to be judged by are anywhere.
        if has_own || !self.reads_own_outputs() {
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

    /// How many of `rows` own rows each layer of a stage outputs, where so many are `within` some steps of those that
    /// are read in the end: all of them behind the last.
    pub fn rows_put_out(&self, stage: &Stage, reader: Reader, rows: usize, within: &[usize]) -> Vec<usize> {
        let (narrow, units) = (self.layers_that_narrow(stage, reader), stage.network.units());
        let is_few = |count: usize| MOST[1] * count <= MOST[0] * rows;
        // What the first layer reads of neighbours stands row by row, or it outputs all.
        let may = |steps: usize| steps < narrow && (steps + 1 < units.len() || self.keeps_folds(stage));
        let few =
            (0..units.len()).map_while(|steps| within.get(steps).copied().filter(|&count| may(steps) && is_few(count)));
        let mut put_out: Vec<usize> = few.collect();
        put_out.resize(units.len(), rows);
        put_out.reverse();
        put_out
    }

    /// Whether all that the first layer reads of neighbours is kept, row by row.
    fn keeps_folds(&self, stage: &Stage) -> bool {
        let first = stage.first();
        let is_kept = stage.freezes() && !first.facts().message_has_parameters;
        (is_kept || first.facts().message_width == 0) && !self.keeps_halo_apart(stage)
    }
}

//! A round that solves its stage instead of taking a step.

use super::super::agreement::Extras;
use super::super::progress::Progress;
use super::super::ridge;
use super::Fit;
use crate::error::Result;
use crate::schedule::Ridge;
use crate::worker::Worker;

impl Fit<'_> {
    /// Sets the parameters to what solves the stage, whose one round this is; the loss is the mean of squared errors.
    pub(super) fn solve(
        &mut self,
        worker: &mut Worker,
        progress: &mut Progress,
        ridge: Ridge,
        round: u32,
    ) -> Result<Extras> {
        let stage = self.at.stage;
        self.since.add(0.0);
        let mut sums = ridge::own_sums(worker, stage, &self.inputs.x);
        self.refuse_changed_files()?;
        let mut extras = self.extras(worker);
        self.reduction.solve(worker, round, &mut sums, &mut extras)?;
        (progress.parameters, extras.loss) = ridge::solved(stage, ridge, &sums)?;
        progress.done += 1;
        Ok(extras)
    }
}

//! What a round sends so that workers come to the same parameters.

use laconic_wire::Rank;
use laconic_wire::collectives::{self, Reducer};

use super::super::book::Book;
use super::super::contents::What;
use super::StageForecast;
use crate::error::Result;
use crate::fit::{extras_count, ridge};

impl StageForecast<'_> {
    /// What adding up gradients, or averaging models, sends.
    pub(super) fn reduction(&self, round: u32, book: &mut Book<'_>) -> Result<()> {
        let (plan, stage) = (self.forecast.plan, self.stage());
        let (rank, size) = (Rank(self.shapes.rank), self.shapes.workers());
        let (exact, extras) = (Reducer::exact(), extras_count(plan));
        if stage.solves.is_some() {
            let (tag, sums) = (plan.cadence.sums_tag(stage.first_layer, round), ridge::shape(stage).sums());
            book.note(What::GramMatrices, 0, |ledger| {
                collectives::forecast_all_reduce(ledger, tag, size, rank, sums, extras, &exact);
            });
            return Ok(());
        }
        let tag = plan.cadence.reduction_tag(stage.first_layer, round);
        let reducer = plan.messages.reducer(plan.config.train.seed, stage.network.parameters())?;
        let what = match plan.cadence {
            cadence if cadence.corrects() => What::CorrectedModels,
            cadence if cadence.is_local() => What::Models,
            cadence if cadence.factors() => What::GradientFactors,
            _ => What::ParameterGradients,
        };
        let sums = (plan.members.agreement(&plan.cadence).sums)(plan, &stage.network);
        book.note(what, 0, |ledger| {
            for (number, len) in sums.into_iter().enumerate() {
                let (tag, is_first) = (tag.later(2 * number as u16), number == 0);
                let (extras, reducer) = if is_first { (extras, &reducer) } else { (0, &exact) };
                collectives::forecast_all_reduce(ledger, tag, size, rank, len, extras, reducer);
            }
        });
        Ok(())
    }
}

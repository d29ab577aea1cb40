//! What evaluations of means send, which workers meet for and nothing else.

use laconic_wire::{Rank, Tag};

use super::StageForecast;
use crate::error::Result;
use crate::exchange::halo::Request;
use crate::exchange::shapes::Shapes;
use crate::fit::questions::{forecast_ends, forecast_evaluated};
use crate::forecast::Forecast;
use crate::forecast::book::Book;
use crate::forecast::contents::What;
use crate::forecast::links::{Bounds, Embeddings};
use crate::messages::coders::Coders;
use crate::worker::parts;

/// The means of a stage that workers evaluate together.
pub struct EvaluatedMeans {
    /// Means of the stages before.
    pub before: u32,
    /// Those that are evaluated, by their numbers in the stage.
    pub numbers: Vec<u32>,
}

/// Enters what a worker sends of evaluations of means, for which it meets the others, from their start on. Worker 0
/// says what is to be evaluated.
///
/// # Errors
/// If a codec cannot be made.
pub fn forecast_evaluations(
    forecast: &Forecast<'_>,
    shapes: &Shapes,
    stages: &[EvaluatedMeans],
    book: &mut Book<'_>,
) -> Result<()> {
    let plan = forecast.plan;
    let coders = &mut Coders::new(&plan.messages.at_most(), plan.config.train.seed);
    let (rank, size) = (Rank(shapes.rank), shapes.workers());
    let others = || rank.others(size).filter(move |_| rank == Rank(0));
    for (number, of) in stages.iter().enumerate() {
        let (forecast, rounds_before, values) = (*forecast, of.before, plan.stages[number].network.len());
        let apart = plan.evaluates_apart(&plan.stages[number]);
        let mut at = StageForecast { forecast, shapes, coders, number, apart, rounds_before, begun: 0, clock: &[] };
        at.inputs(1, book)?;
        if !of.numbers.is_empty() {
            at.judged_ends(book);
        }
        for mean in &of.numbers {
            book.note(What::EvaluatedMeans, 0, |ledger| forecast_evaluated(others(), *mean, values, ledger));
            at.evaluation(rounds_before + mean, book)?;
        }
        let next = plan.stages.get(number + 1).map(|_| values);
        book.note(What::EvaluatedMeans, 0, |ledger| forecast_ends(others(), next, ledger));
    }
    Ok(())
}

impl StageForecast<'_> {
    /// An evaluation outside of a round of training, with what parts tell of themselves.
    fn evaluation(&mut self, round: u32, book: &mut Book<'_>) -> Result<()> {
        let (plan, stage) = (self.forecast.plan, self.stage());
        for (tag, width) in stage.evaluation_exchanges() {
            self.exchange(&self.whole(), Request::now(Tag { round, ..tag }, plan.evaluation), width, book)?;
        }
        if let Some(bounds) = Bounds::of(plan, self.shapes) {
            let (width, layer) = (stage.outputs(), stage.last_layer() + 1);
            let at = Embeddings { plan, coders: self.coders, width, layer, round, window: None };
            bounds.evaluation(at, book)?;
        }
        self.figures(round, book);
        let (rank, size, shape) = (Rank(self.shapes.rank), self.shapes.workers(), self.forecast.evaluator.parts());
        book.note(What::PartCounts, 0, |ledger| parts::forecast(rank, size, shape, round, ledger));
        Ok(())
    }
}

//! What the steps along edges send that a stage begins with, and what a stage sends to hand its rows on.

use laconic_wire::{Rank, Tag, collectives};

use super::super::book::Book;
use super::super::contents::{Item, What};
use super::{StageForecast, nodes_of};
use crate::error::Result;
use crate::exchange::halo::{Halo, Request};
use crate::exchange::steps::Step;
use crate::inputs::classes;
use crate::schedule::{HandOn, Propagated};
use crate::selection::Scope;

impl StageForecast<'_> {
    /// What [`crate::fit::StageInputs::fetch`] sends before a stage's inputs are there.
    pub(super) fn propagated(&mut self, book: &mut Book<'_>) -> Result<()> {
        let (stage, shapes, round) = (self.stage(), self.shapes, self.rounds_before);
        let Some(propagation) = stage.propagation else { return Ok(()) };
        let (rank, width) = (Rank(shapes.rank), stage.outputs());
        self.coders.turn(self.start(0));
        if let Some(tag) = stage.told_labels(round) {
            let sent: Vec<usize> = shapes.links.iter().map(|link| link.send).collect();
            let told = What::Input(tag.content).into();
            book.enter(
                told,
                |peer| shapes.links[peer.index()].send,
                |ledger| {
                    classes::forecast(rank, tag, &sent, width, ledger);
                    Ok(())
                },
            )?;
        }
        if propagation.of == Propagated::Scores {
            let tag = Step::Errors.tag(round);
            book.note(What::Errors, 0, |ledger| {
                collectives::forecast_all_reduce_f64(ledger, tag, shapes.workers(), rank, 2);
            });
        }
        for tag in stage.propagation_tags(round) {
            let what = What::Rows { of: tag.content, is_weighted: false, evaluates: false };
            let item = Item { layer: tag.layer, width, ..what.into() };
            let (route, request) = (self.whole(), Request::now(tag, Scope::Whole));
            let nodes = nodes_of(&route, tag.direction);
            book.enter(item, nodes, |ledger| Halo::forecast(&route, self.coders, request, width, ledger))?;
        }
        Ok(())
    }

    /// What a pass sends whose rows a stage hands on after this round, where its layers exchange in every pass.
    pub(super) fn handed_on(&mut self, round: u32, book: &mut Book<'_>) -> Result<()> {
        let (plan, stage) = (self.forecast.plan, self.stage());
        if stage.hand_on == HandOn::Nothing {
            return Ok(());
        }
        // Where evaluations have inputs of their own, rows are made as training sees them, too.
        let apart = self.apart && stage.freezes() && !plan.reads_own_inputs(stage);
        for _ in 0..1 + usize::from(apart) {
            for (tag, width) in stage.evaluation_exchanges() {
                let request = Request::now(Tag { round, ..tag }, plan.evaluation);
                self.exchange(&self.whole(), request, width, book)?;
            }
        }
        Ok(())
    }
}

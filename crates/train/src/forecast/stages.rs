//! What the rounds of a run will send from a worker of given shapes.

use laconic_nn::Nodes;
use laconic_wire::{Kind, Ledger, Rank, Tag, collectives};

use super::Forecast;
use crate::config::ramp::Reading;
use crate::error::Result;
use crate::exchange::drawn::Route;
use crate::exchange::halo::{Halo, Request};
use crate::exchange::shapes::Shapes;
use crate::exchange::steps::Step;
use crate::exchange::widths;
use crate::fit::extras_count;
use crate::messages::coders::Coders;
use crate::pass::reveal;
use crate::schedule::Stage;
use crate::selection::Scope;

/// What [`crate::fit::stages::train`] sends from a worker of these shapes. Exact for messages whose size follows from
/// shapes and the round, as long as neither patience nor the user ends a stage early; else a bound that is kept.
///
/// # Errors
/// If a codec cannot be made.
pub fn forecast_stages(forecast: &Forecast<'_>, shapes: &Shapes) -> Result<Ledger> {
    let Forecast { plan, position, .. } = *forecast;
    let mut ledger = Ledger::new();
    let seed = plan.config.train.seed;
    let mut coders = Coders::new(&plan.messages.at_most(), seed);
    if plan.messages.are_adaptive() {
        // Whether there are any does not depend on the nodes.
        let nobody = Nodes { ids: &[], inverse_degree: &[], inverse_root_degree: &[] };
        let own_weights = plan.messaging_layer().is_some_and(|layer| layer.sender_weight(&nobody).is_some());
        widths::forecast_scores(shapes.training_links(), Rank(shapes.rank), own_weights, &mut ledger);
        if plan.messages.measures_costs {
            widths::forecast_measure(Rank(shapes.rank), shapes.workers(), &mut ledger);
        }
    }
    let mut rounds_before = 0;
    for (number, stage) in plan.stages.iter().enumerate() {
        let selection = plan.selection.as_deref();
        let route = Route { rank: Rank(shapes.rank), links: shapes.training_links(), selection, seed };
        let whole = Route { links: &shapes.links, ..route };
        let finished = position.finished.get(number).copied();
        let current = number == position.finished.len();
        let done_before = finished.unwrap_or(if current { position.done } else { 0 });
        let last = if finished.is_some() || (current && position.stopped) { done_before } else { stage.rounds };
        let ledger = &mut ledger;
        let mut at = StageForecast {
            forecast: *forecast,
            shapes,
            route,
            whole,
            coders: &mut coders,
            ledger,
            stage,
            rounds_before,
        };
        at.inputs(last)?;
        for done in done_before + 1..=last {
            at.round(done)?;
        }
        rounds_before += last;
    }
    Ok(ledger)
}

/// One stage on its way into the ledger.
struct StageForecast<'a> {
    forecast: Forecast<'a>,
    shapes: &'a Shapes,
    /// The links along which training exchanges.
    route: Route<'a>,
    /// The links along which evaluations do.
    whole: Route<'a>,
    coders: &'a mut Coders,
    ledger: &'a mut Ledger,
    stage: &'a Stage,
    rounds_before: u32,
}

impl StageForecast<'_> {
    fn reading(&self, done: u32) -> Reading {
        Reading { done, rounds: self.stage.rounds, ..Reading::default() }
    }

    /// What crosses once, or bit by bit until round `last`. What a resumed run has revealed crosses again.
    fn inputs(&mut self, last: u32) -> Result<()> {
        let (plan, stage) = (self.forecast.plan, self.stage);
        if !stage.freezes() {
            return Ok(());
        }
        let (tag, scope, width) =
            (stage.input_tag(self.rounds_before), plan.frozen_scope(stage), stage.first().inputs());
        self.coders.turn(self.reading(0));
        if plan.evaluates_apart(stage) {
            let request = Request::now(stage.evaluation_input_tag(self.rounds_before), plan.evaluation);
            Halo::forecast(&self.whole, self.coders, request, width, self.ledger)?;
        }
        let (request, coding) = (Request::now(tag, scope), plan.messages.coding(tag));
        if scope != Scope::Nothing && reveal::reveals(coding) {
            let rounds: Vec<_> = (1..=last).map(|done| (self.rounds_before + done, self.reading(done - 1))).collect();
            return reveal::forecast(
                &self.route,
                (plan.messages.registry(), coding),
                (request, width),
                rounds.into_iter(),
                self.ledger,
            );
        }
        if scope != Scope::Nothing && coding.is_adaptive() {
            let exchanges: Vec<_> = coding.menu().map(|menu| (tag, menu)).into_iter().collect();
            widths::forecast_assign(self.route.links, self.route.rank, &exchanges, tag.round, self.ledger);
        }
        Halo::forecast(&self.route, self.coders, request, width, self.ledger)
    }

    fn round(&mut self, done: u32) -> Result<()> {
        let Forecast { plan, evaluator, .. } = self.forecast;
        let (rank, size) = (Rank(self.shapes.rank), self.shapes.workers());
        let (stage, round) = (self.stage, self.rounds_before + done);
        // As in a run, where what answers late rows has the level of the round before.
        self.coders.turn(self.reading(done.saturating_sub(2)));
        self.coders.turn(self.reading(done - 1));
        let evaluated = plan.cadence.evaluates(done, stage.rounds);
        self.exchanges(done, round, evaluated)?;
        if plan.cadence.agrees(done, stage.rounds) {
            let tag = plan.cadence.reduction_tag(stage.first_layer, round);
            let reducer = plan.messages.reducer(plan.config.train.seed)?;
            let (len, extras) = (stage.network.len(), extras_count(plan));
            collectives::forecast_all_reduce(self.ledger, tag, size, rank, len, extras, &reducer);
        }
        if evaluated {
            evaluator.forecast(self.shapes, round, self.ledger);
        }
        if done == stage.rounds || plan.cadence.writes(done, stage.rounds) {
            let (tag, values) = (Step::SentBytes.tag(round), 3 * Kind::ALL.len());
            collectives::forecast_all_reduce_f64(self.ledger, tag, size, rank, values);
        }
        Ok(())
    }

    /// The halo exchanges of a round, and what assigning their bits sends.
    fn exchanges(&mut self, done: u32, round: u32, evaluated: bool) -> Result<()> {
        let (plan, stage) = (self.forecast.plan, self.stage);
        let live = stage.live_exchanges();
        let due = live.iter().filter_map(|(tag, _)| {
            let coding = plan.messages.coding(*tag);
            let is_due = coding.is_adaptive() && widths::is_due(done - 1, coding.period(stage.rounds));
            coding.menu().filter(|_| is_due).map(|menu| (*tag, menu))
        });
        let due: Vec<_> = due.collect();
        widths::forecast_assign(self.route.links, self.route.rank, &due, round, self.ledger);
        for (tag, width) in live {
            let tag = Tag { round, ..tag };
            let request = Request::of(tag, Scope::Selected, stage.late.is_some());
            Halo::forecast(&self.route, self.coders, request, width, self.ledger)?;
        }
        for (tag, width) in stage.evaluation_exchanges().into_iter().filter(|_| evaluated) {
            let request = Request::now(Tag { round, ..tag }, plan.evaluation);
            Halo::forecast(&self.whole, self.coders, request, width, self.ledger)?;
        }
        Ok(())
    }
}

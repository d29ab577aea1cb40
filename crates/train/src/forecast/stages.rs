//! What the rounds of a run will send from a worker of given shapes.
//!
//! A ledger of totals alone is made without walking through every round where rounds of one kind send the same.

use std::collections::BTreeMap;

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

/// Enters what [`crate::fit::stages::train`] sends from a worker of these shapes. Exact for messages whose size follows
/// from shapes and the round, as long as neither patience nor the user ends a stage early; else a bound that is kept.
///
/// # Errors
/// If a codec cannot be made.
pub fn forecast_stages(forecast: &Forecast<'_>, shapes: &Shapes, ledger: &mut Ledger) -> Result<()> {
    let Forecast { plan, position, .. } = *forecast;
    let seed = plan.config.train.seed;
    let most = plan.messages.at_most();
    let mut coders = Coders::new(&most, seed);
    if plan.messages.are_adaptive() {
        // Whether there are any does not depend on the nodes.
        let nobody = Nodes { ids: &[], inverse_degree: &[], inverse_root_degree: &[] };
        let own_weights = plan.messaging_layer().is_some_and(|layer| layer.sender_weight(&nobody).is_some());
        widths::forecast_scores(shapes.training_links(), Rank(shapes.rank), own_weights, ledger);
        if plan.messages.measures_costs {
            widths::forecast_measure(Rank(shapes.rank), shapes.workers(), ledger);
        }
    }
    let alike = !ledger.keeps_accounts() && most.have_constant_sizes();
    let (mut rounds_before, mut apart) = (0, false);
    for (number, stage) in plan.stages.iter().enumerate() {
        let selection = plan.selection.as_deref();
        let route = Route { rank: Rank(shapes.rank), links: shapes.training_links(), selection, seed };
        let whole = Route { links: &shapes.links, ..route };
        let finished = position.finished.get(number).copied();
        let current = number == position.finished.len();
        let done_before = finished.unwrap_or(if current { position.done } else { 0 });
        let last = if finished.is_some() || (current && position.stopped) { done_before } else { stage.rounds };
        // Once evaluations have rows of their own, so have those of later stages.
        apart |= plan.evaluates_apart(stage);
        let coders = &mut coders;
        let mut at = StageForecast { forecast: *forecast, shapes, route, whole, coders, stage, apart, rounds_before };
        at.inputs(last, ledger)?;
        if alike {
            at.rounds_alike(done_before + 1..=last, ledger)?;
        } else {
            (done_before + 1..=last).try_for_each(|done| at.round(done, ledger))?;
        }
        rounds_before += last;
    }
    Ok(())
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
    stage: &'a Stage,
    /// Whether evaluations have frozen inputs of their own.
    apart: bool,
    rounds_before: u32,
}

/// What happens in a round besides the exchanges of every round.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Occasion {
    agrees: bool,
    evaluates: bool,
    writes: bool,
    /// The exchanges whose bits are assigned.
    due: Vec<Tag>,
}

/// What controllers see before the round after `done`.
fn reading(stage: &Stage, done: u32) -> Reading {
    Reading { done, rounds: stage.rounds, ..Reading::default() }
}

impl StageForecast<'_> {
    fn occasion(&self, done: u32, live: &[(Tag, usize)]) -> Occasion {
        let (plan, rounds) = (self.forecast.plan, self.stage.rounds);
        let is_due = |tag: &Tag| {
            let coding = plan.messages.coding(*tag);
            coding.is_adaptive() && widths::is_due(done - 1, coding.period(rounds))
        };
        Occasion {
            agrees: plan.cadence.agrees(done, rounds),
            evaluates: plan.cadence.evaluates(done, rounds),
            writes: done == rounds || plan.cadence.writes(done, rounds),
            due: live.iter().map(|(tag, _)| *tag).filter(is_due).collect(),
        }
    }

    /// As [`StageForecast::round`] for each of these rounds where the sizes of messages never change: one of every
    /// occasion is looked at.
    fn rounds_alike(&mut self, rounds: std::ops::RangeInclusive<u32>, ledger: &mut Ledger) -> Result<()> {
        let live = self.stage.live_exchanges();
        let mut occasions = BTreeMap::<Occasion, (u32, u64)>::new();
        for done in rounds {
            occasions.entry(self.occasion(done, &live)).or_insert((done, 0)).1 += 1;
        }
        for (first, times) in occasions.into_values() {
            let mut one = Ledger::of_totals();
            self.round(first, &mut one)?;
            ledger.add_times(&one, times);
        }
        Ok(())
    }

    /// What crosses once, or bit by bit until round `last`. What a resumed run has revealed crosses again.
    fn inputs(&mut self, last: u32, ledger: &mut Ledger) -> Result<()> {
        let (plan, stage) = (self.forecast.plan, self.stage);
        if !stage.freezes() {
            return Ok(());
        }
        let (tag, scope, width) =
            (stage.input_tag(self.rounds_before), plan.frozen_scope(stage), stage.first().inputs());
        self.coders.turn(reading(stage, 0));
        if self.apart {
            let request = Request::now(stage.evaluation_input_tag(self.rounds_before), plan.evaluation);
            Halo::forecast(&self.whole, self.coders, request, width, ledger)?;
        }
        let (request, coding) = (Request::now(tag, scope), plan.messages.coding(tag));
        if scope != Scope::Nothing && reveal::reveals(coding) {
            let before = self.rounds_before;
            let rounds = (1..=last).map(|done| (before + done, reading(stage, done - 1)));
            return reveal::forecast(&self.route, (plan.messages.registry(), coding), (request, width), rounds, ledger);
        }
        if scope != Scope::Nothing && coding.is_adaptive() {
            let exchanges: Vec<_> = coding.menu().map(|menu| (tag, menu)).into_iter().collect();
            widths::forecast_assign(self.route.links, self.route.rank, &exchanges, tag.round, ledger);
        }
        Halo::forecast(&self.route, self.coders, request, width, ledger)
    }

    fn round(&mut self, done: u32, ledger: &mut Ledger) -> Result<()> {
        let Forecast { plan, evaluator, .. } = self.forecast;
        let (rank, size) = (Rank(self.shapes.rank), self.shapes.workers());
        let (stage, round) = (self.stage, self.rounds_before + done);
        let live = stage.live_exchanges();
        let occasion = self.occasion(done, &live);
        // As in a run, where what answers late rows has the level of the round before.
        self.coders.turn(reading(stage, done.saturating_sub(2)));
        self.coders.turn(reading(stage, done - 1));
        let with_menu = |tag: &Tag| plan.messages.coding(*tag).menu().map(|menu| (*tag, menu));
        let due: Vec<_> = occasion.due.iter().filter_map(with_menu).collect();
        widths::forecast_assign(self.route.links, self.route.rank, &due, round, ledger);
        for (tag, width) in live {
            let tag = Tag { round, ..tag };
            let request = Request::of(tag, Scope::Selected, stage.late.is_some());
            Halo::forecast(&self.route, self.coders, request, width, ledger)?;
        }
        for (tag, width) in stage.evaluation_exchanges().into_iter().filter(|_| occasion.evaluates) {
            let request = Request::now(Tag { round, ..tag }, plan.evaluation);
            Halo::forecast(&self.whole, self.coders, request, width, ledger)?;
        }
        if occasion.agrees {
            let tag = plan.cadence.reduction_tag(stage.first_layer, round);
            let reducer = plan.messages.reducer(plan.config.train.seed)?;
            let (len, extras) = (stage.network.len(), extras_count(plan));
            collectives::forecast_all_reduce(ledger, tag, size, rank, len, extras, &reducer);
        }
        if occasion.evaluates {
            evaluator.forecast(self.shapes, round, ledger);
        }
        if occasion.writes {
            let (tag, values) = (Step::SentBytes.tag(round), 3 * Kind::ALL.len());
            collectives::forecast_all_reduce_f64(ledger, tag, size, rank, values);
        }
        Ok(())
    }
}

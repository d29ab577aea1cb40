//! What the rounds of a run will send from a worker of given shapes.
//!
//! A ledger of totals alone is made without walking through every round where rounds of one kind send the same.

mod evaluated;
mod propagated;
mod reduced;

use std::collections::BTreeMap;

use laconic_nn::Nodes;
use laconic_wire::collectives;
use laconic_wire::{Direction, Kind, Ledger, Rank, Tag};

use super::Forecast;
use super::book::Book;
use super::contents::{Item, What};
use super::fetches::{FetchBounds, window};
use super::links::{Bounds, Embeddings};
use crate::config::ramp::Reading;
use crate::error::Result;
use crate::exchange::drawn::Route;
use crate::exchange::halo::{Halo, Request};
use crate::exchange::moments;
use crate::exchange::shapes::{PeerRows, Shapes};
use crate::exchange::steps::Step;
use crate::exchange::widths;
use crate::messages::assign::Menu;
use crate::messages::coders::Coders;
use crate::pass::reveal;
use crate::plan::Plan;
use crate::sample::row_tag;
use crate::schedule::Stage;
use crate::selection::Scope;
use crate::worker::parts;

pub use evaluated::{EvaluatedMeans, forecast_evaluations};

/// Enters what [`crate::fit::stages::train`] sends from a worker of these shapes. Exact for messages whose size follows
/// from shapes and the round, as long as neither patience nor the user ends a stage early; else a bound that is kept.
///
/// # Errors
/// If a codec cannot be made.
pub fn forecast_stages(forecast: &Forecast<'_>, shapes: &Shapes, book: &mut Book<'_>) -> Result<()> {
    let Forecast { plan, position, .. } = *forecast;
    let most = plan.messages.at_most();
    let mut coders = Coders::new(&most, plan.config.train.seed);
    before_stages(plan, shapes, book);
    let alike = !book.ledger.keeps_accounts() && most.have_constant_sizes();
    let (mut rounds_before, mut apart) = (0, false);
    for (number, stage) in plan.stages.iter().enumerate() {
        let finished = position.finished.get(number).copied();
        let current = number == position.finished.len();
        let done_before = finished.unwrap_or(if current { position.done } else { 0 });
        let last = if finished.is_some() || (current && position.stopped) { done_before } else { stage.rounds };
        // Once evaluations have rows of their own, so have those of later stages.
        apart |= plan.evaluates_apart(stage);
        let clock = plan.bytes_before(number);
        let coders = &mut coders;
        coders.forget();
        let begun = done_before;
        let mut at = StageForecast { forecast: *forecast, shapes, coders, number, apart, rounds_before, begun, clock };
        // Inputs that cross once do so again in a resumed run; the others continue from messages that were sent.
        at.coders.go_on(false);
        at.inputs(last, book)?;
        at.coders.go_on(begun > 0);
        if plan.fetches(stage) && last > done_before {
            let once = FetchBounds::of_stage(plan, stage, shapes);
            at.fetches(&once, rounds_before + done_before + 1, book)?;
        }
        if last > done_before || current {
            at.judged_ends(book);
        }
        if alike {
            at.rounds_alike(done_before + 1..=last, book)?;
        } else {
            for done in done_before + 1..=last {
                at.round(done, book)?;
                at.checkpoint(done, book);
                book.turn(rounds_before + done)?;
            }
        }
        rounds_before += last;
        at.handed_on(rounds_before, book)?;
    }
    Ok(())
}

/// Enters what independent trainers send each other of their stages' inputs.
///
/// # Errors
/// If a codec cannot be made.
pub fn forecast_inputs(forecast: &Forecast<'_>, shapes: &Shapes, book: &mut Book<'_>) -> Result<()> {
    let plan = forecast.plan;
    let most = plan.messages.at_most();
    let coders = &mut Coders::new(&most, plan.config.train.seed);
    for number in 0..plan.stages.len() {
        let (forecast, rounds_before) = (*forecast, number as u32);
        let apart = plan.evaluates_apart(&plan.stages[number]);
        let mut at = StageForecast { forecast, shapes, coders, number, apart, rounds_before, begun: 0, clock: &[] };
        at.inputs(1, book)?;
    }
    Ok(())
}

/// Enters what an independent trainer tells others of its rows after each of these means, where nobody waits for them.
///
/// # Errors
/// If a codec cannot be made.
pub fn forecast_told(
    forecast: &Forecast<'_>,
    shapes: &Shapes,
    means: impl Iterator<Item = u32>,
    book: &mut Book<'_>,
) -> Result<()> {
    let plan = forecast.plan;
    let coders = &mut Coders::new(&plan.messages.at_most(), plan.config.train.seed);
    let forecast = *forecast;
    let mut at =
        StageForecast { forecast, shapes, coders, number: 0, apart: false, rounds_before: 0, begun: 0, clock: &[] };
    let live = at.stage().live_exchanges();
    for mean in means {
        for (tag, width) in &live {
            let request = Request::now(Tag { round: mean, ..*tag }, Scope::Selected);
            at.exchange(&at.route(), request, *width, book)?;
        }
    }
    Ok(())
}

/// What the clock of bytes shows before each round of each stage of a straight run on workers of these shapes, which
/// have sent `start` bytes before the first stage: its levels make the bytes that it shows in the next round.
///
/// # Errors
/// If a codec cannot be made.
pub fn clock_of_bytes(forecast: &Forecast<'_>, all: &[Shapes], start: f64) -> Result<Vec<Vec<f64>>> {
    let plan = forecast.plan;
    let most = plan.messages.at_most();
    let mut coders: Vec<Coders> = all.iter().map(|_| Coders::new(&most, plan.config.train.seed)).collect();
    let mut sent = start;
    let mut enter = |book: &Book<'_>| {
        sent += book.ledger.total().framed as f64;
        sent
    };
    for shapes in all {
        let mut book = Book::of(Ledger::of_totals());
        before_stages(plan, shapes, &mut book);
        enter(&book);
    }
    let (mut rounds_before, mut apart, mut clocks) = (0, false, Vec::new());
    for (number, stage) in plan.stages.iter().enumerate() {
        apart |= plan.evaluates_apart(stage);
        coders.iter_mut().for_each(Coders::forget);
        let mut clock = Vec::new();
        let mut now = 0.0;
        for done in 0..=stage.rounds {
            for (shapes, coders) in all.iter().zip(&mut coders) {
                let forecast = *forecast;
                let clock = &clock;
                let mut at = StageForecast { forecast, shapes, coders, number, apart, rounds_before, begun: 0, clock };
                let mut book = Book::of(Ledger::of_totals());
                match done {
                    0 => {
                        at.inputs(stage.rounds, &mut book)?;
                        at.judged_ends(&mut book);
                    }
                    done => at.round(done, &mut book)?,
                }
                if done > 0 && done == stage.rounds {
                    at.checkpoint(done, &mut book);
                }
                if done == stage.rounds {
                    at.handed_on(rounds_before + done, &mut book)?;
                }
                now = enter(&book);
            }
            clock.push(now);
        }
        rounds_before += stage.rounds;
        clocks.push(clock);
    }
    Ok(clocks)
}

/// Enters what the assigner tells before the first stage.
fn before_stages(plan: &Plan, shapes: &Shapes, book: &mut Book<'_>) {
    if !plan.messages.are_adaptive() {
        return;
    }
    // Whether there are any does not depend on the nodes.
    let nobody = Nodes { ids: &[], inverse_degree: &[], inverse_root_degree: &[] };
    let own_weights = plan.messaging_layer().is_some_and(|layer| layer.facts().sender_weight.of(&nobody).is_some());
    book.note(What::Assignment, 0, |ledger| {
        widths::forecast_scores(shapes.training_links(), Rank(shapes.rank), own_weights, ledger);
        if plan.messages.measures_costs {
            widths::forecast_measure(Rank(shapes.rank), shapes.workers(), ledger);
        }
    });
}

/// One stage on its way into the ledger.
struct StageForecast<'a> {
    forecast: Forecast<'a>,
    shapes: &'a Shapes,
    coders: &'a mut Coders,
    /// The stage's number.
    number: usize,
    /// Whether evaluations have frozen inputs of their own.
    apart: bool,
    rounds_before: u32,
    /// After how many rounds of the stage a resumed run goes on.
    begun: u32,
    /// What the clock of bytes shows before each round, as far as that is known.
    clock: &'a [f64],
}

/// What happens in a round besides the exchanges of every round.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Occasion {
    agrees: bool,
    /// Whether workers ask each other whether they agree, and so may.
    asks: bool,
    evaluates: bool,
    writes: bool,
    /// Whether it is the stage's last round.
    ends: bool,
    /// The batches of the window that begins.
    opens: Option<u32>,
    /// The exchanges whose bits are assigned.
    due: Vec<Tag>,
}

impl<'a> StageForecast<'a> {
    fn stage(&self) -> &'a Stage {
        &self.forecast.plan.stages[self.number]
    }

    /// One exchange of rows, or of gradients by them.
    fn exchange(&mut self, route: &Route<'_>, request: Request, width: usize, book: &mut Book<'_>) -> Result<()> {
        let tag = request.tag;
        let is_drawn = request.scope == Scope::Selected && route.selection.is_some();
        let item = Item { is_drawn, ..Item::of_exchange(self.forecast.plan, self.number, tag, width) };
        let nodes = nodes_of(route, tag.direction);
        let late = self.stage().late.is_some() && !tag.evaluates() && tag.step == 0;
        book.enter(item, nodes, |ledger| match late {
            // By the round that reads them they have long been there.
            true => ledger.unawaited(|ledger| Halo::forecast(route, self.coders, request, width, ledger)),
            false => Halo::forecast(route, self.coders, request, width, ledger),
        })
    }

    /// The links along which training exchanges.
    fn route(&self) -> Route<'a> {
        let (plan, shapes) = (self.forecast.plan, self.shapes);
        let (selection, seed) = (plan.selection.as_deref(), plan.config.train.seed);
        Route { rank: Rank(shapes.rank), links: shapes.training_links(), selection, seed }
    }

    /// The links along which evaluations do.
    fn whole(&self) -> Route<'a> {
        Route { links: &self.shapes.links, ..self.route() }
    }

    /// What controllers see before the round after `done`.
    fn reading(&self, done: u32) -> Reading {
        let bytes = self.clock.get(done as usize).copied().unwrap_or(0.0);
        Reading { bytes, ..self.start(done) }
    }

    /// The same for what crosses once, for which no bytes have been sent yet.
    fn start(&self, done: u32) -> Reading {
        Reading { done, rounds: self.stage().span, ..Reading::default() }
    }

    fn occasion(&self, done: u32, live: &[(Tag, usize)]) -> Occasion {
        let (plan, rounds) = (self.forecast.plan, self.stage().rounds);
        let is_due = |tag: &Tag| {
            let coding = plan.messages.coding(*tag);
            coding.is_adaptive() && widths::is_due(done - 1, coding.period(self.stage().span))
        };
        Occasion {
            agrees: plan.cadence.agrees(done, rounds),
            asks: plan.cadence.asks(done, rounds),
            evaluates: plan.cadence.evaluates(done, rounds),
            writes: done == rounds || plan.cadence.writes(done, rounds),
            ends: done == rounds,
            opens: window(plan, self.stage(), (done - 1, self.begun)),
            due: live.iter().map(|(tag, _)| *tag).filter(is_due).collect(),
        }
    }

    /// As [`StageForecast::round`] for each of these rounds where the sizes of messages never change: one of every
    /// occasion is looked at.
    fn rounds_alike(&mut self, rounds: std::ops::RangeInclusive<u32>, book: &mut Book<'_>) -> Result<()> {
        let live = self.stage().live_exchanges();
        let mut occasions = BTreeMap::<Occasion, (u32, u64)>::new();
        for done in rounds {
            occasions.entry(self.occasion(done, &live)).or_insert((done, 0)).1 += 1;
        }
        for (first, times) in occasions.into_values() {
            let mut one = Book::of(Ledger::of_totals().noting_waits_as(&book.ledger));
            self.round(first, &mut one)?;
            self.checkpoint(first, &mut one);
            book.add_times(&one, times);
        }
        Ok(())
    }

    /// What crosses once, or bit by bit until round `last`. What a resumed run has revealed crosses again.
    fn inputs(&mut self, last: u32, book: &mut Book<'_>) -> Result<()> {
        let (plan, stage) = (self.forecast.plan, self.stage());
        self.propagated(book)?;
        if !stage.freezes() {
            return Ok(());
        }
        if plan.reads_own_inputs(stage) {
            let request = Request::now(stage.evaluation_input_tag(self.rounds_before), plan.evaluation);
            return self.exchange(&self.whole(), request, stage.first().facts().inputs, book);
        }
        let (tag, scope, width) =
            (stage.input_tag(self.rounds_before), plan.frozen_scope(stage), stage.first().facts().inputs);
        self.coders.turn(self.start(0));
        if self.apart {
            let request = Request::now(stage.evaluation_input_tag(self.rounds_before), plan.evaluation);
            self.exchange(&self.whole(), request, width, book)?;
        }
        let (request, coding) = (Request::now(tag, scope), plan.messages.coding(tag));
        if scope != Scope::Nothing && coding.reveals() {
            let (before, route) = (self.rounds_before, self.route());
            let rounds = (1..=last).map(|done| (before + done, self.start(done - 1)));
            let item = Item::of_exchange(plan, self.number, tag, width);
            let (registry, nodes) = (plan.messages.registry(), nodes_of(&route, tag.direction));
            return book.enter(item, nodes, |ledger| {
                reveal::forecast(&route, registry, coding, request, width, rounds, ledger)
            });
        }
        if scope != Scope::Nothing && coding.is_adaptive() {
            let exchanges: Vec<_> = coding.menu().map(|menu| (tag, menu)).into_iter().collect();
            self.assign(&exchanges, tag.round, book);
        }
        self.exchange(&self.route(), request, width, book)
    }

    /// What the assigner asks for and says about these exchanges.
    fn assign(&self, exchanges: &[(Tag, &Menu)], round: u32, book: &mut Book<'_>) {
        let (links, rank) = (self.shapes.training_links(), Rank(self.shapes.rank));
        book.note(What::Assignment, 0, |ledger| widths::forecast_assign(links, rank, exchanges, round, ledger));
    }

    fn round(&mut self, done: u32, book: &mut Book<'_>) -> Result<()> {
        let plan = self.forecast.plan;
        let (stage, round) = (self.stage(), self.rounds_before + done);
        let live = stage.live_exchanges();
        let occasion = self.occasion(done, &live);
        // As in a run, where what answers late rows has the level of the round before.
        self.coders.turn(self.reading(done.saturating_sub(2)));
        self.coders.turn(self.reading(done - 1));
        let with_menu = |tag: &Tag| plan.messages.coding(*tag).menu().map(|menu| (*tag, menu));
        let due: Vec<_> = occasion.due.iter().filter_map(with_menu).collect();
        self.assign(&due, round, book);
        if plan.fetches(stage) {
            self.fetches(&FetchBounds::of_round(plan, stage, self.shapes), round, book)?;
            if let Some(batches) = occasion.opens {
                self.fetches(&FetchBounds::of_window(plan, stage, self.shapes, batches), round, book)?;
            }
        }
        for (tag, width) in live.into_iter().filter(|_| !plan.in_neighbourhoods(stage)) {
            let request = Request::of(Tag { round, ..tag }, Scope::Selected, stage.late.is_some());
            self.exchange(&self.route(), request, width, book)?;
        }
        for (tag, width) in stage.evaluation_exchanges().into_iter().filter(|_| occasion.evaluates) {
            self.exchange(&self.whole(), Request::now(Tag { round, ..tag }, plan.evaluation), width, book)?;
        }
        self.statistics(round, book);
        if let Some(bounds) = Bounds::of(plan, self.shapes) {
            let layer = stage.last_layer() + 1;
            let window = plan.in_neighbourhoods(stage).then(|| occasion.opens.unwrap_or(0));
            let at = Embeddings { plan, coders: self.coders, width: stage.outputs(), layer, round, window };
            bounds.round(at, occasion.evaluates, book)?;
        }
        if occasion.asks {
            let (tag, rank, size) = (Step::Drift.tag(round), Rank(self.shapes.rank), self.shapes.workers());
            book.note(What::Drift, 0, |ledger| collectives::forecast_all_reduce_f64(ledger, tag, size, rank, 1));
        }
        if occasion.agrees || occasion.asks {
            self.reduction(round, book)?;
        }
        if occasion.evaluates {
            self.figures(round, book);
        }
        Ok(())
    }

    /// What batches fetch, at most.
    fn fetches(&mut self, bounds: &FetchBounds, round: u32, book: &mut Book<'_>) -> Result<()> {
        let (plan, stage, shapes) = (self.forecast.plan, self.stage(), self.shapes);
        let (rank, tag, width) = (shapes.rank as usize, row_tag(stage, round), stage.first().facts().inputs);
        book.note(What::Draws, bounds.nodes, |ledger| bounds.enter(shapes, tag, ledger));
        if bounds.rows == 0 {
            return Ok(());
        }
        let rows = PeerRows { send: bounds.rows, receive: 0 };
        let links = vec![rows; shapes.workers()];
        let route = Route { links: &links, selection: None, ..self.whole() };
        let item = Item::of_exchange(plan, self.number, tag, width);
        book.enter(
            item,
            move |peer| if peer.index() == rank { 0 } else { rows.send },
            |ledger| {
                let mut others = links.clone();
                others[rank] = PeerRows::default();
                let route = Route { links: &others, ..route };
                Halo::forecast(&route, self.coders, Request::now(tag, Scope::Whole), width, ledger)
            },
        )
    }

    /// What norms over all workers' rows send in a round of training.
    fn statistics(&self, round: u32, book: &mut Book<'_>) {
        let (plan, stage) = (self.forecast.plan, self.stage());
        let (rank, size) = (Rank(self.shapes.rank), self.shapes.workers());
        if plan.cadence.is_local() {
            return;
        }
        for (unit, layer) in stage.network.units().iter().zip(stage.first_layer..) {
            if unit.after.normalises_columns() {
                let width = unit.layer.facts().outputs;
                book.note(What::Statistics, 0, |ledger| moments::forecast(ledger, layer, round, rank, size, width));
            }
        }
    }

    /// What the figures of an evaluation are computed from.
    fn figures(&self, round: u32, book: &mut Book<'_>) {
        let (evaluator, shapes) = (self.forecast.evaluator, self.shapes);
        if let Some(bounds) = Bounds::of(self.forecast.plan, shapes) {
            return bounds.figures(&self.forecast.plan.metrics, round, book);
        }
        book.note(What::Figures, 0, |ledger| evaluator.forecast_sums(shapes, round, ledger));
        book.note(What::Bins, 0, |ledger| evaluator.forecast_bins(shapes, round, ledger));
        let labelled = shapes.split_rows.iter().sum();
        book.note(What::Scored, labelled, |ledger| evaluator.forecast_scores(shapes, round, ledger));
    }

    /// What is asked before the first evaluation of links.
    fn judged_ends(&self, book: &mut Book<'_>) {
        if let Some(bounds) = Bounds::of(self.forecast.plan, self.shapes) {
            bounds.judged_ends(self.rounds_before, book);
        }
    }

    /// What a checkpoint after a round sends. The clock of bytes leaves out all but those at the ends of stages, which
    /// are always there, so that checkpoints change no bit.
    fn checkpoint(&self, done: u32, book: &mut Book<'_>) {
        if self.occasion(done, &[]).writes {
            let (tag, values) = (Step::SentBytes.tag(self.rounds_before + done), 3 * Kind::ALL.len());
            let (rank, size) = (Rank(self.shapes.rank), self.shapes.workers());
            book.note(What::Agreement, 0, |ledger| {
                collectives::forecast_all_reduce_f64(ledger, tag, size, rank, values);
            });
            if done < self.stage().rounds || self.number + 1 == self.forecast.plan.stages.len() {
                let (round, evaluator) = (self.rounds_before + done, self.forecast.evaluator);
                book.note(What::PartCounts, 0, |ledger| parts::forecast(rank, size, evaluator.parts(), round, ledger));
            }
        }
    }
}

/// How many nodes' rows are on the way to a peer: own ones forward, the peer's in reverse.
fn nodes_of<'a>(route: &Route<'a>, direction: Direction) -> impl Fn(Rank) -> usize + use<'a> {
    let links = route.links;
    move |peer| match direction {
        Direction::Forward => links[peer.index()].send,
        Direction::Reverse => links[peer.index()].receive,
    }
}

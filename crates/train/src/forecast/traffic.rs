//! Forecasting a whole run: what every worker will send, to the byte, before anything runs.

use laconic_graph::plan::DIGEST;
use laconic_wire::{Kind, Ledger, Rank, collectives};

use super::book::Book;
use super::contents::What;
use super::stages::{EvaluatedMeans, clock_of_bytes, forecast_evaluations, forecast_inputs, forecast_stages};
use super::{Forecast, budget};
use crate::config::ramp::Clock;
use crate::error::Result;
use crate::exchange::shapes::{PeerRows, Shapes};
use crate::exchange::steps::{Step, checkpoint_tag};
use crate::inputs::LinkRows;
use crate::plan::Plan;
use crate::record::report::WorkerReport;
use crate::schedule::Position;
use crate::worker::agree::forecast_agree;
use crate::worker::class_weights::forecast_class_weights;
use crate::worker::discover::{Said, forecast_discover};
use crate::worker::evaluate::Evaluator;

/// Enters what one worker will send from its first to its last frame; a resumed run first hands `checkpoint_bytes`
/// round.
///
/// # Errors
/// If a codec cannot be made.
pub fn forecast_worker(
    forecast: &Forecast<'_>,
    shapes: &Shapes,
    checkpoint_bytes: Option<usize>,
    book: &mut Book<'_>,
) -> Result<()> {
    let (rank, size) = (Rank(shapes.rank), shapes.workers());
    let Forecast { plan, position, .. } = *forecast;
    forecast_start(plan, shapes, book);
    if let Some(bytes) = checkpoint_bytes {
        book.note(What::Models, 0, |ledger| {
            collectives::forecast_broadcast(ledger, checkpoint_tag(), size, (Rank(0), rank), bytes);
        });
    }
    forecast_stages(forecast, shapes, book)?;
    let finished: u32 = position.finished.iter().sum();
    let to_come = plan.stages.iter().skip(position.finished.len()).map(|stage| stage.rounds);
    let rounds = finished + to_come.sum::<u32>();
    book.note(What::Agreement, 0, |ledger| WorkerReport::forecast(rank, size, rounds, ledger));
    book.close()
}

/// Enters what an independent trainer sends others, where they exchange what stages begin with.
///
/// # Errors
/// If a codec cannot be made.
pub fn forecast_exchanges(forecast: &Forecast<'_>, shapes: &Shapes, book: &mut Book<'_>) -> Result<()> {
    forecast_telling(forecast.plan, shapes, book);
    forecast_inputs(forecast, shapes, book)
}

/// Enters what an independent trainer sends others when they meet: of their nodes, and what is told once.
pub fn forecast_telling(plan: &Plan, shapes: &Shapes, book: &mut Book<'_>) {
    let (rank, size) = (Rank(shapes.rank), shapes.workers());
    forecast_meeting(plan, shapes, book);
    book.note(What::Agreement, 0, |ledger| {
        collectives::forecast_all_reduce_f64(ledger, Step::SplitRows.tag(0), size, rank, 3);
    });
}

/// Enters what a worker sends of evaluations that it meets the others for.
///
/// # Errors
/// If a codec cannot be made.
pub fn forecast_meetings(
    forecast: &Forecast<'_>,
    shapes: &Shapes,
    stages: &[EvaluatedMeans],
    book: &mut Book<'_>,
) -> Result<()> {
    forecast_telling(forecast.plan, shapes, book);
    forecast_evaluations(forecast, shapes, stages, book)
}

/// Enters what workers tell each other of their nodes and classes.
fn forecast_meeting(plan: &Plan, shapes: &Shapes, book: &mut Book<'_>) {
    let (rank, size) = (Rank(shapes.rank), shapes.workers());
    let needed = |peer: Rank| shapes.needs()[peer.index()].receive;
    let answered = |peer: Rank| shapes.needs()[peer.index()].send;
    let mut find = |what: What, nodes: &dyn Fn(Rank) -> usize, said| {
        let entered = book.enter(what.into(), nodes, |ledger| {
            forecast_discover(shapes, said, ledger);
            Ok(())
        });
        debug_assert!(entered.is_ok(), "what is said of ids has a size");
    };
    find(What::Questions, &|_| shapes.needs().iter().map(|link| link.receive).sum(), Said::Ids);
    find(What::Digests, &needed, Said::Digests);
    find(What::Lists, &needed, Said::Lists);
    find(What::Answers, &answered, Said::Answers);
    let entered = book.enter(What::Digests.into(), needed, |ledger| {
        // Edges that two workers have in common, where sums may stand for rows.
        for peer in rank.others(shapes.uncovered.len()).filter(|peer| !shapes.uncovered[peer.index()].is_empty()) {
            ledger.record(Step::Cuts.tag(0), peer, DIGEST);
        }
        Ok(())
    });
    debug_assert!(entered.is_ok(), "digests have a size");
    book.note(What::ClassCounts, 0, |ledger| forecast_class_weights(plan, size, rank, ledger));
    if plan.inputs.given {
        return;
    }
    let of_link = |link: &PeerRows| LinkRows { go: link.send, come: link.receive };
    let links: Vec<LinkRows> = shapes.needs().iter().map(of_link).collect();
    for (number, kind) in plan.inputs.told.iter().enumerate() {
        let Some(content) = kind.content else { continue };
        let entered = book.enter(What::Input(content).into(), answered, |ledger| {
            kind.forecast(rank, (&links, shapes.told.get(number)), plan.inputs.wide(), ledger);
            Ok(())
        });
        debug_assert!(entered.is_ok(), "what is told has a size");
    }
}

/// Enters what one worker sends before the first stage, but for a checkpoint.
fn forecast_start(plan: &Plan, shapes: &Shapes, book: &mut Book<'_>) {
    let (rank, size) = (Rank(shapes.rank), shapes.workers());
    forecast_meeting(plan, shapes, book);
    book.note(What::Agreement, 0, |ledger| {
        forecast_agree(rank, size, ledger);
        collectives::forecast_all_reduce_f64(ledger, Step::SplitRows.tag(0), size, rank, 3);
        if plan.messages.follow(Clock::Bytes) {
            collectives::forecast_all_gather(ledger, Step::Shapes.tag(0), size, rank, shapes.to_bytes().len());
        }
        if plan.messages.budget.is_some() {
            let rungs = budget::rungs(&plan.config);
            collectives::forecast_all_reduce_f64(ledger, Step::Rungs.tag(0), size, rank, rungs);
        }
        collectives::forecast_all_reduce_f64(ledger, Step::PredictedBytes.tag(0), size, rank, Kind::ALL.len());
    });
}

/// The run with its clock of bytes, if a controller follows it, from the shapes of all workers.
///
/// # Errors
/// If a codec cannot be made.
pub fn clocked(plan: Plan, evaluator: &Evaluator, all: &[Shapes]) -> Result<Plan> {
    if !plan.messages.follow(Clock::Bytes) {
        return Ok(plan);
    }
    let mut book = Book::of(Ledger::of_totals());
    all.iter().for_each(|shapes| forecast_start(&plan, shapes, &mut book));
    let position = Position::default();
    let forecast = Forecast { plan: &plan, evaluator, position: &position };
    let clock = clock_of_bytes(&forecast, all, book.ledger.total().framed as f64)?;
    Ok(plan.with_clock(clock))
}

/// What a straight run sends from workers of these shapes.
fn forecast_total(plan: &Plan, evaluator: &Evaluator, whose: &[Shapes]) -> Result<f64> {
    let (position, mut book) = (Position::default(), Book::of(Ledger::of_totals()));
    let forecast = Forecast { plan, evaluator, position: &position };
    whose.iter().try_for_each(|shapes| forecast_worker(&forecast, shapes, None, &mut book))?;
    Ok(book.ledger.total().framed as f64)
}

/// What every rung of the ladder would send from workers of these shapes, from the first round on; `all` are those of
/// all workers, where a controller follows the clock of bytes.
///
/// # Errors
/// If a codec cannot be made.
pub fn forecast_rungs(plan: &Plan, evaluator: &Evaluator, whose: &[Shapes], all: &[Shapes]) -> Result<Vec<f64>> {
    let one = |messages| forecast_total(&clocked(plan.with_messages(&messages)?, evaluator, all)?, evaluator, whose);
    budget::candidates(&plan.config).into_iter().map(one).collect()
}

/// The run on the best rung, by what each sends from all workers, with its clock of bytes: ramps over it that leave
/// their limit to the budget get the one with which most of it is used.
///
/// # Errors
/// If no rung fits; the text says how much would be needed.
pub fn on_best_rung(plan: &Plan, evaluator: &Evaluator, all: &[Shapes], bytes: &[f64], budget: u64) -> Result<Plan> {
    let plan = budget::on_rung(plan, budget::choose(bytes, budget)?)?;
    let mut best: Option<(f64, Plan)> = None;
    for paced in budget::paces(&plan, budget)? {
        let paced = clocked(paced, evaluator, all)?;
        let sent = forecast_total(&paced, evaluator, all)?;
        if sent <= budget as f64 && best.as_ref().is_none_or(|(most, _)| sent > *most) {
            best = Some((sent, paced));
        }
    }
    match best {
        Some((_, paced)) => Ok(paced),
        None => clocked(plan, evaluator, all),
    }
}

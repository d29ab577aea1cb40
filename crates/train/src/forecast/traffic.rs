//! Forecasting a whole run: what every worker will send, to the byte, before anything runs.

use laconic_graph::part::{GlobalCounts, Meta, Part};
use laconic_wire::{Kind, Ledger, Rank, collectives};

use super::stages::{clock_of_bytes, forecast_stages};
use super::{Forecast, budget, memory};
use crate::config::ramp::Clock;
use crate::config::{CodecChoice, Config, MessagesConfig};
use crate::error::{Result, TrainError};
use crate::exchange::shapes::{Shapes, TrainingShapes};
use crate::exchange::steps::{Step, checkpoint_tag};
use crate::plan::{Members, Plan};
use crate::record::report::WorkerReport;
use crate::schedule::Position;
use crate::worker::agree::forecast_agree;
use crate::worker::discover::forecast_discover;
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
    ledger: &mut Ledger,
) -> Result<()> {
    let (rank, size) = (Rank(shapes.rank), shapes.workers());
    let Forecast { plan, position, .. } = *forecast;
    forecast_start(plan, shapes, ledger);
    if let Some(bytes) = checkpoint_bytes {
        collectives::forecast_broadcast(ledger, checkpoint_tag(), size, (Rank(0), rank), bytes);
    }
    forecast_stages(forecast, shapes, ledger)?;
    let finished: u32 = position.finished.iter().sum();
    let to_come = plan.stages.iter().skip(position.finished.len()).map(|stage| stage.rounds);
    WorkerReport::forecast(rank, size, finished + to_come.sum::<u32>(), ledger);
    Ok(())
}

/// Enters what one worker sends before the first stage, but for a checkpoint.
fn forecast_start(plan: &Plan, shapes: &Shapes, ledger: &mut Ledger) {
    let (rank, size) = (Rank(shapes.rank), shapes.workers());
    forecast_agree(rank, size, ledger);
    forecast_discover(shapes, ledger);
    collectives::forecast_all_reduce_f64(ledger, Step::SplitRows.tag(0), size, rank, 3);
    if plan.messages.follow(Clock::Bytes) {
        collectives::forecast_all_gather(ledger, Step::Shapes.tag(0), size, rank, shapes.to_bytes().len());
    }
    if plan.messages.budget.is_some() {
        collectives::forecast_all_reduce_f64(ledger, Step::Rungs.tag(0), size, rank, budget::rungs(&plan.config));
    }
    collectives::forecast_all_reduce_f64(ledger, Step::PredictedBytes.tag(0), size, rank, Kind::ALL.len());
}

/// The run with its clock of bytes, if a controller follows it, from the shapes of all workers.
///
/// # Errors
/// If a codec cannot be made.
pub fn clocked(plan: Plan, evaluator: &Evaluator, all: &[Shapes]) -> Result<Plan> {
    if !plan.messages.follow(Clock::Bytes) {
        return Ok(plan);
    }
    let mut ledger = Ledger::of_totals();
    all.iter().for_each(|shapes| forecast_start(&plan, shapes, &mut ledger));
    let position = Position::default();
    let forecast = Forecast { plan: &plan, evaluator, position: &position };
    let clock = clock_of_bytes(&forecast, all, ledger.total().framed as f64)?;
    Ok(plan.with_clock(clock))
}

/// What a straight run sends from workers of these shapes.
fn forecast_total(plan: &Plan, evaluator: &Evaluator, whose: &[Shapes]) -> Result<f64> {
    let (position, mut ledger) = (Position::default(), Ledger::of_totals());
    let forecast = Forecast { plan, evaluator, position: &position };
    whose.iter().try_for_each(|shapes| forecast_worker(&forecast, shapes, None, &mut ledger))?;
    Ok(ledger.total().framed as f64)
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
pub fn on_best_rung(
    plan: &Plan,
    evaluator: &Evaluator,
    all: &[Shapes],
    (bytes, budget): (&[f64], u64),
) -> Result<Plan> {
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

/// What a run would cost before anything runs.
pub struct Costs {
    /// The run, with codecs as the budget allows.
    pub plan: Plan,
    /// Per worker its shapes, what it would send, and its memory.
    pub workers: Vec<(Shapes, Ledger, u64)>,
    /// Bytes of rows, framing included, and what they would be if none were compressed, where that is less.
    pub dearer_than_exact: Option<[u64; 2]>,
    /// What is unusual about the data.
    pub notes: Vec<String>,
}

/// What every worker of a configuration would send, with shapes and memory; nothing runs. `ledger` makes the ledgers
/// that are filled, such as [`Ledger::of_totals`].
///
/// # Errors
/// If the parts cannot be trained on, or a byte budget cannot be kept.
pub fn forecast(members: &Members, config: &Config, parts: &[Part], ledger: fn() -> Ledger) -> Result<Costs> {
    let global = &parts.first().ok_or_else(|| TrainError::config("there are no parts"))?.global;
    let plan = Plan::with(members, config, global)?;
    let plans = laconic_graph::plan::plan_all(parts, plan.self_loops)?;
    let mut shapes: Vec<Shapes> =
        parts.iter().zip(&plans).map(|(part, (plan, topology))| Shapes::of(part, plan, topology)).collect();
    if plan.inductive {
        let induced = laconic_graph::plan::plan_training(parts, plan.self_loops)?;
        for ((shapes, part), (asked, plan, topology)) in shapes.iter_mut().zip(parts).zip(&induced) {
            shapes.training = Some(TrainingShapes::of(part, asked, plan, topology));
        }
    }
    costs(plan, global, shapes, ledger)
}

/// As [`forecast`] from the meta data of a folder of parts alone; `None` where they do not say enough.
///
/// # Errors
/// As [`forecast`].
pub fn forecast_counted(
    members: &Members,
    config: &Config,
    meta: &Meta,
    ledger: fn() -> Ledger,
) -> Result<Option<Costs>> {
    let plan = Plan::with(members, config, &meta.global)?;
    if plan.inductive {
        // Nobody has counted the graph that training nodes induce.
        return Ok(None);
    }
    let shapes = Shapes::counted(meta, plan.self_loops);
    shapes.map(|shapes| costs(plan, &meta.global, shapes, ledger)).transpose()
}

/// What workers of these shapes would send and take.
fn costs(mut plan: Plan, global: &GlobalCounts, mut shapes: Vec<Shapes>, ledger: fn() -> Ledger) -> Result<Costs> {
    plan.check_workers(shapes.len())?;
    let evaluator = Evaluator::new(&plan.metrics, global);
    if plan.deletes_edges {
        shapes.iter_mut().for_each(|shapes| shapes.training = Some(TrainingShapes::own_alone(shapes)));
    }
    if let Some(budget) = plan.messages.budget {
        let totals = forecast_rungs(&plan, &evaluator, &shapes, &shapes)?;
        plan = on_best_rung(&plan, &evaluator, &shapes, (&totals, budget))?;
    } else {
        plan = clocked(plan, &evaluator, &shapes)?;
    }
    let position = Position::default();
    let forecast = Forecast { plan: &plan, evaluator: &evaluator, position: &position };
    let one = |shapes: Shapes| {
        let mut ledger = ledger();
        forecast_worker(&forecast, &shapes, None, &mut ledger)?;
        let memory = memory::forecast(&shapes, &plan, false).total();
        Ok((shapes, ledger, memory))
    };
    let workers = shapes.into_iter().map(one).collect::<Result<Vec<_>>>()?;
    let dearer_than_exact = dearer_than_exact(&plan, &evaluator, &workers)?;
    Ok(Costs { plan, workers, dearer_than_exact, notes: Vec::new() })
}

/// Codes have overheads: a grid for every row, and again with each refinement of rows that never change.
fn dearer_than_exact(
    plan: &Plan,
    evaluator: &Evaluator,
    workers: &[(Shapes, Ledger, u64)],
) -> Result<Option<[u64; 2]>> {
    let chosen = &plan.config.messages;
    let exact = CodecChoice::exact;
    let plain = MessagesConfig { forward: exact(), backward: exact(), layers: Default::default(), ..chosen.clone() };
    if plain == *chosen || !plan.messages.are_predictable() {
        return Ok(None);
    }
    let (plain, position) = (plan.with_messages(&plain)?, Position::default());
    let forecast = Forecast { plan: &plain, evaluator, position: &position };
    let rows = |ledger: &Ledger| {
        let totals = ledger.totals_by_kind();
        let kinds = [Kind::Features, Kind::Activations, Kind::ActivationGradients];
        kinds.iter().map(|kind| totals[*kind].framed).sum::<u64>()
    };
    let mut bytes = [0; 2];
    for (shapes, chosen, _) in workers {
        let mut exact = Ledger::of_totals();
        forecast_worker(&forecast, shapes, None, &mut exact)?;
        bytes[0] += rows(chosen);
        bytes[1] += rows(&exact);
    }
    Ok(Some(bytes).filter(|[chosen, plain]| chosen > plain))
}

//! Predicting a whole run: what every worker will send, to the byte, before anything runs.

use laconic_graph::part::Part;
use laconic_wire::{Count, Kind, Ledger, Rank, collectives};

use crate::config::Config;
use crate::error::{Result, TrainError};
use crate::forecast::budget;
use crate::forecast::memory;
use crate::record::summary::WorkerReport;
use crate::run::{check_trainable, plan_stages};
use crate::schedule::{Forecast, Position, Schedule, Stage};
use crate::worker::discover::{Shapes, control, predict_discover};
use crate::worker::evaluate::Evaluator;

/// What one worker will send from its first to its last frame; a resumed run first hands `checkpoint_bytes` round.
pub fn predict_worker(
    schedule: &dyn Schedule,
    forecast: &Forecast<'_>,
    shapes: &Shapes,
    checkpoint_bytes: Option<usize>,
) -> Result<Ledger> {
    let (rank, size) = (Rank(shapes.rank), shapes.workers());
    let mut ledger = Ledger::new();
    predict_discover(shapes, &mut ledger);
    collectives::predict_all_reduce_f64(&mut ledger, control(0, 2), size, rank, 3);
    if !forecast.config.messages.budget.is_empty() {
        collectives::predict_all_reduce_f64(&mut ledger, control(0, BUDGET_STEP), size, rank, budget::rungs());
    }
    if let Some(bytes) = checkpoint_bytes {
        collectives::predict_broadcast(&mut ledger, crate::run::checkpoint_tag(), size, (Rank(0), rank), bytes);
    }
    collectives::predict_all_reduce_f64(&mut ledger, control(0, 3), size, rank, Kind::ALL.len());
    ledger.add(&schedule.predict(forecast, shapes)?);
    let finished: u32 = forecast.position.finished.iter().sum();
    let to_come = forecast.stages.iter().skip(forecast.position.finished.len()).map(|stage| stage.rounds);
    WorkerReport::predict(rank, size, finished + to_come.sum::<u32>(), &mut ledger);
    Ok(ledger)
}

/// The step of the sum that a byte budget is chosen by.
pub const BUDGET_STEP: u16 = 6;

/// What every rung of the ladder would send from a worker of these shapes, from the first round on.
pub fn predict_rungs(config: &Config, stages: &[Stage], evaluator: &Evaluator, shapes: &Shapes) -> Result<Vec<f64>> {
    let schedule = plan_stages(config, 1, 1)?.0;
    let position = Position::default();
    let one = |config: &Config| {
        let forecast = Forecast { config, stages, evaluator, position: &position };
        Ok(predict_worker(schedule, &forecast, shapes, None)?.total().framed as f64)
    };
    budget::candidates(config).iter().map(one).collect()
}

/// Totals by kind as an array in the order of [`Kind::ALL`].
pub fn by_kind(ledger: &Ledger) -> [Count; 7] {
    let totals = ledger.totals_by_kind();
    Kind::ALL.map(|kind| totals.get(&kind).copied().unwrap_or_default())
}

/// What a run would cost before anything runs.
pub struct Costs {
    /// The configuration, with codecs as the budget allows.
    pub config: Config,
    /// Per worker its shapes, what it would send, and its memory.
    pub workers: Vec<(Shapes, Ledger, u64)>,
}

/// What every worker of a configuration would send, with shapes and memory; nothing runs.
pub fn forecast(config: &Config, parts: &[Part]) -> Result<Costs> {
    let global = &parts.first().ok_or_else(|| TrainError::config("there are no parts"))?.global;
    check_trainable(config, global, parts.len())?;
    let (schedule, stages) = plan_stages(config, global.columns, global.classes)?;
    let evaluator = Evaluator::new(&config.train.metrics, global.classes, global.multi_label)?;
    let plans = laconic_graph::plan::plan_all(parts, config.model.has_self_loops())?;
    let shapes: Vec<Shapes> =
        parts.iter().zip(&plans).map(|(part, (plan, topology))| Shapes::of(part, plan, topology)).collect();
    let mut config = config.clone();
    if let Some(budget) = config.messages.budget_bytes()? {
        let mut totals = vec![0.0; budget::rungs()];
        for shapes in &shapes {
            let rungs = predict_rungs(&config, &stages, &evaluator, shapes)?;
            totals.iter_mut().zip(rungs).for_each(|(sum, bytes)| *sum += bytes);
        }
        config = budget::candidates(&config).swap_remove(budget::choose(&totals, budget)?);
    }
    let position = Position::default();
    let forecast = Forecast { config: &config, stages: &stages, evaluator: &evaluator, position: &position };
    let one = |shapes: Shapes| {
        let ledger = predict_worker(schedule, &forecast, &shapes, None)?;
        let memory = memory::predict(&shapes, &stages);
        Ok((shapes, ledger, memory))
    };
    let workers = shapes.into_iter().map(one).collect::<Result<_>>()?;
    Ok(Costs { config, workers })
}

//! Predicting a whole run: what every worker will send, to the byte, before anything runs.

use laconic_graph::part::Part;
use laconic_wire::{Count, Kind, Ledger, Rank, collectives};

use crate::config::Config;
use crate::discover::{Shapes, control, predict_discover};
use crate::error::{Result, TrainError};
use crate::evaluate::Evaluator;
use crate::memory;
use crate::report::WorkerReport;
use crate::run::{check_trainable, plan_stages};
use crate::schedule::{Forecast, Position, Schedule};

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

/// Totals by kind as an array in the order of [`Kind::ALL`].
pub fn by_kind(ledger: &Ledger) -> [Count; 7] {
    let totals = ledger.totals_by_kind();
    Kind::ALL.map(|kind| totals.get(&kind).copied().unwrap_or_default())
}

/// What every worker of a configuration would send, worker by worker, with stages and shapes; nothing runs.
pub fn forecast(config: &Config, parts: &[Part]) -> Result<Vec<(Shapes, Ledger, u64)>> {
    let global = &parts.first().ok_or_else(|| TrainError::config("there are no parts"))?.global;
    check_trainable(config, global, parts.len())?;
    let (schedule, stages) = plan_stages(config, global.columns, global.classes)?;
    let evaluator = Evaluator::new(&config.train.metrics, global.classes, global.multi_label)?;
    let position = Position::default();
    let forecast = Forecast { config, stages: &stages, evaluator: &evaluator, position: &position };
    let plans = laconic_graph::plan::plan_all(parts, config.model.has_self_loops())?;
    let one = |(part, (plan, topology)): (&Part, &(_, _))| {
        let shapes = Shapes::of(part, plan, topology);
        let ledger = predict_worker(schedule, &forecast, &shapes, None)?;
        let memory = memory::predict(&shapes, &stages);
        Ok((shapes, ledger, memory))
    };
    parts.iter().zip(&plans).map(one).collect()
}

//! Predicting a whole run: what every worker will send, to the byte, before anything runs.

use laconic_wire::{Count, Kind, Ledger, Rank, collectives};

use crate::discover::{Shapes, control, predict_discover};
use crate::error::Result;
use crate::report::WorkerReport;
use crate::schedule::{Forecast, Schedule};

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

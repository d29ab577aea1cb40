//! What trainers send besides models where each process holds one part: at the start what only owners know, and at the
//! end what each has sent to others (`run/trainers/spread.rs`).

use laconic_wire::{Kind, Ledger, Rank, collectives};

use crate::exchange::steps::Step;
use crate::plan::Plan;
use crate::worker::agree::forecast_agree;

/// What is told of what was sent to each worker of each kind: frames, bytes of payload, and with framing.
pub const COUNTS: usize = 3;

/// How many numbers all say of themselves, of so many trainers and their aggregator.
pub fn facts_len(plan: &Plan, trainers: usize) -> usize {
    2 * trainers + 1 + plan.class_counts
}

/// Bytes that the totals of one of so many workers take.
pub fn totals_len(size: usize) -> usize {
    size_of::<u64>() * COUNTS * Kind::ALL.len() * size
}

/// Enters what a process sends before the first mean, beside what it asks for evaluations and exchanges; `told` are the
/// bytes of its shapes, for the former and, where trainers exchange anything, for the latter.
pub fn forecast_start(
    (plan, trainers): (&Plan, usize),
    (rank, size): (Rank, usize),
    told: &[usize],
    ledger: &mut Ledger,
) {
    forecast_agree(rank, size, ledger);
    collectives::forecast_all_reduce_f64(ledger, Step::TrainerFacts.tag(0), size, rank, facts_len(plan, trainers));
    for (number, told) in told.iter().enumerate() {
        collectives::forecast_all_gather(ledger, Step::Shapes.of_exchange(0, number), size, rank, *told);
    }
    collectives::forecast_barrier(ledger, Step::TrainerFacts.tag(1), size, rank);
}

/// Enters what it sends behind the last.
pub fn forecast_end((rank, size): (Rank, usize), ledger: &mut Ledger) {
    if rank != Rank(0) {
        ledger.record(Step::TrainerSent.tag(0), Rank(0), totals_len(size));
    }
}

//! What trainers send besides models where each process holds one part: at the start what only owners know, and at the
//! end what each has sent to others (`run/trainers/spread.rs`).

use laconic_wire::{Kind, Ledger, Rank, collectives};

use super::book::Book;
use super::contents::{Leaving, What};
use crate::exchange::steps::Step;
use crate::plan::Plan;
use crate::worker::agree::forecast_agree;
use crate::worker::class_weights::forecast_class_weights;

/// What is told of what was sent to each worker of each kind: frames, bytes of payload, and with framing.
pub const COUNTS: usize = 3;

/// How many numbers all say of themselves, of so many trainers and their aggregator.
pub fn facts_len(trainers: usize) -> usize {
    2 * trainers + 1
}

/// Bytes that the totals of one of so many workers take.
pub fn totals_len(size: usize) -> usize {
    size_of::<u64>() * COUNTS * Kind::ALL.len() * size
}

/// Enters what a process sends before the first mean, beside what it asks for evaluations and exchanges; `told` are the
/// bytes of its shapes, for the former and, where trainers exchange anything, for the latter.
pub fn forecast_start((plan, trainers): (&Plan, usize), rank: Rank, size: usize, told: &[usize], ledger: &mut Ledger) {
    forecast_agree(rank, size, ledger);
    collectives::forecast_all_reduce_f64(ledger, Step::TrainerFacts.tag(0), size, rank, facts_len(trainers));
    forecast_class_weights(plan, size, rank, ledger);
    if plan.trainers.as_ref().is_some_and(|trainers| trainers.tell) {
        collectives::forecast_barrier(ledger, Step::TrainerFacts.tag(2), size, rank);
    }
    for (number, told) in told.iter().enumerate() {
        collectives::forecast_all_gather(ledger, Step::Shapes.of_exchange(0, number), size, rank, *told);
    }
    collectives::forecast_barrier(ledger, Step::TrainerFacts.tag(1), size, rank);
}

/// What of that a policy may deny: how many training nodes of each class there are.
pub fn leaving_at_start(plan: &Plan, rank: Rank, size: usize) -> Vec<Leaving> {
    let mut book = Book::default();
    book.note(What::ClassCounts, 0, |ledger| forecast_class_weights(plan, size, rank, ledger));
    book.leaves()
}

/// Enters what it sends behind the last.
pub fn forecast_end(rank: Rank, size: usize, ledger: &mut Ledger) {
    if rank != Rank(0) {
        ledger.record(Step::TrainerSent.tag(0), Rank(0), totals_len(size));
    }
}

//! What workers remember that cannot be shared out anew: where there is nothing of that kind, a run may go on over
//! other parts, and another number of them. Parameters, optimiser, the best so far and counters are the same on all
//! workers; samples, masks and dropout follow from keys; frozen inputs and kept rows are computed and fetched again.

use super::Plan;
use crate::saved::OwnMemory;

impl Plan {
    /// Whether a worker remembers between rounds what no other knows, so that a checkpoint needs a file of each.
    pub fn remembers(&self) -> bool {
        self.of_workers().is_some()
    }

    /// What ties a run to the parts that it began with, if anything.
    pub fn own_memory(&self) -> Option<OwnMemory> {
        let what = "the steps and the optimiser of its own part";
        let of_trainers = self.trainers.as_ref().map(|_| OwnMemory { key: "schedule.kind", what });
        of_trainers.or_else(|| self.of_workers())
    }

    fn of_workers(&self) -> Option<OwnMemory> {
        if self.is_late() {
            let what = "the rows that others sent it a round ago";
            return Some(OwnMemory { key: "schedule.kind", what });
        }
        self.members.agreement(&self.cadence).remembers.or_else(|| self.messages.own_memory())
    }
}

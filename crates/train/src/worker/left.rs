//! Held-out edges for which too few pairs were drawn that are no edges.

use laconic_wire::{Ledger, Rank, Transport, WireError, collectives};

use super::evaluate::NAMES;
use crate::error::Result;
use crate::exchange::shapes::Shapes;
use crate::exchange::steps;

/// Splits that are judged: validation and testing.
pub(super) const SPLITS: usize = 2;

/// For how many edges fewer pairs were drawn that are no edges than were asked for, and how many different ones the
/// least of them have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Left {
    pub edges: u64,
    pub fewest: u64,
}

impl Left {
    /// Of the edges of both.
    #[must_use]
    pub fn and(self, other: Left) -> Left {
        let fewest = match (self.edges, other.edges) {
            (0, _) => other.fewest,
            (_, 0) => self.fewest,
            _ => self.fewest.min(other.fewest),
        };
        Left { edges: self.edges.saturating_add(other.edges), fewest }
    }

    /// Of all workers; called on every one at once.
    ///
    /// # Errors
    /// If another worker does not answer, or sends something else.
    pub fn of_all(own: [Left; SPLITS], transport: &mut dyn Transport, round: u32) -> Result<[Left; SPLITS]> {
        let step = steps::Step::JudgedLeft.tag(round);
        let mine: Vec<u8> = own.iter().flat_map(|left| [left.edges, left.fewest]).flat_map(u64::to_le_bytes).collect();
        let mut all = [Left::default(); SPLITS];
        for (peer, bytes) in collectives::all_gather(transport, step, &mine)?.iter().enumerate() {
            let (numbers, []) = bytes.as_chunks::<8>() else {
                let error = WireError::malformed("counts of another shape");
                return Err(error.from_peer(transport.rank(), Rank(peer as u32), step).into());
            };
            let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
            for (left, of) in all.iter_mut().zip(numbers.as_chunks::<2>().0) {
                *left = left.and(Left { edges: of[0], fewest: of[1] });
            }
        }
        Ok(all)
    }

    /// Enters what [`Left::of_all`] sends.
    pub fn forecast(shapes: &Shapes, round: u32, ledger: &mut Ledger) {
        let step = steps::Step::JudgedLeft.tag(round);
        collectives::forecast_all_gather(ledger, step, shapes.workers(), Rank(shapes.rank), SPLITS * 16);
    }

    /// What is to be said of it, of a split of so many edges.
    pub(super) fn said(self, number: u32, split: usize, edges: f64) -> Option<String> {
        let Left { edges: short, fewest } = self;
        let of = NAMES.get(split)?;
        (short > 0).then(|| {
            format!(
                "{short} of {edges} {of} edges have fewer than {number} drawn pairs that are no edges, at least \
                 {fewest} different ones: these stand for the others, too (task.filter_negatives)"
            )
        })
    }
}

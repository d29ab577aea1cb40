//! What each part's own nodes, or edges, come to under a model: counted by its worker beside what all add up, kept with
//! the best model, and told to worker 0 with each checkpoint that a run may go on from.

use laconic_nn::decisions::{Decisions, Form};
use laconic_wire::{Frame, Ledger, Rank, Tag, Transport, WireError};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::exchange::steps::Step;

/// The splits that parts are told apart in: validation and testing.
pub const JUDGED: usize = 2;

/// What one part's nodes, or edges, of a split come to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// How many there are.
    pub count: u64,
    /// Their loss, then each metric of the run in its order; `None` where it is not defined.
    pub figures: Vec<Option<f64>>,
    /// Counts of decisions on classes, in the order of [`Decisions::counts`].
    pub decisions: Vec<u64>,
}

/// A part's validation and testing.
pub type PartCounts = [Counted; JUDGED];

/// What is known of parts under the best model.
#[derive(Debug, Clone, PartialEq)]
pub enum Known {
    /// A worker knows its own part.
    Own(PartCounts),
    /// All parts, on worker 0; nothing elsewhere, or where the run broke off before they were told.
    All(Vec<PartCounts>),
}

impl Default for Known {
    fn default() -> Known {
        Known::All(Vec::new())
    }
}

impl Known {
    /// All parts, where they are known.
    pub fn all(&self) -> &[PartCounts] {
        match self {
            Known::All(all) => all,
            Known::Own(_) => &[],
        }
    }
}

/// How much a part tells: always as much, so that it can be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The loss, and the metrics.
    pub figures: usize,
    /// Decisions that are counted.
    pub form: Form,
}

impl Shape {
    /// Bytes of a part.
    fn bytes(self) -> usize {
        JUDGED * (size_of::<u64>() + self.figures * size_of::<f64>() + self.form.len() * size_of::<u32>())
    }

    fn write(self, part: &PartCounts, into: &mut Vec<u8>) {
        for Counted { count, figures, decisions } in part {
            into.extend(count.to_le_bytes());
            let figures = figures.iter().copied().chain(std::iter::repeat(None)).take(self.figures);
            figures.for_each(|figure| into.extend(figure.unwrap_or(f64::NAN).to_le_bytes()));
            let decisions = decisions.iter().copied().chain(std::iter::repeat(0)).take(self.form.len());
            decisions.for_each(|count| into.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes()));
        }
    }

    fn read(self, bytes: &[u8]) -> Option<PartCounts> {
        if bytes.len() != self.bytes() {
            return None;
        }
        let mut splits = bytes.chunks_exact(self.bytes() / JUDGED);
        let mut split = || {
            let (count, rest) = splits.next()?.split_first_chunk()?;
            let (figures, decisions) = rest.split_at_checked(self.figures * size_of::<f64>())?;
            let figures = figures.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
            Some(Counted {
                count: u64::from_le_bytes(*count),
                // A figure is never infinite: losses that are have ended the run.
                figures: figures.map(|figure| Some(figure).filter(|figure| figure.is_finite())).collect(),
                decisions: decisions.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes).into()).collect(),
            })
        };
        Some([split()?, split()?])
    }

    /// The decisions of all parts on a split together; `None` where none are counted, or parts are of another form.
    pub fn decisions(self, parts: &[PartCounts], split: usize) -> Option<Decisions> {
        let mut sum = Decisions::none(self.form);
        for part in parts {
            sum.add(&Decisions::from_counts(self.form, part.get(split)?.decisions.clone())?);
        }
        (!self.form.is_empty() && !parts.is_empty()).then_some(sum)
    }
}

fn tag(round: u32) -> Tag {
    Step::PartCounts.tag(round)
}

/// Tells worker 0 what this part has come to under the best model so far; it then knows all, unless it knew them
/// already.
///
/// # Errors
/// If another worker does not answer, or sends something else.
pub fn gather(transport: &mut dyn Transport, shape: Shape, known: Option<&mut Known>, round: u32) -> Result<()> {
    let (rank, size, nothing) = (transport.rank(), transport.size(), PartCounts::default());
    let own = match &known {
        Some(Known::Own(own)) => own.clone(),
        _ => nothing,
    };
    if rank != Rank(0) {
        let mut frame = Frame::new(tag(round), transport.buffer());
        shape.write(&own, frame.payload_mut());
        return Ok(transport.send(Rank(0), frame)?);
    }
    let mut all = vec![own];
    for peer in rank.others(size) {
        let frame = transport.recv(peer, tag(round))?;
        let part = shape.read(frame.payload()).ok_or_else(|| {
            WireError::malformed("counts of a part of another shape").from_peer(rank, peer, tag(round))
        })?;
        all.push(part);
        transport.recycle(frame);
    }
    if let Some(known) = known.filter(|known| matches!(known, Known::Own(_))) {
        *known = Known::All(all);
    }
    Ok(())
}

/// Enters what [`gather`] sends.
pub fn forecast(rank: Rank, size: usize, shape: Option<Shape>, round: u32, ledger: &mut Ledger) {
    if let Some(shape) = shape.filter(|_| rank != Rank(0) && size > 1) {
        ledger.record(tag(round), Rank(0), shape.bytes());
    }
}

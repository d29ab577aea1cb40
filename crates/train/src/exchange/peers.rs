//! Where overlap lives: in which order an exchange and the work that can be done meanwhile happen.

use laconic_nn::{Compute, Matrix};
use laconic_wire::{Direction, Tag, Transport};

use super::drawn::Presence;
use super::halo::{Halo, Request};
use super::late::Late;
use super::stale::Stale;
use crate::config::Carried;
use crate::error::Result;
use crate::selection::Scope;

/// A worker's threads and its way to its peers: what a pass needs besides parameters and inputs.
pub struct Peers<'a> {
    /// Threads and scratch memory.
    pub compute: &'a mut Compute,
    /// What carries frames.
    pub transport: &'a mut dyn Transport,
    /// The halo exchange.
    pub halo: &'a mut Halo,
    /// What is used a round after it was sent, in a stage where it is.
    pub late: Option<&'a mut Late>,
    /// What others have told that nobody waits for, in a stage of trainers where they tell each other.
    pub stale: Option<&'a mut Stale>,
    /// Whether work goes on while messages travel.
    pub overlap: bool,
    /// Which rows evaluations exchange.
    pub evaluation: Scope,
    /// Whether workers learn apart until they average what they have learned.
    pub is_alone: bool,
}

impl Peers<'_> {
    /// What crosses where messages are products with weights, in passes whose rows are used later than they were sent.
    pub fn carries(&self) -> Option<Carried> {
        self.late.as_ref().map(|late| late.carries).or(self.stale.as_ref().map(|stale| stale.carries))
    }
}

impl Peers<'_> {
    /// Exchanges `rows`, forward into halo rows, in reverse added to own rows, and does `work` meanwhile; in reverse it
    /// is `work` that sets `into`. The only place that knows in which order the two happen, and whether rows are used
    /// at once, late, or whenever they come.
    ///
    /// # Errors
    /// If a peer does not answer, or a codec refuses the rows.
    pub fn exchange(
        &mut self,
        tag: Tag,
        rows: &Matrix,
        into: &mut Matrix,
        work: impl FnOnce(&mut Compute, &mut Matrix),
    ) -> Result<Presence> {
        let evaluation = tag.evaluates();
        if let Some(stale) = self.stale.as_mut().filter(|_| !evaluation) {
            // Gradients of rows that others have told go nowhere.
            let presence = match tag.direction {
                Direction::Forward => stale.exchange(self.compute, self.halo, tag, rows, into)?,
                Direction::Reverse => None,
            };
            work(self.compute, into);
            return Ok(presence);
        }
        let scope = if evaluation { self.evaluation } else { Scope::Selected };
        let request = Request::of(tag, scope, self.late.is_some());
        if self.late.is_some() && !evaluation {
            return self.exchange_late(request, rows, into, work);
        }
        let Peers { compute, transport, halo, overlap, .. } = self;
        let presence = halo.presence(request);
        match (tag.direction, *overlap) {
            (_, true) => {
                let pending = halo.start(compute, *transport, request, rows)?;
                work(compute, into);
                pending.finish(halo, compute, *transport, into)?;
            }
            (Direction::Forward, false) => {
                halo.start(compute, *transport, request, rows)?.finish(halo, compute, *transport, into)?;
                work(compute, into);
            }
            (Direction::Reverse, false) => {
                work(compute, into);
                halo.start(compute, *transport, request, rows)?.finish(halo, compute, *transport, into)?;
            }
        }
        Ok(presence)
    }

    /// What is sent now is used in the next round; what the last round sent is used now.
    fn exchange_late(
        &mut self,
        request: Request,
        rows: &Matrix,
        into: &mut Matrix,
        work: impl FnOnce(&mut Compute, &mut Matrix),
    ) -> Result<Presence> {
        let Peers { compute, transport, halo, late, .. } = self;
        let late = late.as_mut().expect("only late exchanges come here");
        let tag = request.tag;
        let pending = halo.start(compute, *transport, request, rows)?;
        let presence = match tag.direction {
            Direction::Forward => {
                let presence = late.take(compute, halo, *transport, tag, into)?;
                work(compute, into);
                presence
            }
            Direction::Reverse => {
                work(compute, into);
                late.take(compute, halo, *transport, tag, into)?
            }
        };
        late.started(tag, pending);
        Ok(presence)
    }
}

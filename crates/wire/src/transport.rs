//! What carries frames.
//!
//! One file each: [`threads`] within a process, [`sockets`] and [`star`] between processes of one machine, `mpi`
//! between those of a cluster; and four wrappers, [`metered`] with the ledger, [`shaped`] with a model of a slow
//! link, [`hosted`] with a peer in the same process and [`channels`] for threads that share one. The rest of the
//! program holds a `dyn Transport` and cannot tell them apart.

mod buffers;
pub mod by_hand;
pub mod channels;
mod end;
pub mod guarded;
pub mod hosted;
pub mod link;
pub mod metered;
#[cfg(feature = "mpi")]
pub mod mpi;
mod patience;
pub mod shaped;
#[cfg(feature = "sites")]
pub mod sites;
pub mod sockets;
pub mod star;
mod stash;
pub mod threads;

pub use buffers::Buffers;
pub use end::End;
pub use patience::{Patience, Wait};
pub use stash::Stash;

use crate::{Frame, Rank, Result, Tag};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A worker's end of all its links.
///
/// Blocking, because a handful of large frames per layer gains nothing from a reactor; overlap of network and
/// computation is the order of `send`, work and `recv` in the worker. Frames are owned: `send` takes one, `recv` gives
/// one, and used vectors go round through [`recycle`](Transport::recycle) and [`buffer_of`](Transport::buffer_of). The
/// alternative, borrowed buffers and request handles as in MPI, saves one copy inside the MPI transport and costs
/// lifetimes in every signature.
///
/// A transport is its [`End`] and three verbs; the other methods are what callers ask of the end, and nobody writes
/// them again. The halo exchange and the collectives call this; a wrapper holds a boxed transport, shows that one's end
/// and does something of its own around the verbs.
pub trait Transport: Send {
    /// Whose end this is, how long it waits and its used vectors.
    fn end(&self) -> &End;

    /// The same, to be changed.
    fn end_mut(&mut self) -> &mut End;

    /// Queues the frame and returns; never waits for the receiver.
    ///
    /// # Errors
    ///
    /// [`WireError::Gone`](crate::WireError::Gone) if the receiver's end no longer exists, and what the transport says.
    ///
    /// # Panics
    ///
    /// If `to` is no other worker of the group.
    fn send(&mut self, to: Rank, frame: Frame) -> Result<()>;

    /// The next frame from `from` with this tag. Waits at most for the deadline, counted from the call. Frames with
    /// other tags that arrive meanwhile are kept for later.
    ///
    /// # Errors
    ///
    /// [`WireError`](crate::WireError) `Deadline`, `Gone` or `Interrupted`, each with whom it waited for; `Round` if a
    /// later round of the same stream comes, `Unclaimed` if too many others do; and what the transport says.
    ///
    /// # Panics
    ///
    /// If `from` is no other worker of the group.
    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame>;

    /// The next frame from `from` that nobody has asked for, whatever its tag, if one is here; frames of one sender
    /// come in the order in which they were sent. Never waits. For whoever hears several others who are not in step.
    ///
    /// # Errors
    ///
    /// [`WireError::Gone`](crate::WireError::Gone) if nothing is here and nothing will come, and what the transport
    /// says.
    ///
    /// # Panics
    ///
    /// If `from` is no other worker of the group.
    fn poll(&mut self, from: Rank) -> Result<Option<Frame>>;

    /// Waits until everything sent has left this end. To be called once, when all is done.
    ///
    /// # Errors
    ///
    /// [`WireError::Unfinished`](crate::WireError::Unfinished) with the peer that did not take its frames.
    fn finish(&mut self) -> Result<()>;

    /// The worker whose end this is.
    fn rank(&self) -> Rank {
        self.end().rank()
    }

    /// How many workers there are.
    fn size(&self) -> usize {
        self.end().size()
    }

    /// How long this end waits, and who may end a wait early.
    fn patience(&self) -> &Patience {
        self.end().patience()
    }

    /// Makes every wait also end when the flag becomes true, for instance in a handler of SIGTERM; flags given before
    /// still count. `mpirun` sends that signal when another process died, and the flag turns it into an error that says
    /// whom this worker waited for.
    fn add_interrupt(&mut self, flag: Arc<AtomicBool>) {
        self.end_mut().add_interrupt(flag);
    }

    /// Hands a used buffer back, for later frames.
    fn recycle(&mut self, frame: Frame) {
        self.end().recycle(frame);
    }

    /// A used buffer, preferably with room for a frame with this payload.
    fn buffer_of(&mut self, payload_bytes: usize) -> Vec<u8> {
        self.end().buffers().take(payload_bytes)
    }

    /// A used buffer of any size.
    fn buffer(&mut self) -> Vec<u8> {
        self.buffer_of(0)
    }

    /// How long this end has waited for frames since it was made; on a modelled network, what the model says.
    fn waited(&self) -> Duration {
        self.end().waited()
    }
}

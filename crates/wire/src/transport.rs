//! What carries frames.
//!
//! One file each: [`threads`] within a process, `mpi` between processes of a cluster; and two wrappers, [`metered`]
//! with the ledger and [`shaped`] with a model of a slow link. The rest of the program holds a `dyn Transport` and
//! cannot tell them apart.

mod buffers;
pub mod link;
pub mod metered;
#[cfg(feature = "mpi")]
pub mod mpi;
mod patience;
pub mod shaped;
mod stash;
pub mod threads;

pub use buffers::Buffers;
pub use patience::{Patience, Wait};
pub use stash::Stash;

use crate::{Frame, Rank, Result, Tag};
use std::time::Duration;

/// A worker's end of all its links.
///
/// Blocking, because a handful of large frames per layer gains nothing from a reactor; overlap of network and
/// computation is the order of `send`, work and `recv` in the worker. Frames are owned: `send` takes one, `recv` gives
/// one, and used vectors go round through [`recycle`](Transport::recycle) and [`buffer_of`](Transport::buffer_of). The
/// alternative, borrowed buffers and request handles as in MPI, saves one copy inside the MPI transport and costs
/// lifetimes in every signature.
///
/// The halo exchange and the collectives call this; a wrapper implements it by calling the transport inside.
pub trait Transport: Send {
    /// This worker.
    fn rank(&self) -> Rank;

    /// How many workers there are.
    fn size(&self) -> usize;

    /// How long this end waits, and who may end a wait early.
    fn patience(&self) -> &Patience;

    /// Queues the frame and returns; never waits for the receiver. A worker does not send to itself.
    fn send(&mut self, to: Rank, frame: Frame) -> Result<()>;

    /// The next frame from `from` with this tag. Waits at most for the deadline given at construction, counted from the
    /// call. Frames with other tags that arrive meanwhile are kept for later; a later round of the same stream is an
    /// error.
    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame>;

    /// Hands a used buffer back, for later frames.
    fn recycle(&mut self, frame: Frame);

    /// A used buffer, preferably with room for a frame with this payload.
    fn buffer_of(&mut self, payload_bytes: usize) -> Vec<u8>;

    /// A used buffer of any size.
    fn buffer(&mut self) -> Vec<u8> {
        self.buffer_of(0)
    }

    /// How long this end has waited for frames since it was made.
    fn waited(&self) -> Duration;

    /// Waits until everything sent has left this end. To be called once, when all is done.
    fn finish(&mut self) -> Result<()>;
}

/// A boxed or borrowed transport is a transport, so wrappers wrap it too.
macro_rules! forward {
    ($pointer:ty) => {
        impl<T: Transport + ?Sized> Transport for $pointer {
            fn rank(&self) -> Rank {
                (**self).rank()
            }

            fn size(&self) -> usize {
                (**self).size()
            }

            fn patience(&self) -> &Patience {
                (**self).patience()
            }

            fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
                (**self).send(to, frame)
            }

            fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
                (**self).recv(from, tag)
            }

            fn recycle(&mut self, frame: Frame) {
                (**self).recycle(frame);
            }

            fn buffer_of(&mut self, payload_bytes: usize) -> Vec<u8> {
                (**self).buffer_of(payload_bytes)
            }

            fn waited(&self) -> Duration {
                (**self).waited()
            }

            fn finish(&mut self) -> Result<()> {
                (**self).finish()
            }
        }
    };
}

forward!(Box<T>);
forward!(&mut T);

/// Asserts that `peer` is another worker of the group.
fn assert_peer(rank: Rank, size: usize, peer: Rank) {
    assert!(peer.index() < size, "rank {peer} is none of the {size} workers");
    assert_ne!(peer, rank, "a worker has no link to itself");
}

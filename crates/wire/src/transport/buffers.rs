//! Used vectors, waiting to become frames again.

use crate::HEADER_BYTES;
use std::sync::{Arc, Mutex, PoisonError};

/// More vectors than any schedule has in flight; beyond it they are freed, so a one-sided flow cannot fill the memory.
const KEPT_MAX: usize = 1024;

/// Room for what a link model puts behind the payload.
const STAMP_BYTES: usize = size_of::<u64>();

/// A pool of vectors. In the steady state every round takes and returns the same sizes, so nothing is allocated. A
/// handle: clones share the pool.
#[derive(Debug, Clone, Default)]
pub struct Buffers(Arc<Mutex<Pool>>);

#[derive(Debug, Default)]
struct Pool {
    kept: Vec<Vec<u8>>,
}

impl Buffers {
    /// The smallest vector with room for a frame with this payload; if all are smaller, the largest, so that it grows
    /// once; if there is none, a new one that has the room.
    pub fn take(&self, payload_bytes: usize) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(payload_bytes)
    }

    /// Keeps a vector for later.
    pub fn put(&self, buffer: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(buffer);
    }
}

impl Pool {
    fn take(&mut self, payload_bytes: usize) -> Vec<u8> {
        let wanted = payload_bytes.saturating_add(HEADER_BYTES + STAMP_BYTES);
        let fits = |buffer: &Vec<u8>| buffer.capacity() >= wanted;
        let enough = self.kept.iter().enumerate().filter(|(_, b)| fits(b)).min_by_key(|(_, b)| b.capacity());
        let best = enough.or_else(|| self.kept.iter().enumerate().max_by_key(|(_, b)| b.capacity()));
        let Some(place) = best.map(|(place, _)| place) else {
            return Vec::with_capacity(wanted);
        };
        let mut buffer = self.kept.swap_remove(place);
        buffer.clear();
        buffer.reserve(wanted);
        buffer
    }

    fn put(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 && self.kept.len() < KEPT_MAX {
            self.kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_fits_is_taken_and_the_largest_grows() {
        let buffers = Buffers::default();
        for capacity in [100, 1000, 10] {
            buffers.put(Vec::with_capacity(capacity));
        }
        assert_eq!(buffers.take(50).capacity(), 100);
        assert!(buffers.take(5000).capacity() >= 5000 + HEADER_BYTES);
        assert!(buffers.take(0).capacity() >= HEADER_BYTES);
        assert_eq!(buffers.take(7).capacity(), 7 + HEADER_BYTES + STAMP_BYTES);
    }
}

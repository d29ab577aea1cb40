//! Compute threads: an explicit pool, and the workspace that kernels borrow.

use std::sync::{Arc, Mutex, PoisonError};

use laconic_array::Array;
use rayon::prelude::*;

/// The compute threads of one worker and the scratch memory of its kernels.
///
/// Work is always cut into pieces whose bounds depend on the shapes alone, never on the number of threads, and partial
/// sums are added in piece order. So the number of threads changes the speed and not one bit of a result.
pub struct Compute {
    pool: Option<rayon::ThreadPool>,
    threads: usize,
    scratch: Array<f32>,
    rooms: Rooms,
}

/// Memory for what a piece of work makes and nobody else reads: as many as pieces are worked on at once, each as large
/// as the largest has wanted it, and used again. Each thread has its own, so that nobody waits for another's lock:
/// rooms are lent for a few rows at a time, and with one pool for all two threads spent a fifth of a round of `gat` on
/// it.
#[derive(Clone)]
pub(crate) struct Rooms(Arc<[OfThread]>);

/// The rooms of one thread, in cache lines that no other thread writes to.
#[derive(Default)]
#[repr(align(128))]
struct OfThread(Mutex<Vec<Array<f32>>>);

impl Rooms {
    fn of(threads: usize) -> Rooms {
        Rooms((0..threads.max(1)).map(|_| OfThread::default()).collect())
    }

    /// Lends a room, contents and length unspecified.
    pub fn lend<T>(&self, task: impl FnOnce(&mut Array<f32>) -> T) -> T {
        let OfThread(own) = &self.0[rayon::current_thread_index().unwrap_or(0) % self.0.len()];
        // Who has panicked has left no room behind, and the others are whole.
        let rooms = || own.lock().unwrap_or_else(PoisonError::into_inner);
        let mut room = rooms().pop().unwrap_or_default();
        let made = task(&mut room);
        rooms().push(room);
        made
    }
}

impl Compute {
    /// `threads` compute threads; 1 means that everything runs on the calling thread.
    ///
    /// # Panics
    /// If the operating system refuses to start them.
    pub fn new(threads: usize) -> Self {
        Compute::start(threads).expect("the operating system starts compute threads")
    }

    /// As [`Compute::new`], for numbers of threads that a user has chosen.
    ///
    /// # Errors
    /// If the operating system refuses to start them.
    pub fn start(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        let name = |i| format!("compute-{i}");
        let build = || rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build();
        let pool = (threads > 1).then(build).transpose()?;
        Ok(Compute { pool, threads: threads.max(1), scratch: Array::new(), rooms: Rooms::of(threads) })
    }

    /// The number of compute threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `task(piece, chunk)` for each chunk of `size` values (the last may be shorter).
    pub fn chunks<T: Send>(&self, data: &mut [T], size: usize, task: impl Fn(usize, &mut [T]) + Sync + Send) {
        let size = size.max(1);
        match &self.pool {
            Some(pool) if data.len() > size => {
                pool.install(|| data.par_chunks_mut(size).enumerate().for_each(|(piece, chunk)| task(piece, chunk)));
            }
            _ => data.chunks_mut(size).enumerate().for_each(|(piece, chunk)| task(piece, chunk)),
        }
    }

    /// Calls `task(row, values)` for each row of `width` values, [`ROWS_PER_PIECE`] rows a piece.
    pub fn rows<T: Send>(&self, (data, width): (&mut [T], usize), task: impl Fn(usize, &mut [T]) + Sync + Send) {
        let width = width.max(1);
        self.chunks(data, ROWS_PER_PIECE * width, |piece, data| {
            for (line, row) in data.chunks_mut(width).enumerate() {
                task(piece * ROWS_PER_PIECE + line, row);
            }
        });
    }

    /// As [`Compute::rows`] with two arrays: `task(row, a, b)` gets the same row of each.
    pub fn rows2<T: Send, U: Send>(
        &self,
        (a, a_width): (&mut [T], usize),
        (b, b_width): (&mut [U], usize),
        task: impl Fn(usize, &mut [T], &mut [U]) + Sync + Send,
    ) {
        let (a_width, b_width) = (a_width.max(1), b_width.max(1));
        self.chunks2((a, ROWS_PER_PIECE * a_width), (b, ROWS_PER_PIECE * b_width), |piece, a, b| {
            for (line, (a, b)) in a.chunks_mut(a_width).zip(b.chunks_mut(b_width)).enumerate() {
                task(piece * ROWS_PER_PIECE + line, a, b);
            }
        });
    }

    /// As [`Compute::chunks`] with two arrays cut alike: piece `i` gets the `i`-th chunk of each.
    pub fn chunks2<T: Send, U: Send>(
        &self,
        (a, a_size): (&mut [T], usize),
        (b, b_size): (&mut [U], usize),
        task: impl Fn(usize, &mut [T], &mut [U]) + Sync + Send,
    ) {
        let (a_size, b_size) = (a_size.max(1), b_size.max(1));
        match &self.pool {
            Some(pool) if a.len() > a_size => pool.install(|| {
                a.par_chunks_mut(a_size)
                    .zip(b.par_chunks_mut(b_size))
                    .enumerate()
                    .for_each(|(piece, (a, b))| task(piece, a, b));
            }),
            _ => {
                a.chunks_mut(a_size).zip(b.chunks_mut(b_size)).enumerate().for_each(|(piece, (a, b))| task(piece, a, b))
            }
        }
    }

    /// Sums partial results in piece order: calls `task(piece, partial)` for each piece with a zeroed partial of `len`
    /// values, then adds the partials to `into`, first piece first.
    pub fn reduce(&mut self, into: &mut [f32], pieces: usize, task: impl Fn(usize, &mut [f32]) + Sync + Send) {
        let len = into.len();
        let mut scratch = self.lend(len * pieces);
        let partials = &mut scratch[..len * pieces];
        partials.fill(0.0);
        self.chunks(partials, len, &task);
        self.add_in_order(into, partials);
        self.scratch = scratch;
    }

    /// [`Compute::reduce`] in as many pieces as `data` has between `bounds`, the first of which is 0 and the last its
    /// length: `task(piece, partial, values)` gets those of its piece.
    ///
    /// # Panics
    ///
    /// If there are more than [`MOST_PIECES`], or the bounds do not ascend.
    pub(crate) fn reduce_beside<T: Send>(
        &mut self,
        into: &mut [f32],
        (data, bounds): (&mut [T], &[usize]),
        task: impl Fn(usize, &mut [f32], &mut [T]) + Sync + Send,
    ) {
        let (len, pieces) = (into.len(), bounds.len().saturating_sub(1));
        let mut scratch = self.lend(len * pieces);
        scratch[..len * pieces].fill(0.0);
        let mut cut: [Option<(&mut [f32], &mut [T])>; MOST_PIECES] = Default::default();
        let (mut partials, mut rest) = (&mut scratch[..len * pieces], data);
        for (cut, bounds) in cut[..pieces].iter_mut().zip(bounds.windows(2)) {
            let (partial, partials_behind) = partials.split_at_mut(len);
            let (values, behind) = rest.split_at_mut(bounds[1] - bounds[0]);
            *cut = Some((partial, values));
            (partials, rest) = (partials_behind, behind);
        }
        // Each with its own end of the array; whoever is ready takes the next.
        self.chunks(&mut cut[..pieces], 1, |piece, cut| {
            if let Some((partial, values)) = cut[0].take() {
                task(piece, partial, values);
            }
        });
        self.add_in_order(into, &scratch[..len * pieces]);
        self.scratch = scratch;
    }

    /// Adds partial results of the length of `into` to it, the first first.
    fn add_in_order(&self, into: &mut [f32], partials: &[f32]) {
        let len = into.len().max(1);
        self.chunks(into, 4096, |piece, out| {
            for partial in partials.chunks_exact(len) {
                let from = &partial[piece * 4096..][..out.len()];
                for (o, p) in out.iter_mut().zip(from) {
                    *o += p;
                }
            }
        });
    }

    /// Lends `len` values of scratch memory, contents unspecified. Give it back with [`Compute::give_back`].
    pub fn lend(&mut self, len: usize) -> Array<f32> {
        let scratch = std::mem::take(&mut self.scratch);
        if scratch.len() >= len {
            return scratch;
        }
        // Nobody reads what it held: it is freed, not copied.
        drop(scratch);
        Array::zeros(len)
    }

    /// Memory for pieces of work.
    pub(crate) fn rooms(&self) -> Rooms {
        self.rooms.clone()
    }

    /// Takes lent scratch memory back.
    pub fn give_back(&mut self, scratch: Array<f32>) {
        self.scratch = scratch;
    }
}

/// How many rows one piece of row-wise work has.
pub const ROWS_PER_PIECE: usize = 256;

/// Into how many pieces sums over rows are cut at most.
pub const MOST_PIECES: usize = 16;

/// Into how many pieces `rows` rows are cut for a sum over rows: enough for any desktop's cores, few enough that adding
/// the pieces up costs nothing. Depends on `rows` alone.
pub fn row_pieces(rows: usize) -> usize {
    rows.div_ceil(1024).clamp(1, MOST_PIECES)
}

/// Bounds of these pieces, all of one size but the last, and their number.
pub(crate) fn row_bounds(rows: usize) -> ([usize; MOST_PIECES + 1], usize) {
    let pieces = row_pieces(rows);
    let size = rows.div_ceil(pieces);
    (std::array::from_fn(|piece| (piece * size).min(rows)), pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_have_the_same_bits_on_any_number_of_threads() {
        let values: Vec<f32> = (0..10_000).map(|i| (i as f32 * 0.37).sin()).collect();
        let sums = [1, 2, 3, 5].map(|threads| {
            let mut compute = Compute::new(threads);
            let mut sum = [0.0f32; 3];
            compute.reduce(&mut sum, 10, |piece, partial| {
                for v in &values[piece * 1000..(piece + 1) * 1000] {
                    partial[0] += v;
                    partial[2] += v * v;
                }
            });
            sum.map(f32::to_bits)
        });
        assert!(sums.iter().all(|s| *s == sums[0]));
    }
}

//! What the sums of neighbours' rows read, whatever instructions make them.

/// Bytes of rows that are prefetched ahead of the row at work, about, and how many rows that may be.
const BYTES_AHEAD: usize = 8192;
const ROWS_AHEAD: (usize, usize) = (8, 32);

/// What the sum of one piece reads.
#[derive(Clone, Copy)]
pub(super) struct Sum<'a, T> {
    /// Columns of rows and sums.
    pub width: usize,
    /// Whether the sums are added to what is there.
    pub add: bool,
    /// Row boundaries of the piece; one more than its rows.
    pub offsets: &'a [usize],
    /// The row of each entry.
    pub columns: &'a [u32],
    /// The rows that are summed, row-major.
    pub rows: &'a [T],
}

impl<'a, T> Sum<'a, T> {
    /// The same of these rows.
    pub fn of<U>(&self, rows: &'a [U]) -> Sum<'a, U> {
        let Sum { width, add, offsets, columns, .. } = *self;
        Sum { width, add, offsets, columns, rows }
    }

    /// How many entries ahead rows are prefetched.
    pub fn distance(&self) -> usize {
        let (least, most) = ROWS_AHEAD;
        (BYTES_AHEAD / size_of_val(&self.rows[..self.width.min(self.rows.len())]).max(1)).clamp(least, most)
    }
}

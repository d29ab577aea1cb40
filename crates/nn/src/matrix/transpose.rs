//! Compressed rows in the order of their columns.
//!
//! A counting sort over all columns waits for memory twice an entry: for its column's counter, and for the place that
//! this says. Here entries are first distributed to buckets of columns that follow each other, from front to back, and
//! each bucket is sorted while it lies in a cache, on all threads of the pool. Takes 8 bytes an entry meanwhile.

use std::ops::Range;

use rayon::prelude::*;

/// Buckets at most, so that the lines that each of them is written to lie in an L1 cache.
const BUCKETS: usize = 256;

/// Columns of a bucket at least.
const COLUMNS: usize = 1024;

/// So many entries are sorted at once, and by one thread: they lie in a cache.
const FEW: usize = 1 << 17;

/// For each column, the rows that have an entry in it, in ascending order, and where each column's begin.
pub(crate) fn transpose_pattern(columns: usize, offsets: &[usize], indices: &[u32]) -> (Vec<usize>, Vec<u32>) {
    let rows = offsets.len() - 1;
    let bound = |piece: usize, pieces: usize| match piece == pieces {
        true => rows,
        false => offsets[..rows].partition_point(|&offset| offset < indices.len() * piece / pieces),
    };
    by_column(columns, indices.len(), bound, |of: &Range<usize>| {
        of.clone()
            .flat_map(|row| indices[offsets[row]..offsets[row + 1]].iter().map(move |&column| (column, row as u32)))
    })
}

/// Where each entry of a transposed pattern of so many columns stands in the pattern.
pub(crate) fn transposed_positions(columns: usize, indices: &[u32]) -> Vec<u32> {
    let bound = |piece: usize, pieces: usize| indices.len() * piece / pieces;
    let entries = |of: &Range<usize>| indices[of.clone()].iter().copied().zip(of.start as u32..);
    by_column(columns, indices.len(), bound, entries).1
}

/// The numbers of all entries by column, those of a column in the order that they come in, and where each column's
/// begin. `entries` are those of a range, as column and number, and ranges are between the bounds of pieces.
fn by_column<E: Iterator<Item = (u32, u32)>>(
    columns: usize,
    count: usize,
    bound: impl Fn(usize, usize) -> usize,
    entries: impl Fn(&Range<usize>) -> E + Sync,
) -> (Vec<usize>, Vec<u32>) {
    assert!(u32::try_from(count).is_ok(), "{count} entries exceed 2^32 in one block");
    let (mut offsets, mut numbers) = (vec![0; columns + 1], laconic_array::zeros(count));
    if count < FEW {
        sort(&mut offsets[1..], &mut numbers, (0, 0), || entries(&(bound(0, 1)..bound(1, 1))));
        return (offsets, numbers);
    }
    let threads = rayon::current_num_threads();
    let shares: Vec<Range<usize>> = (0..threads).map(|at| bound(at, threads)..bound(at + 1, threads)).collect();
    let width = columns.div_ceil(BUCKETS).next_power_of_two().max(COLUMNS);
    let (shift, buckets) = (width.trailing_zeros(), columns.div_ceil(width));
    let counts: Vec<Vec<usize>> = (shares.par_iter())
        .map(|share| {
            let mut counts = vec![0; buckets];
            entries(share).for_each(|(column, _)| counts[(column >> shift) as usize] += 1);
            counts
        })
        .collect();
    let sizes: Vec<usize> = (0..buckets).map(|bucket| counts.iter().map(|of_share| of_share[bucket]).sum()).collect();
    let mut keys = laconic_array::zeros::<u64>(count);
    let mut places: Vec<Vec<&mut [u64]>> = counts.iter().map(|_| Vec::with_capacity(buckets)).collect();
    for (bucket, mut keys) in cut(&mut keys, &sizes).into_iter().enumerate() {
        for (places, counts) in places.iter_mut().zip(&counts) {
            places.push(keys.split_off_mut(..counts[bucket]).expect("keys of all shares"));
        }
    }
    shares.par_iter().zip(places).for_each(|(share, mut places)| {
        let mut next = vec![0; buckets];
        for (column, number) in entries(share) {
            let bucket = (column >> shift) as usize;
            places[bucket][next[bucket]] = u64::from(column) << 32 | u64::from(number);
            next[bucket] += 1;
        }
    });
    let mut starts = vec![0; buckets];
    (1..buckets).for_each(|bucket| starts[bucket] = starts[bucket - 1] + sizes[bucket - 1]);
    let of_buckets = offsets[1..].par_chunks_mut(width).zip(cut(&mut numbers, &sizes)).zip(cut(&mut keys, &sizes));
    of_buckets.enumerate().for_each(|(bucket, ((ends, numbers), keys))| {
        let entries = || keys.iter().map(|key| ((key >> 32) as u32, *key as u32));
        sort(ends, numbers, (bucket * width, starts[bucket]), entries);
    });
    (offsets, numbers)
}

/// Values in pieces of these lengths.
fn cut<'a, T>(values: &'a mut [T], lengths: &[usize]) -> Vec<&'a mut [T]> {
    let mut rest = values;
    lengths.iter().map(|&length| rest.split_off_mut(..length).expect("values of all pieces")).collect()
}

/// A counting sort of the entries of columns from `first` on, of whose numbers `before` come earlier; says where each
/// column's end.
fn sort<E: Iterator<Item = (u32, u32)>>(
    ends: &mut [usize],
    numbers: &mut [u32],
    (first, before): (usize, usize),
    entries: impl Fn() -> E,
) {
    let mut next = vec![0u32; ends.len()];
    entries().for_each(|(column, _)| next[column as usize - first] += 1);
    let mut until = 0;
    for (end, next) in ends.iter_mut().zip(&mut next) {
        let count = std::mem::replace(next, until);
        until += count;
        *end = before + until as usize;
    }
    for (column, number) in entries() {
        let place = &mut next[column as usize - first];
        numbers[*place as usize] = number;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use laconic_key::{Key, Purpose};

    use super::*;

    /// Few entries and many, columns without any and one that has most, on any number of threads.
    #[test]
    fn rows_and_positions_of_each_column_are_those_that_a_plain_search_finds_in_order() {
        for (rows, columns, entries) in
            [(0, 0, 0), (3, 5, 0), (40, 7, 300), (9_000, 5_000, FEW + 777), (9, 300_001, FEW), (2, 1, FEW)]
        {
            let key = Key::new(entries as u64, Purpose::Test);
            let draw = |entry: usize, below: usize| {
                let key = key.with(entry as u64).with(below as u64);
                if key.with(0).unit() < 0.2 { below / 2 } else { key.with(1).below(below as u64) as usize }
            };
            let mut row_of: Vec<usize> = (0..entries).map(|entry| draw(entry, rows)).collect();
            row_of.sort_unstable();
            let offsets: Vec<usize> = (0..=rows).map(|row| row_of.partition_point(|&of| of < row)).collect();
            let indices: Vec<u32> = (0..entries).map(|entry| draw(entries + entry, columns) as u32).collect();
            let mut expected: Vec<Vec<u32>> = vec![Vec::new(); columns];
            (0..).zip(&indices).for_each(|(position, &column)| expected[column as usize].push(position));
            for threads in [1, 2, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let (begins, found) = pool.install(|| transpose_pattern(columns, &offsets, &indices));
                let positions = pool.install(|| transposed_positions(columns, &indices));
                assert_eq!(positions, expected.concat());
                assert_eq!(begins.len(), columns + 1);
                for (column, expected) in expected.iter().enumerate() {
                    let of_column = &found[begins[column]..begins[column + 1]];
                    assert!(
                        of_column.iter().map(|&row| row as usize).eq(expected.iter().map(|&at| row_of[at as usize]))
                    );
                }
            }
        }
    }
}

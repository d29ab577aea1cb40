//! Graphs that are larger than the memory: a folder of arrays, an interchange npz or an edge list in, a folder of parts
//! out, and on the disk all between.
//!
//! Edges go into buckets of consecutive targets (one pass), each bucket is sorted by itself and then is the rows of its
//! nodes; a partitioner that reads rows goes through them as often as it likes; rows and features are distributed to a
//! file for each part, and each part is made of its files. Parts are the bytes that [`crate::part::cut()`] and
//! [`crate::part::write_parts`] would have written, had there been room. What a step has finished is written down with
//! lengths and checksums, and a process that is ended goes on from there; what is not as it was written is made again.

mod append;
mod cut;
mod deal;
mod digest;
mod finish;
mod job;
mod need;
mod passes;
mod rows;
mod state;
mod work;
mod written;

pub use cut::{Cut, cut};
pub use job::Job;

#[cfg(test)]
mod tests;

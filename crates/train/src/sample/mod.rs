//! Sampled neighbourhoods across workers: who draws what, and whose rows come when.
//!
//! Draws are keyed by seed, round, layer and node, so every owner of a node draws the same in-neighbours of it as one
//! worker with the whole graph would. A worker learns from its own training nodes of a batch. The neighbourhoods of
//! other workers' nodes are drawn by their owners and told as ids; the input rows that a batch reads of other workers
//! come before its pass, which then needs nobody (as in DistDGL, Zheng et al., 2020). Because draws are keyed, all of
//! that is asked for a window of batches at once: rows that are read again soon are kept, and the others'
//! travel a few batches ahead (as in RapidGNN, Niam et al., 2025).

mod ahead;
mod apart;
mod draws;
mod job;
mod keep;
mod known;
mod left_out;
mod questions;
mod rows;
mod varint;
mod window;

pub use draws::{Drawing, Draws, own_edges};
pub use job::{Drawn, Job};
pub use known::Known;
pub use left_out::LeftOut;
pub(crate) use rows::gather_sparse;
pub use rows::{RemoteRows, row_tag};
pub use window::{WINDOW, Window};

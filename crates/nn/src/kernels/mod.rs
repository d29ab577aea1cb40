//! All arithmetic on activations: the list of functions that a second device would implement.
//!
//! Each kernel is a free function that writes its output first and takes [`crate::Compute`] for threads and scratch
//! memory. Plain versions live in the tests as oracles.

pub mod affine;
pub mod attention;
mod back;
pub mod batch_norm;
pub mod columns;
pub(crate) mod cross_entropy;
pub mod dispatch;
pub mod elementwise;
pub(crate) mod exponential;
pub mod fold;
pub mod heads;
pub mod joining;
pub(crate) mod long;
pub mod measure;
pub mod neighbours;
pub mod normal_equations;
pub mod normalise;
pub mod pairs;
pub mod product;
mod product_tiles;
pub mod propagate;
pub mod relation;
pub mod roof;
pub(crate) mod stored;
mod sum;
mod wide;

/// Through which values of rows their gradient returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// Through all.
    All,
    /// Through those above 0, and it is 0 elsewhere: a ReLU put them out, which is then turned back.
    Positive,
}

/// Whether a kernel replaces its output or adds to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// Replace what is there.
    Set,
    /// Add to what is there.
    Add,
}

//! Partitioners: who owns which node.
//!
//! A new partitioner is a file here with its [`PartitionerKind`], which one line of `members.rs` names; or
//! it lives in another crate and is added with [`PartitionerRegistry::with`]. [`crate::laws::partitioners`] checks what
//! all of them promise.

mod given;
mod limits;
mod members;
mod multilevel;
mod partitioner;
mod quality;
mod quiet;
mod random;
mod registry;
mod streaming;
mod super_node;

/// The name of the partitioner that is told who owns what.
pub const GIVEN: &str = given::KIND.name;

pub use partitioner::{
    IMBALANCE_DEFAULT, Kept, Objective, OptionValue, PASSES_DEFAULT, PartitionInput, PartitionOptions, Partitioner,
    RULES, RowsInput,
};
pub use quality::{PartQuality, Quality, quality};
pub use registry::{PartitionerKind, PartitionerRegistry, Reads};
pub use super_node::{clusterers, clusters_default};

//! Graphs on disk and in memory: readers, generators, partitioners, parts and halo plans.

pub mod build;
pub mod dataset;
pub mod digest;
pub mod error;
pub mod graph;
pub mod info;
pub mod laws;
pub mod limits;
pub mod npy;
pub mod part;
pub mod partition;
pub mod plan;
pub mod prepare;
pub mod read;
mod rules;
pub mod synth;
pub mod write;

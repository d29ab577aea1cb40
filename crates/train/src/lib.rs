//! Training over a partitioned graph: the crate that knows graphs, layers and the network, and the only one that knows all three.
//!
//! A run is a [`config::Config`], a [`data::Source`] of parts and [`run::run_threads`]. Each worker is a [`worker::Worker`]; a
//! [`schedule::Schedule`] drives it; [`pass::Pass`] is the one place where layers meet the [`halo::Halo`] exchange.

pub mod checkpoint;
pub mod config;
pub mod data;
pub mod discover;
pub mod earlier;
pub mod error;
pub mod evaluate;
pub mod fit;
pub mod folder;
pub mod halo;
pub mod infer;
pub mod inputs;
pub mod local;
pub mod memory;
pub mod model;
pub mod pass;
pub mod report;
pub mod run;
pub mod schedule;
pub mod traffic;
pub mod verify;
pub mod worker;

pub use config::Config;
pub use error::{Result, TrainError};

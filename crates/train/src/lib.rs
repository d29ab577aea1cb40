//! Training over a partitioned graph: the crate that knows graphs, layers and the network, and the only one that knows all three.
//!
//! A run is a [`config::Config`], a [`data::Source`] of parts and [`run::run_threads`]. Each worker is a [`worker::Worker`]; a
//! [`schedule::Schedule`] drives it; [`pass::Pass`] is the one place where layers meet the [`halo::Halo`] exchange.

pub mod adapt;
pub mod assign;
pub mod budget;
pub mod checkpoint;
pub mod codecs;
pub mod config;
pub mod control;
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
pub mod late;
pub mod local;
pub mod memory;
pub mod model;
pub mod pass;
pub mod progress;
pub mod report;
pub mod reveal;
pub mod rounds;
pub mod run;
pub mod schedule;
pub mod selection;
pub mod skip;
pub mod state;
pub mod timeline;
pub mod traffic;
pub mod verify;
pub mod worker;

pub use config::Config;
pub use error::{Result, TrainError};

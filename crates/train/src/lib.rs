//! Training over a partitioned graph: the crate that knows graphs, layers and the network, and the only one that knows all three.
//!
//! A run is a [`config::Config`], a [`run::source::Source`] of parts and [`run::run_threads`]. Each worker is a [`worker::Worker`]; a
//! [`schedule::Schedule`] drives it; [`pass::network::Pass`] is the one place where layers meet the [`exchange::halo::Halo`] exchange.

pub mod config;
pub mod error;
pub mod exchange;
pub mod fit;
pub mod forecast;
pub mod messages;
pub mod pass;
pub mod plan;
pub mod record;
pub mod run;
pub mod saved;
pub mod schedule;
pub mod selection;
pub mod worker;

pub use config::Config;
pub use error::{Result, TrainError};

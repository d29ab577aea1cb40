//! Runs whose workers are at different sites: keys and cards, the contract that all run, each site's own policy, the
//! run itself, and what its logs prove.

pub mod agree;
pub mod audit;
mod ended;
mod guard;
pub mod init;
pub mod join;
mod keys;
pub mod policy;
mod vocabulary;

use laconic_train::TrainError;

/// The version of what goes over the wire between sites.
const WIRE: u32 = 1;

/// The version of the program that all sites run.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// An error of a file of a federation, as one of a configuration: who made it can mend it.
fn unusable(error: laconic_federation::FederationError) -> TrainError {
    TrainError::config(error.to_string())
}

//! The commands.

pub mod data;
pub mod partition;

use anyhow::Result;
use clap::Subcommand;

use crate::output::Output;

/// What the program can do.
#[derive(Subcommand)]
pub enum Command {
    /// Look at, check, convert and generate data
    #[command(subcommand)]
    Data(data::Data),
    /// Cut a graph into parts
    Partition(partition::Partition),
}

/// Runs a command; the exit code is 0 unless a check did not pass.
pub fn run(command: Command, output: &Output) -> Result<u8> {
    match command {
        Command::Data(data) => data::run(data, output),
        Command::Partition(partition) => partition::run(partition, output),
    }
}

/// After an error: makes sure that no other process of the same run waits for this one.
pub fn give_up(_code: u8) {}

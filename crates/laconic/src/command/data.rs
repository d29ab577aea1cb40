//! `laconic data`
use crate::output::Output;

/// Data commands.
#[derive(clap::Subcommand)]
pub enum Data {}

/// Runs it.
pub fn run(data: Data, _output: &Output) -> anyhow::Result<u8> {
    match data {}
}

//! `laconic partition`
use crate::output::Output;

/// Arguments.
#[derive(clap::Args)]
pub struct Partition {}

/// Runs it.
pub fn run(_partition: Partition, _output: &Output) -> anyhow::Result<u8> {
    Ok(0)
}

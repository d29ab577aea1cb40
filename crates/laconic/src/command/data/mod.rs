//! `laconic data`: look at, check, convert and generate datasets.

mod check;
mod convert;
mod info;
mod input;
mod new_file;
mod synth;
mod tables;

use anyhow::Result;

use crate::output::Output;

pub use check::Verdict;
pub use convert::Converted;
pub use info::Described;
pub(super) use input::Reading;
pub(super) use new_file::{not_written, refuse_occupied};
pub use synth::{Arrays, Generated};
pub(super) use tables::{TableFlags, flag};

/// What can be done with a dataset.
#[derive(clap::Subcommand)]
pub enum Data {
    /// Print what a dataset holds: nodes, edges, degrees, features, labels, splits
    Info(info::Info),
    /// Look for everything that is wrong or unusual; exit code 1 if something is wrong
    Check(check::Check),
    /// Write a dataset in the interchange format, a .npz that is read fast and loses nothing
    Convert(convert::Convert),
    /// Generate a graph and write it in the interchange format
    #[command(subcommand)]
    Synth(synth::Synth),
}

/// Runs it; the exit code is 1 if a check found an error.
pub fn run(data: Data, output: &Output) -> Result<u8> {
    match data {
        Data::Info(info) => info::run(&info, output),
        Data::Check(check) => check::run(&check, output),
        Data::Convert(convert) => convert::run(&convert, output),
        Data::Synth(synth) => synth::run(&synth, output),
    }
}

//! `laconic part`: a site's part of a graph whose other parts are elsewhere.

mod build;

use anyhow::Result;

use crate::output::Output;

pub use build::Built;

/// What can be done with the part of one site.
#[derive(clap::Subcommand)]
pub enum Part {
    /// Build this site's part from its own tables, by the schema that all sites share
    Build(build::Build),
}

/// Runs what was asked of parts.
pub fn run(part: Part, output: &Output) -> Result<u8> {
    match part {
        Part::Build(arguments) => build::run(&arguments, output),
    }
}

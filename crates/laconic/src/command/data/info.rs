//! `laconic data info`

use std::fmt;

use anyhow::Result;
use laconic_graph::digest::digest;
use laconic_graph::info;
use laconic_graph::roles::Roles;
use schemars::JsonSchema;
use serde::Serialize;

use super::input::{Input, format};
use crate::output::Output;

/// Arguments of `data info`: which dataset.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Info {
    #[command(flatten)]
    input: Input,
}

const EXAMPLE: &str = "\
Examples:
  laconic data info cora.npz
  laconic data info friends.csv --nodes people.csv --label party --json";

/// The figures of a dataset.
#[derive(Serialize, JsonSchema)]
pub struct Described {
    #[serde(flatten)]
    info: info::Info,
    /// What the reader of the file is called; null where none knows it.
    format: Option<&'static str>,
    /// `blake3:…` over all that the dataset holds.
    digest: String,
    /// (tables) What became of each column.
    roles: Roles,
}

/// Prints figures and digest of a dataset.
pub(super) fn run(args: &Info, output: &Output) -> Result<u8> {
    let (dataset, roles) = args.input.read(output)?;
    let (format, digest) = (format(&args.input.path), digest(&dataset));
    let described = Described { info: info::Info::of(&dataset), format, digest, roles };
    output.result(&described, &described)?;
    Ok(0)
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.info)?;
        if let Some(format) = self.format {
            writeln!(f, "format     {format}")?;
        }
        write!(f, "{}digest     {}", self.roles, self.digest)
    }
}

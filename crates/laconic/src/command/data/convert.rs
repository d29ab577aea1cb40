//! `laconic data convert`

use std::fmt;
use std::time::Instant;

use anyhow::Result;
use laconic_graph::info::{empty_classes, one_hot};
use laconic_graph::roles::Roles;
use serde::Serialize;

use super::input::Input;
use super::new_file::{NewFile, Written};
use crate::output::Output;

/// From what to what.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Convert {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    file: NewFile,
    /// The format to write [default: what the file's name says]
    #[arg(long, value_name = "FORMAT")]
    to: Option<Format>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Npz,
}

const EXAMPLE: &str = "\
Edges are written in each direction they have, ids as the user spelt them. Self-loops that are kept \
are in the file, but whoever reads it has to ask for --keep-self-loops again.

Example:
  laconic data convert friends.csv --nodes people.csv --symmetrise --out friends.npz";

/// Reads a dataset and writes it in the interchange format.
pub(super) fn run(args: &Convert, output: &Output) -> Result<u8> {
    let started = Instant::now();
    match args.to {
        Some(Format::Npz) => {}
        None => args.file.check_extension()?,
    }
    args.file.check()?;
    let (dataset, roles) = args.input.read(output)?;
    for what in empty_classes(&dataset.labels).into_iter().chain(one_hot(&dataset.labels)) {
        output.say(format_args!("note: {what}"));
    }
    output.say("writing");
    let converted = Converted { written: args.file.write(&dataset, started)?, roles };
    output.result(&converted, &converted)?;
    Ok(0)
}

#[derive(Serialize)]
struct Converted {
    #[serde(flatten)]
    written: Written,
    roles: Roles,
}

impl fmt::Display for Converted {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{}", self.roles, self.written)
    }
}

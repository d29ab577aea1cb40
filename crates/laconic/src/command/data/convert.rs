//! `laconic data convert`

use std::fmt;
use std::time::Instant;

use anyhow::Result;
use laconic_graph::info::{empty_classes, one_hot};
use laconic_graph::roles::Roles;
use laconic_graph::write_tables::TableFormat;
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

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Format {
    Npz,
    Csv,
    Parquet,
}

const EXAMPLE: &str = "\
Edges are written in each direction they have, ids as the user spelt them. Self-loops that are kept \
are in the file, but whoever reads it has to ask for --keep-self-loops again. Tables are two: the edges, and beside \
them nodes.csv or nodes.parquet with ids, features, labels and split; without an ending --out is their folder.

Examples:
  laconic data convert friends.csv --nodes people.csv --symmetrise --out friends.npz
  laconic data convert friends.npz --to parquet --out friends";

/// Reads a dataset and writes it in the interchange format, or as tables.
pub(super) fn run(args: &Convert, output: &Output) -> Result<u8> {
    let started = Instant::now();
    let tables = match args.to {
        Some(Format::Npz) => None,
        Some(Format::Csv) => Some(TableFormat::Csv),
        Some(Format::Parquet) => Some(TableFormat::Parquet),
        None => args.file.table_format()?,
    };
    match tables {
        None => args.file.check()?,
        Some(format) => args.file.check_tables(format)?,
    }
    let (dataset, roles) = args.input.read(output)?;
    let read_seconds = started.elapsed().as_secs_f64();
    for what in empty_classes(&dataset.labels).into_iter().chain(one_hot(&dataset.labels)) {
        output.say(format_args!("note: {what}"));
    }
    let waiting = output.begins("writing");
    let mut written = match tables {
        None => args.file.write(&dataset, started)?,
        Some(format) => args.file.write_tables(&dataset, format, started)?,
    };
    waiting.end();
    written.read_seconds = Some(read_seconds);
    let converted = Converted { written, roles };
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

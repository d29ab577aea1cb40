//! `laconic data convert`

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use laconic_graph::info::{empty_classes, one_hot};
use laconic_graph::roles::Roles;
use laconic_graph::write_tables::TableFormat;
use laconic_train::record::weights::read_of_run;
use schemars::JsonSchema;
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
    /// Read tables with the feature columns and classes that the model of this run has; columns of labels and split may
    /// be missing
    #[arg(long, value_name = "RUN")]
    like: Option<PathBuf>,
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
  laconic data convert friends.npz --to parquet --out friends
  laconic data convert new_friends.csv --nodes new_people.csv --like runs/gcn --out new.npz";

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
    let model = args.like.as_deref().map(read_of_run).transpose()?;
    let (dataset, roles) = args.input.read_like(model.as_ref().map(|model| &model.card), output)?;
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
    let text = format!("{roles}{written}");
    let Written { file, nodes_file, bytes, nodes, edges, digest, seconds, .. } = written;
    let converted = Converted { file, nodes_file, bytes, nodes, edges, digest, seconds, read_seconds, roles };
    output.result(text, &converted)?;
    Ok(0)
}

/// The file, or the tables, that were written.
#[derive(Serialize, JsonSchema)]
pub struct Converted {
    /// What was written; of tables, that of edges.
    file: String,
    /// (written as tables) The table of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes_file: Option<String>,
    /// Bytes of the file, or of both tables.
    bytes: u64,
    /// How many nodes there are.
    nodes: usize,
    /// How many directed edges there are.
    edges: usize,
    /// As `data info` says it.
    digest: String,
    /// Reading and writing.
    seconds: f64,
    /// Of these, until the graph was in memory.
    read_seconds: f64,
    /// (tables) What became of each column.
    roles: Roles,
}

//! The dataset that a command reads, and what the user says about it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use laconic_graph::dataset::Dataset;
use laconic_graph::read::{Columns, READERS, ReadOptions, Reader, edge_list, read};

use crate::command::mistaken::refuse_in_place_of_data;
use crate::output::Output;

/// Which dataset is read, and how.
#[derive(clap::Args)]
pub(super) struct Input {
    /// The dataset: an .npz, an edge list (.csv, .tsv, .txt, .parquet), a METIS .graph, or a folder of OGB, Planetoid,
    /// GraphSAINT or edge-list files
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    #[command(flatten)]
    reading: Reading,
}

/// What a dataset's own format leaves open.
#[derive(clap::Args)]
pub(in crate::command) struct Reading {
    /// Add the other direction of every edge
    #[arg(long, help_heading = READING)]
    symmetrise: bool,
    /// Keep edges from a node to itself, which are left out otherwise
    #[arg(long, help_heading = READING)]
    keep_self_loops: bool,
    /// Take features from this .npz or .npy instead
    #[arg(long, value_name = "FILE", help_heading = READING)]
    features: Option<PathBuf>,
    /// The node table: ids, features, labels and split [default: nodes.* beside the edges]
    #[arg(long, value_name = "FILE", help_heading = EDGE_LISTS)]
    nodes: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnNames,
}

#[derive(clap::Args)]
struct ColumnNames {
    /// Where an edge starts [default: source, src, from, u or the first]
    #[arg(long, value_name = "COLUMN", help_heading = EDGE_LISTS)]
    source: Option<String>,
    /// Where an edge ends [default: target, dst, to, v or the second]
    #[arg(long, value_name = "COLUMN", help_heading = EDGE_LISTS)]
    target: Option<String>,
    /// The weight of an edge [default: weight or w, or without a header the third]
    #[arg(long, value_name = "COLUMN", help_heading = EDGE_LISTS)]
    weight: Option<String>,
    /// The node table's ids [default: id, node or node_id, or else the row's number]
    #[arg(long, value_name = "COLUMN", help_heading = EDGE_LISTS)]
    id: Option<String>,
    /// The node table's labels [default: label, y or class]
    #[arg(long, value_name = "COLUMN", help_heading = EDGE_LISTS)]
    label: Option<String>,
    /// The node table's split: train, val, test or nothing [default: split or set, or else train_mask, val_mask,
    /// test_mask]
    #[arg(long, value_name = "COLUMN", help_heading = EDGE_LISTS)]
    split: Option<String>,
}

const READING: &str = "Reading";
const EDGE_LISTS: &str = "Reading edge lists";

impl Input {
    /// What users call the format of the input, if it is one that we know.
    pub fn format(&self) -> Option<&'static str> {
        READERS.iter().find(|reader| reader.recognises(&self.path)).map(|reader| reader.name())
    }

    /// Reads the dataset.
    pub fn read(&self, output: &Output) -> Result<Dataset> {
        refuse_in_place_of_data(&self.path)?;
        self.reading.refuse_idle_options(&self.path, self.format())?;
        output.say(format_args!("reading {}", self.path.display()));
        Ok(read(&self.path, &self.reading.options())?)
    }
}

impl Reading {
    /// Other formats say for themselves what an edge list leaves open; a flag that does nothing would hide a mistake.
    pub fn refuse_idle_options(&self, path: &Path, format: Option<&str>) -> Result<()> {
        let ColumnNames { source, target, weight, id, label, split } = &self.columns;
        let columns = [source, target, weight, id, label, split];
        let names = ["--source", "--target", "--weight", "--id", "--label", "--split"];
        let given = names.into_iter().zip(columns).filter(|(_, column)| column.is_some()).map(|(name, _)| name);
        let first = self.nodes.as_ref().map(|_| "--nodes").into_iter().chain(given).next();
        let lists = edge_list::EdgeList.name();
        match (first, format) {
            (Some(flag), Some(format)) if format != lists => {
                bail!("{flag} belongs to an {lists}, but {} is {format}", path.display())
            }
            _ => Ok(()),
        }
    }

    /// The same for readers.
    pub fn options(&self) -> ReadOptions {
        let ColumnNames { source, target, weight, id, label, split } = &self.columns;
        ReadOptions {
            symmetrise: self.symmetrise,
            keep_self_loops: self.keep_self_loops,
            nodes: self.nodes.clone(),
            columns: Columns {
                source: source.clone(),
                target: target.clone(),
                weight: weight.clone(),
                id: id.clone(),
                label: label.clone(),
                split: split.clone(),
            },
            features_path: self.features.clone(),
            ..ReadOptions::default()
        }
    }
}

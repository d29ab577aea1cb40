//! The dataset that a command reads, and what the user says about it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use laconic_graph::dataset::Dataset;
use laconic_graph::prepare::fill_missing;
use laconic_graph::read::{READERS, ReadOptions, Reader, edge_list, read_with_roles};
use laconic_graph::roles::Roles;
use laconic_train::config::DataConfig;

use super::tables::{TableFlags, flag};
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
    #[arg(long, value_name = "FILE", help_heading = READING)]
    nodes: Option<PathBuf>,
    /// The node table's split: train, val, test or nothing [default: split or set, or else train_mask, val_mask,
    /// test_mask]
    #[arg(long, visible_alias = "split", value_name = "COLUMN", help_heading = READING)]
    split_column: Option<String>,
    #[command(flatten)]
    tables: Box<TableFlags>,
}

const READING: &str = "Reading";

impl Input {
    /// What users call the format of the input, if it is one that we know.
    pub fn format(&self) -> Option<&'static str> {
        READERS.iter().find(|reader| reader.recognises(&self.path)).map(|reader| reader.name())
    }

    /// Reads the dataset, and says what became of the columns of its tables.
    pub fn read(&self, output: &Output) -> Result<(Dataset, Roles)> {
        refuse_in_place_of_data(&self.path)?;
        self.reading.refuse_idle_options(&self.path, self.format())?;
        output.say(format_args!("reading {}", self.path.display()));
        let (mut dataset, roles) = read_with_roles(&self.path, &self.reading.options())?;
        let trained = dataset.splits.first().map(|split| split.roles.as_slice());
        fill_missing(&mut dataset.features, &mut dataset.about, trained);
        Ok((dataset, roles))
    }
}

impl Reading {
    /// Other formats say for themselves what an edge list leaves open; a flag that does nothing would hide a mistake.
    pub fn refuse_idle_options(&self, path: &Path, format: Option<&str>) -> Result<()> {
        let lists = edge_list::EdgeList.name();
        match (self.config(path).table_keys().next(), format) {
            (Some(key), Some(format)) if format != lists => {
                bail!("{} belongs to an {lists}, but {} is {format}", flag(key), path.display())
            }
            _ => Ok(()),
        }
    }

    /// The same for readers.
    pub fn options(&self) -> ReadOptions {
        self.config(Path::new("")).read_options()
    }

    /// The same as keys of a configuration.
    fn config(&self, path: &Path) -> DataConfig {
        let mut data = DataConfig {
            path: path.to_owned(),
            symmetrise: self.symmetrise,
            keep_self_loops: self.keep_self_loops,
            features_path: self.features.clone(),
            nodes_path: self.nodes.clone(),
            split_column: self.split_column.clone(),
            ..DataConfig::default()
        };
        self.tables.put(&mut data);
        data
    }
}

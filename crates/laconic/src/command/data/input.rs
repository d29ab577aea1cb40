//! The dataset that a command reads, and what the user says about it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use laconic_graph::build::Duplicates;
use laconic_graph::dataset::Dataset;
use laconic_graph::prepare::fill_missing;
use laconic_graph::read::{READERS, ReadOptions, idle_key, read_with_roles};
use laconic_graph::roles::Roles;
use laconic_train::config::DataConfig;
use laconic_train::record::card::Card;

use super::tables::{TableFlags, flag};
use crate::command::mistaken::refuse_in_place_of_data;
use crate::output::Output;

/// Which dataset is read, and how.
#[derive(clap::Args)]
pub(super) struct Input {
    /// The dataset: an .npz, an edge list (.csv, .tsv, .txt, .parquet), a matrix (.mtx), a METIS .graph, or a folder of
    /// OGB, Planetoid, GraphSAINT or edge-list files
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
    /// The weight of an edge that is listed several times, in either direction where both are made, or error: there
    /// may be none [default: sum]
    #[arg(long, value_name = "RULE", value_parser = Duplicates::ALL.map(Duplicates::name), help_heading = READING)]
    duplicates: Option<String>,
    /// Keep edges from a node to itself, which are left out otherwise
    #[arg(long, help_heading = READING)]
    keep_self_loops: bool,
    /// Tell types of edges and nodes apart, where the data have them
    #[arg(long, help_heading = READING)]
    typed: bool,
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
    /// Reads the dataset, and says what became of the columns of its tables.
    pub fn read(&self, output: &Output) -> Result<(Dataset, Roles)> {
        self.read_like(None, output)
    }

    /// The same with the columns and classes of a model, where one is given.
    pub fn read_like(&self, model: Option<&Card>, output: &Output) -> Result<(Dataset, Roles)> {
        refuse_in_place_of_data(&self.path)?;
        self.reading.refuse_idle_options(&self.path)?;
        let _waiting = output.begins(format_args!("reading {}", self.path.display()));
        if let Some(card) = model {
            if let Some((_, format)) = idle_key(&self.path, std::iter::once("data.categories")) {
                bail!("--like is for tables, but {} is {format}", self.path.display());
            }
            if !card.about.columns.is_empty() {
                self.reading.refuse_other_features()?;
            }
        }
        let options = ReadOptions { like: model.map(Card::recipe), ..self.reading.options() };
        let (mut dataset, roles) = read_with_roles(&self.path, &options)?;
        let trained = dataset.splits.first().map(|split| split.roles.as_slice());
        fill_missing((&mut dataset.features, &mut dataset.exact), &mut dataset.about, trained);
        Ok((dataset, roles))
    }
}

impl Reading {
    /// Whether anything is said.
    pub fn is_given(&self) -> bool {
        self.config(Path::new("")) != DataConfig::default()
    }

    /// Other formats say for themselves what an edge list leaves open; a flag that does nothing would hide a mistake.
    pub fn refuse_idle_options(&self, path: &Path) -> Result<()> {
        match idle_key(path, self.config(path).table_keys()) {
            Some((key, format)) => bail!("{} belongs to an edge list, but {} is {format}", flag(key), path.display()),
            None => Ok(()),
        }
    }

    /// What decides how columns become features, which a model decides that has learned from tables.
    pub fn refuse_other_features(&self) -> Result<()> {
        let said = self.over(DataConfig::default());
        let usual = DataConfig::default();
        let keys = [
            ("data.features_columns", said.features_columns != usual.features_columns),
            ("data.missing", said.missing != usual.missing),
            ("data.dates", said.dates != usual.dates),
            ("data.categories", said.categories != usual.categories),
        ];
        match keys.iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => bail!("{}: the model decides that, which prepares columns as in training", flag(key)),
            None => Ok(()),
        }
    }

    /// The same for readers.
    pub fn options(&self) -> ReadOptions {
        self.config(Path::new("")).read_options()
    }

    /// The same as keys of a configuration.
    fn config(&self, path: &Path) -> DataConfig {
        self.over(DataConfig { path: path.to_owned(), ..DataConfig::default() })
    }

    /// What is said in place of what a configuration says; its files are other data's.
    pub fn over(&self, mut data: DataConfig) -> DataConfig {
        data.symmetrise |= self.symmetrise;
        data.duplicates = self.duplicates.as_deref().and_then(Duplicates::from_name).unwrap_or(data.duplicates);
        data.keep_self_loops |= self.keep_self_loops;
        data.typed |= self.typed;
        (data.features_path, data.nodes_path) = (self.features.clone(), self.nodes.clone());
        if self.split_column.is_some() {
            data.split_column = self.split_column.clone();
        }
        self.tables.put(&mut data);
        data
    }
}

/// What users call the format of this file or folder, if it is one that we know.
pub(super) fn format(path: &Path) -> Option<&'static str> {
    READERS.iter().find(|reader| reader.recognises(path)).map(|reader| reader.name())
}

//! What happens to the data before it is cut: the flags for a configuration's section `[data]`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use laconic_graph::build::Duplicates;
use laconic_train::config::{DataConfig, FeaturePreparation, SplitChoice};

use super::split::parse_split;
use crate::command::data::TableFlags;

/// What is done to the data before they are cut: section `[data]` of a run.
#[derive(clap::Args)]
pub(super) struct Preparation {
    /// Add the other direction of every edge
    #[arg(long, help_heading = HEADING)]
    symmetrise: bool,
    /// The weight of an edge that is listed several times, in either direction where both are made, or error: there
    /// may be none [default: sum]
    #[arg(long, value_name = "RULE", value_parser = Duplicates::ALL.map(Duplicates::name), help_heading = HEADING)]
    duplicates: Option<String>,
    /// Keep edges from a node to itself, which are left out otherwise
    #[arg(long, help_heading = HEADING)]
    keep_self_loops: bool,
    /// Tell types of edges and nodes apart, where the data have them
    #[arg(long, help_heading = HEADING)]
    typed: bool,
    /// Take features from this .npz or .npy instead
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    features_path: Option<PathBuf>,
    /// The node table of an edge list
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    nodes: Option<PathBuf>,
    /// What is done to the features: row-normalised divides each row by its sum, standardised gives each column mean 0
    /// and standard deviation 1 over the training nodes, auto does so to the numbers of node tables and leaves other
    /// features as they are given
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Features::Auto, help_heading = HEADING)]
    feature_preparation: Features,
    /// The data's own split, or a random one: train=0.6,val=0.2,seed=1 in shares of the labelled nodes, or
    /// train=20,val=500 with 20 of each class and 500 in all; what is left over tests, or test=1000 of it
    #[arg(long, value_parser = parse_split, default_value = "given", help_heading = HEADING)]
    split: SplitChoice,
    /// Which of the data's own splits
    #[arg(long, value_name = "INDEX", default_value_t = 0, help_heading = HEADING)]
    split_index: usize,
    /// The node table's split: train, val, test or nothing [default: split or set, or else train_mask, val_mask,
    /// test_mask]
    #[arg(long, value_name = "COLUMN", help_heading = HEADING)]
    split_column: Option<String>,
    #[command(flatten)]
    tables: Box<TableFlags>,
}

const HEADING: &str = "Data preparation";

#[derive(Clone, Copy, ValueEnum)]
enum Features {
    Auto,
    Given,
    RowNormalised,
    Standardised,
}

impl Preparation {
    /// The first flag for which all of the data have to be in memory, a node table excepted.
    pub fn needs_all(&self) -> Option<&'static str> {
        let flags = [("--features-path", self.features_path.is_some()), ("--typed", self.typed)];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// The first flag that needs what is known of nodes in memory, as it is with a node table.
    pub fn needs_nodes(&self) -> Option<&'static str> {
        let flags = [
            ("--feature-preparation", !matches!(self.feature_preparation, Features::Auto | Features::Given)),
            ("--split", matches!(self.split, SplitChoice::Random(_))),
            ("--split-index", self.split_index > 0),
            ("--split-column", self.split_column.is_some()),
        ];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// The section for the dataset `path`.
    pub fn config(&self, path: &Path) -> DataConfig {
        let mut data = DataConfig {
            path: path.to_owned(),
            features_path: self.features_path.clone(),
            nodes_path: self.nodes.clone(),
            symmetrise: self.symmetrise,
            duplicates: self.duplicates.as_deref().and_then(Duplicates::from_name).unwrap_or_default(),
            keep_self_loops: self.keep_self_loops,
            typed: self.typed,
            split_column: self.split_column.clone(),
            features: match self.feature_preparation {
                Features::Auto => FeaturePreparation::Auto,
                Features::Given => FeaturePreparation::Given,
                Features::RowNormalised => FeaturePreparation::RowNormalised,
                Features::Standardised => FeaturePreparation::Standardised,
            },
            split: self.split.clone(),
            split_index: self.split_index,
            ..DataConfig::default()
        };
        self.tables.put(&mut data);
        data
    }
}

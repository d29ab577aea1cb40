//! `[data]`: where the graph comes from, and what becomes of it before it is cut.

use std::path::PathBuf;

use laconic_graph::prepare::{Amount, SplitSpec};
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};

/// `[data]`: where the graph comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataConfig {
    /// A dataset in any format that is recognised, or a folder of parts. Relative to the current folder or, if it is
    /// not there, to the configuration file's.
    pub path: PathBuf,
    /// Features from another file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features_path: Option<PathBuf>,
    /// A node table for an edge list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes_path: Option<PathBuf>,
    /// Whether every edge also gets its reverse.
    pub symmetrise: bool,
    /// How features are prepared.
    pub features: FeaturePreparation,
    /// Which nodes train, validate and test.
    pub split: SplitChoice,
    /// Which of the data's splits, where it has several.
    pub split_index: usize,
    /// Whether training sees nothing but training nodes and the edges between them; evaluations see the whole graph.
    pub inductive: bool,
}

impl Default for DataConfig {
    fn default() -> Self {
        DataConfig {
            path: PathBuf::new(),
            features_path: None,
            nodes_path: None,
            symmetrise: false,
            features: FeaturePreparation::Given,
            split: SplitChoice::Named(NamedSplit::Given),
            split_index: 0,
            inductive: false,
        }
    }
}

/// `data.features`: how features are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeaturePreparation {
    /// As they are.
    Given,
    /// Each row divided by its sum.
    RowNormalised,
    /// Each column with mean 0 and standard deviation 1 over the training rows.
    Standardised,
}

/// `data.split`: who trains, validates and tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SplitChoice {
    /// The data's own.
    Named(NamedSplit),
    /// Drawn at random.
    Random(RandomSplit),
}

/// `data.split = "given"`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedSplit {
    /// The data's own split.
    Given,
}

/// `data.split = { train = …, val = …, seed = … }`; what is left over tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomSplit {
    /// A fraction of the labelled nodes (0.6), or a number of nodes of each class (20).
    pub train: toml::Value,
    /// A fraction of the labelled nodes (0.2), or a number of nodes in all (500).
    pub val: toml::Value,
    /// The seed of the draw.
    #[serde(default)]
    pub seed: u64,
}

impl RandomSplit {
    /// The split as the graph crate draws it.
    ///
    /// # Errors
    /// If an amount is neither a share nor a count.
    pub fn spec(&self) -> Result<SplitSpec> {
        let amount = |key: &str, value: &toml::Value, count: fn(usize) -> Amount| match *value {
            toml::Value::Float(share) if share > 0.0 && share < 1.0 => Ok(Amount::Fraction(share)),
            toml::Value::Integer(number) if (0..=i64::from(u32::MAX)).contains(&number) => Ok(count(number as usize)),
            _ => {
                Err(TrainError::config(format!("data.split.{key} = {value}: expected a fraction in (0, 1) or a count")))
            }
        };
        Ok(SplitSpec {
            train: amount("train", &self.train, Amount::PerClass)?,
            val: amount("val", &self.val, Amount::Count)?,
        })
    }
}

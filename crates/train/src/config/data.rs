//! `[data]`: where the graph comes from, and what becomes of it before it is cut.

use std::path::PathBuf;

use laconic_graph::build::Duplicates;
use laconic_graph::prepare::{Amount, SplitSpec};
use laconic_graph::read::{Cells, Columns, Dates, Header, Missing, ReadOptions, Unknown};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};

/// `[data]`: where the graph comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DataConfig {
    /// Dataset file or folder in any recognised format, or a folder of parts; relative to the current folder or, if it
    /// is not there, to the configuration file's.
    pub path: PathBuf,
    /// Of a folder of parts: the number of the one that a single worker trains on, with the edges between its nodes
    /// alone (all, a worker each).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    /// Features from another file (npz with `features`, or npy).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features_path: Option<PathBuf>,
    /// Node table of an edge list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes_path: Option<PathBuf>,
    /// Edge list: column where edges start (source, src, from, u, or a pair of names such as caller, callee; in a table
    /// without names the first).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Edge list: column where edges end (target, dst, to, v, or the other one of such a pair; in a table without names
    /// the second).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Edge list: column of edge weights, or count: how often an edge is listed (weight, edge_weight or w).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// Edge list: column of the relations that edges are of, each a kind of edges (none; with typed relation, rel,
    /// predicate or :TYPE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// Edge list: its two ends are nodes of two types, which may have the same ids (false).
    #[serde(skip_serializing_if = "is_default")]
    pub bipartite: bool,
    /// Edge list: error | drop | add: what becomes of rows that name nodes which the node table has not, or none; add
    /// makes nodes with features of 0 (error).
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(with = "String")]
    pub unknown: Unknown,
    /// Node table: column of ids, or row: the row's number is the id (id, node_id or node).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Node table: column of labels, or label_* for all that begin so, each a class of 0 and 1 (label, y or class, else
    /// label_*).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Node table: what stands between classes, where nodes have several in one cell (none).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_separator: Option<String>,
    /// Node table: column of train, val, test or nothing (split or set, else train_mask, val_mask, test_mask).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_column: Option<String>,
    /// Node table: columns that become features ([]: all that can).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features_columns: Vec<String>,
    /// Tables: columns that are left out ([]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Node table: error | mean | zero: what stands for a cell without a value; mean and zero add a column that says
    /// where (error).
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(with = "String")]
    pub missing: Missing,
    /// Node table: ignore | days since 1970-01-01 (ignore).
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(with = "String")]
    pub dates: Dates,
    /// Node table: a column of texts becomes a feature column a text, if there are no more (64).
    #[serde(skip_serializing_if = "is_usual")]
    pub categories: usize,
    /// Text tables: yes | no | auto: whether the first line names the columns (auto).
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(with = "String")]
    pub header: Header,
    /// Add the reverse of every edge.
    pub symmetrise: bool,
    /// sum | mean | max | first: the weight of an edge that is listed several times, in either direction where both are
    /// made (symmetrise, `directed` 0); error: there may be none (sum).
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(with = "String")]
    pub duplicates: Duplicates,
    /// Keep edges from a node to itself (false).
    #[serde(skip_serializing_if = "is_default")]
    pub keep_self_loops: bool,
    /// Tell types of edges and nodes apart, where the data have them (false).
    #[serde(skip_serializing_if = "is_default")]
    pub typed: bool,
    /// auto | given | row-normalised | standardised: auto standardises the numbers of node tables, over training nodes,
    /// and leaves categories, 0/1 columns and other formats as they are.
    pub features: FeaturePreparation,
    /// auto | memory | file: where features of a folder of parts are while batches read them; auto: their file where
    /// they would take more than half of the memory that there is (auto).
    #[serde(skip_serializing_if = "is_default")]
    pub features_in: FeaturesPlace,
    /// given, or { train = share or count per class, val, test = share or count, seed = 0 }.
    pub split: SplitChoice,
    /// Which split, where the data has several.
    pub split_index: usize,
    /// Train on training nodes and the edges between them alone; evaluate on the whole graph.
    pub inductive: bool,
}

impl Default for DataConfig {
    fn default() -> Self {
        DataConfig {
            path: PathBuf::new(),
            part: None,
            features_path: None,
            nodes_path: None,
            source: None,
            target: None,
            weight: None,
            relation: None,
            bipartite: false,
            unknown: Unknown::default(),
            id: None,
            label: None,
            label_separator: None,
            split_column: None,
            features_columns: Vec::new(),
            ignore: Vec::new(),
            missing: Missing::default(),
            dates: Dates::default(),
            categories: Cells::default().categories_max,
            header: Header::default(),
            symmetrise: false,
            duplicates: Duplicates::default(),
            keep_self_loops: false,
            typed: false,
            features: FeaturePreparation::Auto,
            features_in: FeaturesPlace::Auto,
            split: SplitChoice::Named(NamedSplit::Given),
            split_index: 0,
            inductive: false,
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_usual(categories: &usize) -> bool {
    *categories == Cells::default().categories_max
}

impl DataConfig {
    /// The same for readers.
    pub fn read_options(&self) -> ReadOptions {
        ReadOptions {
            symmetrise: self.symmetrise,
            duplicates: self.duplicates,
            keep_self_loops: self.keep_self_loops,
            typed: self.typed,
            bipartite: self.bipartite,
            unknown: self.unknown,
            nodes: self.nodes_path.clone(),
            columns: Columns {
                source: self.source.clone(),
                target: self.target.clone(),
                weight: self.weight.clone(),
                relation: self.relation.clone(),
                id: self.id.clone(),
                label: self.label.clone(),
                label_separator: self.label_separator.clone(),
                split: self.split_column.clone(),
                features: self.features_columns.clone(),
                ignore: self.ignore.clone(),
            },
            cells: Cells { missing: self.missing, dates: self.dates, categories_max: self.categories },
            header: self.header,
            features_path: self.features_path.clone(),
            ..ReadOptions::default()
        }
    }

    /// The keys about edge lists and node tables that say something; other formats read none of them.
    pub fn table_keys(&self) -> impl Iterator<Item = &'static str> {
        let Columns { source, target, weight, relation, id, label, label_separator, split, features, ignore } =
            self.read_options().columns;
        let keys = [
            ("data.nodes_path", self.nodes_path.is_some()),
            ("data.source", source.is_some()),
            ("data.target", target.is_some()),
            ("data.weight", weight.is_some()),
            ("data.relation", relation.is_some()),
            ("data.bipartite", self.bipartite),
            ("data.unknown", self.unknown != Unknown::default()),
            ("data.id", id.is_some()),
            ("data.label", label.is_some()),
            ("data.label_separator", label_separator.is_some()),
            ("data.split_column", split.is_some()),
            ("data.features_columns", !features.is_empty()),
            ("data.ignore", !ignore.is_empty()),
            ("data.missing", self.missing != Missing::default()),
            ("data.dates", self.dates != Dates::default()),
            ("data.categories", !is_usual(&self.categories)),
            ("data.header", self.header != Header::default()),
        ];
        keys.into_iter().filter(|(_, given)| *given).map(|(key, _)| key)
    }
}

/// `data.features`: how features are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeaturePreparation {
    /// Standardised where they come from a node table, but for categories and flags; as they are otherwise.
    #[default]
    Auto,
    /// As they are.
    Given,
    /// Each row divided by its sum.
    RowNormalised,
    /// Each column with mean 0 and standard deviation 1 over the training rows.
    Standardised,
}

/// `data.split`: who trains, validates and tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SplitChoice {
    /// The data's own.
    Named(NamedSplit),
    /// Drawn at random.
    Random(RandomSplit),
}

/// `data.features_in = "auto"`: where the features of a folder of parts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeaturesPlace {
    /// In their file where they would take more than half of the memory that there is.
    #[default]
    Auto,
    /// In memory.
    Memory,
    /// In their file, of which memory holds what was read lately.
    File,
}

/// `data.split = "given"`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NamedSplit {
    /// The data's own split.
    Given,
}

/// `data.split = { train = …, val = …, test = …, seed = … }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomSplit {
    /// A fraction of the labelled nodes (0.6), or a number of nodes of each class (20).
    #[schemars(with = "serde_json::Value")]
    pub train: toml::Value,
    /// A fraction of the labelled nodes (0.2), or a number of nodes in all (500).
    #[schemars(with = "serde_json::Value")]
    pub val: toml::Value,
    /// The same; absent where all that is left over tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub test: Option<toml::Value>,
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
            test: self.test.as_ref().map(|test| amount("test", test, Amount::Count)).transpose()?,
        })
    }
}

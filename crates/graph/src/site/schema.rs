//! What all sites agree on before any of them reads a table: `schema.toml`.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::about::{About, Reading, Scale, TableColumn};
use crate::error::{GraphError, Result};
use crate::limits::{PARTS_MAX, read_limited};
use crate::read::feature_names;

/// The version that this program reads.
pub const VERSION: u32 = 1;

/// Larger files are refused.
const BYTES_MAX: u64 = 64 << 10;

/// What all sites agree on. The order of sites is that of parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// The version of schemas, always 1.
    pub version: u32,
    /// What the data is called in reports.
    #[serde(default = "graph")]
    pub name: String,
    /// The name of each site, in the order of parts.
    pub sites: Vec<String>,
    /// How ids are written.
    #[serde(default)]
    pub ids: IdSchema,
    /// The node table.
    pub nodes: NodeSchema,
    /// The edge tables.
    pub edges: EdgeSchema,
}

fn graph() -> String {
    "sites".to_owned()
}

/// How tables write ids of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdSchema {
    /// What stands between a site's name and its id of a node.
    pub separator: String,
}

impl Default for IdSchema {
    fn default() -> IdSchema {
        IdSchema { separator: "/".to_owned() }
    }
}

/// What a node table has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSchema {
    /// The column of ids.
    pub id: String,
    /// What is learned of nodes.
    pub label: LabelSchema,
    /// Who trains, validates and tests.
    pub split: SplitSchema,
    /// The columns that become features, in their order.
    #[serde(default)]
    pub features: Vec<FeatureSchema>,
}

/// The column of labels. An empty cell is a node without a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelSchema {
    /// The name of the column.
    pub column: String,
    /// All classes, of which a site may lack some.
    pub classes: Vec<String>,
}

/// Who trains, validates and tests: a column says so, or it is drawn for each id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitSchema {
    /// A column of `train`, `val`, `test` or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// The share of labelled nodes that train.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<f64>,
    /// The share that validates; all others test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub val: Option<f64>,
    /// What is drawn from, 0 unless it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A split that is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrawnSplit {
    /// The share that trains.
    pub train: f64,
    /// The share that validates.
    pub val: f64,
    /// What is drawn from.
    pub seed: u64,
}

/// A column that becomes features; exactly one of the three says how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureSchema {
    /// The name of the column.
    pub column: String,
    /// A number, standardised by constants that all sites share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<NumberSchema>,
    /// One of these texts: a feature column each, 1 in that of the cell's text. An empty cell is none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_hot: Option<Vec<String>>,
    /// 0 or 1, or false or true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<bool>,
}

/// How a number is standardised: its mean is subtracted, and what is left divided by its deviation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberSchema {
    /// What is subtracted.
    #[serde(default)]
    pub mean: f64,
    /// What is divided by, above 0.
    #[serde(default = "one")]
    pub sd: f64,
    /// The number that stands for an empty cell, before it is standardised; without it an empty cell is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<f64>,
}

fn one() -> f64 {
    1.0
}

/// What edge tables have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeSchema {
    /// The column of ids that edges start at.
    pub source: String,
    /// The column of ids that they end at.
    pub target: String,
    /// The column of weights. Of an edge that is listed several times the largest counts, so that it does not matter
    /// who lists it how often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// Whether each edge leads both ways.
    #[serde(default)]
    pub symmetrise: bool,
}

impl Schema {
    /// Reads the file of a schema.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is larger than 64 KiB, has a key that no schema has, or a value makes no sense; the
    /// message names file and line, or the key.
    pub fn read(path: &Path) -> Result<Schema> {
        let bytes = read_limited(path, "bytes of a schema", BYTES_MAX)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            GraphError::format(path, format!("byte {}", error.utf8_error().valid_up_to()), "expected text in UTF-8")
        })?;
        Schema::parse(&text).map_err(|(place, what)| GraphError::format(path, place, what))
    }

    /// Reads the text of a schema.
    ///
    /// # Errors
    ///
    /// As [`Schema::read`]: the place and what was expected there.
    pub fn parse(text: &str) -> std::result::Result<Schema, (String, String)> {
        let schema: Schema = toml::from_str(text).map_err(|error| {
            let before = &text[..error.span().map_or(0, |span| span.start).min(text.len())];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            (format!("line {line}, column {column}"), error.message().replace('\n', "; "))
        })?;
        schema.violation().map_or(Ok(schema), Err)
    }

    /// A digest of what it says, however it is written.
    pub fn digest(&self) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"laconic schema v1\n").update(&text);
        format!("blake3:{}", hasher.finalize().to_hex())
    }

    /// The number of a site.
    ///
    /// # Errors
    ///
    /// If there is no such site; the message names those that there are.
    pub fn site(&self, name: &str) -> std::result::Result<u32, String> {
        let found = self.sites.iter().position(|site| site == name);
        found
            .map(|site| site as u32)
            .ok_or_else(|| format!("no site is called {name:?}; there are: {}", self.sites.join(", ")))
    }

    /// The split, where it is drawn.
    pub fn drawn_split(&self) -> Option<DrawnSplit> {
        let SplitSchema { train, val, seed, .. } = self.nodes.split;
        Some(DrawnSplit { train: train?, val: val.unwrap_or(0.0), seed: seed.unwrap_or(0) })
    }

    /// What classes and features are called, and how features are made: the same at all sites, and in a model, which
    /// prepares new tables so.
    pub fn about(&self) -> About {
        let features = &self.nodes.features;
        let column = |feature: &FeatureSchema| {
            let (name, number) = (feature.column.clone(), feature.number);
            let reading = match &feature.one_hot {
                Some(values) => Reading::Category { values: values.clone() },
                None => Reading::Number,
            };
            let fill = number.and_then(|number| number.missing).map(|missing| vec![missing]);
            TableColumn { name, reading, fill, indicator: false }
        };
        let columns: Vec<TableColumn> = features.iter().map(column).collect();
        let each = |of: fn(&NumberSchema) -> f64, usual: f64| {
            let value = move |feature: &FeatureSchema| vec![feature.number.as_ref().map_or(usual, of); feature.width()];
            features.iter().flat_map(value).collect::<Vec<f64>>()
        };
        let (means, deviations) = (each(|number| number.mean, 0.0), each(|number| number.sd, 1.0));
        let scale = match features.iter().any(|feature| feature.number.is_some()) {
            true => Scale::Standardised { means, deviations, rests: Vec::new(), by_type: false },
            false => Scale::Given,
        };
        let classes = self.nodes.label.classes.clone();
        About { classes, features: feature_names(&columns), columns, scale, ..About::default() }
    }

    /// The first rule that is broken, by its key.
    fn violation(&self) -> Option<(String, String)> {
        let broken = |key: &str, what: String| Some((key.to_owned(), what));
        if self.version != VERSION {
            return broken("version", format!("expected {VERSION}, found {}", self.version));
        }
        if !(1..=PARTS_MAX as usize).contains(&self.sites.len()) {
            return broken("sites", format!("expected 1 to {PARTS_MAX} names, found {}", self.sites.len()));
        }
        let separator = &self.ids.separator;
        if separator.is_empty() {
            return broken("ids.separator", "expected a text, such as \"/\", found none".to_owned());
        }
        // Who reads `a/b` sees where the name ends, here and in ids on the wire.
        let is_name = |name: &&String| !name.is_empty() && !name.contains(separator.as_str()) && !name.contains('/');
        if let Some(name) = self.sites.iter().find(|name| !is_name(name)) {
            return broken("sites", format!("expected names without '{separator}' and '/', found {name:?}"));
        }
        twice(&self.sites)
            .map(|name| ("sites".to_owned(), format!("{name:?} stands there twice")))
            .or_else(|| self.nodes.violation())
    }
}

/// The first text that stands in a list twice.
fn twice(texts: &[String]) -> Option<&String> {
    let mut seen = HashSet::new();
    texts.iter().find(|text| !seen.insert(text.as_str()))
}

impl NodeSchema {
    fn violation(&self) -> Option<(String, String)> {
        let classes = &self.label.classes;
        let key = "nodes.label.classes";
        if classes.len() < 2 || classes.iter().any(String::is_empty) {
            return Some((key.to_owned(), "expected two names or more, none of them empty".to_owned()));
        }
        let taken: Vec<String> = self.features.iter().map(|feature| feature.column.clone()).collect();
        let named = [Some(&self.id), Some(&self.label.column), self.split.column.as_ref()];
        let columns: Vec<String> = named.into_iter().flatten().chain(&taken).cloned().collect();
        let features = self.features.iter().enumerate();
        let of_features = || features.clone().find_map(|(place, feature)| feature.violation(place + 1));
        twice(classes)
            .map(|name| (key.to_owned(), format!("{name:?} stands there twice")))
            .or_else(|| self.split.violation())
            .or_else(|| twice(&columns).map(|name| ("nodes".to_owned(), format!("{name:?} is read as two things"))))
            .or_else(of_features)
    }
}

impl SplitSchema {
    fn violation(&self) -> Option<(String, String)> {
        let broken = |what: &str| Some(("nodes.split".to_owned(), what.to_owned()));
        let is_drawn = self.train.is_some() || self.val.is_some() || self.seed.is_some();
        match (&self.column, self.train) {
            (Some(_), _) if is_drawn => broken("expected a column, or shares that are drawn, found both"),
            (Some(_), _) => None,
            (None, None) => broken("expected { column = \"…\" } or { train = 0.6, val = 0.2, seed = 1 }"),
            (None, Some(train)) => {
                let val = self.val.unwrap_or(0.0);
                let are_shares = train > 0.0 && val >= 0.0 && train + val <= 1.0;
                if are_shares {
                    None
                } else {
                    broken("expected train above 0, val from 0, and both at most 1 together")
                }
            }
        }
    }
}

impl FeatureSchema {
    /// How many feature columns it becomes.
    pub fn width(&self) -> usize {
        self.one_hot.as_ref().map_or(1, Vec::len)
    }

    fn violation(&self, place: usize) -> Option<(String, String)> {
        let column = &self.column;
        let broken = |what: String| Some((format!("nodes.features, entry {place} ({column:?})"), what));
        let given = [self.number.is_some(), self.one_hot.is_some(), self.flag.is_some()];
        if given.iter().filter(|&&given| given).count() != 1 || self.flag == Some(false) {
            return broken("expected one of number = { mean, sd, missing }, one_hot = [..] and flag = true".to_owned());
        }
        if let Some(NumberSchema { mean, sd, missing }) = self.number {
            let is_scale = mean.is_finite() && sd.is_finite() && sd > 0.0 && missing.is_none_or(f64::is_finite);
            if !is_scale {
                return broken("number: expected finite numbers, and sd above 0".to_owned());
            }
        }
        let values = self.one_hot.as_ref()?;
        if values.is_empty() || values.iter().any(String::is_empty) {
            return broken("one_hot: expected texts, none of them empty".to_owned());
        }
        twice(values).and_then(|value| broken(format!("one_hot: {value:?} stands there twice")))
    }
}

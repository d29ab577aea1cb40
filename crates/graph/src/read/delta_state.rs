//! What the log of a Delta Lake table says up to some version.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A file that belongs to the table from now on.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Add {
    /// Where it is, with `%20` for a space.
    pub path: String,
    /// The columns that are not in it.
    #[serde(default)]
    pub partition_values: BTreeMap<String, Option<String>>,
    /// What says which of its rows are deleted.
    pub deletion_vector: Option<serde_json::Value>,
}

/// What the table is.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetaData {
    /// The columns, as JSON.
    pub schema_string: String,
    /// Settings of the table.
    #[serde(default)]
    pub configuration: BTreeMap<String, Option<String>>,
}

/// What a reader has to know.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    /// The version of the layout.
    pub min_reader_version: i64,
    /// What belongs to it, from version 3 on.
    pub reader_features: Option<Vec<String>>,
}

/// What the log says up to some version.
#[derive(Debug, Default)]
pub struct State {
    /// The files of the table, by their paths.
    pub files: BTreeMap<String, Add>,
    /// What the table is, where that was said.
    pub meta: Option<MetaData>,
    /// What a reader has to know, where that was said.
    pub protocol: Option<Protocol>,
}

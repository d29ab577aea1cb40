//! What predictions need to know of the parts of a graph besides their sizes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The counts of one part.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartCounts {
    /// Edges between own nodes, loops among them.
    pub own_edges: u64,
    /// Edges from a node to itself.
    pub loops: u64,
    /// Edges that start at another part's node.
    pub halo_edges: u64,
    /// Labelled nodes of each split: training, validation, test.
    pub labelled: [u64; 3],
    /// Stored feature values.
    pub feature_values: u64,
    /// Bytes of all needed ids, as they are asked for where nobody has told the part who owns them.
    pub asked_bytes: u64,
    /// Whether somebody has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub knows_owners: bool,
    /// What is needed of each other part that owns some of it.
    pub needs: BTreeMap<u32, Needs>,
}

/// What one part needs of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// How many nodes.
    pub rows: u64,
    /// Bytes of their places among all needed ids, as the owner answers.
    pub bytes: u64,
    /// Bytes of their rows at the owner, as it is told them; 0 where it knows them, or nobody knows owners.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub list: u64,
}

fn is_nothing(bytes: &u64) -> bool {
    *bytes == 0
}

//! `[batch]`: training on batches of nodes, or edges, instead of all at once.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::named::member_name;

/// `[batch]`: training on batches of nodes, or edges, instead of all at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BatchConfig {
    /// Training nodes, or edges to predict, of a batch over all workers, about; of independent trainers (averaging,
    /// psgd_pa, llcg) of each one's. 0: all at once. A round is then a batch; train.epochs and train.eval_every count
    /// epochs.
    pub size: usize,
    /// neighbours | clusters: what a batch reads: drawn in-neighbours, or clusters of a worker's nodes with the edges
    /// between them.
    #[serde(deserialize_with = "member_name")]
    #[schemars(with = "BatchKind")]
    pub kind: String,
    /// neighbours: in-neighbours drawn for each layer, the first layer's first, -1: all ([]: 10 each).
    pub fanouts: Vec<i64>,
    /// clusters: clusters of each part (0: ten for a batch).
    pub clusters: usize,
    /// neighbours: memory for rows of other workers that later batches read.
    #[serde(deserialize_with = "text_or_bytes")]
    #[schemars(with = "NameOrNumber")]
    pub cache: String,
    /// neighbours: batches after which neighbours are drawn anew; more keep rows longer: batches between have the same
    /// draws of a node (dependent batches, Balin and Çatalyürek, 2023).
    pub redraw: u32,
    /// neighbours: batches that are sampled, and whose rows travel, ahead of the one at work.
    pub ahead: usize,
}

/// A text, or a whole number.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum NameOrNumber {
    /// In words.
    Name(String),
    /// In figures.
    Number(u64),
}

/// What a number of bytes looks like.
pub(crate) const BYTES: &str = "bytes, such as 256 MB";

/// A text, or a whole number of bytes.
fn text_or_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let size = NameOrNumber::deserialize(from)
        .map_err(|_| D::Error::custom(format!("invalid value: another, expected {BYTES}")))?;
    Ok(match size {
        NameOrNumber::Name(text) => text,
        NameOrNumber::Number(bytes) => format!("{bytes} B"),
    })
}

/// `batch.kind`: what a batch reads.
// What the schema lists: any member of the registry may be named.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum BatchKind {
    /// Drawn in-neighbours of the batch's nodes, theirs, and so on, a hop for each layer.
    Neighbours,
    /// Clusters of nodes with the edges between them (ClusterGCN).
    Clusters,
}

impl Default for BatchConfig {
    fn default() -> Self {
        BatchConfig {
            size: 0,
            kind: "neighbours".to_owned(),
            fanouts: Vec::new(),
            clusters: 0,
            cache: "256 MB".to_owned(),
            redraw: 1,
            ahead: 2,
        }
    }
}

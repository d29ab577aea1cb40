//! `[batch]`: training on batches of nodes, or edges, instead of all at once.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// `[batch]`: training on batches of nodes, or edges, instead of all at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchConfig {
    /// Training nodes, or edges to predict, of a batch over all workers, about: each one's batch of an epoch is drawn
    /// by key. 0 trains on all at once. Otherwise a round is a batch, and `train.epochs` and `train.eval_every` count
    /// epochs.
    pub size: usize,
    /// What a batch reads.
    pub kind: BatchKind,
    /// In-neighbours drawn for each layer, the first layer's first; -1 takes all. Empty: 10 for every layer.
    pub fanouts: Vec<i64>,
    /// Clusters of each part; 0 makes ten for a batch.
    pub clusters: usize,
    /// Memory for rows of other workers that later batches read, such as `256 MB`.
    #[serde(deserialize_with = "text_or_bytes")]
    pub cache: String,
    /// Batches after which neighbours are drawn anew; batches between have the same draws of a node (dependent batches,
    /// Balin and Çatalyürek, Cooperative minibatching in graph neural networks, 2023).
    pub redraw: u32,
    /// Batches that are sampled ahead of the one at work, and whose rows travel meanwhile.
    pub ahead: usize,
}

/// What a number of bytes looks like.
pub(crate) const BYTES: &str = "bytes, such as 256 MB";

/// A text, or a whole number of bytes.
fn text_or_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Text(String),
        Bytes(u64),
    }
    let size =
        Size::deserialize(from).map_err(|_| D::Error::custom(format!("invalid value: another, expected {BYTES}")))?;
    Ok(match size {
        Size::Text(text) => text,
        Size::Bytes(bytes) => format!("{bytes} B"),
    })
}

/// `batch.kind`: what a batch reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
            kind: BatchKind::Neighbours,
            fanouts: Vec::new(),
            clusters: 0,
            cache: "256 MB".to_owned(),
            redraw: 1,
            ahead: 2,
        }
    }
}

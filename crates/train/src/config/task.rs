//! `[task]`: what is learned.

use laconic_graph::links::{EdgeSplit, NegativeScope};
use serde::{Deserialize, Serialize};

use super::data::NamedSplit;
use crate::error::Result;

/// `[task]`: what is learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskConfig {
    /// `node_classification` or `link_prediction`.
    pub kind: TaskChoice,
    /// Links: what scores a pair of embeddings: `dot`, `mlp`, `distmult`.
    pub decoder: String,
    /// `mlp` decoder: hidden layers.
    pub decoder_layers: usize,
    /// Links: the share of edges that is held out, both directions and all relations of a pair together; or those that
    /// the data hold out.
    pub split: LinkSplitChoice,
    /// Links: where the other end of pairs comes from that are learned to be no edges.
    pub negatives: Replacement,
    /// Links: how many such pairs for each edge, other ones in every round.
    pub negatives_per_edge: u32,
    /// Links: whether drawn pairs that are edges are left out; of several relations that the decoder reads, edges of
    /// the same one.
    pub filter_negatives: bool,
    /// Links in batches: whether the edges that a batch predicts pass no messages in it.
    pub exclude_targets: bool,
    /// Links: among how many pairs that are no edges each held-out edge is ranked, always the same; or those that the
    /// data give.
    pub eval_negatives: EvalNegatives,
}

impl Default for TaskConfig {
    fn default() -> Self {
        TaskConfig {
            kind: TaskChoice::NodeClassification,
            decoder: "dot".to_owned(),
            decoder_layers: 1,
            split: LinkSplitChoice::Drawn(LinkSplit::default()),
            negatives: Replacement::Global,
            negatives_per_edge: 1,
            filter_negatives: false,
            exclude_targets: true,
            eval_negatives: EvalNegatives::Drawn(100),
        }
    }
}

/// `task.kind`: whether nodes have classes or pairs of nodes an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskChoice {
    /// The classes of nodes.
    #[default]
    NodeClassification,
    /// Which nodes have an edge between them.
    LinkPrediction,
}

impl TaskChoice {
    /// What is learned from, chosen by and tested on: the word behind "training", "validation" and "test".
    pub const fn noun(self) -> &'static str {
        match self {
            TaskChoice::NodeClassification => "nodes",
            TaskChoice::LinkPrediction => "edges",
        }
    }

    /// Every task with the keys of `[task]` that it alone reads.
    pub(crate) const ALL: [(&'static str, &'static [&'static str]); 2] = [
        ("node_classification", &[]),
        (
            "link_prediction",
            &[
                "decoder",
                "split",
                "negatives",
                "negatives_per_edge",
                "filter_negatives",
                "exclude_targets",
                "eval_negatives",
            ],
        ),
    ];
}

/// `task.split`: which edges are held out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LinkSplitChoice {
    /// Those that the data hold out.
    Named(NamedSplit),
    /// Shares of them.
    Drawn(LinkSplit),
}

impl LinkSplitChoice {
    /// The split to draw; `None` where it is given.
    ///
    /// # Errors
    /// If its shares leave nothing to learn from.
    pub fn spec(&self) -> Result<Option<EdgeSplit>> {
        match self {
            LinkSplitChoice::Named(NamedSplit::Given) => Ok(None),
            LinkSplitChoice::Drawn(split) => split.spec().map(Some),
        }
    }
}

/// `task.split = { … }`: shares of edges and the seed that draws them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkSplit {
    /// Edges that choose the best round.
    pub val: f64,
    /// Edges for the final figure alone.
    pub test: f64,
    /// What draws them; of pairs to be judged by, too.
    pub seed: u64,
}

impl Default for LinkSplit {
    fn default() -> Self {
        LinkSplit { val: 0.05, test: 0.1, seed: 0 }
    }
}

impl LinkSplit {
    /// The split that it asks for.
    ///
    /// # Errors
    /// If its shares leave nothing to learn from.
    pub fn spec(&self) -> Result<EdgeSplit> {
        let LinkSplit { val, test, seed } = *self;
        Ok(EdgeSplit { val, test, seed }.checked()?)
    }
}

/// `task.eval_negatives`: what held-out edges are judged against.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EvalNegatives {
    /// Pairs that the data give.
    Named(NamedSplit),
    /// So many pairs for each edge, drawn.
    Drawn(u32),
}

/// `task.negatives`: what an edge's target is replaced by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replacement {
    /// Any node.
    Global,
    /// A node of whoever owns the target, so that no further embedding has to cross.
    Local,
}

impl From<Replacement> for NegativeScope {
    fn from(replacement: Replacement) -> Self {
        match replacement {
            Replacement::Global => NegativeScope::Global,
            Replacement::Local => NegativeScope::Local,
        }
    }
}

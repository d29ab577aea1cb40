//! `[task]`: what is learned.

use laconic_graph::links::{EdgeSplit, NegativeScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::data::NamedSplit;
use super::named::member_name;
use crate::error::Result;

/// `[task]`: what is learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskConfig {
    /// node_classification | link_prediction.
    #[serde(deserialize_with = "member_name")]
    #[schemars(with = "TaskChoice")]
    pub kind: String,
    /// link_prediction: dot | mlp | distmult: what scores a pair of embeddings of model.hidden columns; distmult learns
    /// a vector for each relation of edges.
    pub decoder: String,
    /// mlp: hidden layers.
    pub decoder_layers: usize,
    /// link_prediction: { val, test, seed }: shares of edges that are held out, both directions and all relations of a
    /// pair together; or given, those that the data hold out ({ val = 0.05, test = 0.1, seed = 0 }).
    pub split: LinkSplitChoice,
    /// link_prediction: global | local: pairs that are no edges have any node for a target, or one of the target's
    /// owner.
    pub negatives: Replacement,
    /// link_prediction: such pairs an edge, others in every round.
    pub negatives_per_edge: u32,
    /// link_prediction: whether drawn pairs that are edges, with distmult of the same relation, are left out: training
    /// edges in training, all edges in evaluations.
    pub filter_negatives: bool,
    /// link_prediction: whether the edges that a batch (batch.size) predicts, both directions and all relations, pass
    /// no messages in it.
    pub exclude_targets: bool,
    /// link_prediction: pairs among which each held-out edge is ranked (mrr, recall, ndcg), from all nodes, always the
    /// same; or given, those that the data give beside a given task.split. Areas compare with the first pair of each
    /// edge, hits@K with a pool of such, about as many for validation as for testing.
    pub eval_negatives: EvalNegatives,
}

impl Default for TaskConfig {
    fn default() -> Self {
        TaskConfig {
            kind: "node_classification".to_owned(),
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
// What the schema lists: any member of the registry may be named.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum TaskChoice {
    /// The classes of nodes.
    NodeClassification,
    /// Which nodes have an edge between them.
    LinkPrediction,
}

/// `task.split`: which edges are held out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum EvalNegatives {
    /// Pairs that the data give.
    Named(NamedSplit),
    /// So many pairs for each edge, drawn.
    Drawn(u32),
}

/// `task.negatives`: what an edge's target is replaced by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

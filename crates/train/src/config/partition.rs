//! `[partition]`: where nodes live.

use std::path::PathBuf;

use laconic_graph::order::ORDERS;
use laconic_graph::partition::{IMBALANCE_DEFAULT, PASSES_DEFAULT, RULES, clusterers};
use laconic_graph::partition::{Objective, OptionValue as GraphValue, PartitionOptions};
use laconic_wire::codec::{OptionValue, Options};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[partition]`: where nodes live.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PartitionConfig {
    /// Number of parts, one worker each; `laconic resume --workers N` changes it (0: 1, or the number of MPI
    /// processes).
    pub parts: u32,
    /// random | multilevel | super_node | streaming | given.
    pub method: String,
    /// random, multilevel, super_node, streaming: seed of the partition.
    pub seed: u64,
    /// multilevel: minimises cut | volume.
    pub objective: String,
    /// multilevel: also balances training nodes.
    pub balance_train: bool,
    /// multilevel, super_node, streaming: also balances the edges that end at a part's nodes (false).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub balance_edges: bool,
    /// multilevel, super_node, streaming: how much larger than the mean a part may be.
    pub imbalance: f64,
    /// given | locality | random: how a worker orders its own rows; locality puts those that read the same rows near
    /// each other, which is faster where rows of all nodes are more than a cache holds; random is to compare with
    /// (given).
    #[serde(skip_serializing_if = "is_given")]
    pub order: String,
    /// given: the assignment: a table with the columns id and part, or one part number a line for the node of that row,
    /// or npy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// given: the column of the node table, or of partition.file, that says each node's part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// super_node: clusters assigned to parts (0: 15,000, or a 64th of the nodes).
    pub clusters: u32,
    /// super_node: makes clusters by multilevel | streaming.
    pub clusterer: String,
    /// super_node, streaming: streaming places nodes by clusters | fennel | ldg.
    pub rule: String,
    /// super_node, streaming: times streaming goes through the edges.
    pub passes: u32,
    /// Keys of members from outside.
    #[serde(flatten)]
    #[schemars(skip)]
    pub own: Options,
}

fn is_given(order: &str) -> bool {
    order == ORDERS[0].name
}

impl Default for PartitionConfig {
    fn default() -> Self {
        PartitionConfig {
            parts: 0,
            method: "random".to_owned(),
            seed: 0,
            objective: Objective::default().name().to_owned(),
            balance_train: false,
            balance_edges: false,
            imbalance: IMBALANCE_DEFAULT,
            order: ORDERS[0].name.to_owned(),
            file: None,
            column: None,
            clusters: 0,
            clusterer: clusterers()[0].0.to_owned(),
            rule: RULES[0].to_owned(),
            passes: PASSES_DEFAULT,
            own: Options::default(),
        }
    }
}

impl PartitionConfig {
    /// The wishes as partitioners read them.
    pub fn options(&self) -> PartitionOptions {
        let own = self.own.iter().filter_map(|(name, value)| Some((name.to_owned(), graph_value(value)?)));
        PartitionOptions {
            objective: Objective::from_name(&self.objective).unwrap_or_default(),
            balance_train: self.balance_train,
            balance_edges: self.balance_edges,
            imbalance: self.imbalance,
            file: self.file.clone(),
            clusters: self.clusters,
            clusterer: self.clusterer.clone(),
            rule: self.rule.clone(),
            passes: self.passes,
            own: own.collect(),
        }
    }
}

fn graph_value(value: &OptionValue) -> Option<GraphValue> {
    match value {
        OptionValue::Flag(flag) => Some(GraphValue::Flag(*flag)),
        OptionValue::Number(number) => Some(GraphValue::Number(*number)),
        OptionValue::Text(text) => Some(GraphValue::Text(text.clone())),
        _ => None,
    }
}

//! `[partition]`: where nodes live.

use std::path::PathBuf;

use laconic_graph::order::ORDERS;
use laconic_graph::partition::{IMBALANCE_DEFAULT, PASSES_DEFAULT, RULES, clusterers};
use laconic_graph::partition::{Objective, OptionValue as GraphValue, PartitionOptions};
use laconic_wire::codec::{OptionValue, Options};
use serde::{Deserialize, Serialize};

/// `[partition]`: where nodes live.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PartitionConfig {
    /// The number of parts, one worker each; 0 stands for 1, or under MPI for the number of processes.
    pub parts: u32,
    /// `random`, `multilevel`, `super_node`, `streaming`, `given`.
    pub method: String,
    /// The seed of all draws of the partitioner.
    pub seed: u64,
    /// What `multilevel` minimises: `cut` or `volume`.
    pub objective: String,
    /// Whether `multilevel` also balances training nodes.
    pub balance_train: bool,
    /// Whether the edges that end at a part's nodes are balanced as well as its nodes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub balance_edges: bool,
    /// How much larger than the mean `multilevel` and `streaming` may make a part, or a cluster (0.05: 5 %).
    pub imbalance: f64,
    /// How a worker orders its own rows: `given`, `locality` or `random`.
    #[serde(skip_serializing_if = "is_given")]
    pub order: String,
    /// The assignment for `given`: one part number a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The column of parts for `given`: of `file` where that is a table, else of the node table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// How many clusters `super_node` assigns; 0 stands for 15,000, or a 64th of the nodes where that is less.
    pub clusters: u32,
    /// What `super_node` clusters by: `multilevel` or `streaming`.
    pub clusterer: String,
    /// How `streaming` places nodes: `clusters`, `fennel` or `ldg`.
    pub rule: String,
    /// How often `streaming` goes through the edges.
    pub passes: u32,
    /// Keys of members from outside.
    #[serde(flatten)]
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

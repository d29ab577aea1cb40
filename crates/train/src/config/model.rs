//! `[model]`: the layers.

use std::collections::BTreeMap;

use laconic_graph::part::GlobalCounts;
use laconic_nn::after::{ACTIVATION_KINDS, ActivationKind, NORM_KINDS, by_name};
use laconic_nn::architecture::{Architecture, JUMPING_KINDS};
use laconic_nn::layer::{Aggregator, LayerKind};
use laconic_wire::codec::{OptionValue, Options};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::one_of;
use crate::error::{Result, TrainError};
use crate::inputs::FEATURES;

/// `[model]`: the layers and their widths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelConfig {
    /// gcn | sage | gin | gat | rgcn | mlp.
    pub arch: String,
    /// Number of layers.
    pub layers: usize,
    /// Width between layers, for gat all heads together.
    pub hidden: usize,
    /// Width of a linear map and ReLU before the first layer, a map a type of nodes; 0: none.
    pub input_width: usize,
    /// What the first layer reads of each node, side by side: features; labels, the classes of its neighbours that
    /// train, which their owners tell once (policy.allow); codewords, the same of its neighbours' neighbours, for which
    /// labels stand before it; label_sums, as labels, but as sums over several nodes (policy.label_group); own_labels,
    /// classes of neighbours in the own part alone, of which nothing is told; propagated, the means of its neighbours'
    /// features, and propagated_twice (["features"]).
    #[serde(skip_serializing_if = "reads_features_alone")]
    pub inputs: Vec<String>,
    /// gat: attention heads.
    pub heads: usize,
    /// gat: concat | mean: hidden layers concatenate heads and the last has one, or every layer averages its heads.
    pub head_merge: String,
    /// sage: mean | max.
    pub aggregator: String,
    /// gin: whether it learns its epsilon.
    pub learn_epsilon: bool,
    /// rgcn: of how many bases relations are mixed, 0: a weight for each relation.
    pub bases: usize,
    /// Share of each layer's input values dropped in training.
    pub dropout: f32,
    /// none | layer | batch: LayerNorm after hidden layers, or BatchNorm over the rows of all workers (of each by
    /// itself with train.sync_every or independent trainers), with running statistics in evaluations.
    pub norm: String,
    /// relu | prelu, whose slope below 0 is learned.
    pub activation: String,
    /// none | last | cat | max: what a linear map behind the last layer reads: the last hidden rows, or those of all
    /// layers side by side, or the largest of each column.
    pub jumping_knowledge: String,
    /// Add what goes into a layer to what comes out, times a matrix where widths differ.
    pub residual: bool,
    /// Every node is its own neighbour (gcn, gat: true; else false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_loops: Option<bool>,
    /// Keys of members from outside.
    #[serde(flatten)]
    #[schemars(skip)]
    pub own: Options,
}

fn reads_features_alone(inputs: &[String]) -> bool {
    inputs == [FEATURES]
}

/// The names of these kinds, and none.
fn or_none<K, const N: usize>(kinds: [(&'static str, K); N]) -> Vec<&'static str> {
    std::iter::once("none").chain(kinds.into_iter().map(|(name, _)| name)).collect()
}

/// What of the data decides the shape of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    /// The number of feature columns.
    pub columns: usize,
    /// The number of classes.
    pub classes: usize,
    /// How many relations edges are of; 0 where there is one kind of edge.
    pub relations: usize,
}

impl Widths {
    /// Those of data of these counts.
    pub fn of(counts: &GlobalCounts) -> Widths {
        Widths { columns: counts.columns, classes: counts.classes, relations: counts.relations }
    }
}

/// Columns and classes of a graph with one kind of edge.
impl From<[usize; 2]> for Widths {
    fn from([columns, classes]: [usize; 2]) -> Self {
        Widths { columns, classes, relations: 0 }
    }
}

impl Default for ModelConfig {
    fn default() -> Self {
        ModelConfig {
            arch: "sage".to_owned(),
            layers: 2,
            hidden: 256,
            input_width: 0,
            inputs: vec![FEATURES.to_owned()],
            heads: 8,
            head_merge: "concat".to_owned(),
            aggregator: "mean".to_owned(),
            learn_epsilon: true,
            bases: 0,
            dropout: 0.3,
            norm: "layer".to_owned(),
            activation: "relu".to_owned(),
            jumping_knowledge: "none".to_owned(),
            residual: false,
            self_loops: None,
            own: Options::default(),
        }
    }
}

impl ModelConfig {
    /// Checks everything but the name, given the kind of layer that it stands for.
    ///
    /// # Errors
    /// If a value makes no sense.
    pub fn check(&self, kind: &LayerKind) -> Result<()> {
        one_of("model.head_merge", &self.head_merge, &["concat", "mean"])?;
        one_of("model.aggregator", &self.aggregator, &["mean", "max"])?;
        one_of("model.norm", &self.norm, &or_none(NORM_KINDS))?;
        one_of("model.activation", &self.activation, &ACTIVATION_KINDS.map(|(name, _)| name))?;
        one_of("model.jumping_knowledge", &self.jumping_knowledge, &or_none(JUMPING_KINDS))?;
        for (key, value, largest) in
            [("layers", self.layers, 64), ("hidden", self.hidden, 1 << 16), ("heads", self.heads, 64)]
        {
            if value == 0 || value > largest {
                return Err(TrainError::config(format!("model.{key} = {value}: expected 1 to {largest}")));
            }
        }
        const BASES_MAX: usize = 1 << 12;
        if self.bases > BASES_MAX {
            return Err(TrainError::config(format!("model.bases = {}: expected 0 to {BASES_MAX}", self.bases)));
        }
        if self.input_width > 1 << 16 {
            let width = self.input_width;
            return Err(TrainError::config(format!("model.input_width = {width}: expected 0 to {}", 1 << 16)));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(TrainError::config(format!("model.dropout = {}: expected 0 or more, below 1", self.dropout)));
        }
        if kind.is_relational && self.self_loops == Some(true) {
            let what = "the layer multiplies a node's own row by a weight of its own";
            return Err(TrainError::config(format!("model.self_loops = true: {what}")));
        }
        if kind.has_heads && !self.hidden.is_multiple_of(self.heads) {
            let (hidden, heads) = (self.hidden, self.heads);
            return Err(TrainError::config(format!(
                "model.hidden = {hidden} does not divide into model.heads = {heads}"
            )));
        }
        Ok(())
    }

    /// The architecture for data of these widths.
    pub fn architecture(&self, widths: Widths) -> Architecture {
        Architecture {
            layers: self.layers,
            inputs: widths.columns,
            input_width: self.input_width,
            hidden: self.hidden,
            classes: widths.classes,
            heads: self.heads,
            concatenate: self.head_merge == "concat",
            aggregator: if self.aggregator == "max" { Aggregator::Max } else { Aggregator::Mean },
            learn_epsilon: self.learn_epsilon,
            relations: widths.relations.max(1),
            bases: self.bases,
            dropout: self.dropout,
            norm: by_name(&NORM_KINDS, &self.norm),
            activation: by_name(&ACTIVATION_KINDS, &self.activation).unwrap_or(ActivationKind::Relu),
            jumping: by_name(&JUMPING_KINDS, &self.jumping_knowledge),
            residual: self.residual,
            options: self.numbers(),
        }
    }

    /// Options of layers from outside: numbers, and flags as 0 and 1.
    fn numbers(&self) -> BTreeMap<String, f64> {
        let number = |(name, value): (&str, &OptionValue)| match value {
            OptionValue::Number(number) => Some((name.to_owned(), *number)),
            OptionValue::Flag(flag) => Some((name.to_owned(), f64::from(u8::from(*flag)))),
            _ => None,
        };
        self.own.iter().filter_map(number).collect()
    }
}

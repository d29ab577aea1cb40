//! From `[model]` to an architecture.

use laconic_nn::layer::{Aggregator, LAYERS, LayerKind, layer_kind};
use laconic_nn::network::Architecture;

use super::{ModelConfig, one_of};
use crate::error::{Result, TrainError};

impl ModelConfig {
    pub(super) fn check(&self) -> Result<()> {
        let names: Vec<&str> = LAYERS.iter().map(|kind| kind.name).collect();
        one_of("model.arch", &self.arch, &names)?;
        one_of("model.head_merge", &self.head_merge, &["concat", "mean"])?;
        one_of("model.aggregator", &self.aggregator, &["mean", "max"])?;
        one_of("model.norm", &self.norm, &["none", "layer"])?;
        for (key, value, largest) in
            [("layers", self.layers, 64), ("hidden", self.hidden, 1 << 16), ("heads", self.heads, 64)]
        {
            if value == 0 || value > largest {
                return Err(TrainError::config(format!("model.{key} = {value}: expected 1 to {largest}")));
            }
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(TrainError::config(format!("model.dropout = {}: expected 0 or more, below 1", self.dropout)));
        }
        if self.kind().has_heads && !self.hidden.is_multiple_of(self.heads) {
            let (hidden, heads) = (self.hidden, self.heads);
            return Err(TrainError::config(format!(
                "model.hidden = {hidden} does not divide into model.heads = {heads}"
            )));
        }
        Ok(())
    }

    /// The kind of layer.
    pub fn kind(&self) -> &'static LayerKind {
        layer_kind(&self.arch).expect("a checked configuration names a known layer")
    }

    /// Whether nodes are their own neighbours.
    pub fn has_self_loops(&self) -> bool {
        self.self_loops.unwrap_or(self.kind().self_loops)
    }

    /// The architecture for data of these widths.
    pub fn architecture(&self, inputs: usize, classes: usize) -> Architecture {
        Architecture {
            layers: self.layers,
            inputs,
            hidden: self.hidden,
            classes,
            heads: self.heads,
            concatenate: self.head_merge == "concat",
            aggregator: if self.aggregator == "max" { Aggregator::Max } else { Aggregator::Mean },
            learn_epsilon: self.learn_epsilon,
            dropout: self.dropout,
            norm: self.norm == "layer",
            options: Default::default(),
        }
    }
}

//! Where rows may be stored as bf16 (`train.precision`): in passes over all own rows, by layers that say so.

use laconic_nn::Precision;

use super::Plan;
use crate::config::{CodecChoice, Stored};
use crate::error::{Result, TrainError};
use crate::schedule::Stage;

impl Plan {
    /// How features, rows between layers and their gradients are stored.
    pub fn precision(&self) -> Precision {
        self.config.train.precision.into()
    }

    /// Refuses what takes `f32` alone where rows are stored as bf16.
    ///
    /// # Errors
    /// If there is such a thing; the text names it.
    pub(super) fn check_precision(&self) -> Result<()> {
        let config = &self.config;
        if config.train.precision == Stored::F32 {
            return Ok(());
        }
        let model = &config.model;
        let freezes = || self.stages.iter().any(Stage::may_freeze);
        let networks = || self.stages.iter().map(|stage| &stage.network);
        let with = if config.batch.size > 0 {
            format!("batch.size = {}", config.batch.size)
        } else if networks().any(|network| network.normalises_columns()) {
            format!("model.norm = {:?}", model.norm)
        } else if networks().any(|network| network.joined().is_some()) {
            format!("model.jumping_knowledge = {:?}", model.jumping_knowledge)
        } else if networks().flat_map(|network| network.units()).any(|unit| !unit.layer.facts().takes_bf16) {
            let has_choice = self.layer.options.contains(&"aggregator");
            let arch = format!("model.arch = {:?}", model.arch);
            if has_choice { format!("model.aggregator = {:?}", model.aggregator) } else { arch }
        } else if self.stages.iter().any(|stage| self.reveals(stage)) {
            "inputs that are revealed column by column, or bit by bit (reveal = true)".to_owned()
        } else if self.messages.budget.is_some() && config.messages.forward == CodecChoice::exact() && freezes() {
            "messages.budget, whose masks reveal inputs column by column (not where messages.forward names a codec)"
                .to_owned()
        } else {
            return Ok(());
        };
        let what =
            format!("train.precision = \"bf16\" with {with}: this is computed in f32 alone; leave one of them out");
        Err(TrainError::config(what))
    }
}

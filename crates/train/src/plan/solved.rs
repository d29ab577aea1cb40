//! What a model that is solved in one round (`schedule.kind = "ridge"`) cannot be had with.

use laconic_graph::part::GlobalCounts;

use super::{Members, Plan};
use crate::config::{CodecChoice, Config, Stored};
use crate::error::{Result, TrainError};
use crate::schedule::Stage;

/// Refuses other models than one linear layer on own rows, and whatever is about several rounds or their messages.
pub(super) fn check_solved(members: &Members, config: &Config, stages: &[Stage]) -> Result<()> {
    let Some(stage) = stages.iter().find(|stage| stage.solves.is_some()) else { return Ok(()) };
    let refuse = |key: String, what: &str| {
        let kind = &config.schedule.kind;
        Err(TrainError::config(format!("{key} with schedule.kind = {kind:?}: {what}")))
    };
    let (facts, model) = (stage.first().facts(), &config.model);
    let is_linear = facts.message_width == 0 && stage.network.len() == (facts.inputs + 1) * facts.outputs;
    if stage.network.units().len() > 1 || !is_linear || model.residual {
        let what = "expected \"mlp\", without model.input_width, model.jumping_knowledge and model.residual: what is \
            solved is one linear layer on own rows; model.inputs has what can be told of neighbours";
        return refuse(format!("model.arch = {:?}", model.arch), what);
    }
    if !members.task(config)?.of_labels {
        return refuse(format!("task.kind = {:?}", config.task.kind), "it is fitted to classes of nodes");
    }
    if config.batch.size > 0 {
        return refuse(format!("batch.size = {}", config.batch.size), "there is one round, over all training nodes");
    }
    if config.train.sync_every > 1 {
        return refuse(format!("train.sync_every = {}", config.train.sync_every), "there is one round, and one sum");
    }
    if config.train.precision == Stored::Bf16 {
        return refuse("train.precision = \"bf16\"".to_owned(), "sums of squares are made of f32 alone");
    }
    if config.messages.parameters != CodecChoice::exact() {
        let what = "sums of products cross as they are: rounded ones may have no solution";
        return refuse("messages.parameters".to_owned(), what);
    }
    Ok(())
}

impl Plan {
    /// Refuses data that a stage cannot be solved for.
    pub(super) fn check_solved(&self, counts: &GlobalCounts) -> Result<()> {
        if counts.multi_label && self.stages.iter().any(|stage| stage.solves.is_some()) {
            let (kind, what) =
                (&self.config.schedule.kind, "may have several classes, and it is fitted to one of each");
            return Err(TrainError::config(format!("schedule.kind = {kind:?}: a node of {} {what}", counts.dataset)));
        }
        Ok(())
    }
}

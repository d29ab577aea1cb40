//! Where sums of rows may stand for rows: in full passes, of layers whose folds are linear.

use laconic_nn::Layer;
use laconic_nn::layer::LayerSpec;

use super::members::Members;
use super::unread::listed;
use crate::config::Config;
use crate::error::{Result, TrainError};
use crate::messages::Messages;
use crate::schedule::Stage;

/// Refuses what needs each neighbour's row where sums may stand for rows.
///
/// # Errors
/// If there is such a thing; the text names it.
pub(super) fn check_covers(members: &Members, config: &Config, stages: &[Stage], messages: &Messages) -> Result<()> {
    let kind = members.selection(config)?;
    match kind.covers.then(|| against_sums(members, config, stages, messages)).transpose()?.flatten() {
        None => Ok(()),
        Some(what) => Err(TrainError::config(format!("messages.selection = {:?} with {what}", kind.name))),
    }
}

/// What needs rows, and why.
fn against_sums(members: &Members, config: &Config, stages: &[Stage], messages: &Messages) -> Result<Option<String>> {
    let schedule = members.schedule(config)?;
    let each = "each of a node's neighbours is looked at by itself, and a sum stands for several";
    let is_other = |layer: &dyn Layer| layer.facts().message_width > 0 && !layer.facts().is_linear;
    let reveals = |stage: &Stage| stage.freezes() && messages.coding(stage.input_tag(0)).reveals();
    let drops_copies = |stage: &Stage| {
        let first = &stage.network.units()[0];
        stage.freezes() && first.layer.facts().message_has_parameters && first.dropout > 0.0
    };
    Ok(if schedule.trainers {
        Some(format!("schedule.kind = {:?}: independent trainers exchange no rows in each round", schedule.name))
    } else if schedule.propagates.is_some() {
        Some(format!("schedule.kind = {:?}: {each}", schedule.name))
    } else if members.task(config)?.of_pairs {
        Some(format!("task.kind = {:?}: edges are held out of each round", config.task.kind))
    } else if config.data.inductive {
        Some("data.inductive: training and evaluations see other edges, and each would need sums".to_owned())
    } else if messages.are_adaptive() {
        Some("adaptive bits: what a row counts for at its receivers is not known of a sum".to_owned())
    } else if stages.iter().flat_map(|stage| stage.network.units()).any(|unit| is_other(unit.layer.as_ref())) {
        let is_linear = |layer: &dyn Layer| layer.facts().is_linear;
        let kinds = members.layers.iter().filter(|kind| is_linear(kind.layer(&LayerSpec::new(1, 1)).as_ref()));
        let linear: Vec<String> = kinds.map(|kind| kind.name.to_owned()).collect();
        // What is linear by default is so without some option.
        let kind = members.layer(config)?;
        let options: Vec<String> = kind.options.iter().map(|option| format!("model.{option}")).collect();
        let with = match linear.iter().any(|name| name == kind.name) {
            true => format!(" with this {}", listed(&options)),
            false => String::new(),
        };
        Some(format!("model.arch = {:?}{with}: {each}; {} add neighbours up", kind.name, listed(&linear)))
    } else if stages.iter().any(reveals) {
        Some("inputs that are revealed column by column, or bit by bit (reveal = true)".to_owned())
    } else if stages.iter().any(drops_copies) {
        let why = "it drops columns of each neighbour's inputs, which it has no copies of";
        Some(format!("model.dropout = {}: {why}; 0 leaves them", config.model.dropout))
    } else {
        None
    })
}

//! What a round does besides its passes, as far as running and predicting must agree on it: when workers agree, evaluate and write
//! checkpoints, what is reduced, and what is exchanged.

use laconic_nn::Network;
use laconic_wire::codec::{self, Options};
use laconic_wire::collectives::Reducer;
use laconic_wire::{Direction, Kind, Tag};

use crate::config::{Config, TrainConfig};
use crate::error::Result;

/// Whether workers agree after round `done` of `rounds` (from 1): gradients are added up, or models averaged.
pub fn is_synced(config: &TrainConfig, done: u32, rounds: u32) -> bool {
    done == rounds || done.is_multiple_of(config.sync_every)
}

/// Whether something that is due every `every` rounds, 0 for never, is due after round `done`: since the last time that workers
/// agreed, its time has come.
pub fn is_due(config: &TrainConfig, every: u32, done: u32, rounds: u32) -> bool {
    let last = (done - 1) / config.sync_every * config.sync_every;
    every > 0 && is_synced(config, done, rounds) && done / every > last / every
}

/// Whether round `done` of `rounds` (from 1) is evaluated.
pub fn is_evaluated(config: &TrainConfig, done: u32, rounds: u32) -> bool {
    done == rounds || is_due(config, config.eval_every, done, rounds)
}

/// How many values ride along with each reduction, uncompressed: the loss and how many workers were asked to stop, and, if a
/// controller reads them, bytes and seconds.
pub fn extras_len(config: &Config) -> usize {
    if config.messages.reads_clocks() { 4 } else { 2 }
}

/// The tag of a round's reduction: of gradients, or of parameters where several local steps lie between two.
pub fn reduction_tag(config: &TrainConfig, layer: u16, round: u32) -> Tag {
    let kind = if config.sync_every > 1 { Kind::Parameters } else { Kind::ParameterGradients };
    Tag { kind, direction: Direction::Forward, layer, round, step: 0 }
}

/// How parameters travel.
pub fn reducer(config: &Config) -> Result<Reducer> {
    let choice = config.messages.parameters.config();
    let codec = codec::named(&choice.codec, &Options::default())?;
    let feedback = config.messages.error_feedback && choice.codec != "exact";
    Ok(Reducer::new(codec, choice.most_bits(), config.train.seed, feedback))
}

/// The exchanges of a round of training with their widths: tags of round 0. `first` says whether those of the first layer happen
/// every round.
pub fn live_exchanges(network: &Network, first_layer: u16, first: bool) -> Vec<(Tag, usize)> {
    let mut exchanges = Vec::new();
    for (index, unit) in network.units().iter().enumerate() {
        let (layer, width) = (unit.layer.as_ref(), unit.layer.message_width());
        if width == 0 || (index == 0 && !first) {
            continue;
        }
        let kind = if index == 0 { Kind::Features } else { Kind::Activations };
        let number = first_layer + index as u16;
        exchanges.push((Tag { kind, direction: Direction::Forward, layer: number, round: 0, step: 0 }, width));
        if index > 0 || layer.message_has_parameters() {
            let kind = Kind::ActivationGradients;
            exchanges.push((Tag { kind, direction: Direction::Reverse, layer: number, round: 0, step: 0 }, width));
        }
    }
    exchanges
}

//! What a run should know of its own configuration before it starts: what is allowed and does less than it says.

use laconic_wire::{Direction, Tag};

use super::Plan;
use crate::config::{CodecChoice, Config, CostsChoice};

/// The configuration's word for a direction.
const fn key(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "messages.forward",
        Direction::Reverse => "messages.backward",
    }
}

impl Plan {
    /// What the configuration asks for and this run has no use for, a line each.
    pub fn notes(&self) -> Vec<String> {
        let masks = [Direction::Forward, Direction::Reverse].into_iter();
        let masks = masks.filter_map(|direction| self.idle_mask(direction));
        masks.chain(self.uneven_masks()).chain(self.idle_keys()).collect()
    }

    /// Says so where gradients come back in other columns than their rows went out in: then some are by entries that
    /// never arrived, which nothing at the owner depends on, and some that are wanted stay away.
    fn uneven_masks(&self) -> Option<String> {
        let live: Vec<Tag> = self.stages.iter().flat_map(|stage| stage.live_exchanges()).map(|(tag, _)| tag).collect();
        let (back, out): (Vec<&Tag>, Vec<&Tag>) = live.iter().partition(|tag| tag.direction == Direction::Reverse);
        let uneven = |out: &&Tag| {
            let back = back.iter().find(|back| back.layer == out.layer);
            back.is_some_and(|back| !self.messages.coding(**out).leaves_out_as(self.messages.coding(**back)))
        };
        let layer = out.iter().copied().find(uneven)?.layer;
        Some(format!(
            "layer {layer}: gradients do not come back in the columns that rows go out in, so some are by entries that \
             never arrived; messages.backward with the ratio, columns and rescale of messages.forward changes that"
        ))
    }

    /// Keys that have been set and that nothing in this run reads, since another key decides so.
    fn idle_keys(&self) -> Vec<String> {
        let Config { messages, train, transport, .. } = &*self.config;
        let mut notes = Vec::new();
        if messages.costs == CostsChoice::Measured && !self.messages.are_adaptive() {
            notes
                .push("messages.costs = \"measured\": no message has adaptive bits, so no cost is measured".to_owned());
        }
        // A byte budget may choose other codecs for them.
        if !messages.error_feedback && self.messages.budget.is_none() && !self.messages.round_parameters() {
            notes.push(
                "messages.error_feedback = false: messages.parameters lose nothing, so nothing is fed back".to_owned(),
            );
        }
        if transport.shape_sleeps && transport.shape.is_empty() {
            notes.push(
                "transport.shape_sleeps = true: no link is shaped (transport.shape), so nobody sleeps".to_owned(),
            );
        }
        if train.patience > 0 && train.eval_every == 0 {
            let why = "only a stage's last round is evaluated (train.eval_every = 0), so none ends early";
            notes.push(format!("train.patience = {}: {why}", train.patience));
        }
        notes
    }

    /// Says why, where masks are configured for a direction and leave all of its messages whole.
    fn idle_mask(&self, direction: Direction) -> Option<String> {
        let masks = |tag: &Tag| self.messages.coding(*tag).kind.reads.ratio;
        let live = self.stages.iter().flat_map(|stage| stage.live_exchanges()).map(|(tag, _)| tag);
        let live: Vec<Tag> = live.filter(|tag| tag.direction == direction).collect();
        if !self.configures_mask(direction) || live.iter().any(masks) {
            return None;
        }
        let mut reasons = Vec::new();
        if self.stages.iter().any(|stage| live.iter().any(|tag| tag.layer == stage.last_layer())) {
            reasons.push("the last layer travels whole (whole_last = false masks it)");
        }
        let mut frozen = self.stages.iter().filter(|stage| stage.freezes()).map(|stage| stage.input_tag(0));
        match direction {
            Direction::Forward if frozen.any(|tag| masks(&tag)) => reasons.push("only inputs that cross once are"),
            Direction::Reverse if frozen.next().is_some() => reasons.push("inputs that cross once have no way back"),
            _ if live.is_empty() => reasons.push("no layer sends any"),
            _ => {}
        }
        Some(format!("{}: no message of a round is masked: {}", key(direction), reasons.join("; ")))
    }

    fn configures_mask(&self, direction: Direction) -> bool {
        let messages = &self.config.messages;
        let pick = |forward, backward| if direction == Direction::Forward { forward } else { backward };
        let layers = messages.layers.values().filter_map(|own| pick(own.forward.as_ref(), own.backward.as_ref()));
        let mut choices = layers.chain(pick(Some(&messages.forward), Some(&messages.backward)));
        choices.any(|choice: &CodecChoice| {
            let config = choice.config();
            let kind = self.members.codecs.describe(&config.codec, &config.options);
            kind.is_ok_and(|kind| kind.reads.ratio)
        })
    }
}

//! Label propagation (Zhu and Ghahramani, 2002; Zhou et al., 2003): no model, no features, no rounds. What a node's
//! neighbours are says what it is. The first thing to hold any transductive figure against.
//!
//! Bytes of a worker that sends S rows: ⌈S·⌈log₂(classes + 1)⌉ / 8⌉ + 4·S for the labels of the first step and the
//! roots of degrees, and 4·S·classes for each further step, or what the codec of `messages.forward` makes of them.

use laconic_nn::Unit;
use laconic_nn::after::After;
use laconic_nn::layer::Identity;
use laconic_nn::network::Network;
use laconic_wire::Content;

use super::{Blueprint, HandOn, Propagated, Propagation, ScheduleKind, Stage};

pub(super) const KIND: ScheduleKind = ScheduleKind {
    name: "label_propagation",
    options: &["steps", "alpha", "normalise"],
    trainers: false,
    propagates: Some(Propagated::Labels),
    stages: |blueprint| vec![stage(blueprint, Propagated::Labels, 1)],
};

/// The stage that begins with steps along edges and judges what comes of them: its one round learns nothing.
pub(super) fn stage(blueprint: &Blueprint<'_>, of: Propagated, first_layer: u16) -> Stage {
    let Blueprint { config, architecture, .. } = *blueprint;
    let layer = Box::new(Identity::new(architecture.classes));
    let unit = Unit { name: "scores.0".to_owned(), layer, dropout: 0.0, after: After::Nothing };
    Stage {
        network: Network::new(vec![unit]),
        propagation: Some(Propagation::of(of, config)),
        solves: None,
        cache_inputs: true,
        redraws: false,
        sample_inputs: false,
        late: None,
        hand_on: HandOn::Nothing,
        inputs: Content::PropagatedLabels,
        first_layer,
        rounds: 1,
        span: 1,
        lr: config.train.lr,
    }
}

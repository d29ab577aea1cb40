//! Lazy message passing (RETEXO, Kolluri et al., 2023): layers are trained one after the other, each on frozen
//! inputs, and boundary rows cross once a layer instead of twice a layer and round.
//!
//! Bytes of a worker that sends S rows: 4·S·(d + (L − 1)·w) in all with `start = "features"`, 4·S·L·w with `start =
//! "mlp"` (raw features never leave their owner), and the gradients of one stage's network a round; w is the width of
//! what stages hand on: hidden rows, class scores, or the columns of a bottleneck between the two.

use laconic_nn::architecture::Handed;
use laconic_wire::Content;

use super::{Blueprint, HandOn, ScheduleKind, Stage};
use crate::config::Start;

pub(super) const KIND: ScheduleKind = ScheduleKind {
    name: "lazy",
    options: &["start", "hand_on", "rounds", "lr"],
    trainers: false,
    propagates: None,
    stages,
};

pub(super) fn stages(blueprint: &Blueprint<'_>) -> Vec<Stage> {
    let Blueprint { config, kind, architecture } = *blueprint;
    let handed = config.schedule.hand_on();
    let from_mlp = config.schedule.start == Start::Mlp;
    // A perceptron comes first there and each layer is a stage after it.
    let count = architecture.layers + usize::from(from_mlp);
    let stage = |index: usize| Stage {
        network: match from_mlp {
            true => architecture.stage_after_mlp(kind, index, handed),
            false => architecture.stage(kind, index, handed),
        },
        propagation: None,
        solves: None,
        cache_inputs: true,
        redraws: false,
        sample_inputs: true,
        late: None,
        hand_on: match (index + 1 == count, handed) {
            (true, _) => HandOn::Nothing,
            (false, Handed::Scores) => HandOn::Scores,
            (false, Handed::Hidden | Handed::Columns(_)) => HandOn::Hidden,
        },
        inputs: match (index, handed) {
            (0, _) => Content::Features,
            (_, Handed::Scores) => Content::Scores,
            (_, Handed::Hidden) => Content::HiddenRows,
            (_, Handed::Columns(_)) => Content::LearnedColumns,
        },
        first_layer: index as u16,
        rounds: config.rounds_of(index),
        span: config.rounds_of(index),
        lr: config.lr_of(index),
    };
    (0..count).map(stage).collect()
}

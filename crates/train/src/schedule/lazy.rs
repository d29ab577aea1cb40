//! Lazy message passing (RETEXO, Kolluri et al., 2023): layers are trained one after the other, each on frozen
//! inputs, and boundary rows cross once a layer instead of twice a layer and round.
//!
//! Bytes of a worker that sends S rows: 4·S·(d + (L − 1)·h) in all with `start = "features"`, 4·S·L·C with `start =
//! "mlp"` (raw features never leave their owner), and the gradients of one stage's network a round.

use super::{Blueprint, HandOn, ScheduleKind, Stage};
use crate::config::Start;

pub(super) const KIND: ScheduleKind = ScheduleKind { name: "lazy", options: &["start", "rounds", "lr"], stages };

fn stages(blueprint: &Blueprint<'_>) -> Vec<Stage> {
    let Blueprint { config, kind, architecture } = *blueprint;
    let scores = config.schedule.start == Start::Mlp;
    // With scores a perceptron comes first and each layer is a stage after it.
    let count = architecture.layers + usize::from(scores);
    let stage = |index: usize| Stage {
        network: if scores { architecture.score_stage(kind, index) } else { architecture.stage(kind, index) },
        cache_inputs: true,
        sample_inputs: true,
        late: None,
        hand_on: match (index + 1 == count, scores) {
            (true, _) => HandOn::Nothing,
            (false, true) => HandOn::Scores,
            (false, false) => HandOn::Hidden,
        },
        first_layer: index as u16,
        rounds: config.rounds_of(index),
        lr: config.lr_of(index),
    };
    (0..count).map(stage).collect()
}

//! `messages = "auto"` and `schedule.hand_on = "auto"`: ways to train of which each sends more than the one before are
//! tried, cheapest first, and the cheapest that is as good as the best is kept. The ways stand in
//! `examples/methods/auto.toml` and `hand_on.toml`.

mod climb;
mod door;
mod graph;
mod ladder;
mod rule;

pub use climb::climb;
pub use door::train;
pub use graph::CutGraph;
pub use ladder::{Ladder, LeftOut, Rung, link_of, seconds_on, what_leaves};

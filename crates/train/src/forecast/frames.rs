//! Memory of frames: the largest exchange of a stage as its codecs write it.

use laconic_nn::Precision;
use laconic_wire::Tag;
use laconic_wire::codec::{Bits, Level};

use super::amounts::FLOAT;
use crate::config::TransportKind;
use crate::exchange::shapes::Shapes;
use crate::plan::Plan;
use crate::schedule::Stage;

/// Bytes of the frames that are in memory at once in a stage, and of the rows that are widened for their codecs.
pub fn frames(shapes: &Shapes, plan: &Plan, stage: &Stage) -> usize {
    let at_once = at_once(shapes, plan, stage);
    // Rows that are bf16 are widened for one link at a time.
    let longest = shapes.links.iter().map(|link| link.send.max(link.receive)).max().unwrap_or(0);
    let widened = if plan.precision() == Precision::F32 { 0 } else { longest };
    let (mut of_frames, mut of_rows) = (0, 0);
    for (tag, width) in exchanges(stage) {
        let (bytes, is_half) = of_codec(plan, tag, at_once, width);
        of_frames = of_frames.max(bytes);
        of_rows = of_rows.max(if is_half { 0 } else { widened * width * FLOAT });
    }
    of_frames + of_rows
}

/// The exchanges of rounds and evaluations of a stage, and of what crosses once before its first round.
fn exchanges(stage: &Stage) -> Vec<(Tag, usize)> {
    let first = stage.first();
    let freezes = first.facts().message_width > 0 && stage.freezes();
    let once = [stage.input_tag(0), stage.evaluation_input_tag(0)].map(|tag| (tag, first.facts().inputs));
    let once = once.into_iter().filter(|_| freezes);
    let propagated = stage.propagation_tags(0).into_iter().map(|tag| (tag, stage.outputs()));
    let crosses_once = once.chain(propagated);
    stage.live_exchanges().into_iter().chain(stage.evaluation_exchanges()).chain(crosses_once).collect()
}

/// Bytes of rows of a width in frames, at most, and whether those that are bf16 travel as they are.
fn of_codec(plan: &Plan, tag: Tag, rows: usize, width: usize) -> (usize, bool) {
    let coding = plan.messages.coding(tag);
    let level = Level { ratio: coding.ratio.range().0, bits: Bits::Uniform(coding.most_bits()) };
    let of_plain = (rows.saturating_mul(width).saturating_mul(FLOAT), false);
    // A codec that cannot be made is an error where it is made for a run.
    coding
        .build(plan.messages.registry())
        .map_or(of_plain, |codec| (codec.bytes(&level, rows, width), codec.is_half() && plan.messages.skip.is_none()))
}

/// Rows of an exchange's frames that are in memory at once, for each worker.
fn at_once(shapes: &Shapes, plan: &Plan, stage: &Stage) -> usize {
    // Between threads a frame is handed over, unless the next is made before anybody waits for it.
    let hands_over = plan.config.transport.kind == TransportKind::Threads && stage.late.is_none();
    shapes.links.iter().map(|link| if hands_over { link.send } else { link.send + link.receive }).sum()
}

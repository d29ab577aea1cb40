//! Memory of a worker, forecast from shapes: what is allocated once and kept.

use crate::exchange::shapes::Shapes;
use crate::schedule::Stage;

const FLOAT: usize = size_of::<f32>();

/// Bytes that a worker of these shapes holds at its peak: the graph in both orientations, features, frozen inputs, the
/// buffers of the largest stage, parameters with optimiser, and the frames of one exchange. Dense features are assumed
/// where sparse ones would be smaller after folding, so it is an upper estimate for bags of words.
pub fn forecast(shapes: &Shapes, stages: &[Stage]) -> u64 {
    let (rows, halo) = (shapes.rows, shapes.halo_rows());
    let edges: usize = shapes.edges.iter().sum();
    // The part as read (u64 ids), then both orientations of both blocks with positions.
    let graph = 8 * (2 * rows + edges) + 3 * FLOAT * edges + 8 * (6 * rows + 2 * halo);
    // Where training sees a part of the graph, its edges and inputs are held beside those of evaluations.
    let (apart, trained) = match &shapes.training {
        Some(training) => (2, 3 * FLOAT * training.edges.iter().sum::<usize>() + 8 * 6 * rows),
        None => (1, 0),
    };
    let graph = graph + trained;
    let features = apart * FLOAT * shapes.feature_values;
    let of_stage = |stage: &Stage| {
        let units = stage.network.units();
        let first = units[0].layer.as_ref();
        let frozen =
            apart * FLOAT * first.inputs() * (rows * 2 + if first.message_has_parameters() { halo } else { 0 });
        let dropped = if units[0].dropout > 0.0 { frozen } else { 0 };
        let mut widest = 0;
        let mut tapes = 0;
        for (index, unit) in units.iter().enumerate() {
            let layer = unit.layer.as_ref();
            let (message, output) = (layer.message_width(), layer.outputs());
            let live = index > 0 || first.message_has_parameters();
            let exchanged = if live { rows * 2 * message + halo * message } else { 0 };
            let hidden = if index + 1 == units.len() { 0 } else { rows * output };
            tapes += FLOAT * (exchanged + rows * output + hidden);
            widest = widest.max(output).max(layer.inputs()).max(message);
        }
        // Gradients of rows, of folds, of messages, of halo messages.
        let gradients = FLOAT * widest * (4 * rows + halo);
        let frames = FLOAT * widest * (shapes.links.iter().map(|l| l.send + l.receive).sum::<usize>());
        let parameters = FLOAT * stage.network.len() * (6 + 16);
        // Late rows and gradients, as they arrive and as they are used, for each layer but the first.
        let live = units.len().saturating_sub(1);
        let late = if stage.late.is_some() { FLOAT * widest * live * 2 * (halo + rows) } else { 0 };
        frozen + dropped + tapes + gradients + frames + parameters + late
    };
    let largest = stages.iter().map(of_stage).max().unwrap_or(0);
    (graph + features + largest) as u64
}

/// The largest resident size of this process so far, in bytes; 0 where the system does not tell.
pub fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

//! An epoch and its bound for people.

use std::fmt::Write;

use super::Measured;
use super::bound::Part;
use crate::bytes::{human_bytes, plural, separated};
use crate::command::bench::measure::{giga, milliseconds};

/// The figures as text.
pub fn table(measured: &Measured) -> String {
    let Measured { arch, hidden, layers, schedule, nodes, edges, features, classes, .. } = measured;
    let (nodes, edges) = (separated(*nodes), separated(*edges));
    let mut text =
        format!("{}: {nodes} nodes, {edges} edges, {features} features, {classes} classes\n", measured.graph);
    let who = [plural(measured.workers.into(), "worker"), plural(measured.threads as u64, "thread")].join(", ");
    let _ = writeln!(text, "{arch}, {layers} layers, hidden {hidden}, {schedule}, {who}");
    text += &rounds(measured);
    let _ = writeln!(text, "the bound by part; rates: {}", rates(measured));
    let _ = writeln!(
        text,
        "{:>5} {:>5} {:<9} {:<7} {:>6} {:>10} {:>9} {:>11}",
        "stage", "unit", "moment", "work", "width", "G amount", "G/s", "ms"
    );
    for part in &measured.bound.parts {
        let Part { stage, unit, moment, work, width, amount, rate, seconds } = part;
        let unit = unit.map(|unit| unit.to_string()).unwrap_or_default();
        let width = if *width == 0 { String::new() } else { width.to_string() };
        let [amount, rate] = [*amount, *rate].map(giga);
        let seconds = milliseconds(*seconds);
        let _ = writeln!(
            text,
            "{stage:>5} {unit:>5} {moment:<9} {work:<7} {width:>6} {amount:>10} {rate:>9} {seconds:>11}"
        );
    }
    let bound = &measured.bound;
    for (work, seconds) in [
        ("dense", bound.dense_seconds),
        ("gather", bound.gather_seconds),
        ("stream", bound.stream_seconds),
        ("link", bound.link_seconds),
    ] {
        let share = 100.0 * seconds / measured.bound_seconds;
        let _ = writeln!(text, "all {work:<7} {:>10} ms {share:>4.0} % of the bound", milliseconds(seconds));
    }
    let [peak, predicted] = [measured.peak_bytes, measured.predicted_bytes].map(human_bytes);
    let [graph, start] = [measured.graph_seconds, measured.start_seconds];
    let _ = writeln!(text, "memory {peak}, predicted {predicted} without the program");
    let _ = write!(text, "graph {graph:.2} s, all but rounds {start:.2} s");
    text
}

fn rounds(measured: &Measured) -> String {
    let mut text = format!(
        "{:<8} {:>7} {:>10} {:>10} {:>10} {:>10} {:>6}\n",
        "", "rounds", "best ms", "median ms", "worst ms", "bound ms", "ratio"
    );
    for (index, stage) in measured.stages.iter().enumerate() {
        let times = stage.times;
        let [best, median, worst, bound] =
            [times.best_seconds, times.median_seconds, stage.worst_seconds, stage.bound_seconds].map(milliseconds);
        let (name, rounds) = (format!("stage {index}"), times.repetitions);
        let _ = writeln!(
            text,
            "{name:<8} {rounds:>7} {best:>10} {median:>10} {worst:>10} {bound:>10} {:>6.2}",
            stage.ratio
        );
    }
    let [epoch, bound] = [measured.epoch_seconds, measured.bound_seconds].map(milliseconds);
    let _ = writeln!(text, "{:<8} {:>18} {epoch:>10} {:>10} {bound:>10} {:>6.2}", "epoch", "", "", measured.ratio);
    text
}

fn rates(measured: &Measured) -> String {
    let (copy, dense) = (&measured.rates.copy, &measured.rates.dense);
    let gathers = measured.rates.gather.iter();
    let gathers: Vec<String> =
        gathers.map(|line| format!("{} at width {}", giga(line.bytes_per_second), line.width)).collect();
    let gathers = if gathers.is_empty() { String::new() } else { format!(", random rows {}", gathers.join(", ")) };
    format!(
        "copy {} GB/s{gathers}, products {} Gflop/s ({} of {}x{})",
        giga(copy.bytes_per_second),
        giga(dense.flops_per_second),
        dense.what,
        dense.inputs,
        dense.outputs
    )
}

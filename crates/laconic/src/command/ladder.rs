//! The ladder of `messages = "auto"` in words.

use std::fmt::Write;

use laconic_train::auto::Ladder;

use crate::bytes::{figure, human_bytes};

/// The ladder as text: before a run, or after one.
pub fn describe(ladder: &Ladder) -> String {
    let Ladder { workers, metric, validation_nodes, link, rungs, left_out, .. } = ladder;
    let width = rungs.iter().map(|rung| rung.name.chars().count()).max().unwrap_or(0);
    let is_run = ladder.outcome.is_some();
    let (sent, value) = if is_run { ("sent", metric.as_str()) } else { ("", "") };
    let mut text = format!("{:<width$} {:>11} {sent:>11} {value:>9} {link:>18}", "way", "predicted");
    for rung in rungs {
        let most = if rung.is_bound { "≤ " } else { "" };
        let predicted = format!("{most}{}", human_bytes(rung.predicted));
        let sent = rung.sent.map(human_bytes).unwrap_or_default();
        let value = rung.sent.map(|_| figure(rung.validation)).unwrap_or_default();
        let (name, seconds) = (&rung.name, rung.seconds_on_link);
        let _ = write!(text, "\n{name:<width$} {predicted:>11} {sent:>11} {value:>9} {seconds:>16.1} s");
    }
    for rung in rungs {
        let _ = write!(text, "\nleaves: {}: {}", rung.name, rung.leaves.join(", "));
    }
    for left in left_out {
        let _ = write!(text, "\n{}", left.said());
    }
    let budget = ladder.budget.map(|bytes| format!(", {} are spent", human_bytes(bytes))).unwrap_or_default();
    let target = ladder.target.map(|target| format!(", one reaches {target}")).unwrap_or_default();
    let _ = match &ladder.outcome {
        Some(outcome) => {
            let (bytes, words) = (human_bytes(outcome.bytes), outcome.stopped.words());
            let chosen = &outcome.chosen;
            write!(text, "\n{} of {} were tried and sent {bytes}; {words}\nkept: {chosen}", outcome.tries, rungs.len())
        }
        None => write!(
            text,
            "\n{workers} workers; tried from the top until two in a row, or one before a way that would send more than \
             all before it, gain less than half a standard error of {metric} of {validation_nodes} validation \
             nodes{budget}{target}; all together {}",
            human_bytes(ladder.bytes)
        ),
    };
    text
}

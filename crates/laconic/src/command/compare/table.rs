//! The comparison as people read it.

use std::fmt::Write;

use super::outcome::{Comparison, Line, Spread};
use crate::bytes::human_bytes;

/// Letters of the widest name that is not cut off.
const NAME_MAX: usize = 40;

/// The comparison as a table.
pub fn table(comparison: &Comparison) -> String {
    let letters = comparison.methods.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let width = letters.clamp("method".len(), NAME_MAX);
    let metric = comparison.metric.as_deref().unwrap_or("test");
    let mut text = format!(
        "{:<width$} {:>5} {:>17} {:>11} {:>8} {:>10}  {:<5} {}\n",
        "method", "runs", metric, "sent", "fewer", "seconds", "bytes", "time"
    );
    for line in &comparison.methods {
        let _ = writeln!(text, "{}", row(line, width));
    }
    let time = match &comparison.link {
        Some(link) => format!("seconds on the clock of a model of the link {link}"),
        None => "real seconds".to_owned(),
    };
    let what = "no other method is at least as good in both and better in one";
    let _ = write!(text, "{metric} on test nodes, mean ± standard deviation over runs; {time}\n* front: {what}");
    text
}

fn row(line: &Line, width: usize) -> String {
    let name: String = line.name.chars().take(width).collect();
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let test = known(line.test.map(spread));
    let bytes = known(line.bytes.map(|bytes| human_bytes(bytes.round() as u64)));
    let fewer = known(line.fewer.map(|fewer| format!("{fewer:.1}x")));
    let seconds = known(line.seconds.map(|seconds| format!("{seconds:.2}")));
    let mark = |on_front: bool| if on_front { "*" } else { "" };
    let (front, front_time) = (mark(line.front), mark(line.front_by_seconds));
    let runs = line.runs.len();
    format!("{name:<width$} {runs:>5} {test:>17} {bytes:>11} {fewer:>8} {seconds:>10}  {front:<5} {front_time}")
        .trim_end()
        .to_owned()
}

fn spread(spread: Spread) -> String {
    match spread.sd {
        Some(sd) => format!("{:.4} ± {sd:.4}", spread.mean),
        None => format!("{:.4}", spread.mean),
    }
}

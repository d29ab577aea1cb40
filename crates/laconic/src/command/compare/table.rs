//! The comparison as people read it.

use std::fmt::Write;

use laconic_train::record::account::{LETTERS, TRIPS};

use super::account::{saw, trips};
use super::outcome::{Comparison, Line, Spread};
use crate::bytes::{human_bytes, plural};

/// Letters of the widest list of fronts.
const WHERE: usize = "bytes, time".len();
/// Letters of the widest name that is not cut off.
const NAME_MAX: usize = 40;

/// Columns that not every comparison has.
#[derive(Clone, Copy)]
struct Extra {
    skips: bool,
    trainers: bool,
    loss: bool,
    cuts: bool,
    whole: bool,
    account: bool,
}

/// The comparison as a table.
pub fn table(comparison: &Comparison) -> String {
    let letters = comparison.methods.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let width = letters.clamp("method".len(), NAME_MAX);
    let metric = comparison.metric.as_deref().unwrap_or("test");
    let any = |has: fn(&Line) -> bool| comparison.methods.iter().any(has);
    let extra = Extra {
        skips: any(|line| line.skipped.unwrap_or(0.0) > 0.0),
        trainers: any(|line| line.simulated_seconds.or(line.convergence_seconds).is_some()),
        loss: comparison.is_by_loss(),
        cuts: comparison.has_cuts(),
        // Runs of older programs have no account.
        whole: any(|line| line.whole_graph_at.is_some() && line.account.is_none()),
        account: any(|line| line.account.is_some()),
    };
    let mut text = format!("{:<width$} {:>4} {:>6} {metric:>15}", "method", "runs", "rounds");
    if extra.loss {
        let _ = write!(text, " {:>15}", "loss");
    }
    for column in ["boundary", "parameters", "evaluation", "start-up"] {
        let _ = write!(text, " {column:>10}");
    }
    if extra.skips {
        let _ = write!(text, " {:>7}", "skipped");
    }
    if extra.trainers {
        let _ = write!(text, " {:>9} {:>9}", "simulated", "converged");
    }
    let _ = write!(text, " {:>7}", "fewer");
    if extra.account {
        let _ = write!(text, " {:>5} {:>7}", "saw", "trips");
    }
    let _ = write!(text, " {:>9} {:>10} {:>11}", "seconds", "memory", "p");
    if extra.whole {
        let _ = write!(text, " {:>14}", "whole graph at");
    }
    let _ = write!(text, "  {:<WHERE$}", "front");
    let _ = writeln!(text, "{}", if extra.cuts { "  cut" } else { "" });
    text.truncate(text.trim_end().len());
    text.push('\n');
    for line in &comparison.methods {
        let _ = writeln!(text, "{}", row(line, width, extra).trim_end());
    }
    legend(comparison, extra, &mut text);
    text
}

/// What the columns mean, and notes.
fn legend(comparison: &Comparison, extra: Extra, text: &mut String) {
    let metric = comparison.metric.as_deref().unwrap_or("test");
    let time = match &comparison.link {
        Some(link) => format!("seconds on the clock of a model of the link {link}"),
        None => "real seconds".to_owned(),
    };
    let noun = comparison.task.words.noun;
    let _ = writeln!(text, "{metric} on test {noun}, mean ± standard deviation over runs; {time}");
    notes(comparison, text);
    if extra.trainers {
        let what = "seconds on the simulated clock of independent trainers";
        let _ = writeln!(text, "simulated: {what}; converged: when a mean first came within 1 % of the best worth");
    }
    if extra.account {
        let _ = writeln!(text, "saw: {LETTERS}\n{TRIPS}");
    }
    if extra.whole {
        let what = "the process that had to hold all parts; where that is an aggregator, its evaluations cost no bytes";
        let _ = writeln!(text, "whole graph at: {what}");
    }
    if let Some(said) = comparison.fallback() {
        let _ = writeln!(text, "note: {said}");
    }
    if let Some(line) = comparison.methods.first().filter(|_| !extra.cuts) {
        let _ = writeln!(text, "cut: {} of edges between parts", line.cut());
    } else {
        let _ = writeln!(text, "cut: parts, and the share of edges between them");
    }
    let _ = writeln!(text, "rounds: over all stages; of independent trainers, means");
    let often = "how often one looks, and in which codec, is train.eval_every and messages.evaluation";
    let _ = writeln!(text, "fewer: all but evaluation, against {}; {often}", comparison.baseline);
    let test =
        "permutation test (exact to 20 pairs) of differences with the same seeds, two-sided; six pairs are the fewest";
    let _ = writeln!(text, "p: {test}");
    if let Some(chance) = comparison.chance() {
        let _ = writeln!(text, "chance: {chance}");
    }
    let what = "no other method is at least as good in both and better in one";
    let judged = comparison.judged_by();
    let _ = write!(text, "front: of {judged} and bytes but for evaluation, or of {judged} and seconds: {what}");
}

/// What is to be said of single methods.
fn notes(comparison: &Comparison, text: &mut String) {
    for line in &comparison.methods {
        let resumed = line.runs.iter().filter(|run| run.starts > 1).count() as u64;
        if resumed > 0 {
            let (name, runs) = (&line.name, plural(resumed, "run"));
            let _ = writeln!(text, "note: {name}: {runs} stopped and went on; bytes are those of one start");
        }
        for note in &line.notes {
            let _ = writeln!(text, "note: {}: {note}", line.name);
        }
    }
}

fn row(line: &Line, width: usize, extra: Extra) -> String {
    let name: String = line.name.chars().take(width).collect();
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let bytes = |bytes: Option<f64>| known(bytes.map(|bytes| human_bytes(bytes.round() as u64)));
    let rounds = known(line.rounds.map(|rounds| format!("{rounds:.0}")));
    let mut text = format!("{name:<width$} {:>4} {rounds:>6} {:>15}", line.runs.len(), known(line.test.map(spread)));
    if extra.loss {
        let _ = write!(text, " {:>15}", known(line.loss.map(spread)));
    }
    for column in [line.boundary, line.parameters, line.evaluation, line.start_up] {
        let _ = write!(text, " {:>10}", bytes(column));
    }
    if extra.skips {
        let _ = write!(text, " {:>7}", known(line.skipped.map(|skipped| format!("{skipped:.0}"))));
    }
    if extra.trainers {
        for seconds in [line.simulated_seconds, line.convergence_seconds] {
            let _ = write!(text, " {:>9}", known(seconds.map(|seconds| format!("{seconds:.2}"))));
        }
    }
    let fewer = known(line.fewer.map(|fewer| format!("{fewer:.1}x")));
    let seconds = known(line.seconds.map(|seconds| format!("{seconds:.2}")));
    let fronts = [(line.front, "bytes"), (line.front_by_seconds, "time"), (line.is_constant, "chance")];
    let fronts: Vec<&str> = fronts.into_iter().filter(|(is_on, _)| *is_on).map(|(_, name)| name).collect();
    let _ = write!(text, " {fewer:>7}");
    if extra.account {
        let _ = write!(text, " {:>5} {:>7}", saw(line), line.account.as_ref().map_or("-".to_owned(), trips));
    }
    let _ = write!(text, " {seconds:>9} {:>10} {:>11}", bytes(line.memory), p(line));
    if extra.whole {
        let _ = write!(text, " {:>14}", line.whole_graph_at.as_deref().unwrap_or("nobody"));
    }
    let _ = write!(text, "  {:<WHERE$}", fronts.join(", "));
    if extra.cuts {
        let _ = write!(text, "  {}", line.cut());
    }
    text
}

fn spread(spread: Spread) -> String {
    match spread.sd {
        Some(sd) => format!("{:.4} ± {sd:.4}", spread.mean),
        None => format!("{:.4}", spread.mean),
    }
}

/// The outcome of a method's test in a few letters.
pub fn p(line: &Line) -> String {
    match &line.against {
        None => String::new(),
        Some(against) if against.is_too_small() => "n too small".to_owned(),
        Some(against) if against.p < 0.0005 => "< 0.001".to_owned(),
        Some(against) => format!("{:.3}", against.p),
    }
}

//! The end of a run in words.

use std::fmt::Write;
use std::path::Path;

use laconic_train::Summary;
use laconic_train::record::parts::Judged;
use laconic_train::record::summary::SecondsSummary;
use laconic_train::record::trainers::{AveragingSummary, TrainerSummary};

use crate::bytes::{figure, human_bytes, listed, plural};

/// Trainers with a line each, at most.
const TRAINERS_SAID: usize = 50;
/// Notes on trainers that are said, at most.
const NOTES_SAID: usize = 20;

/// The end of a run in a few lines.
pub fn describe(summary: &Summary, out: &Path) -> String {
    let mut text = String::new();
    let scores = &summary.metrics.scores;
    let round = if summary.averaging.is_some() { "mean" } else { "round" };
    let _ = writeln!(text, "best {round} {} of {}", summary.metrics.best_round, summary.rounds);
    for (split, figures) in ["train", "val", "test"].into_iter().zip(scores.splits()) {
        if !figures.is_empty() {
            let _ = writeln!(text, "  {split:<6} {}", listed(figures, scores.hits_pool.get(split).copied()));
        }
    }
    of_parts(&mut text, summary);
    let bytes = &summary.bytes;
    let _ = writeln!(text, "sent {} in {} frames, {}", human_bytes(bytes.total), bytes.frames, predicted(summary));
    for (kind, sent) in bytes.by_kind.iter().filter(|(_, sent)| **sent > 0) {
        let _ = writeln!(text, "  {kind:<22} {:>12}", human_bytes(*sent));
    }
    if bytes.skipped > 0 {
        let _ = writeln!(text, "  {} messages were left out (messages.skip)", bytes.skipped);
    }
    for note in &summary.notes {
        let _ = writeln!(text, "note: {note}");
    }
    if bytes.repeated > 0 {
        let (again, starts) = (human_bytes(bytes.repeated), bytes.starts.len());
        let _ = writeln!(text, "  {again} of it in rounds that were sent again: the run was started {starts} times");
    }
    if bytes.unlisted > 0 {
        let _ = writeln!(text, "  {} of it has no row in ledger.csv here", human_bytes(bytes.unlisted));
    }
    match &summary.averaging {
        Some(averaging) => of_trainers(&mut text, summary, averaging),
        None => of_workers(&mut text, &summary.seconds),
    }
    let memory = &summary.memory;
    let (peak, expected) = (human_bytes(memory.peak_bytes), human_bytes(memory.predicted_bytes));
    let _ = writeln!(text, "memory {peak}, predicted {expected} besides the program");
    let _ = writeln!(text, "parameters {} ({})", summary.parameters.count, summary.parameters.digest);
    let _ = write!(text, "written to {}", out.display());
    if summary.interrupted {
        let _ = write!(text, "\nstopped early; go on with: laconic resume {}", out.display());
    }
    text
}

/// How far single parts are apart, on test nodes, or validation nodes where none are tested.
fn of_parts(text: &mut String, summary: &Summary) {
    let Some(Judged { val, test }) = &summary.parts else { return };
    let (split, parts) = if test.count.iter().any(|count| *count > 0) { ("test", test) } else { ("val", val) };
    if parts.count.len() < 2 {
        return;
    }
    for (name, of) in parts.figures.iter().filter(|(name, _)| *name != "loss") {
        let Some(worst) = of.worst else { continue };
        let (mean, spread, least) = (figure(of.mean), figure(of.spread), figure(Some(worst.figure)));
        let _ = writeln!(
            text,
            "  parts  {split} {name}: mean {mean}, spread {spread}, worst {least} (part {})",
            summary.part_names.get(worst.part as usize).cloned().unwrap_or_else(|| worst.part.to_string())
        );
    }
}

/// What was predicted of the bytes, if anything was.
fn predicted(summary: &Summary) -> String {
    let bytes = &summary.bytes;
    match bytes.predicted {
        None => "which nobody could predict".to_owned(),
        Some(predicted) => {
            format!("predicted {}{}", if bytes.is_bound { "at most " } else { "" }, human_bytes(predicted))
        }
    }
}

/// Where the time of workers went that exchange rows.
fn of_workers(text: &mut String, seconds: &SecondsSummary) {
    let _ = writeln!(
        text,
        "{:.2} s; a round {:.4} s; compute {:.2} s, waiting {:.2} s, codec {:.2} s, evaluation {:.2} s",
        seconds.total, seconds.epoch_median, seconds.compute, seconds.waiting, seconds.codec, seconds.evaluation
    );
    if let Some(simulated) = seconds.simulated {
        let _ = writeln!(text, "{simulated:.2} s on the link model's clock");
    }
}

/// What independent trainers did, and why they ended.
fn of_trainers(text: &mut String, summary: &Summary, averaging: &AveragingSummary) {
    let head = ["trainer", "steps", "means", "working", "averaging", "stalled", "absent"];
    let [trainer, steps, means, shares @ ..] = head;
    let _ = write!(text, "{trainer:<9} {steps:>9} {means:>7}");
    shares.iter().for_each(|share| {
        let _ = write!(text, " {share:>9}");
    });
    for trainer in averaging.trainers.iter().take(TRAINERS_SAID) {
        let _ = write!(text, "\npart {:<4} {:>9} {:>7}", trainer.part, trainer.steps, trainer.means);
        for share in shares_of(trainer) {
            let _ = write!(text, " {share:>9}");
        }
    }
    let more = averaging.trainers.len().saturating_sub(TRAINERS_SAID);
    let _ = writeln!(text, "{}", if more > 0 { format!("\n{more} more in summary.json") } else { String::new() });
    for note in averaging.notes.iter().take(NOTES_SAID) {
        let _ = writeln!(text, "  {note}");
    }
    if let Some(more) = averaging.notes.len().checked_sub(NOTES_SAID + 1) {
        let _ = writeln!(text, "  {} more notes in summary.json", more + 1);
    }
    if let Some(part) = averaging.hosted_part {
        let _ = writeln!(text, "the trainer of part {part} lived in the aggregator's process");
    }
    let why = ending(&averaging.ending);
    let _ = writeln!(text, "{why}, with {}", plural(averaging.means.into(), "mean"));
    if let Some(seconds) = averaging.convergence_seconds {
        let _ = writeln!(text, "a mean came within 1 % of the best worth after {seconds:.2} s");
    }
    let real = summary.seconds.total;
    let _ = match summary.seconds.simulated {
        Some(simulated) => writeln!(text, "{simulated:.2} s on the simulated clock, {real:.2} s to play them"),
        None => writeln!(text, "{real:.2} s"),
    };
}

/// Why a run of trainers ended, in words.
pub fn ending(name: &str) -> String {
    match name {
        "limit" => "ended at schedule.limit".to_owned(),
        "patience" => "ended by train.patience".to_owned(),
        "stopped" => "stopped by the user".to_owned(),
        other => format!("ended by {other}"),
    }
}

/// The shares of its time that a trainer worked, averaged, stalled and was absent, in per cent; dashes where nobody
/// knows.
pub fn shares_of(trainer: &TrainerSummary) -> [String; 4] {
    let TrainerSummary { working_seconds, averaging_seconds, stalled_seconds, absent_seconds, .. } = trainer;
    let seconds = [working_seconds, averaging_seconds, stalled_seconds, absent_seconds];
    let total: f64 = seconds.into_iter().sum();
    seconds.map(|of| if total > 0.0 { format!("{:.1} %", 100.0 * of / total) } else { "-".to_owned() })
}

//! What independent trainers did: lanes, who took part in which mean, and what the means were worth.

use laconic_train::config::MeansEvaluator;
use laconic_train::record::trainers::AveragingSummary;

use super::curves;
use super::lanes::{DRAWN_MAX, NAMED_MAX, TRAINERS_MAX, of_all};
use super::run::Run;
use crate::bytes::{plural, separated};
use crate::command::ended::{ending, shares_of};
use crate::page::Page;
use crate::page::table::Table;
use crate::plot::{Lanes, NARROW, Span, Unit};

/// Notes on trainers that are said.
const NOTES_SAID: usize = 50;

/// Who is who among the workers of a run of trainers; nothing of other runs.
pub fn who(run: &Run) -> String {
    let Some(averaging) = &run.recorded.summary.averaging else { return String::new() };
    let named = averaging.trainers.iter().zip(1..).take(DRAWN_MAX);
    let named: Vec<String> = named.map(|(trainer, rank)| format!("{rank} that of part {}", trainer.part)).collect();
    let shared = averaging.hosted_part.map_or(String::new(), |part| {
        format!(" The trainer of part {part} lived in the aggregator's process, and the two sent each other nothing.")
    });
    let holds = match averaging.evaluator {
        MeansEvaluator::Aggregator => "held the whole graph and evaluated means on it",
        MeansEvaluator::Workers => "held no part: all workers evaluated means together",
    };
    format!("Worker 0 is the aggregator, which {holds}; the others are trainers: {}.{shared}", named.join(", "))
}

/// The section on trainers.
pub fn section(page: &mut Page, run: &Run, averaging: &AveragingSummary) {
    page.heading("Trainers");
    page.say(&outcome(averaging));
    page.table(&table(averaging));
    if let Some(doings) = run.doings.as_ref().filter(|doings| !doings.are_none()) {
        let lanes = doings.lanes();
        let seconds = lanes.seconds();
        page.figure(|width| lanes.svg(width, seconds));
    }
    if let Some(members) = members(run) {
        let means = members.seconds();
        page.figure(|width| members.svg(width, means));
    }
    let charts: Vec<_> = curves::of_means(run).iter().map(|chart| chart.svg(NARROW)).collect();
    page.panels(&charts, "");
    let mut notes = Page::default();
    averaging.notes.iter().take(NOTES_SAID).for_each(|note| notes.say(note));
    if let Some(more) = averaging.notes.len().checked_sub(NOTES_SAID).filter(|more| *more > 0) {
        notes.note(&format!("{} more are in summary.json.", separated(more as u64)));
    }
    if !averaging.notes.is_empty() {
        page.fold("Who was late, lost or came back", notes);
    }
}

/// How it ended, and when it had come near its best.
fn outcome(averaging: &AveragingSummary) -> String {
    let means = plural(averaging.means.into(), "mean");
    let converged = averaging.convergence_seconds.map_or(String::new(), |seconds| {
        format!(" A mean first came within 1 % of the best worth after {seconds:.2} s.")
    });
    format!("After {means} of the trainers' models the run {}.{converged}", ending(&averaging.ending))
}

fn table(averaging: &AveragingSummary) -> Table {
    let mut table =
        Table::new(&["trainer", "steps", "means", "working", "averaging", "stalled", "absent", "lost after"]);
    for trainer in averaging.trainers.iter().take(TRAINERS_MAX) {
        let lost: Vec<String> = trainer.lost.iter().take(3).map(|seconds| format!("{seconds:.1} s")).collect();
        let more = if trainer.lost.len() > 3 { ", …" } else { "" };
        let mut row = vec![format!("part {}", trainer.part), separated(trainer.steps), separated(trainer.means.into())];
        row.extend(shares_of(trainer));
        row.push(lost.join(", ") + more);
        table.rows.push(row);
    }
    table
}

/// Who took part in which mean.
fn members(run: &Run) -> Option<Lanes> {
    let members = &run.recorded.curves.members;
    let averaging = run.recorded.summary.averaging.as_ref()?;
    let shown = averaging.trainers.len().min(DRAWN_MAX);
    let parts: Vec<u32> = averaging.trainers.iter().take(shown).map(|trainer| trainer.part).collect();
    let mut spans = Vec::new();
    for (lane, part) in parts.iter().enumerate() {
        for (from, to) in members.get(part).into_iter().flatten() {
            let of = if from == to { format!("mean {from}") } else { format!("means {from} to {to}") };
            let seconds = (f64::from(*from) - 1.0, f64::from(*to));
            spans.push(Span { lane, phase: 0, seconds, name: format!("part {part}, {of}") });
        }
    }
    if spans.len() > NAMED_MAX {
        spans.iter_mut().for_each(|span| span.name.clear());
    }
    let lanes = Lanes {
        title: format!("Members of each mean{}", of_all(shown, averaging.trainers.len())),
        lanes: parts.iter().map(|part| format!("part {part}")).collect(),
        phases: vec!["took part".to_owned()],
        x: ("number of the mean".to_owned(), Unit::Plain),
        spans,
    };
    (!lanes.spans.is_empty()).then_some(lanes)
}

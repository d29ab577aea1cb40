//! What independent trainers did: lanes, who took part in which mean, and what the means were worth.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use laconic_train::TrainError;
use laconic_train::averaging::lane::{CSV_HEADER, Doing, Span as Done, bound};
use laconic_train::config::MeansEvaluator;
use laconic_train::record::trainers::AveragingSummary;

use super::curves;
use super::page::Page;
use super::run::Run;
use super::table::Table;
use crate::bytes::{plural, separated};
use crate::command::ended::{ending, shares_of};
use crate::plot::{Lanes, NARROW, Span, Unit};
use crate::recorded::read_lines;

/// Lanes that are read at most, and drawn.
const TRAINERS_MAX: usize = 1024;
const DRAWN_MAX: usize = 64;
/// Spans that are read at most.
const READ_MAX: usize = 1 << 22;
/// Spans of all lanes that are drawn, about; few enough say what they are when pointed at.
const SPANS_MAX: usize = 8000;
const NAMED_MAX: usize = 400;
/// Notes on trainers that are said.
const NOTES_SAID: usize = 50;

/// `lanes.csv`: spans by part.
pub struct Doings(BTreeMap<u32, Vec<Done>>);

impl Doings {
    /// Reads the file; `None` where there is none.
    ///
    /// # Errors
    /// If it is not what a run writes.
    pub fn read(path: &Path) -> Result<Option<Doings>, TrainError> {
        if !path.exists() {
            return Ok(None);
        }
        let (mut lanes, mut read) = (BTreeMap::<u32, Vec<Done>>::new(), 0usize);
        read_lines(path, &mut |number, line| {
            let wrong = |what: &str| Err(TrainError::file(path, format!("line {number}: expected {what}")));
            if number == 1 {
                return if line == CSV_HEADER { Ok(()) } else { wrong(CSV_HEADER) };
            }
            let Some((part, span)) = parse(line) else {
                return wrong(&format!("a span: {CSV_HEADER}, a doing of {}", Doing::ALL.map(Doing::name).join(", ")));
            };
            let lane = lanes.entry(part).or_default();
            if lane.last().is_some_and(|(_, _, to)| *to > span.1 + Duration::from_micros(2)) {
                return wrong("a span that begins where the one before ended, or later");
            }
            lane.push(span);
            read += 1;
            match (lanes.len() > TRAINERS_MAX, read > READ_MAX) {
                (true, _) => wrong(&format!("at most {TRAINERS_MAX} trainers")),
                (_, true) => wrong(&format!("at most {READ_MAX} spans")),
                _ => Ok(()),
            }
        })?;
        Ok(Some(Doings(lanes)))
    }

    /// As lanes, those of the first trainers where there are many.
    fn lanes(&self) -> Lanes {
        let shown = self.0.len().min(DRAWN_MAX);
        let mut all: Vec<(u32, Vec<Done>)> =
            self.0.iter().take(shown).map(|(part, spans)| (*part, spans.clone())).collect();
        all.iter_mut().for_each(|(_, spans)| bound(spans, SPANS_MAX / shown.max(1)));
        let named = all.iter().map(|(_, spans)| spans.len()).sum::<usize>() <= NAMED_MAX;
        let span = |lane: usize, part: u32, (doing, from, to): &Done| Span {
            lane,
            phase: *doing as usize,
            seconds: (from.as_secs_f64(), to.as_secs_f64()),
            name: if named { format!("part {part}, {}", doing.name()) } else { String::new() },
        };
        let spans = all.iter().enumerate().flat_map(|(lane, (part, spans))| {
            spans.iter().map(move |done| span(lane, *part, done)).collect::<Vec<Span>>()
        });
        Lanes {
            title: format!("What trainers did{}", of_all(shown, self.0.len())),
            spans: spans.collect(),
            lanes: all.iter().map(|(part, _)| format!("part {part}")).collect(),
            phases: Doing::ALL.map(Doing::name).to_vec(),
            x: ("seconds since trainers went".to_owned(), Unit::Seconds),
        }
    }
}

fn parse(line: &str) -> Option<(u32, Done)> {
    let fields: Vec<&str> = line.splitn(5, ',').collect();
    let [part, doing, from, to] = fields[..] else { return None };
    let seconds = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
    let (from, to) = (seconds(from)?, seconds(to)?);
    let doing = Doing::ALL.into_iter().find(|known| known.name() == doing)?;
    // Later than in a thousand years is no time.
    (from <= to && to.as_secs() < 1 << 35).then_some((part.parse().ok()?, (doing, from, to)))
}

fn of_all(shown: usize, all: usize) -> String {
    if shown < all { format!(", {shown} of {all}") } else { String::new() }
}

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
    if let Some(doings) = run.doings.as_ref().filter(|doings| !doings.0.is_empty()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_has_known_doings_and_ends_no_sooner_than_it_starts() {
        assert!(parse("0,working,0.5,0.75").is_some() && parse("7,absent,0,0").is_some());
        let wrong = ["", "0,sleeping,0,1", "0,working,1,0", "0,working,0,inf", "0,working,-1,0", "x,working,0,1"];
        for line in wrong.into_iter().chain(["0,working,0,1,2", "0,working,0,1e300", "0,working,NaN,1"]) {
            assert!(parse(line).is_none(), "{line}");
        }
    }
}

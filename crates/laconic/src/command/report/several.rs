//! The page about several runs, or a comparison: means first, then what each method comes to as points, then curves.

use super::curves::{self, Shown};
use super::means;
use super::run::Run;
use super::traffic;
use crate::bytes::{figure, human_bytes, separated};
use crate::command::compare::account::{self, SAW};
use crate::command::compare::figures::{self, Cost};
use crate::command::compare::outcome::{Comparison, Line};
use crate::page::Page;
use crate::page::table::Table;
use crate::plot::{Dots, Figure, NARROW, Row, Scale, Unit, key};
use crate::typed::command_line;

/// Methods up to which each has a panel.
const PANELS_MAX: usize = 24;
/// Spans of all timelines together.
const SPANS_MAX: usize = 4000;

/// The page about these runs and what they say together.
pub fn html(comparison: &Comparison, runs: &[Run]) -> String {
    let mut page = Page::default();
    page.say(&means::about(comparison, runs));
    if comparison.command.is_empty() {
        page.command("This page was made by", &command_line());
    } else {
        page.command("Compared by", &comparison.command);
    }
    page.table(&means::table(comparison));
    page.note(&means::legend(comparison));
    if let Some(table) = account::table(&comparison.methods) {
        page.heading("Who saw what");
        page.say(SAW);
        page.table(&table);
    }
    page.figure(|width| figures::points(comparison, Cost::Bytes).svg(width));
    page.figure(|width| figures::points(comparison, Cost::Seconds).svg(width));
    page.heading("What bytes are for");
    page.figure(|width| purposes(comparison).svg(width));
    learning(&mut page, comparison, runs);
    page.heading("Details");
    page.fold("Every run", every_run(comparison, runs));
    let first = |style: usize| runs.iter().find(|run| run.style == style);
    let methods = comparison.methods.iter().enumerate();
    let named = methods.filter_map(|(style, line)| Some((line.name.as_str(), first(style)?)));
    if let Some(widths) = traffic::by_width(named) {
        let mut piece = Page::default();
        piece.figure(|width| widths.svg(width));
        page.fold("Values of rows by their width, of the first run of each method", piece);
    }
    timelines(&mut page, comparison, runs);
    page.fold("What each method sets, and notes on it", settings(comparison));
    let first = &runs[0];
    let mut configuration = Page::default();
    configuration.text(&first.text);
    page.fold(&format!("Configuration of {}", first.name), configuration);
    page.finish(&means::title(comparison, runs))
}

/// Bytes of each method by what they are for.
fn purposes(comparison: &Comparison) -> Dots {
    let row = |line: &Line| Row {
        name: line.name.clone(),
        values: [line.boundary, line.parameters, line.evaluation, line.start_up].map(|b| b.unwrap_or(0.0)).to_vec(),
        said: human_bytes(line.bytes.unwrap_or(0.0).round() as u64),
    };
    Dots {
        title: "Bytes by what they are for".to_owned(),
        axis: "bytes of all workers, framing included, mean over runs; at the right their sum".to_owned(),
        unit: (Unit::Bytes, Scale::Log),
        kinds: ["boundary", "parameters", "evaluation", "start-up"].map(str::to_owned).to_vec(),
        rows: comparison.methods.iter().map(row).collect(),
    }
}

/// Curves: all methods in one figure, then a panel for each.
fn learning(page: &mut Page, comparison: &Comparison, runs: &[Run]) {
    let recorded: Vec<(usize, &_)> = runs.iter().map(|run| (run.style, &run.recorded)).collect();
    page.heading("Learning");
    let together = figures::curves(comparison, &recorded);
    page.figure(|width| together.svg(width));
    if comparison.methods.len() > PANELS_MAX {
        page.note(&format!("More than {PANELS_MAX} methods: no panel for each."));
        return;
    }
    let drawn =
        |shown| curves::panels(comparison, runs, shown).iter().map(|chart| chart.svg(NARROW)).collect::<Vec<Figure>>();
    let said = |runs: &[Run]| {
        let several =
            if runs.len() > comparison.methods.len() { "Thin: single runs, strong: their mean. " } else { "" };
        let staged = runs.iter().any(|run| !run.recorded.curves.stages.is_empty());
        let stages = if staged {
            "Dotted lines: a stage of lazy training starts, with a layer that has learned nothing yet, so the drop is \
             no failure."
        } else {
            ""
        };
        format!("{several}{stages}")
    };
    page.panels(&drawn(Shown::Validation), said(runs).trim());
    let mut piece = Page::default();
    piece.panels(&drawn(Shown::Loss), "");
    page.fold("Training loss", piece);
}

/// A table with every run.
fn every_run(comparison: &Comparison, runs: &[Run]) -> Page {
    let metric = comparison.metric.as_deref().unwrap_or("metric");
    let head = ["run", metric, "sent", "bytes", "against prediction", "best round", "rounds", "seconds", "memory"];
    let mut table = Table::new(&head);
    for run in runs {
        let summary = &run.recorded.summary;
        let bytes = &summary.bytes;
        let rounds = separated(summary.rounds.into());
        table.keys.push(key(run.style));
        table.rows.push(vec![
            run.name.clone(),
            figure(run.recorded.test()),
            match bytes.starts.len() {
                0 | 1 => human_bytes(bytes.total),
                starts => format!("{}, in {starts} starts", human_bytes(bytes.total)),
            },
            separated(bytes.total),
            bytes.predicted.map_or("-".to_owned(), |predicted| traffic::difference(predicted, bytes.total)),
            separated(summary.metrics.best_round.into()),
            if summary.interrupted { format!("{rounds}, interrupted") } else { rounds },
            format!("{:.2}", run.recorded.seconds(comparison.link.is_some())),
            human_bytes(summary.memory.peak_bytes),
        ]);
    }
    let mut piece = Page::default();
    piece.table(&table);
    piece
}

/// One round of the first run of each method, on a common axis.
fn timelines(page: &mut Page, comparison: &Comparison, runs: &[Run]) {
    let methods = comparison.methods.iter().enumerate();
    let first = |style: usize| runs.iter().filter(move |run| run.style == style).find_map(|run| run.timeline.as_ref());
    let most = SPANS_MAX / comparison.methods.len().max(1);
    let lanes: Vec<_> = methods
        .filter_map(|(style, line)| Some(first(style)?.lanes(&line.name, most, false)))
        .take(PANELS_MAX)
        .collect();
    let seconds = lanes.iter().map(|lanes| lanes.seconds()).fold(0.0, f64::max);
    let figures: Vec<Figure> = lanes.iter().map(|lanes| lanes.svg(NARROW, seconds)).collect();
    if !figures.is_empty() {
        let mut piece = Page::default();
        piece.panels(&figures, "All axes are equally long.");
        page.fold("One round of each method", piece);
    }
}

/// What each method changes.
fn settings(comparison: &Comparison) -> Page {
    let mut piece = Page::default();
    for line in &comparison.methods {
        piece.say(&line.name);
        piece.text(&if line.set.is_empty() { "nothing".to_owned() } else { line.set.join("\n") });
        line.notes.iter().for_each(|note| piece.note(&format!("Note: {note}")));
    }
    piece
}

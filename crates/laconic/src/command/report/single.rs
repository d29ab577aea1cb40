//! The page about one run: what it did in words, what left whom, how it learned.

use std::collections::BTreeSet;

use super::run::Run;
use super::{apart, curves, traffic, trainers, words};
use crate::bytes::{figure, human_bytes, separated};
use crate::command::compare::account::{SAW, of_run};
use crate::page::Page;
use crate::page::table::Table;
use crate::plot::{NARROW, WIDE};
use crate::typed::command_line;

/// Spans of a timeline that are drawn.
const SPANS_MAX: usize = 4000;

/// The page about this run.
pub fn html(run: &Run) -> String {
    let mut page = Page::default();
    for paragraph in words::paragraphs(run) {
        page.say(&paragraph);
    }
    page.command("This page was made by", &command_line());
    page.table(&figures(run));
    page.table(&costs(run));
    if let Some(averaging) = &run.recorded.summary.averaging {
        trainers::section(&mut page, run, averaging);
    }
    page.heading("What left which worker");
    page.say("Every frame that left a worker is in the ledger; this is its sum, framing included.");
    page.say(&trainers::who(run));
    page.table(&traffic::left(run));
    if let Some(account) = &run.recorded.summary.account {
        page.say(SAW);
        page.table(&of_run(account));
    }
    match traffic::by_link(run) {
        Ok(grid) => page.panels(&[grid, traffic::by_content(run).svg(NARROW)], ""),
        Err(table) => {
            page.table(&table);
            page.figure(|width| traffic::by_content(run).svg(width));
        }
    }
    let charts: Vec<_> = curves::of_one(run).iter().map(|chart| chart.svg(NARROW)).collect();
    if !charts.is_empty() {
        page.heading("Learning");
        let has_stages = !run.recorded.curves.stages.is_empty();
        let said = "Dotted lines: a stage starts, with new layers that have learned nothing yet.";
        page.panels(&charts, if has_stages { said } else { "" });
    }
    apart::sections(&mut page, run);
    page.heading("Predicted and sent");
    page.say("The prediction was made before the first round.");
    page.table(&traffic::prediction(run));
    page.heading("By layer and direction");
    let layers = run.ledger.dots(run.config().as_ref());
    page.figure(|width| layers.svg(width));
    if let Some(widths) = traffic::by_width([(run.name.as_str(), run)].into_iter()) {
        page.figure(|width| widths.svg(width));
    }
    if let Some(timeline) = &run.timeline {
        page.heading("One round");
        let lanes = timeline.lanes(&run.name, SPANS_MAX, true);
        let seconds = lanes.seconds();
        page.figure(|width| lanes.svg(if width < WIDE { NARROW } else { WIDE }, seconds));
    }
    let mut configuration = Page::default();
    let summary = &run.recorded.summary;
    configuration.say(&format!("parameters {}, data {}", summary.parameters.digest, summary.data_digest));
    configuration.text(&run.text);
    page.heading("Configuration");
    page.fold("Every key that was read", configuration);
    page.finish(&format!("{}: {}", run.dataset(), run.name))
}

/// Every figure of the best round, a row for each.
fn figures(run: &Run) -> Table {
    let scores = &run.recorded.summary.metrics.scores;
    let sets = scores.splits();
    let names: BTreeSet<&String> = sets.iter().flat_map(|set| set.keys()).collect();
    let mut table = Table::new(&["best round", "training", "validation", "test"]);
    for name in names {
        let figures = sets.iter().map(|set| figure(set.get(name).copied().flatten()));
        table.rows.push(std::iter::once(name.clone()).chain(figures).collect());
    }
    table
}

/// What the run took.
fn costs(run: &Run) -> Table {
    let summary = &run.recorded.summary;
    let seconds = &summary.seconds;
    let mut table = Table::new(&["it took", ""]);
    let mut row = |name: &str, said: String| table.rows.push(vec![name.to_owned(), said]);
    row("bytes", human_bytes(summary.bytes.total));
    row("frames", separated(summary.bytes.frames));
    match seconds.simulated {
        Some(simulated) => {
            row(
                if summary.averaging.is_some() {
                    "seconds on the simulated clock"
                } else {
                    "seconds on the link's clock"
                },
                format!("{simulated:.2}"),
            );
            row("real seconds", format!("{:.2}", seconds.total));
        }
        None => {
            row("seconds", format!("{:.2}", seconds.total));
            if summary.averaging.is_none() {
                row("of them waiting for others", format!("{:.2}", seconds.waiting));
            }
        }
    }
    row("memory of the process at most", human_bytes(summary.memory.peak_bytes));
    row("parameters", separated(summary.parameters.count));
    table
}

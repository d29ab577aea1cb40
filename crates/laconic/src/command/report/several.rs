//! The page about several runs, or a comparison: means first, then what each method comes to as points, then curves.

use super::curves::{self, Shown};
use super::page::Page;
use super::run::Run;
use super::table::Table;
use super::traffic;
use crate::bytes::{human_bytes, separated};
use crate::command::compare::figures::{self, Cost};
use crate::command::compare::outcome::{Comparison, Line, Spread};
use crate::plot::{Dots, Figure, NARROW, Row, Scale, Unit, key};
use crate::typed::command_line;

/// Methods up to which each has a panel.
const PANELS_MAX: usize = 24;
/// Spans of all timelines together.
const SPANS_MAX: usize = 4000;

/// The page about these runs and what they say together.
pub fn html(comparison: &Comparison, runs: &[Run]) -> String {
    let mut page = Page::default();
    page.say(&about(comparison, runs));
    if comparison.command.is_empty() {
        page.command("This page was made by", &command_line());
    } else {
        page.command("Compared by", &comparison.command);
    }
    page.table(&means(comparison));
    page.note(&legend(comparison));
    for line in &comparison.methods {
        line.notes.iter().for_each(|note| page.note(&format!("{}: {note}", line.name)));
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
    page.fold("What each method sets", settings(comparison));
    let first = &runs[0];
    let mut configuration = Page::default();
    configuration.text(&first.text);
    page.fold(&format!("Configuration of {}", first.name), configuration);
    page.finish(&title(comparison, runs))
}

/// Data, partition, and how much is compared.
fn title(comparison: &Comparison, runs: &[Run]) -> String {
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    format!(
        "{} in {}: {}, {}",
        comparison.graph.dataset,
        partitions(runs),
        counted(comparison.methods.len(), "method"),
        counted(seeds(runs).len(), "seed")
    )
}

fn partitions(runs: &[Run]) -> String {
    let mut partitions: Vec<String> = runs.iter().map(Run::partition).collect();
    partitions.dedup();
    partitions.join(" and ")
}

fn seeds(runs: &[Run]) -> Vec<u64> {
    let mut seeds: Vec<u64> = runs.iter().map(|run| run.recorded.summary.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    seeds
}

/// Data, partition, seeds, link and version in a sentence.
fn about(comparison: &Comparison, runs: &[Run]) -> String {
    let seeds: Vec<String> = seeds(runs).iter().map(u64::to_string).collect();
    let graph = &comparison.graph;
    let size = if graph.nodes == 0 {
        String::new()
    } else {
        format!(" ({} nodes, {} edges)", separated(graph.nodes), separated(graph.edges))
    };
    let clock = match &comparison.link {
        Some(link) => format!("seconds are those of a model of the link {link}"),
        None => "seconds are real".to_owned(),
    };
    let (plural, metric) = (if seeds.len() == 1 { "seed" } else { "seeds" }, comparison.metric.as_deref());
    format!(
        "Data {}{size}, {}; {plural} {}; {} of the round that validation chose; {clock}; laconic {}.",
        graph.dataset,
        partitions(runs),
        seeds.join(", "),
        metric.unwrap_or("nothing was tested, so no metric"),
        comparison.version
    )
}

/// The table that the page opens with, what matters most at its left.
fn means(comparison: &Comparison) -> Table {
    let metric = comparison.metric.as_deref().unwrap_or("metric");
    let mut table = Table::new(&["method", metric, "training", "fewer", "front", "boundary", "parameters", "start-up"]);
    table.head.extend(["evaluation", "seconds", "memory", "runs"].map(str::to_owned));
    let skips = comparison.methods.iter().any(|line| line.skipped.unwrap_or(0.0) > 0.0);
    if skips {
        table.head.push("skipped".to_owned());
    }
    for (style, line) in comparison.methods.iter().enumerate() {
        table.keys.push(key(style));
        table.rows.push(mean(line, skips));
    }
    table
}

/// A row of that table.
fn mean(line: &Line, skips: bool) -> Vec<String> {
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let bytes = |bytes: Option<f64>| known(bytes.map(|bytes| human_bytes(bytes.round() as u64)));
    let fronts = [(line.front, "bytes"), (line.front_by_seconds, "time")];
    let fronts: Vec<&str> = fronts.into_iter().filter(|(is_on, _)| *is_on).map(|(_, name)| name).collect();
    let mut row = vec![
        line.name.clone(),
        known(line.test.map(|test| spread(test, 4))),
        bytes(line.training),
        known(line.fewer.map(|fewer| format!("{fewer:.1}x"))),
        fronts.join(", "),
    ];
    row.extend([line.boundary, line.parameters, line.start_up, line.evaluation].map(bytes));
    row.push(known(line.seconds.map(|seconds| format!("{seconds:.2}"))));
    row.push(bytes(line.memory));
    row.push(line.runs.len().to_string());
    if skips {
        row.push(known(line.skipped.map(|skipped| separated(skipped.round() as u64))));
    }
    row
}

fn spread(spread: Spread, places: usize) -> String {
    match spread.sd {
        Some(sd) => format!("{:.places$} ± {sd:.places$}", spread.mean),
        None => format!("{:.places$}", spread.mean),
    }
}

/// What the columns mean.
fn legend(comparison: &Comparison) -> String {
    let first = comparison.methods.first().map_or("", |line| line.name.as_str());
    let metric = comparison.metric.as_deref().unwrap_or("metric");
    format!(
        "Means over runs ± one standard deviation. Training: all bytes but those of evaluations, that is boundary \
         (rows of neighbours and their gradients), parameters (their gradients, or models) and start-up. Fewer: \
         times fewer of them than {first}. Front: no other method is at least as good in {metric} and in these \
         bytes, or in {metric} and in time, and better in one."
    )
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
            run.recorded.test().map_or("-".to_owned(), |test| format!("{test:.4}")),
            human_bytes(bytes.total),
            separated(bytes.total),
            traffic::difference(bytes.predicted, bytes.total),
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
    }
    piece
}

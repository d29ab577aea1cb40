//! Who sent what to whom, how wide, and how that compares with the prediction.

use std::collections::BTreeMap;

use laconic_train::Summary;
use laconic_train::record::traffic::LinkBytes;
use laconic_wire::{Kind, Rank};

use super::contents::content;
use super::run::Run;
use crate::bytes::{human_bytes, separated};
use crate::page::table::Table;
use crate::plot::{Dots, Figure, Grid, NARROW, Row, Scale, Unit};

/// Workers up to which links are a grid; of more the busiest links are listed.
const GRID_MAX: u32 = 32;
/// Links that are listed then.
const LINKS_LISTED: usize = 20;
/// Workers up to which each of them has a column.
const COLUMNS_MAX: u32 = 8;

/// What left each worker, in words, and to whom it went.
pub fn left(run: &Run) -> Table {
    let config = run.config();
    // Of all starts.
    let workers = workers_of(&run.recorded.summary);
    let columns = if workers <= COLUMNS_MAX { workers } else { 0 };
    let mut table = Table::new(&["worker", "what left it", "bytes"]);
    table.words = 2;
    table.head.extend((0..columns).map(|to| format!("to {}", run.worker(to))));
    for ((from, kind), receivers) in run.ledger.sent() {
        let to = |to: u32| receivers.get(&Rank(to)).map_or(String::new(), |bytes| human_bytes(*bytes));
        let all: u64 = receivers.values().sum();
        let mut row = vec![run.worker(from.0), content(*kind, config.as_ref()), human_bytes(all)];
        row.extend((0..columns).map(to));
        table.rows.push(row);
    }
    table
}

/// Bytes by what they hold, of one run.
pub fn by_content(run: &Run) -> Dots {
    let config = run.config();
    let kinds = &run.recorded.summary.bytes.by_kind;
    let row = |kind: &Kind| {
        let bytes = kinds.get(kind.name()).copied().filter(|bytes| *bytes > 0)?;
        let name = content(*kind, config.as_ref());
        Some(Row { name, values: vec![bytes as f64], said: human_bytes(bytes) })
    };
    Dots {
        title: "Bytes by what they hold".to_owned(),
        axis: "bytes of all workers, framing included".to_owned(),
        unit: (Unit::Bytes, Scale::Log),
        kinds: vec!["bytes".to_owned()],
        rows: Kind::ALL.iter().filter_map(row).collect(),
    }
}

/// The shares of values sent in each width of bits; `None` where all have the usual 32.
pub fn by_width<'a>(runs: impl Iterator<Item = (&'a str, &'a Run)> + Clone) -> Option<Dots> {
    let shares =
        |run: &'a Run| run.recorded.summary.bits.iter().filter(|(_, share)| share.is_finite() && **share > 0.0);
    let mut widths: Vec<&String> = runs.clone().flat_map(|(_, run)| shares(run)).map(|(width, _)| width).collect();
    // Numbers in order of size, then anything else by name.
    widths.sort_by_key(|width| (width.parse::<u64>().unwrap_or(u64::MAX), (*width).clone()));
    widths.dedup();
    if widths.iter().all(|width| *width == "32") {
        return None;
    }
    let row = |(name, run): (&str, &Run)| {
        let share = |width: &&String| run.recorded.summary.bits.get(*width).copied().filter(|share| share.is_finite());
        let values: Vec<f64> = widths.iter().map(|width| share(width).unwrap_or(0.0)).collect();
        let bits = |(width, share): (&&String, &f64)| Some(width.parse::<f64>().ok()? * share);
        let mean: f64 = widths.iter().zip(&values).filter_map(bits).sum();
        Row { name: name.to_owned(), values, said: format!("{mean:.1} bits") }
    };
    Some(Dots {
        title: "Values of rows by their width".to_owned(),
        axis: "share of the values of rows that were sent; beside it their mean width".to_owned(),
        unit: (Unit::Share, Scale::Linear),
        kinds: widths.iter().map(|width| format!("{width} bits")).collect(),
        rows: runs.map(row).collect(),
    })
}

/// Predicted against sent bytes of one run, by what they hold where the run says so.
pub fn prediction(run: &Run) -> Table {
    let bytes = &run.recorded.summary.bytes;
    let config = run.config();
    let mut table = Table::new(&["what", "predicted", "sent", "difference"]);
    match bytes.predicted {
        Some(predicted) => table.rows.push(compared("all", predicted, bytes.total)),
        None => table.rows.push(vec!["all".to_owned(), "-".to_owned(), separated(bytes.total), "-".to_owned()]),
    }
    for kind in Kind::ALL {
        let of = |sums: &BTreeMap<String, u64>| sums.get(kind.name()).copied().unwrap_or(0);
        let (predicted, sent) = (of(&bytes.predicted_by_kind), of(&bytes.by_kind));
        if !bytes.predicted_by_kind.is_empty() && (predicted > 0 || sent > 0) {
            table.rows.push(compared(&content(kind, config.as_ref()), predicted, sent));
        }
    }
    if bytes.repeated > 0 {
        let said = format!("sent again, in {} starts", bytes.starts.len());
        let with = "predicted with what was sent before".to_owned();
        table.rows.push(vec![said, String::new(), separated(bytes.repeated), with]);
    }
    table
}

/// A row of predicted and sent bytes with their difference.
fn compared(what: &str, predicted: u64, sent: u64) -> Vec<String> {
    vec![what.to_owned(), separated(predicted), separated(sent), difference(predicted, sent)]
}

/// How far what was sent is from what was predicted.
pub fn difference(predicted: u64, sent: u64) -> String {
    let by = predicted.abs_diff(sent);
    if by == 0 {
        return "none".to_owned();
    }
    let sign = if sent < predicted { "-" } else { "+" };
    let share = if predicted > 0 { 100.0 * by as f64 / predicted as f64 } else { 0.0 };
    format!("{sign}{} ({sign}{share:.2} %)", separated(by))
}

/// Bytes by link of one run: a grid, or the busiest links as a table.
pub fn by_link(run: &Run) -> Result<Figure, Table> {
    let summary = &run.recorded.summary;
    let links = &summary.bytes.by_link;
    let workers = workers_of(summary);
    if workers > GRID_MAX {
        return Err(busiest(links));
    }
    let mut sums: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for link in links {
        *sums.entry((link.from, link.to)).or_default() += link.bytes as f64;
    }
    let cell = |from: u32, to: u32| sums.get(&(from, to)).copied().unwrap_or(0.0);
    let grid = Grid {
        title: "Bytes by link".to_owned(),
        sides: ("from worker".to_owned(), "to worker".to_owned()),
        unit: Unit::Bytes,
        values: (0..workers).map(|from| (0..workers).map(|to| cell(from, to)).collect()).collect(),
    };
    Ok(grid.svg(NARROW))
}

/// How many workers a run has had in any of its starts.
fn workers_of(summary: &Summary) -> u32 {
    let of_links = summary.bytes.by_link.iter().map(|link| link.from.max(link.to).saturating_add(1));
    of_links.fold(summary.workers, u32::max)
}

fn busiest(links: &[LinkBytes]) -> Table {
    let mut links: Vec<&LinkBytes> = links.iter().collect();
    links.sort_by_key(|link| std::cmp::Reverse(link.bytes));
    let mut table = Table::new(&["from worker", "to worker", "frames", "bytes (busiest links)"]);
    let row = |link: &&LinkBytes| {
        vec![link.from.to_string(), link.to.to_string(), separated(link.frames), human_bytes(link.bytes)]
    };
    table.rows = links.iter().take(LINKS_LISTED).map(row).collect();
    table
}

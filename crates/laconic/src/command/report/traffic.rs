//! Who sent what to whom, of which kind, how wide, and how that compares with the prediction.

use std::collections::BTreeMap;

use laconic_train::record::traffic::LinkBytes;
use laconic_wire::Kind;

use super::run::Run;
use super::table::table;
use crate::bytes::human_bytes;
use crate::plot::{Bar, Bars, Grid, Unit};

/// Workers up to which links are a grid; of more the busiest links are listed.
const GRID_MAX: u32 = 32;
/// Links that are listed then.
const LINKS_LISTED: usize = 20;

/// Bytes by kind: a stacked bar for each run.
pub fn by_kind(runs: &[Run]) -> String {
    let bar = |run: &Run| {
        let kinds = &run.recorded.summary.bytes.by_kind;
        let values = Kind::ALL.iter().map(|kind| kinds.get(kind.name()).copied().unwrap_or(0) as f64);
        Bar { name: run.name.clone(), values: values.collect() }
    };
    let segments = Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect();
    let title = "Bytes by kind, all workers, framing included".to_owned();
    Bars { title, unit: Unit::Bytes, segments, bars: runs.iter().map(bar).collect() }.svg()
}

/// The shares of values sent in each width of bits; nothing where no run knows them.
pub fn by_width(runs: &[Run]) -> String {
    let all = runs.iter().flat_map(|run| run.recorded.summary.bits.keys());
    let mut widths: Vec<&String> = all.collect();
    // Numbers in order of size, then anything else by name.
    widths.sort_by_key(|width| (width.parse::<u64>().unwrap_or(u64::MAX), (*width).clone()));
    widths.dedup();
    if widths.is_empty() {
        return String::new();
    }
    let bar = |run: &Run| {
        let share = |width: &&String| run.recorded.summary.bits.get(*width).copied().unwrap_or(0.0);
        let values = widths.iter().map(share).map(|share| if share.is_finite() { share } else { 0.0 });
        Bar { name: run.name.clone(), values: values.collect() }
    };
    let segments = widths.iter().map(|width| format!("{width} bits")).collect();
    let title = "Values sent, by their width".to_owned();
    Bars { title, unit: Unit::Share, segments, bars: runs.iter().map(bar).collect() }.svg()
}

/// Predicted against measured bytes, by kind where the run says so.
pub fn prediction(runs: &[Run]) -> String {
    let mut rows = Vec::new();
    for run in runs {
        let bytes = &run.recorded.summary.bytes;
        rows.push(row(&run.name, "all", bytes.predicted, bytes.total));
        for (kind, predicted) in &bytes.predicted_by_kind {
            let sent = bytes.by_kind.get(kind).copied().unwrap_or(0);
            if *predicted > 0 || sent > 0 {
                rows.push(row("", kind, *predicted, sent));
            }
        }
        if bytes.repeated > 0 {
            let said = "predicted with what was sent before".to_owned();
            let sent_again = format!("sent again, in {} starts", bytes.starts.len());
            rows.push(vec![String::new(), sent_again, String::new(), bytes.repeated.to_string(), said]);
        }
    }
    table(&["run", "kind", "predicted bytes", "sent bytes", "difference"], &rows)
}

fn row(run: &str, kind: &str, predicted: u64, sent: u64) -> Vec<String> {
    let difference = i128::from(sent) - i128::from(predicted);
    let share = if predicted > 0 { 100.0 * difference as f64 / predicted as f64 } else { 0.0 };
    let difference = if difference == 0 { "none".to_owned() } else { format!("{difference:+} ({share:+.2} %)") };
    vec![run.to_owned(), kind.to_owned(), predicted.to_string(), sent.to_string(), difference]
}

/// Bytes by link of one run.
pub fn by_link(run: &Run) -> String {
    let summary = &run.recorded.summary;
    let links = &summary.bytes.by_link;
    let workers = summary.workers;
    if links.iter().any(|link| link.from >= workers || link.to >= workers) || workers > GRID_MAX {
        return busiest(links);
    }
    let mut sums: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for link in links {
        *sums.entry((link.from, link.to)).or_default() += link.bytes as f64;
    }
    let cell = |from: u32, to: u32| sums.get(&(from, to)).copied().unwrap_or(0.0);
    Grid {
        title: format!("{}: bytes by link", run.name),
        sides: ("from worker".to_owned(), "to worker".to_owned()),
        unit: Unit::Bytes,
        values: (0..workers).map(|from| (0..workers).map(|to| cell(from, to)).collect()).collect(),
    }
    .svg()
}

fn busiest(links: &[LinkBytes]) -> String {
    let mut links: Vec<&LinkBytes> = links.iter().collect();
    links.sort_by_key(|link| std::cmp::Reverse(link.bytes));
    let row = |link: &&LinkBytes| {
        vec![link.from.to_string(), link.to.to_string(), link.frames.to_string(), human_bytes(link.bytes)]
    };
    let rows: Vec<Vec<String>> = links.iter().take(LINKS_LISTED).map(row).collect();
    table(&["from worker", "to worker", "frames", "bytes (busiest links)"], &rows)
}

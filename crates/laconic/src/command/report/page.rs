//! The page: sections in order. Only this file, `table.rs` and `plot` write markup.

use std::fmt::Write;

use super::run::Run;
use super::table::table;
use super::{curves, traffic};
use crate::bytes::human_bytes;
use crate::plot::escape;

const STYLE: &str = "\
body{font-family:system-ui,sans-serif;color:#222;background:#fff;max-width:62rem;margin:2rem auto;padding:0 1rem;\
line-height:1.45}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid #ddd;padding-bottom:.2rem}
svg{max-width:100%;height:auto;display:block;margin:.6rem 0}
table{border-collapse:collapse;font-size:.85rem;margin:.6rem 0}
td,th{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #e4e4e4}
td:first-child,th:first-child{text-align:left}
pre{background:#f6f6f6;padding:.8rem;overflow:auto;font-size:.8rem}
details{margin:.4rem 0}summary{cursor:pointer}
.scroll{overflow-x:auto}p{max-width:48rem}";

/// The whole page.
pub fn html(runs: &[Run]) -> String {
    let title = match runs {
        [run] => format!("Run {}", run.name),
        _ => format!("{} runs", runs.len()),
    };
    let title = escape(&title);
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head>\n\
         <body>\n<h1>{title}</h1>\n"
    );
    html += &overview(runs);
    section(&mut html, "Learning", "", &curves::charts(runs));
    section(&mut html, "Bytes by kind", "", &traffic::by_kind(runs));
    section(&mut html, "Widths of values", "", &traffic::by_width(runs));
    let said = "The prediction was made before the first round.";
    section(&mut html, "Predicted and sent", said, &traffic::prediction(runs));
    let said = "Kinds that belong to no layer are counted under layer 0.";
    let layers = each(runs, |run| run.ledger.svg(&format!("{}: bytes by layer and direction", run.name)));
    section(&mut html, "By layer and direction", said, &layers);
    section(&mut html, "By link", "", &each(runs, traffic::by_link));
    let drawn = |run: &Run| run.timeline.as_ref().map(|timeline| timeline.svg(&run.name)).unwrap_or_default();
    section(&mut html, "Timeline of one round", "", &each(runs, drawn));
    section(&mut html, "Configuration", "", &each(runs, configuration));
    html + "</body></html>\n"
}

/// A section; none where there is nothing to show.
fn section(html: &mut String, title: &str, said: &str, body: &str) {
    if body.is_empty() {
        return;
    }
    let _ = writeln!(html, "<h2>{}</h2>", escape(title));
    if !said.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", escape(said));
    }
    *html += body;
}

fn each(runs: &[Run], piece: impl Fn(&Run) -> String) -> String {
    runs.iter().map(piece).collect()
}

fn overview(runs: &[Run]) -> String {
    let row = |run: &Run| {
        let summary = &run.recorded.summary;
        let text = |section: &str, key: &str| summary.config[section][key].as_str().unwrap_or("-").to_owned();
        let metric = run.recorded.metric.as_deref().unwrap_or("-");
        let test = run.recorded.test().map_or("-".to_owned(), |test| format!("{metric} {test:.4}"));
        let seconds = match summary.seconds.simulated {
            Some(simulated) => format!("{simulated:.2} s on the link's clock"),
            None => format!("{:.2} s", summary.seconds.total),
        };
        let rounds = format!("{} of {}", summary.metrics.best_round, summary.rounds);
        let rounds = if summary.interrupted { format!("{rounds}, interrupted") } else { rounds };
        vec![
            run.name.clone(),
            text("model", "arch"),
            text("schedule", "kind"),
            summary.workers.to_string(),
            rounds,
            test,
            human_bytes(summary.bytes.total),
            seconds,
            human_bytes(summary.memory.peak_bytes),
        ]
    };
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    let head = ["run", "model", "schedule", "workers", "best round", "test", "sent", "time", "memory"];
    table(&head, &rows)
}

/// The configuration as the run resolved it, folded away.
fn configuration(run: &Run) -> String {
    let summary = &run.recorded.summary;
    let name = escape(&run.name);
    let (version, digest) = (escape(&summary.version), escape(&summary.parameters.digest));
    let config = escape(run.config.trim_end());
    format!(
        "<details><summary>{name}</summary>\n<p>laconic {version}, seed {}, parameters {digest}</p>\n\
         <pre>{config}</pre></details>\n",
        summary.seed
    )
}

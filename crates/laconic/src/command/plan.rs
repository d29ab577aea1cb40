//! `laconic plan`: bytes, memory and time before anything runs.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use laconic_train::Members;
use laconic_train::config::MessagesConfig;
use laconic_train::record::traffic::LinkBytes;
use laconic_train::run::Data;
use laconic_train::run::source::is_part_folder;
use laconic_wire::transport::link::NamedLink;
use laconic_wire::{Count, LINKS, PerKind};
use serde::Serialize;

use super::train::RunFile;
use crate::bytes::human_bytes;
use crate::output::Output;

/// Arguments of `plan`.
#[derive(Args)]
#[command(after_help = "Example: laconic plan run.toml --set schedule.kind=lazy")]
pub struct Plan {
    #[command(flatten)]
    run: RunFile,
}

/// What a run will cost.
#[derive(Serialize)]
struct Costs {
    workers: usize,
    bytes: u64,
    payload: u64,
    frames: u64,
    by_kind: BTreeMap<String, u64>,
    by_link: Vec<LinkBytes>,
    rows: Vec<usize>,
    halo_rows: Vec<usize>,
    memory: Vec<u64>,
    /// Seconds on the wire on each named link: the busiest uplink's bytes and the latency of every exchange, one after
    /// the other.
    seconds_on_links: Vec<LinkTime>,
    /// Whether the run may send less, because sizes depend on what happens during it.
    is_bound: bool,
    /// The most that the run may send, from `messages.budget`.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<u64>,
    /// The messages that the budget allows, where they are others than the configuration's.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<MessagesConfig>,
    /// What the configuration asks for and the run has no use for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct LinkTime {
    link: &'static str,
    seconds: f64,
}

/// Prints what every worker will send, its memory, and the time on the named links.
pub fn plan(arguments: Plan, output: &Output) -> Result<u8> {
    let config = arguments.run.load()?;
    if !is_part_folder(&config.data.path) {
        output.say(format_args!("reading and cutting {}", config.data.path.display()));
    }
    let laconic_train::Costs { plan, workers, dearer_than_exact, notes: of_data } =
        laconic_train::plan(&Members::default(), &config, Data::Configured)?;
    let mut notes = of_data;
    notes.extend(plan.with_messages(&config.messages)?.notes());
    notes.extend(dearer_than_exact.map(|[chosen, exact]| {
        let [chosen, exact] = [chosen, exact].map(human_bytes);
        format!(
            "rows take {chosen} in these codecs, and {exact} exactly: what goes with every row is more than is saved"
        )
    }));
    let (mut kinds, mut total) = (PerKind::<u64>::default(), Count::default());
    let mut by_link = Vec::new();
    let (mut busiest, mut exchanges) = (0u64, 0u64);
    for (shapes, ledger, _) in &workers {
        for (kind, count) in ledger.totals_by_kind().iter() {
            kinds[kind] += count.framed;
        }
        for (to, count) in ledger.totals_by_peer() {
            let (from, to) = (shapes.rank, to.0);
            let Count { frames, payload, framed } = count;
            by_link.push(LinkBytes { from, to, frames, payload, bytes: framed });
        }
        let mine = ledger.total();
        total += mine;
        busiest = busiest.max(mine.framed);
        // Frames of one exchange to different peers travel at the same time, those to one peer one after the other.
        exchanges = ledger.totals_by_peer().values().map(|count| count.frames).fold(exchanges, u64::max);
    }
    let seconds = |link: &NamedLink| LinkTime {
        link: link.name,
        seconds: busiest as f64 * 8.0 / link.shape.bits_per_second
            + exchanges as f64 * link.shape.latency.as_secs_f64(),
    };
    let costs = Costs {
        workers: workers.len(),
        bytes: total.framed,
        payload: total.payload,
        frames: total.frames,
        by_kind: kinds.iter().map(|(kind, bytes)| (kind.name().to_owned(), *bytes)).collect(),
        by_link,
        rows: workers.iter().map(|(shapes, ..)| shapes.rows).collect(),
        halo_rows: workers.iter().map(|(shapes, ..)| shapes.halo_rows()).collect(),
        memory: workers.iter().map(|(_, _, memory)| *memory).collect(),
        seconds_on_links: LINKS.iter().map(seconds).collect(),
        is_bound: !plan.messages.are_predictable(),
        budget: plan.messages.budget,
        messages: (plan.config.messages != config.messages).then(|| plan.config.messages.clone()),
        notes,
    };
    costs.notes.iter().for_each(|note| output.say(format!("note: {note}")));
    output.result(describe(&costs), &costs)?;
    Ok(0)
}

fn describe(costs: &Costs) -> String {
    use std::fmt::Write;
    let most = if costs.is_bound { "at most " } else { "" };
    let bytes = human_bytes(costs.bytes);
    let mut text = format!("{} workers will send {most}{bytes} in {} frames\n", costs.workers, costs.frames);
    if let Some(budget) = costs.budget {
        let share = 100.0 * costs.bytes as f64 / budget as f64;
        let _ = writeln!(text, "  {share:.0} % of the budget of {}", human_bytes(budget));
    }
    if let Some(chosen) = costs.messages.as_ref().and_then(|messages| toml::to_string(messages).ok()) {
        let _ = writeln!(text, "  with these messages:");
        chosen.lines().filter(|line| !line.is_empty()).for_each(|line| {
            let _ = writeln!(text, "    {line}");
        });
    }
    for (kind, bytes) in costs.by_kind.iter().filter(|(_, bytes)| **bytes > 0) {
        let _ = writeln!(text, "  {kind:<22} {:>12}", human_bytes(*bytes));
    }
    let _ = writeln!(text, "{:<8} {:>10} {:>10} {:>12} {:>12}", "worker", "rows", "halo", "memory", "sends");
    for worker in 0..costs.workers {
        let sends = costs.by_link.iter().filter(|l| l.from as usize == worker).map(|l| l.bytes).sum();
        let (memory, sends) = (human_bytes(costs.memory[worker]), human_bytes(sends));
        let _ = writeln!(
            text,
            "{worker:<8} {:>10} {:>10} {memory:>12} {sends:>12}",
            costs.rows[worker], costs.halo_rows[worker]
        );
    }
    let _ = writeln!(text, "time on the wire if nothing overlaps:");
    for link in &costs.seconds_on_links {
        let _ = writeln!(text, "  {:<22} {:>12.1} s", link.link, link.seconds);
    }
    text.trim_end().to_owned()
}

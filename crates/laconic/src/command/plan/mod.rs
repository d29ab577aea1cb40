//! `laconic plan`: bytes, memory and time before anything runs, and the egress report.

mod auto;
mod explain;
mod page;
mod text;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use laconic_train::config::{Config, MeansEvaluator, MessagesConfig, TransportConfig, TransportKind};
use laconic_train::forecast::contents::{Leaving, What, kind_words};
use laconic_train::forecast::costs::Means;
use laconic_train::forecast::load::load;
use laconic_train::plan::TaskKind;
use laconic_train::record::account::Account;
use laconic_train::record::aside::write_aside;
use laconic_train::record::traffic::LinkBytes;
use laconic_train::run::Data;
use laconic_train::{Members, TrainError};
use laconic_wire::{Carrier, Count, DenyList, Kind, LINKS, LinkShape, Load, PerKind};
use schemars::JsonSchema;
use serde::Serialize;

use explain::Explained;

use super::data::refuse_occupied;
use super::train::RunFile;
use crate::bytes::human_bytes;
use crate::output::Output;
use crate::waiting::reading;

/// Arguments of `plan`.
#[derive(Args)]
#[command(after_help = "Examples:
  laconic plan run.toml --set schedule.kind=lazy
  laconic plan run.toml --worker 0 --ledger ledger.csv
  laconic plan run.toml --link 100mbit,40ms
  laconic plan run.toml --out what-leaves.html
  laconic plan run.toml --explain
  laconic plan run.toml --set messages=auto

A folder of parts may hold one's own part alone: where meta.json counts the others (laconic partition sees to that),
the plan is as exact as with all, else it is a bound for the workers whose parts are there.")]
pub struct Plan {
    #[command(flatten)]
    run: RunFile,
    /// Say what leaves this worker (else: each, where there are four or fewer)
    #[arg(long, value_name = "K")]
    worker: Option<u32>,
    /// Write the egress report (what each worker sends, and to whom) as a page for those who have to agree to it:
    /// .html or .md
    #[arg(long, value_name = "FILE", value_parser = page::file)]
    out: Option<PathBuf>,
    /// Write every account: the ledger.csv that the run will leave
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Say where each byte goes, and what a few changes would make of it
    #[arg(long)]
    explain: bool,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Say how long the run is under MPI on this link, a named one or numbers such as 100mbit,40ms
    #[arg(long, value_name = "LINK")]
    link: Option<String>,
}

/// What a run will cost: bytes, memory and time, and what leaves each worker.
#[derive(Serialize, JsonSchema)]
pub struct Costs {
    /// How many workers there are.
    workers: usize,
    /// Bytes that all workers send; null where a time decides how many means of models there are.
    bytes: Option<u64>,
    /// Bytes without framing; null as `bytes` is.
    payload: Option<u64>,
    /// How many frames; null as `bytes` is.
    frames: Option<u64>,
    /// What is sent at least.
    #[serde(skip)]
    least: Count,
    /// Bytes by the kind of message.
    #[schemars(extend("x-name" = "KIND"))]
    by_kind: BTreeMap<String, u64>,
    /// What messages of this kind hold.
    #[schemars(extend("x-name" = "KIND"))]
    kinds: BTreeMap<String, &'static str>,
    /// One entry for each worker and each other that it sends to.
    by_link: Vec<LinkBytes>,
    /// Workers that the next three lists are about.
    ranks: Vec<u32>,
    /// (parts that have names) What each part is called, in the order of their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    part_names: Vec<String>,
    /// Own nodes of each.
    rows: Vec<usize>,
    /// Foreign nodes that each needs rows of.
    halo_rows: Vec<usize>,
    /// Bytes that each takes, as an upper estimate.
    memory: Vec<u64>,
    /// (labelled training nodes) How far labels of training nodes differ between parts, as `labels.skew` of
    /// `partition` says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    label_skew: Option<f64>,
    /// (`policy.label_epsilon`) Epsilon of all that is told of a node's label together, for `model.inputs`: it is one
    /// answer. It is not said of models, gradients and rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    label_epsilon: Option<f64>,
    /// (independent trainers) What they will average; worker 0 is their aggregator.
    #[serde(skip_serializing_if = "Option::is_none")]
    averaging: Option<Averaging>,
    /// What each worker sends, and to whom.
    leaves: Vec<Leaves>,
    /// Who has to hold the whole graph, who sees what of others' nodes, and how often somebody waits.
    account: Account,
    /// (`bytes` is known) Seconds on each named link and on the configured one: the busiest uplink's bytes and the
    /// latency of every exchange, one after the other.
    seconds_on_links: Vec<LinkTime>,
    /// Whether the run may send less, because sizes depend on what happens during it or on what nobody has counted.
    is_bound: bool,
    /// (`messages.budget`) The most bytes that the run may send.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<u64>,
    /// (a budget that chose other codecs) `[messages]` as it will run.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<MessagesConfig>,
    /// (`--explain`) Where bytes go, and what a few changes would make of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    explained: Option<Explained>,
    /// (something to note) What the configuration asks for and the run has no use for, and what the plan cannot know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// (`--ledger`) Where the accounts were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger: Option<PathBuf>,
    /// (`--out`) Where the page was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    out: Option<PathBuf>,
}

/// What independent trainers will average.
#[derive(Serialize, JsonSchema)]
pub struct Averaging {
    /// (independent trainers, unless nobody can know) Means of a run, at most where `is_bound`.
    #[serde(skip_serializing_if = "Option::is_none")]
    means: Option<u64>,
    /// Bytes that one takes.
    bytes_of_mean: u64,
    /// The part of each trainer; worker 0 is the aggregator.
    parts: Vec<u32>,
    /// (`schedule.aggregator`) The part whose trainer lives in the aggregator's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    hosted_part: Option<u32>,
    /// Who evaluates means: `aggregator`, which holds the whole graph, or `workers`.
    evaluator: MeansEvaluator,
}

impl From<Means> for Averaging {
    fn from(Means { number, bytes, parts, hosted, evaluator }: Means) -> Averaging {
        Averaging { means: number, bytes_of_mean: bytes, parts, hosted_part: hosted, evaluator }
    }
}

/// The time on a link.
#[derive(Serialize, JsonSchema)]
pub struct LinkTime {
    /// The link's name, or its numbers.
    pub link: String,
    /// Seconds on the wire, if nothing overlaps; under MPI (`transport.kind`, `--link`) with what TCP and the library
    /// cost.
    pub seconds: f64,
    /// How many of them are connections, first messages and the end; 0 but under MPI.
    start_seconds: f64,
    /// (`transport.shape`) True: the configuration has this link.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    configured: bool,
}

/// What leaves a worker towards another, of one content.
#[derive(Serialize, JsonSchema)]
pub struct Leaves {
    /// Whom it leaves.
    worker: u32,
    /// The worker that gets it.
    to: u32,
    /// The name of what leaves.
    what: String,
    /// Whether evaluations alone need it.
    for_evaluations: bool,
    /// (rows) The layer that reads them, and the numbers in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<RowOf>,
    /// How many nodes it is about, at most; 0 where it is about none.
    nodes: usize,
    /// How many frames.
    frames: u64,
    /// Bytes of all of them.
    bytes: u64,
    /// The same as a sentence.
    words: String,
    /// (where it is so) True: `policy.deny` keeps it back, and a run stops before the first such frame, with exit code
    /// 7.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    denied: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct RowOf {
    /// The layer that reads rows.
    layer: u16,
    /// Numbers in one.
    numbers: usize,
}

impl Leaves {
    fn of(worker: u32, leaving: &Leaving, task: &TaskKind, closed: Option<&DenyList>) -> Leaves {
        let Leaving { item, to, nodes, count } = *leaving;
        let has_rows = matches!(item.what, What::Rows { .. } | What::RowGradients);
        Leaves {
            worker,
            to: to.0,
            what: item.what.name(),
            for_evaluations: item.what.evaluates(),
            row: has_rows.then_some(RowOf { layer: item.layer, numbers: item.width }),
            nodes,
            frames: count.frames,
            bytes: count.framed,
            words: item.words(nodes, task),
            denied: closed.is_some_and(|list| leaving.denied_by(list).is_some()),
        }
    }
}

/// The exit code of a plan that `policy.deny` forbids.
const DENIED: u8 = 7;

/// Prints what every worker will send, in words too, its memory, and the time on the named links.
pub fn plan(arguments: Plan, output: &Output) -> Result<u8> {
    let config = arguments.run.load(output)?;
    let mut transport = config.transport.clone();
    if let Some(link) = arguments.link {
        link.parse::<LinkShape>().map_err(|error| TrainError::config(format!("--link {link}: {error}")))?;
        (transport.kind, transport.shape) = (TransportKind::Mpi, link);
    }
    let shape = transport.shape.clone();
    let on_link = Config { transport: TransportConfig { shape, ..config.transport.clone() }, ..config.clone() };
    for path in arguments.ledger.iter().chain(&arguments.out) {
        refuse_occupied(path, arguments.force)?;
    }
    if config.is_several() {
        let other = [("--worker", arguments.worker.is_some()), ("--ledger", arguments.ledger.is_some())];
        let other = other.into_iter().chain([("--out", arguments.out.is_some()), ("--explain", arguments.explain)]);
        let other: Vec<&str> = other.filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
        return auto::plan(&on_link, &other, output);
    }
    let waiting = output.begins(reading(&config.data));
    let forecast = laconic_train::plan(&Members::default(), &config, Data::Configured)?;
    waiting.end();
    let ranks: Vec<u32> = forecast.workers.iter().map(|(shapes, ..)| shapes.rank).collect();
    if let Some(worker) = arguments.worker.filter(|worker| !ranks.contains(worker)) {
        bail!("--worker {worker}: {}", text::whom(&ranks, forecast.size()));
    }
    if let Some(path) = &arguments.ledger {
        forecast.write_ledger(path)?;
    }
    let about = forecast.about.clone();
    let explained = arguments.explain.then(|| Explained::of(&forecast, &on_link)).transpose()?;
    let mut costs = costs(forecast, (&config, &transport), arguments.ledger)?;
    costs.out = arguments.out;
    costs.explained = explained;
    if let Some(path) = &costs.out {
        write_aside(path, page::text(path, &costs, (&config, &about)).as_bytes())?;
    }
    costs.notes.iter().for_each(|note| output.say(format!("note: {note}")));
    output.result(text::describe(&costs, arguments.worker), &costs)?;
    // Who asks for one worker asks for that one's list.
    let asked = |leaves: &&Leaves| arguments.worker.is_none_or(|worker| worker == leaves.worker);
    let denied = costs.leaves.iter().filter(asked).find(|leaves| leaves.denied);
    let Some(Leaves { worker, to, words, .. }) = denied else { return Ok(0) };
    output.say(format!("policy.deny: a run would stop before worker {worker} sends worker {to} {words}"));
    Ok(DENIED)
}

/// Says that codes take more than they save.
fn dearer([chosen, exact]: [u64; 2]) -> String {
    let [chosen, exact] = [chosen, exact].map(human_bytes);
    format!("rows take {chosen} in these codecs, and {exact} exactly: what goes with every row is more than is saved")
}

/// The kinds of which something is sent.
fn sent(kinds: &PerKind<u64>) -> impl Iterator<Item = Kind> {
    kinds.iter().filter(|(_, bytes)| **bytes > 0).map(|(kind, _)| kind)
}

fn costs(
    of: laconic_train::Costs,
    (config, transport): (&Config, &TransportConfig),
    ledger: Option<PathBuf>,
) -> Result<Costs> {
    let (size, account) = (of.size(), of.account());
    let laconic_train::Costs { plan, workers, leaves, is_bound, dearer_than_exact, mut notes, averaging, .. } = of;
    notes.extend(plan.with_messages(&config.messages)?.notes());
    notes.extend(dearer_than_exact.map(dearer));
    let ranks: Vec<u32> = workers.iter().map(|(shapes, ..)| shapes.rank).collect();
    notes.extend(text::unknown(&ranks, size, is_bound && plan.is_predictable() && averaging.is_none()));
    let (mut kinds, mut total, mut by_link) = (PerKind::<u64>::default(), Count::default(), Vec::new());
    let load = load(workers.iter().map(|(_, ledger, _)| ledger));
    for (shapes, ledger, _) in &workers {
        for (kind, count) in ledger.totals_by_kind().iter() {
            kinds[kind] += count.framed;
        }
        for (to, count) in ledger.totals_by_peer() {
            let Count { frames, payload, framed: bytes } = count;
            by_link.push(LinkBytes { from: shapes.rank, to: to.0, frames, payload, bytes });
        }
        total += ledger.total();
    }
    let (task, closed) = (Members::default().task(config)?, config.policy.list()?);
    let all = ranks.iter().zip(&leaves).flat_map(|(rank, leaves)| leaves.iter().map(|leaving| (*rank, leaving)));
    let leaves = all.map(|(rank, leaving)| Leaves::of(rank, leaving, task, closed.as_ref()));
    let words = |kind| match kind {
        Kind::Parameters if averaging.is_some() => "models of trainers, and means of them",
        _ => kind_words(kind, task),
    };
    let known = Some(total).filter(|_| averaging.as_ref().is_none_or(|means| means.number.is_some()));
    Ok(Costs {
        workers: size,
        bytes: known.map(|total| total.framed),
        payload: known.map(|total| total.payload),
        frames: known.map(|total| total.frames),
        least: total,
        kinds: sent(&kinds).map(|kind| (kind.name().to_owned(), words(kind))).collect(),
        by_kind: kinds.iter().map(|(kind, bytes)| (kind.name().to_owned(), *bytes)).collect(),
        by_link,
        rows: workers.iter().map(|(shapes, ..)| shapes.rows).collect(),
        halo_rows: workers.iter().map(|(shapes, ..)| shapes.halo_rows()).collect(),
        memory: workers.iter().map(|(_, _, memory)| *memory).collect(),
        label_skew: plan.label_skew,
        label_epsilon: config.policy.label_epsilon,
        part_names: plan.part_names,
        averaging: averaging.map(Averaging::from),
        leaves: leaves.collect(),
        account,
        seconds_on_links: known.map(|_| times(transport, &load)).transpose()?.unwrap_or_default(),
        is_bound,
        budget: plan.messages.budget,
        messages: (plan.config.messages != config.messages).then(|| plan.config.messages.clone()),
        explained: None,
        notes,
        ledger,
        out: None,
        ranks,
    })
}

/// The time on the configured link, first unless it is a named one, and on the named ones: under MPI over TCP.
pub fn times(transport: &TransportConfig, load: &Load) -> Result<Vec<LinkTime>> {
    let carrier = if transport.kind == TransportKind::Mpi { Carrier::Tcp } else { Carrier::Nothing };
    let of = |link: &str, shape: LinkShape, configured| {
        let [seconds, start_seconds] = shape.seconds(load, carrier);
        LinkTime { link: link.to_owned(), seconds, start_seconds, configured }
    };
    let configured = transport.shape.as_str();
    let is_named = LINKS.iter().any(|link| link.name == configured);
    let mut times = Vec::with_capacity(LINKS.len() + 1);
    if !configured.is_empty() && !is_named {
        times.push(of(configured, configured.parse().map_err(TrainError::from)?, true));
    }
    times.extend(LINKS.iter().map(|link| of(link.name, link.shape, link.name == configured)));
    Ok(times)
}

//! `laconic bench epoch`: training rounds on a generated graph beside what they have to do at least.

mod bound;
mod table;

use anyhow::{Result, bail};
use clap::Args;
use laconic_graph::part::cut;
use laconic_train::config::TransportKind;
use laconic_train::forecast::bound::{Seen, of as least_work};
use laconic_train::run::source::assign;
use laconic_train::{Config, Members, Plan, TrainError};
use schemars::JsonSchema;
use serde::Serialize;

use super::graph::Size;
use super::roofline::{Moved, Multiplied};
use super::trained::{self, Trained};
use super::{Measuring, THREADS_MAX, measure};
use crate::output::Output;
use bound::{Bound, Rates};

/// Arguments of `bench epoch`.
#[derive(Args)]
#[command(after_help = "Examples:
  laconic bench epoch
  laconic bench epoch --arch gcn --workers 2 --link wan-100mbit-40ms --json
  laconic bench epoch --schedule lazy --set model.dropout=0

Without options: three layers of sage, 256 wide, with LayerNorm and dropout 0.5, on a graph of ogbn-arxiv's size. An
epoch is a round over all nodes; of a lazy run, a round of each stage.")]
pub struct Epoch {
    #[command(flatten)]
    graph: Size,
    /// Feature columns
    #[arg(long, value_name = "COUNT", default_value_t = 128)]
    features: usize,
    /// Classes
    #[arg(long, value_name = "COUNT", default_value_t = 40)]
    classes: usize,
    /// Kind of layer (model.arch)
    #[arg(long, value_name = "NAME", default_value = "sage")]
    arch: String,
    /// Width between layers (model.hidden)
    #[arg(long, value_name = "WIDTH", default_value_t = 256)]
    hidden: usize,
    /// Number of layers (model.layers)
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    layers: usize,
    /// Workers, which share the threads
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    workers: u32,
    /// Link between workers, by name or as 100mbit,40ms: time is that of its model
    #[arg(long, value_name = "LINK")]
    link: Option<String>,
    /// When workers exchange (schedule.kind)
    #[arg(long, value_name = "NAME", default_value = "synchronous")]
    schedule: String,
    /// Rounds that count, of each stage; two more come before
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    rounds: u32,
    /// Override any other key, as in --set model.heads=4
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    measuring: Measuring,
}

/// The first rounds of each stage, which grow buffers and do not count.
const FIRST: u32 = 2;

/// An epoch, and what it has to take at least.
#[derive(Serialize, JsonSchema)]
pub struct Measured {
    /// Its generator: `sbm` or `rmat`.
    graph: &'static str,
    /// How many nodes there are.
    nodes: u64,
    /// How many directed edges there are.
    edges: u64,
    /// Columns of features.
    features: usize,
    /// How many classes there are.
    classes: usize,
    /// `model.arch`.
    arch: String,
    /// `model.hidden`.
    hidden: usize,
    /// `model.layers`.
    layers: usize,
    /// `schedule.kind`.
    schedule: String,
    /// How many workers there are.
    workers: u32,
    /// Compute threads of all workers together.
    threads: usize,
    /// On whose clock time was taken (`--link`, `transport.shape`); null without a link.
    link: Option<String>,
    /// The median rounds of all stages, added up.
    epoch_seconds: f64,
    /// What they take at least at the measured rates: the sum of the parts.
    bound_seconds: f64,
    /// The first over the second.
    ratio: f64,
    /// One entry a stage.
    stages: Vec<StageFigures>,
    /// What the bound is made of.
    bound: Bound,
    /// Generating and cutting the graph.
    graph_seconds: f64,
    /// What the run took besides its rounds: opening, the first exchange, the last evaluation.
    start_seconds: f64,
    /// The largest resident size while it trained.
    peak_bytes: u64,
    /// What was predicted of that, program and libraries apart.
    predicted_bytes: u64,
    /// What the machine was measured to do.
    rates: Figures,
}

/// One stage's rounds.
#[derive(Serialize, JsonSchema)]
pub struct StageFigures {
    #[serde(flatten)]
    times: measure::Times,
    /// Seconds of the slowest round that counts.
    worst_seconds: f64,
    /// What a round of this stage takes at least.
    bound_seconds: f64,
    /// The median over that.
    ratio: f64,
}

/// What the bound is made of.
#[derive(Serialize, JsonSchema)]
pub struct Figures {
    /// Copies.
    copy: Moved,
    /// (a layer that gathers) Gathered rows.
    gather: Vec<Moved>,
    /// Dense products.
    dense: Multiplied,
}

/// Trains, measures the machine, and compares.
pub fn run(arguments: &Epoch, output: &Output) -> Result<u8> {
    let measured = measured(arguments, output)?;
    output.result(table::table(&measured), &measured)?;
    Ok(0)
}

fn measured(arguments: &Epoch, output: &Output) -> Result<Measured> {
    let config = configuration(arguments, arguments.measuring.threads()?)?;
    let threads = used_threads(&config, arguments.workers as usize)?;
    let members = Members::default();
    let began = std::time::Instant::now();
    let waiting = output.begins("generating the graph");
    let dataset = arguments.graph.generate(arguments.features, arguments.classes)?;
    let assignment = assign(&members, &config, &dataset, Some(0), arguments.workers)?;
    let parts = cut(&dataset, Some(0), &assignment, arguments.workers)?;
    waiting.end();
    drop((dataset, assignment));
    let graph_seconds = began.elapsed().as_secs_f64();
    let counts = parts[0].global.clone();
    let plan = Plan::with(&members, &config, &counts)?;
    // Before anything is measured that could not be compared.
    let items = least_work(&plan, &Seen::of(&plan, &parts))?;
    let link = Some(config.transport.shape.clone()).filter(|shape| !shape.is_empty());
    let trained = trained::train(&config, parts, FIRST, output)?;
    let waiting = output.begins("measuring the machine");
    let rates = Rates::measure(&arguments.measuring, threads, &plan, (&items, counts.nodes))?;
    waiting.end();
    let bound = Bound::of(&items, &rates, &trained.on_links(link.as_deref(), &plan.stages)?);
    let figures = |(index, rounds): (usize, &trained::Rounds)| {
        let bound_seconds = bound.of_stage(index);
        let ratio = rounds.times.median_seconds / bound_seconds;
        StageFigures { times: rounds.times, worst_seconds: rounds.worst, bound_seconds, ratio }
    };
    let stages: Vec<StageFigures> = trained.stages.iter().enumerate().map(figures).collect();
    let epoch_seconds = stages.iter().map(|stage| stage.times.median_seconds).sum::<f64>();
    let bound_seconds = bound.parts.iter().map(|part| part.seconds).sum::<f64>();
    let Trained { start_seconds, peak_bytes, predicted_bytes, .. } = trained;
    Ok(Measured {
        graph: arguments.graph.graph.name(),
        nodes: counts.nodes,
        edges: counts.edges,
        features: counts.columns,
        classes: counts.classes,
        arch: config.model.arch,
        hidden: config.model.hidden,
        layers: config.model.layers,
        schedule: config.schedule.kind,
        workers: arguments.workers,
        threads,
        link,
        epoch_seconds,
        bound_seconds,
        ratio: epoch_seconds / bound_seconds,
        stages,
        bound,
        graph_seconds,
        start_seconds,
        peak_bytes,
        predicted_bytes,
        rates: rates.figures(),
    })
}

/// The compute threads of all workers together, of which each has as many, and one at least.
///
/// # Errors
/// If there are more than any machine has.
fn used_threads(config: &Config, workers: usize) -> Result<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let each = if config.train.threads > 0 { config.train.threads } else { (cores / workers).max(1) };
    let threads = each.saturating_mul(workers);
    if threads > THREADS_MAX {
        bail!("--workers {workers}, train.threads = {each}: {threads} threads in all, expected at most {THREADS_MAX}");
    }
    Ok(threads)
}

/// The run as `laconic train` would read it.
fn configuration(arguments: &Epoch, threads: usize) -> Result<Config> {
    let Epoch { arch, hidden, layers, workers, link, schedule, rounds, set, .. } = arguments;
    if *workers == 0 || *workers as usize > arguments.graph.nodes.max(1) {
        bail!("--workers {workers}: expected 1 to the number of nodes");
    }
    if *rounds == 0 || *rounds > 100_000 {
        bail!("--rounds {rounds}: expected 1 to 100000");
    }
    let mut keys = vec![
        format!("model.arch={arch}"),
        format!("model.hidden={hidden}"),
        format!("model.layers={layers}"),
        "model.dropout=0.5".to_owned(),
        format!("schedule.kind={schedule}"),
        format!("train.epochs={}", rounds + FIRST),
        "train.eval_every=0".to_owned(),
        "train.weight_decay=0.0".to_owned(),
        format!("train.threads={}", (threads / *workers as usize).max(1)),
        format!("partition.parts={workers}"),
    ];
    keys.extend(link.as_ref().map(|link| format!("transport.shape={link}")));
    keys.extend(set.iter().cloned());
    let config = Config::parse("", &keys)?;
    if config.transport.kind != TransportKind::Threads {
        return Err(TrainError::config("transport.kind: bench epoch has its workers as threads").into());
    }
    if config.partition.parts != *workers {
        return Err(TrainError::config("partition.parts: bench epoch has --workers for it").into());
    }
    Ok(config)
}

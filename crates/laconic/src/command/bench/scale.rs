//! `laconic bench scale`: time and memory against size, a row a doubling.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use laconic_graph::aside::part_of;
use laconic_graph::memory;
use laconic_graph::part::cut;
use laconic_graph::read::{ReadOptions, read};
use laconic_graph::write::write_interchange;
use laconic_nn::Compute;
use laconic_train::forecast::memory::peak_bytes;
use laconic_train::run::source::assign;
use laconic_train::{Config, Members, TrainError};
use schemars::JsonSchema;
use serde::Serialize;
use tempfile::TempDir;

use super::graph::{Kind, Size};
use super::roofline::copied;
use super::trained::{count_anew, train};
use super::{THREADS_MAX, afford};
use crate::bytes::{human_bytes, separated};
use crate::command::signals::clean_up_and;
use crate::output::Output;

/// Arguments of `bench scale`.
#[derive(Args)]
#[command(after_help = "Examples:
  laconic bench scale --to 16000000
  laconic bench scale --graph rmat --from 1000000 --to 100000000 --arch gcn --json

The table ends before the size for which there is no memory, and says so. Where anything else goes wrong, or the
command is stopped, it is printed as far as it has come, and the command fails.")]
pub struct Scale {
    /// Generators of graphs (otherwise all)
    #[arg(long, value_enum, value_name = "NAME")]
    graph: Vec<Kind>,
    /// Directed edges of the smallest graph
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    from: usize,
    /// Directed edges of the largest
    #[arg(long, value_name = "COUNT", default_value_t = 100_000_000)]
    to: usize,
    /// Directed edges for each node
    #[arg(long, value_name = "MEAN", default_value_t = 14)]
    degree: usize,
    /// Feature columns
    #[arg(long, value_name = "COUNT", default_value_t = 32)]
    features: usize,
    /// Classes
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    classes: usize,
    /// Kind of layer (model.arch)
    #[arg(long, value_name = "NAME", default_value = "sage")]
    arch: String,
    /// Width between layers (model.hidden)
    #[arg(long, value_name = "WIDTH", default_value_t = 32)]
    hidden: usize,
    /// Number of layers (model.layers)
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    layers: usize,
    /// Parts, a worker each
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    workers: u32,
    /// How the graph is cut (partition.method)
    #[arg(long, value_name = "NAME", default_value = "random")]
    method: String,
    /// Rounds that count; one more comes before
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    rounds: u32,
    /// Seed of the graphs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Override any other key, as in --set schedule.kind=lazy
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Time and memory by the size of the graph.
#[derive(Serialize, Default, JsonSchema)]
pub struct Measured {
    /// `model.arch`.
    arch: String,
    /// How many workers there are.
    workers: u32,
    /// Bytes read and written, on all threads.
    copy_bytes_per_second: f64,
    /// One entry a graph.
    rows: Vec<Row>,
    /// (a graph for which there was no memory, that failed or was stopped) Where the table ends before its end.
    stopped: Vec<Stopped>,
    /// Generator and size that is being measured.
    #[serde(skip)]
    now: Option<(&'static str, usize)>,
    #[serde(skip)]
    is_printed: bool,
}

/// A size of graph that was measured.
#[derive(Serialize, JsonSchema)]
pub struct Row {
    /// Its generator: `sbm` or `rmat`.
    graph: &'static str,
    /// How many nodes there are.
    nodes: usize,
    /// How many directed edges there are.
    edges: usize,
    /// Drawing the graph in memory.
    generate_seconds: f64,
    /// Reading it as an npz.
    read_seconds: f64,
    /// Bytes of that npz.
    file_bytes: u64,
    /// Partitioning and cutting it in memory.
    cut_seconds: f64,
    /// Of the run, but for its rounds.
    start_seconds: f64,
    /// Seconds of reading the file's bytes and nothing else, over `read_seconds`.
    read_share: f64,
    /// Seconds that a copy takes of as many bytes as cutting has to read and write, over `cut_seconds`.
    cut_share: f64,
    /// The same of the start.
    start_share: f64,
    /// The median rounds of all stages, added up.
    round_seconds: f64,
    /// The largest resident size until it was cut.
    prepare_peak_bytes: u64,
    /// The largest resident size while it was trained on.
    peak_bytes: u64,
    /// What was predicted of that, program and libraries apart.
    predicted_bytes: u64,
}

/// A size that was not measured.
#[derive(Serialize, JsonSchema)]
pub struct Stopped {
    /// Its generator.
    graph: &'static str,
    /// Edges as they were asked for.
    edges: usize,
    /// What it would take of memory, and how much there is; `stopped`; else the error, with which the command ends.
    reason: String,
}

/// Measures one size after the other.
pub fn run(arguments: &Scale, output: &Output) -> Result<u8> {
    let Scale { from, to, degree, rounds, workers, .. } = arguments;
    if *from == 0 || from > to {
        bail!("--from {from} --to {to}: expected at least one edge, and no fewer at the end");
    }
    if *degree == 0 || *rounds == 0 || *rounds > 100_000 || *workers == 0 {
        bail!("--degree {degree} --rounds {rounds} --workers {workers}: expected 1 or more, and at most 100000 rounds");
    }
    let config = configuration(arguments)?;
    let kinds = if arguments.graph.is_empty() { vec![Kind::Sbm, Kind::Rmat] } else { arguments.graph.clone() };
    let copies = copy_rate()?;
    let (arch, workers) = (config.model.arch.clone(), *workers);
    let found = Found::of(Measured { arch, workers, copy_bytes_per_second: copies, ..Measured::default() });
    let place = place(&found, output)?;
    let file = place.path().join("graph.npz");
    for kind in kinds {
        let (mut edges, mut before): (usize, Option<u64>) = (*from, None);
        while edges <= *to {
            output.say(format!("{}: {} edges", kind.name(), separated(edges as u64)));
            found.lock().now = Some((kind.name(), edges));
            let ends = |error: &anyhow::Error| Stopped { graph: kind.name(), edges, reason: error.to_string() };
            if let Err(error) = enough(before) {
                found.lock().stopped.push(ends(&error));
                break;
            }
            match row((arguments, &config), (kind, edges), (&file, copies), output) {
                Ok(row) => {
                    before = Some(row.peak_bytes.max(row.prepare_peak_bytes));
                    found.lock().rows.push(row);
                }
                Err(error) => {
                    found.lock().stopped.push(ends(&error));
                    if !found.lock().rows.is_empty() {
                        found.print(output)?;
                    }
                    return Err(error);
                }
            }
            edges = edges.saturating_mul(2);
        }
    }
    found.print(output)?;
    Ok(0)
}

/// What was measured so far, for who stops the command as well.
#[derive(Clone)]
struct Found(Arc<Mutex<Measured>>);

impl Found {
    fn of(measured: Measured) -> Found {
        Found(Arc::new(Mutex::new(measured)))
    }

    fn lock(&self) -> MutexGuard<'_, Measured> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints it once.
    fn print(&self, output: &Output) -> Result<()> {
        let found = std::mem::replace(&mut *self.lock(), Measured { is_printed: true, ..Measured::default() });
        if found.is_printed {
            return Ok(());
        }
        // Nobody waits for who reads it.
        output.result(table(&found), &found)
    }
}

/// A folder for files of graphs, which goes when the command ends. Stopped, it prints what it has found.
fn place(found: &Found, output: &Output) -> Result<TempDir> {
    let folder = std::env::temp_dir();
    let named = folder.join(format!("laconic-scale-{}", std::process::id()));
    let (found, output) = (found.clone(), output.clone());
    clean_up_and(&named, move || {
        let now = found.lock().now;
        let stopped = now.map(|(graph, edges)| Stopped { graph, edges, reason: "stopped".to_owned() });
        found.lock().stopped.extend(stopped);
        // Who has closed standard output reads nothing.
        let _ = found.print(&output);
        // What is still at work has nothing to say of the folder that goes.
        std::mem::forget(found.lock());
    })?;
    let name = part_of(&named).file_name().unwrap_or_default().to_owned();
    let made = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir_in(&folder);
    Ok(made.map_err(|source| TrainError::io(folder, source))?)
}

/// Refuses twice the size where there is no memory for twice what the last one took.
fn enough(before: Option<u64>) -> Result<()> {
    memory::give_back();
    before.map_or(Ok(()), |before| afford("twice the size", before.saturating_mul(2)))
}

fn configuration(arguments: &Scale) -> Result<Config> {
    let Scale { arch, hidden, layers, workers, method, rounds, set, .. } = arguments;
    let mut keys = vec![
        format!("model.arch={arch}"),
        format!("model.hidden={hidden}"),
        format!("model.layers={layers}"),
        format!("partition.parts={workers}"),
        format!("partition.method={method}"),
        format!("train.epochs={}", rounds + FIRST),
        "train.eval_every=0".to_owned(),
    ];
    keys.extend(set.iter().cloned());
    Ok(Config::parse("", &keys)?)
}

/// The first round of each stage grows buffers.
const FIRST: u32 = 1;

/// Bytes a second that a copy on all threads reads and writes, of arrays of 64 MiB; the fastest in a tenth of a second.
fn copy_rate() -> Result<f64> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let compute = Compute::start(threads).context("a copy on all threads")?;
    Ok(copied(&compute, 64 << 20, 0.1).bytes_per_second)
}

/// Seconds that a file's bytes take, piece by piece and with nothing done to them.
fn raw_seconds(file: &Path) -> Result<f64> {
    let failed = |source| TrainError::io(file, source);
    let (mut piece, began) = (vec![0; 1 << 20], Instant::now());
    let mut bytes = File::open(file).map_err(failed)?;
    while bytes.read(&mut piece).map_err(failed)? > 0 {}
    Ok(began.elapsed().as_secs_f64())
}

/// Bytes that have to be read and written in cutting a graph of this size and in starting on its parts. Cutting reads
/// the columns of nodes and a source of 4 bytes an edge, and writes the same with sources of 8; a start reads these,
/// and writes both orientations, of 4 bytes an edge and 8 a node each.
fn least_bytes(nodes: usize, edges: usize, features: usize) -> [f64; 2] {
    let columns = nodes * (4 * features + 8 + 4 + 1);
    [2 * columns + (4 + 8) * edges, (8 + 4 + 4) * edges + (8 + 8 + 8) * nodes].map(|bytes| bytes as f64)
}

fn row(
    (arguments, config): (&Scale, &Config),
    (graph, edges): (Kind, usize),
    (file, copies): (&Path, f64),
    output: &Output,
) -> Result<Row> {
    count_anew();
    let size = Size { graph, nodes: (edges / arguments.degree).max(1), edges, seed: arguments.seed };
    let began = Instant::now();
    let dataset = size.generate(arguments.features, arguments.classes)?;
    let generate_seconds = began.elapsed().as_secs_f64();
    let _ = std::fs::remove_file(file);
    write_interchange(file, &dataset)?;
    drop(dataset);
    let file_bytes = std::fs::metadata(file).map_err(|source| TrainError::io(file, source))?.len();
    let raw = raw_seconds(file)?;
    let began = Instant::now();
    let dataset = read(file, &ReadOptions::default())?;
    let read_seconds = began.elapsed().as_secs_f64();
    let (nodes, edges) = (dataset.graph.nodes(), dataset.graph.edges());
    let began = Instant::now();
    let assignment = assign(&Members::default(), config, &dataset, Some(0), arguments.workers)?;
    let parts = cut(&dataset, Some(0), &assignment, arguments.workers)?;
    let cut_seconds = began.elapsed().as_secs_f64();
    drop((dataset, assignment));
    let prepare_peak_bytes = peak_bytes();
    let trained = train(config, parts, FIRST, output)?;
    let [cutting, starting] = least_bytes(nodes, edges, arguments.features).map(|bytes| bytes / copies);
    Ok(Row {
        graph: graph.name(),
        nodes,
        edges,
        generate_seconds,
        read_seconds,
        file_bytes,
        cut_seconds,
        start_seconds: trained.start_seconds,
        read_share: raw / read_seconds,
        cut_share: cutting / cut_seconds,
        start_share: starting / trained.start_seconds,
        round_seconds: trained.stages.iter().map(|stage| stage.times.median_seconds).sum(),
        prepare_peak_bytes,
        peak_bytes: trained.peak_bytes,
        predicted_bytes: trained.predicted_bytes,
    })
}

fn table(measured: &Measured) -> String {
    let mut text = format!(
        "{:<6} {:>12} {:>12} {:>11} {:>8} {:>5} {:>8} {:>5} {:>8} {:>5} {:>8} {:>11} {:>11} {:>11}\n",
        "graph",
        "nodes",
        "edges",
        "generate s",
        "read s",
        "share",
        "cut s",
        "share",
        "start s",
        "share",
        "round s",
        "preparing",
        "training",
        "predicted"
    );
    for row in &measured.rows {
        let [nodes, edges] = [row.nodes, row.edges].map(|count| separated(count as u64));
        let [preparing, training, predicted] =
            [row.prepare_peak_bytes, row.peak_bytes, row.predicted_bytes].map(human_bytes);
        let Row { graph, generate_seconds, read_seconds, cut_seconds, start_seconds, round_seconds, .. } = row;
        let _ = write!(text, "{graph:<6} {nodes:>12} {edges:>12} {generate_seconds:>11.2}");
        let shares = [row.read_share, row.cut_share, row.start_share].map(|share| 100.0 * share);
        for (seconds, share) in [*read_seconds, *cut_seconds, *start_seconds].iter().zip(shares) {
            let _ = write!(text, " {seconds:>8.2} {share:>3.0} %");
        }
        let _ = write!(text, " {round_seconds:>8.3} ");
        let _ = writeln!(text, "{preparing:>11} {training:>11} {predicted:>11}");
    }
    for Stopped { graph, edges, reason } in &measured.stopped {
        let _ = writeln!(text, "{graph} ends before {} edges: {reason}", separated(*edges as u64));
    }
    if !measured.rows.is_empty() {
        let copies = measured.copy_bytes_per_second / 1e9;
        let _ = writeln!(text, "shares: of the file's own rate; of a copy's, {copies:.1} GB/s read and written");
    }
    text.trim_end().to_owned()
}

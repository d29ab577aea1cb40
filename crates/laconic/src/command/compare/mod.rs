//! `laconic compare`: methods and seeds on one graph and one partition.

pub mod alone;
pub mod figures;
mod files;
mod front;
mod judged;
mod matrix;
pub mod outcome;
mod paired;
mod planned;
mod runs;
mod seeds;
mod sweep;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use laconic_graph::part::{Part, Provenance, write_parts};
use laconic_train::config::PartitionConfig;
use laconic_train::record::claim::Lock;
use laconic_train::run::source::Source;
use laconic_train::{Config, Members, Plan, TrainError};

pub use files::p;
pub use outcome::Comparison;

use super::place::{folder, named};
use super::signals::{STOPPED, Signals};
use super::train::{RunFile, reading, refuse_several_processes};
use crate::bytes::human_bytes;
use crate::output::Output;
use crate::recorded::Recorded;
use alone::Task;
use matrix::{Matrix, Method, Wishes, bare};
use outcome::Graph;
use runs::Found;
use seeds::Seeds;

const HELP: &str = "\
FILE lists the methods:
  seeds = [0, 1, 2]              # otherwise 0 alone
  link = \"wan-100mbit-40ms\"      # otherwise transport.shape of the run, otherwise real time
  baseline = \"synchronous\"       # otherwise the first
  [[method]]
  name = \"synchronous\"
  [[method]]
  name = \"lazy, from scores\"
  set = [\"schedule.kind=lazy\", \"schedule.start=mlp\"]
  [[sweep]]                      # a method for every combination of values
  name = \"lazy, {bits} bits\"     # otherwise made from keys and values
  set = [\"schedule.kind=lazy\", \"messages.forward={codec=quantised}\"]
  over = { \"messages.forward.bits\" = [2, 4, 8], \"train.lr\" = [0.01, 0.003] }

Seeds of partition and split: seeds = { train = [0, 1], partition = [0, 1], split = [5, 6] } is
every combination; with zip = true the first of each go together, then the second, and so on.

The graph is read and cut once (for each seed of partition or split). A run has a process of its
own, whose memory is the run's. Runs are in DIR/runs/METHOD/seed-S; those that are there are kept,
so the same command goes on after Ctrl-C. A run that was stopped counts with the bytes of one
start; where these are not known (batches that fetch rows, links, messages.skip, trainers on their
own) it begins anew. Beside them: compare.json, compare.csv (a row a run),
compare.md and compare.tex (means), and as figures compare.svg (what each method comes to: metric
against bytes), compare_time.svg and compare_curves.svg.

Example: laconic compare run.toml --runs methods.toml --seeds 5 --out comparison";

/// Arguments of `compare`.
#[derive(Args)]
#[command(after_help = HELP)]
pub struct Compare {
    #[command(flatten)]
    run: RunFile,
    /// The methods: a TOML file, see below
    #[arg(long, value_name = "FILE")]
    runs: PathBuf,
    /// The comparison's folder (otherwise that of the run with -compare at its end)
    #[arg(long, value_name = "DIR", value_parser = folder())]
    out: Option<PathBuf>,
    /// Print bytes and time of every method on links, and run nothing
    #[arg(long)]
    plan: bool,
    /// Seeds 0 to N-1 of training instead of the file's
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Take the time on this link's virtual clock instead of the file's
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// Start even if the workers may need more memory than there is
    #[arg(long)]
    force: bool,
}

/// How one run ended.
enum Ended {
    Done(Box<Recorded>, &'static str),
    Stopped,
}

/// What all runs share.
struct Shared<'a> {
    out: PathBuf,
    signals: Signals,
    force: bool,
    output: &'a Output,
}

/// The folder of parts in that of a comparison while it runs.
const PARTS: &str = ".parts";

/// The graph, cut and split in one way, for the runs that share it.
struct World {
    parts: Vec<Part>,
    /// Where the runs' processes find it: the folder that the data are in, or one that is written when it is needed.
    folder: Option<PathBuf>,
    written: Option<PathBuf>,
}

/// Runs what is missing of the matrix and compares.
pub fn run(arguments: Compare, output: &Output) -> Result<u8> {
    let base = arguments.run.load(output)?;
    let wishes = Wishes { seeds: arguments.seeds, link: arguments.link };
    let matrix = Matrix::load(&arguments.runs, &arguments.run, &base, wishes)?;
    refuse_several_processes(&base)?;
    let out = arguments.out.unwrap_or_else(|| default_folder(&base));
    let out = named(&out).map_err(|source| TrainError::io(&out, source))?;
    let signals = Signals::install(false)?;
    let first = matrix.seeds[0];
    let waiting = output.begins(reading(&base.data));
    let world = World::open(&first.applied(&base))?;
    waiting.end();
    for method in &matrix.methods {
        let resolved = method.config.resolved(world.parts.len() as u32)?;
        Plan::of(&resolved, &world.parts[0].global)
            .and_then(|plan| plan.check_workers(world.parts.len()))
            .map_err(|error| TrainError::config(format!("method {:?}: {}", method.name, bare(&error))))?;
    }
    if arguments.plan {
        let plan = planned::Plan::of(&matrix, &first, &world.parts)?;
        output.result(plan.table(), &plan)?;
        return Ok(0);
    }
    let mut comparison = Comparison::new(&matrix, Graph::of(&world.parts));
    let _lock = prepare(&out, &comparison)?;
    let shared = Shared { out, signals, force: arguments.force, output };
    let ended = shared.run_all(&matrix, (&base, world), &mut comparison);
    // Asked twice, a run ends with an error.
    let recorded = if shared.signals.gave_up() { None } else { ended? };
    let Some(recorded) = recorded else {
        output.say("stopped; the same command goes on where it stopped");
        return Ok(STOPPED);
    };
    figures::write(&shared.out, &comparison, &recorded)?;
    files::write(&shared.out, &comparison)?;
    output.result(table::table(&comparison), &comparison)?;
    output.say(format!("written to {}", shared.out.display()));
    Ok(0)
}

fn default_folder(base: &Config) -> PathBuf {
    let mut name = base.out.dir.file_name().unwrap_or_default().to_owned();
    name.push("-compare");
    base.out.dir.with_file_name(name)
}

/// Makes the folder and takes the right to write into it. One that holds runs on another graph, or a run itself, is
/// left alone.
fn prepare(out: &Path, comparison: &Comparison) -> Result<Lock> {
    if out.join("config.toml").exists() {
        bail!("{} is the folder of a run; name another with --out", out.display());
    }
    if let Some(earlier) = Comparison::read(out)?.filter(|earlier| !earlier.graph.is(&comparison.graph)) {
        let (there, graph) = (&earlier.graph, &comparison.graph);
        if there.digest == graph.digest && there.parts.len() == graph.parts.len() {
            bail!("{} compares runs on another cut of {}; name another with --out", out.display(), graph.dataset);
        }
        bail!(
            "{} compares runs on {} in {} parts (digest {}), these are on {} in {} parts (digest {}); \
             name another with --out",
            out.display(),
            there.dataset,
            there.parts.len(),
            there.digest,
            graph.dataset,
            graph.parts.len(),
            graph.digest
        );
    }
    std::fs::create_dir_all(out).map_err(|source| TrainError::io(out, source))?;
    Ok(Lock::take(out)?)
}

impl World {
    fn open(config: &Config) -> Result<World, TrainError> {
        let source = Source::open(&Members::default(), config, None)?;
        let folder = matches!(source, Source::Folder(..)).then(|| config.data.path.clone());
        Ok(World { parts: source.all()?, folder, written: None })
    }

    /// The folder of its parts, written beside the runs where there is none.
    fn folder(&mut self, out: &Path, config: &Config) -> Result<PathBuf, TrainError> {
        if let Some(folder) = &self.folder {
            return Ok(folder.clone());
        }
        let folder = out.join(PARTS);
        let PartitionConfig { method, seed, .. } = &config.partition;
        write_parts(&folder, &self.parts, &Provenance { method: method.clone(), seed: *seed }, true)?;
        self.written = Some(folder.clone());
        self.folder = Some(folder.clone());
        Ok(folder)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // One that is left by a process that was killed is replaced by the next.
        if let Some(folder) = &self.written {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

impl Shared<'_> {
    /// Every run, with the number of its method; `None` where the user stopped. What is known is written down after
    /// each.
    fn run_all(
        &self,
        matrix: &Matrix,
        (base, mut world): (&Config, World),
        comparison: &mut Comparison,
    ) -> Result<Option<Vec<(usize, Recorded)>>> {
        let total = matrix.seeds.len() * matrix.methods.len();
        let mut all = Vec::with_capacity(total);
        let mut before = matrix.seeds[0];
        // Seed by seed, so that a comparison that is stopped early has something of every method.
        for seeds in &matrix.seeds {
            if !seeds.share_parts(&before) {
                drop(std::mem::replace(&mut world, World { parts: Vec::new(), folder: None, written: None }));
                world = World::open(&seeds.applied(base))?;
            }
            before = *seeds;
            for (index, method) in matrix.methods.iter().enumerate() {
                let ended = self.run_one(method, seeds, &mut world);
                let ended = ended.with_context(|| format!("{}, {seeds}", method.name))?;
                let Ended::Done(recorded, how) = ended else { return Ok(None) };
                comparison.enter(index, *seeds, method.folder(seeds), &recorded);
                comparison.look_at(&world.parts, &recorded);
                comparison.conclude();
                comparison.write(&self.out)?;
                all.push((index, *recorded));
                let said = describe(comparison, index, how);
                self.output.say(format!("[{}/{total}] {}, {seeds}: {said}", all.len(), method.name));
            }
        }
        Ok(Some(all))
    }

    fn run_one(&self, method: &Method, seeds: &Seeds, world: &mut World) -> Result<Ended> {
        let (config, folder) = method.run(&self.out, seeds);
        let found = Found::in_folder(&folder, &config.resolved(world.parts.len() as u32)?, &world.parts);
        let (resume, how) = match found {
            Found::Done(recorded) => return Ok(Ended::Done(recorded, "kept")),
            Found::Begun => (true, "resumed"),
            Found::Nothing => (false, "done"),
        };
        if self.signals.interrupt.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok(Ended::Stopped);
        }
        let name = format!("{}, {seeds}", method.name);
        let parts = world.folder(&self.out, &config)?;
        let task = Task { config, parts, resume, force: self.force, name };
        if !alone::run(&task, &self.signals, self.output)? {
            return Ok(Ended::Stopped);
        }
        Ok(Ended::Done(Box::new(Recorded::read(&folder)?), how))
    }
}

/// The last run of a method in a few words.
fn describe(comparison: &Comparison, index: usize, how: &str) -> String {
    let Some(run) = comparison.methods[index].runs.last() else { return how.to_owned() };
    let metric = comparison.metric.as_deref().unwrap_or("metric");
    let test = run.test.map(|test| format!("{metric} {test:.4}, ")).unwrap_or_default();
    format!("{how}, {test}{}, {:.2} s", human_bytes(run.bytes), run.seconds)
}

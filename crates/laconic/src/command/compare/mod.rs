//! `laconic compare`: methods and seeds on one graph.

pub mod account;
pub mod alone;
mod entry;
pub mod figures;
mod files;
mod front;
mod judged;
mod matrix;
pub mod outcome;
mod paired;
mod paper;
mod planned;
mod runs;
mod seeds;
mod sweep;
mod table;
mod world;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use laconic_graph::part::Part;
use laconic_train::record::claim::Lock;
use laconic_train::{Config, Plan, TrainError};

pub use matrix::methods_of_papers;
pub use outcome::Comparison;
pub use planned::Plan as Planned;
pub use table::p;

use super::place::{folder, named};
use super::signals::{STOPPED, Signals};
use super::train::{RunFile, refuse_several_processes};
use crate::bytes::{human_bytes, plural};
use crate::output::Output;
use crate::recorded::Recorded;
use crate::waiting::reading;
use alone::Task;
use matrix::{Matrix, Method, Wishes, bare};
use outcome::Graph;
use runs::Found;
use seeds::Seeds;
use world::World;

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

The graph is cut once for each seed of partition or split, and for each way that methods set
(set = [\"partition.method=multilevel\"]). A run has a process of its
own, whose memory is the run's. Runs are in DIR/runs/METHOD/seed-S; those that are there are kept,
so the same command goes on after Ctrl-C. A run that was stopped counts with the bytes of one
start; where these are not known (batches that fetch rows, links, messages.skip, trainers on their
own) it begins anew. Beside them: compare.json, compare.csv (a row a run),
compare.md and compare.tex (means), and as figures compare.svg (what each method comes to: metric
against bytes), compare_time.svg and compare_curves.svg.

Examples:
  laconic compare run.toml --runs methods.toml --seeds 6 --out comparison
  laconic compare run.toml --methods standard,RETEXO,AdaQP,VARCO,SuperTMA --plan";

/// Arguments of `compare`.
#[derive(Args)]
#[command(after_help = HELP)]
pub struct Compare {
    #[command(flatten)]
    run: RunFile,
    /// The methods: a TOML file, see below (otherwise those of papers, examples/methods/papers.toml)
    #[arg(long, value_name = "FILE")]
    runs: Option<PathBuf>,
    /// Only these methods of the file; the first is the baseline where the file's is not among them: RETEXO,AdaQP
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    methods: Vec<String>,
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

/// Pairs of runs with which a permutation test can come below 5 %: 2 of 64 signs.
const SEEDS_LEAST: usize = 6;

/// Runs what is missing of the matrix and compares.
pub fn run(arguments: Compare, output: &Output) -> Result<u8> {
    let base = arguments.run.load(output)?;
    let wishes = Wishes { seeds: arguments.seeds, link: arguments.link, methods: arguments.methods };
    let matrix = Matrix::load(arguments.runs.as_deref(), &arguments.run, &base, wishes)?;
    refuse_several_processes(&base)?;
    let out = arguments.out.unwrap_or_else(|| default_folder(&base));
    let out = named(&out).map_err(|source| TrainError::io(&out, source))?;
    let signals = Signals::install(false)?;
    let first = matrix.seeds[0];
    let open = |cut| {
        let waiting = output.begins(reading(&base.data));
        let world = World::open(matrix.cut(&base, &first, cut), cut)?;
        waiting.end();
        check(&matrix, cut, &world.parts)?;
        Ok(world)
    };
    if arguments.plan {
        let plan = planned::Plan::of(&matrix, &first, open)?;
        output.result(plan.table(), &plan)?;
        return Ok(0);
    }
    if matrix.methods.len() > 1 && matrix.seeds.len() < SEEDS_LEAST {
        let (seeds, runs) = (matrix.seeds.len(), SEEDS_LEAST * matrix.methods.len());
        output.say(format!(
            "note: {} show no difference at the level of 5 %, whatever it is: that takes {SEEDS_LEAST}, with --seeds \
             {SEEDS_LEAST} {runs} runs",
            plural(seeds as u64, "seed")
        ));
    }
    let world = open(0)?;
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

/// Checks the methods on one of the cuts.
fn check(matrix: &Matrix, cut: usize, parts: &[Part]) -> Result<(), TrainError> {
    for method in matrix.methods.iter().filter(|method| method.cut == cut) {
        let resolved = method.config.resolved(parts.len() as u32)?;
        Plan::of(&resolved, &parts[0].global)
            .and_then(|plan| plan.check_workers(parts.len()))
            .map_err(|error| TrainError::config(format!("method {:?}: {}", method.name, bare(&error))))?;
    }
    Ok(())
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

impl Shared<'_> {
    /// Every run, with the number of its method; `None` where the user stopped. What is known is written down after
    /// each.
    fn run_all(
        &self,
        matrix: &Matrix,
        (base, world): (&Config, World),
        comparison: &mut Comparison,
    ) -> Result<Option<Vec<(usize, Recorded)>>> {
        let total = matrix.seeds.len() * matrix.methods.len();
        let mut all = Vec::with_capacity(total);
        let mut before = matrix.seeds[0];
        let mut worlds = vec![world];
        // Seed by seed, so that a comparison that is stopped early has something of every method.
        for seeds in &matrix.seeds {
            if !seeds.share_parts(&before) {
                worlds.clear();
            }
            before = *seeds;
            // All of them before the first run, so that the last method fails no later than the first.
            for cut in worlds.len()..matrix.cuts.len() {
                worlds.iter_mut().try_for_each(|world| world.set_aside(&self.out))?;
                let waiting = self.output.begins(reading(&base.data));
                let world = World::open(matrix.cut(base, seeds, cut), cut)?;
                waiting.end();
                check(matrix, cut, &world.parts)?;
                worlds.push(world);
            }
            for (index, method) in matrix.methods.iter().enumerate() {
                let others = worlds.iter_mut().enumerate().filter(|(cut, _)| *cut != method.cut);
                others.map(|(_, world)| world).try_for_each(|world| world.set_aside(&self.out))?;
                let world = &mut worlds[method.cut];
                world.take_up()?;
                let ended = self.run_one(method, seeds, world);
                let ended = ended.with_context(|| format!("{}, {seeds}", method.name))?;
                let Ended::Done(recorded, how) = ended else { return Ok(None) };
                comparison.enter(index, (*seeds, Some(world.edge_cut)), method.folder(seeds), &recorded);
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
        let parts = world.folder(&self.out)?;
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

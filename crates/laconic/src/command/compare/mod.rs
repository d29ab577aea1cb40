//! `laconic compare`: methods and seeds on one graph and one partition.

pub mod figures;
mod front;
mod matrix;
pub mod outcome;
mod runs;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use laconic_graph::part::Part;
use laconic_train::record::claim::Lock;
use laconic_train::run::source::Source;
use laconic_train::{Config, Members, Options, Plan, TrainError, train};

pub use outcome::Comparison;

use super::place::{folder, named};
use super::signals::{STOPPED, Signals};
use super::train::{RunFile, refuse_several_processes};
use crate::bytes::human_bytes;
use crate::output::Output;
use crate::progress::Progress;
use crate::recorded::Recorded;
use matrix::{Matrix, Method, Wishes, bare};
use outcome::Graph;
use runs::Found;

const HELP: &str = "\
FILE lists the methods:
  seeds = [0, 1, 2]              # otherwise 0 alone
  link = \"wan-100mbit-40ms\"      # otherwise transport.shape of the run, otherwise real time
  [[method]]
  name = \"synchronous\"
  set = [\"schedule.kind=synchronous\"]
  [[method]]
  name = \"lazy, from scores\"
  set = [\"schedule.kind=lazy\", \"schedule.start=mlp\"]

The graph is read and cut once. Runs are in DIR/runs/METHOD/seed-S; those that are there are kept,
so the same command goes on after Ctrl-C. Beside them: compare.json, and as figures compare.svg (what
each method comes to: metric against bytes), compare_time.svg and compare_curves.svg.

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
    /// Seeds 0 to N-1 instead of the file's
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
    parts: Vec<Part>,
    out: PathBuf,
    signals: Signals,
    force: bool,
    output: &'a Output,
}

/// Runs what is missing of the matrix and compares.
pub fn run(arguments: Compare, output: &Output) -> Result<u8> {
    let base = arguments.run.load()?;
    let wishes = Wishes { seeds: arguments.seeds, link: arguments.link };
    let matrix = Matrix::load(&arguments.runs, &arguments.run, &base, wishes)?;
    refuse_several_processes(&base)?;
    let out = arguments.out.unwrap_or_else(|| default_folder(&base));
    let out = named(&out).map_err(|source| TrainError::io(&out, source))?;
    let signals = Signals::install(false)?;
    let parts = Source::open(&Members::default(), &base, None)?.all()?;
    for method in &matrix.methods {
        let resolved = method.config.resolved(parts.len() as u32)?;
        Plan::of(&resolved, &parts[0].global)
            .and_then(|plan| plan.check_workers(parts.len()))
            .map_err(|error| TrainError::config(format!("method {:?}: {}", method.name, bare(&error))))?;
    }
    let mut comparison = Comparison::new(&matrix, Graph::of(&parts));
    let _lock = prepare(&out, &comparison)?;
    let shared = Shared { parts, out, signals, force: arguments.force, output };
    let ended = shared.run_all(&matrix, &mut comparison);
    // Asked twice, a run ends with an error.
    let recorded = if shared.signals.gave_up() { None } else { ended? };
    let Some(recorded) = recorded else {
        output.say("stopped; the same command goes on where it stopped");
        return Ok(STOPPED);
    };
    figures::write(&shared.out, &comparison, &recorded)?;
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
    if let Some(earlier) = Comparison::read(out)?.filter(|earlier| earlier.graph != comparison.graph) {
        let (there, graph) = (&earlier.graph, &comparison.graph);
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
    fn run_all(&self, matrix: &Matrix, comparison: &mut Comparison) -> Result<Option<Vec<(usize, Recorded)>>> {
        let total = matrix.seeds.len() * matrix.methods.len();
        let mut all = Vec::with_capacity(total);
        // Seed by seed, so that a comparison that is stopped early has something of every method.
        for &seed in &matrix.seeds {
            for (index, method) in matrix.methods.iter().enumerate() {
                let ended = self.run_one(method, seed).with_context(|| format!("{}, seed {seed}", method.name))?;
                let Ended::Done(recorded, how) = ended else { return Ok(None) };
                comparison.enter(index, seed, method.folder(seed), &recorded);
                comparison.conclude();
                comparison.write(&self.out)?;
                all.push((index, *recorded));
                let said = describe(comparison, index, how);
                self.output.say(format!("[{}/{total}] {}, seed {seed}: {said}", all.len(), method.name));
            }
        }
        Ok(Some(all))
    }

    fn run_one(&self, method: &Method, seed: u64) -> Result<Ended> {
        let (config, folder) = method.run(&self.out, seed);
        let found = Found::in_folder(&folder, &config.resolved(self.parts.len() as u32)?, &self.parts);
        let (resume, how) = match found {
            Found::Done(recorded) => return Ok(Ended::Done(recorded, "kept")),
            Found::Begun => (true, "resumed"),
            Found::Nothing => (false, "done"),
        };
        let interrupt = self.signals.interrupt.clone();
        if interrupt.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok(Ended::Stopped);
        }
        let observer = Box::new(Progress::bar_only(self.output, format!("{}, seed {seed}", method.name)));
        let abort = self.signals.abort.clone();
        let out = Some(folder.clone());
        let force = self.force;
        let options = Options { out, resume, interrupt, abort, observer, force, ..Options::default() };
        if train(&config, self.parts.clone(), options)?.summary.interrupted {
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

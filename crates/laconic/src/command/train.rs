//! `laconic train`, `laconic resume`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use laconic_train::config::TransportKind;
use laconic_train::plan::Resumed;
use laconic_train::run::Data;
use laconic_train::run::launcher::{Launcher, Started};
use laconic_train::run::source::is_part_folder;
use laconic_train::{Config, Members, Options, Summary, TrainError};

use super::auto;
use super::ended::describe;
use super::mistaken::in_place_of_a_configuration;
use super::place::{folder, named};
use super::processes::{self, Task};
use super::signals::{STOPPED, Signals};
use crate::output::Output;
use crate::progress::Progress;
use crate::waiting::{Waiting, reading};

/// Arguments of every command that reads a configuration.
#[derive(Args)]
pub struct RunFile {
    /// The configuration: one TOML file is one run
    #[arg(value_name = "RUN.toml")]
    pub file: PathBuf,
    /// Override a key, as in --set model.arch=gcn; `laconic keys` lists them, and which members read them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Leave a key or section of the file out, as if it were not there, before --set is applied
    #[arg(long = "unset", value_name = "KEY")]
    pub unset: Vec<String>,
}

impl RunFile {
    /// All overrides, in the order in which they apply.
    pub fn overrides(&self) -> Vec<String> {
        self.unset.iter().map(|key| format!("!{key}")).chain(self.set.iter().cloned()).collect()
    }

    /// The configuration with its overrides; says where files were found that are not where they were named.
    pub fn load(&self, output: &Output) -> Result<Config> {
        let loaded = Members::default().load_and_tell(&self.file, &self.overrides());
        let (config, told) = loaded.map_err(|error| in_place_of_a_configuration(&self.file, error))?;
        refuse_no_rounds(&config)?;
        told.iter().for_each(|line| output.say(format_args!("note: {line}")));
        if is_one_part_unasked(&config) {
            let what = "so one worker learns from the whole graph and nothing crosses; --set partition.parts=4";
            output.say(format_args!("note: partition.parts is not set, {what} cuts it"));
        }
        Ok(config)
    }
}

/// Whether a run has one part since nothing says how many, though it says how parts are to be made or exchange.
fn is_one_part_unasked(config: &Config) -> bool {
    let Config { data, partition, schedule, messages, transport, .. } = config;
    let usual = Config::default();
    let is_said = partition.parts > 0 || data.part.is_some() || is_part_folder(&data.path);
    let is_decided =
        is_said || transport.kind == TransportKind::Mpi || partition.file.is_some() || partition.column.is_some();
    let asks = *schedule != usual.schedule || *messages != usual.messages || *partition != usual.partition;
    !is_decided && (asks || *transport != usual.transport)
}

/// Refuses a run of no round, whose figures would be nobody's. For a program that uses the library it is a way to see
/// the values that a model begins with.
fn refuse_no_rounds(config: &Config) -> Result<()> {
    if config.train.epochs > 0 || config.schedule.rounds.iter().any(|&rounds| rounds > 0) {
        return Ok(());
    }
    Err(TrainError::config("train.epochs = 0: expected 1 or more; without a round nothing is learned").into())
}

/// Arguments of `train`.
#[derive(Args)]
#[command(after_help = "Example: laconic train run.toml --set model.arch=gcn --set partition.parts=4 --out runs/gcn\n\
    Each worker a process: laconic train run.toml --set transport.kind=processes\n\
    Under MPI: mpirun -n 4 laconic train run.toml --set transport.kind=mpi\n\
    `laconic keys` lists all keys, `laconic keys WORD` those with a word.")]
pub struct Train {
    #[command(flatten)]
    run: RunFile,
    /// The run's folder (otherwise out.dir, otherwise runs/NAME); an earlier run there is moved aside
    #[arg(long, value_parser = folder())]
    out: Option<PathBuf>,
    /// Start even if the workers may need more memory than there is
    #[arg(long)]
    force: bool,
}

/// Arguments of `resume`.
#[derive(Args)]
#[command(after_help = "Example: laconic resume runs/gcn\n\
    With other workers: laconic resume runs/gcn --workers 2\n\
    Over other parts: laconic resume runs/gcn --workers 2 --set data.path=parts-2")]
pub struct Resume {
    /// The run's folder
    dir: PathBuf,
    /// Go on with another value from here: keys that decide the rounds to come (train.epochs, train.lr, …) or concern
    /// this machine (data.path, transport.deadline_s, …); config.toml then says so
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Go on with so many workers, where none remembers what no other knows: the same as --set partition.parts=N; data
    /// that are cut already are needed in so many parts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    workers: Option<u32>,
    /// Start even if the workers may need more memory than there is
    #[arg(long)]
    force: bool,
}

/// Trains as the file says and writes the run's folder.
pub fn train(arguments: Train, output: &Output) -> Result<u8> {
    let mut config = arguments.run.load(output)?;
    if let Some(out) = arguments.out {
        config.out.dir = out;
    }
    config.out.dir = named(&config.out.dir).map_err(|source| TrainError::io(&config.out.dir, source))?;
    refuse_several_processes(&config)?;
    match config.is_several() {
        true => auto::run(&config, arguments.force, output),
        false => start(&config, None, (arguments.force, output)),
    }
}

/// Goes on from the last checkpoint.
pub fn resume(mut arguments: Resume, output: &Output) -> Result<u8> {
    arguments.set.extend(arguments.workers.map(|workers| format!("partition.parts={workers}")));
    let resumed = Members::default().resumed(&arguments.dir, &arguments.set);
    let resumed = resumed.with_context(|| format!("{} cannot go on", arguments.dir.display()))?;
    let Resumed { config, changes, kept_horizon } = resumed;
    refuse_no_rounds(&config)?;
    refuse_several_processes(&config)?;
    if let Some(ends) = kept_horizon {
        let ends: Vec<String> = ends.iter().map(ToString::to_string).collect();
        let what = "train.lr_schedule and ramps of messages run towards the end that they had, and stay there";
        output
            .say(format!("{what}: train.horizon={ends:?}; with --set train.horizon=[] they run to the new end, anew"));
    }
    start(&config, Some(changes), (arguments.force, output))
}

/// Refuses a whole run in each of several processes that were started together: they would share a folder.
pub fn refuse_several_processes(config: &Config) -> Result<()> {
    match Launcher::of_this_process().several() {
        Some(Started { variable, .. }) if config.transport.kind != TransportKind::Mpi => {
            let what = "this is one of several processes that were started together";
            let hint = "with --set transport.kind=mpi they are the workers of one run";
            Err(TrainError::config(format!("{what} ({variable}), and each would be a run of its own; {hint}")).into())
        }
        _ => Ok(()),
    }
}

/// Runs, and goes on from the folder's checkpoint where keys are given that may differ from it.
fn start(config: &Config, goes_on: Option<Vec<String>>, (force, output): (bool, &Output)) -> Result<u8> {
    let out = config.out.dir.as_path();
    let signals = Signals::install(config.transport.kind == TransportKind::Mpi)?;
    let waiting = match config.transport.kind {
        // Every process of a job would say so; of those that are started here the first does.
        TransportKind::Mpi | TransportKind::Processes => Waiting::nothing(),
        TransportKind::Threads | TransportKind::Simulated => output.begins(reading(&config.data)),
    };
    let task = Task { config: config.clone(), goes_on, force };
    let options = task.options(&signals, Progress::new(output, waiting));
    let ended = match config.transport.kind {
        TransportKind::Mpi => mpi(config, options),
        TransportKind::Processes => processes::run(&task, &signals, output).map(Some),
        TransportKind::Threads | TransportKind::Simulated => {
            let run = laconic_train::train(config, Data::Configured, options);
            run.map(|run| Some(run.summary)).map_err(anyhow::Error::from)
        }
    };
    if ended.is_err() && signals.gave_up() {
        output.say("stopped at once; a checkpoint, if there is one, is as old as its round");
        return Ok(STOPPED);
    }
    let Some(summary) = ended? else {
        // Another process reports.
        return Ok(0);
    };
    output.result(describe(&summary, out), &summary)?;
    Ok(if summary.interrupted { STOPPED } else { 0 })
}

#[cfg(feature = "mpi")]
fn mpi(config: &Config, options: Options) -> Result<Option<Summary>> {
    Ok(laconic_train::run::run_mpi(config, options)?.summary)
}

#[cfg(not(feature = "mpi"))]
fn mpi(_config: &Config, _options: Options) -> Result<Option<Summary>> {
    let what = "transport.kind = \"mpi\": this program was built without MPI; build it with --features mpi";
    Err(TrainError::config(what).into())
}

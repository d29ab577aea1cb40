//! The commands.

mod auto;
pub mod bench;
mod child;
pub mod compare;
pub mod data;
pub mod demo;
mod ended;
pub mod export;
pub mod keys;
mod ladder;
mod mistaken;
pub mod part;
pub mod partition;
mod place;
pub mod plan;
pub mod predict;
pub mod processes;
pub mod report;
mod schema;
mod shell;
mod signals;
#[cfg(feature = "sites")]
pub mod sites;
mod stopped;
pub mod train;
pub mod verify;

use anyhow::Result;
use clap::Subcommand;

use crate::output::Output;

pub use child::Failure;
pub use signals::STOPPED;

/// What the program can do.
#[derive(Subcommand)]
pub enum Command {
    /// See the point in under two minutes: the baseline against ours on a generated graph
    Demo(demo::Demo),
    /// Look at, check, convert and generate data
    #[command(subcommand)]
    Data(data::Data),
    /// Cut a graph into parts
    Partition(Box<partition::Partition>),
    /// Build one site's part of a graph that nobody has as a whole
    #[command(subcommand)]
    Part(part::Part),
    /// Predict bytes, memory and time of a run before anything runs
    Plan(plan::Plan),
    /// Train as one TOML file says
    Train(train::Train),
    /// Go on from a run's last checkpoint, bit for bit; independent trainers from their last mean
    Resume(train::Resume),
    /// Train on one worker and on several and compare
    Verify(verify::Verify),
    /// Compare methods over seeds on one graph: figures, bytes, seconds, and what nothing beats
    Compare(compare::Compare),
    /// One run of a comparison, in a process of its own
    #[command(name = compare::alone::COMMAND, hide = true)]
    CompareRun,
    /// One worker of a run, in a process of its own
    #[command(name = processes::COMMAND, hide = true)]
    Worker,
    /// Measure this machine, and what the program makes of it
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Write one HTML page about one or several runs
    Report(report::Report),
    /// Predict every node with a trained model
    Predict(predict::Predict),
    /// Write a trained model for other programs
    Export(export::Export),
    /// Make a site's key and card
    #[cfg(feature = "sites")]
    #[command(subcommand)]
    Site(sites::init::Site),
    /// Write the contract that all sites of a run join
    #[cfg(feature = "sites")]
    Agree(sites::agree::Agree),
    /// Take part in a run as one site of several
    #[cfg(feature = "sites")]
    Join(Box<sites::join::Join>),
    /// Check the logs of sites against each other
    #[cfg(feature = "sites")]
    Audit(sites::audit::Audit),
    /// Write and check what may leave this site
    #[cfg(feature = "sites")]
    #[command(subcommand)]
    Policy(sites::policy::PolicyCommand),
    /// List every key of a configuration; or those with a word, and members and links by name
    Keys(keys::Keys),
    /// List the documents that --json prints; or print the JSON schema of one
    Schema(schema::Schema),
    /// Print what a shell needs to complete this program's commands and options
    Completions(shell::Completions),
    /// Print the manual page, or write one for each command
    Man(shell::Man),
}

/// Runs a command; the exit code is 0 unless a check did not pass.
pub fn run(command: Command, output: &Output) -> Result<u8> {
    match command {
        Command::Demo(arguments) => demo::run(arguments, output),
        Command::Data(data) => data::run(data, output),
        Command::Partition(partition) => partition::run(*partition, output),
        Command::Part(part) => part::run(part, output),
        Command::Plan(arguments) => plan::plan(arguments, output),
        Command::Train(arguments) => train::train(arguments, output),
        Command::Resume(arguments) => train::resume(arguments, output),
        Command::Verify(arguments) => verify::run(arguments, output),
        Command::Compare(arguments) => compare::run(arguments, output),
        Command::CompareRun => compare::alone::child(output),
        Command::Worker => processes::worker(output),
        Command::Bench(bench) => bench::run(bench, output),
        Command::Report(arguments) => report::run(arguments, output),
        Command::Predict(arguments) => predict::run(arguments, output),
        Command::Export(arguments) => export::run(arguments, output),
        #[cfg(feature = "sites")]
        Command::Site(command) => sites::init::run(command, output),
        #[cfg(feature = "sites")]
        Command::Agree(arguments) => sites::agree::run(arguments, output),
        #[cfg(feature = "sites")]
        Command::Join(arguments) => sites::join::run(*arguments, output),
        #[cfg(feature = "sites")]
        Command::Audit(arguments) => sites::audit::run(arguments, output),
        #[cfg(feature = "sites")]
        Command::Policy(command) => sites::policy::run(command, output),
        Command::Keys(arguments) => keys::run(arguments, output),
        Command::Schema(arguments) => schema::run(arguments, output),
        Command::Completions(arguments) => shell::completions(&arguments, output),
        Command::Man(arguments) => shell::man(&arguments, output),
    }
}

/// Before anything else, and before there is a second thread.
pub fn begin() {
    laconic_graph::memory::share_heap_where_limited();
    #[cfg(feature = "mpi")]
    laconic_train::run::prepare_mpi();
}

/// After an error: ends the other processes of the same MPI job too, so that none waits for this one.
pub fn give_up(_code: u8) {
    #[cfg(feature = "mpi")]
    laconic_train::run::abort_mpi(_code);
}

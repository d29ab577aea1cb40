//! `laconic`: the command line. Each command is one file under `command`; this file parses, dispatches and maps errors
//! to exit codes.
//!
//! A library, so that the program can also be started from another language's: the Python package's script is [`run`].
//! Whoever trains from Rust uses the crate `laconic-train`.

mod bytes;
mod command;
mod learned;
mod output;
mod page;
mod plot;
mod progress;
mod recorded;
mod sign;
mod typed;
mod usage;
mod visible;
mod waiting;

use std::error::Error;
use std::ffi::OsString;
use std::time::Duration;

use clap::Parser;

use laconic_nn::kernels::dispatch::Instructions;
use laconic_train::TrainError;

use command::{Command, STOPPED};

/// The exit code of a command line or configuration that cannot be used.
const USAGE: u8 = 2;

/// Train graph neural networks on graphs that live in several places, saying as little as possible over the network.
#[derive(Parser)]
#[command(name = "laconic", version = version(), after_help = EXIT_CODES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print the result as JSON on standard output, and an error as JSON too
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,
    /// Say nothing on standard error but errors
    #[arg(long, short, global = true, help_heading = "Output")]
    quiet: bool,
    /// Seconds between two lines about something long where standard error is no terminal
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 4.0, value_parser = seconds,
        help_heading = "Output")]
    log_every: f64,
}

/// Version, commit where it is known, and features.
fn version() -> String {
    let commit = option_env!("LACONIC_COMMIT");
    let mpi = cfg!(feature = "mpi").then_some("mpi");
    let about: Vec<&str> = commit.into_iter().chain(mpi).collect();
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
    format!("{}{about}", env!("CARGO_PKG_VERSION"))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=1e6).contains(seconds));
    seconds.ok_or_else(|| "expected 0 to 1000000 seconds".to_owned())
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a check did not pass (data check, verify)
  2    the command line or the configuration cannot be used
  3    the data cannot be used
  4    a worker did not answer, or failed
  5    a file of a run cannot be read or written
  6    training diverged
  7    something was to be sent that [policy] keeps back
  70   an error of this program
  130  stopped by the user; what trained has written a checkpoint, unless it was told twice";

/// Runs the program with the words of its command line, its own name left out, and returns its exit code. `again` are
/// the words that start this program once more, for workers in processes of their own; without them it is this
/// process's program.
pub fn run(words: Vec<OsString>, again: Option<Vec<OsString>>) -> u8 {
    typed::began(words.clone(), again);
    command::begin();
    let spoken: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let line = std::iter::once(OsString::from("laconic")).chain(words);
    let Cli { command, json, quiet, log_every } = match Cli::try_parse_from(line) {
        Ok(cli) => cli,
        Err(error) => return usage::refuse(&error, &spoken),
    };
    let output = output::Output::new(json, quiet, Duration::from_secs_f64(log_every));
    // Where the system grants no threads, whoever needed them first would panic. An error without a source says that
    // they are there already: this process has trained before.
    let pool = rayon::ThreadPoolBuilder::new().build_global();
    let pool = pool.or_else(|error| if error.source().is_some() { Err(error) } else { Ok(()) });
    let pool = pool.map_err(|error| anyhow::Error::from(std::io::Error::other(format!("threads: {error}"))));
    let asked = Instructions::asked_for().map_err(|what| anyhow::Error::from(TrainError::config(what)));
    match asked.and(pool).and_then(|()| command::run(command, &output)) {
        Ok(code) => {
            if code == STOPPED {
                output.no_result((code, "stopped"), "stopped by the user");
            }
            code
        }
        Err(error) => {
            if is_broken_pipe(&error) {
                // Whoever read our output has seen enough, as in `laconic … | head`.
                return 0;
            }
            let (code, kind) = class(&error);
            output.failed((code, kind), &message(&error));
            command::give_up(code);
            code
        }
    }
}

/// The error and its causes, each once: many causes are part of their effect's own text.
fn message(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

/// The exit code of an error, and what kind of error that is.
fn class(error: &anyhow::Error) -> (u8, &'static str) {
    let trained = error.downcast_ref::<laconic_train::TrainError>().map(laconic_train::TrainError::exit_code);
    let trained = trained.or(error.downcast_ref::<command::Failure>().map(|failure| failure.code));
    let code = match trained {
        Some(code) => code,
        None if error.is::<laconic_graph::error::GraphError>() => 3,
        None if error.is::<std::io::Error>() => 5,
        None => USAGE,
    };
    let kind = match code {
        USAGE if trained.is_some() => "configuration",
        USAGE => "usage",
        3 => "data",
        4 => "network",
        5 => "file",
        6 => "divergence",
        7 => "policy",
        _ => "program",
    };
    (code, kind)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = Some(std::io::ErrorKind::BrokenPipe);
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        io.or(cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind)) == broken
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::Cli;

    /// What clap looks for itself where it is built with checks, which releases are not.
    #[test]
    fn no_command_has_two_arguments_of_one_name() {
        let mut all = Cli::command();
        all.build();
        let mut left: Vec<&clap::Command> = vec![&all];
        while let Some(command) = left.pop() {
            left.extend(command.get_subcommands());
            let (mut ids, mut flags) = (BTreeSet::new(), BTreeSet::new());
            for argument in command.get_arguments() {
                let (id, flag) = (argument.get_id().as_str(), argument.get_long().unwrap_or_default());
                assert!(ids.insert(id), "{}: two arguments {id}", command.get_name());
                assert!(flag.is_empty() || flags.insert(flag), "{}: two flags --{flag}", command.get_name());
            }
        }
    }
}

//! `laconic`: the command line. Each command is one file under `command`; this file parses, dispatches and maps errors
//! to exit codes.

mod bytes;
mod command;
mod output;
mod plot;
mod progress;
mod recorded;
mod typed;
mod usage;
mod visible;

use std::process::ExitCode;

use clap::Parser;

use command::Command;

/// Train graph neural networks on graphs that live in several places, saying as little as possible over the network.
#[derive(Parser)]
#[command(name = "laconic", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print the result as JSON on standard output
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,
    /// Say nothing on standard error but errors
    #[arg(long, short, global = true, help_heading = "Output")]
    quiet: bool,
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
  70   an error of this program
  130  stopped by the user; what trained has written a checkpoint, unless it was told twice";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let Cli { command, json, quiet } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => match usage::explain(&error, &words) {
            Some(text) => {
                eprintln!("laconic: {}", visible::visible(&text));
                return ExitCode::from(2);
            }
            None => error.exit(),
        },
    };
    let output = output::Output::new(json, quiet);
    // Where the system grants no threads, whoever needed them first would panic.
    let pool = rayon::ThreadPoolBuilder::new().build_global();
    let pool = pool.map_err(|error| anyhow::Error::from(std::io::Error::other(format!("threads: {error}"))));
    match pool.and_then(|()| command::run(command, &output)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            if is_broken_pipe(&error) {
                // Whoever read our output has seen enough, as in `laconic … | head`.
                return ExitCode::SUCCESS;
            }
            eprintln!("laconic: {}", visible::visible(&message(&error)));
            let code = exit_code(&error);
            command::give_up(code);
            ExitCode::from(code)
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

fn exit_code(error: &anyhow::Error) -> u8 {
    if let Some(error) = error.downcast_ref::<laconic_train::TrainError>() {
        return error.exit_code();
    }
    if let Some(failure) = error.downcast_ref::<command::compare::alone::Failure>() {
        return failure.code;
    }
    if error.is::<laconic_graph::error::GraphError>() {
        return 3;
    }
    if error.is::<std::io::Error>() { 5 } else { 2 }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = Some(std::io::ErrorKind::BrokenPipe);
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        io.or(cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind)) == broken
    })
}

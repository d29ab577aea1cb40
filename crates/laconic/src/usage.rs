//! Command lines that cannot be read: what to say where a key of the configuration stands among the options.

use std::time::Duration;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use laconic_train::config::{KEYS, Meant, meant};

use crate::output::Output;
use crate::{Cli, USAGE};

/// Says what is wrong with a command line, or what was asked of it in place of work, such as its help; the exit code.
pub fn refuse(error: &clap::Error, words: &[String]) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Whoever reads it may have seen enough.
        let _ = error.print();
        return 0;
    }
    let is_json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    let output = Output::new(is_json, false, Duration::ZERO);
    let explained = explain(error, words);
    match &explained {
        Some(text) => output.failed((USAGE, "usage"), text),
        None => {
            // In colours, and with the usage below, as the parser shows it.
            let _ = error.print();
            let text = error.to_string();
            output.no_result((USAGE, "usage"), text.strip_prefix("error: ").unwrap_or(&text).trim_end());
        }
    }
    USAGE
}

/// What is to be said of this error instead of what the parser says, where an argument is a key of the configuration
/// and the command reads one.
fn explain(error: &clap::Error, words: &[String]) -> Option<String> {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument || !takes_keys(words) {
        return None;
    }
    match given.strip_prefix("--") {
        Some(name) => option(name.split('=').next().unwrap_or(name), error, words),
        None => bare(given, words),
    }
}

/// Whether the command that these words name has `--set`.
fn takes_keys(words: &[String]) -> bool {
    let cli = Cli::command();
    let command = words.iter().find_map(|word| cli.find_subcommand(word));
    command.is_some_and(|command| command.get_arguments().any(|argument| argument.get_long() == Some("set")))
}

/// `--epochs 5`
fn option(name: &str, error: &clap::Error, words: &[String]) -> Option<String> {
    let flag = format!("--{name}");
    let plain = name.to_lowercase().replace('-', "_");
    let is_key = KEYS.iter().any(|k| k.key == plain || k.key.split('.').next_back() == Some(&plain));
    let keys = match meant(name)? {
        Meant::Absent(why) => return Some(format!("there is no {flag}: {why}")),
        // What is like an option of the command is more probably that.
        Meant::Keys(_) if !is_key && error.get(ContextKind::SuggestedArg).is_some() => return None,
        Meant::Keys(_) if KEYS.iter().any(|k| k.key == plain) => vec![plain.as_str()],
        Meant::Keys(keys) => keys,
    };
    let at = words.iter().position(|word| *word == flag || word.starts_with(&format!("{flag}=")))?;
    let value = match words[at].split_once('=') {
        Some((_, value)) => Some(value),
        None => words.get(at + 1).map(String::as_str).filter(|next| !next.starts_with('-')),
    };
    let set: Vec<String> = keys.iter().map(|key| format!("--set {key}={}", value.unwrap_or("VALUE"))).collect();
    Some(format!("{flag} is a key of the configuration and no option; say {}", set.join(" or ")))
}

/// `train.epochs=5` without `--set`, or the second half of a table that the shell has taken apart.
fn bare(given: &str, words: &[String]) -> Option<String> {
    let (key, value) = given.split_once('=')?;
    let known = |key: &str| KEYS.iter().any(|k| k.key == key || key.starts_with(&format!("{}.", k.key)));
    let at = words.iter().position(|word| word == given)?;
    let before = at.checked_sub(1).map(|at| words[at].as_str()).unwrap_or_default();
    if known(key) && before.split_once('=').is_some_and(|(other, _)| other == key) {
        let table = format!("--set '{key}={{{},{value}}}'", before.split_once('=')?.1);
        return Some(format!(
            "the shell has made several words of one with braces; put it in single quotes, as in {table}"
        ));
    }
    let keys = match meant(key) {
        _ if known(key) => vec![key],
        Some(Meant::Keys(keys)) => keys,
        Some(Meant::Absent(why)) => return Some(format!("{given}: {why}")),
        None => return None,
    };
    let set: Vec<String> = keys.iter().map(|key| format!("--set {key}={value}")).collect();
    Some(format!("{given}: a key of the configuration is set with {}", set.join(" or ")))
}

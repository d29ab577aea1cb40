//! `laconic completions`, `laconic man`: what shells and manuals have to know of the command line.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use laconic_train::TrainError;
use laconic_train::record::aside::write_aside;
use schemars::JsonSchema;
use serde::Serialize;

use super::place::folder;
use crate::Cli;
use crate::output::Output;

/// Arguments of `completions`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  laconic completions bash > ~/.local/share/bash-completion/completions/laconic\n  \
    laconic completions fish > ~/.config/fish/completions/laconic.fish"
)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Args)]
#[command(after_help = "Examples:\n  laconic man | man -l -\n  laconic man --out ~/.local/share/man/man1")]
pub struct Man {
    /// Write a page for each command into this folder instead of one for the program on standard output
    #[arg(long, value_name = "DIR", value_parser = folder())]
    out: Option<PathBuf>,
}

/// The pages that were written.
#[derive(Serialize, JsonSchema)]
pub struct Written {
    /// The pages.
    files: Vec<PathBuf>,
}

/// The script or page, as one text.
#[derive(Serialize, JsonSchema)]
pub struct Text {
    /// The script or page.
    text: String,
}

/// Prints the script.
pub fn completions(arguments: &Completions, output: &Output) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "laconic", &mut script);
    print(script, output)
}

/// Prints or writes the pages.
pub fn man(arguments: &Man, output: &Output) -> Result<u8> {
    let Some(out) = &arguments.out else { return print(page(Cli::command())?, output) };
    let is_new = !out.exists();
    std::fs::create_dir_all(out).map_err(|source| TrainError::io(out, source))?;
    let mut root = Cli::command();
    root.build();
    let mut files = Vec::new();
    let written = write_pages(&root, "laconic", out, &mut files);
    if written.is_err() && is_new {
        // Some pages are of no use without the others.
        let _ = std::fs::remove_dir_all(out);
    }
    written?;
    let text = format!("{} pages in {}", files.len(), out.display());
    output.result(text, &Written { files })?;
    Ok(0)
}

/// The page of a command, and those of its own commands.
fn write_pages(command: &clap::Command, name: &str, out: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let path = out.join(format!("{name}.1"));
    write_aside(&path, &page(command.clone().name(name.to_owned()))?)?;
    files.push(path);
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help" && !inner.is_hide_set()) {
        write_pages(inner, &format!("{name}-{}", inner.get_name()), out, files)?;
    }
    Ok(())
}

fn page(command: clap::Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}

fn print(text: Vec<u8>, output: &Output) -> Result<u8> {
    let text = String::from_utf8(text).expect("names and help are text");
    output.result(text.trim_end(), &Text { text: text.clone() })?;
    Ok(0)
}

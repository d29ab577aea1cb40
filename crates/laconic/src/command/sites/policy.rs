//! `laconic policy new`, `laconic policy check`

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use laconic_federation::{Contract, Policy, Time};
use laconic_train::TrainError;
use serde::Serialize;

use super::unusable;
use super::vocabulary::Names;
use crate::output::Output;

/// What a site does with its policy.
#[derive(Subcommand)]
pub enum PolicyCommand {
    /// Write a commented policy that allows means of models and nothing of single nodes
    New {
        /// The file to write
        #[arg(default_value = "policy.toml")]
        file: PathBuf,
    },
    /// Read a policy, and say whether a contract's run is one that it admits
    Check {
        /// The policy
        file: PathBuf,
        /// The contract
        contract: Option<PathBuf>,
    },
}

/// What was found.
#[derive(Serialize)]
struct Found {
    policy: PathBuf,
    digest: String,
    strangers: Vec<String>,
}

/// Writes or reads a policy.
pub fn run(command: PolicyCommand, output: &Output) -> Result<u8> {
    let names = Names::all();
    match command {
        PolicyCommand::New { file } => {
            let text = names.lend(Policy::template);
            write_new(&file, &text)?;
            let policy = names.lend(|vocabulary| Policy::read(&file, vocabulary)).map_err(unusable)?;
            let said = format!("{}: change it as your site needs it", file.display());
            output.result(said, &Found { policy: file, digest: policy.digest().to_string(), strangers: Vec::new() })?;
        }
        PolicyCommand::Check { file, contract } => {
            let policy = names.lend(|vocabulary| Policy::read(&file, vocabulary)).map_err(unusable)?;
            let mut strangers = Vec::new();
            if let Some(contract) = contract {
                let contract = Contract::read(contract).map_err(unusable)?;
                policy.admits(&contract.terms().run, Time::now().date()).map_err(unusable)?;
                strangers = policy.strangers(&contract).into_iter().map(str::to_owned).collect();
            }
            let mut said = format!("{}: sound ({})", file.display(), policy.digest().short());
            if !strangers.is_empty() {
                said += &format!("\nnote: no site of the contract is called {}", strangers.join(", "));
            }
            output.result(said, &Found { policy: file, digest: policy.digest().to_string(), strangers })?;
        }
    }
    Ok(0)
}

/// Writes a file that is not there yet.
fn write_new(path: &std::path::Path, text: &str) -> Result<()> {
    use std::io::Write;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    Ok(written.map_err(|source| TrainError::io(path, source))?)
}

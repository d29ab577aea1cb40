//! `laconic audit`

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use laconic_federation::{Contract, Report, Way, audit};
use laconic_train::TrainError;
use serde::Serialize;

use super::unusable;
use super::vocabulary::Names;
use crate::output::Output;

/// The exit code of a check that did not pass.
const FAILED: u8 = 1;

/// Arguments of `audit`.
#[derive(Args)]
#[command(after_help = "Example: laconic audit run.contract.json north/audit.jsonl south/audit.jsonl\n\
    It looks at the chain and the signatures of each log, at what one says it sent and the other says it got, and at \
    each site's policy. Exit code 1: something is wrong.")]
pub struct Audit {
    /// The contract that all have joined
    contract: PathBuf,
    /// Logs of one or several sites
    #[arg(required = true)]
    logs: Vec<PathBuf>,
}

/// What was found.
#[derive(Serialize)]
struct Found {
    clean: bool,
    faults: Vec<String>,
    remarks: Vec<String>,
    crossings: Vec<Crossed>,
}

/// What has crossed between two sites of one content.
#[derive(Serialize)]
struct Crossed {
    site: String,
    way: Way,
    peer: String,
    content: String,
    frames: u64,
    payload: u64,
    framed: u64,
}

/// Checks logs against each other.
pub fn run(arguments: Audit, output: &Output) -> Result<u8> {
    let contract = Contract::read(&arguments.contract).map_err(unusable)?;
    let report = Names::all().lend(|vocabulary| audit(&arguments.logs, &contract, vocabulary));
    // A log that cannot be read is data.
    let report: Report = report.map_err(|error| TrainError::file(&arguments.logs[0], error.to_string()))?;
    let crossings = report.table.iter().map(|row| Crossed {
        site: row.site.clone(),
        way: row.way,
        peer: row.peer.clone(),
        content: row.content.clone(),
        frames: row.frames,
        payload: row.payload,
        framed: row.framed,
    });
    let found = Found {
        clean: report.is_clean(),
        faults: report.faults.iter().map(ToString::to_string).collect(),
        remarks: report.remarks.clone(),
        crossings: crossings.collect(),
    };
    output.result(report.to_string().trim_end(), &found)?;
    Ok(if report.is_clean() { 0 } else { FAILED })
}

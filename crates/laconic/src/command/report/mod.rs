//! `laconic report`: one HTML page about one or several runs, without scripts and without anything from elsewhere.

mod apart;
mod contents;
mod curves;
mod lanes;
mod ledger;
mod means;
mod run;
mod several;
mod single;
mod timeline;
mod traffic;
mod trainers;
mod words;

use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use clap::Args;
use laconic_train::TrainError;
use laconic_train::record::aside::write_aside;
use schemars::JsonSchema;
use serde::Serialize;

use super::compare::Comparison;
use crate::bytes::human_bytes;
use crate::output::Output;
use run::Run;

pub use run::Named;

/// Runs on one page at most.
const RUNS_MAX: usize = 200;

/// Arguments of `report`.
#[derive(Args)]
#[command(after_help = "Example: laconic report runs/standard runs/lazy --out report.html\n\
    Of a comparison: laconic report runs/run-compare")]
pub struct Report {
    /// Folders of runs, or of comparisons
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// The page (otherwise report.html in the first folder)
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
}

/// The page that was written.
#[derive(Serialize, JsonSchema)]
pub struct Written {
    /// The page.
    file: String,
    /// How many runs it is about.
    runs: usize,
    /// Bytes of the file.
    bytes: u64,
}

/// Reads the runs and writes the page.
pub fn run(arguments: Report, output: &Output) -> Result<u8> {
    let file = arguments.out.unwrap_or_else(|| arguments.dirs[0].join("report.html"));
    let mut comparisons = Vec::new();
    let mut named = Vec::new();
    for dir in &arguments.dirs {
        let comparison = Comparison::read(dir)?;
        named.extend(expand(dir, comparison.as_ref(), named.last().map_or(0, |last: &Named| last.style + 1))?);
        comparisons.extend(comparison);
    }
    let comparison = comparisons.pop().filter(|_| arguments.dirs.len() == 1);
    let bytes = write_with(&file, named, comparison)?;
    let written = Written { file: file.display().to_string(), runs: bytes.0, bytes: bytes.1 };
    let runs = if written.runs == 1 { "1 run".to_owned() } else { format!("{} runs", written.runs) };
    output.result(format!("{runs} in {} ({})", written.file, human_bytes(written.bytes)), &written)?;
    Ok(0)
}

/// Writes the page about these runs; returns how many they are and the size of the page.
pub fn write(file: &Path, named: Vec<Named>) -> Result<(usize, u64)> {
    write_with(file, named, None)
}

/// Writes the page about these runs, and about their comparison where there is one.
fn write_with(file: &Path, named: Vec<Named>, comparison: Option<Comparison>) -> Result<(usize, u64)> {
    if named.is_empty() || named.len() > RUNS_MAX {
        let found = named.len();
        return Err(TrainError::config(format!("a page shows 1 to {RUNS_MAX} runs, and these are {found}")).into());
    }
    let runs = named.iter().map(Run::read).collect::<Result<Vec<Run>, TrainError>>()?;
    let html = match (&runs[..], comparison) {
        ([run], None) => single::html(run),
        (_, comparison) => several::html(&comparison.unwrap_or_else(|| together(&named, &runs)), &runs),
    };
    write_aside(file, html.as_bytes())?;
    Ok((runs.len(), html.len() as u64))
}

/// Runs that nobody compared yet, as a comparison.
fn together(named: &[Named], runs: &[Run]) -> Comparison {
    let clocked = runs.iter().all(|run| run.recorded.summary.seconds.simulated.is_some());
    let shape = runs[0].recorded.summary.config["transport"]["shape"].as_str().unwrap_or_default().to_owned();
    let mut datasets: Vec<String> = runs.iter().map(Run::dataset).collect();
    datasets.dedup();
    let mut comparison = Comparison::of_runs(datasets.join(" and "), clocked.then_some(shape));
    for (named, run) in named.iter().zip(runs) {
        let index = comparison.method(&named.group, named.style);
        comparison.enter(
            index,
            (run.recorded.summary.seed.into(), None),
            named.folder.display().to_string(),
            &run.recorded,
        );
    }
    comparison.conclude();
    comparison
}

/// A run as it is, a comparison as its runs. Styles count from `style`.
fn expand(dir: &Path, comparison: Option<&Comparison>, style: usize) -> Result<Vec<Named>> {
    let Some(comparison) = comparison else {
        let name = name(dir);
        return Ok(vec![Named { group: name.clone(), name, style, folder: dir.to_owned() }]);
    };
    let mut named = Vec::new();
    for (index, line) in comparison.methods.iter().enumerate() {
        for run in &line.runs {
            let inside = Path::new(&run.folder);
            if !inside.components().all(|part| matches!(part, Component::Normal(_))) {
                let what = format!("expected a folder inside, found {:?}", run.folder);
                return Err(TrainError::file(dir.join("compare.json"), what).into());
            }
            let name = format!("{}, {}", line.name, run.seeds());
            named.push(Named { name, group: line.name.clone(), style: style + index, folder: dir.join(inside) });
        }
    }
    Ok(named)
}

/// The end of a folder's path, long enough to tell `lazy/seed-0` from `standard/seed-0`.
fn name(dir: &Path) -> String {
    let parts = dir.components().filter(|part| matches!(part, Component::Normal(_)));
    let mut last: Vec<String> =
        parts.rev().take(2).map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    last.reverse();
    if last.is_empty() { dir.display().to_string() } else { last.join("/") }
}

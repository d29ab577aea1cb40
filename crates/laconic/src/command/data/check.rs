//! `laconic data check`

use std::fmt;

use anyhow::Result;
use laconic_graph::about::{About, Reading};
use laconic_graph::info::{Finding, Severity, check};
use laconic_graph::roles::Roles;
use schemars::JsonSchema;
use serde::Serialize;

use super::input::Input;
use crate::output::Output;

/// Arguments of `data check`: which dataset.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Check {
    #[command(flatten)]
    input: Input,
}

const EXAMPLE: &str = "\
Exit code 1 if there is an error, 0 if there are only warnings, 3 if the data cannot be read at all.

Example:
  laconic data check friends.csv --nodes people.csv";

/// What is wrong with a dataset.
#[derive(Serialize, JsonSchema)]
pub struct Verdict {
    /// The dataset.
    name: String,
    /// How many findings are errors.
    errors: usize,
    /// How many are warnings.
    warnings: usize,
    /// Errors first.
    findings: Vec<Finding>,
    /// (tables) What became of each column.
    roles: Roles,
    /// What `meta.json` of a folder of parts, models and exports say of these data in clear, a sentence each.
    goes_out: Vec<String>,
}

/// Prints what is wrong with a dataset; 1 if there are errors.
pub(super) fn run(args: &Check, output: &Output) -> Result<u8> {
    let (dataset, roles) = args.input.read(output)?;
    let mut findings = check(&dataset);
    findings.extend(roles.warnings().map(|what| Finding { severity: Severity::Warning, what }));
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let goes_out = goes_out(&dataset.about);
    let verdict = Verdict { name: dataset.name, errors, warnings, findings, roles, goes_out };
    output.result(&verdict, &verdict)?;
    Ok(u8::from(errors > 0))
}

/// What goes along with parts and models, a line each.
fn goes_out(about: &About) -> Vec<String> {
    const MOST: usize = 40;
    let few = |names: &[String]| {
        let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
        names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ") + &more
    };
    let named = |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what}: {}", few(names)));
    let columns = || about.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    let features = if about.columns.is_empty() { about.features.clone() } else { columns() };
    let texts = about.columns.iter().filter_map(|column| match &column.reading {
        Reading::Category { values } => named(&format!("texts of column '{}'", column.name), values),
        _ => None,
    });
    let filled = about.columns.iter().filter(|column| column.fill.is_some());
    let filled: Vec<String> = filled.map(|column| column.name.clone()).collect();
    let is_scaled = about.is_of_tables() || !about.scale.is_given();
    let scale = "mean and deviation of each feature column over training nodes, unless data.features = \"given\"";
    let names = [
        named("names of the classes", &about.classes),
        named("names of the relations", &about.relations),
        named("names of the feature columns", &features),
        named("what stands for missing cells of", &filled),
        is_scaled.then(|| scale.to_owned()),
    ];
    names.into_iter().flatten().chain(texts).collect()
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.roles)?;
        for what in &self.goes_out {
            writeln!(f, "goes out   {what}")?;
        }
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        write!(f, "{}: {}, {}", self.name, plural(self.errors, "error"), plural(self.warnings, "warning"))
    }
}

//! `laconic data check`

use std::fmt;

use anyhow::Result;
use laconic_graph::info::{Finding, Severity, check};
use laconic_graph::roles::Roles;
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

#[derive(Serialize)]
struct Verdict {
    name: String,
    errors: usize,
    warnings: usize,
    findings: Vec<Finding>,
    roles: Roles,
}

/// Prints what is wrong with a dataset; 1 if there are errors.
pub(super) fn run(args: &Check, output: &Output) -> Result<u8> {
    let (dataset, roles) = args.input.read(output)?;
    let mut findings = check(&dataset);
    findings.extend(roles.warnings().map(|what| Finding { severity: Severity::Warning, what }));
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let verdict = Verdict { name: dataset.name, errors, warnings, findings, roles };
    output.result(&verdict, &verdict)?;
    Ok(u8::from(errors > 0))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.roles)?;
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        write!(f, "{}: {}, {}", self.name, plural(self.errors, "error"), plural(self.warnings, "warning"))
    }
}

//! Where the parts go.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use laconic_graph::dataset::Dataset;
use laconic_graph::part::{self, Provenance};
use laconic_graph::plan::Counting;
use laconic_train::TrainError;
use laconic_train::record::aside::write_aside;
use laconic_train::run::source::{Assigned, is_part_folder};

use crate::command::data::{not_written, refuse_occupied};
use crate::output::Output;

/// What is written: the folder of parts, the assignment, both or nothing.
#[derive(clap::Args)]
pub(super) struct Target {
    /// Write a folder of parts, which `laconic train` takes as data.path
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the number of each node's part, one a line
    #[arg(long, value_name = "FILE")]
    assignment: Option<PathBuf>,
    /// Replace the folder, if it is a folder of parts, and the file
    #[arg(long)]
    force: bool,
}

impl Target {
    /// Checks, before any work is done, that folder and file may be written.
    pub fn check(&self) -> Result<()> {
        if let Some(path) = &self.assignment {
            refuse_occupied(path, self.force)?;
        }
        self.out.as_deref().map_or(Ok(()), |dir| refuse_occupied_folder(dir, self.force))
    }

    /// Writes what was asked for.
    pub fn write(
        &self,
        (dataset, split): (&Dataset, Option<usize>),
        (assigned, label_skew): (&Assigned, Option<f64>),
        provenance: &Provenance,
        output: &Output,
    ) -> Result<()> {
        if let Some(path) = &self.assignment {
            let lines: String = assigned.of.iter().map(|part| format!("{part}\n")).collect();
            write_aside(path, lines.as_bytes())?;
        }
        let Some(dir) = &self.out else { return Ok(()) };
        output.say(format_args!("writing {}", dir.display()));
        let bar = if output.is_lively() { ProgressBar::new(assigned.parts.into()) } else { ProgressBar::hidden() };
        bar.set_style(ProgressStyle::with_template("{wide_bar} part {pos} of {len}").expect("the template is valid"));
        let cut = part::cut_one_by_one(dataset, split, &assigned.of, assigned.parts)?;
        let mut counting = Counting::default();
        let cut = cut.map(|mut part| {
            part.global.part_names.clone_from(&assigned.names);
            counting.see(&part);
            bar.inc(1);
            part
        });
        let written = part::write_parts(dir, cut, provenance, self.force);
        bar.finish_and_clear();
        written.and_then(|()| part::write_counts(dir, counting.finish(), label_skew)).map_err(not_written)
    }

    /// The folder, and whether it may take the place of another.
    pub fn folder(&self) -> Option<(&Path, bool)> {
        self.out.as_deref().map(|dir| (dir, self.force))
    }

    /// The folder, for people to read.
    pub fn out_shown(&self) -> Option<String> {
        self.out.as_deref().map(shown)
    }

    /// The file, for people to read.
    pub fn assignment_shown(&self) -> Option<String> {
        self.assignment.as_deref().map(shown)
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Refuses a place that is taken by anything but an empty folder or, with `force`, a whole folder of parts.
fn refuse_occupied_folder(dir: &Path, force: bool) -> Result<()> {
    let mut entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            bail!("{} is there and not a folder", dir.display())
        }
        Err(error) => return Err(TrainError::io(dir, error).into()),
    };
    match (entries.next().is_some(), is_part_folder(dir), force) {
        (false, _, _) | (true, true, true) => Ok(()),
        (true, true, false) => bail!("{} is a folder of parts already; --force replaces it", dir.display()),
        (true, false, _) => bail!("{} holds other files and is not replaced", dir.display()),
    }
}

//! The files that a command makes: never in the place of others unless asked to, and never half.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};
use laconic_graph::dataset::Dataset;
use laconic_graph::digest::digest;
use laconic_graph::error::GraphError;
use laconic_graph::write::write_interchange;
use laconic_train::TrainError;
use serde::Serialize;

use crate::bytes::human_bytes;
use crate::command::signals::clean_up;

/// The file that a command makes, and whether it may take the place of another.
#[derive(clap::Args)]
pub(super) struct NewFile {
    /// The file to write; for `synth rmat` a name without .npz is that of a folder of arrays
    #[arg(long, value_name = "FILE.npz")]
    out: PathBuf,
    /// Replace the file if it is there; a folder is never replaced
    #[arg(long)]
    force: bool,
}

/// What was written.
#[derive(Serialize)]
pub(super) struct Written {
    file: String,
    bytes: u64,
    nodes: usize,
    edges: usize,
    digest: String,
    seconds: f64,
}

impl NewFile {
    /// Checks, before any work is done, that the file may be written.
    pub fn check(&self) -> Result<()> {
        refuse_occupied(&self.out, self.force)
    }

    /// Whether the name is that of a folder: it says nothing of a file.
    pub fn is_folder(&self) -> bool {
        self.out.extension().is_none()
    }

    /// The folder, if there is nothing yet.
    pub fn free_folder(&self) -> Result<&Path> {
        if self.force {
            bail!("--force replaces files; a folder of arrays is removed by hand");
        }
        match std::fs::symlink_metadata(&self.out) {
            Ok(_) => bail!("{} is there already", self.out.display()),
            Err(_) => Ok(&self.out),
        }
    }

    /// Checks that the name says what is in the file: readers go by it.
    pub fn check_extension(&self) -> Result<()> {
        if self.out.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npz")) {
            return Ok(());
        }
        bail!("--out {}: expected a name that ends in .npz", self.out.display())
    }

    /// Writes the dataset in the interchange format. Seconds are counted from `started`.
    pub fn write(&self, dataset: &Dataset, started: Instant) -> Result<Written> {
        clean_up(&self.out)?;
        write_interchange(&self.out, dataset).map_err(not_written)?;
        let file = std::fs::metadata(&self.out).map_err(|source| TrainError::io(&self.out, source))?;
        Ok(Written {
            file: self.out.display().to_string(),
            bytes: file.len(),
            nodes: dataset.graph.nodes(),
            edges: dataset.graph.edges(),
            digest: digest(dataset),
            seconds: started.elapsed().as_secs_f64(),
        })
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Written { file, bytes, nodes, edges, digest, seconds } = self;
        writeln!(f, "wrote      {file}, {}, in {seconds:.2} s", human_bytes(*bytes))?;
        writeln!(f, "graph      {nodes} nodes, {edges} edges")?;
        write!(f, "digest     {digest}")
    }
}

/// Refuses to write the file `path` where something else is, unless that is a file and `force` is set, or where there
/// is no folder for it.
pub(in crate::command) fn refuse_occupied(path: &Path, force: bool) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::read_dir(folder).map_err(|source| TrainError::io(folder, source))?;
    // Not followed: it is the link that would be replaced.
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(TrainError::io(path, error).into()),
        Ok(found) if !found.is_file() && !found.is_symlink() => bail!("{} is there and not a file", path.display()),
        Ok(_) if !force => bail!("{} is there already; --force replaces it", path.display()),
        Ok(_) => Ok(()),
    }
}

/// That a file could not be written says nothing about the data.
pub(in crate::command) fn not_written(error: GraphError) -> anyhow::Error {
    match error {
        GraphError::Io { path, source } => TrainError::io(path, source).into(),
        other => other.into(),
    }
}

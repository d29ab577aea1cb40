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
use laconic_graph::write_tables::{TableFormat, write_tables};
use laconic_train::TrainError;

use crate::bytes::human_bytes;
use crate::command::signals::clean_up;

/// The file that a command makes, and whether it may take the place of another.
#[derive(clap::Args)]
pub(super) struct NewFile {
    /// The file to write: an .npz, of `convert` also the .csv or .parquet of edges, with that of nodes beside it; for
    /// `synth rmat` a name without .npz is that of a folder of arrays
    #[arg(long, value_name = "FILE.npz")]
    out: PathBuf,
    /// Replace the file if it is there; a folder is never replaced
    #[arg(long)]
    force: bool,
}

/// What was written.
pub(super) struct Written {
    pub(super) file: String,
    /// The table of nodes, where there is one.
    pub(super) nodes_file: Option<String>,
    pub(super) bytes: u64,
    pub(super) nodes: usize,
    pub(super) edges: usize,
    pub(super) digest: String,
    pub(super) seconds: f64,
    /// Of these, until the graph was in memory; where it was read.
    pub(super) read_seconds: Option<f64>,
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

    /// Whether the name is that of a table, and of which kind; otherwise it is an .npz.
    pub fn table_format(&self) -> Result<Option<TableFormat>> {
        let ending = self.out.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("npz") => Ok(None),
            Some("csv") => Ok(Some(TableFormat::Csv)),
            Some("parquet") => Ok(Some(TableFormat::Parquet)),
            _ => {
                let what = "expected a name that ends in .npz, .csv or .parquet, or --to npz, csv or parquet";
                bail!("--out {}: {what}", self.out.display())
            }
        }
    }

    /// The tables of edges and nodes: a file and `nodes.*` beside it, or both in a folder.
    fn tables(&self, format: TableFormat) -> [PathBuf; 2] {
        let ending = format.ending();
        let nodes = format!("nodes.{ending}");
        let is_file = self.out.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending));
        match is_file {
            true => [self.out.clone(), self.out.with_file_name(nodes)],
            false => [self.out.join(format!("edges.{ending}")), self.out.join(nodes)],
        }
    }

    /// Checks, before any work is done, that both tables may be written.
    pub fn check_tables(&self, format: TableFormat) -> Result<()> {
        let [edges, nodes] = self.tables(format);
        if edges == nodes {
            bail!("--out {}: the table of nodes is called so; name that of edges otherwise", edges.display());
        }
        let is_new = edges.parent() == Some(&self.out) && !self.out.exists();
        let refuse = |path: &Path| refuse_occupied(path, self.force);
        if is_new { refuse(&self.out) } else { refuse(&edges).and_then(|()| refuse(&nodes)) }
    }

    /// Writes the dataset as two tables. Seconds are counted from `started`.
    pub fn write_tables(&self, dataset: &Dataset, format: TableFormat, started: Instant) -> Result<Written> {
        let [edges, nodes] = self.tables(format);
        if edges.parent() == Some(&self.out) {
            std::fs::create_dir_all(&self.out).map_err(|source| TrainError::io(&self.out, source))?;
        }
        clean_up(&edges)?;
        clean_up(&nodes)?;
        write_tables([&edges, &nodes], dataset, format).map_err(not_written)?;
        let mut written = Written::of(&edges, dataset, started)?;
        written.bytes += std::fs::metadata(&nodes).map_err(|source| TrainError::io(&nodes, source))?.len();
        Ok(Written { nodes_file: Some(nodes.display().to_string()), ..written })
    }

    /// Writes the dataset in the interchange format. Seconds are counted from `started`.
    pub fn write(&self, dataset: &Dataset, started: Instant) -> Result<Written> {
        clean_up(&self.out)?;
        write_interchange(&self.out, dataset).map_err(not_written)?;
        Written::of(&self.out, dataset, started)
    }
}

impl Written {
    fn of(path: &Path, dataset: &Dataset, started: Instant) -> Result<Written> {
        let file = std::fs::metadata(path).map_err(|source| TrainError::io(path, source))?;
        Ok(Written {
            file: path.display().to_string(),
            nodes_file: None,
            bytes: file.len(),
            nodes: dataset.graph.nodes(),
            edges: dataset.graph.edges(),
            digest: digest(dataset),
            seconds: started.elapsed().as_secs_f64(),
            read_seconds: None,
        })
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Written { file, nodes_file, bytes, nodes, edges, digest, seconds, read_seconds } = self;
        let beside = nodes_file.as_ref().map_or_else(String::new, |nodes| format!(" and {nodes}"));
        let reading = read_seconds.map_or_else(String::new, |seconds| format!(" (reading {seconds:.2} s)"));
        writeln!(f, "wrote      {file}{beside}, {}, in {seconds:.2} s{reading}", human_bytes(*bytes))?;
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

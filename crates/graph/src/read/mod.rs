//! Readers: from a file or folder in one of the usual formats to a [`Dataset`].
//!
//! Formats are recognised by looking at the input. Every reader keeps the [`Limits`], executes nothing it finds, and
//! gives one error that names the file, the place and what was expected there; none panics on any bytes. A new format
//! is one file here and one line in [`READERS`].

pub mod arrays;
pub mod edge_list;
pub mod gnn_benchmark;
pub mod graphsaint;
pub mod interchange;
pub mod metis_graph;
pub mod ogb;
pub mod pickle;
pub mod planetoid;
pub mod table;

mod column;
mod features;
mod id_index;
mod labels;
mod node_table;
mod numbers;
mod parquet_table;
mod pickled_arrays;
mod text;
mod text_table;

use crate::build::BuildOptions;
use crate::dataset::Dataset;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use std::path::{Path, PathBuf};

/// What the user says about the input beyond its path. The default is right for every format that says it all itself.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Adds the other direction of every edge, where the format's own rule does not do so already.
    pub symmetrise: bool,
    /// Keeps edges from a node to itself. The usual models add their own, so they go by default.
    pub keep_self_loops: bool,
    /// The node table that belongs to an edge list.
    pub nodes: Option<PathBuf>,
    /// Column names of edge lists and node tables; see [`Columns`].
    pub columns: Columns,
    /// An `.npz` with `features` (or CSR features) or a `.npy`, whose rows replace the features of the input.
    pub features_path: Option<PathBuf>,
    /// What the input may ask for.
    pub limits: Limits,
}

/// The columns of edge lists and node tables. A name that is not given is looked for among the usual ones; a name that
/// is given must be there.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// Where an edge starts: `source`, `src`, `src_id`, `source_id`, `from`, `u`; else the first column.
    pub source: Option<String>,
    /// Where an edge ends: `target`, `dst`, `dst_id`, `target_id`, `dest`, `to`, `v`; else the second column.
    pub target: Option<String>,
    /// Edge weights: `weight`, `edge_weight`, `w`; without a header the third column, if it is numeric.
    pub weight: Option<String>,
    /// Node ids: `id`, `node`, `node_id`; without any the row is the id.
    pub id: Option<String>,
    /// Labels: `label`, `y`, `class`.
    pub label: Option<String>,
    /// `train`, `val`, `test` or nothing: `split`, `set`; else 0/1 columns `train_mask`, `val_mask`, `test_mask`.
    pub split: Option<String>,
}

impl ReadOptions {
    /// How to build the graph of a format that stores both directions, or whose edges have one.
    fn build(&self) -> BuildOptions {
        BuildOptions { symmetrise: self.symmetrise, keep_self_loops: self.keep_self_loops }
    }

    /// How to build the graph of a format that stores each undirected edge in any way.
    fn build_undirected(&self) -> BuildOptions {
        BuildOptions { symmetrise: true, keep_self_loops: self.keep_self_loops }
    }
}

/// One input format.
pub trait Reader: Sync {
    /// What users call the format.
    fn name(&self) -> &'static str;

    /// What [`Reader::recognises`] looks for, for the message when nothing was recognised.
    fn looks_for(&self) -> &'static str;

    /// Whether `path` seems to be of this format. Cheap, and true does not promise that it can be read.
    fn recognises(&self, path: &Path) -> bool;

    /// Reads the whole dataset.
    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset>;
}

/// All formats, in the order in which they are tried.
pub const READERS: &[&dyn Reader] = &[
    &interchange::Interchange,
    &gnn_benchmark::GnnBenchmark,
    &planetoid::Planetoid,
    &ogb::Ogb,
    &graphsaint::GraphSaint,
    &metis_graph::MetisGraph,
    &edge_list::EdgeList,
];

/// Reads a dataset in any of the formats of [`READERS`].
///
/// ```no_run
/// use laconic_graph::read::{ReadOptions, read};
/// let cora = read("data/cora.npz".as_ref(), &ReadOptions::default())?;
/// assert_eq!(cora.graph.nodes(), 2708);
/// # Ok::<(), laconic_graph::error::GraphError>(())
/// ```
///
/// # Errors
///
/// If the path is not there, no reader recognises it, or it does not hold what its format promises or keep the limits;
/// the message names the file, the place and what was expected there.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Dataset> {
    let kind = std::fs::metadata(path).map_err(|e| GraphError::io(path, e))?;
    if !kind.is_file() && !kind.is_dir() {
        return Err(GraphError::format(path, "input", "expected a file, found a pipe or a device"));
    }
    let reader = READERS.iter().find(|reader| reader.recognises(path)).ok_or_else(|| unrecognised(path, options))?;
    let mut dataset = reader.read(path, options)?;
    if let Some(from) = &options.features_path {
        dataset.features = features::read_features(from, dataset.graph.nodes(), &options.limits)?;
    }
    Ok(dataset)
}

/// The error that lists what was looked for, unless the file itself has a better one.
fn unrecognised(path: &Path, options: &ReadOptions) -> GraphError {
    if extension(path) == "npz"
        && let Err(error) = arrays::Npz::open(path, &options.limits)
    {
        return error;
    }
    let known: Vec<String> = READERS.iter().map(|r| format!("{} ({})", r.name(), r.looks_for())).collect();
    let parts = "to train on, a part folder (a folder with meta.json and part-0, as it is cut from a dataset)";
    GraphError::format(path, "input", format!("expected one of: {}; or, {parts}; found none of them", known.join("; ")))
}

/// The extension in lower case, of `edges.csv.gz` it is `csv`.
fn extension(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map(|(_, extension)| extension.to_owned()).unwrap_or_default()
}

/// What a dataset is called: the file's or folder's name without extensions for compression and format.
fn dataset_name(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if path.is_dir() {
        return name;
    }
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
}

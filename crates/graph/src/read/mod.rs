//! Readers: from a file or folder in one of the usual formats to a [`Dataset`].
//!
//! Formats are recognised by looking at the input. Every reader keeps the [`Limits`], executes nothing it finds, and
//! gives one error that names the file, the place and what was expected there; none panics on any bytes. A new format
//! is one file here and one line in [`READERS`].

pub mod array_folder;
pub mod arrays;
pub mod assignment;
pub mod dgl_csv;
pub mod dgl_reddit;
pub mod edge_list;
pub mod geom_gcn;
mod given;
pub mod gml;
pub mod gnn_benchmark;
pub mod graph_xml;
pub mod graphsaint;
pub mod heterophilous;
pub mod interchange;
mod known_ends;
pub mod konect;
pub mod matrix_market;
pub mod metis_graph;
pub mod ogb;
pub mod ogb_binary;
pub mod ogb_typed;
pub mod passes;
pub mod pickle;
pub mod planetoid;
pub mod scipy_npz;
pub mod table;
pub mod triples;
pub mod typed_tables;

mod arrow_schema;
mod attributes;
mod beside;
mod bipartite;
mod blocks;
mod column;
mod decoded;
mod delta;
mod delta_checkpoint;
mod delta_state;
mod described;
mod distinct_ids;
mod edge_rows;
mod edge_tables;
mod element;
mod ends;
mod features;
mod float_ids;
mod foreign;
mod heading;
mod held;
mod id_index;
mod index_column;
mod label_columns;
mod labels;
mod lent;
mod made_table;
mod matrix_table;
mod mixed_table;
mod names;
mod near_ids;
mod node_added;
mod node_columns;
mod node_labels;
mod node_matrix;
mod node_roles;
mod node_splits;
mod node_table;
mod numbers;
mod parquet_guard;
mod parquet_kinds;
mod parquet_table;
mod parquet_values;
mod parquet_vectors;
mod part_files;
mod parts;
mod pickled_arrays;
mod place;
mod repeated_ids;
mod separator;
mod table_folder;
mod text;
mod text_index;
mod text_table;
mod typed;
mod values;
pub(crate) mod words;
mod written;

use crate::about::About;
use crate::build::{BuildOptions, Duplicates};
use crate::dataset::{Dataset, Features};
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::node_types::{apart, beside, types_of};
use crate::roles::Roles;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub use ends::COUNT;
pub use heading::Header;
pub(crate) use node_columns::feature_names;
pub(crate) use node_splits::read_split;
pub use node_table::ROW;
pub(crate) use numbers::shorten;
pub(crate) use written::is_rounded_id;

/// What the user says about the input beyond its path. The default is right for every format that says it all itself.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Adds the other direction of every edge, where the format's own rule does not do so already.
    pub symmetrise: bool,
    /// Keeps edges from a node to itself. The usual models add their own, so they go by default.
    pub keep_self_loops: bool,
    /// The weight of an edge that is listed several times, in either direction where both are made.
    pub duplicates: Duplicates,
    /// Tells types of edges and nodes apart where the data have them.
    pub typed: bool,
    /// The two ends of the edges of a table are nodes of two types, which may have the same ids.
    pub bipartite: bool,
    /// What becomes of rows of an edge table that name nodes which the node table has not.
    pub unknown: Unknown,
    /// The node table that belongs to an edge list.
    pub nodes: Option<PathBuf>,
    /// Column names of edge lists and node tables; see [`Columns`].
    pub columns: Columns,
    /// What becomes of the cells of node tables that are no plain numbers.
    pub cells: Cells,
    /// Whether the first line of text tables names their columns.
    pub header: Header,
    /// A node table is read as the one was that this comes from: exactly its feature columns, found by their names, and
    /// its classes. A text that was no category there is 0 in all of them, and a label that is no class is unknown. The
    /// columns of labels and split may be missing, also where they are named.
    pub like: Option<About>,
    /// An `.npz` with `features` (or CSR features) or a `.npy`, whose rows replace the features of the input.
    pub features_path: Option<PathBuf>,
    /// What the input may ask for.
    pub limits: Limits,
}

/// The columns of edge lists and node tables. A name that is not given is looked for among the usual ones; a name that
/// is given must be there.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// Where an edge starts: `source`, `src`, `src_id`, `source_id`, `from`, `u`, or a name that belongs to another's,
    /// such as `caller` to `callee`; in a table without names the first column.
    pub source: Option<String>,
    /// Where an edge ends: `target`, `dst`, `dst_id`, `target_id`, `dest`, `to`, `v`, or a name that belongs to that of
    /// the source; in a table without names the second column.
    pub target: Option<String>,
    /// Edge weights: `weight`, `edge_weight`, `w`; without a header the third column, if it holds numbers that are no
    /// times. [`COUNT`]: how often an edge is listed.
    pub weight: Option<String>,
    /// The relation that an edge is of, where types are told apart: `relation`, `rel`, `predicate`, `:TYPE`, …
    pub relation: Option<String>,
    /// Node ids: `id`, `node`, `node_id`; [`ROW`] where the row's number is the id.
    pub id: Option<String>,
    /// Labels: `label`, `y`, `class`; else columns `label_*` of 0 and 1, one a class. A name that ends in `*` stands
    /// for all columns that begin so.
    pub label: Option<String>,
    /// What stands between the classes of a node, where the column of labels holds several.
    pub label_separator: Option<String>,
    /// `train`, `val`, `test` or nothing: `split`, `set`; else 0/1 columns `train_mask`, `val_mask`, `test_mask`.
    pub split: Option<String>,
    /// The columns that become features; all that can where none is named.
    pub features: Vec<String>,
    /// Columns of either table that are left out.
    pub ignore: Vec<String>,
}

/// What becomes of cells that are no plain numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells {
    /// Cells without a value.
    pub missing: Missing,
    /// Dates and times.
    pub dates: Dates,
    /// A column of texts becomes a feature column for each text if there are no more of them.
    pub categories_max: usize,
}

impl Default for Cells {
    fn default() -> Self {
        Cells { missing: Missing::Error, dates: Dates::Ignore, categories_max: 64 }
    }
}

/// What stands for a missing number, list or date; a column then has one more that is 1 where it is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// Nothing: it is an error.
    #[default]
    Error,
    /// The mean over the training nodes that have a value: see [`crate::prepare::fill_missing`].
    Mean,
    /// 0.
    Zero,
}

/// What becomes of rows of an edge table that name nodes which the node table has not, or none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// Nothing: it is an error.
    #[default]
    Error,
    /// They are left out.
    Drop,
    /// The nodes are added, without label and split and with features of 0.
    Add,
}

/// What becomes of dates and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dates {
    /// Nothing: they are left out, since they rarely mean the same for new data.
    #[default]
    Ignore,
    /// Days since 1970-01-01.
    Days,
}

impl ReadOptions {
    /// How to build the graph of a format that stores both directions, or whose edges have one.
    fn build(&self) -> BuildOptions {
        let ReadOptions { symmetrise, keep_self_loops, duplicates, .. } = *self;
        BuildOptions { symmetrise, keep_self_loops, duplicates }
    }

    /// How to build the graph of a format that stores each undirected edge in any way.
    fn build_undirected(&self) -> BuildOptions {
        BuildOptions { symmetrise: true, ..self.build() }
    }
}

/// One input format.
pub trait Reader: Sync {
    /// What users call the format.
    fn name(&self) -> &'static str;

    /// Whether `path` seems to be of this format. Cheap, and true does not promise that it can be read.
    fn recognises(&self, path: &Path) -> bool;

    /// Whether it reads this key about edge lists and node tables, such as `data.nodes_path`.
    fn reads_key(&self, key: &str) -> bool {
        let _ = key;
        false
    }

    /// Reads the whole dataset.
    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset>;

    /// The same, and what became of each column, where the format has some.
    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        Ok((self.read(path, options)?, Roles::default()))
    }
}

/// All formats, in the order in which they are tried.
pub const READERS: &[&dyn Reader] = &[
    &array_folder::Arrays,
    &interchange::Interchange,
    &gnn_benchmark::GnnBenchmark,
    &scipy_npz::ScipyNpz,
    &heterophilous::Heterophilous,
    &matrix_market::MatrixMarket,
    &planetoid::Planetoid,
    &ogb::Ogb,
    &ogb_binary::OgbBinary,
    &ogb_typed::OgbTyped,
    &graphsaint::GraphSaint,
    &geom_gcn::GeomGcn,
    &dgl_csv::DglCsv,
    &dgl_reddit::DglReddit,
    &triples::Triples,
    &konect::Konect,
    &gml::Gml,
    &graph_xml::GraphXml,
    &metis_graph::MetisGraph,
    &edge_list::EdgeList,
    &typed_tables::TypedTables,
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
    Ok(read_with_roles(path, options)?.0)
}

/// Reads a dataset as [`read`] does, and says what became of each column of its tables.
///
/// # Errors
///
/// As [`read`].
pub fn read_with_roles(path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
    let kind = std::fs::metadata(path).map_err(|e| GraphError::io(path, e))?;
    if !kind.is_file() && !kind.is_dir() {
        return Err(GraphError::format(path, "input", "expected a file, found a pipe or a device"));
    }
    let reader = READERS
        .iter()
        .find(|reader| reader.recognises(path))
        .ok_or_else(|| foreign::unrecognised(path, &options.limits))?;
    let (mut dataset, roles) = reader.read_with_roles(path, options)?;
    if let Some(from) = &options.features_path {
        let before = std::mem::replace(&mut dataset.features, Features::None);
        (dataset.features, dataset.exact) = features::read_features(from, dataset.graph.nodes(), &options.limits)?;
        // Features of a file of arrays have no names.
        let types = types_of(&before, &dataset.about.node_types);
        let About { classes, relations, node_types, .. } = std::mem::take(&mut dataset.about);
        dataset.about = About { classes, relations, ..About::default() };
        if let Some(of) = types {
            let names = node_types.into_iter().map(|kind| kind.name).collect();
            let types = apart(&dataset.features, &[], &of, names);
            let (features, node_types, columns) = beside(&types, &of);
            dataset.exact =
                interchange::exact_apart(&dataset.exact, dataset.features.columns(), (&of, node_types.len()));
            dataset.features = features;
            (dataset.about.node_types, dataset.about.features) = (node_types, columns);
        }
    }
    Ok((dataset, roles))
}

/// The first of these keys about tables that the format of `path` does not read, and what that is called.
pub fn idle_key(path: &Path, mut keys: impl Iterator<Item = &'static str>) -> Option<(&'static str, &'static str)> {
    let reader = READERS.iter().find(|reader| reader.recognises(path))?;
    keys.find(|key| !reader.reads_key(key)).map(|key| (key, reader.name()))
}

/// Whether this is a folder of parts, sound or broken, rather than a dataset.
pub fn is_part_folder(path: &Path) -> bool {
    crate::part::is_part_folder(path) && !READERS.iter().any(|reader| reader.recognises(path))
}

/// The extension in lower case, of `edges.csv.gz` it is `csv`.
fn extension(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map(|(_, extension)| extension.to_owned()).unwrap_or_default()
}

/// What a dataset is called: the file's or folder's name without extensions for compression and format.
pub(crate) fn dataset_name(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if path.is_dir() {
        return name;
    }
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
}

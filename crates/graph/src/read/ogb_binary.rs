//! OGB's binary layout: `raw/data.npz` with `edge_index`, `num_nodes_list` and `node_feat`, `raw/node-label.npz` with
//! `node_label`, and `split/<name>/{train,valid,test}.csv.gz`, packed or not. So ogbn-papers100M comes, and so
//! `ogb.io.DatasetSaver` writes sets of one graph of one kind of nodes, but for the splits.
//!
//! Edges and labels are read as [`super::ogb`] reads them.

use super::arrays::Npz;
use super::features::DenseArray;
use super::held::edge_index;
use super::ogb::{has_inverse_edges, read_splits};
use super::{ReadOptions, Reader, dataset_name, labels};
use crate::about::About;
use crate::build::build_graph;
use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::error::Result;
use crate::exact::Exact;
use crate::limits::Limits;
use crate::roles::{Role, Roles};
use std::path::Path;

/// The reader of OGB folders of arrays.
pub struct OgbBinary;

const DATA: &str = "raw/data.npz";
const LABELS: &str = "raw/node-label.npz";

impl Reader for OgbBinary {
    fn name(&self) -> &'static str {
        "OGB binary folder"
    }

    fn recognises(&self, path: &Path) -> bool {
        Npz::open(&path.join(DATA), &Limits::default()).is_ok_and(|npz| npz.has("edge_index"))
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        Ok(self.read_with_roles(path, options)?.0)
    }

    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let limits = &options.limits;
        let data_path = path.join(DATA);
        let mut npz = Npz::open(&data_path, limits)?;
        let nodes = count_nodes(&mut npz, &data_path, limits)?;
        let (sources, targets) = edge_index(&mut npz, "edge_index", limits)?;
        let (features, exact) = match npz.has("node_feat") {
            true => DenseArray::Member(&mut npz, "node_feat").read(nodes, limits)?,
            false => (Features::None, Exact::default()),
        };
        let mut roles = Roles::default();
        say(&npz, &data_path, &mut roles);
        let labels = read_labels(path, nodes, &mut roles, limits)?;
        let name = dataset_name(path);
        let how = if has_inverse_edges(&name) { options.build_undirected() } else { options.build() };
        let built = build_graph(nodes, sources, targets, None, how);
        let graph = built.map_err(|error| npz.error("edge_index", error.to_string()))?.0;
        let splits = read_splits(&path.join("split"), None, nodes, limits)?;
        let (ids, about) = (Ids::Row, About::default());
        let dataset = Dataset { name, graph, features, exact, labels, splits, ids, about, negatives: None };
        Ok((dataset.checked()?, roles))
    }
}

/// The nodes of the one graph.
fn count_nodes(npz: &mut Npz, path: &Path, limits: &Limits) -> Result<usize> {
    let counts = npz.read::<i64>("num_nodes_list", 1 << 30)?.values;
    let rows = npz.rows("node_feat")?;
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    match counts[..] {
        [nodes] if nodes >= 0 => limits.accept_nodes(path, "array 'num_nodes_list'", nodes as u64, (rows, bytes)),
        _ => {
            let what = format!("expected the nodes of one graph, found those of {}", counts.len());
            Err(npz.error("num_nodes_list", what))
        }
    }
}

/// What is read of the arrays, and what is not.
fn say(npz: &Npz, path: &Path, roles: &mut Roles) {
    let mut lines = roles.of_table(path);
    for name in npz.names() {
        match name.as_str() {
            "edge_index" | "num_nodes_list" | "num_edges_list" => {}
            "node_feat" => lines.line(Role::Features, &["node_feat"], "node_feat"),
            edges if edges.starts_with("edge_") => lines.ignored(edges, "edges have no features"),
            other => lines.ignored(other, "of nodes node_feat alone is read"),
        }
    }
}

fn read_labels(folder: &Path, nodes: usize, roles: &mut Roles, limits: &Limits) -> Result<Labels> {
    let path = folder.join(LABELS);
    if !path.is_file() {
        return Ok(Labels::None);
    }
    let mut npz = Npz::open(&path, limits)?;
    let array = npz.read::<f64>("node_label", limits.features_values_max)?;
    roles.of_table(&path).line(Role::Labels, &["node_label"], "node_label");
    labels::from_array(&array.shape, &array.values, nodes, limits).map_err(|what| npz.error("node_label", what))
}

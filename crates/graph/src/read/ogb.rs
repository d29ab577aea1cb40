//! OGB node-prediction folders with raw CSV: `raw/{edge,num-node-list,node-feat,node-label}.csv.gz` and
//! `split/<name>/{train,valid,test}.csv.gz`, packed or not.
//!
//! Edges are read as they are. Where OGB's own loader adds the other directions (`add_inverse_edge` in its table of
//! datasets, which is not in the folder), so does this one, by the folder's name. A label `nan` is unknown, also
//! one of several columns, which are a multi-label set.

use super::numbers::read_numbers;
use super::text::find_text;
use super::{ReadOptions, Reader, dataset_name, features, labels};
use crate::about::About;
use crate::build::build_graph;
use crate::dataset::{Dataset, Features, Ids, Labels, Split};
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::limits::Limits;
use crate::roles::Roles;
use std::path::{Path, PathBuf};

/// Parts of folder names of the sets to which OGB adds inverse edges.
const INVERSE_EDGES: [&str; 2] = ["products", "proteins"];

/// The reader of OGB folders.
pub struct Ogb;

impl Reader for Ogb {
    fn name(&self) -> &'static str {
        "OGB folder"
    }

    fn recognises(&self, path: &Path) -> bool {
        let raw = path.join("raw");
        find_text(&raw, &["edge.csv"]).is_some() && find_text(&raw, &["num-node-list.csv"]).is_some()
    }

    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let dataset = self.read(path, options)?;
        let mut roles = Roles::default();
        say_unread(&path.join("raw"), &mut roles);
        Ok((dataset, roles))
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        let limits = &options.limits;
        let raw = path.join("raw");
        let edge_path = required(&raw, "edge.csv")?;
        let (sources, targets) = read_edges(&edge_path, limits)?;
        let count_path = required(&raw, "num-node-list.csv")?;
        let nodes = count_nodes(&count_path, limits)?;
        let (features, exact) = match find_text(&raw, &["node-feat.csv"]) {
            Some(path) => features::text_features(&path, nodes, limits)?,
            None => (Features::None, Exact::default()),
        };
        let labels = match find_text(&raw, &["node-label.csv"]) {
            Some(path) => {
                let array = read_numbers::<f64>(&path, limits, limits.features_values_max)?;
                let labels = labels::from_array(&array.shape, &array.values, nodes, limits);
                labels.map_err(|what| GraphError::format(&path, "lines", what))?
            }
            None => Labels::None,
        };
        let rows = if features == Features::None && labels == Labels::None { 0 } else { nodes as u64 };
        let edges = sources.len() as u64;
        limits.accept_nodes(&count_path, "line 1", nodes as u64, (rows, edges.saturating_mul(2)))?;
        let name = dataset_name(path);
        let how = if has_inverse_edges(&name) { options.build_undirected() } else { options.build() };
        let built = build_graph(nodes, sources, targets, None, how);
        let graph = built.map_err(|error| GraphError::format(&edge_path, "edges", error.to_string()))?.0;
        let splits = read_splits(&path.join("split"), None, nodes, limits)?;
        let (ids, about) = (Ids::Row, About::default());
        Dataset { name, graph, features, exact, labels, splits, ids, about, negatives: None }.checked()
    }
}

/// Warns of each file of numbers that is not read.
fn say_unread(raw: &Path, roles: &mut Roles) {
    const READ: [&str; 5] = ["edge", "node-feat", "node-label", "num-node-list", "num-edge-list"];
    let names =
        std::fs::read_dir(raw).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".csv") || name.ends_with(".csv.gz")).collect();
    names.sort();
    for name in names {
        let stem = name.split('.').next().unwrap_or_default();
        if READ.contains(&stem) {
            continue;
        }
        let why = match stem.starts_with("edge") {
            true => {
                "weights, features and types of edges are saved by Python: numpy.savez(\"graph.npz\", edge_index=…, \
                     edge_weight=…, edge_type=…, x=…, y=…)"
            }
            false => "it is not read; numpy.savez(\"graph.npz\", edge_index=…, x=…, y=…) can have it among features",
        };
        roles.of_table(&raw.join(&name)).ignored(stem, why);
    }
}

/// Whether OGB's own loader adds the other directions of edges to the set of this name.
pub(super) fn has_inverse_edges(name: &str) -> bool {
    INVERSE_EDGES.iter().any(|part| name.contains(part))
}

pub(super) fn required(folder: &Path, name: &str) -> Result<PathBuf> {
    find_text(folder, &[name])
        .ok_or_else(|| GraphError::format(folder, "folder", format!("expected {name} or {name}.gz")))
}

/// One line an edge: source, target.
pub(super) fn read_edges(path: &Path, limits: &Limits) -> Result<(Vec<u32>, Vec<u32>)> {
    let array = read_numbers::<u32>(path, limits, limits.edges_max.saturating_mul(2))?;
    if array.shape[0] > 0 && array.shape[1] != 2 {
        return Err(GraphError::format(
            path,
            "lines",
            format!("expected source,target; found {} numbers", array.shape[1]),
        ));
    }
    Ok(array.values.chunks_exact(2).map(|edge| (edge[0], edge[1])).unzip())
}

/// The one line of `num-node-list`; a set of many graphs has many.
fn count_nodes(path: &Path, limits: &Limits) -> Result<usize> {
    let counts = read_numbers::<i64>(path, limits, 1 << 20)?.values;
    match counts[..] {
        [nodes] if nodes >= 0 => limits.accept_nodes(path, "line 1", nodes as u64, (nodes as u64, 0)),
        _ => Err(GraphError::format(
            path,
            "lines",
            format!(
                "expected the nodes of one graph, found {} lines: sets of many graphs are not read; numpy.savez(\
                 \"graph.npz\", edge_index=…, x=…) of one of them is, or of all as one, the nodes of each counted on",
                counts.len()
            ),
        )),
    }
}

/// The splits in the folders of `folder`, by name; those of one `kind` of nodes where there are several, which may have
/// none.
pub(super) fn read_splits(folder: &Path, kind: Option<&str>, nodes: usize, limits: &Limits) -> Result<Vec<Split>> {
    let mut folders: Vec<PathBuf> = match std::fs::read_dir(folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect(),
        Err(_) => return Ok(Vec::new()),
    };
    if let Some(kind) = kind {
        folders = folders.into_iter().map(|folder| folder.join(kind)).filter(|folder| folder.is_dir()).collect();
    }
    folders.sort();
    let mut splits = Vec::new();
    for folder in folders {
        refuse_torch(&folder)?;
        let mut split = Split { roles: vec![0; nodes] };
        for (name, role) in [("train.csv", Split::TRAIN), ("valid.csv", Split::VAL), ("test.csv", Split::TEST)] {
            let path = required(&folder, name)?;
            for (line, node) in read_numbers::<u32>(&path, limits, limits.nodes_max)?.values.into_iter().enumerate() {
                let roles = split.roles.get_mut(node as usize).ok_or_else(|| {
                    let expected = format!("expected a node in 0..{nodes}, found {node}");
                    GraphError::format(&path, format!("line {}", line + 1), expected)
                })?;
                *roles |= role;
            }
        }
        splits.push(split);
    }
    Ok(splits)
}

/// Says of a split that torch has written how it becomes one that is read.
fn refuse_torch(folder: &Path) -> Result<()> {
    let there = |name: &str| folder.join(name).is_file();
    let refuse = |name: &str, what: &str| Err(GraphError::format(&folder.join(name), "split", what));
    if find_text(folder, &["train.csv"]).is_some() {
        return Ok(());
    }
    if there("train.pt") {
        let what = "edges that are held out, as torch writes them: save(LinkPropPredDataset(NAME), \"graph.npz\") of \
                    examples/savers/from_ogb_links.py writes the dataset with them";
        return refuse("train.pt", what);
    }
    if there("split_dict.pt") {
        let what = "a split as torch writes it; in its folder, python3 -c 'import numpy, torch; \
                    [numpy.savetxt(k + \".csv\", numpy.asarray(v), \"%d\") for k, v in \
                    torch.load(\"split_dict.pt\", weights_only=False).items()]' writes what is read";
        return refuse("split_dict.pt", what);
    }
    Ok(())
}

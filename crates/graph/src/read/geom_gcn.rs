//! Geom-GCN's folders (Pei et al., 2020): `out1_graph_edges.txt` and `out1_node_feature_label.txt`, with splits as
//! `NAME_split_0.6_0.2_0.npz` beside them or in a folder `splits`.
//!
//! Edges are read as they are listed. Features of a node are numbers, as many of each, or, where nodes have different
//! counts of them, the columns that are 1, as of film.

use super::arrays::Npz;
use super::features;
use super::numbers::shorten;
use super::text::{Lines, find_text};
use super::{ReadOptions, Reader, dataset_name, labels};
use crate::about::About;
use crate::build::build_graph;
use crate::dataset::{Dataset, Features, Ids, Labels, Split};
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::limits::Limits;
use std::path::{Path, PathBuf};

/// The reader of Geom-GCN's folders.
pub struct GeomGcn;

const EDGES: &str = "out1_graph_edges.txt";
const NODES: &str = "out1_node_feature_label.txt";

impl Reader for GeomGcn {
    fn name(&self) -> &'static str {
        "Geom-GCN folder"
    }

    fn recognises(&self, path: &Path) -> bool {
        find_text(path, &[EDGES]).is_some() && find_text(path, &[NODES]).is_some()
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        let limits = &options.limits;
        let required = |name: &str| {
            find_text(path, &[name]).ok_or_else(|| GraphError::format(path, "folder", format!("expected {name}")))
        };
        let (nodes_path, edges_path) = (required(NODES)?, required(EDGES)?);
        let Rows { labels, offsets, values } = Rows::read(&nodes_path, limits)?;
        let nodes = labels.len();
        let (sources, targets) = read_edges(&edges_path, limits)?;
        let built = build_graph(nodes, sources, targets, None, options.build());
        let graph = built.map_err(|error| GraphError::format(&edges_path, "edges", error.to_string()))?.0;
        let refuse = |what: String| GraphError::format(&nodes_path, "lines", what);
        let features = features_of(&offsets, values, limits).map_err(refuse)?;
        let labels = labels::single(&labels, 0, limits).map_err(refuse)?;
        let labels = if nodes == 0 { Labels::None } else { labels };
        let splits = read_splits(path, nodes, limits)?;
        let (name, ids, about, exact) = (dataset_name(path), Ids::Row, About::default(), Exact::default());
        Dataset { name, graph, features, exact, labels, splits, ids, about, negatives: None }.checked()
    }
}

/// The lines of the node table, in the order of their ids.
struct Rows {
    labels: Vec<f64>,
    offsets: Vec<usize>,
    values: Vec<f32>,
}

impl Rows {
    fn read(path: &Path, limits: &Limits) -> Result<Rows> {
        let mut lines = Lines::open(path, limits)?;
        let mut found: Vec<(u64, f64, Vec<f32>)> = Vec::new();
        let mut count = 0;
        lines.next_line()?;
        while lines.next_line()?.is_some() {
            if lines.line().is_empty() {
                continue;
            }
            let row = row(lines.line()).map_err(|what| lines.error(what))?;
            count += row.2.len() as u64;
            if count > limits.features_values_max || found.len() as u64 >= limits.nodes_max {
                return Err(GraphError::too_large(path, "features", limits.features_values_max));
            }
            found.push(row);
        }
        found.sort_by_key(|row| row.0);
        if let Some(at) = found.iter().enumerate().position(|(at, row)| row.0 != at as u64) {
            let what = format!("expected ids from 0 to {}, each once, found {}", found.len() - 1, found[at].0);
            return Err(GraphError::format(path, "ids", what));
        }
        let mut rows = Rows { labels: Vec::new(), offsets: vec![0], values: Vec::new() };
        for (_, label, values) in found {
            rows.labels.push(label);
            rows.values.extend(values);
            rows.offsets.push(rows.values.len());
        }
        Ok(rows)
    }
}

/// The id, the label and the features of a line.
fn row(line: &str) -> std::result::Result<(u64, f64, Vec<f32>), String> {
    let expected = || format!("expected an id, features and a label with tabs between them, found '{}'", shorten(line));
    let fields: Vec<&str> = line.split('\t').collect();
    let [id, features, label] = fields[..] else { return Err(expected()) };
    let values: std::result::Result<_, _> = features.split(',').map(|value| value.trim().parse()).collect();
    let (Ok(id), Ok(label), Ok(values)) = (id.parse(), label.trim().parse(), values) else { return Err(expected()) };
    Ok((id, label, values))
}

/// Numbers, as many a node; or the columns that are 1.
fn features_of(offsets: &[usize], values: Vec<f32>, limits: &Limits) -> std::result::Result<Features, String> {
    let nodes = offsets.len() - 1;
    let width = offsets.get(1).copied().unwrap_or(0);
    if offsets.windows(2).all(|pair| pair[1] - pair[0] == width) {
        return features::dense(vec![nodes, width], values, nodes);
    }
    let column = |&value: &f32| {
        let is_place = value >= 0.0 && value.fract() == 0.0 && value < limits.columns_max as f32;
        if is_place { Ok(value as u32) } else { Err(format!("expected places of columns that are 1, found {value}")) }
    };
    let columns: Vec<u32> = values.iter().map(column).collect::<std::result::Result<_, _>>()?;
    let count = columns.iter().max().map_or(0, |&last| i64::from(last) + 1);
    let count = limits.accept_columns(count, columns.len())?;
    let offsets = offsets.iter().map(|&offset| offset as i64).collect();
    let ones = vec![1.0; columns.len()];
    features::sparse(nodes, count, offsets, columns, ones)
}

/// Source and target of each line below the first.
fn read_edges(path: &Path, limits: &Limits) -> Result<(Vec<u32>, Vec<u32>)> {
    let mut lines = Lines::open(path, limits)?;
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    lines.next_line()?;
    while lines.next_line()?.is_some() {
        let ends: Vec<&str> = lines.line().split_ascii_whitespace().collect();
        match ends[..] {
            [] => {}
            [source, target] => {
                let (Ok(source), Ok(target)) = (source.parse(), target.parse()) else {
                    return Err(lines.error(format!("expected two ids, found '{}'", shorten(lines.line()))));
                };
                sources.push(source);
                targets.push(target);
            }
            _ => return Err(lines.error(format!("expected two ids, found {} fields", ends.len()))),
        }
        if sources.len() as u64 > limits.edges_max {
            return Err(GraphError::too_large(path, "edges", limits.edges_max));
        }
    }
    Ok((sources, targets))
}

/// More splits are a mistake.
const SPLITS_MAX: usize = 1 << 10;

/// All splits, in the order of the numbers at the ends of their names.
fn read_splits(folder: &Path, nodes: usize, limits: &Limits) -> Result<Vec<Split>> {
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for folder in [folder.to_owned(), folder.join("splits")] {
        for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let number = stem.rsplit('_').next().and_then(|number| number.parse().ok());
            if super::extension(&path) == "npz" && stem.contains("_split_") {
                found.extend(number.map(|number| (number, path)));
            }
        }
    }
    found.sort();
    found.truncate(SPLITS_MAX);
    let mut splits = Vec::new();
    for (_, path) in found {
        let mut npz = Npz::open(&path, limits)?;
        let mut one = Vec::new();
        for (name, role) in [("train_mask", Split::TRAIN), ("val_mask", Split::VAL), ("test_mask", Split::TEST)] {
            let mask = npz.read::<u8>(name, limits.nodes_max)?;
            let added = labels::add_mask(&mut one, role, &mask.shape, &mask.values, nodes);
            added.map_err(|what| npz.error(name, what))?;
        }
        splits.append(&mut one);
    }
    Ok(splits)
}

//! Planetoid folders (Cora, CiteSeer, PubMed): `ind.<name>.{x,tx,allx,y,ty,ally,graph,test.index}`.
//!
//! `allx` and `ally` are the features and one-hot labels of the nodes that are not for testing, of which the first, as
//! many as `y` has, are for training and the next 500 for validation. `tx` and `ty` belong to the nodes that
//! `test.index` names, row by row. Nodes that occur in neither (15 isolated ones of CiteSeer) get no features and no
//! label. `x` repeats the start of `allx` and is not read. Edges get both directions.

use super::features::sparse;
use super::numbers::{read_numbers, shorten};
use super::pickle::Pickle;
use super::pickled_arrays::{GLOBALS, SparseMatrix, array, sparse_matrix};
use super::text::read_bytes;
use super::{ReadOptions, Reader};
use crate::about::About;
use crate::build::build_graph;
use crate::dataset::{Dataset, Features, Ids, Labels, Split};
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use std::path::{Path, PathBuf};

/// The size of the public split's validation set.
const VALIDATION: usize = 500;

/// The reader of Planetoid folders.
pub struct Planetoid;

impl Reader for Planetoid {
    fn name(&self) -> &'static str {
        "Planetoid folder"
    }

    fn recognises(&self, path: &Path) -> bool {
        !names(path).is_empty()
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        let limits = &options.limits;
        let found = names(path);
        let [(folder, name)] = &found[..] else {
            let found: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
            let expected =
                format!("expected the files ind.NAME.* of one dataset, found those of [{}]", found.join(", "));
            return Err(GraphError::format(path, "folder", expected));
        };
        let files = Files { folder, name, limits };
        let allx = files.matrix("allx")?;
        let tx = files.matrix("tx")?;
        let tests = read_numbers::<u32>(&files.path("test.index"), limits, limits.nodes_max)?.values;
        let bytes = files.bytes()?;
        let edges = files.edges(bytes)?;
        let largest = tests.iter().chain(&edges.0).chain(&edges.1).max().map_or(0, |&largest| largest as usize + 1);
        let nodes = limits.accept_nodes(
            path,
            "test.index and graph",
            allx.rows.max(largest) as u64,
            (allx.rows as u64, bytes),
        )?;
        let source_row = files.rows(nodes, &allx, &tx, &tests)?;

        let features = gather_features(&allx, &tx, &source_row, limits)
            .map_err(|w| GraphError::format(&files.path("tx"), "matrix", w))?;
        let training = array_rows(&files.path("y"), &files.load("y")?)?.0;
        let labels = files.labels(&source_row, &allx, &tx)?;
        let mut roles = vec![0; nodes];
        let validation = training.saturating_add(VALIDATION).min(allx.rows);
        roles[..training.min(allx.rows)].fill(Split::TRAIN);
        roles[training.min(validation)..validation].fill(Split::VAL);
        tests.iter().for_each(|&node| roles[node as usize] |= Split::TEST);

        let graph_path = files.path("graph");
        let built = build_graph(nodes, edges.0, edges.1, None, options.build_undirected());
        let graph = built.map_err(|e| GraphError::format(&graph_path, "edges", e.to_string()))?.0;
        Dataset {
            name: name.clone(),
            graph,
            features,
            labels,
            splits: vec![Split { roles }],
            ids: Ids::Row,
            about: About::default(),
            exact: Default::default(),
            negatives: None,
        }
        .checked()
    }
}

/// Where Planetoid files lie for `path`, and the names of their datasets.
fn names(path: &Path) -> Vec<(PathBuf, String)> {
    let name_of = |file: &Path| {
        let file = file.file_name()?.to_str()?.strip_prefix("ind.")?;
        let name = file.strip_suffix(".test.index").or_else(|| file.rsplit_once('.').map(|(name, _)| name))?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    if path.is_file() {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        return name_of(path)
            .filter(|name| folder.join(format!("ind.{name}.graph")).is_file())
            .map(|name| (folder, name))
            .into_iter()
            .collect();
    }
    let mut found = Vec::new();
    for folder in [path.to_owned(), path.join("raw")] {
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let graphs = files.filter(|file| file.extension().is_some_and(|extension| extension == "graph"));
        found.extend(graphs.filter_map(|file| Some((folder.clone(), name_of(&file)?))));
    }
    found.sort();
    found
}

/// The files of one dataset.
struct Files<'a> {
    folder: &'a Path,
    name: &'a str,
    limits: &'a Limits,
}

/// Which row of `allx` or `tx` a node's features and label are in.
#[derive(Clone, Copy)]
enum Row {
    AllX(usize),
    Tx(usize),
    Nowhere,
}

impl Files<'_> {
    fn path(&self, part: &str) -> PathBuf {
        self.folder.join(format!("ind.{}.{part}", self.name))
    }

    fn bytes(&self) -> Result<u64> {
        let size = |part| {
            let path = self.path(part);
            std::fs::metadata(&path).map(|metadata| metadata.len()).map_err(|e| GraphError::io(&path, e))
        };
        ["allx", "tx", "graph", "test.index"].into_iter().map(size).sum()
    }

    fn load(&self, part: &str) -> Result<Pickle> {
        let path = self.path(part);
        Pickle::read(&read_bytes(&path, self.limits)?, GLOBALS)
            .map_err(|what| GraphError::format(&path, "pickle", what))
    }

    fn matrix(&self, part: &str) -> Result<SparseMatrix> {
        let pickle = self.load(part)?;
        let matrix = sparse_matrix(&pickle, pickle.root()).and_then(|matrix| {
            super::features::check_offsets(&matrix.offsets, matrix.rows, matrix.indices.len())?;
            if matrix.values.len() == matrix.indices.len() {
                Ok(matrix)
            } else {
                Err("expected one value an index".to_owned())
            }
        });
        matrix.map_err(|what| GraphError::format(&self.path(part), "matrix", what))
    }

    /// Sources and targets of the dictionary of neighbour lists.
    fn edges(&self, bytes: u64) -> Result<(Vec<u32>, Vec<u32>)> {
        let pickle = self.load("graph")?;
        let error = |what: String| GraphError::format(&self.path("graph"), "dictionary", what);
        let entries =
            pickle.entries(pickle.root()).ok_or_else(|| error("expected nodes with lists of neighbours".to_owned()))?;
        let id = |id| {
            let node = pickle.int(id).and_then(|node| u32::try_from(node).ok());
            node.ok_or_else(|| error(format!("expected a node, found {}", shorten(&format!("{:?}", pickle.node(id))))))
        };
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        for &(node, neighbours) in entries {
            let node = id(node)?;
            let neighbours =
                pickle.items(neighbours).ok_or_else(|| error(format!("node {node} has no list of neighbours")))?;
            // A pickle may refer to one list many times, so the sum of their lengths can pass the size of the file.
            if (sources.len() + neighbours.len()) as u64 > self.limits.edges_max.min(bytes.saturating_mul(64)) {
                return Err(error("more neighbours than the file could list".to_owned()));
            }
            for &neighbour in neighbours {
                sources.push(node);
                targets.push(id(neighbour)?);
            }
        }
        Ok((sources, targets))
    }

    fn rows(&self, nodes: usize, allx: &SparseMatrix, tx: &SparseMatrix, tests: &[u32]) -> Result<Vec<Row>> {
        let path = self.path("test.index");
        if tests.len() != tx.rows {
            let expected = format!("expected {} nodes, as many as tx has rows, found {}", tx.rows, tests.len());
            return Err(GraphError::format(&path, "lines", expected));
        }
        let mut rows = vec![Row::Nowhere; nodes];
        rows.iter_mut().take(allx.rows).enumerate().for_each(|(node, row)| *row = Row::AllX(node));
        for (place, &node) in tests.iter().enumerate() {
            if !matches!(rows[node as usize], Row::Nowhere) {
                let expected = format!("node {node} has features already (allx has {} rows)", allx.rows);
                return Err(GraphError::format(&path, format!("line {}", place + 1), expected));
            }
            rows[node as usize] = Row::Tx(place);
        }
        Ok(rows)
    }

    fn labels(&self, rows: &[Row], allx: &SparseMatrix, tx: &SparseMatrix) -> Result<Labels> {
        let (all_rows, all) = array_rows(&self.path("ally"), &self.load("ally")?)?;
        let (test_rows, test) = array_rows(&self.path("ty"), &self.load("ty")?)?;
        let classes = all.len().checked_div(all_rows).unwrap_or(0);
        if all_rows != allx.rows || test_rows != tx.rows || test.len() != test_rows * classes {
            let expected = format!("expected {} and {} rows of one width", allx.rows, tx.rows);
            return Err(GraphError::format(&self.path("ty"), "array", expected));
        }
        let class = |one_hot: &[f64]| one_hot.iter().position(|&v| v != 0.0).map_or(-1, |class| class as i32);
        let values = rows.iter().map(|row| match *row {
            Row::AllX(row) => class(&all[row * classes..(row + 1) * classes]),
            Row::Tx(row) => class(&test[row * classes..(row + 1) * classes]),
            Row::Nowhere => -1,
        });
        Ok(Labels::Single { classes, values: values.collect() })
    }
}

/// Rows and values of the matrix of one-hot labels in `pickle`.
fn array_rows(path: &Path, pickle: &Pickle) -> Result<(usize, Vec<f64>)> {
    let labels = array(pickle, pickle.root()).map_err(|what| GraphError::format(path, "array", what))?;
    match labels.shape[..] {
        [rows, classes] if classes > 0 => Ok((rows, labels.values)),
        _ => {
            let expected = format!("expected the shape [nodes, classes], found {:?}", labels.shape);
            Err(GraphError::format(path, "array", expected))
        }
    }
}

fn gather_features(
    allx: &SparseMatrix,
    tx: &SparseMatrix,
    rows: &[Row],
    limits: &Limits,
) -> std::result::Result<Features, String> {
    if allx.columns != tx.columns {
        return Err(format!("{} columns, but allx has {}", tx.columns, allx.columns));
    }
    let (mut offsets, mut indices, mut values) = (vec![0i64], Vec::new(), Vec::new());
    for row in rows {
        let taken = match *row {
            Row::AllX(row) => Some((allx, row)),
            Row::Tx(row) => Some((tx, row)),
            Row::Nowhere => None,
        };
        if let Some((matrix, row)) = taken {
            let range = matrix.offsets[row] as usize..matrix.offsets[row + 1] as usize;
            indices.extend_from_slice(&matrix.indices[range.clone()]);
            values.extend_from_slice(&matrix.values[range]);
        }
        offsets.push(indices.len() as i64);
    }
    let columns = limits.accept_columns(allx.columns, allx.values.len().saturating_add(tx.values.len()))?;
    sparse(rows.len(), columns, offsets, indices, values)
}

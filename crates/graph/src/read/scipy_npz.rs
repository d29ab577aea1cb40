//! What `scipy.sparse.save_npz` writes: the adjacency matrix of a graph, as CSR, CSC or COO.
//!
//! Each stored value, also 0, is an edge from the row's node to the column's, with the value as its weight; values that
//! are true or false are no weights. A node table beside it has a row for each row of the matrix.

use super::arrays::Npz;
use super::beside::{self, Square};
use super::gnn_benchmark::read_adjacency;
use super::matrix_market::rectangular;
use super::{ReadOptions, Reader, extension};
use crate::dataset::Dataset;
use crate::edges::EdgeData;
use crate::error::Result;
use crate::limits::Limits;
use crate::npy::Kind;
use crate::roles::{Role, Roles};
use std::path::Path;

/// The reader of SciPy's matrices.
pub struct ScipyNpz;

impl Reader for ScipyNpz {
    fn name(&self) -> &'static str {
        "SciPy sparse npz"
    }

    fn recognises(&self, path: &Path) -> bool {
        let fits = |npz: Npz| ["format", "shape", "data"].iter().all(|name| npz.has(name));
        extension(path) == "npz" && Npz::open(path, &Limits::default()).is_ok_and(fits)
    }

    fn reads_key(&self, key: &str) -> bool {
        beside::reads_key(key)
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        Ok(self.read_with_roles(path, options)?.0)
    }

    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let limits = &options.limits;
        let mut npz = Npz::open(path, limits)?;
        let nodes = count_rows(&mut npz, path, limits)?;
        let (sources, targets) = read_ends(&mut npz, limits)?;
        let mut roles = Roles::default();
        let mut lines = roles.of_table(path);
        lines.line(Role::Source, &[], "rows of the matrix");
        lines.line(Role::Target, &[], "columns of the matrix");
        let weights = match npz.header("data")?.kind {
            Kind::Bool => None,
            _ => Some(npz.read::<f32>("data", limits.edges_max)?.values),
        };
        if let Some(weights) = &weights {
            lines.line(Role::Weight, &["data"], "values");
            if weights.len() != sources.len() {
                let what = format!("expected {} values, one an entry, found {}", sources.len(), weights.len());
                return Err(npz.error("data", what));
            }
        }
        let data = EdgeData::from(weights);
        Square { nodes, first: 0, sources, targets, data, undirected: false }.read(path, options, roles)
    }
}

/// The row and the column of each entry of a square matrix.
pub(super) fn read_ends(npz: &mut Npz, limits: &Limits) -> Result<(Vec<u32>, Vec<u32>)> {
    Ok(match npz.word("format")?.as_str() {
        "csr" => {
            let (_, rows, columns) = read_adjacency(npz, "", limits)?;
            (rows, columns)
        }
        "csc" => {
            let (_, columns, rows) = read_adjacency(npz, "", limits)?;
            (rows, columns)
        }
        "coo" => {
            let rows = npz.read::<u32>("row", limits.edges_max)?.values;
            (rows, npz.read::<u32>("col", limits.edges_max)?.values)
        }
        other => {
            let what = format!("a matrix in the form '{other}', expected csr, csc or coo");
            let instead = "scipy.sparse.save_npz(\"graph.npz\", matrix.tocsr()) writes it so";
            return Err(npz.error("format", format!("{what}: {instead}")));
        }
    })
}

/// The number of rows, which is that of columns.
pub(super) fn count_rows(npz: &mut Npz, path: &Path, limits: &Limits) -> Result<usize> {
    let shape = npz.read::<i64>("shape", 2)?.values;
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    match shape[..] {
        [rows, columns] if rows >= 0 && rows == columns => {
            limits.accept_nodes(path, "array 'shape'", rows as u64, (npz.rows("indptr")?.saturating_sub(1), bytes))
        }
        [rows, columns] if rows >= 0 && columns >= 0 => {
            let way = "scipy.io.mmwrite(\"graph.mtx\", matrix) writes what --bipartite (data.bipartite) reads as links \
                       between nodes of two kinds";
            Err(npz.error("shape", rectangular((rows as u64, columns as u64), way)))
        }
        _ => Err(npz.error("shape", format!("expected the rows and columns of a matrix, found {shape:?}"))),
    }
}

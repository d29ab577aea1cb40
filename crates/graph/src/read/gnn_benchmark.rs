//! The `.npz` of shchur/gnn-benchmark: Amazon Photo and Computers, Coauthor CS and Physics, CitationFull.
//!
//! `adj_{data,indices,indptr,shape}` is the adjacency matrix, `attr_{data,indices,indptr,shape}` (or `attr_matrix`) the
//! features, `labels` the classes. As everyone does who uses these files, edges get both directions and lose their
//! values; features stay as they are, counts where they are counts. Names of nodes and attributes are pickled and
//! skipped unread. There is no split.

use super::arrays::Npz;
use super::{ReadOptions, Reader, dataset_name, extension, features, labels};
use crate::about::About;
use crate::build::build_graph;
use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::error::Result;
use crate::exact::Exact;
use crate::limits::Limits;
use std::path::Path;

/// The reader of gnn-benchmark files.
pub struct GnnBenchmark;

impl Reader for GnnBenchmark {
    fn name(&self) -> &'static str {
        "gnn-benchmark npz"
    }

    fn recognises(&self, path: &Path) -> bool {
        let fits = |npz: Npz| npz.has("adj_indptr") && npz.has("adj_indices");
        extension(path) == "npz" && Npz::open(path, &Limits::default()).is_ok_and(fits)
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        let limits = &options.limits;
        let mut npz = Npz::open(path, limits)?;
        let (nodes, sources, targets) = read_adjacency(&mut npz, "adj_", limits)?;
        let built = build_graph(nodes, sources, targets, None, options.build_undirected());
        let graph = built.map_err(|error| npz.error("adj_indices", error.to_string()))?.0;
        let (features, exact) = if npz.has("attr_data") {
            features::npz_csr_features(&mut npz, "attr", nodes, limits)?
        } else if npz.has("attr_matrix") {
            features::DenseArray::Member(&mut npz, "attr_matrix").read(nodes, limits)?
        } else {
            (Features::None, Exact::default())
        };
        let labels = match npz.optional::<f64>("labels", limits.features_values_max)? {
            Some(array) => labels::from_array(&array.shape, &array.values, nodes, limits)
                .map_err(|what| npz.error("labels", what))?,
            None => Labels::None,
        };
        Dataset {
            name: dataset_name(path),
            graph,
            features,
            exact,
            labels,
            splits: Vec::new(),
            ids: Ids::Row,
            about: About::default(),
            negatives: None,
        }
        .checked()
    }
}

/// The number of nodes and each edge's row and column from the square CSR matrix `<prefix>{indices,indptr,shape}`.
pub(super) fn read_adjacency(npz: &mut Npz, prefix: &str, limits: &Limits) -> Result<(usize, Vec<u32>, Vec<u32>)> {
    let member = |part: &str| format!("{prefix}{part}");
    let shape = npz.read::<i64>(&member("shape"), 2)?.values;
    let nodes = match shape[..] {
        [rows, columns] if rows == columns && (0..=limits.nodes_max as i64).contains(&rows) => rows as usize,
        _ => return Err(npz.error(&member("shape"), format!("expected [nodes, nodes], found {shape:?}"))),
    };
    let offsets = npz.read::<i64>(&member("indptr"), limits.nodes_max.saturating_add(1))?.values;
    let targets = npz.read::<u32>(&member("indices"), limits.edges_max)?.values;
    features::check_offsets(&offsets, nodes, targets.len()).map_err(|what| npz.error(&member("indptr"), what))?;
    let mut sources = Vec::with_capacity(targets.len());
    for (node, pair) in offsets.windows(2).enumerate() {
        sources.resize(pair[1] as usize, node as u32);
    }
    Ok((nodes, sources, targets))
}

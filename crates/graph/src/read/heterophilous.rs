//! The `.npz` of Platonov et al., 2023: roman-empire, amazon-ratings, minesweeper, tolokers and questions.
//!
//! `node_features`, `node_labels`, `edges` (a row an edge, which leads both ways) and `train_masks`, `val_masks`,
//! `test_masks` (a row a split).

use super::arrays::{Array, Npz};
use super::features::DenseArray;
use super::{ReadOptions, Reader, dataset_name, extension, labels};
use crate::about::About;
use crate::build::build_graph;
use crate::dataset::{Dataset, Ids, Split};
use crate::error::Result;
use crate::limits::Limits;
use std::path::Path;

/// The reader of heterophilous graphs.
pub struct Heterophilous;

impl Reader for Heterophilous {
    fn name(&self) -> &'static str {
        "heterophilous npz"
    }

    fn recognises(&self, path: &Path) -> bool {
        let fits = |npz: Npz| ["node_features", "node_labels", "edges"].iter().all(|name| npz.has(name));
        extension(path) == "npz" && Npz::open(path, &Limits::default()).is_ok_and(fits)
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        let limits = &options.limits;
        let mut npz = Npz::open(path, limits)?;
        let rows = npz.rows("node_labels")?;
        let nodes = limits.accept_nodes(path, "array 'node_labels'", rows, (rows, 0))?;
        let (features, exact) = DenseArray::Member(&mut npz, "node_features").read(nodes, limits)?;
        let Array { shape, values } = npz.read::<f64>("node_labels", limits.features_values_max)?;
        let labels = labels::from_array(&shape, &values, nodes, limits);
        let labels = labels.map_err(|what| npz.error("node_labels", what))?;
        let Array { shape, values } = npz.read::<u32>("edges", limits.edges_max.saturating_mul(2))?;
        if shape.len() != 2 || shape[1] != 2 {
            return Err(npz.error("edges", format!("expected the shape [edges, 2], found {shape:?}")));
        }
        let (sources, targets) = values.chunks_exact(2).map(|ends| (ends[0], ends[1])).unzip();
        let built = build_graph(nodes, sources, targets, None, options.build_undirected());
        let graph = built.map_err(|error| npz.error("edges", error.to_string()))?.0;
        let splits = read_splits(&mut npz, nodes, limits)?;
        let (name, ids, about) = (dataset_name(path), Ids::Row, About::default());
        Dataset { name, graph, features, exact, labels, splits, ids, about, negatives: None }.checked()
    }
}

/// A split for each row of the masks.
fn read_splits(npz: &mut Npz, nodes: usize, limits: &Limits) -> Result<Vec<Split>> {
    let mut splits: Vec<Split> = Vec::new();
    for (name, role) in [("train_masks", Split::TRAIN), ("val_masks", Split::VAL), ("test_masks", Split::TEST)] {
        let Some(Array { shape, values }) = npz.optional::<u8>(name, limits.features_values_max)? else { continue };
        let fits = shape.len() == 2 && shape[1] == nodes && shape[0] <= values.len();
        if !fits || !splits.is_empty() && splits.len() != shape[0] {
            return Err(npz.error(name, format!("expected the shape [splits, {nodes}], found {shape:?}")));
        }
        splits.resize(shape[0], Split { roles: vec![0; nodes] });
        for (split, mask) in splits.iter_mut().zip(values.chunks_exact(nodes.max(1))) {
            split.roles.iter_mut().zip(mask).filter(|(_, is_in)| **is_in != 0).for_each(|(roles, _)| *roles |= role);
        }
    }
    Ok(splits)
}

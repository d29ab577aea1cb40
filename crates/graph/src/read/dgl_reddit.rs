//! DGL's Reddit folder: `reddit_graph.npz`, a SciPy matrix whose values count for nothing, and `reddit_data.npz` with
//! `feature`, `label` and `node_types` (1 train, 2 validation, 3 test).

use super::arrays::Npz;
use super::features::DenseArray;
use super::scipy_npz::{count_rows, read_ends};
use super::{ReadOptions, Reader, dataset_name, labels};
use crate::about::About;
use crate::build::build_graph;
use crate::dataset::{Dataset, Ids, Split};
use crate::error::Result;
use std::path::Path;

/// The reader of DGL's Reddit folder.
pub struct DglReddit;

const GRAPH: [&str; 2] = ["reddit_graph.npz", "reddit_self_loop_graph.npz"];
const DATA: &str = "reddit_data.npz";

impl Reader for DglReddit {
    fn name(&self) -> &'static str {
        "DGL Reddit folder"
    }

    fn recognises(&self, path: &Path) -> bool {
        path.join(DATA).is_file() && GRAPH.iter().any(|name| path.join(name).is_file())
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        let limits = &options.limits;
        let graph_path = GRAPH.map(|name| path.join(name)).into_iter().find(|path| path.is_file());
        let graph_path = graph_path.unwrap_or_else(|| path.join(GRAPH[0]));
        let mut graph = Npz::open(&graph_path, limits)?;
        let nodes = count_rows(&mut graph, &graph_path, limits)?;
        let (sources, targets) = read_ends(&mut graph, limits)?;
        let built = build_graph(nodes, sources, targets, None, options.build());
        let graph = built.map_err(|error| graph.error("row", error.to_string()))?.0;
        let mut data = Npz::open(&path.join(DATA), limits)?;
        let (features, exact) = DenseArray::Member(&mut data, "feature").read(nodes, limits)?;
        let array = data.read::<f64>("label", limits.features_values_max)?;
        let labels = labels::from_array(&array.shape, &array.values, nodes, limits);
        let labels = labels.map_err(|what| data.error("label", what))?;
        let types = data.read::<u8>("node_types", limits.nodes_max)?.values;
        let role = |&kind: &u8| match kind {
            1 => Split::TRAIN,
            2 => Split::VAL,
            3 => Split::TEST,
            _ => 0,
        };
        let splits = vec![Split { roles: types.iter().map(role).collect() }];
        let (name, ids, about) = (dataset_name(path), Ids::Row, About::default());
        Dataset { name, graph, features, exact, labels, splits, ids, about, negatives: None }.checked()
    }
}

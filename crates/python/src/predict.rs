//! What a trained model says about nodes.

use std::path::{Path, PathBuf};

use laconic_graph::digest::digest;
use laconic_train::run::predict::Predictions;
use laconic_train::run::source::prepared_of;
use laconic_train::{Data, Loaded, TrainError, load};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::codec;
use crate::error;
use crate::graph::Graph;
use crate::threads::may_compute;

/// Rows of all nodes, in their order.
struct Rows {
    columns: usize,
    values: Vec<f32>,
}

impl Rows {
    fn new(nodes: usize, columns: usize) -> Rows {
        Rows { columns, values: vec![0.0; nodes * columns] }
    }

    /// Puts the rows of a part where its nodes are.
    fn put(&mut self, nodes: &[u64], rows: &[f32]) {
        for (&node, row) in nodes.iter().zip(rows.chunks_exact(self.columns.max(1))) {
            let at = node as usize * self.columns;
            self.values[at..at + self.columns].copy_from_slice(row);
        }
    }

    fn into_array(self, py: Python<'_>) -> PyResult<Bound<'_, PyArray2<f32>>> {
        let rows = self.values.len() / self.columns.max(1);
        let array = Array2::from_shape_vec((rows, self.columns), self.values);
        Ok(array.map_err(|error| PyRuntimeError::new_err(error.to_string()))?.into_pyarray(py))
    }
}

/// Logits, embeddings, the names of classes, and whether a node may have several of them.
type Predicted<'py> = (Bound<'py, PyArray2<f32>>, Option<Bound<'py, PyArray2<f32>>>, Vec<String>, bool);

/// What the model in a run's folder says about all nodes of a graph: logits `[nodes, classes]`, embeddings
/// `[nodes, columns]` (what the last layer reads, None for a model of one layer). `own`: this is the graph that the
/// model was trained on, cut and prepared as then, with the messages that the run was judged with. Without a graph it
/// is what `data.path` names.
#[pyfunction]
#[pyo3(signature = (folder, graph = None, *, own = true))]
pub fn predict(py: Python<'_>, folder: PathBuf, graph: Option<Py<Graph>>, own: bool) -> PyResult<Predicted<'_>> {
    may_compute()?;
    let graph = graph.as_ref().map(Py::get);
    let (loaded, parts) = py.detach(|| predicted(&folder, graph, own)).map_err(error::of)?;
    let nodes = parts.iter().map(|part| part.nodes.len()).sum();
    let width = |part: &Predictions| part.inferred.logits.columns();
    let mut logits = Rows::new(nodes, parts.first().map_or(0, width));
    let columns = parts.first().and_then(|part| part.inferred.embedding.as_ref()).map(|rows| rows.columns());
    let mut embeddings = columns.map(|columns| Rows::new(nodes, columns));
    for part in &parts {
        logits.put(&part.nodes, part.inferred.logits.data());
        if let (Some(all), Some(rows)) = (&mut embeddings, &part.inferred.embedding) {
            all.put(&part.nodes, rows.data());
        }
    }
    let embeddings = embeddings.map(|rows| rows.into_array(py)).transpose()?;
    Ok((logits.into_array(py)?, embeddings, loaded.classes(), loaded.is_multi_label()))
}

/// The model, and what it says part by part.
fn predicted(folder: &Path, graph: Option<&Graph>, own: bool) -> laconic_train::Result<(Loaded, Vec<Predictions>)> {
    let loaded = load(folder, codec::members()?)?;
    let parts = match graph {
        None => loaded.predict(Data::Configured),
        Some(Graph { dataset, .. }) if !own => loaded.predict_other(dataset.clone()),
        Some(Graph { dataset, roles, .. }) => {
            let prepared = prepared_of(dataset.clone(), roles.clone(), &loaded.config().data)?;
            if !["", &digest(&prepared.dataset)].contains(&loaded.data_digest()) {
                let what = "this is not the graph that the run was trained on; predictions(graph) takes another one";
                return Err(TrainError::config(what));
            }
            loaded.predict(Data::Dataset(Box::new(prepared.dataset), prepared.split))
        }
    }?;
    Ok((loaded, parts))
}

//! Graphs in memory.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use laconic_array::{Array, Lend};
use laconic_graph::dataset::{Dataset, Features, Ids};
use laconic_graph::read::interchange::read_lent;
use laconic_graph::read::{ReadOptions, read_with_roles};
use laconic_graph::roles::Roles;
use laconic_graph::write::write_interchange;
use numpy::{PyArray1, PyUntypedArray};
use pyo3::prelude::*;

use crate::error::of_graph;
use crate::lent::lent;
use crate::threads::may_compute;

/// A graph with features, labels and splits, as readers of the program made it. Nothing changes it.
#[pyclass(frozen, module = "laconic_gnn._laconic")]
pub struct Graph {
    /// The data.
    pub dataset: Dataset,
    /// What became of arrays and columns.
    pub roles: Roles,
    /// The file that holds it as it is, without a word about how to read it.
    pub source: Option<PathBuf>,
}

/// Features that runs share with the graph.
struct Shared(Array<f32>);

impl Lend<f32> for Shared {
    fn values(&self) -> &[f32] {
        &self.0
    }
}

impl Graph {
    /// Runs begin with a copy of the dataset, which leaves dense features where they are.
    fn of(mut dataset: Dataset, roles: Roles, source: Option<PathBuf>) -> Graph {
        if let Features::Dense { values, .. } = &mut dataset.features
            && values.lender().is_none()
        {
            *values = Array::lent(Arc::new(Shared(std::mem::take(values))));
        }
        Graph { dataset, roles, source }
    }
}

#[pymethods]
impl Graph {
    /// A graph of arrays by the names of the interchange format; `edge_index` has to be among them.
    #[staticmethod]
    #[pyo3(signature = (name, arrays, *, typed = false, symmetrise = false, keep_self_loops = false))]
    fn from_arrays(
        py: Python<'_>,
        name: &str,
        arrays: BTreeMap<String, Bound<'_, PyUntypedArray>>,
        typed: bool,
        symmetrise: bool,
        keep_self_loops: bool,
    ) -> PyResult<Graph> {
        may_compute()?;
        let arrays = arrays.iter().map(|(name, array)| Ok((name.clone(), lent(array)?)));
        let arrays = arrays.collect::<PyResult<BTreeMap<_, _>>>()?;
        let options = ReadOptions { typed, symmetrise, keep_self_loops, ..ReadOptions::default() };
        let (dataset, roles) = py.detach(|| read_lent(name, arrays, &options)).map_err(of_graph)?;
        Ok(Graph::of(dataset, roles, None))
    }

    /// Reads a file or folder in any format that `laconic data info` reads.
    #[staticmethod]
    #[pyo3(signature = (path, *, typed = false, symmetrise = false, keep_self_loops = false))]
    fn read(py: Python<'_>, path: PathBuf, typed: bool, symmetrise: bool, keep_self_loops: bool) -> PyResult<Graph> {
        may_compute()?;
        let options = ReadOptions { typed, symmetrise, keep_self_loops, ..ReadOptions::default() };
        let (dataset, roles) = py.detach(|| read_with_roles(&path, &options)).map_err(of_graph)?;
        let source = if symmetrise || keep_self_loops { None } else { std::path::absolute(path).ok() };
        Ok(Graph::of(dataset, roles, source))
    }

    /// Writes the graph as one npz, which `read` and the program take.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        may_compute()?;
        py.detach(|| write_interchange(&path, &self.dataset)).map_err(of_graph)
    }

    /// The file that holds it as it is, if one does.
    #[getter]
    fn source(&self) -> Option<PathBuf> {
        self.source.clone()
    }

    /// What the graph is called.
    #[getter]
    fn name(&self) -> &str {
        &self.dataset.name
    }

    /// The number of nodes.
    #[getter]
    fn nodes(&self) -> usize {
        self.dataset.graph.nodes()
    }

    /// The number of directed edges.
    #[getter]
    fn edges(&self) -> usize {
        self.dataset.graph.edges()
    }

    /// The number of feature columns.
    #[getter]
    fn features(&self) -> usize {
        self.dataset.features.columns()
    }

    /// The number of classes.
    #[getter]
    fn classes(&self) -> usize {
        self.dataset.labels.classes()
    }

    /// Whether edges or nodes are told apart by type.
    #[getter]
    pub fn is_typed(&self) -> bool {
        self.dataset.graph.data.relations.is_some() || !self.dataset.about.node_types.is_empty()
    }

    /// Whether edges from a node to itself are to be kept where the graph is read from what it is saved as.
    #[getter]
    pub fn keeps_self_loops(&self) -> bool {
        self.source.is_none() && self.dataset.graph.has_self_loops()
    }

    /// What each class is called, in their order.
    #[getter]
    fn class_names(&self) -> Vec<String> {
        (0..self.classes()).map(|class| self.dataset.about.class(class)).collect()
    }

    /// What nodes are called: whole numbers as an array, texts as a list; None where they are called by their row.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.dataset.ids {
            Ids::Row => Ok(None),
            Ids::Integers(ids) => Ok(Some(PyArray1::from_slice(py, ids).into_any())),
            Ids::Strings(ids) => Ok(Some(ids.into_pyobject(py)?.into_any())),
        }
    }

    /// What became of arrays and columns, a line each table.
    #[getter]
    fn roles(&self) -> Vec<String> {
        self.roles.notes().collect()
    }

    fn __repr__(&self) -> String {
        let (nodes, edges, features, classes) = (self.nodes(), self.edges(), self.features(), self.classes());
        format!("Graph({:?}: {nodes} nodes, {edges} edges, {features} features, {classes} classes)", self.name())
    }
}

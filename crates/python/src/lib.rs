//! The extension module of the Python package `laconic_gnn`: graphs, runs and the program itself. What users see of it
//! is Python, in `python/laconic_gnn`.

mod codec;
mod error;
mod graph;
mod lent;
mod predict;
mod threads;
mod train;

/// Graph neural networks on graphs that are stored in several places.
#[pyo3::pymodule(gil_used = false)]
mod _laconic {
    use std::ffi::OsString;

    use pyo3::prelude::*;

    #[pymodule_export]
    use super::codec::Registered;
    #[pymodule_export]
    use super::graph::Graph;
    #[pymodule_export]
    use super::lent::mark_bfloat16;
    #[pymodule_export]
    use super::predict::predict;
    #[pymodule_export]
    use super::train::{resume, train, transport};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// The program `laconic` with the words of its command line; `again` are those that start it once more.
    #[pyfunction]
    fn run_program(py: Python<'_>, words: Vec<OsString>, again: Vec<OsString>) -> u8 {
        py.detach(|| laconic_gnn::run(words, Some(again)))
    }
}

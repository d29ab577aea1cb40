//! The extension module of the Python package `laconic_gnn`: graphs, runs and the program itself. What users see of it
//! is Python, in `python/laconic_gnn`.

mod codec;
mod error;
mod graph;
mod lent;
mod predict;
mod threads;
mod train;

use std::ffi::OsString;

use pyo3::prelude::*;

/// The program `laconic` with the words of its command line; `again` are those that start it once more.
#[pyfunction]
fn run_program(py: Python<'_>, words: Vec<OsString>, again: Vec<OsString>) -> u8 {
    py.detach(|| laconic_gnn::run(words, Some(again)))
}

/// Graph neural networks on graphs that are stored in several places.
#[pymodule(gil_used = false)]
fn _laconic(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(run_program, module)?)?;
    module.add_function(wrap_pyfunction!(train::train, module)?)?;
    module.add_function(wrap_pyfunction!(predict::predict, module)?)?;
    module.add_class::<codec::Registered>()?;
    module.add_class::<graph::Graph>()
}

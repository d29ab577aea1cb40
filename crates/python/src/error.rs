//! Errors of Python for those of Rust.

use laconic_graph::error::GraphError;
use laconic_train::TrainError;
use pyo3::prelude::*;

/// The error of Python for one of Rust, with the same text; `laconic_gnn.errors` chooses its class by the exit code
/// that the program would have.
pub fn of(error: TrainError) -> PyErr {
    with_code(error.exit_code(), &error.to_string())
}

/// The error of Python that this exit code stands for.
pub fn with_code(code: u8, text: &str) -> PyErr {
    Python::attach(|py| {
        let made = py.import("laconic_gnn.errors").and_then(|errors| errors.call_method1("of", (code, text)));
        made.map_or_else(|failed| failed, PyErr::from_value)
    })
}

/// The same for an error about a graph.
pub fn of_graph(error: GraphError) -> PyErr {
    of(TrainError::from(error))
}

//! The process whose threads compute.

use std::sync::OnceLock;

use pyo3::prelude::*;

use crate::error;

/// The process that has computed first.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Lets this process compute, if it is the one that began to: threads do not come along into a process that is forked
/// off, which would wait for them for ever.
///
/// # Errors
/// In such a process.
pub fn may_compute() -> PyResult<()> {
    let this = std::process::id();
    if *PROCESS.get_or_init(|| this) == this {
        return Ok(());
    }
    let what = "this process was forked off one that had used laconic_gnn already, whose threads are not here; \
                start it anew: multiprocessing.get_context(\"spawn\")";
    Err(error::with_code(70, what))
}

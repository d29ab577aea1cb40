//! What tests need that not every machine has. A test without it passes, and says so where people see it.
//!
//! Whoever knows that it should be there sets `LACONIC_REQUIRE` (`data,reference,python`): then its absence is a
//! failure.
//! What was skipped is also added to the file that `LACONIC_SKIPPED` names.

use std::io::Write;
use std::path::{Path, PathBuf};

/// A file or folder shared beside the repository, such as `data/cora.npz`, if it is on this machine.
pub fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    if path.exists() {
        return Some(path);
    }
    missing(name.split('/').next().unwrap_or_default(), &path.display().to_string());
    None
}

/// Says that a test is skipped because `what` is not there, or fails where things of this kind are required.
pub fn missing(kind: &str, what: &str) {
    let required = std::env::var("LACONIC_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|required| required == kind), "{what} is not there");
    let thread = std::thread::current();
    let line = format!("skipped: {}: {what} is not there\n", thread.name().unwrap_or_default());
    // Not by the macros, whose output is kept back from tests that pass.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os("LACONIC_SKIPPED") {
        let list = std::fs::File::options().create(true).append(true).open(list);
        list.and_then(|mut list| list.write_all(line.as_bytes())).expect("the list of what was skipped");
    }
}

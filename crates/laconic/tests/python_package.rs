//! The Python package, where it is installed: its own tests, `python/tests`, are pytest's.

mod program;

use std::path::Path;
use std::process::Command;

use program::needs;

/// What has to be there for these tests; pytest says itself which further libraries it has not found.
const MODULES: &str = "laconic_gnn, pytest, numpy";

#[test]
fn the_python_package_keeps_its_laws_where_it_is_installed() {
    let there = Command::new("python3").args(["-c", &format!("import {MODULES}")]).output();
    if !there.is_ok_and(|there| there.status.success()) {
        needs::missing("package", &format!("Python with {MODULES}"));
        return;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests");
    // From the folder of the tests, so that what is imported is what was installed.
    let ran = Command::new("python3")
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "."])
        .current_dir(tests)
        .output()
        .expect("pytest");
    let (said, failed) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}\n{failed}");
    let summary = said.lines().next_back().unwrap_or_default();
    assert!(summary.contains(" passed"), "{said}");
    for line in said.lines().filter(|line| line.starts_with("SKIPPED")) {
        needs::missing("libraries of Python", line);
    }
}

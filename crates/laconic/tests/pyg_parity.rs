//! Parity with PyTorch Geometric on every stored case: one worker and several, under both partitioners. Runs
//! `examples/pyg_parity.rs`, which `cargo test` builds together with this.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The example's program: beside this test's own folder.
fn program() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("this test is a file");
    let folder = test.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    let path = folder.join("examples").join(format!("pyg_parity{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        println!("skipped: {} is not built", path.display());
        return None;
    }
    Some(path)
}

/// The cases in a folder, by name.
fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: {} is not there", folder.display());
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "npz")).collect();
    paths.sort();
    paths
}

fn assert_parity(folder: &str, expected: usize) {
    let Some(program) = program() else { return };
    let cases = cases(folder);
    assert!(cases.is_empty() || cases.len() >= expected, "{folder}: {cases:?}");
    let mut worst = (0.0f64, String::new());
    for case in cases {
        let name = case.file_stem().expect("a name").to_string_lossy();
        for (workers, method) in [(1, "random"), (2, "random"), (3, "multilevel"), (5, "random"), (5, "multilevel")] {
            let mut command = Command::new(&program);
            command.arg(&case).args(["--workers", &workers.to_string(), "--partition", method]);
            let done = command.output().expect("the program runs");
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{command:?}:\n{text}{said}");
            let mut largest =
                text.lines().filter_map(|line| line.strip_prefix("largest ")?.split(',').next()?.parse().ok());
            let largest: f64 = largest.next_back().unwrap_or_else(|| panic!("{command:?}: no figure in\n{text}"));
            if largest > worst.0 {
                worst = (largest, format!("{name}, {workers} workers, {method}"));
            }
        }
    }
    println!("{folder}: largest {:.1e} ({})", worst.0, worst.1);
}

#[test]
fn the_stored_cases_agree_with_pytorch_geometric() {
    assert_parity("tests/fixtures/pyg", 16);
}

#[test]
fn the_shared_references_agree_with_pytorch_geometric() {
    assert_parity("../shared/reference", 4);
}

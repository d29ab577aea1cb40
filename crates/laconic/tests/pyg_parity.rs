//! Parity with PyTorch Geometric on every stored case: one worker and several, under both partitioners. Runs
//! `tests/parity/pyg_parity.rs`, which `cargo test` builds together with this.

#[path = "../../../tests/needs.rs"]
mod needs;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The example's program, beside this test's own folder; as new as the sources that it was made from, which stand in
/// the list that the compiler leaves beside it.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("this test is a file");
    let folder = test.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    let path = folder.join("examples").join(format!("pyg_parity{}", std::env::consts::EXE_SUFFIX));
    let build = "cargo build --release --examples makes it, and so does cargo test without --test";
    let changed = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    let Some(made) = changed(&path) else { panic!("{} is not there; {build}", path.display()) };
    let list = std::fs::read_to_string(path.with_extension("d")).expect("the compiler's list of sources");
    let sources = list.split_once(": ").map(|(_, sources)| sources).unwrap_or_default().replace("\\ ", "\0");
    let sources: Vec<PathBuf> = sources.split_whitespace().map(|path| PathBuf::from(path.replace('\0', " "))).collect();
    let canonical = |path: &Path| std::fs::canonicalize(path).ok();
    let own = canonical(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/pyg_parity.rs"));
    assert!(sources.iter().any(|source| canonical(source) == own), "{} is of other sources; {build}", path.display());
    let is_newer = |source: &&PathBuf| changed(source).is_none_or(|changed| changed > made);
    let newer: Vec<&PathBuf> = sources.iter().filter(is_newer).collect();
    assert!(newer.is_empty(), "{} is older than {newer:?}; {build}", path.display());
    path
}

/// The cases in a folder, by name.
fn cases(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "npz")).collect();
    paths.sort();
    paths
}

fn assert_parity(folder: &Path, expected: usize) {
    let (program, cases) = (program(), cases(folder));
    assert!(cases.len() >= expected, "{}: {cases:?}", folder.display());
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
    println!("{}: largest {:.1e} ({})", folder.display(), worst.0, worst.1);
}

#[test]
fn the_stored_cases_agree_with_pytorch_geometric() {
    assert_parity(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/pyg"), 38);
}

#[test]
fn the_shared_references_agree_with_pytorch_geometric() {
    let Some(folder) = needs::shared("reference") else { return };
    assert_parity(&folder, 4);
}

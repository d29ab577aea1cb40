//! Tells the program which commit it was built from, where it is built from a checkout; a package has none.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Asked when it runs: a target folder may be shared by several checkouts.
    let Some(here) = std::env::var_os("CARGO_MANIFEST_DIR") else { return };
    let workspace = Path::new(&here).join("../..");
    // A package that is unpacked somewhere inside another checkout is none of that one's commits.
    if !workspace.join(".git").exists() {
        return;
    }
    let git = |arguments: &[&str]| {
        let done = Command::new("git").arg("-C").arg(&workspace).args(arguments).output().ok()?;
        let text = String::from_utf8(done.stdout).ok().filter(|_| done.status.success())?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let Some(commit) = git(&["rev-parse", "--short=9", "HEAD"]) else { return };
    println!("cargo:rustc-env=LACONIC_COMMIT={commit}");
    // The log grows with whatever moves HEAD; without one there is HEAD itself.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name]).map(|path| workspace.join(path));
        if let Some(path) = path.filter(|path| path.exists()) {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
}

//! The program as a user runs it: in a folder, with arguments, giving text and an exit code.

// Each test program uses its own part of this.
#![allow(dead_code)]

#[path = "../../../../tests/needs.rs"]
pub mod needs;

pub mod exported;

use std::path::{Path, PathBuf};
use std::process::Command;

/// A fresh folder to run the program in.
pub struct Place(tempfile::TempDir);

/// What one run gave.
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// The text on standard output.
    pub out: String,
    /// The text on standard error.
    pub err: String,
}

impl Place {
    /// An empty folder.
    pub fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    /// A folder with a generated graph, `graph.npz`, and a configuration of this text, `run.toml`.
    pub fn with_run(text: &str) -> Place {
        let place = Place::new();
        place.json("data synth sbm --nodes 60 --features 3 --classes 2 --degree-max 20 --out graph.npz");
        place.write("run.toml", text);
        place
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file in the folder.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// The names in the folder, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs the program; words in `line` are separated by spaces.
    pub fn run(&self, line: &str) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
        let done = command.args(line.split_whitespace()).current_dir(self.0.path()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: done.status.code().unwrap(), out: text(done.stdout), err: text(done.stderr) }
    }

    /// Runs what has to succeed, with the result as JSON.
    pub fn json(&self, line: &str) -> serde_json::Value {
        let ran = self.run(&format!("{line} --json --quiet"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line}");
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{line}: {error}: {}", ran.out))
    }

    /// Runs what has to fail with this exit code and a message that holds all of `words`, and nothing on standard
    /// output.
    pub fn refused(&self, line: &str, code: i32, words: &[&str]) {
        let ran = self.run(line);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{line}: {}", ran.err);
        for word in words {
            assert!(ran.err.contains(word), "{line}: expected '{word}' in: {}", ran.err);
        }
    }
}

/// What one of the repository's programs in Python prints, which has to succeed; nothing where there is no NumPy.
pub fn printed(program: &str, arguments: &[&str]) -> Option<String> {
    let there = Command::new("python3").args(["-c", "import numpy"]).output();
    if !there.is_ok_and(|there| there.status.success()) {
        needs::missing("python", "Python with numpy");
        return None;
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(program);
    let ran = Command::new("python3").arg(program).args(arguments).output().expect("python3");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    Some(said)
}

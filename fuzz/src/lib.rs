//! What the fuzz targets share: small valid inputs, and the way a fuzzer's bytes break them.
//!
//! The inputs of the readers are those of the readers' own tests. A fuzzer that starts from nothing would never get
//! past the first checksum or header, so its bytes are changes to something valid; see [`apply`].

use std::path::Path;

use fixtures::{Content, Fixture};
use laconic_graph::info::check;
use laconic_graph::read::ReadOptions;

#[path = "../../crates/graph/tests/readers/fixtures.rs"]
pub mod fixtures;
#[path = "../../crates/graph/tests/readers/pickles.rs"]
pub mod pickles;

/// Changes `bytes` as `input` says. After its first byte,
/// - 0: the rest is the new content, so that any real file with a 0 in front is a seed;
/// - odd: two bytes give a place, the rest is written there, and the file ends with it;
/// - even: the same, and what follows stays.
pub fn apply(input: &[u8], bytes: &mut Vec<u8>) {
    match input {
        [] => {}
        [0, content @ ..] => *bytes = content.to_vec(),
        [how, low, high, new @ ..] => {
            let start = usize::from(u16::from_le_bytes([*low, *high])) % (bytes.len() + 1);
            let end = if how % 2 == 1 { bytes.len() } else { (start + new.len()).min(bytes.len()) };
            bytes.splice(start..end, new.iter().copied());
        }
        [_, ..] => bytes.clear(),
    }
}

/// Calls `run` with the path of a file that holds `bytes`.
pub fn with_file(name: &str, bytes: &[u8], run: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("room for a small file");
    run(&path);
}

/// The first byte, which chooses what is changed, and the change.
pub fn choice(input: &[u8]) -> (usize, &[u8]) {
    input.split_first().map_or((0, input), |(&which, change)| (which.into(), change))
}

/// Reads the fixture with one of its files, or one member of an archive, changed. The first byte chooses which. What
/// comes out, if anything, is checked as `laconic data check` does.
///
/// Fuzzers begin with no input at all: then nothing is changed and the fixture must be read, or the target tests
/// nothing.
pub fn read(mut fixture: Fixture, input: &[u8]) {
    let unchanged = input.is_empty();
    let (which, input) = choice(input);
    let files = fixture.files.len();
    match &mut fixture.files[which % files].1 {
        Content::Bytes(bytes) => apply(input, bytes),
        content => {
            let Content::Npz(members) = &mut *content else { return };
            let member = which % (members.len() + 1);
            if member < members.len() {
                apply(input, &mut members[member].1);
            } else {
                let mut bytes = fixtures::npz(members);
                apply(input, &mut bytes);
                *content = Content::Bytes(bytes);
            }
        }
    }
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = fixture.write(folder.path());
    fixture.reader.recognises(&path);
    match fixture.reader.read(&path, &ReadOptions::default()) {
        Ok(dataset) => drop(check(&dataset)),
        Err(error) => assert!(!unchanged, "the valid input is refused: {error}"),
    }
}

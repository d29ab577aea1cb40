//! What the fuzz targets share: small valid inputs, and the way a fuzzer's bytes break them.
//!
//! The inputs of the readers are those of the readers' own tests. A fuzzer that starts from nothing would never get
//! past the first checksum or header, so its bytes are changes to something valid; see [`apply`].

use std::path::Path;

use fixtures::{Content, Fixture};
use laconic_graph::dataset::Labels;
use laconic_graph::error::GraphError;
use laconic_graph::info::check;
use laconic_graph::read::ReadOptions;
use laconic_graph::read::passes::Input;

#[path = "../../crates/graph/tests/readers/fixtures.rs"]
pub mod fixtures;
#[path = "../../crates/graph/tests/readers/graph_formats.rs"]
pub mod graph_formats;
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

/// The fixture with one of its files, or one member of an archive, changed. The first byte chooses which.
fn changed(mut fixture: Fixture, input: &[u8]) -> Fixture {
    let (which, input) = choice(input);
    let files = fixture.files.len();
    match &mut fixture.files[which % files].1 {
        Content::Bytes(bytes) => apply(input, bytes),
        content => {
            let Content::Npz(members) = &mut *content else { return fixture };
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
    fixture
}

/// Reads the fixture with something changed. What comes out, if anything, is checked as `laconic data check` does.
///
/// Fuzzers begin with no input at all: then nothing is changed and the fixture must be read, or the target tests
/// nothing.
pub fn read(fixture: Fixture, input: &[u8]) {
    let fixture = changed(fixture, input);
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = fixture.write(folder.path());
    fixture.reader.recognises(&path);
    match fixture.reader.read(&path, &ReadOptions::default()) {
        Ok(dataset) => drop(check(&dataset)),
        Err(error) => assert!(!input.is_empty(), "the valid input is refused: {error}"),
    }
}

/// The same in passes over the file, as `open` makes them: what is taken is what is taken when it is read whole.
pub fn pass(fixture: Fixture, input: &[u8], open: impl FnOnce(&Path) -> Result<Box<dyn Input>, GraphError>) {
    let fixture = changed(fixture, input);
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = fixture.write(folder.path());
    let mut edges = Vec::new();
    let mut columns = 0;
    let passed = open(&path).and_then(|data| {
        data.pass(&mut |pairs| {
            edges.extend_from_slice(pairs);
            Ok(())
        })?;
        data.features(&mut |values| {
            columns += values.len();
            Ok(())
        })?;
        Ok((data.nodes(), data.labels()?, data.roles()?))
    });
    let (nodes, labels, roles) = match passed {
        Ok(passed) => passed,
        Err(error) => return assert!(!input.is_empty(), "the valid input is refused: {error}"),
    };
    assert!(edges.iter().all(|(source, target)| source.max(target) < &nodes));
    if let Ok(whole) = fixture.reader.read(&path, &ReadOptions::default()) {
        assert_eq!(whole.graph.nodes() as u64, nodes);
        assert_eq!(whole.features.columns() * whole.graph.nodes(), columns);
        assert!(matches!(&whole.labels, Labels::Single { values, .. } if *values == labels) || labels.is_empty());
        assert!(whole.splits.first().is_none_or(|split| split.roles == roles));
        let arc = |&(source, target): &(u64, u64)| {
            source == target || whole.graph.in_neighbours(target as usize).contains(&(source as u32))
        };
        assert!(edges.iter().all(arc));
    }
}

//! Broken inputs: whatever the bytes are, readers give a dataset that fits together or one error.
//!
//! The tests here run in a process of their own that may not use more than a gigabyte and a half of address space, so
//! that believing a large count in a small file makes them fail.

use crate::fixtures::{self, Content, Fixture};
use crate::graph_formats;
use laconic_graph::dataset::{Dataset, Features, Labels};
use laconic_graph::info::{Severity, check};
use laconic_graph::prepare::fill_missing;
use laconic_graph::read::{Cells, Dates, Missing, ReadOptions};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;
use std::time::{Duration, Instant};

#[test]
#[cfg(target_os = "linux")]
fn hostile_inputs_neither_panic_nor_ask_for_much_memory() {
    let tests = std::env::current_exe().unwrap();
    let outcome = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 1500000 && exec \"$0\" --ignored --test-threads 1 hostile::limited"])
        .arg(tests)
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&outcome.stdout);
    assert!(outcome.status.success(), "{text}\n{}", String::from_utf8_lossy(&outcome.stderr));
    assert!(text.contains("5 passed"), "{text}");
}

/// Changes to one file.
#[derive(Debug, Clone)]
enum Change {
    /// Keeps only the start.
    Truncate(Index),
    /// Gives some bytes other values.
    Flip(Vec<(Index, u8)>),
    /// Puts bytes in between.
    Insert(Index, Vec<u8>),
    /// Takes bytes out.
    Remove(Index, usize),
    /// Makes a number in the text larger or smaller.
    Digits(Index, u64),
    /// Replaces everything.
    Replace(Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    // All orders of magnitude alike.
    let number = (any::<u64>(), 0u32..64).prop_map(|(number, shift)| number >> shift);
    prop_oneof![
        1 => any::<Index>().prop_map(Change::Truncate),
        4 => prop::collection::vec((any::<Index>(), any::<u8>()), 1..4).prop_map(Change::Flip),
        1 => (any::<Index>(), prop::collection::vec(any::<u8>(), 1..9)).prop_map(|(at, new)| Change::Insert(at, new)),
        1 => (any::<Index>(), 1usize..9).prop_map(|(at, count)| Change::Remove(at, count)),
        2 => (any::<Index>(), number).prop_map(|(at, number)| Change::Digits(at, number)),
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Change::Replace),
    ]
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        match self {
            Change::Truncate(at) => bytes.truncate(at.index(length)),
            Change::Flip(flips) => flips.iter().for_each(|(at, value)| bytes[at.index(length)] = *value),
            Change::Insert(at, new) => drop(bytes.splice(at.index(length)..at.index(length), new.iter().copied())),
            Change::Remove(at, count) => {
                let start = at.index(length);
                bytes.drain(start..(start + count).min(length));
            }
            Change::Digits(at, number) => {
                let from = at.index(length);
                let Some(start) = (from..length).find(|&i| bytes[i].is_ascii_digit()) else { return };
                let end = (start..length).find(|&i| !bytes[i].is_ascii_digit()).unwrap_or(length);
                bytes.splice(start..end, number.to_string().into_bytes());
            }
            Change::Replace(new) => *bytes = new.clone(),
        }
    }

    /// Changes one file, or one member of an archive before it is packed.
    fn apply_to(&self, fixture: &mut Fixture, which: Index, in_member: Option<Index>) {
        let which = which.index(fixture.files.len());
        match (&mut fixture.files[which].1, in_member) {
            (Content::Bytes(bytes), _) => self.apply(bytes),
            (Content::Npz(members), Some(member)) => {
                let member = member.index(members.len());
                self.apply(&mut members[member].1);
            }
            (content @ Content::Npz(_), None) => {
                let Content::Npz(members) = content else { unreachable!("matched above") };
                let mut bytes = fixtures::npz(members);
                self.apply(&mut bytes);
                *content = Content::Bytes(bytes);
            }
        }
    }
}

/// Reads the fixture; what comes out, if anything, must fit together.
fn survive(fixture: &Fixture) -> Option<Dataset> {
    let folder = tempfile::tempdir().unwrap();
    let path = fixture.write(folder.path());
    fixture.reader.recognises(&path);
    if fixture.reader.name() == "edge list" {
        let cells = Cells { missing: Missing::Mean, dates: Dates::Days, categories_max: 3 };
        let generous = fixture.reader.read(&path, &ReadOptions { cells, ..ReadOptions::default() });
        if let Ok(mut dataset) = generous {
            fill_missing((&mut dataset.features, &mut dataset.exact), &mut dataset.about, None);
            assert!(dataset.about.columns.iter().flat_map(|column| column.fill.iter().flatten()).all(|v| !v.is_nan()));
        }
    }
    let dataset = fixture.reader.read(&path, &ReadOptions::default()).ok()?;
    let nodes = dataset.graph.nodes();
    let graph = &dataset.graph;
    assert!(graph.offsets[nodes] as usize == graph.edges() && graph.sources.iter().all(|&s| (s as usize) < nodes));
    // Edges of several kinds may join the same two nodes.
    let is_typed = graph.data.kinds() > 0;
    let ascend = |pair: &[u32]| pair[0] < pair[1] || is_typed && pair[0] == pair[1];
    assert!((0..nodes).all(|v| graph.in_neighbours(v).windows(2).all(ascend)));
    if let Features::Sparse { columns, offsets, indices, values } = &dataset.features {
        assert!(offsets.len() == nodes + 1 && indices.len() == values.len() && offsets[nodes] as usize == values.len());
        assert!(indices.iter().all(|&c| (c as usize) < *columns));
    }
    if let Labels::Single { classes, values } = &dataset.labels {
        assert!(values.iter().all(|&class| class >= -1 && class < *classes as i32));
    }
    let sizes = |what: &str| what.contains(&format!("for {nodes} nodes"));
    assert!(!check(&dataset).iter().any(|finding| finding.severity == Severity::Error && sizes(&finding.what)));
    Some(dataset)
}

#[test]
#[ignore = "run by hostile_inputs_neither_panic_nor_ask_for_much_memory"]
fn limited_unchanged_fixtures_read() {
    fixtures::all().iter().for_each(|fixture| assert!(survive(fixture).is_some(), "{}", fixture.path));
}

#[test]
#[ignore = "run by hostile_inputs_neither_panic_nor_ask_for_much_memory"]
fn limited_changed_files_are_survived() {
    let fixtures = fixtures::all();
    let cases = (0..fixtures.len(), any::<Index>(), any::<Option<Index>>(), prop::collection::vec(change(), 1..3));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 10_000,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&cases, |(number, which, member, changes)| {
        let mut fixture = fixtures[number].clone();
        changes.iter().for_each(|change| change.apply_to(&mut fixture, which, member));
        let _ = survive(&fixture);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
#[ignore = "run by hostile_inputs_neither_panic_nor_ask_for_much_memory"]
fn limited_huge_counts_are_refused_fast() {
    let huge = |fixture: &Fixture, file: usize, name: &str, bytes: Vec<u8>| {
        let mut fixture = fixture.clone();
        match &mut fixture.files[file].1 {
            Content::Npz(members) => members.iter_mut().find(|member| member.0 == name).unwrap().1 = bytes,
            content => *content = Content::Bytes(bytes),
        }
        let started = Instant::now();
        assert!(survive(&fixture).is_none(), "{} {name}", fixture.path);
        assert!(started.elapsed() < Duration::from_secs(30), "{} {name}", fixture.path);
    };
    let shape = |descr, shape: &[usize]| fixtures::npy(descr, shape, [[0u8; 4]; 4]);
    let interchange = fixtures::interchange();
    huge(&interchange, 0, "edge_index", shape("<i4", &[2, 1 << 60]));
    huge(&interchange, 0, "features", shape("<f4", &[5, 1 << 60]));
    huge(&interchange, 0, "features", shape("<f4", &[1 << 32, 1 << 32]));
    huge(&interchange, 0, "labels", shape("<i4", &[1 << 31]));
    huge(&interchange, 0, "num_nodes", fixtures::int64(&[1], &[u32::MAX as i64]));
    huge(&interchange, 0, "num_nodes", fixtures::int64(&[1], &[i64::MAX]));
    huge(&interchange, 0, "ids_offsets", fixtures::int64(&[6], &[0, 1, 2, 3, 4, i64::MAX]));
    huge(&interchange, 0, "edge_index", fixtures::int64(&[2, 1], &[0, u32::MAX as i64 - 1]));
    huge(&fixtures::interchange_sparse(), 0, "features_shape", fixtures::int64(&[2], &[u32::MAX as i64, 4]));
    huge(&fixtures::interchange_sparse(), 0, "labels", fixtures::int32(&[3], &[0, 1, i32::MAX]));
    huge(&fixtures::gnn_benchmark(), 0, "adj_shape", fixtures::int64(&[2], &[u32::MAX as i64 - 1; 2]));
    huge(&fixtures::graphsaint(), 1, "", shape("<f4", &[3, 1 << 61]));
    huge(&fixtures::graphsaint(), 2, "", br#"{"0": 1, "1": 99999999999, "2": 3}"#.to_vec());
    huge(&fixtures::metis(), 0, "", b"4294967294 1\n2\n1\n".to_vec());
    huge(&fixtures::metis(), 0, "", b"2 99999999999999999\n2\n1\n".to_vec());
    let mtx = graph_formats::matrix_market();
    let banner = "%%MatrixMarket matrix coordinate pattern general";
    huge(&mtx, 0, "", format!("{banner}\n4294967290 4294967290 1\n1 2\n").into());
    huge(&mtx, 0, "", format!("{banner}\n3 3 99999999999\n1 2\n").into());
    huge(&graph_formats::scipy(), 0, "shape", fixtures::int64(&[2], &[u32::MAX as i64 - 1; 2]));
    huge(&graph_formats::ogb_binary(), 0, "num_nodes_list", fixtures::int64(&[1], &[u32::MAX as i64 - 1]));
    huge(&fixtures::ogb(), 1, "", b"4294967290\n".to_vec());
    huge(&fixtures::ogb_typed(), 0, "", b"author,paper\n4294967290,3\n".to_vec());
    huge(&fixtures::ogb_typed(), 2, "", b"0,4294967290\n".to_vec());
    huge(&fixtures::ogb(), 0, "", b"0,4294967290\n".to_vec());
    huge(&fixtures::planetoid(&crate::pickles::PROTOCOL_2), 7, "", b"4294967290\n4\n".to_vec());
}

#[test]
#[ignore = "run by hostile_inputs_neither_panic_nor_ask_for_much_memory"]
fn limited_packed_files_cannot_unpack_without_end() {
    // 40 MB of one digit in one line, packed into some 40 kB.
    let mut bomb = fixtures::ogb();
    bomb.files[0] = ("arxiv/raw/edge.csv".to_owned(), Content::Bytes(fixtures::gz(&"1".repeat(40_000_000))));
    assert!(survive(&bomb).is_none());
    let folder = tempfile::tempdir().unwrap();
    let path = bomb.write(folder.path());
    let mut options = ReadOptions::default();
    options.limits.unpacked_bytes_max = 1_000_000;
    let error = bomb.reader.read(&path, &options).unwrap_err().to_string();
    assert!(error.contains("unpacks to too many bytes"), "{error}");
    options = ReadOptions::default();
    options.limits.line_bytes_max = 1_000_000;
    let error = bomb.reader.read(&path, &options).unwrap_err().to_string();
    assert!(error.contains("more than the limit of 1000000"), "{error}");
}

#[test]
#[ignore = "run by hostile_inputs_neither_panic_nor_ask_for_much_memory"]
fn limited_small_files_that_ask_for_much_are_refused_with_a_reason() {
    let refused = |fixture: &Fixture, expected: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = fixture.write(folder.path());
        let started = Instant::now();
        let error = fixture.reader.read(&path, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "expected '{expected}' in: {error}");
        assert!(started.elapsed() < Duration::from_secs(60), "{error}");
    };
    let npz = |members: Vec<(&'static str, Vec<u8>)>| Fixture {
        files: vec![("tiny.npz".to_owned(), Content::Npz(members))],
        ..fixtures::interchange()
    };
    // Bytes that nobody reads and that do not pack, to vouch for nodes.
    let mut state = 1u32;
    let mut noise = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let mut padding =
        |bytes: usize| ("padding", fixtures::uint8(&[bytes], &(0..bytes).map(&mut noise).collect::<Vec<_>>()));
    let edge = |to: i64| ("edge_index", fixtures::int64(&[2, 1], &[0, to]));
    let nodes = |nodes: i64| ("num_nodes", fixtures::int64(&[1], &[nodes]));
    let large = padding(5_000_000);
    refused(&npz(vec![edge(1), nodes(4_000_000_000), large.clone()]), "4000000000 nodes, but 5");
    refused(&npz(vec![edge(4_294_967_293), large.clone()]), "4294967294 nodes, but 5");
    refused(&npz(vec![edge(1), nodes(300_000_000), large]), "a graph of 300000000 nodes and 1 edges needs 480");
    refused(&npz(vec![edge(1), nodes(100_000_000), padding(120_000)]), "100000000 nodes, but 12");
    let mut wide = fixtures::interchange_sparse();
    let Content::Npz(members) = &mut wide.files[0].1 else { panic!("an archive") };
    members.iter_mut().find(|member| member.0 == "features_shape").unwrap().1 = fixtures::int64(&[2], &[3, 1 << 24]);
    refused(&wide, "16777216 columns, expected at most 1048768 with 3 stored values");
    let mut ogb = fixtures::ogb();
    ogb.files.retain(|(name, _)| !name.contains("node-feat") && !name.contains("node-label"));
    ogb.files.iter_mut().find(|(name, _)| name.contains("num-node-list")).unwrap().1 =
        Content::Bytes(b"100000000\n".to_vec());
    refused(&ogb, "100000000 nodes, but");
    refused(&fixtures::parquet_of_one_long_text(5_000, 60_000), "texts unpack to over ");
    refused(&fixtures::interchange_of_zeros(2_000_000_000), "needs 2000 MB of memory, and there are");
    // A field that is opened and never closed, over many lines.
    let mut endless = fixtures::edge_list();
    endless.files = vec![(
        "bank/edges.csv.gz".to_owned(),
        Content::Bytes(fixtures::gz(&("source,target\n\"".to_owned() + &"1\n".repeat(50_000_000)))),
    )];
    refused(&endless, "a row is longer than 67108864 bytes");
}

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::{open_meta, open_part, write_part, write_parts};
use crate::aside::part_of;
use crate::dataset::{Dataset, Features, Ids, Labels, Split};
use crate::edges::{EdgeData, Edges};
use crate::error::{GraphError, Result};
use crate::given::GivenPairs;
use crate::graph::Graph;
use crate::part::{FileEntry, GlobalCounts, Part, Provenance, cut};

/// A star of five nodes with a loop, a weight an edge, sparse features, several labels a node and text ids.
fn dataset() -> Dataset {
    Dataset {
        name: "star".to_owned(),
        graph: Graph {
            offsets: vec![0, 4, 5, 5, 6, 6],
            sources: vec![1, 2, 3, 4, 1, 0],
            data: Some(vec![0.5, 1.0, 2.0, -3.0, 0.25, 1e-30]).into(),
        },
        features: Features::Sparse {
            columns: 9,
            offsets: vec![0, 2, 2, 3, 3, 5],
            indices: vec![0, 8, 4, 1, 2],
            values: vec![1.0, 2.0, 3.0, 4.0, 5.0],
        },
        labels: Labels::Multi { classes: 2, values: vec![0, 1, 1, 1, 0, 0, 1, 0, 1, 1] },
        splits: vec![Split { roles: vec![1, 2, 4, 0, 1] }],
        ids: Ids::Strings(["ä", "", "b c", "d\n", "日本"].map(str::to_owned).to_vec()),
        about: crate::about::About::default(),
        exact: Default::default(),
        negatives: None,
    }
}

fn plain() -> Dataset {
    let labels = Labels::Single { classes: 3, values: vec![-1, 0, 1, 2, 2] };
    let features = Features::Dense { columns: 2, values: (0..10).map(|value| value as f32).collect() };
    let graph = Graph { data: EdgeData::default(), ..dataset().graph };
    Dataset { graph, labels, features, ids: Ids::Integers(vec![i64::MIN, -1, 0, 7, i64::MAX]), ..dataset() }
}

/// Part 1 of 3 is empty.
fn parts(dataset: &Dataset) -> Vec<Part> {
    cut(dataset, (!dataset.splits.is_empty()).then_some(0), &[0, 2, 0, 2, 2], 3).unwrap()
}

fn provenance() -> Provenance {
    Provenance { method: "random".to_owned(), seed: u64::MAX }
}

struct Folder {
    _parent: tempfile::TempDir,
    dir: PathBuf,
}

fn written(parts: &[Part]) -> Folder {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("deep/parts");
    write_parts(&dir, parts, &provenance(), false).unwrap();
    Folder { _parent: parent, dir }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Pairs that are no edges: a pool, and targets of edges' own.
fn pairs() -> [GivenPairs<u32>; 2] {
    let pool = GivenPairs { sources: vec![2, 2, 4], targets: vec![4, 0, 4], ..GivenPairs::default() };
    let (sources, targets, others) = (vec![1, 0], vec![0, 4], vec![3, 3, 2, 0, 1, 4]);
    [pool, GivenPairs { sources, targets, others, each: 3, relations: vec![] }]
}

#[test]
fn parts_come_back_as_they_were() {
    let nothing =
        Dataset { features: Features::None, labels: Labels::None, splits: Vec::new(), ids: Ids::Row, ..plain() };
    let given = Dataset { negatives: Some(pairs()), ..plain() };
    for dataset in [dataset(), plain(), nothing, given] {
        let parts = parts(&dataset);
        let folder = written(&parts);
        for (index, part) in parts.iter().enumerate() {
            assert_eq!(&open_part(&folder.dir, index as u32).unwrap(), part);
        }
        let meta = open_meta(&folder.dir).unwrap();
        assert_eq!((meta.parts, meta.provenance, meta.global), (3, provenance(), parts[0].global.clone()));
        assert_eq!(names(&folder.dir), ["meta.json", "part-0", "part-1", "part-2"]);
        assert_eq!(names(folder.dir.parent().unwrap()), ["parts"], "nothing is left behind");
    }
}

#[test]
fn pairs_that_are_no_edges_keep_the_rules_of_parts() {
    let dataset = Dataset { negatives: Some(pairs()), ids: Ids::Row, ..plain() };
    let parts = parts(&dataset);
    let counts = parts.iter().map(|part| part.negatives.as_ref().unwrap().each_ref().map(GivenPairs::len));
    assert_eq!(counts.collect::<Vec<_>>(), [[1, 1], [0, 0], [2, 1]]);
    type Change = fn(&mut [GivenPairs<u64>; 2], &mut GlobalCounts);
    let changes: [(&str, Change); 7] = [
        ("val_negative_targets: expected own nodes, found 3", |given, _| given[0].targets[0] = 3),
        ("val_negative_sources: expected ids below 5, found 5", |given, _| given[0].sources[0] = 5),
        ("test_negative_others: expected ids below 5, found 9", |given, _| given[1].others[2] = 9),
        ("test_negative_targets: expected 3 values, found 2", |given, _| given[1].others.truncate(2)),
        ("val_negative_targets: expected 1 values, found 0", |given, _| given[0].targets.clear()),
        ("test_negative_others: expected 2 for each edge as the other parts have, found 3", |_, global| {
            global.negatives.as_mut().unwrap()[1].each = 2;
        }),
        ("val_negative_sources: expected pairs that are no edges in all parts or in none", |_, global| {
            global.negatives = None;
        }),
    ];
    for (expected, change) in changes {
        let mut part = parts[0].clone();
        change(part.negatives.as_mut().unwrap(), &mut part.global);
        let error = part.check().unwrap_err().to_string();
        assert!(error.contains(expected), "expected '{expected}' in: {error}");
    }
    let folder = written(&parts);
    let path = folder.dir.join("meta.json");
    let mut meta = open_meta(&folder.dir).unwrap();
    for (pairs, expected) in [(1, "at most 1 pairs that are no edges, which"), (u64::MAX, "at most 34359738368 pairs")]
    {
        meta.global.negatives.as_mut().unwrap()[0].pairs = pairs;
        meta.write(&path).unwrap();
        let errors = [0, 2].map(|index| open_part(&folder.dir, index).err().map(|error| error.to_string()));
        assert!(errors.iter().flatten().any(|error| error.contains(expected)), "{errors:?}");
    }
    let beyond = Dataset {
        negatives: dataset.negatives.clone().map(|[val, mut test]| {
            test.others[1] = 5;
            [val, test]
        }),
        ..dataset
    };
    let error = beyond.checked().unwrap_err().to_string();
    assert!(error.contains("test_negative_others: expected nodes below 5, found 5"), "{error}");
}

#[test]
fn opening_a_part_touches_no_other() {
    let parts = parts(&dataset());
    let folder = written(&parts);
    fs::remove_dir_all(folder.dir.join("part-0")).unwrap();
    fs::write(folder.dir.join("part-1/graph.safetensors"), "gone").unwrap();
    assert_eq!(open_part(&folder.dir, 2).unwrap(), parts[2]);
    assert!(matches!(open_part(&folder.dir, 0), Err(GraphError::Io { .. })));
    assert!(open_part(&folder.dir, 1).is_err());
    assert!(open_part(&folder.dir, 3).unwrap_err().to_string().contains("0, 1, 2 of 3 parts"));
}

#[test]
fn sites_write_their_parts_one_by_one() {
    let parts = parts(&plain());
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("site");
    write_part(&dir, &parts[2], &provenance()).unwrap();
    assert_eq!(open_part(&dir, 2).unwrap(), parts[2]);
    assert!(open_part(&dir, 0).is_err());
    write_part(&dir, &parts[0], &provenance()).unwrap();
    assert_eq!(open_part(&dir, 0).unwrap(), parts[0]);
    assert_eq!(names(&dir), ["meta.json", "part-0", "part-2"]);
    assert!(write_part(&dir, &parts[0], &provenance()).is_err(), "twice");
    assert!(write_part(&dir, &parts[1], &Provenance { seed: 1, ..provenance() }).is_err(), "another partition");
    let other = cut(&dataset(), None, &[0, 2, 0, 2, 2], 3).unwrap();
    assert!(write_part(&dir, &other[1], &provenance()).is_err(), "another graph");
    let broken = Part { edges: Edges::new(vec![1], Vec::new()), ..parts[1].clone() };
    assert!(write_part(&dir, &broken, &provenance()).unwrap_err().to_string().contains("offsets"));
    assert_eq!(names(&dir), ["meta.json", "part-0", "part-2"]);
}

#[test]
fn nothing_is_overwritten_unasked_and_only_part_folders_when_asked() {
    let parts = parts(&dataset());
    let folder = written(&parts);
    let again = |dir: &Path, overwrite| write_parts(dir, &parts[..], &provenance(), overwrite);
    assert!(again(&folder.dir, false).unwrap_err().to_string().contains("overwrite"));
    fs::write(folder.dir.join("part-0/graph.safetensors"), "damaged").unwrap();
    again(&folder.dir, true).unwrap();
    assert_eq!(open_part(&folder.dir, 0).unwrap(), parts[0]);
    let precious = tempfile::tempdir().unwrap();
    fs::write(precious.path().join("thesis.tex"), "…").unwrap();
    assert!(again(precious.path(), true).is_err());
    assert!(write_part(precious.path(), &parts[0], &provenance()).is_err());
    assert_eq!(names(precious.path()), ["thesis.tex"]);
    let twice = write_parts(&precious.path().join("new"), [&parts[0], &parts[0]], &provenance(), false);
    assert!(twice.is_err());
    assert_eq!(names(precious.path()), ["thesis.tex"]);
}

#[test]
fn what_a_killed_process_has_left_is_swept_and_an_old_folder_comes_back() {
    let parts = parts(&dataset());
    let folder = written(&parts);
    let (parent, left) = (folder.dir.parent().unwrap(), part_of(&folder.dir));
    let again = |overwrite| write_parts(&folder.dir, &parts[..], &provenance(), overwrite);
    // Killed while it wrote the new folder.
    fs::create_dir_all(left.join("new/part-0")).unwrap();
    again(true).unwrap();
    assert!(!left.exists());
    // Killed between moving the old folder away and putting the new one in its place.
    fs::create_dir(&left).unwrap();
    fs::rename(&folder.dir, left.join("old")).unwrap();
    assert!(again(false).unwrap_err().to_string().contains("overwrite"));
    assert_eq!(open_part(&folder.dir, 0).unwrap(), parts[0]);
    assert!(!left.exists());
    // Killed while it wrote the first part of a site's folder.
    let site = parent.join("site");
    fs::create_dir_all(site.join(".meta.json.part/part-1")).unwrap();
    write_part(&site, &parts[1], &provenance()).unwrap();
    assert_eq!(names(&site), ["meta.json", "part-1"]);
}

#[test]
fn two_who_write_one_folder_do_not_mix() {
    let parts = parts(&dataset());
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("parts");
    let mut refused = None;
    let each = parts.iter().inspect(|_| {
        refused.get_or_insert_with(|| write_parts(&dir, &parts[..], &provenance(), false).unwrap_err().to_string());
    });
    write_parts(&dir, each, &provenance(), false).unwrap();
    assert!(refused.unwrap().contains("another process is writing it"));
    assert_eq!(names(parent.path()), ["parts"]);
}

#[test]
fn another_version_is_named() {
    let folder = written(&parts(&dataset()));
    let path = folder.dir.join("meta.json");
    let text = fs::read_to_string(&path).unwrap().replace("\"version\": 1", "\"version\": 2, \"news\": 0");
    fs::write(&path, text).unwrap();
    let message = open_meta(&folder.dir).unwrap_err().to_string();
    assert!(message.contains("meta.json") && message.contains("version 2"), "{message}");
}

const FILES: [&str; 4] =
    ["meta.json", "part-0/graph.safetensors", "part-0/nodes.safetensors", "part-0/features.safetensors"];

/// What opening part 0 says after `damage` to one of [`FILES`].
fn after(file: usize, damage: impl FnOnce(&mut Vec<u8>)) -> Result<Part> {
    let folder = written(&parts(&dataset()));
    let path = folder.dir.join(FILES[file]);
    let mut bytes = fs::read(&path).unwrap();
    damage(&mut bytes);
    fs::write(&path, bytes).unwrap();
    open_part(&folder.dir, 0)
}

/// The same, but with sizes and checksums put right, so that the content itself is looked at.
fn after_hidden(file: usize, damage: impl FnOnce(&mut Vec<u8>)) -> Result<Part> {
    let folder = written(&parts(&dataset()));
    let path = folder.dir.join(FILES[file]);
    let mut bytes = fs::read(&path).unwrap();
    damage(&mut bytes);
    fs::write(&path, &bytes).unwrap();
    let mut meta = open_meta(&folder.dir).unwrap();
    let entry = FileEntry { bytes: bytes.len() as u64, blake3: blake3::hash(&bytes).to_hex().to_string() };
    let name = path.file_name().unwrap().to_str().unwrap();
    meta.files.get_mut(&0).unwrap().files.insert(name.to_owned(), entry);
    meta.write(&folder.dir.join("meta.json")).unwrap();
    open_part(&folder.dir, 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_flipped_bit_in_any_file_is_found_and_the_file_named(
        file in 0usize..4, at in any::<prop::sample::Index>(), bit in 0u32..8,
    ) {
        let error = after(file, |bytes| { let at = at.index(bytes.len()); bytes[at] ^= 1 << bit; }).unwrap_err();
        prop_assert!(error.to_string().contains(FILES[file]), "{}", error);
    }

    #[test]
    fn a_file_cut_short_is_found_and_named(file in 0usize..4, at in any::<prop::sample::Index>()) {
        // The last byte of meta.json is a line feed that nobody would miss.
        let error = after(file, |bytes| bytes.truncate(at.index(bytes.len() - 1))).unwrap_err();
        prop_assert!(error.to_string().contains(FILES[file]), "{}", error);
    }

    #[test]
    fn content_with_a_right_checksum_is_valid_or_refused_with_the_file(
        file in 1usize..4,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let result = after_hidden(file, |bytes| {
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
        });
        match result {
            Ok(part) => part.check().unwrap(),
            Err(error) => prop_assert!(error.to_string().contains("safetensors"), "{}", error),
        }
    }
}

#[test]
fn what_is_said_about_the_whole_is_compared_with_what_the_parts_hold() {
    type Change<'a> = (&'a str, &'a dyn Fn(&mut GlobalCounts));
    let changes: [Change; 9] = [
        ("at most 1048576 classes in all parts, found 2147483648", &|global| global.classes = 1 << 31),
        ("at most 16777216 columns in all parts", &|global| global.columns = usize::MAX),
        ("at most 16777216 columns in all parts, found 1099511627776", &|global| global.columns = 1 << 40),
        ("expected as many nodes as the parts hold, 5, found 6", &|global| global.nodes = 6),
        ("expected as many nodes as the parts hold, 5, found 4", &|global| global.nodes = 4),
        ("expected as many edges as the parts hold, 6, found 9223372036854775807", &|global| {
            global.edges = u64::MAX / 2
        }),
        ("expected at most 0 training nodes, which all parts together hold, found 1", &|global| global.train = 0),
        ("expected at most 0 test nodes, which all parts together hold, found 1", &|global| global.test = 0),
        ("expected 3 classes, any number a node, as the other parts have, found 2", &|global| global.classes = 3),
    ];
    for (expected, change) in changes {
        let folder = written(&parts(&dataset()));
        let path = folder.dir.join("meta.json");
        let mut meta = open_meta(&folder.dir).unwrap();
        change(&mut meta.global);
        meta.write(&path).unwrap();
        let message = open_part(&folder.dir, 0).unwrap_err().to_string();
        assert!(message.contains(expected), "expected '{expected}' in: {message}");
    }
}

#[test]
fn a_number_of_parts_that_no_graph_is_cut_into_is_refused_before_room_is_made_for_them() {
    let folder = written(&parts(&dataset()));
    let path = folder.dir.join("meta.json");
    for count in [0, 4097, 4_000_000_000] {
        let mut meta = open_meta(&folder.dir).unwrap();
        meta.parts = count;
        meta.write(&path).unwrap();
        let message = open_meta(&folder.dir).unwrap_err().to_string();
        assert!(message.contains(&format!("meta.json: parts: expected 1 to 4096 parts, found {count}")), "{message}");
        meta.parts = 3;
        meta.write(&path).unwrap();
    }
}

#[test]
fn a_node_with_two_roles_is_in_no_part() {
    let twice = Dataset { splits: vec![Split { roles: vec![1, 2, 4, 0, 5] }], ..dataset() };
    let message = cut(&twice, Some(0), &[0, 2, 0, 2, 2], 3).unwrap_err().to_string();
    assert!(message.contains("1 nodes have more than one role, the first is node \"日本\""), "{message}");
    let mut part = parts(&dataset())[2].clone();
    part.roles[2] |= Split::TEST;
    assert!(part.check().unwrap_err().to_string().contains("more than one role, the first is node \"日本\""));
}

#[test]
fn broken_rules_are_named_by_file_and_tensor() {
    let header = |bytes: &[u8]| 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let message = |file, at: usize, value: u8| {
        after_hidden(file, |bytes| {
            let start = header(bytes);
            bytes[start + at] = value;
        })
        .unwrap_err()
        .to_string()
    };
    // Part 0 has nodes 0 and 2; offsets 0, 4, 4; sources 1, 2, 3, 4.
    assert!(message(1, 0, 1).contains("graph.safetensors: tensor offsets"));
    assert!(message(1, 3 * 8, 9).contains("graph.safetensors: tensor sources: expected ascending"));
    assert!(message(2, 0, 3).contains("nodes.safetensors: tensor"));
    assert!(message(3, 0, 3).contains("features.safetensors: tensor"));
    // An offset that would wrap a 64-bit sum.
    let huge = r#"{"offsets":{"dtype":"U8","shape":[18446744073709551600],"data_offsets":[0,18446744073709551600]}}"#;
    let wrapped = after_hidden(1, |bytes| {
        *bytes = (huge.len() as u64).to_le_bytes().to_vec();
        bytes.extend(huge.bytes());
    });
    assert!(wrapped.unwrap_err().to_string().contains("graph.safetensors: header"));
    for length in [0, 4, 8] {
        assert!(after_hidden(1, |bytes| bytes.truncate(length)).is_err());
    }
}

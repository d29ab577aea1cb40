//! A cut on the disk is the cut in memory, however little memory it has and however often it is ended.

mod damaged;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use super::{Job, cut};
use crate::build::BuildOptions;
use crate::dataset::Dataset;
use crate::digest::digest;
use crate::limits::Limits;
use crate::part::{self, Provenance};
use crate::partition::{PartitionInput, PartitionOptions, PartitionerRegistry, quality};
use crate::plan::Counting;
use crate::read::passes::{ABOUT, ArrayFolder};
use crate::read::{ReadOptions, read};
use crate::skew::LabelCounts;
use crate::synth::{RmatSpec, rmat, rmat_arrays};

fn spec(symmetric: bool) -> RmatSpec {
    RmatSpec { scale: 11, edge_factor: 8, features: 3, classes: 4, seed: 5, symmetric, ..RmatSpec::default() }
}

/// Every file below `dir` by its path there.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                all.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    all
}

/// Cuts in memory, as `laconic partition` does, and returns the files.
fn in_memory(dataset: &Dataset, (method, options): (&str, &PartitionOptions), parts: u32) -> BTreeMap<String, Vec<u8>> {
    let roles = dataset.splits.first().map(|split| &split.roles[..]);
    let partitioner = PartitionerRegistry::default().get(method).unwrap().build(options).unwrap();
    let input = PartitionInput { graph: &dataset.graph, roles, parts, seed: 2 };
    let assignment = partitioner.assign(&input).unwrap();
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("parts");
    let mut counting = Counting::default();
    let cut = part::cut(dataset, roles.map(|_| 0), &assignment, parts).unwrap();
    cut.iter().for_each(|part| counting.see(part));
    part::write_parts(&dir, &cut, &Provenance { method: method.to_owned(), seed: 2 }, false).unwrap();
    let skew = roles.and_then(|roles| {
        let mut counts = LabelCounts::default();
        counts.reserve(parts as usize);
        counts.see(&dataset.labels, roles, |node| assignment[node]);
        counts.finish()
    });
    part::write_counts(&dir, counting.finish(), skew.map(|skew| skew.skew)).unwrap();
    files(&dir)
}

fn job<'a>(
    data: &'a ArrayFolder,
    (method, options): (&str, &'a PartitionOptions),
    parts: u32,
    out: &'a Path,
    tell: &'a dyn Fn(&str),
) -> Job<'a> {
    let kind = PartitionerRegistry::default().get(method).unwrap();
    let how = BuildOptions::default();
    Job { data, how, partitioner: (kind, options), parts, seed: 2, memory: 300 << 20, out: (out, false), tell }
}

#[test]
fn arrays_that_are_written_piece_by_piece_are_the_graph_in_memory() {
    let place = tempfile::tempdir().unwrap();
    for symmetric in [true, false] {
        let dir = place.path().join(format!("{symmetric}"));
        rmat_arrays(&spec(symmetric), &dir, &|_| ()).unwrap();
        let found = read(&dir, &ReadOptions::default()).unwrap();
        assert_eq!(digest(&found), digest(&rmat(&spec(symmetric)).unwrap()));
    }
}

#[test]
fn parts_cut_on_the_disk_are_the_bytes_of_those_cut_in_memory() {
    let place = tempfile::tempdir().unwrap();
    for (case, symmetric) in [true, false].into_iter().enumerate() {
        let dataset = rmat(&spec(symmetric)).unwrap();
        let dir = place.path().join(format!("graph-{case}"));
        rmat_arrays(&spec(symmetric), &dir, &|_| ()).unwrap();
        let data = ArrayFolder::open(&dir, &Limits::default()).unwrap();
        for (method, rule) in
            [("random", "ldg"), ("streaming", "fennel"), ("streaming", "clusters"), ("super_node", "ldg")]
        {
            let options = PartitionOptions {
                rule: rule.to_owned(),
                clusterer: "streaming".to_owned(),
                passes: 4,
                ..PartitionOptions::default()
            };
            let out = place.path().join(format!("{method}-{rule}-{case}"));
            let done = cut(&job(&data, (method, &options), 5, &out, &|_| ())).unwrap();
            let expected = in_memory(&dataset, (method, &options), 5);
            let found = files(&out);
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
            for (name, bytes) in &expected {
                assert!(found[name] == *bytes, "{method} {rule}: {name} is another");
            }
            let assignment = read_assignment(&out, 5, dataset.graph.nodes());
            let roles = Some(&dataset.splits[0].roles[..]);
            assert_eq!(done.quality, quality(&dataset.graph, &assignment, 5, roles, 3).unwrap());
            assert!(!place.path().join(format!(".{method}-{rule}-{case}.cut")).exists());
        }
    }
}

fn read_assignment(dir: &Path, parts: u32, nodes: usize) -> Vec<u32> {
    let mut assignment = vec![u32::MAX; nodes];
    for index in 0..parts {
        part::open_part(dir, index).unwrap().nodes.iter().for_each(|&node| assignment[node as usize] = index);
    }
    assignment
}

/// Ends by a panic, as a process that is killed ends: what is in memory is gone, and what was written is there.
fn killed_after(steps: usize, run: impl Fn(&dyn Fn(&str)) -> bool) -> bool {
    let left = Cell::new(steps);
    let tell = |_: &str| {
        if left.get() == 0 {
            std::panic::panic_any("killed");
        }
        left.set(left.get() - 1);
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&tell))).is_err()
}

#[test]
fn a_cut_that_is_killed_at_any_step_goes_on_and_ends_with_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("graph");
    let big = RmatSpec { scale: 15, edge_factor: 16, features: 2, ..spec(false) };
    rmat_arrays(&big, &dir, &|_| ()).unwrap();
    let data = ArrayFolder::open(&dir, &Limits::default()).unwrap();
    let options = PartitionOptions { rule: "ldg".to_owned(), passes: 2, ..PartitionOptions::default() };
    let expected = in_memory(&rmat(&big).unwrap(), ("streaming", &options), 4);
    let (out, mut steps, mut said) = (place.path().join("parts"), 0, 0);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    // Each attempt is allowed a step more than the last one; what has been done is not done again, or it never ends.
    while killed_after(steps, |tell| {
        cut(&Job { memory: 200 << 20, ..job(&data, ("streaming", &options), 4, &out, tell) }).is_ok()
    }) {
        assert!(!out.exists(), "nothing is seen half-written");
        steps += usize::from(said % 3 == 2);
        said += 1;
    }
    std::panic::set_hook(hook);
    assert!(said > 10 && files(&out) == expected, "{said} attempts");
}

/// Whatever a killed process left, no part that is finished is lost: not those in their final place, nor a folder that
/// was to be replaced.
#[test]
fn what_is_in_its_final_place_survives_whatever_a_killed_process_has_left() {
    let place = tempfile::tempdir().unwrap();
    let (dir, out) = (place.path().join("graph"), place.path().join("parts"));
    rmat_arrays(&spec(true), &dir, &|_| ()).unwrap();
    let data = ArrayFolder::open(&dir, &Limits::default()).unwrap();
    let options = PartitionOptions::default();
    let again = |parts, tell: &dyn Fn(&str)| {
        cut(&Job { out: (&out, true), ..job(&data, ("random", &options), parts, &out, tell) })
    };
    again(4, &|_| ()).unwrap();
    let (expected, left) = (files(&out), place.path().join(".parts.cut"));
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let killed = |text: &str| assert!(!text.starts_with("writing part 3"), "killed");
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| again(4, &killed))).is_err();
    std::panic::set_hook(hook);
    assert!(ended && left.join("parts").is_dir(), "two parts are finished");
    // As when all were in their place, and what is left could not be removed.
    std::fs::remove_dir_all(left.join("parts")).unwrap();
    again(4, &|_| ()).unwrap();
    assert!(files(&out) == expected && !left.exists());
    // As when it was killed between the two steps of replacing.
    std::fs::create_dir(&left).unwrap();
    std::fs::rename(&out, left.join("old")).unwrap();
    let refused = cut(&job(&data, ("random", &options), 3, &out, &|_| ())).err().expect("it is there again");
    assert!(files(&out) == expected, "{refused}");
}

/// Buckets fit into the memory that a cut was begun with: with more of it the cut goes on, with less it begins anew.
#[test]
fn a_cut_goes_on_with_more_memory() {
    let place = tempfile::tempdir().unwrap();
    let (dir, out) = (place.path().join("graph"), place.path().join("parts"));
    rmat_arrays(&spec(true), &dir, &|_| ()).unwrap();
    let data = ArrayFolder::open(&dir, &Limits::default()).unwrap();
    let options = PartitionOptions::default();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let mut went_on = Vec::new();
    for memory in [300u64, 400, 350, 250] {
        let goes_on = Cell::new(false);
        let tell = |text: &str| {
            goes_on.set(goes_on.get() || text.starts_with("going on"));
            assert!(!text.starts_with("writing part 2"), "killed");
        };
        let run = || cut(&Job { memory: memory << 20, ..job(&data, ("random", &options), 3, &out, &tell) }).is_ok();
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        went_on.push(goes_on.get());
    }
    std::panic::set_hook(hook);
    assert_eq!(went_on, [false, true, true, false]);
}

/// Passes over edges take long, so each counts as a step: what is ended in one goes on with it.
#[test]
fn a_cut_that_is_ended_between_two_passes_does_none_of_them_again() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("graph");
    rmat_arrays(&spec(true), &dir, &|_| ()).unwrap();
    let data = ArrayFolder::open(&dir, &Limits::default()).unwrap();
    let dataset = rmat(&spec(true)).unwrap();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    for rule in ["ldg", "fennel", "clusters"] {
        let options = PartitionOptions { rule: rule.to_owned(), passes: 5, ..PartitionOptions::default() };
        let out = place.path().join(rule);
        let told = std::cell::RefCell::new(Vec::<String>::new());
        // Each attempt ends when it begins with a pass that no earlier one has begun with.
        let attempt = || {
            let tell = |text: &str| {
                let is_new = text.contains("pass ") && !told.borrow().iter().any(|other| other == text);
                told.borrow_mut().push(text.to_owned());
                assert!(!is_new, "killed");
            };
            let job = job(&data, ("streaming", &options), 5, &out, &tell);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cut(&job).is_ok())).unwrap_or(false)
        };
        let attempts = (0..20).position(|_| attempt()).expect("it ends");
        let told = told.into_inner();
        let passes: Vec<&String> = told.iter().filter(|text| text.contains("pass ")).collect();
        // Once to be ended, once to be done.
        for pass in &passes {
            assert_eq!(passes.iter().filter(|other| other == &pass).count(), 2, "{rule}: {passes:?}");
        }
        assert_eq!(passes.len(), 2 * attempts, "{rule}");
        assert!(attempts >= 4 && files(&out) == in_memory(&dataset, ("streaming", &options), 5), "{rule}");
    }
    std::panic::set_hook(hook);
}

#[test]
fn what_there_is_no_memory_for_is_refused_before_anything_is_written() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("graph");
    rmat_arrays(&spec(true), &dir, &|_| ()).unwrap();
    let data = ArrayFolder::open(&dir, &Limits::default()).unwrap();
    let options = PartitionOptions::default();
    let out = place.path().join("parts");
    let refused = |method: &str, memory: u64| {
        let job = Job { memory, ..job(&data, (method, &options), 4, &out, &|_| ()) };
        cut(&job).err().unwrap().to_string()
    };
    let message = refused("random", 1 << 20);
    assert!(message.starts_with("cutting this graph needs ") && message.ends_with("and 1 MB are allowed"), "{message}");
    assert_eq!(
        refused("multilevel", 1 << 30),
        "\"multilevel\" needs the graph in memory, so it cannot cut one on the disk"
    );
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left but the graph");
}

#[test]
fn folders_that_do_not_fit_together_are_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let refused = |change: &dyn Fn(&Path), expected: &str| {
        let dir = place.path().join("graph");
        rmat_arrays(&spec(true), &dir, &|_| ()).unwrap();
        change(&dir);
        let message = read(&dir, &ReadOptions::default()).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        std::fs::remove_dir_all(&dir).unwrap();
    };
    let replace = |from: &'static str, to: &'static str| {
        move |dir: &Path| {
            let path = dir.join(ABOUT);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains(from));
            std::fs::write(&path, text.replace(from, to)).unwrap();
        }
    };
    refused(&replace("\"nodes\": 2048", "\"nodes\": 2047"), "expected 2047 rows, one a node, found 2048");
    refused(&replace("\"nodes\": 2048", "\"nodes\": 99999999999"), "nodes: more than the limit");
    refused(&replace("\"classes\": 4", "\"classes\": 0"), "expected labels and their number of classes, found 0");
    refused(&replace("\"classes\": 4", "\"classes\": 3"), "labels-00000.npy: row ");
    refused(&replace("\"version\": 1", "\"version\": 2"), "expected \"laconic-arrays\" version 1");
    refused(&replace("{", "["), "graph.json: JSON");
    refused(&|dir| std::fs::remove_file(dir.join("edges-00000.npy")).unwrap(), "expected edges.npy or edges-*.npy");
    refused(
        &|dir| {
            let path = dir.join("edges-00000.npy");
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, &bytes[..bytes.len() - 4]).unwrap();
        },
        "edges-00000.npy: array: its shape",
    );
    refused(
        &|dir| {
            let path = dir.join("edges-00000.npy");
            let mut bytes = std::fs::read(&path).unwrap();
            let end = bytes.len();
            bytes[end - 8..].copy_from_slice(&[1, 0, 0, 0, 255, 255, 0, 0]);
            std::fs::write(&path, &bytes).unwrap();
        },
        "row 16383: expected nodes in 0..2048, found 1 and 65535",
    );
}

//! Features that stay in their file: the same values, gone from memory with their array, and never written back.

use std::fs;
use std::path::Path;

use laconic_array::Array;
use laconic_graph::dataset::{Features, Ids, Labels};
use laconic_graph::edges::{EdgeData, Edges};
use laconic_graph::part::{FeaturesIn, GlobalCounts, Part, Provenance, open_part, open_part_with, write_parts};

const ROWS: usize = 3000;
const COLUMNS: usize = 37;

fn part() -> Part {
    let values = (0..ROWS * COLUMNS).map(|at| (at % 1013) as f32 * 0.25).collect();
    Part {
        index: 0,
        parts: 1,
        nodes: (0..ROWS as u64).collect(),
        edges: Edges { offsets: vec![0; ROWS + 1], sources: Vec::new(), data: EdgeData::default() },
        owners: None,
        left_out: Vec::new(),
        negatives: None,
        features: Features::Dense { columns: COLUMNS, values },
        labels: Labels::None,
        roles: Vec::new(),
        ids: Ids::Row,
        global: GlobalCounts {
            dataset: "rows".into(),
            nodes: ROWS as u64,
            columns: COLUMNS,
            ..GlobalCounts::default()
        },
    }
}

fn write(dir: &Path) {
    let provenance = Provenance { method: "given".to_owned(), seed: 0 };
    write_parts(dir, [part()], &provenance, false).unwrap();
}

fn values(part: &mut Part) -> &mut Array<f32> {
    let Features::Dense { values, .. } = &mut part.features else { panic!("dense features") };
    values
}

fn is_in_file(array: &Array<f32>) -> bool {
    array.lender().is_some_and(|lender| lender.file().is_some())
}

#[test]
fn features_in_their_file_are_those_in_memory_and_the_file_stays_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("parts");
    write(&dir);
    let file = dir.join("part-0/features.safetensors");
    let before = fs::read(&file).unwrap();
    let mut held = open_part(&dir, 0).unwrap();
    assert!(!held.features_are_in_file());
    // More often than there are places for maps, each of which is given back.
    for turn in 0..600 {
        let mapped = open_part_with(&dir, 0, FeaturesIn::File).unwrap();
        assert_eq!(mapped.features_are_in_file(), cfg!(unix), "turn {turn}");
        assert!(mapped == held, "turn {turn}");
    }
    let mut mapped = open_part_with(&dir, 0, FeaturesIn::File).unwrap();
    let clone = values(&mut mapped).clone();
    assert!(is_in_file(&clone) == cfg!(unix) && clone == *values(&mut held));
    // What is written is this array's alone, and an array that grows goes on in memory.
    let array = values(&mut mapped);
    array[5] = -1.0;
    array.extend([7.0; 3]);
    assert!(!is_in_file(array) && clone[5] == 1.25);
    assert_eq!((array[5], array.len(), array[ROWS * COLUMNS + 2]), (-1.0, ROWS * COLUMNS + 3, 7.0));
    assert_eq!(array[6..ROWS * COLUMNS], values(&mut held)[6..]);
    assert_eq!(fs::read(&file).unwrap(), before);
    many_at_a_time(&dir, values(&mut held));
}

/// More than there are places for maps, on several threads.
fn many_at_a_time(dir: &Path, expected: &Array<f32>) {
    let open = |_| open_part_with(dir, 0, FeaturesIn::File).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut parts: Vec<Part> = (0..90).map(open).collect();
                assert!(parts.iter_mut().all(|part| values(part) == expected));
            });
        }
    });
    assert!(open(0).features_are_in_file() == cfg!(unix), "places are given back");
}

#[test]
#[cfg(unix)]
fn a_file_that_becomes_shorter_reads_as_zeros_and_its_array_says_that_it_has_changed() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("parts");
    write(&dir);
    let mut part = open_part_with(&dir, 0, FeaturesIn::File).unwrap();
    let path = dir.join("part-0/features.safetensors");
    let array = values(&mut part).clone();
    let lender = array.lender().expect("in its file");
    assert!(lender.file() == Some(&path) && !lender.has_changed() && array[ROWS * COLUMNS - 1] > 0.0);
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(20_000).unwrap();
    assert!(lender.has_changed() && array[2] == 0.5 && array[ROWS * COLUMNS - 1] == 0.0);
}

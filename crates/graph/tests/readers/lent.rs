//! Arrays that another program lends are read by the rules of the interchange format, and features are not copied.

use std::sync::Arc;

use laconic_array::Lend;
use laconic_graph::dataset::{Dataset, Features};
use laconic_graph::digest::digest;
use laconic_graph::info::{Info, check, unusable};
use laconic_graph::npy::{Header, Kind};
use laconic_graph::part::{Part, cut};
use laconic_graph::prepare::row_normalise;
use laconic_graph::read::arrays::{LentArray, LentArrays, Steps};
use laconic_graph::read::interchange::read_lent;
use laconic_graph::read::{ReadOptions, read_with_roles};
use laconic_graph::write::write_interchange;

use crate::fixtures::{self, Content, Fixture, npy};

/// Bytes at a multiple of eight.
struct Kept(Vec<u64>, usize);

impl Lend<u8> for Kept {
    fn values(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.0)[..self.1]
    }
}

fn lent(mut file: &[u8]) -> LentArray {
    let header = Header::read(&mut file).expect("a header");
    let mut words = vec![0u64; file.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..file.len()].copy_from_slice(file);
    LentArray { header, bytes: Arc::new(Kept(words, file.len())), steps: None }
}

fn arrays(fixture: &Fixture) -> LentArrays {
    let [(_, Content::Npz(members))] = &fixture.files[..] else { panic!("one archive") };
    members.iter().map(|(name, bytes)| (name.to_string(), lent(bytes))).collect()
}

#[test]
fn arrays_that_are_lent_make_the_dataset_of_a_file_with_them() {
    for fixture in [
        fixtures::interchange(),
        fixtures::interchange_sparse(),
        fixtures::interchange_held(),
        fixtures::interchange_given(),
        fixtures::interchange_unknown(),
        fixtures::interchange_plain(),
    ] {
        for typed in [false, true] {
            let options = ReadOptions { typed, ..ReadOptions::default() };
            let folder = tempfile::tempdir().expect("a folder for a while");
            let (file, file_roles) = read_with_roles(&fixture.write(folder.path()), &options).expect("a file");
            let (memory, roles) = read_lent(&file.name, arrays(&fixture), &options).expect("arrays");
            assert_eq!(memory.name, file.name);
            assert_eq!(format!("{:?}", memory.graph), format!("{:?}", file.graph));
            assert_eq!((&memory.features, &memory.labels), (&file.features, &file.labels));
            assert_eq!(format!("{:?}", memory.splits), format!("{:?}", file.splits));
            assert_eq!(format!("{:?}", (memory.ids, memory.about)), format!("{:?}", (file.ids, file.about)));
            assert_eq!(roles.notes().count(), file_roles.notes().count());
        }
    }
}

/// Of a path of three nodes, with these features.
fn path_with(features: Vec<u8>) -> LentArrays {
    let edges = fixtures::int64(&[2, 2], &[0, 1, 1, 2]);
    [("edge_index".to_owned(), lent(&edges)), ("x".to_owned(), lent(&features))].into()
}

#[test]
fn dense_features_of_32_bits_stay_where_they_are_and_others_are_copied_once() {
    let rows: Vec<f32> = (0..6).map(|value| value as f32).collect();
    let doubles = || npy("<f8", &[3, 2], rows.iter().map(|value| f64::from(*value).to_le_bytes()));
    for (stored, stays) in [(fixtures::float32(&[3, 2], &rows), true), (doubles(), false)] {
        let arrays = path_with(stored);
        let place = arrays["x"].bytes.values().as_ptr() as usize;
        let (dataset, _) = read_lent("path", arrays, &ReadOptions::default()).expect("a graph");
        let Features::Dense { columns: 2, values } = &dataset.features else { panic!("{:?}", dataset.features) };
        assert_eq!(values[..], rows[..]);
        assert_eq!((values.as_ptr() as usize == place, values.lender().is_some()), (stays, stays));
    }
}

/// bfloat16 is no number of files, so that it comes with a header of its own.
fn bfloat(rows: usize, columns: usize, values: &[f32]) -> LentArray {
    let halves: Vec<u8> = values.iter().flat_map(|value| ((value.to_bits() >> 16) as u16).to_le_bytes()).collect();
    let shape = vec![rows as u64, columns as u64];
    let (kind, item_bytes, descr) = (Kind::Bfloat, 2, "bfloat16".to_owned());
    let header = Header { kind, item_bytes, big_endian: false, fortran: false, shape, descr };
    let mut words = vec![0u64; halves.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..halves.len()].copy_from_slice(&halves);
    LentArray { header, bytes: Arc::new(Kept(words, halves.len())), steps: None }
}

/// Whatever reads features finds in bfloat16 the numbers of 32 bits that it is the upper half of.
#[test]
fn bfloat16_stays_where_it_is_and_is_everywhere_read_as_numbers_of_32_bits() {
    let numbers = vec![1.0, -2.5, 0.0, 300.0, 1.0, 0.15625, -0.0, 7.0, 1.0];
    for values in [numbers.clone(), [&numbers[..8], &[f32::NAN]].concat()] {
        let mut arrays = path_with(fixtures::float32(&[3, 3], &values));
        let (wide, _) = read_lent("path", arrays.clone(), &ReadOptions::default()).expect("a graph");
        arrays.insert("x".to_owned(), bfloat(3, 3, &values));
        let (half, _) = read_lent("path", arrays, &ReadOptions::default()).expect("a graph");
        let Features::Dense { columns: 3, values: stored } = &half.features else { panic!("dense features") };
        assert!(!stored.is_in_place() && stored.lender().is_some(), "nothing is copied");
        assert_eq!(digest(&half), digest(&wide));
        assert_eq!(format!("{:?}", check(&half)), format!("{:?}", check(&wide)));
        assert_eq!(format!("{:?}", Info::of(&half)), format!("{:?}", Info::of(&wide)));
        assert_eq!(unusable(&half, None), unusable(&wide, None));
        let folder = tempfile::tempdir().expect("a folder for a while");
        let written = |dataset: &Dataset| {
            write_interchange(&folder.path().join("graph.npz"), dataset).expect("a file");
            std::fs::read(folder.path().join("graph.npz")).expect("its bytes")
        };
        assert_eq!(written(&half), written(&wide));
        for (of, parts) in [(vec![0; 3], 1), (vec![1, 0, 1], 2)] {
            let parts = [&half, &wide].map(|dataset| cut(dataset, None, &of, parts).expect("parts"));
            for (half, wide) in parts[0].iter().zip(&parts[1]) {
                assert_eq!(half.global.data_digest, wide.global.data_digest);
                let bits = |part: &Part| part.features.stored().iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(half), bits(wide));
                assert!(!half.features_are_lent(), "workers get rows of their own");
            }
        }
    }
}

#[test]
fn bfloat16_that_is_changed_or_turned_round_is_copied_as_numbers_of_32_bits() {
    let mut arrays = path_with(fixtures::float32(&[3, 1], &[0.0; 3]));
    arrays.insert("x".to_owned(), bfloat(3, 3, &[1.0, -2.5, 0.0, 300.0, 1.0, 0.15625, -0.0, 7.0, 1.0]));
    let (mut half, _) = read_lent("path", arrays.clone(), &ReadOptions::default()).expect("a graph");
    row_normalise(&mut half.features, &half.exact);
    let Features::Dense { values, .. } = &half.features else { panic!("dense features") };
    assert_eq!((values.is_in_place(), values[6], values[7]), (true, -0.0, 0.875));
    let of = arrays.get_mut("x").expect("features");
    of.header.fortran = true;
    let (turned, _) = read_lent("path", arrays, &ReadOptions::default()).expect("a graph");
    let Features::Dense { values, .. } = &turned.features else { panic!("dense features") };
    assert_eq!((values.lender().is_none(), &values[..3]), (true, &[1.0, 300.0, -0.0][..]));
}

#[test]
fn items_of_a_slice_are_read_from_where_they_are() {
    // Rows and columns of a matrix of 6 × 4, forwards and backwards, and one row again and again.
    let numbers: Vec<f64> = (0..24).map(f64::from).collect();
    for (start, steps, expected) in [
        (1, [8, 1], [1.0, 2.0, 9.0, 10.0, 17.0, 18.0]),
        (23, [-8, -2], [23.0, 21.0, 15.0, 13.0, 7.0, 5.0]),
        (2, [1, 4], [2.0, 6.0, 3.0, 7.0, 4.0, 8.0]),
        (5, [0, 1], [5.0, 6.0, 5.0, 6.0, 5.0, 6.0]),
    ] {
        let mut arrays = path_with(npy("<f8", &[6, 4], numbers.iter().map(|value| value.to_le_bytes())));
        let of = arrays.get_mut("x").expect("features");
        of.header.shape = vec![3, 2];
        of.steps = Some(Steps { start: 8 * start, sizes: steps.map(|step| 8 * step).to_vec() });
        let (dataset, _) = read_lent("path", arrays, &ReadOptions::default()).expect("a graph");
        let Features::Dense { columns: 2, values } = &dataset.features else { panic!("{:?}", dataset.features) };
        assert_eq!(values[..], expected);
    }
}

#[test]
fn a_slice_that_leaves_its_bytes_is_an_error() {
    for (start, sizes) in [(0, vec![8, 12]), (8, vec![-8, 4]), (0, vec![4]), (usize::MAX, vec![isize::MAX; 2])] {
        let mut arrays = path_with(fixtures::float32(&[3, 2], &[0.0; 6]));
        arrays.get_mut("x").expect("features").steps = Some(Steps { start, sizes });
        let found = read_lent("my_graph", arrays, &ReadOptions::default()).expect_err("refused").to_string();
        assert!(found.contains("array 'x'") && found.contains("24 bytes"), "{found}");
    }
}

#[test]
fn arrays_that_do_not_fit_are_errors_that_name_them() {
    let refused = |arrays| read_lent("my_graph", arrays, &ReadOptions::default()).expect_err("refused").to_string();
    let mut arrays = path_with(fixtures::float32(&[3, 1], &[0.0; 3]));
    arrays.get_mut("x").expect("features").header.shape = vec![4, 1];
    let found = refused(arrays);
    assert!(found.contains("my_graph") && found.contains("array 'x'") && found.contains("12 bytes"), "{found}");
    let found = refused(path_with(fixtures::float32(&[2, 1], &[0.0; 2])));
    assert!(found.contains("array 'x'") && found.contains("expected 3 rows"), "{found}");
    let found = refused([("x".to_owned(), lent(&fixtures::float32(&[3, 1], &[0.0; 3])))].into());
    assert!(found.contains("array 'edge_index'") && found.contains("expected among the arrays"), "{found}");
}

//! Arrays that another program lends are read by the rules of the interchange format, and features are not copied.

use std::sync::Arc;

use laconic_array::Lend;
use laconic_graph::dataset::Features;
use laconic_graph::npy::Header;
use laconic_graph::read::arrays::{LentArray, LentArrays};
use laconic_graph::read::interchange::read_lent;
use laconic_graph::read::{ReadOptions, read_with_roles};

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
    LentArray { header, bytes: Arc::new(Kept(words, file.len())) }
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

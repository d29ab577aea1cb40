//! Folders as engines and archives lay them out, and files whose names do not say what they are.

use crate::asked::written;
use crate::fixtures::npy;
use crate::parquets::{Leaf, file};
use laconic_graph::dataset::Dataset;
use laconic_graph::read::{ReadOptions, read_with_roles};
use std::path::Path;

fn read(path: &Path) -> Result<Dataset, String> {
    read_with_roles(path, &ReadOptions::default()).map(|found| found.0).map_err(|error| error.to_string())
}

/// The edges of a graph of two or three nodes, as pairs of numbers.
fn edges(dataset: &Dataset) -> Vec<(u32, u32)> {
    let graph = &dataset.graph;
    let into = |node: usize| graph.in_neighbours(node).iter().map(move |&source| (source, node as u32));
    (0..graph.nodes()).flat_map(into).collect()
}

fn packed(text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    to.write_all(text.as_bytes()).unwrap();
    to.finish().unwrap()
}

fn parquet(sources: &[i64], targets: &[i64]) -> Vec<u8> {
    let columns = vec![Leaf::Int64(sources.to_vec()), Leaf::Int64(targets.to_vec())];
    file("required int64 source; required int64 target;", columns)
}

#[test]
fn a_folder_of_an_engines_edges_and_one_of_its_nodes_are_one_graph() {
    let ids =
        file("required int64 id; required double age;", vec![Leaf::Int64(vec![7, 8, 9]), Leaf::Double(vec![1.5; 3])]);
    for done in ["edges/_SUCCESS", "edges/.part-0.parquet.crc"] {
        let folder = written(&[
            (done, Vec::new()),
            ("edges/part-0.parquet", parquet(&[7], &[8])),
            ("edges/part-1.parquet", parquet(&[8], &[9])),
            ("nodes/part-0.parquet", ids.clone()),
        ]);
        let found = read(folder.path()).unwrap();
        assert_eq!((edges(&found), found.about.features), (vec![(0, 1), (1, 2)], vec!["age".to_owned()]), "{done}");
    }
    // Tables of types stay such.
    let folder = written(&[
        ("edges/user__buys__item.parquet", parquet(&[7], &[7])),
        ("nodes/item.csv", b"id\n7\n".to_vec()),
        ("nodes/user.csv", b"id\n7\n".to_vec()),
    ]);
    let found = read(folder.path()).unwrap();
    assert_eq!((found.graph.nodes(), found.about.relations), (2, vec!["user__buys__item".to_owned()]));
}

#[test]
fn parts_of_text_are_found_whatever_engine_has_named_them_and_packed_or_not() {
    let line = |text: &str| text.as_bytes().to_vec();
    for names in
        [["0.part", "1.part"], ["00.part", "01.part"], ["part-00000", "part-00001"], ["part-m-00000", "part-m-00001"]]
    {
        let folder = written(&[(names[0], line("0,1\n")), (names[1], line("1,2\n")), ("_SUCCESS", Vec::new())]);
        assert_eq!(edges(&read(folder.path()).unwrap()), [(0, 1), (1, 2)], "{names:?}");
    }
    let folder =
        written(&[("e/part-0.csv", line("source,target\n0,1\n")), ("e/part-1.csv.gz", packed("source,target\n1,2\n"))]);
    assert_eq!(edges(&read(&folder.path().join("e")).unwrap()), [(0, 1), (1, 2)]);
}

#[test]
fn folders_that_are_not_read_are_refused_with_the_way_in() {
    let some = || b"x".to_vec();
    for (files, words) in [
        (
            vec![("2024/part-0.parquet", parquet(&[0], &[1])), ("2025/part-0.parquet", parquet(&[1], &[2]))],
            "column=value",
        ),
        (vec![("matrix.mtx.gz", some()), ("barcodes.tsv.gz", some()), ("features.tsv.gz", some())], "read_10x_mtx"),
    ] {
        let error = read(written(&files).path()).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_folder_of_konect_and_triples_without_endings_are_read() {
    let folder = written(&[
        ("out.club", b"% sym unweighted\n1 2\n2 3\n".to_vec()),
        ("meta.club", b"name: club\n".to_vec()),
        ("README.club", b"a club\n".to_vec()),
    ]);
    assert_eq!(edges(&read(folder.path()).unwrap()), [(1, 0), (0, 1), (2, 1), (1, 2)]);
    let two = written(&[("out.a", b"% asym\n1 2\n".to_vec()), ("out.b", b"% asym\n1 2\n".to_vec())]);
    assert!(read(two.path()).is_err());
    let line = |text: &str| text.as_bytes().to_vec();
    let folder =
        written(&[("train", line("a\tr\tb\nb\tr\tc\n")), ("valid", line("a\tr\tc\n")), ("test", line("c\tr\ta\n"))]);
    let found = read(folder.path()).unwrap();
    assert_eq!((found.graph.edges(), found.graph.data.held_counts()), (4, Some([1, 1])));
}

#[test]
fn files_that_are_not_read_are_known_by_their_first_bytes_and_texts_by_their_encoding() {
    let array = npy("<f8", &[1], [1.0f64.to_le_bytes()]);
    let wide: Vec<u8> = "\u{feff}source\ttarget\n0\t1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bare: Vec<u8> = "source\ttarget\nü\t1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, bytes, words) in [
        ("cells", b"\x89HDF\r\n\x1a\n0".to_vec(), "numpy.savez(\"graph.npz\", edge_index=file"),
        ("store", b"SQLite format 3\0".to_vec(), "a database"),
        ("a.npy", array.clone(), "scipy.sparse.csr_matrix(numpy.load(FILE))"),
        ("array", array, "scipy.sparse.csr_matrix(numpy.load(FILE))"),
        ("roads.gr", b"p sp 2 1\na 1 2 7\n".to_vec(), "sed -n 's/^a //p'"),
        ("w.txt", wide, "iconv -f UTF-16 -t UTF-8"),
        ("b.csv", bare, "iconv -f UTF-16 -t UTF-8"),
        ("l.csv", b"source,target\nM\xfcller,a\n".to_vec(), "iconv -f WINDOWS-1252 -t UTF-8"),
    ] {
        let folder = written(&[(name, bytes)]);
        let error = read(&folder.path().join(name)).unwrap_err();
        assert!(error.contains(words) && error.contains(name), "{name}: {error}");
    }
}

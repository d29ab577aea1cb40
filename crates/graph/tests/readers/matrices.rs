//! Matrices that are graphs, with node tables beside them, and OGB's folders of arrays.

use crate::fixtures::{Content, Fixture, float32, gz, int32, int64, npz, uint8};
use crate::graph_formats::{self, word};
use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::error::Result;
use laconic_graph::npy::write_header;
use laconic_graph::read::{Columns, ReadOptions, read};
use std::path::PathBuf;

/// Reads the first of some files, which lie in one folder.
fn read_files(files: &[(&str, Vec<u8>)], change: impl FnOnce(&mut ReadOptions, PathBuf)) -> Result<Dataset> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let mut options = ReadOptions::default();
    change(&mut options, folder.path().to_owned());
    read(&folder.path().join(files[0].0), &options)
}

fn read_text(name: &str, text: &str) -> Result<Dataset> {
    read_files(&[(name, text.as_bytes().to_vec())], |_, _| {})
}

fn read_fixture(fixture: &Fixture) -> Result<Dataset> {
    let folder = tempfile::tempdir().unwrap();
    read(&fixture.write(folder.path()), &ReadOptions::default())
}

/// Source, target and weight of every edge, in the order of sources.
fn edges(dataset: &Dataset) -> Vec<(u32, u32, f32)> {
    let graph = &dataset.graph;
    let weight = |edge: usize| graph.data.weights.as_ref().map_or(1.0, |weights| weights[edge]);
    let of = |to: usize| graph.in_edges(to).map(move |edge| (graph.sources[edge], to as u32, weight(edge)));
    let mut edges: Vec<_> = (0..graph.nodes()).flat_map(of).collect();
    edges.sort_by_key(|edge| (edge.0, edge.1));
    edges
}

#[test]
fn a_triangle_of_a_symmetric_matrix_leads_both_ways_and_is_called_by_its_numbers() {
    let got = read_fixture(&graph_formats::matrix_market()).unwrap();
    let expected = [(0, 1, 0.5), (0, 3, 1.0), (1, 0, 0.5), (1, 2, 2.0), (2, 1, 2.0), (3, 0, 1.0)];
    assert_eq!(edges(&got), expected);
    assert_eq!(got.ids, Ids::Integers(vec![1, 2, 3, 4]));
    let kept = read_files(
        &[("a.mtx", b"%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 7\n1 2 -3".into())],
        |o, _| {
            o.keep_self_loops = true;
        },
    );
    assert_eq!(edges(&kept.unwrap()), [(0, 0, 7.0), (0, 1, -3.0)]);
}

#[test]
fn skew_matrices_have_the_other_sign_on_the_way_back_and_patterns_no_weights() {
    let skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 4\n3 1 -1.5\n";
    let skew = read_text("a.mtx", skew).unwrap();
    assert_eq!(edges(&skew), [(0, 1, -4.0), (0, 2, 1.5), (1, 0, 4.0), (2, 0, -1.5)]);
    let pattern =
        "%%matrixmarket Matrix Coordinate Pattern Symmetric\n% made by hand\n\n3 3 2\n\n2 1\n% between\n3 1\n";
    let pattern = read_text("a.mtx", pattern).unwrap();
    assert_eq!((pattern.graph.data.weights.clone(), edges(&pattern).len()), (None, 4));
    // Without a first line that says so: what is there.
    let bare = |text: &str| edges(&read_text("a.mtx", text).unwrap());
    assert_eq!(bare("% no banner\n3 3 2\n1 2\n3 1\n"), [(0, 1, 1.0), (2, 0, 1.0)]);
    assert_eq!(bare("3 3 1\n1 2 0.5\n"), [(0, 1, 0.5)]);
}

#[test]
fn a_matrix_is_known_by_its_first_line_under_any_name_and_packed() {
    let text = "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 3\n";
    for name in ["links.txt", "links.csv", "links", "links.mtx.gz"] {
        for bytes in [text.as_bytes().to_vec(), gz(text)] {
            let got = read_files(&[(name, bytes)], |_, _| {}).unwrap();
            assert_eq!((edges(&got), got.graph.nodes()), (vec![(0, 2, 1.0)], 3), "{name}");
        }
    }
}

#[test]
fn what_is_no_graph_of_one_kind_of_nodes_is_refused_with_a_way_in() {
    let head = "%%MatrixMarket matrix";
    for (text, words) in [
        (format!("{head} coordinate integer general\n3 5 1\n1 2 7\n"), ["3 rows and 5 columns", "scanpy"]),
        (format!("{head} coordinate complex general\n3 3 1\n1 2 7 1\n"), ["complex", "modulus"]),
        (format!("{head} array real general\n2 2\n1\n2\n3\n4\n"), ["array", "scipy.io.mmwrite"]),
        (format!("{head} coordinate real hermitian\n3 3 1\n1 2 7\n"), ["hermitian", "symmetric"]),
        (format!("{head} coordinate real general\n3 3 2\n1 2 7\n"), ["expected 2 entries", "found 1"]),
        (format!("{head} coordinate real general\n3 3 1\n1 4 7\n"), ["line 3", "1..=3"]),
        (format!("{head} coordinate real general\n3 3 1\n0 1 7\n"), ["line 3", "1..=3"]),
        (format!("{head} coordinate real general\n3 3 1\n1 2\n"), ["line 3", "a value"]),
        (format!("{head} coordinate pattern general\n3 3 1\n1 2 5\n"), ["line 3", "1 2 5"]),
        (format!("{head} coordinate real skew-symmetric\n3 3 1\n2 2 5\n"), ["line 3", "diagonal"]),
    ] {
        let error = read_text("a.mtx", &text).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
    }
}

const PATH: &str = "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n";

#[test]
fn rows_of_a_node_table_are_those_of_the_matrix_unless_ids_are_its_numbers() {
    let table = |text: &str| {
        let files = [("path.mtx", PATH.into()), ("cells.csv", text.into())];
        read_files(&files, |options, folder| {
            options.nodes = Some(folder.join("cells.csv"));
            options.columns = Columns { id: Some("cell".to_owned()), ..Columns::default() };
        })
    };
    let ends = |got: &Dataset| edges(got).into_iter().map(|edge| (edge.0, edge.1)).collect::<Vec<_>>();
    let got = table("cell,label,x\nAAC,t,1.5\nCCG,b,2.5\nGGT,t,3.5\n").unwrap();
    assert_eq!(ends(&got), [(0, 1), (1, 2)]);
    assert_eq!(got.ids, Ids::Strings(["AAC", "CCG", "GGT"].map(str::to_owned).to_vec()));
    assert_eq!(got.features, Features::Dense { columns: 1, values: vec![1.5, 2.5, 3.5].into() });
    assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![1, 0, 1] });
    // Its numbers, in another order: 3 → row 0, 1 → row 1, 2 → row 2.
    let got = table("cell,label,x\n3,c,3.5\n1,a,1.5\n2,b,2.5\n").unwrap();
    assert_eq!((ends(&got), got.ids), (vec![(1, 2), (2, 0)], Ids::Integers(vec![3, 1, 2])));
    let error = table("cell,x\n2,3.5\n0,1.5\n1,2.5\n").unwrap_err().to_string();
    assert!(error.contains("count from 0") && error.contains("count from 1"), "{error}");
    let error = table("cell,x\nA,3.5\nB,1.5\n").unwrap_err().to_string();
    assert!(error.contains("expected 3 rows") && error.contains("found 2"), "{error}");
    // A table that is not there cannot have columns.
    let idle = read_files(&[("path.mtx", PATH.into())], |options, _| options.columns.label = Some("y".to_owned()));
    assert!(idle.unwrap_err().to_string().contains("--label"));
}

/// A matrix as SciPy saves it.
fn scipy(members: Vec<(&'static str, Vec<u8>)>) -> Result<Dataset> {
    read_files(&[("a.npz", npz(&members))], |_, _| {})
}

#[test]
fn the_three_forms_of_a_scipy_matrix_are_one_graph() {
    let expected = [(0, 1, 0.5), (0, 2, 2.0), (2, 0, -1.0)];
    let csr = read_fixture(&graph_formats::scipy()).unwrap();
    assert_eq!((edges(&csr), csr.ids, csr.graph.nodes()), (expected.to_vec(), Ids::Row, 3));
    let shape = || ("shape", int64(&[2], &[3, 3]));
    // Column after column: (2, 0), (0, 1), (0, 2).
    let csc = scipy(vec![
        ("indices", int32(&[3], &[2, 0, 0])),
        ("indptr", int32(&[4], &[0, 1, 2, 3])),
        ("format", word("csc")),
        shape(),
        ("data", float32(&[3], &[-1.0, 0.5, 2.0])),
    ]);
    assert_eq!(edges(&csc.unwrap()), expected);
    let coo = |data, shape| {
        let ends = [("row", int32(&[3], &[2, 0, 0])), ("col", int32(&[3], &[0, 1, 2]))];
        scipy(ends.into_iter().chain([("format", word("coo")), ("shape", shape), ("data", data)]).collect())
    };
    let numbers = || float32(&[3], &[-1.0, 0.5, 2.0]);
    assert_eq!(edges(&coo(numbers(), shape().1).unwrap()), expected);
    let mut flags = Vec::new();
    write_header(&mut flags, "|b1", &[3]).unwrap();
    flags.extend([1, 1, 1]);
    assert_eq!(coo(flags, shape().1).unwrap().graph.data.weights, None);
    let error = coo(numbers(), int64(&[2], &[3, 4])).unwrap_err().to_string();
    assert!(error.contains("3 rows and 4 columns"), "{error}");
    let dia = vec![("format", word("dia")), shape(), ("data", float32(&[1, 3], &[1.0; 3]))];
    assert!(scipy(dia).unwrap_err().to_string().contains("tocsr()"));
}

#[test]
fn an_archive_of_other_arrays_is_refused_with_their_names_and_a_way_in() {
    let members = vec![("node_features", float32(&[2, 2], &[0.0; 4])), ("links", int64(&[1, 2], &[0, 1]))];
    let error = scipy(members).unwrap_err().to_string();
    let words = ["node_features [2, 2]", "links [1, 2]", "edge_index", "numpy.savez("];
    assert!(words.iter().all(|word| error.contains(word)), "{error}");
    let error = scipy(vec![("A_indptr", int64(&[1], &[0])), ("A_data", uint8(&[0], &[]))]).unwrap_err().to_string();
    assert!(error.contains("scipy.sparse.save_npz(") && error.contains("z[\"A_indices\"]"), "{error}");
}

#[test]
fn the_binary_layout_of_ogb_is_read_with_halves_labels_and_split() {
    let fixture = graph_formats::ogb_binary();
    let got = read_fixture(&fixture).unwrap();
    let ends: Vec<_> = edges(&got).into_iter().map(|edge| (edge.0, edge.1)).collect();
    assert_eq!(ends, [(0, 1), (1, 2), (3, 0)]);
    assert_eq!(
        got.features,
        Features::Dense { columns: 2, values: vec![1.0, 0.0, 2.0, 0.5, 0.0, 1.0, -2.0, 0.0].into() }
    );
    assert_eq!(got.labels, Labels::Single { classes: 3, values: vec![0, 2, -1, 1] });
    assert_eq!(got.splits, [Split { roles: vec![Split::TRAIN, Split::VAL, 0, Split::TEST] }]);
    // What torch wrote is refused with a command, in either layout.
    for (name, way) in [("split_dict.pt", "numpy.savetxt("), ("train.pt", "from_ogb_links.py")] {
        let mut torch = fixture.clone();
        torch.files.truncate(2);
        torch.files.push((format!("papers/split/time/{name}"), Content::Bytes(vec![0])));
        let error = read_fixture(&torch).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(way), "{error}");
    }
}

#[test]
fn a_matrix_of_links_between_two_kinds_may_have_more_rows_than_columns() {
    let text = "%%MatrixMarket matrix coordinate real general\n3 2 4\n1 1 0.5\n3 2 1.5\n1 2 2\n1 2 1\n";
    let error = read_text("links.mtx", text).unwrap_err().to_string();
    assert!(error.contains("3 rows and 2 columns") && error.contains("--bipartite"), "{error}");
    let bipartite = |options: &mut ReadOptions, _| options.bipartite = true;
    let dataset = read_files(&[("links.mtx", text.as_bytes().to_vec())], bipartite).unwrap();
    let ids = ["row/1", "row/2", "row/3", "column/1", "column/2"].map(str::to_owned);
    assert_eq!(dataset.ids, Ids::Strings(ids.to_vec()));
    assert_eq!(edges(&dataset), [(0, 3, 0.5), (0, 4, 3.0), (2, 4, 1.5)]);
    // A third column is one too many, and a symmetric matrix has one kind of nodes.
    for (text, words) in [
        ("%%MatrixMarket matrix coordinate pattern general\n3 2 1\n1 3\n", "a column in 1..=2"),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n", "without --bipartite"),
    ] {
        let error = read_files(&[("links.mtx", text.as_bytes().to_vec())], bipartite).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let tables = [("links.mtx", text.as_bytes().to_vec()), ("nodes.csv", b"id\n1\n".to_vec())];
    assert!(read_files(&tables, bipartite).unwrap_err().to_string().contains("need one each"));
}

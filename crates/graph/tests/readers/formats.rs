//! What each reader makes of a valid input.

use crate::fixtures::{self, Content, Fixture};
use crate::pickles;
use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::error::Result;
use laconic_graph::given::GivenPairs;
use laconic_graph::graph::Graph;
use laconic_graph::info::{Info, check};
use laconic_graph::limits::Limits;
use laconic_graph::read::{Columns, READERS, ReadOptions, read};
use std::path::PathBuf;

fn read_with(fixture: &Fixture, change: impl FnOnce(&mut ReadOptions, PathBuf)) -> Result<Dataset> {
    let folder = tempfile::tempdir().unwrap();
    let path = fixture.write(folder.path());
    let mut options = ReadOptions::default();
    change(&mut options, folder.path().to_owned());
    read(&path, &options)
}

fn read_plain(fixture: &Fixture) -> Dataset {
    read_with(fixture, |_, _| {}).unwrap()
}

/// (source, target) of every edge, by target.
fn arcs(graph: &Graph) -> Vec<(u32, u32)> {
    (0..graph.nodes()).flat_map(|v| graph.in_neighbours(v).iter().map(move |&s| (s, v as u32))).collect()
}

fn both_ways(edges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut all: Vec<_> = edges.iter().flat_map(|&(s, t)| [(s, t), (t, s)]).collect();
    all.sort_by_key(|&(s, t)| (t, s));
    all
}

fn text_file(path: &'static str, text: &str) -> Fixture {
    let mut fixture = fixtures::edge_list();
    fixture.path = path;
    fixture.files = vec![(path.to_owned(), Content::Bytes(text.as_bytes().to_vec()))];
    fixture
}

const TRAIN: u8 = Split::TRAIN;
const VAL: u8 = Split::VAL;
const TEST: u8 = Split::TEST;

#[test]
fn every_fixture_is_recognised_by_its_own_reader_only() {
    for fixture in fixtures::all() {
        let folder = tempfile::tempdir().unwrap();
        let path = fixture.write(folder.path());
        let found: Vec<_> = READERS.iter().filter(|r| r.recognises(&path)).map(|r| r.name()).collect();
        assert_eq!(found, [fixture.reader.name()], "{}", fixture.path);
    }
}

#[test]
fn what_nothing_recognises_gets_the_list_of_formats() {
    let folder = tempfile::tempdir().unwrap();
    let error = read(folder.path(), &ReadOptions::default()).unwrap_err().to_string();
    for words in
        ["edge_index", "gnn-benchmark", ".csv", ".parquet", "METIS", "OGB", "Planetoid", "GraphSAINT", "part-0"]
    {
        assert!(error.contains(words), "expected '{words}' in: {error}");
    }
    assert!(error.len() < 400 + folder.path().as_os_str().len(), "{error}");
    for (name, advice) in [("graph.pt", "numpy.savez("), ("graph.pkl", "numpy.savez("), ("graph.tlp", "as a table")] {
        std::fs::write(folder.path().join(name), "PK").unwrap();
        let error = read(&folder.path().join(name), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(advice), "{error}");
    }
    let missing = read(&folder.path().join("missing"), &ReadOptions::default()).unwrap_err().to_string();
    assert!(missing.contains("missing: "), "{missing}");
    let broken = folder.path().join("broken.npz");
    std::fs::write(&broken, "not an archive").unwrap();
    assert!(read(&broken, &ReadOptions::default()).unwrap_err().to_string().contains("expected a zip of .npy arrays"));
}

#[test]
fn a_folder_of_arrays_is_read_file_after_file() {
    let got = read_plain(&fixtures::array_folder());
    assert_eq!(got.name, "path");
    let rows: Vec<&[u32]> = (0..4).map(|node| got.graph.in_neighbours(node)).collect();
    assert_eq!(rows, [&[1][..], &[0, 2], &[1, 3], &[2]]);
    let values = vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    assert_eq!(got.features, Features::Dense { columns: 2, values: values.into() });
    assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![0, 1, -1, 1] });
    assert_eq!(got.splits[0].roles, [TRAIN, VAL, 0, TEST]);
}

#[test]
fn interchange_holds_undirected_edges_once() {
    let got = read_plain(&fixtures::interchange());
    assert_eq!(got.name, "tiny");
    assert_eq!(arcs(&got.graph), both_ways(&[(0, 1), (0, 2), (1, 2), (2, 3)]));
    assert_eq!(got.features.columns(), 2);
    assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![0, 1, 1, 0, -1] });
    let roles: Vec<_> = got.splits.into_iter().map(|s| s.roles).collect();
    assert_eq!(roles, [[TRAIN, VAL, TEST, TEST, 0], [VAL, TRAIN, TEST, TEST, 0]]);
    assert_eq!(got.ids, Ids::Strings(["a", "b", "c", "d", "ef"].map(str::to_owned).to_vec()));
}

#[test]
fn interchange_gives_pairs_that_are_no_edges_in_two_forms() {
    let got = read_plain(&fixtures::interchange_given());
    let [val, test] = got.negatives.unwrap();
    let pool = GivenPairs { sources: vec![4, 0, 4], targets: vec![0, 3, 0], ..GivenPairs::default() };
    assert_eq!(val, pool);
    // An edge from a node to itself is none to predict, and a row of -1 leaves its edge out.
    assert_eq!(test, GivenPairs { sources: vec![4], targets: vec![3], others: vec![0, 1], each: 2, relations: vec![] });
    assert_eq!(test.pairs().collect::<Vec<_>>(), [(4, 0, None), (4, 1, None)]);
    let numbers = |name, shape: &[usize], values: &[i64]| (name, fixtures::int64(shape, values));
    let edges = || numbers("test_edge_index", &[2, 2], &[0, 1, 1, 2]);
    let own = |shape: &[usize], values: &[i64]| numbers("test_neg_targets", shape, values);
    let pool = |name, ends: &[i64]| numbers(name, &[2, ends.len() / 2], ends);
    for (members, words) in [
        (vec![pool("val_neg_edge_index", &[0, 3])], ["val_neg_edge_index", "0..3, found 3"]),
        (vec![pool("test_neg_edge_index", &[0, -1])], ["test_neg_edge_index", "-1"]),
        (vec![numbers("valid_neg_edge_index", &[4], &[0; 4])], ["valid_neg_edge_index", "[2, edges]"]),
        (vec![own(&[2, 1], &[0, 0])], ["test_neg_targets", "expected test_edge_index beside it"]),
        (vec![edges(), own(&[2], &[0, 0])], ["test_neg_targets", "[2, targets]"]),
        (vec![edges(), own(&[1, 2], &[0, 0])], ["test_neg_targets", "a row for each edge of test_edge_index"]),
        (vec![edges(), own(&[2, 0], &[])], ["test_neg_targets", "[2, 0]"]),
        (vec![edges(), own(&[2, 1], &[0, 3])], ["test_neg_targets", "0..3, or -1"]),
        (vec![edges(), own(&[2, 2], &[0, 1, 2, -1])], ["test_neg_targets", "found -1"]),
        (
            vec![edges(), own(&[2, 1], &[0, 0]), pool("test_neg_edge_index", &[0, 2])],
            ["test_neg_targets", "found test_neg_edge_index as well"],
        ),
    ] {
        let members = [vec![numbers("edge_index", &[2, 2], &[0, 1, 1, 2])], members].concat();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("given.npz");
        std::fs::write(&path, fixtures::npz(&members)).unwrap();
        let error = read(&path, &ReadOptions::default()).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)) && error.contains("given.npz"), "{words:?}: {error}");
    }
}

#[test]
fn interchange_holds_edges_out_for_validation_and_testing() {
    let got = read_plain(&fixtures::interchange_held());
    let graph = &got.graph;
    let held = graph.data.held.as_ref().unwrap();
    let edges = (0..graph.nodes()).flat_map(|node| graph.in_edges(node).map(move |at| (graph.sources[at], node, at)));
    let edges: Vec<(u32, usize, u8)> = edges.map(|(source, target, at)| (source, target, held[at])).collect();
    let expected = [(1, 0, 0), (4, 0, 2), (0, 1, 0), (2, 1, 1), (1, 2, 1), (3, 2, 0), (2, 3, 0), (0, 4, 2)];
    assert_eq!(edges, expected);
    assert_eq!(graph.data.weights.as_ref().unwrap()[1], 1.0);
    let edge = |name, values: &[i32]| (name, fixtures::int32(&[2, values.len() / 2], values));
    let types = ("edge_type", fixtures::uint8(&[2], &[0, 1]));
    for (members, words) in [
        (
            vec![edge("val_edge_index", &[0, 1]), edge("test_edge_index", &[0, 1])],
            ["test_edge_index", "held out twice"],
        ),
        (vec![("test_edge_index", fixtures::int32(&[3], &[0, 1, 2]))], ["test_edge_index", "[2, edges]"]),
        (vec![edge("val_edge_index", &[2, 0]), types], ["val_edge_index", "from 2 to 0 is not in edge_index"]),
        (vec![edge("val_edge_index", &[7, 0]), ("num_nodes", fixtures::uint8(&[1], &[3]))], ["0..3", "7"]),
    ] {
        let members = [vec![edge("edge_index", &[0, 1, 1, 2])], members].concat();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("held.npz");
        std::fs::write(&path, fixtures::npz(&members)).unwrap();
        let error = read(&path, &ReadOptions { typed: true, ..ReadOptions::default() }).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn interchange_holds_arcs_weights_and_sparse_features() {
    let fixture = fixtures::interchange_sparse();
    let got = read_plain(&fixture);
    assert_eq!(arcs(&got.graph), [(2, 0), (0, 1), (1, 2)]);
    assert_eq!(got.graph.data.weights, Some(vec![4.0, 0.5, 2.0]));
    let (offsets, indices) = (vec![0, 1, 1, 3], vec![3, 0, 1]);
    assert_eq!(got.features, Features::Sparse { columns: 4, offsets, indices, values: vec![1.0, 2.0, 3.0] });
    assert_eq!(got.labels, Labels::Multi { classes: 2, values: vec![1, 1, 0, 0, 0, 1] });
    let both = read_with(&fixture, |options, _| options.symmetrise = true).unwrap();
    assert_eq!(arcs(&both.graph), both_ways(&[(0, 1), (1, 2), (2, 0)]));
}

#[test]
fn fewer_classes_than_labels_are_refused_and_more_are_classes_without_nodes() {
    let labelled = |labels: Vec<u8>, classes: i64| {
        let mut members = vec![("edge_index", fixtures::int64(&[2, 2], &[0, 1, 1, 2])), ("labels", labels)];
        members.push(("num_classes", fixtures::int64(&[1], &[classes])));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.npz");
        std::fs::write(&path, fixtures::npz(&members)).unwrap();
        let passes = laconic_graph::read::passes::NpzPasses::open(&path, &Limits::default()).map(drop);
        let read = read(&path, &ReadOptions::default()).map(|dataset| dataset.labels);
        (read.map_err(|error| error.to_string()), passes.map_err(|error| error.to_string()))
    };
    for shape in [&[3][..], &[3, 1]] {
        let single = || fixtures::int64(shape, &[0, 2, -1]);
        assert_eq!(labelled(single(), 5).0.unwrap(), Labels::Single { classes: 5, values: vec![0, 2, -1] });
        let (read, passes) = labelled(single(), 2);
        assert!(read.unwrap_err().contains("num_classes = 3, found 2: the largest of the labels is 2"), "{shape:?}");
        assert!(passes.unwrap_err().contains("'num_classes'"), "{shape:?}");
    }
    let several = || fixtures::uint8(&[3, 2], &[0, 1, 1, 1, 0, 0]);
    assert_eq!(labelled(several(), 2).0.unwrap().classes(), 2);
    for classes in [1, 3] {
        let error = labelled(several(), classes).0.unwrap_err();
        assert!(error.contains(&format!("num_classes = 2, found {classes}: labels have 2 columns")), "{error}");
    }
}

#[test]
fn labels_that_are_not_known_stay_unknown() {
    const U: u8 = Labels::UNKNOWN;
    let got = read_plain(&fixtures::interchange_unknown());
    assert_eq!(got.labels, Labels::Multi { classes: 2, values: vec![1, U, U, U, 0, 1] });
    let info = Info::of(&got);
    assert_eq!((info.unlabelled, info.unknown_labels, info.label_counts), (1, 1, vec![1, 1]));
    let findings: Vec<String> = check(&got).iter().map(ToString::to_string).collect();
    assert!(findings.contains(&"error: split 0: 1 nodes have a role but no label".to_owned()), "{findings:?}");
}

#[test]
fn features_of_another_file_replace_those_of_the_input() {
    for (name, bytes) in [
        ("other.npy", fixtures::float32(&[3, 1], &[7.0, 8.0, 9.0])),
        ("other.npz", fixtures::npz(&[("features", fixtures::float32(&[3, 1], &[7.0, 8.0, 9.0]))])),
    ] {
        let got = read_with(&fixtures::interchange_sparse(), |options, folder| {
            std::fs::write(folder.join(name), bytes).unwrap();
            options.features_path = Some(folder.join(name));
        });
        assert_eq!(got.unwrap().features, Features::Dense { columns: 1, values: vec![7.0, 8.0, 9.0].into() });
    }
    let error = read_with(&fixtures::interchange(), |options, folder| {
        std::fs::write(folder.join("short.npy"), fixtures::float32(&[3, 1], &[7.0, 8.0, 9.0])).unwrap();
        options.features_path = Some(folder.join("short.npy"));
    });
    assert!(error.unwrap_err().to_string().contains("expected 5 rows"));
}

#[test]
fn gnn_benchmark_edges_get_both_directions_and_lose_loops_and_values() {
    let got = read_plain(&fixtures::gnn_benchmark());
    assert_eq!(arcs(&got.graph), both_ways(&[(0, 1), (1, 2)]));
    assert_eq!(got.graph.data.weights, None);
    let (offsets, indices) = (vec![0, 1, 1, 3], vec![1, 0, 1]);
    assert_eq!(got.features, Features::Sparse { columns: 2, offsets, indices, values: vec![1.0, 2.0, 3.0] });
    assert_eq!(got.labels, Labels::Single { classes: 3, values: vec![2, 0, 1] });
    assert!(got.splits.is_empty());
    let loops = read_with(&fixtures::gnn_benchmark(), |options, _| options.keep_self_loops = true).unwrap();
    assert_eq!(loops.graph.edges(), 5);
}

#[test]
fn planetoid_puts_test_rows_where_the_index_says_and_zeros_where_nothing_is() {
    let mut of_python_3 = fixtures::planetoid(&pickles::PROTOCOL_2);
    for (name, content) in &mut of_python_3.files {
        if name.ends_with(".ty") {
            *content = Content::Bytes(pickles::TY_OF_PYTHON_3.to_vec());
        }
    }
    let fixtures = [fixtures::planetoid(&pickles::PROTOCOL_0), fixtures::planetoid(&pickles::PROTOCOL_2), of_python_3];
    for fixture in fixtures {
        let got = read_plain(&fixture);
        assert_eq!(got.name, "tiny");
        assert_eq!(arcs(&got.graph), both_ways(&[(0, 1), (1, 2), (0, 2), (3, 4), (4, 6)]));
        let expected = Features::Sparse {
            columns: 3,
            offsets: vec![0, 1, 2, 3, 5, 6, 6, 7],
            indices: vec![0, 1, 2, 0, 1, 0, 2],
            values: vec![1.0, 2.0, 3.0, 1.0, 1.0, 7.0, 5.0],
        };
        assert_eq!(got.features, expected);
        assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![0, 1, 0, 1, 0, -1, 1] });
        assert_eq!(got.splits[0].roles, [TRAIN, TRAIN, VAL, VAL, TEST, 0, TEST]);
    }
    let mut by_file = fixtures::planetoid(&pickles::PROTOCOL_2);
    by_file.path = "tiny/ind.tiny.allx";
    assert_eq!(read_plain(&by_file).graph.nodes(), 7);
}

#[test]
fn ogb_folders_read_packed_or_not() {
    let plain = fixtures::ogb();
    let mut packed = plain.clone();
    for (name, content) in &mut packed.files {
        let Content::Bytes(bytes) = content else { panic!("OGB fixtures are text") };
        *bytes = fixtures::gz(std::str::from_utf8(bytes).unwrap());
        name.push_str(".gz");
    }
    for fixture in [plain, packed] {
        let got = read_plain(&fixture);
        assert_eq!(arcs(&got.graph), [(3, 0), (0, 1), (1, 2)]);
        let values = vec![0.5, 1.0, -0.01, 0.0, 0.0, 0.0, 3.0, 4.0];
        assert_eq!(got.features, Features::Dense { columns: 2, values: values.into() });
        assert_eq!(got.labels, Labels::Single { classes: 3, values: vec![0, 2, -1, 1] });
        assert_eq!(got.splits[0].roles, [TRAIN, VAL, 0, TEST]);
    }
}

#[test]
fn ogb_products_gets_inverse_edges_and_several_label_columns_are_multi_label() {
    let mut fixture = fixtures::ogb();
    fixture.path = "ogbn_products";
    for (name, content) in &mut fixture.files {
        *name = name.replace("arxiv/", "ogbn_products/");
        if name.ends_with("node-label.csv") {
            *content = Content::Bytes(b"0,1\n1,1\n0,0\n1,0\n".to_vec());
        }
    }
    let got = read_plain(&fixture);
    assert_eq!(arcs(&got.graph), both_ways(&[(0, 1), (1, 2), (3, 0)]));
    assert_eq!(got.labels, Labels::Multi { classes: 2, values: vec![0, 1, 1, 1, 0, 0, 1, 0] });
}

#[test]
fn graphsaint_folders_read_with_either_kind_of_class() {
    let mut fixture = fixtures::graphsaint();
    let got = read_plain(&fixture);
    assert_eq!(arcs(&got.graph), both_ways(&[(0, 1), (1, 2)]));
    assert_eq!(got.features, Features::Dense { columns: 2, values: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0].into() });
    assert_eq!(got.labels, Labels::Multi { classes: 2, values: vec![1, 1, 0, 0, 0, 1] });
    assert_eq!(got.splits[0].roles, [TRAIN, TEST, VAL]);
    fixture.files[2].1 = Content::Bytes(br#"{"2": 4, "0": 1}"#.to_vec());
    assert_eq!(read_plain(&fixture).labels, Labels::Single { classes: 5, values: vec![1, -1, 4] });
}

#[test]
fn metis_weights_of_edges_are_kept_and_of_vertices_skipped() {
    let got = read_plain(&fixtures::metis());
    assert_eq!(got.graph.nodes(), 4);
    assert_eq!(arcs(&got.graph), both_ways(&[(0, 1), (1, 2)]));
    assert_eq!(got.graph.data.weights, Some(vec![5.0, 5.0, 1.5, 1.5]));
    let unweighted = text_file("plain.graph", "3 2\n2\n1 3\n2\n");
    assert_eq!(read_plain(&unweighted).graph.data.weights, None);
    let error = read_with(&text_file("short.graph", "3 3\n2\n1 3\n2\n"), |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("3 edges promised, so 6 neighbours expected, found 4"), "{error}");
    let error = read_with(&text_file("far.graph", "2 1\n2\n3\n"), |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("line 3: found '3', expected a neighbour in 1..=2"), "{error}");
}

#[test]
fn csv_and_parquet_with_node_tables_read_the_same() {
    for fixture in [fixtures::edge_list(), fixtures::parquet()] {
        let got = read_plain(&fixture);
        // The node table's order: a, 007, "b, c".
        assert_eq!(got.ids, Ids::Strings(["a", "007", "b, c"].map(str::to_owned).to_vec()));
        assert_eq!(arcs(&got.graph), [(2, 0), (0, 1)]);
        assert_eq!(got.graph.data.weights, Some(vec![1.0, 2.5]));
        assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![1, -1, 0] });
        assert_eq!(got.splits[0].roles, [TRAIN, 0, TEST]);
        let Features::Dense { columns, values } = got.features else { panic!("expected dense features") };
        assert_eq!(
            (columns, values.into_vec()),
            (2, vec![30.0, 0.5, 40.0, 2.0, 50.0, 1.0]),
            "age and score, and none of 'none'"
        );
    }
}

#[test]
fn edges_without_header_are_source_target_weight() {
    let got = read_plain(&text_file("list.txt", "# a comment\n10 7   0.5\n\n7\u{20}300 2\n"));
    assert_eq!(got.ids, Ids::Integers(vec![7, 10, 300]));
    assert_eq!(arcs(&got.graph), [(1, 0), (0, 2)]);
    assert_eq!(got.graph.data.weights, Some(vec![0.5, 2.0]));
    // Ids that are 0, 1, … need not be kept.
    assert_eq!(read_plain(&text_file("list.tsv", "0\t2\n1\t0\n")).ids, Ids::Row);
}

#[test]
fn no_row_is_lost_because_it_begins_like_a_comment() {
    let read = |text: &str| read_plain(&text_file("list.csv", text));
    let strings = |ids: &[&str]| Ids::Strings(ids.iter().map(|id| id.to_string()).collect());
    let got = read("src,dst\n#1,#2\n#2,#3\n4,5\n5,#1\n");
    assert_eq!((got.ids, got.graph.edges()), (strings(&["#1", "#2", "#3", "4", "5"]), 4));
    // Comments as SNAP, KONECT and others write them, a header that is one, and ids that all begin so.
    let plain = Ids::Integers(vec![3, 4, 5]);
    for text in [
        "# Directed graph\n# FromNodeId\tToNodeId\n3\t4\n4\t5\n",
        "% asym unweighted\n%%\n3 4\n4 5\n",
        "\n#drawn by hand, twice, yes\n#src,dst\n3,4\n4,5\n",
        "#dst,src\n4,3\n5,4\n",
        "\u{feff}# one\n##two\n#\nu,v\n3,4\n4,5\n",
    ] {
        let got = read(text);
        assert_eq!((&got.ids, arcs(&got.graph)), (&plain, vec![(0, 1), (1, 2)]), "{text}");
    }
    assert_eq!(read("#src,dst\n#1,#2\n#2,#1\n").ids, strings(&["#1", "#2"]));
    // What is neither a row nor above all rows is not passed over.
    let error = read_with(&text_file("list.csv", "# top\nu,v\n1,2\n# three edges\n2,3\n"), |_, _| {});
    let error = error.unwrap_err().to_string();
    assert!(error.contains("line 4: expected 2 fields, found 1; comments are read before the first row"), "{error}");
}

#[test]
fn text_ids_are_numbered_as_they_appear_and_are_never_taken_for_integers() {
    let got = read_plain(&text_file("list.csv", "from;to\n7;007\n007;x\n"));
    assert_eq!(got.ids, Ids::Strings(["7", "007", "x"].map(str::to_owned).to_vec()));
    assert_eq!(arcs(&got.graph), [(0, 1), (1, 2)]);
    let far = read_plain(&text_file("far.csv", "source,target\n-5,9000000000000000000\n"));
    assert_eq!(far.ids, Ids::Integers(vec![-5, 9_000_000_000_000_000_000]));
}

#[test]
fn columns_are_found_by_the_names_that_are_given() {
    let fixture = text_file("list.csv", "km,payer,payee\n3,1,2\n");
    let columns = Columns {
        source: Some("payer".to_owned()),
        target: Some("payee".to_owned()),
        weight: Some("km".to_owned()),
        ..Columns::default()
    };
    let got = read_with(&fixture, |options, _| options.columns = columns.clone()).unwrap();
    assert_eq!((got.ids, got.graph.data.weights), (Ids::Integers(vec![1, 2]), Some(vec![3.0])));
    let columns = Columns { weight: Some("miles".to_owned()), ..columns };
    let error = read_with(&fixture, |options, _| options.columns = columns).unwrap_err().to_string();
    assert!(error.contains("expected a column 'miles' among: km, payer, payee"), "{error}");
}

#[test]
fn a_node_table_without_ids_is_numbered_by_rows_if_its_owner_says_so() {
    let mut fixture = text_file("list.csv", "source,target\n0,2\n");
    fixture.files.push((
        "table.csv".to_owned(),
        Content::Bytes(b"x,y,train_mask,test_mask\n1,0,1,0\n2,1,0,1\n3,1,0,0\n".to_vec()),
    ));
    let read = |id: Option<&str>| {
        read_with(&fixture, |options, folder| {
            options.nodes = Some(folder.join("table.csv"));
            options.columns.id = id.map(str::to_owned);
        })
    };
    let error = read(None).unwrap_err().to_string();
    let expected = "table.csv: header: no column of node ids is recognised among: x, y, train_mask, test_mask; data.id";
    assert!(error.contains(expected) && error.contains("--id row"), "{error}");
    let got = read(Some("row")).unwrap();
    assert_eq!((got.ids, got.graph.nodes()), (Ids::Row, 3));
    assert_eq!(got.features, Features::Dense { columns: 1, values: vec![1.0, 2.0, 3.0].into() });
    assert_eq!(got.splits[0].roles, [TRAIN, TEST, 0]);
}

#[test]
fn errors_in_tables_name_line_and_column() {
    let cases = [
        ("source,target\n1,2\n3\n", "line 3: expected 2 fields, found 1"),
        ("source,target\n1,\n", "line 2: column 'target': expected a node id"),
        ("source,target,weight\n1,2,x\n", "column 'weight': expected a number, found 'x'"),
        ("source,target,weight\n1,2,\n1,3,4\n", "line 2: column 'weight': expected a weight, found none"),
        ("only\n1\n", "expected a source and a target column, found [only]"),
    ];
    for (text, expected) in cases {
        let error = read_with(&text_file("list.csv", text), |_, _| {}).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let nodes = |nodes: &str| {
        let mut fixture = text_file("edges.csv", "source,target\n1,2\n");
        fixture.files.push(("nodes.csv".to_owned(), Content::Bytes(nodes.as_bytes().to_vec())));
        read_with(&fixture, |_, _| {}).unwrap_err().to_string()
    };
    assert!(nodes("id\n1\n").contains("edge 0 names '2', which is not among the nodes"));
    assert!(nodes("id\n1\n2\n1\n").contains("rows 0 and 2 have the same id '1'"));
    assert!(nodes("id,split\n1,train\n2,perhaps\n").contains("line 3: column 'split': expected train, val, test"));
}

//! Readers of several types of nodes and edges.

use crate::fixtures::{self, Content, Fixture, int32, uint8};
use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::read::{Cells, Missing, ReadOptions, read};

fn read_with(fixture: &Fixture, change: impl Fn(&mut ReadOptions)) -> laconic_graph::error::Result<Dataset> {
    let folder = tempfile::tempdir().unwrap();
    let mut options = ReadOptions::default();
    change(&mut options);
    read(&fixture.write(folder.path()), &options)
}

/// Source, target and relation of every edge.
fn arcs(dataset: &Dataset) -> Vec<(u32, u32, u16)> {
    let graph = &dataset.graph;
    let of = |node: usize| graph.in_edges(node).map(move |e| (graph.sources[e], node as u32, graph.data.relation(e)));
    (0..graph.nodes()).flat_map(of).collect()
}

fn named(ids: &Ids) -> Vec<&str> {
    let Ids::Strings(ids) = ids else { panic!("names") };
    ids.iter().map(String::as_str).collect()
}

#[test]
fn ogb_folders_of_several_types_read() {
    let got = read_with(&fixtures::ogb_typed(), |_| {}).unwrap();
    assert_eq!(arcs(&got), [(0, 2, 0), (2, 3, 1), (4, 3, 1), (1, 4, 0)]);
    assert_eq!(got.about.relations, ["author__writes__paper", "paper__cites__paper"]);
    assert_eq!(got.about.features, ["author", "paper.0", "paper.1", "paper"]);
    let (offsets, indices) = (vec![0, 1, 2, 5, 6, 9], vec![0, 0, 1, 2, 3, 3, 1, 2, 3]);
    let values = vec![1.0, 1.0, 0.5, 1.0, 1.0, 1.0, 3.0, 4.0, 1.0];
    assert_eq!(got.features, Features::Sparse { columns: 4, offsets, indices, values });
    assert_eq!(got.labels, Labels::Single { classes: 3, values: vec![-1, -1, 0, 2, 1] });
    assert_eq!(got.splits[0].roles, [0, 0, Split::TRAIN, Split::VAL, Split::TEST]);
    assert_eq!(named(&got.ids), ["author/0", "author/1", "paper/0", "paper/1", "paper/2"]);
    let both = read_with(&fixtures::ogb_typed(), |options| options.symmetrise = true).unwrap();
    assert_eq!(both.about.relations[2..], ["rev_author__writes__paper", "rev_paper__cites__paper"]);
    assert_eq!(arcs(&both)[..2], [(2, 0, 2), (4, 1, 2)]);
}

#[test]
fn folders_with_a_table_a_type_read() {
    let got = read_with(&fixtures::typed_tables(), |_| {}).unwrap();
    // Items come before persons: types stand in the order of their names.
    assert_eq!(named(&got.ids), ["item/7", "item/9", "person/ann", "person/bob"]);
    assert_eq!(arcs(&got), [(3, 0, 0), (2, 1, 0), (2, 3, 1)]);
    assert_eq!(got.graph.data.weights, Some(vec![1.0, 2.0, 0.5]));
    assert_eq!(got.about.features, ["item.price", "item.size", "item", "person.age", "person"]);
    assert_eq!(got.about.classes, ["banned", "ok"]);
    assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![-1, -1, 1, 0] });
    assert_eq!(got.splits[0].roles, [0, 0, Split::TRAIN, Split::VAL]);
}

/// A cell without a value is 0 in its column and marked beside it, for nodes of its type alone.
#[test]
fn missing_cells_of_a_table_a_type_are_zero_and_marked_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("nodes/item.csv", "id,price\n7,1.5\n9,\n"),
        ("nodes/person.csv", "id,age\nann,30\nbob,40\n"),
        ("edges/person__buys__item.csv", "source,target\nann,7\nbob,9\n"),
    ] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let with = |missing: Missing| {
        let cells = Cells { missing, ..Cells::default() };
        read(folder.path(), &ReadOptions { cells, ..ReadOptions::default() })
    };
    let asked = with(Missing::Error).unwrap_err().to_string();
    assert!(asked.contains("item.csv") && asked.contains("1 of 2 cells have no value"), "{asked}");
    let mean = with(Missing::Mean).unwrap_err().to_string();
    assert!(mean.contains("--missing zero fills and marks"), "{mean}");
    let got = with(Missing::Zero).unwrap();
    assert_eq!(got.about.features, ["item.price", "item.price missing", "item", "person.age", "person"]);
    let (offsets, indices) = (vec![0, 2, 4, 6, 8], vec![0, 2, 1, 2, 3, 4, 3, 4]);
    let values = vec![1.5, 1.0, 1.0, 1.0, 30.0, 1.0, 40.0, 1.0];
    assert_eq!(got.features, Features::Sparse { columns: 5, offsets, indices, values });
}

#[test]
fn errors_of_typed_data_name_file_and_place() {
    let changed = |fixture: Fixture, name: &str, text: &str| {
        let mut fixture = fixture;
        let file = fixture.files.iter_mut().find(|(path, _)| path.ends_with(name)).unwrap();
        file.1 = Content::Bytes(text.as_bytes().to_vec());
        read_with(&fixture, |_| {}).unwrap_err().to_string()
    };
    let ogb = fixtures::ogb_typed;
    let tables = fixtures::typed_tables;
    for (error, expected) in [
        (changed(ogb(), "num-node-dict.csv", "author,paper\n2\n"), "expected 2 counts, one a type, found 1"),
        (changed(ogb(), "num-node-dict.csv", "paper,paper\n2,3\n"), "the type \"paper\" stands there twice"),
        (changed(ogb(), "num-node-dict.csv", "../x,paper\n2,3\n"), "expected the names of the types"),
        (changed(ogb(), "triplet-type-list.csv", "author,writes\n"), "expected source type,relation,target type"),
        (changed(ogb(), "triplet-type-list.csv", "book,writes,paper\n"), "\"book\" is no type of nodes"),
        (changed(ogb(), "author___writes___paper/edge.csv", "0,0\n2,1\n"), "line 2: expected a node of author in 0..2"),
        (changed(tables(), "item.csv", "id,label\n7,a\n9,b\n"), "expected labels of one type of nodes, found some of"),
        (changed(tables(), "person__buys__item.csv", "source,target,weight\neve,7,1\n"), "names 'eve'"),
        (changed(tables(), "person__knows__person.csv", "source,target\nann,bob\n"), "or of none"),
    ] {
        assert!(error.contains(expected), "{error}: {expected}");
    }
    let mut misnamed = tables();
    misnamed.files[2].0 = "shop/edges/buys.csv".to_owned();
    let error = read_with(&misnamed, |_| {}).unwrap_err().to_string();
    assert!(error.contains("expected SOURCE__RELATION__TARGET"), "{error}");
}

#[test]
fn types_of_an_npz_are_told_apart_where_asked_for() {
    let mut fixture = fixtures::interchange();
    let Content::Npz(members) = &mut fixture.files[0].1 else { panic!("an archive") };
    let plain = read_with(&fixtures::interchange(), |_| {}).unwrap();
    let nodes = plain.graph.nodes();
    let edge_index = members.iter().position(|member| member.0 == "edge_index").unwrap();
    members[edge_index].1 = int32(&[2, 2], &[0, 0, 1, 1]);
    members.retain(|member| !["edge_weight", "directed"].contains(&member.0));
    members.push(("edge_type", uint8(&[2], &[1, 0])));
    members.push(("node_type", uint8(&[nodes], &(0..nodes).map(|node| (node % 2) as u8).collect::<Vec<_>>())));
    let untyped = read_with(&fixture, |_| {}).unwrap();
    assert_eq!(arcs(&untyped), [(0, 1, 0)]);
    assert_eq!(untyped.features, plain.features);
    let typed = read_with(&fixture, |options| options.typed = true).unwrap();
    assert_eq!(arcs(&typed), [(0, 1, 0), (0, 1, 1)]);
    assert_eq!(typed.features.columns(), 2 * (plain.features.columns() + 1));
    assert_eq!(typed.about.node_types.len(), 2);
    let Content::Npz(members) = &mut fixture.files[0].1 else { panic!("an archive") };
    members.retain(|member| member.0 != "edge_type");
    members.push(("edge_type", uint8(&[3], &[1, 0, 0])));
    let error = read_with(&fixture, |options| options.typed = true).unwrap_err().to_string();
    assert!(error.contains("edge_type") && error.contains("expected 2 values, one an edge, found 3"), "{error}");
}

/// Two tables of nodes of which each has two errors, and then two of edges.
#[test]
fn all_that_is_wrong_with_tables_of_types_is_said_at_once() {
    let read = |person: &str, item: &str, buys: &str, knows: &str| {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("nodes/person.csv", person),
            ("nodes/item.csv", item),
            ("edges/person__buys__item.csv", buys),
            ("edges/person__knows__person.csv", knows),
        ];
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let path = folder.path().to_owned();
        laconic_graph::read::read(&path, &laconic_graph::read::ReadOptions::default()).unwrap_err().to_string()
    };
    let all_said = |error: &str, expected: &[&[&str]]| {
        let lines: Vec<&str> = error.lines().collect();
        for words in expected {
            let is_said = lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
            assert!(is_said, "{words:?} in no line of:\n{error}");
        }
        assert_eq!(lines.len(), expected.len(), "{error}");
    };
    let buys = "source,target\nann,7\n";
    let error = read("id,age\nann,\nbob,2\nann,3\n", "id,price\n7,1\n7,2\n", buys, "source,target\nann,bob\n");
    let expected: [&[&str]; 3] = [
        &["person.csv", "'age'", "1 of 3 cells"],
        &["person.csv", "rows 0 and 2 have the same id 'ann'"],
        &["item.csv", "rows 0 and 1 have the same id '7'"],
    ];
    all_said(&error, &expected);
    let (knows, people, items) = ("source,target\nann,dan\n", "id,age\nann,1\nbob,2\n", "id,price\n7,1\n");
    let error = read(people, items, "source,target,weight\ncem,7,1\nann,8,\n", knows);
    let expected: [&[&str]; 4] = [
        &["person__buys__item.csv", "'cem'"],
        &["person__buys__item.csv", "'8'"],
        &["person__buys__item.csv", "'weight'", "1 cells of 2"],
        &["person__knows__person.csv", "'dan'"],
    ];
    all_said(&error, &expected);
}

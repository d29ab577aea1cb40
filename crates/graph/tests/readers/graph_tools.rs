//! Lists and folders of other graph tools: KONECT, Geom-GCN, DGL, triples, heterophilous graphs.

use crate::fixtures::{Content, Fixture};
use crate::graph_formats;
use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::error::Result;
use laconic_graph::read::{ReadOptions, read};

const TRAIN: u8 = Split::TRAIN;
const VAL: u8 = Split::VAL;
const TEST: u8 = Split::TEST;

fn read_fixture(fixture: &Fixture) -> Result<Dataset> {
    let folder = tempfile::tempdir().unwrap();
    read(&fixture.write(folder.path()), &ReadOptions::default())
}

/// The fixture with another content of one of its files.
fn with(mut fixture: Fixture, file: usize, text: &str) -> Fixture {
    fixture.files[file].1 = Content::Bytes(text.as_bytes().to_vec());
    fixture
}

/// Source and target of every edge, in the order of sources.
fn ends(dataset: &Dataset) -> Vec<(u32, u32)> {
    let of = |to: usize| dataset.graph.in_neighbours(to).iter().map(move |&from| (from, to as u32));
    let mut ends: Vec<_> = (0..dataset.graph.nodes()).flat_map(of).collect();
    ends.sort();
    ends
}

fn texts(ids: &[&str]) -> Ids {
    Ids::Strings(ids.iter().map(|id| (*id).to_owned()).collect())
}

#[test]
fn networks_of_konect_lead_as_their_first_line_says() {
    let both = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
    let got = read_fixture(&graph_formats::konect()).unwrap();
    assert_eq!((ends(&got), got.ids), (both.to_vec(), Ids::Integers(vec![1, 2, 3])));
    let sum: f32 = got.graph.data.weights.unwrap().iter().sum();
    assert_eq!(sum, 2.0 * (0.5 + 2.0 - 1.0));
    let other = |text: &str| read_fixture(&with(graph_formats::konect(), 0, text));
    let one_way = other("% asym unweighted\n1 2 1 1082040961\n7 1 1 1082040962\n").unwrap();
    assert_eq!((ends(&one_way), one_way.graph.data.weights), (vec![(0, 1), (2, 0)], None));
    let sides = other("%  bip\tpositive\n1\t1\n2 1\n").unwrap();
    assert_eq!((ends(&sides), sides.ids), (vec![(0, 1), (2, 1)], texts(&["left/1", "right/1", "left/2"])));
    let error = other("% sym unweighted\n1 2\n3 x\n").unwrap_err().to_string();
    assert!(error.contains("line 3") && error.contains("3 x"), "{error}");
    let error = other("% sym weighted\n1 2 0.5\n3 1\n").unwrap_err().to_string();
    assert!(error.contains("a weight of each of 2 edges"), "{error}");
}

#[test]
fn folders_of_geom_gcn_have_features_in_either_form_and_splits_in_the_order_of_their_numbers() {
    let got = read_fixture(&graph_formats::geom_gcn()).unwrap();
    assert_eq!((ends(&got), got.ids), (vec![(0, 2), (2, 1)], Ids::Row));
    assert_eq!(got.features, Features::Dense { columns: 2, values: vec![1.0, 1.0, 1.0, 0.0, 0.0, 1.0].into() });
    assert_eq!(got.labels, Labels::Single { classes: 3, values: vec![0, 2, 1] });
    let roles: Vec<_> = got.splits.into_iter().map(|split| split.roles).collect();
    assert_eq!(roles, [[TRAIN, VAL, TEST], [TEST, VAL, TRAIN]]);
    let places = "node_id\tfeature\tlabel\n0\t4,1\t0\n1\t0\t1\n2\t2,3\t1\n";
    let film = read_fixture(&with(graph_formats::geom_gcn(), 0, places)).unwrap();
    let (offsets, indices) = (vec![0, 2, 3, 5], vec![1, 4, 0, 2, 3]);
    assert_eq!(film.features, Features::Sparse { columns: 5, offsets, indices, values: vec![1.0; 5] });
    let twice = "node_id\tfeature\tlabel\n0\t1\t0\n0\t1\t1\n";
    let error = read_fixture(&with(graph_formats::geom_gcn(), 0, twice)).unwrap_err().to_string();
    assert!(error.contains("ids from 0 to 1, each once"), "{error}");
}

#[test]
fn folders_of_dgl_are_an_edge_list_or_a_table_a_type() {
    let got = read_fixture(&graph_formats::dgl_csv()).unwrap();
    assert_eq!((ends(&got), got.ids), (vec![(0, 2), (1, 0)], Ids::Integers(vec![2, 0, 1])));
    assert_eq!(got.graph.data.weights, Some(vec![0.5, 2.0]).map(|weights| vec![weights[0], weights[1]]));
    assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![1, 0, 1] });
    assert_eq!(got.splits[0].roles, [TRAIN, VAL, TEST]);
    let got = read_fixture(&graph_formats::dgl_csv_of_types()).unwrap();
    assert_eq!(got.ids, texts(&["user/0", "user/1", "game/5", "game/7"]));
    assert_eq!(ends(&got), [(0, 1), (0, 3), (1, 2)]);
    assert_eq!(got.about.relations, ["user__follows__user", "user__plays__game"]);
    let several = "edge_data:\n- file_name: links_0.csv\ngraph_data:\n  file_name: graphs.csv\n";
    for (meta, words) in [
        (several, "one graph"),
        ("edge_data:\n- file_name: ../links_0.csv\n", "in the folder"),
        ("edge_data:\n- name: links_0.csv\n", "file_name"),
    ] {
        let error = read_fixture(&with(graph_formats::dgl_csv(), 0, meta)).unwrap_err().to_string();
        assert!(error.contains(words), "{meta}: {error}");
    }
}

#[test]
fn triples_are_edges_of_relations_and_those_of_other_files_are_held_out() {
    let got = read_fixture(&graph_formats::triples()).unwrap();
    assert_eq!(
        (got.ids, got.about.relations),
        (texts(&["ann", "bob", "cem"]), vec!["knows".to_owned(), "likes".to_owned()])
    );
    // By target, then by source and relation: (bob knows, bob likes, cem knows) ann, (ann knows, ann likes) bob.
    let relations = got.graph.data.relations.unwrap();
    assert_eq!((got.graph.sources, relations.count, relations.of), (vec![1, 1, 2, 0, 0], 2, vec![0, 1, 0, 0, 1]));
    assert_eq!(got.graph.data.held, Some(vec![1, 0, 2, 0, 0]));
    let error = read_fixture(&with(graph_formats::triples(), 1, "a\tb\n")).unwrap_err().to_string();
    assert!(error.contains("valid.txt") && error.contains("line 1") && error.contains("2 fields"), "{error}");
}

#[test]
fn heterophilous_graphs_lead_both_ways_and_have_a_split_a_row_of_masks() {
    let got = read_fixture(&graph_formats::heterophilous()).unwrap();
    assert_eq!(ends(&got), [(0, 1), (1, 0), (1, 2), (2, 1)]);
    assert_eq!(got.features, Features::Dense { columns: 1, values: vec![0.5, 1.0, 2.0].into() });
    assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![1, 0, 1] });
    let roles: Vec<_> = got.splits.into_iter().map(|split| split.roles).collect();
    assert_eq!(roles, [[TRAIN, VAL, TEST], [TEST, TRAIN, VAL]]);
}

#[test]
fn attributes_of_described_graphs_are_columns_and_one_way_edges_stay_so() {
    let got = read_fixture(&graph_formats::gml()).unwrap();
    assert_eq!((ends(&got), got.ids), (vec![(1, 0)], texts(&["a & b", "c"])));
    assert_eq!(got.graph.data.weights, Some(vec![0.5]));
    assert_eq!(got.features, Features::Dense { columns: 1, values: vec![3.5, 4.0].into() });
    let got = read_fixture(&graph_formats::graphml()).unwrap();
    assert_eq!((ends(&got), got.ids), (vec![(0, 1), (1, 0)], texts(&["a&b", "c"])));
    assert_eq!(got.graph.data.weights, Some(vec![0.5, 0.5]));
    assert_eq!(got.features, Features::Dense { columns: 1, values: vec![3.0, 9.0].into() });
    let got = read_fixture(&graph_formats::gexf()).unwrap();
    assert_eq!((ends(&got), got.ids), (vec![(0, 1)], Ids::Integers(vec![5, 2])));
    assert_eq!(
        (got.labels, got.graph.data.weights),
        (Labels::Single { classes: 2, values: vec![0, 1] }, Some(vec![2.0]))
    );
}

#[test]
fn what_is_no_one_graph_is_refused_with_its_line() {
    let (gml, xml) = (graph_formats::gml(), graph_formats::graphml());
    for (fixture, text, words) in [
        (&gml, "graph [\n node [ id 1 ]\n edge [ source 1 ]\n]", ["line 3", "source and target"]),
        (&gml, "graph [ node [ id 1 ] ]\ngraph [ ]", ["line 2", "one graph"]),
        (&gml, "graph [ node [ label \"a\" ]", ["line 1", "does not end"]),
        (&xml, "<graphml><graph><node/></graph></graphml>", ["line 1", "attribute id"]),
        (&xml, "<graphml><graph>\n<hyperedge/></graph></graphml>", ["line 2", "more than two"]),
        (&xml, "<graphml><graph></graphml>", ["line 1", "graph"]),
        (&xml, "<graphml><graph/></graphml>", ["edges", "found none"]),
    ] {
        let error = read_fixture(&with(fixture.clone(), 0, text)).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
    }
}

#[test]
fn the_reddit_folder_of_dgl_has_no_weights_and_roles_by_number() {
    let got = read_fixture(&graph_formats::dgl_reddit()).unwrap();
    assert_eq!((ends(&got), got.graph.data.weights), (vec![(0, 1), (1, 0)], None));
    assert_eq!(got.features, Features::Dense { columns: 1, values: vec![0.5, 1.0, 2.0].into() });
    assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![1, 0, 1] });
    assert_eq!(got.splits[0].roles, [TEST, TRAIN, VAL]);
}

//! Edges of several relations that an npz holds out, and targets of their own: each keeps its relation.

use laconic_graph::dataset::Dataset;
use laconic_graph::error::Result;
use laconic_graph::info::check;
use laconic_graph::read::{ReadOptions, read};

use crate::fixtures::{int64, npz, uint8};

type Member = (&'static str, Vec<u8>);

/// Sources and targets by columns.
fn ends(name: &'static str, edges: &[(i64, i64)]) -> Member {
    let values: Vec<i64> = edges.iter().map(|edge| edge.0).chain(edges.iter().map(|edge| edge.1)).collect();
    (name, int64(&[2, edges.len()], &values))
}

fn numbers(name: &'static str, values: &[u8]) -> Member {
    (name, uint8(&[values.len()], values))
}

fn read_typed(members: &[Member]) -> Result<Dataset> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("held.npz");
    std::fs::write(&path, npz(members)).unwrap();
    read(&path, &ReadOptions { typed: true, ..ReadOptions::default() })
}

/// Each edge as source, target, relation and role.
fn edges(dataset: &Dataset) -> Vec<(u32, usize, u16, u8)> {
    let graph = &dataset.graph;
    let held = graph.data.held.as_ref().unwrap();
    let edge = |node: usize| {
        let one = move |at: usize| (graph.sources[at], node, graph.data.relation(at), held[at]);
        graph.in_edges(node).map(one)
    };
    (0..graph.nodes()).flat_map(edge).collect()
}

/// Two relations from 0 to 1, and one from 1 to 2.
fn parallel() -> Vec<Member> {
    vec![ends("edge_index", &[(0, 1), (1, 2), (0, 1)]), numbers("edge_type", &[1, 0, 0])]
}

#[test]
fn an_edge_is_held_out_with_its_relation_and_without_one_with_all() {
    let held = [ends("val_edge_index", &[(0, 1)]), ends("test_edge_index", &[(2, 0)])];
    let types = [numbers("val_edge_type", &[1]), numbers("test_edge_type", &[2])];
    let dataset = read_typed(&[parallel(), held.to_vec(), types.to_vec()].concat()).unwrap();
    // The largest relation is one of an edge that is held out alone.
    assert_eq!(dataset.graph.data.kinds(), 3);
    assert_eq!(edges(&dataset), [(2, 0, 2, 2), (0, 1, 0, 0), (0, 1, 1, 1), (1, 2, 0, 0)]);
    let dataset = read_typed(&[parallel(), held[..1].to_vec()].concat()).unwrap();
    assert_eq!(edges(&dataset), [(0, 1, 0, 1), (0, 1, 1, 1), (1, 2, 0, 0)]);
}

#[test]
fn targets_of_an_edges_own_are_of_its_relation_in_either_direction() {
    let graph = [
        ends("edge_index", &[(0, 1), (1, 2), (1, 2)]),
        numbers("edge_type", &[0, 0, 1]),
        ("directed", uint8(&[1], &[0])),
        ends("test_edge_index", &[(1, 0), (1, 2), (2, 1), (3, 0)]),
        numbers("test_edge_type", &[0, 1, 1, 1]),
        ("test_neg_targets", int64(&[4, 1], &[2, 0, 3, 2])),
    ];
    let dataset = read_typed(&graph).unwrap();
    assert_eq!(dataset.graph.data.kinds(), 4);
    // Listed the other way round than in edge_index they are of the relation of other directions.
    let own = &dataset.negatives.as_ref().unwrap()[1];
    assert_eq!(own.relations, [2, 1, 3, 1]);
    let pairs = [(1, 2, Some(2)), (1, 0, Some(1)), (2, 3, Some(3)), (3, 2, Some(1))];
    assert_eq!(own.pairs().collect::<Vec<_>>(), pairs);
    // Two of them are edges of other relations, and none of its own.
    let findings: Vec<String> = check(&dataset).iter().map(ToString::to_string).collect();
    assert!(findings.iter().all(|found| !found.contains("given as no edges")), "{findings:?}");
    let expected = [(1, 0, 2, 2), (3, 0, 1, 2), (0, 1, 0, 2), (2, 1, 2, 0), (2, 1, 3, 2), (1, 2, 0, 0), (1, 2, 1, 2)];
    assert_eq!(edges(&dataset), [&expected[..], &[(0, 3, 3, 2)]].concat());
    // Where nothing else says it, the only edge between two nodes does.
    let listed = ends("test_edge_index", &[(1, 0)]);
    let own = ("test_neg_targets", int64(&[1, 1], &[2]));
    let untold = read_typed(&[graph[..3].to_vec(), vec![listed, own]].concat()).unwrap();
    assert_eq!(untold.negatives.unwrap()[1].relations, [2]);
    // Of one kind of edge there is nothing to say.
    let mut single = graph.to_vec();
    single.retain(|(name, _)| !name.ends_with("_type") && *name != "directed");
    assert!(read_typed(&single).unwrap().negatives.unwrap()[1].relations.is_empty());
}

#[test]
fn relations_of_edges_that_are_held_out_are_refused_by_name() {
    let val = || ends("val_edge_index", &[(0, 1)]);
    let own = || ("val_neg_targets", int64(&[1, 1], &[2]));
    for (members, words) in [
        (vec![val(), numbers("val_edge_type", &[0, 1])], ["val_edge_type", "expected 1 values, one an edge, found 2"]),
        (vec![val(), own()], ["val_neg_targets", "from 0 to 1 is of; val_edge_type does"]),
        (vec![ends("test_edge_index", &[(2, 0)])], ["from 2 to 0 is not in edge_index", "no test_edge_type"]),
        (
            vec![val(), numbers("val_edge_type", &[1]), ends("test_edge_index", &[(0, 1)])],
            ["the edge from 0 to 1", "held out twice"],
        ),
        (
            vec![val(), numbers("val_edge_type", &[7]), ("num_relations", uint8(&[1], &[2]))],
            ["num_relations", "expected 8 to"],
        ),
    ] {
        let error = read_typed(&[parallel(), members].concat()).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    }
    let untyped = [ends("edge_index", &[(0, 1)]), val(), numbers("val_edge_type", &[0])];
    let error = read_typed(&untyped).unwrap_err().to_string();
    assert!(error.contains("val_edge_type") && error.contains("expected edge_type beside it"), "{error}");
    // Both relations of one pair, each in its own split, are two edges.
    let apart =
        [val(), numbers("val_edge_type", &[1]), ends("test_edge_index", &[(0, 1)]), numbers("test_edge_type", &[0])];
    assert_eq!(
        edges(&read_typed(&[parallel(), apart.to_vec()].concat()).unwrap()),
        [(0, 1, 0, 2), (0, 1, 1, 1), (1, 2, 0, 0)]
    );
}

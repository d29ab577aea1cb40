//! Cutting loses nothing and invents nothing.

mod sample;

use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::part::{Part, cut};
use laconic_graph::synth::{SbmSpec, sbm};

/// Every part, edge and row of `parts` is that of `dataset`, and each node is in exactly one part.
fn assert_faithful(dataset: &Dataset, split: Option<usize>, parts: &[Part]) {
    let mut owners = vec![0; dataset.graph.nodes()];
    for part in parts {
        part.check().unwrap();
        for (row, &id) in part.nodes.iter().enumerate() {
            let node = id as usize;
            owners[node] += 1;
            let sources: Vec<u64> = dataset.graph.in_neighbours(node).iter().map(|&s| u64::from(s)).collect();
            assert_eq!(part.edges.in_neighbours(row), sources);
            let weights = dataset.graph.data.weights.as_ref().map(|weights| &weights[dataset.graph.in_edges(node)]);
            assert_eq!(part.edges.data.weights.as_ref().map(|weights| &weights[part.edges.in_edges(row)]), weights);
            assert_eq!(feature_row(&part.features, row), feature_row(&dataset.features, node));
            assert_eq!(label_row(&part.labels, row), label_row(&dataset.labels, node));
            match split {
                Some(split) => assert_eq!(part.roles[row], dataset.splits[split].roles[node]),
                None => assert!(part.roles.is_empty()),
            }
            match (&part.ids, &dataset.ids) {
                (Ids::Row, Ids::Row) => {}
                (Ids::Integers(of_part), Ids::Integers(of_all)) => assert_eq!(of_part[row], of_all[node]),
                (Ids::Strings(of_part), Ids::Strings(of_all)) => assert_eq!(of_part[row], of_all[node]),
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(owners.iter().all(|&count| count == 1));
    assert_eq!(parts.iter().map(|part| part.edges.edges()).sum::<usize>(), dataset.graph.edges());
}

fn feature_row(features: &Features, row: usize) -> Vec<(u32, f32)> {
    match features {
        Features::None => Vec::new(),
        Features::Dense { columns, values } => (0..).zip(values[row * columns..][..*columns].iter().copied()).collect(),
        Features::Sparse { offsets, indices, values, .. } => {
            let at = offsets[row] as usize..offsets[row + 1] as usize;
            indices[at.clone()].iter().copied().zip(values[at].iter().copied()).collect()
        }
    }
}

fn label_row(labels: &Labels, row: usize) -> Vec<i32> {
    match labels {
        Labels::None => Vec::new(),
        Labels::Single { values, .. } => vec![values[row]],
        Labels::Multi { classes, values } => {
            values[row * classes..][..*classes].iter().map(|&v| i32::from(v)).collect()
        }
    }
}

#[test]
fn rows_follow_their_nodes_and_edges_their_targets() {
    for (nodes, parts) in [(200, 1), (200, 3), (57, 8), (3, 5), (0, 2)] {
        let dataset = sample::rich(nodes, 1);
        let cut_up = cut(&dataset, Some(1), &sample::assignment(nodes, parts, 2), parts).unwrap();
        assert_eq!(cut_up.len(), parts as usize);
        assert_faithful(&dataset, Some(1), &cut_up);
    }
}

#[test]
fn dense_features_integer_ids_and_missing_pieces_follow_too() {
    let mut dataset = sbm(&SbmSpec { nodes: 300, features: 7, ..SbmSpec::default() }).unwrap();
    dataset.ids = Ids::Integers((0..300).map(|node| -node * node).collect());
    let assignment = sample::assignment(300, 4, 3);
    assert_faithful(&dataset, Some(0), &cut(&dataset, Some(0), &assignment, 4).unwrap());
    (dataset.features, dataset.labels, dataset.ids) = (Features::None, Labels::None, Ids::Row);
    assert_faithful(&dataset, None, &cut(&dataset, None, &assignment, 4).unwrap());
}

#[test]
fn every_part_knows_the_counts_of_the_whole() {
    let dataset = sample::rich(100, 4);
    for part in cut(&dataset, Some(0), &sample::assignment(100, 3, 4), 3).unwrap() {
        let global = &part.global;
        assert_eq!((global.nodes, global.edges), (100, dataset.graph.edges() as u64));
        assert_eq!(global.train as usize, dataset.splits[0].count(Split::TRAIN));
        assert_eq!(global.val as usize, dataset.splits[0].count(Split::VAL));
        assert_eq!(global.test as usize, dataset.splits[0].count(Split::TEST));
        assert_eq!((global.columns, global.classes, global.multi_label), (20, 3, true));
    }
}

#[test]
fn assignments_that_do_not_fit_are_refused() {
    let dataset = sample::rich(10, 5);
    assert!(cut(&dataset, None, &[0; 9], 2).is_err());
    assert!(cut(&dataset, None, &[2; 10], 2).unwrap_err().to_string().contains("node 0"));
    assert!(cut(&dataset, Some(2), &[0; 10], 2).is_err());
}

//! What is written as tables is read as the same dataset.

use crate::fixtures;
use crate::graph_formats;
use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::digest::digest;
use laconic_graph::read::{ReadOptions, read};
use laconic_graph::write_tables::{TableFormat, write_tables};

const FORMATS: [TableFormat; 2] = [TableFormat::Csv, TableFormat::Parquet];

/// Five nodes, the last of which has no edge, with weights, features, labels and a split.
fn dataset(ids: Ids, labels: Labels, classes: &[&str]) -> Dataset {
    let weights = Some(vec![0.1, 1e-7, 3.0]);
    let graph = build_graph(5, vec![0, 2, 3], vec![1, 0, 2], weights, BuildOptions::default()).unwrap().0;
    let features = Features::Dense {
        columns: 2,
        values: vec![0.1, 1.0, -2.5e-8, 2.0, 3.0, 1.0, 16777217.0, 0.0, 0.5, 7.0].into(),
    };
    let roles = vec![Split::TRAIN, Split::VAL, Split::TEST, 0, Split::TRAIN | Split::VAL];
    let mut made = Dataset::new("five", graph, features, labels, vec![Split { roles }]).unwrap();
    made.about.classes = classes.iter().map(|class| (*class).to_owned()).collect();
    made.about.features = vec!["a, \"b\"".to_owned(), "label".to_owned()];
    made.with_ids(ids).unwrap()
}

#[test]
fn tables_that_are_written_are_read_as_the_same_dataset() {
    let texts = ["zoë", "7", "a,b", "\"q\"", "007"].map(str::to_owned).to_vec();
    let single = |classes| Labels::Single { classes, values: vec![1, 0, -1, 0, 1] };
    let several = Labels::Multi { classes: 2, values: vec![1, 0, 0, 1, Labels::UNKNOWN, Labels::UNKNOWN, 1, 1, 0, 0] };
    for made in [
        dataset(Ids::Row, single(2), &[]),
        dataset(Ids::Integers(vec![9, -4, 1 << 60, 0, 5]), single(2), &["no", "yes"]),
        dataset(Ids::Strings(texts), several, &["x", "y"]),
        dataset(Ids::Row, Labels::None, &[]),
    ] {
        for format in FORMATS {
            let folder = tempfile::tempdir().unwrap();
            let [edges, nodes] =
                ["edges", "nodes"].map(|name| folder.path().join(format!("{name}.{}", format.ending())));
            write_tables([&edges, &nodes], &made, format).unwrap();
            for path in [folder.path(), &edges] {
                let got = read(path, &ReadOptions::default()).unwrap();
                assert_eq!((&got.ids, &got.labels), (&made.ids, &made.labels));
                assert_eq!((&got.graph, &got.splits), (&made.graph, &made.splits));
                assert_eq!(
                    (digest(&got), got.about.classes),
                    (digest(&made), made.about.classes.clone()),
                    "{format:?}"
                );
            }
        }
    }
}

#[test]
fn what_tables_cannot_hold_is_refused_and_nothing_written() {
    let read_of = |fixture: fixtures::Fixture| {
        let folder = tempfile::tempdir().unwrap();
        read(&fixture.write(folder.path()), &ReadOptions { typed: true, ..ReadOptions::default() }).unwrap()
    };
    let numbers = dataset(Ids::Strings(["1", "2", "3", "4", "5"].map(str::to_owned).to_vec()), Labels::None, &[]);
    for (made, word) in [
        (read_of(fixtures::typed_tables()), "types"),
        (read_of(fixtures::interchange_held()), "held out"),
        (read_of(graph_formats::heterophilous()), "one split, not 2"),
        (numbers, "look like numbers"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let [edges, nodes] = ["edges.csv", "nodes.csv"].map(|name| folder.path().join(name));
        let error = write_tables([&edges, &nodes], &made, TableFormat::Csv).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

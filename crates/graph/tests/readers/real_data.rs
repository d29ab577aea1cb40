//! Real graphs from `../shared/data` beside the workspace, where they are: counts as their README states them.

use laconic_graph::dataset::{Dataset, Features, Labels, Split};
use laconic_graph::info::{Info, Severity, check};
use laconic_graph::read::{ReadOptions, read};
use laconic_graph::write::write_interchange;

use crate::needs::shared;

fn load(name: &str, change: impl FnOnce(&mut ReadOptions)) -> Option<(Dataset, Info)> {
    let path = shared(&format!("data/{name}.npz"))?;
    let mut options = ReadOptions::default();
    change(&mut options);
    let dataset = read(&path, &options).unwrap();
    assert!(!check(&dataset).iter().any(|f| f.severity == Severity::Error), "{:?}", check(&dataset));
    let info = Info::of(&dataset);
    assert_eq!(dataset.name, name);
    Some((dataset, info))
}

fn roles(split: &Split) -> [usize; 3] {
    [split.count(Split::TRAIN), split.count(Split::VAL), split.count(Split::TEST)]
}

#[test]
fn cora_has_the_counts_of_the_literature() {
    let Some((cora, info)) = load("cora", |_| {}) else { return };
    assert_eq!((info.nodes, info.edges, info.directed, info.isolated), (2708, 10_556, false, 0));
    assert_eq!((info.in_degree.median, info.in_degree.max), (3.0, 168));
    assert_eq!((cora.features.columns(), info.classes, info.unlabelled), (1433, 7, 0));
    assert!(matches!(cora.features, Features::Sparse { .. }));
    assert!((info.edge_homophily.unwrap() - 0.81).abs() < 0.005);
    assert_eq!(roles(&cora.splits[0]), [140, 500, 1000]);
}

#[test]
fn citeseer_keeps_its_isolated_nodes_and_missing_labels() {
    let Some((citeseer, info)) = load("citeseer", |_| {}) else { return };
    assert_eq!((info.nodes, info.edges, info.isolated), (3327, 9104, 48));
    assert_eq!((citeseer.features.columns(), info.classes, info.unlabelled), (3703, 6, 15));
    assert_eq!(roles(&citeseer.splits[0]), [120, 500, 1000]);
}

#[test]
fn ogbn_arxiv_is_directed_until_symmetrised_and_takes_other_features() {
    let Some((arxiv, info)) = load("ogbn_arxiv", |_| {}) else { return };
    assert_eq!((info.nodes, info.edges, info.directed, info.classes), (169_343, 1_166_243, true, 40));
    assert_eq!(roles(&arxiv.splits[0]), [90_941, 29_799, 48_603]);
    let Some(features) = shared("data/ogbn_arxiv.prone128.npz") else { return };
    let both = load("ogbn_arxiv", |options| {
        options.symmetrise = true;
        options.features_path = Some(features);
    });
    let (both, info) = both.unwrap();
    assert_eq!((info.edges, info.directed, info.in_degree.max), (2_315_598, false, 13_161));
    assert_eq!(both.features.columns(), 128);
}

#[test]
fn deezer_is_multi_label_without_features() {
    let Some((deezer, info)) = load("deezer_hu_genres", |_| {}) else { return };
    assert_eq!((info.nodes, info.edges, info.classes), (47_538, 445_774, 86));
    assert_eq!(deezer.features, Features::None);
    let Labels::Multi { values, .. } = &deezer.labels else { panic!("expected multi-label") };
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / info.nodes as f64;
    assert!((5.0..7.0).contains(&mean), "{mean} positive labels a node");
}

#[test]
fn tolokers_has_ten_splits() {
    let Some((tolokers, info)) = load("tolokers", |_| {}) else { return };
    assert_eq!((info.nodes, info.edges, info.classes), (11_758, 1_038_000, 2));
    assert_eq!(tolokers.splits.len(), 10);
    assert!(tolokers.splits.iter().all(|split| roles(split) == [5879, 2939, 2940]));
}

#[test]
fn every_real_graph_survives_being_written_and_read() {
    let Some(folder) = shared("data/README.md").map(|path| path.parent().unwrap().to_owned()) else { return };
    let aside = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // The largest take long to pack and show nothing new.
        if !name.ends_with(".npz") || name.contains(".prone") || path.metadata().unwrap().len() > 1_000_000 {
            continue;
        }
        let one = read(&path, &ReadOptions::default()).unwrap();
        let copy = aside.path().join(&name);
        write_interchange(&copy, &one).unwrap();
        let other = read(&copy, &ReadOptions::default()).unwrap();
        assert_eq!(one.graph, other.graph, "{name}");
        assert_eq!((one.features, one.labels), (other.features, other.labels), "{name}");
        assert_eq!((one.splits, one.ids), (other.splits, other.ids), "{name}");
    }
}

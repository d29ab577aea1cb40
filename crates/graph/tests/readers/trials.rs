//! Files of other tools that `tests/trials/trials.py` has made (`--fixtures crates/graph/tests/fixtures`), each
//! in the folder of its trial. What is in them is computed here again, as `tests/trials/sample.py` has it.

use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::read::{ReadOptions, read};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const NODES: usize = 20;

type Edges = BTreeMap<(String, String), f32>;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The payments of the sample: from each i to 7 i + 3 and to i + 1, each once, with weights that count quarters.
fn payments() -> Vec<(usize, usize, f32)> {
    let pairs = [(7, 3), (1, 1)].into_iter().flat_map(|(step, shift)| {
        (0..NODES).map(move |i| (i, (i * step + shift) % NODES)).filter(|(source, target)| source != target)
    });
    let mut once: Vec<(usize, usize)> = Vec::new();
    pairs.for_each(|pair| once.extend((!once.contains(&pair)).then_some(pair)));
    once.into_iter().enumerate().map(|(at, (a, b))| (a, b, (at % 16 + 1) as f32 * 0.25)).collect()
}

/// The same by what `name` calls nodes.
fn edges(name: impl Fn(usize) -> String) -> Edges {
    payments().into_iter().map(|(a, b, weight)| ((name(a), name(b)), weight)).collect()
}

fn feature(node: usize, column: usize) -> f32 {
    ((node * 37 + column * 11) % 129) as f32 / 8.0 - 8.0
}

fn names(dataset: &Dataset) -> Vec<String> {
    match &dataset.ids {
        Ids::Row => (0..dataset.graph.nodes()).map(|node| node.to_string()).collect(),
        Ids::Integers(ids) => ids.iter().map(i64::to_string).collect(),
        Ids::Strings(ids) => ids.clone(),
    }
}

/// The edges that were read, by names; those without weights weigh 1.
fn found(dataset: &Dataset) -> Edges {
    let (graph, names) = (&dataset.graph, names(dataset));
    let weight = |edge: usize| graph.data.weights.as_ref().map_or(1.0, |weights| weights[edge]);
    let into = |to: usize| graph.in_edges(to).map(move |edge| (edge, to));
    let all = (0..graph.nodes()).flat_map(into);
    all.map(|(edge, to)| ((names[graph.sources[edge] as usize].clone(), names[to].clone()), weight(edge))).collect()
}

fn read_pair(trial: &str) -> Dataset {
    let folder = fixture(trial);
    let options = ReadOptions { nodes: Some(folder.join("nodes.parquet")), ..ReadOptions::default() };
    read(&folder.join("edges.parquet"), &options).unwrap()
}

/// Holds nodes with features of `value`, labels and split to the sample.
fn assert_people(dataset: &Dataset, value: impl Fn(usize, usize) -> f32, trial: &str) {
    let names = names(dataset);
    assert_eq!(names.len(), NODES, "{trial}");
    let Features::Dense { columns: 4, values } = &dataset.features else { panic!("{trial}: {:?}", dataset.features) };
    let Labels::Single { values: labels, .. } = &dataset.labels else { panic!("{trial}") };
    assert_eq!(dataset.about.classes, ["bad", "ok"], "{trial}");
    for (row, name) in names.iter().enumerate() {
        let node: usize = name.strip_prefix('u').unwrap().parse().unwrap();
        for column in 0..4 {
            assert_eq!(values[row * 4 + column], value(node, column), "{trial}: {name}, {column}");
        }
        assert_eq!(labels[row], i32::from(!node.is_multiple_of(3)), "{trial}: {name}");
        let role = [Split::TRAIN, Split::VAL, Split::TEST][usize::from(node >= 12) + usize::from(node >= 16)];
        assert_eq!(dataset.splits[0].roles[row], role, "{trial}: {name}");
    }
}

fn called(node: usize) -> String {
    format!("u{node}")
}

#[test]
fn tables_of_polars_duckdb_spark_and_fastparquet_hold_what_was_put_into_them() {
    for trial in ["006", "009", "014", "026", "040"] {
        let dataset = read_pair(trial);
        assert_eq!(found(&dataset), edges(called), "{trial}");
        assert_people(&dataset, feature, trial);
    }
    // Every other vector of Spark's is sparse and has the features above 0.
    let dataset = read_pair("021");
    assert_eq!(found(&dataset), edges(called));
    let halved =
        |node: usize, column: usize| feature(node, column).max(if node.is_multiple_of(2) { 0.0 } else { f32::MIN });
    assert_people(&dataset, halved, "021");
}

#[test]
fn codecs_of_duckdb_and_spark_are_read() {
    for name in ["013/duckdb_lz4_raw.parquet", "013/duckdb_brotli.parquet", "013/spark_lz4"] {
        assert_eq!(found(&read(&fixture(name), &ReadOptions::default()).unwrap()), edges(called), "{name}");
    }
}

#[test]
fn a_delta_table_is_read_as_of_its_last_commit() {
    let mut expected = edges(called);
    expected.iter_mut().filter(|((source, _), _)| source == "u1").for_each(|(_, weight)| *weight = 100.0);
    expected.retain(|(source, _), _| source != "u2");
    expected.insert((called(2), called(3)), 2.0);
    assert_eq!(found(&read(&fixture("019/calls"), &ReadOptions::default()).unwrap()), expected);
}

#[test]
fn uuids_of_duckdb_are_texts() {
    let dataset = read(&fixture("025/edges.parquet"), &ReadOptions::default()).unwrap();
    let names = names(&dataset);
    // The first of the ring, uuid5 of the number 0, and the last, which leads back to it.
    let (first, last) = ("6af613b6-569c-5c22-9c37-2ed93f31d3af", "e4d80b30-151e-51b5-9f4f-18a3b82718e6");
    assert_eq!((names.len(), names[0].as_str()), (10, first));
    assert!(found(&dataset).contains_key(&(last.to_owned(), first.to_owned())), "{names:?}");
}

#[test]
fn ends_with_an_amount_between_them_are_those_of_kuzu() {
    let dataset = read(&fixture("049/kuzu_pays.parquet"), &ReadOptions::default()).unwrap();
    let name = |node: usize| format!("a{node}");
    let expected: Edges = (0..6).map(|i| ((name(i), name((i * 2 + 1) % 6)), 1.0)).collect();
    // Account 5 pays itself, which is left out.
    let expected: Edges = expected.into_iter().filter(|((source, target), _)| source != target).collect();
    assert_eq!(found(&dataset), expected);
}

#[test]
fn matrices_of_scipy_are_graphs() {
    let read = |name: &str| found(&read(&fixture(name), &ReadOptions::default()).unwrap());
    assert_eq!(read("077/csr_matrix.npz"), edges(|node| node.to_string()));
    let counted = edges(|node| (node + 1).to_string());
    assert_eq!(read("066/plain.mtx"), counted);
    // A and its transpose, of which SciPy writes one triangle.
    let mut both = counted.clone();
    counted.into_iter().for_each(|((a, b), weight)| *both.entry((b, a)).or_default() += weight);
    assert_eq!(read("066/mirrored.mtx"), both);
}

#[test]
fn lists_of_networkx_and_networkit_are_graphs() {
    let ring: Vec<(usize, usize)> = (0..6).map(|i| (i, (i + 1) % 6)).chain([(0, 3)]).collect();
    let of = |weight: &dyn Fn(usize, usize) -> f32, both: bool| -> Edges {
        let one = ring.iter().enumerate().map(|(at, &(a, b))| ((a.to_string(), b.to_string()), weight(at, a)));
        let other = ring.iter().enumerate().map(|(at, &(a, b))| ((b.to_string(), a.to_string()), weight(at, a)));
        one.chain(other.filter(|_| both)).collect()
    };
    let read = |name: &str| found(&read(&fixture(name), &ReadOptions::default()).unwrap());
    assert_eq!(read("069/edges.txt"), of(&|at, _| at as f32 + 0.5, false));
    assert_eq!(read("074/weighted.graph"), of(&|_, source| source as f32 + 1.0, true));
    assert_eq!(read("075/loop.graph"), of(&|_, _| 1.0, true));
}

//! What `laconic predict` says of pairs of nodes by edges of several relations, against plain arithmetic on nothing but
//! the exported weights and the data as they are.

mod program;

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Features};
use laconic_graph::edges::{EdgeData, Relations};
use laconic_graph::links::{EdgeSplit, LinkRole};
use laconic_graph::read::{ReadOptions, read};
use laconic_graph::write::write_interchange;
use program::Place;
use program::exported::{Tensors, lines, tensors};

const NAMES: [&str; 3] = ["pays", "owns, too", "knows"];

const WIDTH: usize = 8;

const RUN: &str = "
data = { path = \"typed.npz\", typed = true }
partition = { parts = 3 }
model = { arch = \"rgcn\", hidden = 8, layers = 2, norm = \"none\" }
train = { epochs = 5, eval_every = 5 }
[task]
kind = \"link_prediction\"
decoder = \"distmult\"
split = { val = 0.1, test = 0.2, seed = 4 }
eval_negatives = 10
";

/// A graph of three relations with names or without, some of them between the same two nodes.
fn place(names: &[&str]) -> (Place, Dataset) {
    let place = Place::new();
    place.json("data synth sbm --nodes 90 --features 4 --classes 3 --out graph.npz");
    let plain = read(&place.path("graph.npz"), &ReadOptions::default()).expect("a dataset");
    let (mut sources, mut targets, mut of) = (Vec::new(), Vec::new(), Vec::new());
    for target in 0..plain.graph.nodes() {
        for (number, &source) in plain.graph.in_neighbours(target).iter().enumerate() {
            let first = (number + target) % 3;
            for relation in std::iter::once(first).chain((number % 4 == 0).then_some((first + 1) % 3)) {
                sources.push(source);
                targets.push(target as u32);
                of.push(relation as u16);
            }
        }
    }
    let data = EdgeData { relations: Some(Relations { count: 3, of }), ..EdgeData::default() };
    let (graph, _) = build_graph(90, sources, targets, data, BuildOptions::default()).expect("sound edges");
    let mut typed = Dataset { graph, ..plain };
    typed.about.relations = names.iter().map(|&name| name.to_owned()).collect();
    write_interchange(&place.path("typed.npz"), &typed).expect("a file");
    place.write("run.toml", RUN);
    (place, typed)
}

/// `row · matrix`, of a matrix whose rows are inputs.
fn times(row: &[f64], matrix: &[f64], outputs: usize) -> Vec<f64> {
    let mut out = vec![0.0; outputs];
    for (value, weights) in row.iter().zip(matrix.chunks_exact(outputs)) {
        out.iter_mut().zip(weights).for_each(|(out, weight)| *out += value * weight);
    }
    out
}

/// Every node's embedding by two relational convolutions as their definition says: own features, and for each relation
/// the mean over its in-neighbours, times a matrix each, along edges that were not held out.
fn embeddings(file: &Tensors, dataset: &Dataset) -> Vec<Vec<f64>> {
    let split = EdgeSplit { val: 0.1, test: 0.2, seed: 4 };
    let graph = &dataset.graph;
    let Features::Dense { columns, values } = &dataset.features else { panic!("dense features") };
    let mut rows: Vec<Vec<f64>> =
        values.chunks_exact(*columns).map(|row| row.iter().map(|&value| f64::from(value)).collect()).collect();
    for layer in 0..2 {
        let named = |name: &str| &file[&format!("convs.{layer}.{name}")].1;
        let next = |node: usize| {
            let mut out = times(&rows[node], named("root"), WIDTH);
            out.iter_mut().zip(named("bias")).for_each(|(out, bias)| *out += bias);
            let inputs = rows[node].len();
            for relation in 0..3 {
                let is_seen = |edge: &usize| {
                    let role = split.role(graph.sources[*edge].into(), node as u64);
                    role == LinkRole::Train && usize::from(graph.data.relation(*edge)) == relation
                };
                let edges: Vec<usize> = graph.in_edges(node).filter(is_seen).collect();
                let mut mean = vec![0.0; inputs];
                for &edge in &edges {
                    let neighbour = &rows[graph.sources[edge] as usize];
                    mean.iter_mut().zip(neighbour).for_each(|(sum, value)| *sum += value / edges.len() as f64);
                }
                let matrix = &named("weight")[relation * inputs * WIDTH..][..inputs * WIDTH];
                out.iter_mut().zip(times(&mean, matrix, WIDTH)).for_each(|(out, value)| *out += value);
            }
            if layer == 0 {
                out.iter_mut().for_each(|value| *value = value.max(0.0));
            }
            out
        };
        rows = (0..graph.nodes()).map(next).collect();
    }
    rows
}

/// The trained model's scores of all triples.
fn scores(place: &Place, dataset: &Dataset) -> impl Fn(usize, usize, usize) -> f64 + use<> {
    place.json("train run.toml --out run");
    place.json("export run --to pyg");
    let file = tensors(&place.path("run/pyg/model.safetensors"));
    let (rows, vectors) = (embeddings(&file, dataset), file["decoder.relations"].clone());
    assert_eq!(vectors.0, [3, WIDTH]);
    move |source, target, relation| {
        let ends = rows[source].iter().zip(&rows[target]);
        ends.zip(&vectors.1[relation * WIDTH..]).map(|((s, t), r)| s * t * r).sum()
    }
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-4 * (1.0 + expected.abs())
}

fn quoted(name: &str) -> String {
    if name.contains(',') { format!("\"{name}\"") } else { name.to_owned() }
}

#[test]
fn triples_have_the_scores_of_the_exported_model() {
    for names in [&NAMES[..], &[]] {
        let (place, dataset) = place(names);
        let expected = scores(&place, &dataset);
        let called = |relation: usize| names.get(relation).map_or(relation.to_string(), |name| (*name).to_owned());
        let triples: Vec<[usize; 3]> = (0..200).map(|at| [at * 7 % 90, at * 31 % 90, at % 3]).collect();
        let line =
            |[source, target, relation]: &[usize; 3]| format!("{source},{target},{}\n", quoted(&called(*relation)));
        let text: String = triples.iter().map(line).collect();
        place.write("bare.csv", &text);
        let named =
            |[source, target, relation]: &[usize; 3]| format!("{source},{target},9,{}\n", quoted(&called(*relation)));
        place.write(
            "named.csv",
            &format!("source,target,when,relation\n{}", triples.iter().map(named).collect::<String>()),
        );
        place.json("predict run --pairs bare.csv --out scores.jsonl");
        let said = lines(&place.path("scores.jsonl"));
        assert_eq!(said.len(), triples.len());
        for (said, &[source, target, relation]) in said.iter().zip(&triples) {
            let (found, expected) = (said["score"].as_f64().expect("a score"), expected(source, target, relation));
            assert!(near(found, expected), "{source} {target} {relation}: {found}, not {expected}");
            assert_eq!(said["relation"], called(relation));
        }
        let told = place.run("predict run --pairs named.csv --out scores.csv");
        assert!(told.code == 0 && told.err.contains("not read: when"), "{}", told.err);
        let table = std::fs::read_to_string(place.path("scores.csv")).expect("a table");
        assert_eq!(table.lines().next(), Some("source,target,relation,score,probability"));
        for (row, (triple, said)) in table.lines().skip(1).zip(triples.iter().zip(&said)) {
            assert!(row.starts_with(line(triple).trim_end()), "{row}");
            let score = row.rsplit(',').nth(1).and_then(|cell| cell.parse().ok()).expect("a score");
            assert!(near(score, said["score"].as_f64().expect("a score")), "{row}");
        }
        // What was written is read again.
        place.json("predict run --pairs scores.csv --out again.csv");
        assert_eq!(std::fs::read_to_string(place.path("again.csv")).expect("a table"), table);
        let best = format!("predict run --best 5 --of 3 --relation {} --out best.jsonl", called(2));
        place.json(&best);
        let said = lines(&place.path("best.jsonl"));
        assert_eq!(said.len(), 5);
        let mut all: Vec<f64> = (0..90).filter(|&node| node != 3).map(|node| expected(3, node, 2)).collect();
        all.sort_by(|a, b| b.total_cmp(a));
        for (said, best) in said.iter().zip(all) {
            assert!(near(said["score"].as_f64().expect("a score"), best) && said["relation"] == called(2), "{said}");
        }
    }
}

#[test]
fn relations_that_are_missing_or_unknown_are_refused_by_name() {
    let (place, _) = place(&NAMES);
    place.json("train run.toml --out run");
    for (text, words) in [
        ("1,2\n", &["line 1", "source,target,relation", "3: pays, owns, too, knows"][..]),
        ("source,target\n1,2\n", &["line 1", "a column relation", "pays"]),
        ("source,target,kind\n1,2,pays\n", &["line 1", "a column relation"]),
        ("1,2,pays\n3,4,hates\n", &["line 2", "no relation is called \"hates\"", "pays"]),
        ("1,2,0\n", &["line 1", "no relation is called \"0\""]),
        ("1,2,pays,4\n", &["line 1", "found 4 cells"]),
    ] {
        place.write("pairs.csv", text);
        place.refused("predict run --pairs pairs.csv --out scores.csv", 3, words);
    }
    place.refused("predict run --best 3 --of 1 --out scores.csv", 2, &["--relation NAME", "pays"]);
    place.refused(
        "predict run --best 3 --of 1 --relation hates --out scores.csv",
        2,
        &["--relation", "hates", "knows"],
    );
    // A decoder that reads none knows none, on the same data.
    place.json("train run.toml --set task.decoder=dot --out dot");
    place.refused("predict dot --best 3 --of 1 --relation pays --out scores.csv", 2, &["--relation", "alike"]);
    place.write("pairs.csv", "source,target,relation\n1,2,pays\n");
    let told = place.run("predict dot --pairs pairs.csv --out scores.csv");
    assert!(told.code == 0 && told.err.contains("not read: relation"), "{}", told.err);
    let table = std::fs::read_to_string(place.path("scores.csv")).expect("a table");
    assert_eq!(table.lines().next(), Some("source,target,score,probability"));
    // Layers that read none under a decoder that does: the model's file says how many relations there are.
    place.json("train run.toml --set model.arch=sage --out sage");
    place.json("predict sage --best 3 --of 1 --relation knows --out sage.csv");
    place.json("data convert graph.npz --out other.npz");
    let words = ["3 relations"];
    place.refused("predict sage --best 3 --of 1 --relation knows --data other.npz --out other.csv", 3, &words);
    place.json("export sage --to torch");
    let text = std::fs::read_to_string(place.path("sage/torch/load.py")).expect("a file");
    for words in [
        "RELATIONS = [\"pays\",\"owns, too\",\"knows\"]",
        "def score(self, rows, pairs, edge_type)",
        "Decoder(8, 1, 3)",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

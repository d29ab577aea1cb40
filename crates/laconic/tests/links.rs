//! What `laconic predict` says of pairs of nodes, against plain arithmetic on nothing but the exported weights and the
//! data as they are.

mod program;

use std::collections::BTreeSet;

use laconic_graph::dataset::{Dataset, Features};
use laconic_graph::given::GivenPairs;
use laconic_graph::links::{EdgeSplit, LinkRole};
use laconic_graph::read::{ReadOptions, read};
use laconic_graph::write::write_interchange;
use program::Place;
use program::exported::{Tensors, linear, lines, tensors};

const RUN: &str = "
data = { path = \"graph.npz\" }
partition = { parts = 3 }
model = { hidden = 8, layers = 2, norm = \"none\" }
task = { kind = \"link_prediction\", split = { val = 0.1, test = 0.2, seed = 4 }, eval_negatives = 10 }
train = { epochs = 5, eval_every = 5 }
";

fn place() -> (Place, Dataset) {
    let place = Place::new();
    place.json("data synth sbm --nodes 90 --features 4 --classes 3 --out graph.npz");
    let dataset = read(&place.path("graph.npz"), &ReadOptions::default()).expect("a dataset");
    place.write("run.toml", RUN);
    (place, dataset)
}

/// Every node's embedding by two layers as their definitions say, along the edges that were not held out.
fn embeddings(arch: &str, file: &Tensors, dataset: &Dataset) -> Vec<Vec<f64>> {
    let split = EdgeSplit { val: 0.1, test: 0.2, seed: 4 };
    let nodes = dataset.graph.nodes();
    let mut sources: Vec<Vec<usize>> = (0..nodes)
        .map(|node| {
            let into = dataset.graph.in_neighbours(node).iter().map(|&source| source as usize);
            into.filter(|&source| split.role(source as u64, node as u64) == LinkRole::Train).collect()
        })
        .collect();
    assert!(sources.iter().map(Vec::len).sum::<usize>() < dataset.graph.edges(), "some are held out");
    if arch == "gcn" {
        (0..nodes).for_each(|node| sources[node].push(node));
    }
    let degree: Vec<f64> = sources.iter().map(|sources| sources.len() as f64).collect();
    let Features::Dense { columns, values } = &dataset.features else { panic!("dense features") };
    let mut rows: Vec<Vec<f64>> =
        values.chunks_exact(*columns).map(|row| row.iter().map(|&value| f64::from(value)).collect()).collect();
    for layer in 0..2 {
        let named = |name: &str| file.get(&format!("convs.{layer}.{name}")).map(|(_, values)| values);
        let next = |node: usize| {
            let mut sum = vec![0.0; rows[node].len()];
            for &source in &sources[node] {
                let factor = match arch {
                    "gcn" => 1.0 / (degree[source] * degree[node]).sqrt(),
                    _ => 1.0 / degree[node],
                };
                sum.iter_mut().zip(&rows[source]).for_each(|(sum, value)| *sum += factor * value);
            }
            let mut out = match arch {
                "gcn" => linear(&sum, named("lin.weight").expect("one"), named("bias")),
                _ => linear(&sum, named("lin_l.weight").expect("one"), named("lin_l.bias")),
            };
            if let Some(own) = named("lin_r.weight") {
                out.iter_mut().zip(linear(&rows[node], own, None)).for_each(|(out, own)| *out += own);
            }
            if layer == 0 {
                out.iter_mut().for_each(|value| *value = value.max(0.0));
            }
            out
        };
        rows = (0..nodes).map(next).collect();
    }
    rows
}

/// The score of a pair, as the decoder's definition says.
fn score(decoder: &str, file: &Tensors, source: &[f64], target: &[f64]) -> f64 {
    let named = |name: &str| &file[&format!("decoder.{name}")].1;
    let product: Vec<f64> = source.iter().zip(target).map(|(a, b)| a * b).collect();
    match decoder {
        "dot" => product.iter().sum(),
        "distmult" => product.iter().zip(named("relations")).map(|(product, weight)| product * weight).sum(),
        _ => {
            let mut x = product;
            for layer in 0..2 {
                x = linear(&x, named(&format!("lins.{layer}.weight")), Some(named(&format!("lins.{layer}.bias"))));
                let slope = named(&format!("acts.{layer}.weight"))[0];
                x.iter_mut().filter(|value| **value < 0.0).for_each(|value| *value *= slope);
            }
            linear(&x, named("lins.2.weight"), Some(named("lins.2.bias")))[0]
        }
    }
}

/// An exported model's scores of all pairs.
fn scores(place: &Place, arch: &str, decoder: &str, dataset: &Dataset) -> impl Fn(usize, usize) -> f64 + use<> {
    let layers = if decoder == "mlp" { " --set task.decoder_layers=2" } else { "" };
    let set = format!("--set model.arch={arch} --set task.decoder={decoder}{layers}");
    place.json(&format!("train run.toml --out run {set}"));
    place.json("export run --to pyg");
    let file = tensors(&place.path("run/pyg/model.safetensors"));
    let (rows, decoder) = (embeddings(arch, &file, dataset), decoder.to_owned());
    move |source, target| score(&decoder, &file, &rows[source], &rows[target])
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-4 * (1.0 + expected.abs())
}

const CASES: [[&str; 2]; 4] = [["gcn", "dot"], ["sage", "dot"], ["gcn", "mlp"], ["sage", "distmult"]];

#[test]
fn pairs_have_the_scores_of_the_exported_model() {
    let (place, dataset) = place();
    let pairs: Vec<[usize; 2]> = (0..200).map(|at| [at * 7 % 90, at * 31 % 90]).collect();
    let text: String = pairs.iter().map(|[source, target]| format!("{source},{target}\n")).collect();
    place.write("pairs.csv", &format!("source,target\n{text}"));
    place.write("pairs.tsv", &text.replace(',', "\t"));
    for [arch, decoder] in CASES {
        let expected = scores(&place, arch, decoder, &dataset);
        let told = place.json("predict run --pairs pairs.csv --out scores.jsonl --force");
        assert_eq!(told["pairs"], pairs.len());
        let said = lines(&place.path("scores.jsonl"));
        assert_eq!(said.len(), pairs.len());
        for (said, &[source, target]) in said.iter().zip(&pairs) {
            let (found, expected) = (said["score"].as_f64().expect("a score"), expected(source, target));
            assert!(near(found, expected), "{arch} {decoder} {source} {target}: {found}, not {expected}");
            let probability = said["probability"].as_f64().expect("a probability");
            assert!((probability - 1.0 / (1.0 + (-expected).exp())).abs() < 1e-4, "{arch} {decoder}: {probability}");
            assert_eq!([&said["source"], &said["target"]], [&source.to_string(), &target.to_string()]);
        }
        // Other workers, another separator and another table say the same.
        place.json("predict run --pairs pairs.tsv --workers 2 --out scores.csv --force");
        let table = std::fs::read_to_string(place.path("scores.csv")).expect("a table");
        assert_eq!(table.lines().next(), Some("source,target,score,probability"));
        for (line, said) in table.lines().skip(1).zip(&said) {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!([said["source"].as_str(), said["target"].as_str()], [Some(cells[0]), Some(cells[1])]);
            assert!(near(cells[2].parse().expect("a score"), said["score"].as_f64().expect("a score")), "{line}");
        }
    }
}

#[test]
fn the_best_targets_of_a_node_are_those_of_the_exported_model() {
    let (place, dataset) = place();
    for [arch, decoder] in CASES {
        let expected = scores(&place, arch, decoder, &dataset);
        place.json("predict run --best 7 --of 3 --of 41 --out best.jsonl --force");
        let said = lines(&place.path("best.jsonl"));
        assert_eq!(said.len(), 14);
        for (source, said) in [3usize, 41].into_iter().zip(said.chunks(7)) {
            let mut listed = BTreeSet::new();
            let mut before = f64::INFINITY;
            for line in said {
                let target: usize = line["target"].as_str().expect("an id").parse().expect("a number");
                let found = line["score"].as_f64().expect("a score");
                assert_eq!(line["source"], source.to_string());
                assert!(near(found, expected(source, target)), "{arch} {decoder} {source} {target}: {found}");
                assert!(found <= before && target != source && listed.insert(target), "{arch} {decoder}: {line}");
                before = found;
            }
            for other in (0..90).filter(|other| *other != source && !listed.contains(other)) {
                let better = expected(source, other);
                assert!(better <= before || near(better, before), "{arch} {decoder}: {other} has {better}");
            }
        }
        // More than there are: all others.
        place.json("predict run --best 1000 --of 3 --out best.jsonl --force");
        assert_eq!(lines(&place.path("best.jsonl")).len(), 89);
    }
}

#[test]
fn pairs_that_make_no_sense_are_refused_by_line_and_name() {
    let (place, _) = place();
    place.json("train run.toml --out run");
    place.write("nodes.toml", "data = { path = \"graph.npz\" }\ntrain = { epochs = 1 }\n");
    place.json("train nodes.toml --out nodes");
    for (text, words) in [
        ("1,2\n3,nobody\n", &["pairs.csv: line 2", "nobody"][..]),
        ("1,2\n\n\n3,nobody\n", &["pairs.csv: line 4", "nobody"]),
        ("1,2,3\n", &["line 1", "3 cells", "name the columns"]),
        ("1\n", &["line 1", "source,target"]),
        ("1,nobody\n", &["line 1", "nobody"]),
        ("100,200\n", &["line 1", "100"]),
        ("source,target,score\n1,2,0.5\n3,4\n", &["line 3", "3 cells", "found 2"]),
        ("", &["pairs.csv", "found none"]),
        ("source,target\n", &["pairs.csv", "found none"]),
    ] {
        place.write("pairs.csv", text);
        place.refused("predict run --pairs pairs.csv --out scores.csv", 3, words);
    }
    std::fs::write(place.path("pairs.csv"), b"1,2\n3,\xff\n").expect("a file");
    place.refused("predict run --pairs pairs.csv --out scores.csv", 3, &["pairs.csv: line 2", "UTF-8"]);
    for (line, words) in [
        ("predict nodes --pairs pairs.csv --out scores.csv", &["models of links"][..]),
        ("predict run --edges all --out scores.csv", &["--pairs", "--best"]),
        ("predict run --best 3 --of nobody --out scores.csv", &["nobody"]),
        ("predict run --best 3 --of 1 --out scores.parquet", &[".csv", ".jsonl"]),
        ("predict run --best 3 --of 1 --out scores.csv --embeddings", &["embeddings"]),
        ("predict run --best 3 --out scores.csv", &["--of"]),
        ("predict run --pairs nosuch.csv --out scores.csv", &["nosuch.csv"]),
    ] {
        place.refused(line, if line.contains("nosuch") { 5 } else { 2 }, words);
        assert!(!place.run(line).err.contains("predicting with"), "{line}: found out after the work");
    }
    assert!(!place.names().contains(&"scores.csv".to_owned()), "{:?}", place.names());
}

/// Ids with commas, quotes and spaces, in a table of edges and in what is written.
#[test]
fn what_was_written_of_pairs_is_read_again_whatever_nodes_are_called() {
    let place = Place::new();
    let name = |node: usize| ["Doe,Jane", "the\"Rock\"", "plain", "a b, c "][node % 4].to_owned() + &node.to_string();
    let cell = |node: usize| format!("\"{}\"", name(node).replace('"', "\"\""));
    let edge = |at: usize| format!("{},{}\n", cell(at % 40), cell((at * 7 + 3) % 40));
    let node = |node: usize| format!("{},{},{}\n", cell(node), node % 5, node % 7);
    place.write("calls.csv", &format!("source,target\n{}", (0..160).map(edge).collect::<String>()));
    place.write("people.csv", &format!("id,x,y\n{}", (0..40).map(node).collect::<String>()));
    let data = "{ path = \"calls.csv\", nodes_path = \"people.csv\", symmetrise = true }";
    place.write("run.toml", &RUN.replace("{ path = \"graph.npz\" }", data));
    place.json("train run.toml --out run");
    place.json("predict run --best 5 --of Doe,Jane0 --of the\"Rock\"1 --out best.csv");
    let best = std::fs::read_to_string(place.path("best.csv")).expect("a table");
    assert_eq!(best.lines().count(), 11);
    let again = place.run("predict run --pairs best.csv --out again.csv");
    assert!(again.code == 0 && again.err.contains("not read: score, probability"), "{}", again.err);
    assert_eq!(std::fs::read_to_string(place.path("again.csv")).expect("a table"), best);
    // Another heading is known by naming no nodes, and said.
    place.write("named.tsv", &format!("who\twhom\n{}\t{}\n", name(0), name(3)));
    let named = place.run("predict run --pairs named.tsv --out named.csv");
    assert!(named.code == 0 && named.err.contains("who, whom") && named.out.contains("1 pairs"), "{}", named.err);
}

/// Whatever is said of a run is said of edges: none of its nodes is labelled, and none is tested.
#[test]
fn a_run_of_links_is_described_as_one_of_edges() {
    let (place, _) = place();
    let sage = "[[method]]\nname = \"sage\"\nset = [\"model.arch=sage\"]\n";
    place.write("methods.toml", &format!("[[method]]\nname = \"gcn\"\n{sage}"));
    place.run("train run.toml --out run");
    let table = place.run("compare run.toml --runs methods.toml --out both").out;
    place.json("report run --out one.html");
    place.json("report both --out several.html");
    let page = |name: &str| std::fs::read_to_string(place.path(name)).expect("a page");
    let plan = place.run("plan run.toml --set task.filter_negatives=true --worker 0").out;
    for (what, text, words) in [
        ("table", &table, "mrr on test edges"),
        ("figure", &page("both/compare.svg"), "mrr on test edges"),
        ("page", &page("one.html"), "on test edges"),
        ("page", &page("one.html"), "Hits@K count against pools of"),
        ("pages", &page("several.html"), "mrr on validation edges"),
        ("plan", &plan, "summed over its training edges"),
        ("plan", &plan, "how its held-out edges rank"),
        ("plan", &plan, "embeddings of nodes at the ends of others' pairs"),
        ("plan", &plan, "which of others' pairs are edges"),
        // No peer is one with a single node.
        ("plan", &plan, "gradients of the loss by rows of in each round another sample of"),
    ] {
        assert!(text.contains(words), "{what}: {words} in {text}");
        for wrong in ["training nodes", "validation nodes", "test nodes", "labelled nodes", "sample of 1 "] {
            assert!(!text.contains(wrong), "{what}: {wrong} in {text}");
        }
    }
    assert_eq!(place.json("compare run.toml --runs methods.toml --out both")["task"], "link_prediction");
}

/// Pairs that an npz gives as no edges come through `data convert` and `partition`; a run on parts has the figures of
/// one on the npz, and `plan` bounds what it sends.
#[test]
fn given_pairs_are_kept_by_every_command() {
    let (place, mut dataset) = place();
    let nodes = dataset.graph.nodes();
    let edges = (0..nodes).flat_map(|node| dataset.graph.in_edges(node).map(move |_| node as u32)).collect::<Vec<_>>();
    let held: Vec<u8> = (0..edges.len()).map(|edge| [0, 0, 1, 0, 2][edge % 5]).collect();
    let of = |role: u8| {
        let of = (0..edges.len()).filter(|&edge| held[edge] == role);
        of.map(|edge| (dataset.graph.sources[edge], edges[edge])).unzip::<_, _, Vec<u32>, Vec<u32>>()
    };
    let pool = GivenPairs { sources: vec![1; 70], targets: (10..80).collect(), ..GivenPairs::default() };
    let (sources, targets) = of(2);
    let others = (0..3 * sources.len()).map(|at| (at * 7 % nodes) as u32).collect();
    let given = Some([pool, GivenPairs { sources, targets, others, each: 3, relations: vec![] }]);
    (dataset.graph.data.held, dataset.negatives) = (Some(held), given.clone());
    write_interchange(&place.path("given.npz"), &dataset).expect("a file");
    let warned = place.run("data check given.npz");
    assert!(warned.out.contains("pairs that are given as no edges for testing are edges"), "{}", warned.out);
    place.json("data convert given.npz --out again.npz");
    let again = read(&place.path("again.npz"), &ReadOptions::default()).expect("a dataset");
    assert_eq!((&again.negatives, &again.graph), (&given, &dataset.graph));
    place.refused("partition given.npz --parts 3 --memory 1GB --out pieces", 3, &["given.npz", "val_edge_index"]);
    place.json("partition given.npz --parts 3 --method random --out parts");
    let task = "task = { kind = \"link_prediction\", split = \"given\", eval_negatives = \"given\" }\n\
        train = { epochs = 3, metrics = [\"mrr\", \"hits@10\", \"roc_auc\"] }\nmodel = { hidden = 8 }\n";
    place.write("whole.toml", &format!("{task}data = {{ path = \"given.npz\" }}\npartition = {{ parts = 3 }}\n"));
    place.write("parts.toml", &format!("{task}data = {{ path = \"parts\" }}\n"));
    let [whole, parts] = ["whole", "parts"].map(|name| {
        let summary = place.json(&format!("train {name}.toml --out {name}-run"));
        let planned = place.json(&format!("plan {name}.toml"));
        let sent = |json: &serde_json::Value| json["bytes"]["total"].as_u64();
        assert!(sent(&summary) > Some(0), "{summary}");
        assert!(sent(&planned).is_none() || sent(&planned) >= sent(&summary), "{planned}");
        summary["metrics"].clone()
    });
    assert!(whole["test"]["mrr"].as_f64() > Some(0.0), "{whole}");
    assert_eq!(whole, parts);
    place.write("pairs.csv", "source,target\n1,2\n");
    place.json("predict parts-run --pairs pairs.csv --out scored.csv");
}

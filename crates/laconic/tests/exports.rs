//! What `laconic export` writes, without the programs that read it; `tests/parity/check_export.py` runs it with them.

mod program;

use laconic_graph::dataset::{Dataset, Features};
use laconic_graph::read::{ReadOptions, read};
use laconic_graph::write::write_interchange;
use program::Place;
use program::exported::{Tensors, linear, lines, tensors};

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[model]\nhidden = 16\n[train]\nepochs = 3\n";

/// A graph of which every edge has a weight of its own, and its copy without.
fn place() -> (Place, Dataset) {
    let place = Place::new();
    place.json("data synth sbm --nodes 120 --features 4 --classes 3 --out plain.npz");
    let mut dataset = read(&place.path("plain.npz"), &ReadOptions::default()).expect("a dataset");
    dataset.graph.data.weights =
        Some((0..dataset.graph.edges()).map(|edge| 0.1 + (edge * 37 % 19) as f32 / 7.0).collect());
    dataset.name = "graph".to_owned();
    write_interchange(&place.path("graph.npz"), &dataset).expect("written");
    place.write("run.toml", RUN);
    (place, dataset)
}

fn exported(place: &Place, keys: &str, to: &str) -> String {
    let set: String = keys.split_whitespace().map(|key| format!(" --set {key}")).collect();
    place.json(&format!("train run.toml --out run{set}"));
    let done = place.run(&format!("export run --to {to}"));
    assert_eq!(done.code, 0, "{keys}: {}", done.err);
    assert!(done.err.contains("load.py needs torch"), "{}", done.err);
    std::fs::read_to_string(place.path("run").join(to).join("load.py")).expect("a loader")
}

#[test]
fn an_export_has_the_weights_of_edges_where_the_model_reads_them() {
    let (place, _) = place();
    for (keys, there, absent) in [
        (
            "model.arch=gcn",
            &["def forward(self, x, edge_index, edge_weight)", "GCNConv(4, 16", "(x, edge_index, edge_weight)"][..],
            "class Edges",
        ),
        (
            "model.arch=sage",
            &["edge_index, edge_weight)", "class SAGE(Module)", "class Edges"],
            "torch_geometric import",
        ),
        ("model.arch=gin", &["edge_index, edge_weight)", "class GIN(Module)", "class Edges"], "torch_geometric import"),
        ("model.arch=gin model.self_loops=true", &["with_loops(source, target, weight, x.size(0))"], "SAGE"),
        (
            "model.arch=sage model.aggregator=max",
            &["SAGEConv(4, 16, aggr=\"max\"", "this layer reads no weights of theirs"],
            "edge_weight)",
        ),
        ("model.arch=gat", &["GATConv("], "edge_weight)"),
        ("data.path=plain.npz", &["SAGEConv(4, 16)", "def forward(self, x, edge_index)"], "class Edges"),
    ] {
        let text = exported(&place, keys, "pyg");
        there.iter().for_each(|words| assert!(text.contains(words), "{keys}: {words}:\n{text}"));
        assert!(!text.contains(absent), "{keys}: {absent}:\n{text}");
        assert!(!text.contains("safetensors import"), "{text}");
    }
    place.refused("export run --to onnx", 2, &["laconic export run --to torch", "run/torch/load.py"]);
}

/// Every text is Python, where there is one to ask.
#[test]
fn every_loader_is_python() {
    let (place, _) = place();
    let asked = std::process::Command::new("python3").arg("--version").output();
    if asked.is_err() {
        eprintln!("skipped: no python3");
        return;
    }
    let mut files = Vec::new();
    for (number, arch) in [
        "gcn",
        "sage model.residual=true",
        "sage model.aggregator=max model.norm=batch",
        "gin model.activation=prelu model.jumping_knowledge=max",
        "gat model.jumping_knowledge=cat",
        "mlp model.jumping_knowledge=last",
    ]
    .into_iter()
    .enumerate()
    {
        let how = ["given", "row-normalised", "standardised"][number % 3];
        for to in ["pyg", "dgl", "torch"] {
            let text = exported(&place, &format!("model.arch={arch} data.features={how} model.self_loops=true"), to);
            let name = format!("{number}_{to}.py");
            place.write(&name, &text);
            files.push(name);
        }
    }
    let parse = "import ast, sys\nfor f in sys.argv[1:]: ast.parse(open(f, encoding='utf8').read(), f)";
    let done =
        std::process::Command::new("python3").args(["-c", parse]).args(&files).current_dir(place.path("")).output();
    let done = done.expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The logits of a node from its own row and the sum of its neighbours', as the only layer of the file closes it.
fn closed(arch: &str, file: &Tensors, own: &[f64], mut sum: Vec<f64>, degree: f64) -> Vec<f64> {
    let named = |name: &str| file.get(&format!("convs.0.{name}")).map(|(_, values)| values);
    match arch {
        "gcn" => linear(&sum, named("lin.weight").expect("one"), named("bias")),
        "sage" => {
            sum.iter_mut().for_each(|sum| *sum /= degree.max(1e-30));
            let own = linear(own, named("lin_r.weight").expect("one"), None);
            let others = linear(&sum, named("lin_l.weight").expect("one"), named("lin_l.bias"));
            own.iter().zip(others).map(|(own, others)| own + others).collect()
        }
        _ => {
            let factor = 1.0 + named("eps").expect("an ε")[0];
            sum.iter_mut().zip(own).for_each(|(sum, value)| *sum += factor * value);
            let mut inner = linear(&sum, named("nn.0.weight").expect("one"), named("nn.0.bias"));
            inner.iter_mut().for_each(|value| *value = value.max(0.0));
            linear(&inner, named("nn.2.weight").expect("one"), named("nn.2.bias"))
        }
    }
}

/// One layer of each kind as its definition says, from nothing but the exported file and the data as they are: raw
/// features, edges and weights. What `predict` says is the same.
#[test]
fn an_exported_layer_on_raw_features_and_weighted_edges_gives_the_predictions() {
    let (place, dataset) = place();
    let Features::Dense { columns, values } = &dataset.features else { panic!("dense features") };
    let weights = dataset.graph.data.weights.as_ref().expect("weights");
    for keys in [
        "gcn",
        "gcn model.self_loops=false",
        "sage",
        "gin",
        "gin model.learn_epsilon=false",
        "gin model.self_loops=true",
        "gcn model.residual=true",
        "sage model.residual=true",
    ] {
        let arch = keys.split_whitespace().next().expect("a layer");
        let set = format!("model.arch={keys} model.layers=1 data.features=standardised train.epochs=20");
        exported(&place, &set, "pyg");
        place.json("predict run --out p.jsonl --force");
        let file = tensors(&place.path("run/pyg/model.safetensors"));
        let of = |name: &str| file.get(name).map(|(_, values)| values);
        let (mean, deviation) = (of("scale.mean").expect("means"), of("scale.deviation").expect("deviations"));
        let scaled = |(at, value): (usize, &f32)| (f64::from(*value) - mean[at % columns]) / deviation[at % columns];
        let x: Vec<f64> = values.iter().enumerate().map(scaled).collect();
        let nodes = dataset.graph.nodes();
        let loops = keys.contains("self_loops=true") || (arch == "gcn" && !keys.contains("self_loops=false"));
        let edges = |node: usize| {
            let there = dataset
                .graph
                .in_edges(node)
                .map(|edge| (dataset.graph.sources[edge] as usize, f64::from(weights[edge])));
            there.chain(loops.then_some((node, 1.0))).collect::<Vec<_>>()
        };
        let degree: Vec<f64> = (0..nodes).map(|node| edges(node).iter().map(|edge| edge.1).sum()).collect();
        let row = |node: usize| &x[node * columns..][..*columns];
        for said in lines(&place.path("p.jsonl")) {
            let node = said["id"].as_u64().expect("a node") as usize;
            let mut sum = vec![0.0; *columns];
            for (source, weight) in edges(node) {
                let factor = if arch == "gcn" { weight / (degree[source] * degree[node]).sqrt() } else { weight };
                sum.iter_mut().zip(row(source)).for_each(|(sum, value)| *sum += factor * value);
            }
            let mut logits = closed(arch, &file, row(node), sum, degree[node]);
            if keys.contains("residual=true") {
                let past = linear(row(node), of("residuals.0.weight").expect("a matrix"), None);
                logits.iter_mut().zip(past).for_each(|(logit, past)| *logit += past);
            }
            let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
            for (class, logit) in logits.iter().enumerate() {
                let expected = said[format!("prob_{class}")].as_f64().expect("a probability");
                assert!(
                    (logit.exp() / total - expected).abs() < 2e-6,
                    "{keys}: node {node}: {}, {expected}",
                    logit.exp() / total
                );
            }
        }
    }
}

#[test]
fn an_export_says_what_classes_and_features_are_called_and_how_features_were_made() {
    let (place, dataset) = place();
    let text = exported(&place, "data.features=standardised", "torch");
    assert!(text.contains("CLASSES = [\"0\",\"1\",\"2\"]") && text.contains("FEATURES = []"), "{text}");
    let about: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.path("run/torch/about.json")).expect("a file")).expect("JSON");
    assert_eq!((about["weighted"].as_bool(), about["dataset"].as_str()), (Some(true), Some("graph")));
    let means = about["about"]["scale"]["standardised"]["means"].as_array().expect("means");
    assert_eq!(means.len(), dataset.features.columns());
}

#[test]
fn a_model_that_reads_what_owners_tell_needs_leave_predicts_and_is_not_exported() {
    let (place, _) = place();
    let keys = r#"--set model.inputs=["features","labels","codewords"] --set model.arch=mlp"#;
    let refused = place.run(&format!("train run.toml --out run {keys}"));
    assert_eq!(refused.code, 7, "{}", refused.err);
    assert!(refused.err.contains("policy.allow") && !place.path("run").exists(), "{}", refused.err);
    place.json(&format!(r#"train run.toml --out run {keys} --set policy.allow=["labels"]"#));
    let done = place.run("predict run --out predictions.csv");
    assert_eq!(done.code, 0, "{}", done.err);
    let done = place.run("export run --to pyg");
    assert_eq!(done.code, 2, "{}", done.err);
    assert!(done.err.contains(r#"model.inputs has "labels""#), "{}", done.err);
}

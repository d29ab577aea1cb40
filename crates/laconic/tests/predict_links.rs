//! Which edges pass messages where a model of links predicts, which targets are listed, and how edges are judged that
//! are held out: against plain arithmetic on the exported weights and the data as they are.

mod program;

use std::collections::{BTreeMap, BTreeSet};

use laconic_graph::dataset::{Dataset, Features, Labels};
use laconic_graph::graph::Graph;
use laconic_graph::links::{EdgeSplit, LinkRole, NegativeScope, Negatives};
use laconic_graph::node_types::{apart, beside};
use laconic_graph::read::{ReadOptions, read};
use laconic_graph::write::write_interchange;
use program::Place;
use program::exported::{linear, lines, tensors};

const RUN: &str = "
data = { path = \"graph.npz\" }
partition = { parts = 3 }
model = { arch = \"sage\", hidden = 8, layers = 1, norm = \"none\" }
task = { kind = \"link_prediction\", split = { val = 0.1, test = 0.2, seed = 4 }, eval_negatives = 10 }
train = { epochs = 5, eval_every = 5, metrics = [\"mrr\", \"hits@10\", \"roc_auc_exact\"] }
";

/// A run, and its data.
fn trained() -> (Place, Dataset) {
    let place = Place::new();
    place.json("data synth sbm --nodes 90 --features 4 --classes 3 --out graph.npz");
    let dataset = read(&place.path("graph.npz"), &ReadOptions::default()).expect("a dataset");
    place.write("run.toml", RUN);
    place.json("train run.toml --out run");
    place.json("export run --to pyg");
    (place, dataset)
}

/// Every node's embedding by the run's one layer: a linear map of the mean over neighbours that edges pass messages
/// from, and one of the node's own features.
fn embeddings(place: &Place, dataset: &Dataset, passes: impl Fn(u64, u64) -> bool) -> Vec<Vec<f64>> {
    let file = tensors(&place.path("run/pyg/model.safetensors"));
    let named = |name: &str| &file[&format!("convs.0.{name}")].1;
    let Features::Dense { columns, values } = &dataset.features else { panic!("dense features") };
    let row = |node: u64| -> Vec<f64> {
        values[node as usize * columns..][..*columns].iter().map(|&value| f64::from(value)).collect()
    };
    let embedding = |node: u64| {
        let into = dataset.graph.in_neighbours(node as usize).iter().map(|&source| u64::from(source));
        let into: Vec<u64> = into.filter(|&source| passes(source, node)).collect();
        let mut mean = vec![0.0; *columns];
        for &source in &into {
            mean.iter_mut().zip(row(source)).for_each(|(mean, value)| *mean += value / into.len() as f64);
        }
        let mut out = linear(&mean, named("lin_l.weight"), Some(named("lin_l.bias")));
        let own = linear(&row(node), named("lin_r.weight"), None);
        out.iter_mut().zip(own).for_each(|(out, own)| *out += own);
        out
    };
    (0..dataset.graph.nodes() as u64).map(embedding).collect()
}

fn score(rows: &[Vec<f64>], source: u64, target: u64) -> f64 {
    rows[source as usize].iter().zip(&rows[target as usize]).map(|(a, b)| a * b).sum()
}

/// Source, target and score of each line that was written.
fn written(place: &Place, name: &str) -> Vec<(u64, u64, f64)> {
    let id = |line: &serde_json::Value, end: &str| line[end].as_str().expect("an id").parse::<u64>().expect("a number");
    let lines = lines(&place.path(name));
    lines.iter().map(|of| (id(of, "source"), id(of, "target"), of["score"].as_f64().expect("a score"))).collect()
}

fn assert_scores(place: &Place, name: &str, rows: &[Vec<f64>], what: &str) {
    for (source, target, found) in written(place, name) {
        let expected = score(rows, source, target);
        assert!((found - expected).abs() <= 1e-4 * (1.0 + expected.abs()), "{what}: {source} {target} {found}");
    }
}

#[test]
fn the_edges_that_were_asked_for_pass_messages() {
    let (place, dataset) = trained();
    place.write("pairs.csv", &(0..80).map(|at| format!("{},{}\n", at * 7 % 90, at * 31 % 90)).collect::<String>());
    let split = EdgeSplit { val: 0.1, test: 0.2, seed: 4 };
    let all = embeddings(&place, &dataset, |_, _| true);
    let some = embeddings(&place, &dataset, |source, target| split.role(source, target) == LinkRole::Train);
    assert!(all.iter().zip(&some).filter(|(all, some)| all != some).count() > 40);
    for (options, rows) in [
        ("", &some),
        ("--edges training", &some),
        ("--edges all", &all),
        ("--data graph.npz", &all),
        ("--data graph.npz --edges all", &all),
        ("--data graph.npz --edges training --workers 2", &some),
    ] {
        place.json(&format!("predict run --pairs pairs.csv --out scores.jsonl --force {options}"));
        assert_scores(&place, "scores.jsonl", rows, options);
    }
    place.refused(
        "predict run --pairs pairs.csv --out s.csv --edges given",
        2,
        &["hold out no edges", "--edges given"],
    );
}

/// What is said of the run's own held-out edges is what the run itself has said.
#[test]
fn held_out_edges_of_the_runs_own_data_have_the_figures_of_its_summary() {
    let (place, dataset) = trained();
    let summary = place.json("train run.toml --out run --force");
    let split = EdgeSplit { val: 0.1, test: 0.2, seed: 4 };
    for options in ["", "--workers 1", "--data graph.npz --edges training"] {
        let told = place.json(&format!("predict run --out held.jsonl --force {options}"));
        for part in ["val", "test"] {
            for metric in ["mrr", "hits@10", "roc_auc_exact", "loss"] {
                let [found, expected] = [&told["figures"], &summary["metrics"]].map(|of| of[part][metric].as_f64());
                let difference = found.expect("a figure") - expected.expect("a figure");
                assert!(difference.abs() < 1e-6, "{options} {part} {metric}: {difference}");
            }
            assert_eq!(told["hits_pool"][part], summary["metrics"]["hits_pool"][part]);
        }
        let held: BTreeSet<(u64, u64)> = written(&place, "held.jsonl").iter().map(|of| (of.0, of.1)).collect();
        let into =
            |target: u64| dataset.graph.in_neighbours(target as usize).iter().map(move |&s| (u64::from(s), target));
        let expected = (0..90).flat_map(into).filter(|&(s, t)| s != t && split.role(s, t) != LinkRole::Train);
        assert_eq!(held, expected.collect());
    }
    let told = place.json("predict run --best 3 --of 5 --edges all --out best.jsonl --force");
    assert!(told["figures"].as_object().expect("figures").is_empty() && told.get("hits_pool").is_none(), "{told}");
}

/// Another graph holds edges out itself: they pass no messages and are judged, edge by edge as plain code does.
#[test]
fn edges_that_other_data_hold_out_are_judged() {
    let (place, _) = trained();
    place.json("data synth sbm --nodes 120 --features 4 --classes 3 --seed 8 --out new.npz");
    let mut new = read(&place.path("new.npz"), &ReadOptions::default()).expect("a dataset");
    let role =
        |source: u64, target: u64| [0, 1, 2, 0, 0, 2][(source.min(target) * 5 + source.max(target)) as usize % 6];
    let into = |target: usize| new.graph.in_neighbours(target).iter().map(move |&s| role(s.into(), target as u64));
    new.graph.data.held = Some((0..120).flat_map(into).collect());
    write_interchange(&place.path("new.npz"), &new).expect("a file");
    let rows = embeddings(&place, &new, |source, target| role(source, target) == 0);
    let edges: Vec<(u64, u64)> = (0..120u64)
        .flat_map(|target| new.graph.in_neighbours(target as usize).iter().map(move |&s| (u64::from(s), target)))
        .collect();
    let draw = Negatives { scope: NegativeScope::Global, number: 10, own: &[], nodes: 120, types: None };
    for options in ["", "--workers 3", "--edges given"] {
        let ran = place.run(&format!("predict run --data new.npz --out held.jsonl --force {options}"));
        assert!(ran.code == 0 && ran.err.contains("pass no messages and are judged"), "{}", ran.err);
        assert_scores(&place, "held.jsonl", &rows, options);
        let told = place.json(&format!("predict run --data new.npz --out held.jsonl --force {options}"));
        let mut judged = 0;
        for (name, of) in [("val", 1), ("test", 2)] {
            let held: Vec<(u64, u64)> = edges.iter().copied().filter(|&(s, t)| role(s, t) == of).collect();
            let (mut reciprocal, mut are, mut are_not) = (0.0, Vec::new(), Vec::new());
            for &(source, target) in &held {
                let others = draw.filled(Negatives::of_evaluation(0), (source, target), |other| other != target);
                let others: Vec<f64> = others.into_iter().map(|other| score(&rows, source, other)).collect();
                are.push(score(&rows, source, target));
                let above = others.iter().filter(|&&other| other >= are[are.len() - 1]).count();
                reciprocal += 1.0 / (1 + above) as f64;
                are_not.push(others[0]);
            }
            let ordered = are.iter().map(|edge| are_not.iter().filter(|other| edge > other).count()).sum::<usize>();
            let area = ordered as f64 / (are.len() * are_not.len()) as f64;
            for (metric, expected) in [("mrr", reciprocal / held.len() as f64), ("roc_auc_exact", area)] {
                let found = told["figures"][name][metric].as_f64().expect("a figure");
                assert!((found - expected).abs() < 2e-3, "{options} {name} {metric}: {found}, not {expected}");
            }
            judged += held.len();
        }
        assert_eq!(told["pairs"], judged);
    }
    // With all edges passing messages nothing is judged, and nothing is there to be scored by itself.
    place.refused("predict run --data new.npz --edges all --out s.csv", 2, &["--pairs", "--best"]);
    let text = place.run("predict run --data new.npz --out held.jsonl --force").out;
    assert!(text.contains("\n  val ") && text.contains("mrr 0.") && text.contains("(pool of "), "{text}");
}

#[test]
fn new_targets_are_those_that_the_node_has_no_edge_to() {
    let (place, dataset) = trained();
    let is_edge = |source: u64, target: u64| dataset.graph.in_neighbours(target as usize).contains(&(source as u32));
    let leads_to = |source: u64| (0..90u64).filter(|&target| is_edge(source, target)).collect::<BTreeSet<u64>>();
    for (options, is_new) in [("--new", true), ("--new --edges all", true), ("", false)] {
        place.json(&format!("predict run --best 1000 --of 3 --of 41 --out best.jsonl --force {options}"));
        let mut listed: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (source, target, _) in written(&place, "best.jsonl") {
            listed.entry(source).or_default().insert(target);
        }
        for source in [3, 41] {
            // Held-out edges are edges.
            let known = if is_new { leads_to(source) } else { BTreeSet::new() };
            let expected: BTreeSet<u64> = (0..90).filter(|id| *id != source && !known.contains(id)).collect();
            assert_eq!(listed[&source], expected, "{options} {source}");
        }
    }
}

/// People buy items and follow people, items lead to nothing, and shops are led to by nobody.
#[test]
fn the_best_targets_are_of_types_that_edges_lead_to_from_the_sources_type() {
    let place = Place::new();
    let buys = (0..30u32).flat_map(|person| (0..4).map(move |at| (person, 30 + (person * 7 + at * 11) % 40)));
    let follows = (0..30u32).map(|person| (person, (person + 3) % 30));
    let edges: Vec<(u32, u32)> = buys.chain(follows).collect();
    let graph = Graph::from_edges(80, &edges).expect("edges");
    let of: Vec<u16> = (0..80).map(|node| if node < 30 { 0 } else { 1 + u16::from(node >= 70) }).collect();
    let given = Features::Dense { columns: 2, values: (0..160).map(|at| (at % 7) as f32).collect() };
    let names = ["person", "item", "shop"].map(str::to_owned).into();
    let (features, types, columns) = beside(&apart(&given, &[], &of, names), &of);
    let mut dataset = Dataset::new("shop", graph, Features::None, Labels::None, vec![]).expect("a dataset");
    (dataset.features, dataset.about.node_types, dataset.about.features) = (features, types, columns);
    write_interchange(&place.path("graph.npz"), &dataset).expect("a file");
    place.write("run.toml", &RUN.replace("\"graph.npz\"", "\"graph.npz\", typed = true"));
    place.json("train run.toml --out run");
    place.json("predict run --best 1000 --of 4 --of 50 --of 75 --out best.jsonl");
    let listed = |source: u64| {
        let of_source = written(&place, "best.jsonl").into_iter().filter(|of| of.0 == source);
        of_source.map(|of| of.1).collect::<BTreeSet<u64>>()
    };
    assert_eq!(listed(4), (0..70).filter(|&id| id != 4).collect(), "people and items");
    // No edge leads from items and shops: nobody knows what could.
    assert_eq!(listed(50), (0..80).filter(|&id| id != 50).collect());
    assert_eq!(listed(75), (0..80).filter(|&id| id != 75).collect());
}

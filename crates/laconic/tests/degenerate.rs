//! What is said of figures that will not be defined before anything runs, and of models that answer everything alike.

mod program;

use program::Place;
use serde_json::Value;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[model]\nhidden = 8\n[train]\nepochs = 3\n";
const NODES: usize = 60;

/// A graph whose nodes have a feature, a class and a place in the split each.
fn place(feature: fn(usize) -> usize, class: fn(usize) -> &'static str) -> Place {
    let place = Place::new();
    place.write("run.toml", RUN);
    let node = |node: usize| format!("{node},{},{},{}\n", feature(node), class(node), split(node));
    place.write("nodes.csv", &format!("id,x,class,split\n{}", (0..NODES).map(node).collect::<String>()));
    let pairs = |a: usize| (1..4).map(move |by| format!("{a},{}\n", (a + by) % NODES));
    place.write("edges.csv", &format!("source,target\n{}", (0..NODES).flat_map(pairs).collect::<String>()));
    place.json("data convert edges.csv --nodes nodes.csv --symmetrise --out graph.npz");
    place
}

fn split(node: usize) -> &'static str {
    ["train", "val", "test", "train"][node % 4]
}

fn words(value: &Value) -> String {
    value.as_array().expect("a list").iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn figures_that_will_not_be_defined_are_warned_of_before_anything_runs() {
    let place = place(|node| node % 5, |node| if node % 4 == 0 && node % 8 == 0 { "b" } else { "a" });
    let metrics = "--set train.metrics=[\"roc_auc\",\"macro_f1\"]";
    let area = |split: &str| format!("roc_auc of {split} will not be defined: all 15 nodes are of class 0");
    let f1 = "macro_f1 of test leaves out classes that none of its nodes has, unless they are predicted: 1";
    let check = place.json("data check graph.npz");
    let findings = words(&check["findings"]);
    let plan = words(&place.json(&format!("plan run.toml {metrics}"))["notes"]);
    let summary = place.json(&format!("train run.toml {metrics} --out run"));
    let trained = words(&summary["notes"]);
    for said in [&findings, &plan, &trained] {
        assert!(said.contains(&area("validation")) && said.contains(&area("test")) && said.contains(f1), "{said}");
    }
    assert!(summary["metrics"]["test"]["roc_auc"].is_null());
    // Nobody asks for areas, so nobody is warned.
    let plan = place.run("plan run.toml");
    assert!(!(plan.out + &plan.err).contains("roc_auc"));
    // Parts in a folder say it, too, where all of them are read.
    place.json("partition graph.npz --parts 3 --out parts");
    let links = "--set task.kind=link_prediction --set task.split={val=0,test=0.2,seed=1} \
        --set train.metrics=hits@100";
    for data in ["graph.npz", "parts"] {
        let plan = place.json(&format!("plan run.toml --set data.path={data} {links}"));
        let said = words(&plan["notes"]);
        assert!(said.contains("no edge is held out for validation, so there will be no figure of it"), "{said}");
        assert!(said.contains("hits@100 of test cannot be defined: its pool has"), "{said}");
    }
    let summary = place.json(&format!("train run.toml {links} --out links"));
    assert!(summary["metrics"]["test"]["hits@100"].is_null(), "{summary}");
    assert!(words(&summary["notes"]).contains("hits@100 of test cannot be defined"), "{summary}");
}

#[test]
fn a_model_that_gives_all_nodes_one_class_is_said_to() {
    // All nodes look alike to a model that reads no edges.
    let place = place(|_| 7, |node| if node % 3 == 0 { "dear" } else { "cheap" });
    let mlp = "--set model.arch=mlp --set train.metrics=accuracy --set train.epochs=60 --set train.lr=0.05";
    let summary = place.json(&format!("train run.toml {mlp} --out run"));
    let test = summary["metrics"]["test"]["accuracy"].as_f64().expect("a figure");
    let notes = words(&summary["notes"]);
    assert_eq!(test, (0..NODES).filter(|&node| split(node) == "test" && node % 3 > 0).count() as f64 / 15.0);
    let one = "predicts one class (cheap) for all 15 test nodes";
    let worth = format!("accuracy of test is {test:.4}, no better than {test:.4}, the best answer that is the same");
    assert!(notes.contains(one) && notes.contains(&worth), "{notes}");
    assert!(words(&summary["metrics"]["notes"]).contains(one));
    let ran = place.run(&format!("train run.toml {mlp} --out again"));
    assert!(ran.out.contains(&format!("note: {one}")), "{}", ran.out);
    place.json("report run --out page.html");
    assert!(std::fs::read_to_string(place.path("page.html")).expect("a page").contains(one));
    let predicted = place.json("predict run --out all.csv");
    assert!(words(&predicted["notes"]).contains("predicts one class (cheap) for all 60 nodes"), "{predicted}");
    assert!(place.run("predict run --out again.csv").err.contains("note: predicts one class (cheap)"));
    // One that reads features that tell classes apart is said nothing of.
    let told = self::place(|node| node % 3, |node| if node % 3 == 0 { "dear" } else { "cheap" });
    let summary = told.json("train run.toml --set model.arch=mlp --set train.epochs=200 --set train.lr=0.05 --out run");
    let notes = summary["notes"].as_array().map(|_| words(&summary["notes"])).unwrap_or_default();
    assert!(!notes.contains("predicts") && !notes.contains("no better"), "{notes}");
    assert_eq!(told.json("predict run --out all.csv")["notes"], Value::Array(Vec::new()));
}

#[test]
fn links_whose_scores_are_all_the_same_are_said_to_be_no_better() {
    let place = place(|_| 7, |_| "a");
    let links = "--set task.kind=link_prediction --set model.arch=mlp --set task.split={val=0.2,test=0.2,seed=1}";
    for metric in ["roc_auc", "mrr", "hits@10"] {
        let summary = place.json(&format!("train run.toml {links} --set train.metrics={metric} --out {metric}"));
        let notes = words(&summary["notes"]);
        let figure = summary["metrics"]["test"][metric].as_f64().expect("a figure");
        let said = format!("{metric} of test is {figure:.4}, no better than {figure:.4}, scores that are the same");
        assert!(notes.contains(&said), "{notes}");
    }
    place.write("pairs.csv", "source,target\n0,1\n5,9\n");
    let ran = place.run("predict mrr --pairs pairs.csv --out scores.csv");
    assert!(ran.err.contains("note: all 2 scores are the same, so their order says nothing"), "{}", ran.err);
}

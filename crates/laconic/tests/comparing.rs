//! What a comparison can be asked: grids, seeds of everything, a plan, tables, and what its figures stand for.

mod program;

use std::path::{Path, PathBuf};

use program::Place;
use serde_json::Value;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[model]\nhidden = 16\n[train]\nepochs = 5\n";
const COMPARE: &str = "compare run.toml --runs methods.toml --out both";

fn place(methods: &str) -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 400 --features 8 --out graph.npz");
    place.write("run.toml", RUN);
    place.write("methods.toml", methods);
    place
}

fn names(found: &Value) -> Vec<&str> {
    found["methods"].as_array().expect("methods").iter().map(|line| line["name"].as_str().expect("a name")).collect()
}

fn number(line: &Value, name: &str) -> f64 {
    line[name].as_f64().unwrap_or_else(|| panic!("{name} in {line}"))
}

fn text(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).expect("a file")
}

#[test]
fn a_plan_says_what_every_method_will_send_and_runs_nothing() {
    let methods = "link = \"wan-20mbit-80ms\"\n[[method]]\nname = \"standard\"\n[[method]]\nname = \"lazy\"\n\
        set = [\"schedule.kind=lazy\"]\n[[method]]\nname = \"adaptive\"\n\
        set = ['messages.forward={codec=\"quantised\",bits=\"adaptive\"}']\n";
    let place = place(&format!("seeds = [0, 1]\n{methods}"));
    let plan = place.json(&format!("{COMPARE} --plan"));
    let text = place.run(&format!("{COMPARE} --plan --quiet")).out;
    assert!(!place.path("both").exists(), "a plan leaves nothing behind");
    let found = place.json(COMPARE);
    assert_eq!((plan["runs"].as_u64(), names(&plan)), (Some(6), vec!["standard", "lazy", "adaptive"]));
    for (planned, line) in plan["methods"].as_array().expect("methods").iter().zip(found["methods"].as_array().unwrap())
    {
        let is_bound = planned["is_bound"].as_bool().expect("a truth");
        assert_eq!(is_bound, line["name"] == "adaptive");
        for name in ["boundary", "parameters", "evaluation", "start_up", "training", "bytes"] {
            let (planned, sent) = (number(planned, name), number(line, name));
            assert!(if is_bound { sent <= planned } else { sent == planned }, "{name}: {sent} of {planned}");
        }
        assert!(is_bound || planned["fewer"] == line["fewer"], "{planned}");
        // The plan knows all parts, the run's own account one worker's.
        assert_eq!(planned["account"], line["account"], "{planned}");
        assert_eq!(planned["account"]["saw_models"], "peers", "{planned}");
        let alone = place.json("plan run.toml --set schedule.kind=synchronous");
        let of = |plan: &Value| plan["seconds_on_links"].as_array().expect("links").len();
        assert!(of(planned) >= of(&alone).min(9));
    }
    let leaves = |method: usize| plan["methods"][method]["leaves"].to_string();
    assert!(leaves(0).contains("hidden_rows") && leaves(0).contains("gradients_of_rows"), "{}", leaves(0));
    assert!(!leaves(1).contains("gradients_of_rows"), "rows are frozen: {}", leaves(1));
    assert!(text.contains("leaves: lazy: features, hidden_rows"), "{text}");
    assert!(text.contains(" ..FSM ") && text.contains("saw: who saw"), "{text}");
    assert!(text.contains("wan-20mbit-80ms") && text.contains("≥") && text.contains("6 runs"), "{text}");
}

#[test]
fn a_sweep_is_a_method_for_every_combination() {
    let sweep = "[[sweep]]\nname = \"lazy, {bits} bits\"\n\
        set = [\"schedule.kind=lazy\", 'messages.forward={codec=\"quantised\"}']\n\
        over = { \"messages.forward.bits\" = [2, 8], \"train.lr\" = [0.01, 0.003] }\n";
    let place = place(&format!("baseline = \"plain\"\n{sweep}[[method]]\nname = \"plain\"\n"));
    let found = place.json(COMPARE);
    let lazy = ["2 bits, lr 0.01", "2 bits, lr 0.003", "8 bits, lr 0.01", "8 bits, lr 0.003"];
    let lazy = lazy.map(|end| format!("lazy, {end}"));
    assert_eq!(names(&found)[1..], lazy);
    assert_eq!((&found["baseline"], number(&found["methods"][0], "fewer")), (&"plain".into(), 1.0));
    let summary: Value =
        serde_json::from_str(&text(&place, "both/runs/lazy-8-bits-lr-0-003/seed-0/summary.json")).unwrap();
    assert_eq!(summary["config"]["messages"]["forward"]["bits"], 8.0);
    assert!((number(&summary["config"]["train"], "lr") - 0.003).abs() < 1e-6);
    let many = |count: usize| format!("[[sweep]]\nover = {{ \"train.epochs\" = {:?} }}\n", vec![1; count]);
    for (methods, words) in [
        (many(1001), &["methods.toml", "1000"][..]),
        (many(2), &["two methods"]),
        ("[[sweep]]\nover = { \"data.path\" = [\"x\"] }\n".to_owned(), &["data.path", "one graph"]),
        ("[[sweep]]\nover = { \"train.epocs\" = [1] }\n".to_owned(), &["train.epocs", "did you mean"]),
        ("baseline = \"x\"\n[[method]]\nname = \"y\"\n".to_owned(), &["baseline", "\"x\""]),
    ] {
        place.write("methods.toml", &methods);
        place.refused(COMPARE, 2, words);
    }
}

/// Each run is the one that `train` would do with the same seeds, whatever it shares with others.
#[test]
fn seeds_of_partition_and_split_are_runs_of_their_own() {
    let seeds = "seeds = { train = [0, 1], partition = [3], split = [5, 6] }\n";
    let place = place(&format!("{seeds}[[method]]\nname = \"plain\"\n"));
    let split = "--set data.split={train=0.5,val=0.2}";
    let found = place.json(&format!("{COMPARE} {split}"));
    let runs = found["methods"][0]["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 4);
    let run = &runs[3];
    assert_eq!((&run["seed"], &run["partition_seed"], &run["split_seed"]), (&1.into(), &3.into(), &6.into()));
    assert_eq!(run["folder"], "runs/plain/seed-1-partition-3-split-6");
    let keys = "--set data.split={train=0.5,val=0.2,seed=6} --set partition.seed=3 --set train.seed=1";
    let alone = place.json(&format!("train run.toml --out alone {keys}"));
    let path = format!("both/{}/summary.json", run["folder"].as_str().expect("a folder"));
    let summary: Value = serde_json::from_str(&text(&place, &path)).expect("JSON");
    assert_eq!((&summary["parameters"], &summary["bytes"]), (&alone["parameters"], &alone["bytes"]));
    assert!(!place.path("both/.parts").exists(), "the parts are gone");
    let again = place.run(&format!("{COMPARE} {split}"));
    assert_eq!(again.err.matches(": kept").count(), 4, "{}", again.err);
    place.json("report both --out page.html");
    assert!(text(&place, "page.html").contains("plain, seed 1, partition 3, split 6"), "runs are told apart");
    place.refused(COMPARE, 2, &["seeds.split", "data.split"]);
}

#[test]
fn tables_hold_every_run_and_the_means_and_say_when_seeds_are_too_few() {
    let methods =
        "[[method]]\nname = \"a, \\\"b\\\" & c_d\"\n[[method]]\nname = \"lazy\"\nset = [\"schedule.kind=lazy\"]\n";
    let place = place(methods);
    let found = place.json(&format!("{COMPARE} --seeds 6"));
    let csv = text(&place, "both/compare.csv");
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 1 + 12);
    assert!(rows[0].starts_with("method,seed,partition_seed,split_seed,accuracy,boundary,"), "{csv}");
    assert!(rows[1].starts_with("\"a, \"\"b\"\" & c_d\",0,,,"), "{csv}");
    let run = &found["methods"][1]["runs"][5];
    let fields: Vec<&str> = rows[12].split(',').collect();
    assert_eq!(fields[4].parse::<f64>().expect("a number"), number(run, "test"));
    assert_eq!((fields[5], fields[8]), (run["boundary"].to_string().as_str(), run["start_up"].to_string().as_str()));
    let against = &found["methods"][1]["against"];
    let differences: Vec<f64> = (0..6)
        .map(|seed| {
            number(&found["methods"][1]["runs"][seed], "test") - number(&found["methods"][0]["runs"][seed], "test")
        })
        .collect();
    let sum = |signs: u32| {
        (0..6).map(|i| if signs >> i & 1 == 1 { -differences[i] } else { differences[i] }).sum::<f64>().abs()
    };
    let far = (0..64).filter(|signs| sum(*signs) >= sum(0) - 1e-12).count();
    assert_eq!((number(against, "p"), number(against, "p_least")), (far as f64 / 64.0, 1.0 / 32.0));
    assert!((number(against, "difference") - differences.iter().sum::<f64>() / 6.0).abs() < 1e-12);
    assert_eq!(found["methods"][0]["against"], Value::Null);
    let (markdown, tex) = (text(&place, "both/compare.md"), text(&place, "both/compare.tex"));
    // Means in per cent, the best of them in bold; bytes of all methods in the unit of the largest.
    let means = [0, 1].map(|method| number(&found["methods"][method]["test"], "mean"));
    let spread = |method: usize, plus_minus: &str| format!("{:.2} {plus_minus} ", 100.0 * means[method]);
    assert!(means[0] > means[1], "{means:?}");
    assert!(markdown.contains(&format!("| 6 | **{}", spread(0, "±"))), "{markdown}");
    assert!(markdown.contains(&format!("| lazy | 6 | {}", spread(1, "±"))), "{markdown}");
    assert!(tex.contains(&format!("a, \"b\" \\& c\\_d & 6 & \\textbf{{{}", spread(0, "$\\pm$"))), "{tex}");
    assert!(tex.contains(&format!("lazy & 6 & {}", spread(1, "$\\pm$"))), "{tex}");
    assert_eq!(tex.matches("\\\\").count(), 3);
    let most = found["methods"].as_array().expect("methods").iter().map(|line| number(line, "bytes"));
    let unit = if most.fold(0.0, f64::max) < 1e6 { "kB" } else { "MB" };
    assert!(tex.contains(&format!("boundary ({unit}) & parameters ({unit})")), "{tex}");
    let (nodes, edges) = (&found["graph"]["nodes"], &found["graph"]["edges"]);
    let (share, parts) = (number(&found["methods"][0], "edge_cut"), found["graph"]["parts"].as_array().expect("parts"));
    let said = format!("{nodes} nodes, {edges} edges), {} parts by random, {:.1} ", parts.len(), 100.0 * share);
    assert!(tex.replace(',', "").contains(&said.replace(',', "")), "{said}: {tex}");
    let few = place.run(&format!("{COMPARE} --seeds 5 --quiet")).out;
    assert!(few.contains("n too small"), "{few}");
}

#[test]
fn what_an_answer_without_a_model_reaches_is_on_no_front() {
    // Nothing is learned in one round at this rate, so the class is the same for all nodes.
    let frozen = "[[method]]\nname = \"frozen\"\n\
        set = [\"schedule.kind=lazy\", \"train.epochs=1\", \"train.lr=1e-30\", \"model.hidden=1\"]\n";
    let place = place(&format!("[[method]]\nname = \"learned\"\nset = [\"train.epochs=60\"]\n{frozen}"));
    place.json("data synth sbm --nodes 400 --classes 2 --features 8 --feature-signal 0 --out graph.npz --force");
    let found = place.json(COMPARE);
    let (learned, constant) = (&found["methods"][0], number(&found, "constant"));
    assert!((0.5..0.7).contains(&constant), "{constant}");
    let marked = |line: &Value| (line["is_constant"].as_bool(), number(&line["test"], "mean") <= constant + 1e-9);
    for line in found["methods"].as_array().expect("methods") {
        let (is_constant, is_no_better) = marked(line);
        assert_eq!(is_constant, Some(is_no_better), "{line}");
        assert!(!is_no_better || (line["front"] == false && line["front_by_seconds"] == false), "{line}");
    }
    assert_eq!(
        (&learned["is_constant"], &found["methods"][1]["is_constant"]),
        (&false.into(), &true.into()),
        "{found}"
    );
}

/// The memory of a run does not depend on what ran before it: a small one after a large one takes little.
#[test]
fn memory_is_that_of_the_run() {
    let wide = "[[method]]\nname = \"wide\"\nset = [\"model.hidden=1024\", \"train.epochs=2\"]\n";
    let narrow = "[[method]]\nname = \"narrow\"\nset = [\"model.hidden=8\", \"train.epochs=2\"]\n";
    let place = place(&format!("{wide}{narrow}"));
    place.json("data synth sbm --nodes 5000 --features 8 --out graph.npz --force");
    let found = place.json(COMPARE);
    let memory = [0, 1].map(|index| number(&found["methods"][index], "memory"));
    assert!(memory[0] > memory[1] + 50e6, "{memory:?}");
    let failing =
        "[[method]]\nname = \"hot\"\nset = [\"train.lr=1e30\", \"train.optimiser=sgd\", \"train.epochs=9\"]\n";
    place.write("methods.toml", failing);
    place.refused("compare run.toml --runs methods.toml --out hot", 6, &["hot, seed 0", "round"]);
    place.refused("compare-run", 2, &["standard input"]);
}

/// Each file of methods in the examples is one that `compare` takes.
#[test]
fn every_file_of_methods_in_the_examples_is_planned() {
    let place = Place::new();
    place.json("data synth sbm --nodes 400 --features 8 --classes 4 --train 0.5 --val 0.25 --out graph.npz");
    let run =
        "[data]\npath = \"graph.npz\"\n[partition]\nparts = 4\n[train]\nepochs = 200\n[policy]\nallow = [\"labels\"]\n";
    place.write("run.toml", run);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/methods");
    let mut files: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 15, "{files:?}");
    for file in files {
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let more = match name.as_str() {
            // Methods of three layers, and of one schedule.
            "batches.toml" => " --set model.layers=3",
            "hand_on.toml" => " --set schedule.kind=lazy",
            _ => "",
        };
        place.write(&name, &std::fs::read_to_string(&file).unwrap());
        let planned = place.run(&format!("compare run.toml --runs {name} --plan --quiet{more}"));
        assert_eq!(planned.code, 0, "{name}: {}", planned.err);
    }
}

/// The papers' methods are known, cost what their papers say of one another, and run.
#[test]
fn the_methods_of_papers_plan_and_run_on_a_generated_graph() {
    let place = Place::new();
    place.json("data synth sbm --nodes 600 --classes 4 --features 64 --out papers.npz");
    place.write("run.toml", include_str!("../../../examples/configs/papers_run.toml"));
    place.write("papers.toml", include_str!("../../../examples/methods/papers.toml"));
    let compare = "compare run.toml --runs papers.toml --out papers";
    let plan = place.json(&format!("{compare} --plan"));
    let line = |found: &Value, name: &str| {
        let lines = found["methods"].as_array().expect("methods");
        lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    let boundary = |name: &str| number(&line(&plan, name), "boundary");
    let standard = boundary("standard");
    assert!(30.0 * boundary("RETEXO") < standard && boundary("RETEXO, from scores") < boundary("RETEXO"));
    assert!(4.0 * boundary("BNS-GCN") < standard && boundary("PSGD-PA") == 0.0);
    for name in ["PipeGCN", "PipeGCN-GF", "SANCUS"] {
        assert!(boundary(name) >= standard, "{name}: rows of every round cross");
    }
    for (name, is_bound) in [("AdaQP", true), ("SANCUS", true), ("VARCO", false), ("PipeGCN", false)] {
        assert_eq!(line(&plan, name)["is_bound"], is_bound, "{name}");
    }
    assert_eq!(names(&plan).len(), 14);
    // Each cut is made as its methods ask for it: what SuperTMA's clusters keep is more than random nodes keep.
    let cut = |name: &str| number(&line(&plan, name), "edge_cut");
    assert!(cut("PSGD-PA") < cut("SuperTMA") && cut("SuperTMA") < cut("RandomTMA"), "{plan}");
    assert_eq!(cut("RandomTMA"), cut("standard"));
    // Without the file, and whatever the case: those that were asked for, in that order.
    let picked = place.json("compare run.toml --methods varco,Standard --out papers --plan");
    assert_eq!(names(&picked), ["VARCO", "standard"]);
    assert_eq!(number(&line(&picked, "VARCO"), "boundary"), boundary("VARCO"));
    place.refused("compare run.toml --methods metis --plan", 2, &["\"metis\"", "RETEXO | "]);
    place.refused("compare run.toml --methods AdaPQ --plan", 2, &["\"AdaPQ\"", "did you mean \"AdaQP\"?"]);
    let found = place.json(&format!("{compare} --seeds 1 --set train.epochs=2"));
    for line in found["methods"].as_array().expect("methods") {
        assert_eq!(line["runs"].as_array().expect("runs").len(), 1, "{line}");
        assert!(number(&line["test"], "mean") > 0.0, "{line}");
    }
}

/// A method on a cut of its own is the run that `train` does on that cut, each cut is made once, and tables say which.
#[test]
fn methods_may_have_cuts_of_their_own_and_tables_say_which() {
    let methods = "[[method]]\nname = \"plain\"\n\
        [[method]]\nname = \"metis\"\nset = [\"partition.method=multilevel\"]\n\
        [[method]]\nname = \"one\"\nset = [\"partition.parts=1\"]\n[[method]]\nname = \"lazy\"\n\
        set = [\"schedule.kind=lazy\"]\n";
    let place = place(methods);
    let found = place.json(&format!("{COMPARE} --seeds 2"));
    let line = |index: usize| &found["methods"][index];
    let cuts = [0, 1, 2, 3].map(|index| line(index)["partition"].as_str().expect("a cut").to_owned());
    assert!(cuts[1].ends_with("by multilevel") && cuts[2].starts_with("1 part ") && cuts[3] == cuts[0], "{cuts:?}");
    assert_eq!((number(line(2), "edge_cut"), number(line(2), "boundary")), (0.0, 0.0));
    for (index, keys) in [(1, "--set partition.method=multilevel"), (2, "--set partition.parts=1")] {
        let alone = place.json(&format!("train run.toml --out alone-{index} {keys} --set train.seed=1"));
        let path = format!("both/{}/summary.json", line(index)["runs"][1]["folder"].as_str().expect("a folder"));
        let summary: Value = serde_json::from_str(&text(&place, &path)).expect("JSON");
        assert_eq!((&summary["parameters"], &summary["bytes"]), (&alone["parameters"], &alone["bytes"]), "{keys}");
    }
    let measured = place.json("partition graph.npz --parts 3 --method multilevel --measure");
    assert!((number(&measured, "cut_share") - number(line(1), "edge_cut")).abs() < 1e-12, "{measured}");
    let table = place.run(&format!("{COMPARE} --seeds 2")).out;
    let row = table.lines().find(|row| row.starts_with("metis")).expect("a row");
    assert!(row.ends_with(&format!("by multilevel, {:.1} %", 100.0 * number(line(1), "edge_cut"))), "{table}");
    let left: Vec<_> = std::fs::read_dir(place.path("both")).expect("a folder").flatten().collect();
    assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().starts_with(".parts")), "{left:?}");
    place.json("report both --out page.html");
    assert!(text(&place, "page.html").contains("by multilevel"));
    // What is cut already cannot be cut anew.
    place.json("partition graph.npz --parts 2 --out cut");
    place.refused(&format!("{COMPARE} --set data.path=cut"), 2, &["method \"one\"", "cut", "name the dataset"]);
}

/// The tutorial's list of methods is one that can be pasted.
#[test]
fn the_methods_of_the_tutorial_can_be_compared() {
    let tutorial = include_str!("../../../docs/tutorial.md");
    let (_, after) = tutorial.split_once("`methods.toml`:\n\n```toml\n").expect("a list of methods");
    let (methods, _) = after.split_once("```").expect("its end");
    let place = place(methods);
    let plan = place.json(&format!("{COMPARE} --plan --set schedule.kind=lazy"));
    assert_eq!(names(&plan), ["standard", "a tenth of the boundary", "lazy", "lazy, 2 bits", "lazy, 4 bits"]);
    let training = |index: usize| number(&plan["methods"][index], "training");
    assert!(training(0) > training(2) && training(2) > training(4) && training(4) > training(3), "{plan}");
}

#[test]
fn runs_on_another_cut_into_parts_of_the_same_sizes_are_not_kept() {
    let place = Place::new();
    place.json("data synth sbm --nodes 60 --features 4 --classes 2 --degree-max 20 --out g.npz");
    let owners = |part: fn(usize) -> usize| (0..60).map(|node| format!("{}\n", part(node))).collect::<String>();
    place.write("a.txt", &owners(|node| node % 2));
    place.write("b.txt", &owners(|node| usize::from(node < 30)));
    place.write("run.toml", "[data]\npath = \"parts\"\n[model]\nhidden = 4\n[train]\nepochs = 2\n");
    place.write("methods.toml", "[[method]]\nname = \"standard\"\n");
    for (file, code) in [("a.txt", 0), ("b.txt", 2)] {
        place.json(&format!("partition g.npz --parts 2 --method given --file {file} --out parts --force"));
        let compare = "compare run.toml --runs methods.toml --out compared";
        match code {
            0 => drop(place.json(compare)),
            _ => place.refused(compare, code, &["another cut of g", "--out"]),
        }
    }
}

/// Fronts, tests and `chance` go by the loss where a figure would be 0/0, and no file has a number in its place.
#[test]
fn a_figure_that_is_not_defined_is_a_dash_and_leaves_the_comparison_to_the_loss() {
    let methods = "[[method]]\nname = \"long\"\n[[method]]\nname = \"short\"\nset = [\"train.epochs=2\"]\n";
    let place = place(methods);
    // All nodes that are tested are of one class.
    let split = |node: usize| if node % 4 < 2 { "train" } else { ["val", "test"][node % 2] };
    let class = |node: usize| if split(node) == "train" { node % 2 } else { 0 };
    let node = |node: usize| format!("{node},{},{},{}\n", node % 5, class(node), split(node));
    place.write("nodes.csv", &format!("id,x,class,split\n{}", (0..60).map(node).collect::<String>()));
    let pairs = |a: usize| (1..4).map(move |by| (a, (a + by) % 60));
    let edges: String = (0..60).flat_map(pairs).map(|(a, b)| format!("{a},{b}\n")).collect();
    place.write("edges.csv", &format!("source,target\n{edges}"));
    place.json("data convert edges.csv --nodes nodes.csv --symmetrise --out graph.npz --force");
    // Everybody is everybody's neighbour, so no pair is left that is none.
    let pairs = (0..12).flat_map(|a| (0..12).filter(move |b| a != *b).map(move |b| format!("{a},{b}\n")));
    place.write("all.csv", &format!("source,target\n{}", pairs.collect::<String>()));
    let nodes: String = (0..12).map(|node| format!("{node},{}\n", node % 5)).collect();
    place.write("twelve.csv", &format!("id,x\n{nodes}"));
    place.json("data convert all.csv --nodes twelve.csv --out all.npz");
    let links = "--set data.path=all.npz --set task.kind=link_prediction --set task.filter_negatives=true \
        --set task.split={val=0.2,test=0.2,seed=1} --set train.metrics=mrr";
    for (out, keys, metric, noun) in
        [("nodes", "--set train.metrics=roc_auc", "roc_auc", "nodes"), ("links", links, "mrr", "edges")]
    {
        let compare = format!("compare run.toml --runs methods.toml --seeds 6 --out {out} {keys}");
        let found = place.json(&compare);
        assert_eq!((&found["metric"], &found["judged_by"]), (&metric.into(), &"loss".into()), "{found}");
        let lines = found["methods"].as_array().expect("methods");
        let loss = |line: &Value| number(&line["loss"], "mean");
        let bytes = |line: &Value| number(line, "training");
        for line in lines {
            assert!(line["test"].is_null() && line["runs"][0]["test"].is_null(), "{line}");
            let beats = |other: &Value| {
                let [a, b] = [other, line].map(|line| (loss(line), bytes(line)));
                a.0 <= b.0 && a.1 <= b.1 && a != b
            };
            let beaten = lines.iter().any(beats);
            assert_eq!(line["front"].as_bool(), Some(!beaten), "{found}");
            let path = format!("{out}/{}/summary.json", line["runs"][0]["folder"].as_str().expect("a folder"));
            let summary: Value = serde_json::from_str(&text(&place, &path)).expect("JSON");
            assert_eq!(summary["metrics"]["test"]["loss"], line["runs"][0]["loss"]);
        }
        let difference = loss(&lines[1]) - loss(&lines[0]);
        assert!((number(&lines[1]["against"], "difference") - difference).abs() < 1e-9, "{found}");
        let said = format!("{metric} of test {noun} is not defined in 12 of 12 runs, so fronts, p and chance go by");
        let table = place.run(&format!("{compare} --quiet")).out;
        assert!(table.contains(&said) && table.contains("front: of loss and bytes"), "{table}");
        let csv = text(&place, &format!("{out}/compare.csv"));
        assert!(csv.lines().skip(1).all(|row| row.split(',').nth(4) == Some("-")), "{csv}");
        for file in ["compare.md", "compare.tex"] {
            let table = text(&place, &format!("{out}/{file}"));
            assert!(table.contains("-, loss ") && !table.contains("NaN") && table.contains("not defined"), "{table}");
        }
        place.json(&format!("report {out} --out page.html"));
        assert!(text(&place, "page.html").contains("is not defined in 12 of 12 runs"));
    }
}

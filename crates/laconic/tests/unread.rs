//! What data hold and a model does not read, or cannot: said before anything runs, at every command that meets it.

mod program;

use program::Place;

const RUN: &str = "[data]\npath = \"edges.csv\"\nnodes_path = \"nodes.csv\"\n[partition]\nparts = 2\n\
                   [model]\nhidden = 8\n[train]\nepochs = 2\n";

/// The same of data that no table of nodes stands beside.
fn of(path: &str) -> String {
    RUN.replace("edges.csv", path).replace("nodes_path = \"nodes.csv\"\n", "")
}

/// A ring of twelve nodes and chords, whose first edges weigh what is given and all others 2.
fn place(weights: &[&str]) -> Place {
    let place = Place::new();
    place.write("run.toml", RUN);
    place.write("nodes.csv", &nodes("x,y"));
    place.write("edges.csv", &edges(weights));
    place
}

fn nodes(columns: &str) -> String {
    let row = |id: usize| format!("{id},{},{},{},{}\n", id % 3, id * id % 7, id % 5, ["train", "val", "test"][id % 3]);
    format!("id,label,{columns},split\n") + &(0..12).map(row).collect::<String>()
}

fn edges(weights: &[&str]) -> String {
    let ends = (0..12).flat_map(|id| [(id, (id + 1) % 12), (id, (id + 5) % 12)]);
    let weights = weights.iter().copied().chain(std::iter::repeat("2"));
    let row = |((source, target), weight)| format!("{source},{target},{weight}\n");
    "source,target,weight\n".to_owned() + &ends.zip(weights).map(row).collect::<String>()
}

#[test]
fn weights_that_a_layer_does_not_read_are_said_once_by_plan_train_and_predict() {
    let place = place(&["0.5"]);
    for keys in ["model.arch=gat", "model.arch=sage --set model.aggregator=max", "model.arch=mlp"] {
        let what = if keys.ends_with("mlp") { "reads no edges" } else { "reads no weights of edges" };
        for command in ["plan run.toml", "train run.toml --out run --force"] {
            let ran = place.run(&format!("{command} --set {keys}"));
            assert!(ran.code == 0 && ran.err.matches(what).count() == 1, "{command} {keys}: {}", ran.err);
        }
        let ran = place.run("predict run --out p.csv --force");
        assert!(ran.code == 0 && ran.err.matches(what).count() == 1, "{keys}: {}", ran.err);
    }
    for arch in ["gcn", "gin", "sage"] {
        let ran = place.run(&format!("train run.toml --out other --set model.arch={arch}"));
        assert!(ran.code == 0 && !ran.err.contains("reads no"), "{arch}: {}", ran.err);
    }
}

#[test]
fn edges_that_only_what_is_told_reads_do_not_count_for_nothing() {
    let place = place(&["0.5"]);
    let said = |keys: &str| place.run(&format!("plan run.toml --set model.arch=mlp {keys}")).err;
    let alone = said("");
    assert!(alone.contains("the 24 edges of these data, with their weights, count for nothing"), "{alone}");
    let told = said("--set model.inputs=[\"features\",\"propagated\"]");
    assert!(told.contains("without their weights, are read for model.inputs alone (propagated)"), "{told}");
}

/// At node 1 the sum is -1.5 + 2, at node 5 it is -2 + 2; with a loop of 1 none is lost, without one node 5 is.
#[test]
fn negative_weights_are_refused_by_layers_that_divide_by_their_sum() {
    let place = place(&["-1.5", "-2"]);
    let all = ["plan run.toml", "train run.toml --out run", "verify run.toml"];
    for (arch, lost) in [("gcn", "0 of 12"), ("sage", "1 of 12"), ("rgcn", "1 of 12")] {
        for command in all {
            let named = format!("model.arch = \"{arch}\"");
            let count = format!("at {lost} nodes");
            let words = [named.as_str(), "2 of the 24 edges", "negative weights", &count, "(gin)", "(gat)"];
            place.refused(&format!("{command} --set model.arch={arch}"), 2, &words);
        }
    }
    for set in ["batch.size=2", "data.inductive=true", "schedule.kind=averaging", "train.precision=bf16"] {
        place.refused(&format!("train run.toml --out run --set {set}"), 2, &["negative weights"]);
    }
    assert!(!place.path("run").exists(), "what is refused begins no folder");
    for keys in ["gin", "gat", "sage --set model.aggregator=max"] {
        place.json(&format!("train run.toml --out {} --set model.arch={keys}", &keys[..3]));
    }
    place.json("partition edges.csv --nodes nodes.csv --parts 2 --out parts");
    place.write("parts.toml", &of("parts"));
    place.refused("train parts.toml --out run", 2, &["negative weights"]);
    place.write("edges.csv", &edges(&[]));
    place.json("train run.toml --out run --set model.arch=gcn");
    place.write("new.csv", &edges(&["-1"]));
    place.refused("predict run --data new.csv --nodes nodes.csv --out p.csv", 2, &["1 of the 24 edges", "negative"]);
}

#[test]
fn weights_whose_sum_nothing_can_be_divided_by_are_refused_and_nodes_of_weight_0_are_counted() {
    for weights in [["1e-39"; 24], ["3e38"; 24]] {
        place(&weights).refused("train run.toml --out run", 2, &["12 of 12 nodes", "multiply or divide all weights"]);
    }
    let place = place(&["0", "2", "2", "2", "2", "2", "2", "2", "2", "2", "2", "2", "2", "2", "2", "2", "2", "0"]);
    for command in ["plan run.toml", "train run.toml --out run"] {
        let ran = place.run(&format!("{command} --set model.arch=sage"));
        let what = "1 of 12 nodes have edges that all weigh 0";
        assert!(ran.code == 0 && ran.err.matches(what).count() == 1, "{command}: {}", ran.err);
    }
}

#[test]
fn columns_without_names_are_said_to_be_taken_in_the_order_of_the_model() {
    let place = place(&[]);
    place.json("train run.toml --out run");
    place.json("data convert edges.csv --nodes nodes.csv --out named.npz");
    let ran = place.run("predict run --data named.npz --out p.csv");
    assert!(ran.code == 0 && !ran.err.contains("have no names"), "{}", ran.err);
    // Arrays alone, without what they are called.
    place.json("data synth sbm --nodes 30 --classes 3 --features 2 --out arrays.npz");
    let ran = place.run("predict run --data arrays.npz --out p.csv --force");
    assert!(ran.code == 0 && ran.err.contains("the feature columns of these data have no names"), "{}", ran.err);
    place.write("arrays.toml", &of("arrays.npz"));
    place.json("train arrays.toml --out of-arrays");
    let ran = place.run("predict of-arrays --data named.npz --out p.csv --force");
    assert!(ran.code == 0 && ran.err.contains("the feature columns of the model have no names"), "{}", ran.err);
}

/// Sums of bf16 rows are rounded to 8 bits, on two workers at other places than on one.
#[test]
fn a_sound_run_in_bf16_is_verified_by_a_tolerance_of_its_own() {
    let place = place(&[]);
    place.json("data synth sbm --nodes 600 --classes 4 --features 16 --out graph.npz");
    place.write("arrays.toml", &of("graph.npz"));
    for arch in ["gcn", "sage", "gat"] {
        let found = place.json(&format!("verify arrays.toml --set model.arch={arch} --set train.precision=bf16"));
        assert!(found["precision"] == "bf16" && found["tolerance"] == 0.03125, "{found}");
        let worst = found["worst"].as_f64().expect("a number");
        assert!(worst > 1e-4, "{worst} is what f32 passes, so this shows nothing");
    }
    let found = place.json("verify arrays.toml --rounds 3");
    assert!(found["precision"] == "f32" && found["tolerance"] == 1e-4, "{found}");
}

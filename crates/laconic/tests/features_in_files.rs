//! Features of a folder of parts that stay in their file: the same run to the last bit, and said beforehand.

mod program;

use std::fs;

use program::Place;
use program::exported::lines;

/// A folder of parts whose features are large enough to stay where they are.
fn folder(parts: u32) -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 2000 --mean-degree 8 --classes 3 --features 40 --out a.npz");
    place.json(&format!("partition a.npz --parts {parts} --method random --seed 5 --out parts"));
    place
}

fn toml(more: &str) -> String {
    format!(
        "[data]\npath = \"parts\"\n{more}\n[model]\narch = \"sage\"\nlayers = 2\nhidden = 16\n\
         [train]\nepochs = 3\n[batch]\nsize = 200\nfanouts = [5, 5]\n"
    )
}

#[test]
fn a_run_on_features_in_their_file_is_the_run_on_features_in_memory() {
    for parts in [1, 2] {
        let place = folder(parts);
        let run = |features_in: &str, order: &str| {
            place.write("run.toml", &toml(&format!("features_in = \"{features_in}\"")));
            let out = format!("{features_in}-{order}");
            let ran = place.run(&format!("train run.toml --set partition.order={order} --out {out}"));
            assert_eq!(ran.code, 0, "{}", ran.err);
            let says = ran.err.contains("of features stay in their files");
            assert_eq!(says, features_in == "file", "{}", ran.err);
            let rounds = lines(&place.path(&out).join("metrics.jsonl"));
            rounds.iter().map(|round| round["loss"].as_f64().unwrap()).collect::<Vec<f64>>()
        };
        let held = run("memory", "given");
        assert!(
            held.len() > 2
                && run("file", "given") == held
                && run("file", "locality") == held
                && run("auto", "given") == held
        );
        // What is predicted of nodes is the same, too.
        let predict = |run: &str| {
            let found = place.run(&format!("predict {run} --out {run}.csv"));
            assert_eq!(found.code, 0, "{}", found.err);
            fs::read(place.path(&format!("{run}.csv"))).unwrap()
        };
        assert!(predict("file-given") == predict("memory-given"));
    }
}

#[test]
fn features_that_cannot_stay_in_a_file_are_refused_by_name() {
    let place = folder(1);
    place.write("run.toml", &toml("features_in = \"file\""));
    place.refused("train run.toml --set batch.size=0 --set batch.fanouts=[]", 2, &["data.features_in", "batch.size"]);
    place.write("run.toml", &toml("features_in = \"file\"").replace("\"parts\"", "\"a.npz\""));
    place.refused("train run.toml", 2, &["data.features_in", "laconic partition"]);
}

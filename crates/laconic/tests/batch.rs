//! What is said of long work where nobody looks at a terminal: in the log of a batch job.

mod program;

use program::Place;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 2\n[model]\nhidden = 8\n[train]\nepochs = 6\n";

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 200 --features 8 --out graph.npz");
    place.write("run.toml", RUN);
    place
}

/// The lines about rounds.
fn rounds(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.contains("round ")).collect()
}

#[test]
fn a_run_says_where_it_is_at_its_first_round_at_each_stage_at_its_end_and_every_so_often() {
    let place = place();
    let keys = "--set schedule.kind=lazy --set train.eval_every=2";
    let said = place.run(&format!("train run.toml --out run --log-every 3600 {keys}")).err;
    let lines = rounds(&said);
    let stages: Vec<&str> = lines.iter().filter_map(|line| line.split(", ").nth(1)).collect();
    assert_eq!(stages, ["stage 1 of 2", "stage 2 of 2", "stage 2 of 2"], "{said}");
    assert!(lines[0].starts_with("round 1 of 12, stage 1 of 2, loss "), "{said}");
    assert!(lines[1].starts_with("round 7 of 12, "), "{said}");
    assert!(lines[2].starts_with("round 12 of 12, "), "{said}");
    let often = place.run(&format!("train run.toml --out often --log-every 0 {keys}")).err;
    let lines = rounds(&often);
    assert_eq!(lines.len(), 12, "{often}");
    // The figures are those of the log of rounds, and what was sent is what had been sent when it was last known.
    let log = std::fs::read_to_string(place.path("often/metrics.jsonl")).expect("a log");
    let (mut val, mut sent) = (String::new(), 0);
    for (line, row) in lines.iter().zip(log.lines()) {
        let row: serde_json::Value = serde_json::from_str(row).expect("JSON");
        if let Some(figure) = row["val"]["accuracy"].as_f64() {
            val = format!(", val accuracy {figure:.4}");
            sent = row["bytes"].as_u64().expect("bytes");
        }
        let loss = row["loss"].as_f64().expect("a loss");
        assert!(line.contains(&format!("loss {loss:.4}{val}")), "{line}: {row}");
        assert_eq!(line.contains(", sent "), sent > 0, "{line}");
        assert!(line.ends_with(" s"), "{line}");
    }
    assert!(lines[5].contains(", eta "), "{often}");
    assert!(rounds(&place.run("train run.toml --out quiet --quiet --log-every 0").err).is_empty());
}

#[test]
fn each_run_of_a_comparison_and_of_the_demo_says_so_under_its_name() {
    let place = place();
    place.write("methods.toml", "[[method]]\nname = \"a\"\n[[method]]\nname = \"b\"\nset = [\"model.arch=gcn\"]\n");
    let said = place.run("compare run.toml --runs methods.toml --out compared --log-every 3600").err;
    for name in ["a, seed 0", "b, seed 0"] {
        assert!(said.contains(&format!("{name}: round 1 of 6, loss ")), "{said}");
        assert!(said.contains(&format!("{name}: round 6 of 6, loss ")), "{said}");
    }
    let said = place.run("demo --nodes 200 --parts 2 --epochs 3").err;
    let (first, last): (Vec<&str>, Vec<&str>) =
        rounds(&said).into_iter().partition(|line| line.contains(": round 1 of "));
    let methods: Vec<&str> = first.iter().filter_map(|line| line.split(": round").next()).collect();
    assert!(methods.len() >= 5, "{said}");
    for method in methods {
        let mine = last.iter().filter(|line| line.starts_with(&format!("{method}: round")));
        let is_last = |line: &str| (1..=9).any(|round| line.contains(&format!(": round {round} of {round},")));
        assert!(mine.copied().any(is_last), "{method}: {said}");
    }
}

#[test]
fn the_configuration_stands_in_its_file_and_its_path_in_the_log() {
    let place = place();
    let ran = place.run("train run.toml --out run");
    assert!(ran.err.contains("configuration: run/config.toml"), "{}", ran.err);
    assert!(!(ran.err + &ran.out).contains("[data]"));
    let written = std::fs::read_to_string(place.path("run/config.toml")).expect("a configuration");
    assert!(written.contains("[data]") && written.contains("epochs = 6"), "{written}");
}

#[test]
fn the_configuration_of_a_run_on_parts_says_how_they_were_cut() {
    let place = place();
    place.json("partition graph.npz --parts 2 --method multilevel --objective volume --seed 7 --out parts");
    place.json("train run.toml --out run --set data.path=parts --set out.checkpoint_every=2");
    let text = std::fs::read_to_string(place.path("run/config.toml")).expect("a configuration");
    let written: toml::Table = text.parse().expect("TOML");
    let partition = written["partition"].as_table().expect("a section");
    let expected: toml::Table = "parts = 2\nmethod = \"multilevel\"\nseed = 7".parse().expect("TOML");
    assert_eq!(*partition, expected, "nothing that the folder does not say");
    let summary = place.json("resume run --set train.epochs=8");
    assert_eq!(summary["config"]["partition"]["method"], "multilevel");
    assert_eq!(summary["rounds"], 8);
    // One that an earlier program began says what this one did not ask the folder.
    place.write("run/config.toml", &text.replace("\"multilevel\"", "\"random\"").replace("seed = 7", "seed = 0"));
    assert_eq!(place.json("resume run --set train.epochs=9")["rounds"], 9);
}

#[test]
fn files_beside_the_configuration_are_found_and_it_is_said() {
    let place = place();
    std::fs::create_dir(place.path("sub")).expect("a folder");
    std::fs::rename(place.path("run.toml"), place.path("sub/run.toml")).expect("moved");
    std::fs::copy(place.path("graph.npz"), place.path("sub/graph.npz")).expect("copied");
    let part: String = (0..200).map(|node| format!("{}\n", node % 2)).collect();
    place.write("sub/owners.txt", &part);
    let given = "sub/run.toml --set partition.method=given --set partition.file=owners.txt";
    for command in ["plan", "train --out run"] {
        let ran = place.run(&format!("{command} {given}"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let both = "note: data.path: graph.npz of the current folder is read, not sub/graph.npz";
        let beside = "note: partition.file: sub/owners.txt is read, beside the configuration";
        assert!(ran.err.contains(both) && ran.err.contains(beside), "{}", ran.err);
    }
    std::fs::remove_file(place.path("graph.npz")).expect("removed");
    let said = place.run(&format!("plan {given}")).err;
    assert!(said.contains("note: data.path: sub/graph.npz is read, beside the configuration"), "{said}");
    let here = std::process::Command::new(env!("CARGO_BIN_EXE_laconic"))
        .args(["plan", "run.toml"])
        .current_dir(place.path("sub"))
        .output()
        .expect("the program starts");
    assert!(here.status.success() && !String::from_utf8_lossy(&here.stderr).contains("is read"));
}

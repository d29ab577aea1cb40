//! A run goes on from its own folder and from nothing else, and the folder says what is run.

mod program;

use program::Place;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[model]\nhidden = 16\n[train]\nepochs = 5\n";

/// A run that crashed in its fourth round, with a checkpoint and workers' own states after the second.
fn crashed() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 400 --features 8 --out graph.npz");
    place.write("run.toml", RUN);
    let fault = "--set out.checkpoint_every=2 --set transport.fault={rank=2,round=4,kind=\"crash\"}";
    place.refused(&format!("train run.toml --out run --set schedule.kind=pipelined {fault}"), 4, &["worker 2"]);
    place
}

#[test]
fn a_resumed_run_writes_down_what_it_was_set_to_and_goes_on_with_it() {
    let place = crashed();
    let config = || std::fs::read_to_string(place.path("run/config.toml")).expect("a configuration");
    let summary = place.json("resume run --set train.epochs=7 --set train.lr=0.02");
    assert_eq!((&summary["rounds"], &summary["config"]["train"]["lr"]), (&7.into(), &0.02.into()));
    let lines = config();
    for line in ["epochs = 7\n", "lr = 0.02\n"] {
        assert!(lines.contains(line), "{lines}");
    }
    assert!(!lines.contains("fault"), "what was rehearsed is over: {lines}");
    let again = place.json("resume run");
    assert_eq!((&again["rounds"], &again["parameters"]), (&7.into(), &summary["parameters"]));
    assert_eq!(config(), lines);
    assert!(place.run("report run").code == 0);
    let page = std::fs::read_to_string(place.path("run/report.html")).expect("a page");
    assert!(page.contains("lr = 0.02"), "the report shows the run that was made");
}

/// The crash of a run of three workers, each of which has all that there is to remember.
#[test]
fn a_run_goes_on_with_as_many_workers_as_are_asked_for() {
    let place = Place::new();
    place.json("data synth sbm --nodes 400 --features 8 --out graph.npz");
    place.json("partition graph.npz --parts 4 --out four");
    place.write("run.toml", RUN);
    let fault = "--set out.checkpoint_every=2 --set transport.fault={rank=2,round=4,kind=\"crash\"}";
    place.refused(&format!("train run.toml --out run {fault}"), 4, &["worker 2"]);
    place.refused("resume run --workers 0", 2, &["--workers"]);
    let starts = |summary: &serde_json::Value| {
        let starts = summary["bytes"]["starts"].as_array().expect("starts").clone();
        starts.iter().map(|start| start["workers"].as_u64().expect("a number")).collect::<Vec<u64>>()
    };
    let on = place.json("resume run --workers 2");
    assert_eq!((&on["workers"], &on["rounds"], starts(&on)), (&2.into(), &5.into(), vec![3, 2]));
    assert!(on["bytes"]["total"] == on["bytes"]["predicted"] && on["bytes"]["unlisted"] == 0, "{}", on["bytes"]);
    let config = std::fs::read_to_string(place.path("run/config.toml")).expect("a configuration");
    assert!(config.contains("parts = 2\n"), "{config}");
    let words = ["holds 4 parts, but partition.parts = 2", "laconic resume --workers 4"];
    place.refused("resume run --set data.path=four --set train.epochs=7", 2, &words);
    let on =
        place.json("resume run --workers 4 --set data.path=four --set train.epochs=7 --set transport.kind=processes");
    assert_eq!((&on["workers"], &on["rounds"], starts(&on)), (&4.into(), &7.into(), vec![3, 2, 4]));
    assert!(on["bytes"]["total"] == on["bytes"]["predicted"] && on["bytes"]["unlisted"] == 0, "{}", on["bytes"]);
    assert_eq!(place.run("report run").code, 0);
    let page = std::fs::read_to_string(place.path("run/report.html")).expect("a page");
    assert!(page.contains("workers of this run: 3 until round 3, 2 until round 5, 4 since"), "it is said");
}

/// The rate of each round that is written down.
fn rates(place: &Place) -> Vec<f64> {
    let lines = std::fs::read_to_string(place.path("run/metrics.jsonl")).expect("rounds");
    let rate = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["lr"].as_f64();
    lines.lines().map(|line| rate(line).expect("a rate")).collect()
}

#[test]
fn a_run_with_more_rounds_than_it_had_keeps_its_rates_unless_it_is_asked_for_others() {
    let place = Place::new();
    place.json("data synth sbm --nodes 200 --features 8 --out graph.npz");
    place.write("run.toml", RUN);
    place.json("train run.toml --out run --set train.lr_schedule=cosine --set train.lr=0.1 --set train.epochs=10");
    let said = place.run("resume run --set train.epochs=20");
    assert!(said.code == 0 && said.err.contains("train.horizon=[\"10 epochs\"]"), "{}", said.err);
    let cosine = |round: usize, of: usize| 0.05 * (1.0 + (std::f64::consts::PI * round as f64 / of as f64).cos());
    for (round, rate) in rates(&place).into_iter().enumerate() {
        let expected = cosine(round.min(9), 10);
        assert!((rate - expected).abs() < 1e-6, "round {round}: {rate} and not {expected}");
    }
    // It stays so the next time, until somebody asks.
    place.json("resume run --set train.epochs=22");
    assert!((rates(&place)[21] - cosine(9, 10)).abs() < 1e-6);
    place.json("resume run --set train.epochs=40 --set train.horizon=[]");
    assert!((rates(&place)[30] - cosine(30, 40)).abs() < 1e-6);
}

#[test]
fn what_may_not_change_in_a_resumed_run_is_refused_with_its_key() {
    let place = crashed();
    let untouched = |name: &str| std::fs::read(place.path("run").join(name)).expect("a file");
    let files = ["config.toml", "checkpoint.safetensors", "metrics.jsonl"];
    let before = files.map(untouched);
    place.refused("resume run --set out.dir=elsewhere", 2, &["out.dir", "goes on in its folder"]);
    for (set, words) in [
        ("train.seed=3", "train.seed is 3, and was 0"),
        ("model.hidden=8", "model.hidden is 8, and was 16"),
        ("train.metrics=[\"macro_f1\"]", "train.metrics is macro_f1, and was accuracy"),
        ("messages.forward=half", "messages.forward is"),
    ] {
        place.refused(&format!("resume run --set {set}"), 2, &["run: ", words, "train.epochs", "transport.deadline_s"]);
    }
    let text = String::from_utf8(before[0].clone()).expect("text");
    place.write("run/config.toml", &text.replace("lr = 0.01\n", "lr = 0.5\n"));
    let said = place.run("resume run");
    assert!(said.code == 2 && said.err.contains("train.lr is 0.5, and was 0.01"), "{}", said.err);
    assert!(said.err.contains("--set train.lr=0.5"), "{}", said.err);
    place.write("run/config.toml", &text);
    assert_eq!(files.map(untouched), before, "refusals change nothing");
    place.json("resume run");
}

#[test]
fn a_run_is_not_resumed_on_other_data_under_the_same_path() {
    let place = crashed();
    let graph = std::fs::read(place.path("graph.npz")).expect("a graph");
    for (synth, words) in [
        ("--nodes 400 --features 8 --seed 9", "the data's edges is"),
        ("--nodes 400 --features 9", "the data's feature columns is 9, and was 8"),
        ("--nodes 401 --features 8", "the data's nodes is 401, and was 400"),
    ] {
        place.json(&format!("data synth sbm {synth} --out graph.npz --force"));
        for line in ["resume run", "resume run --set data.path=graph.npz --set train.epochs=9"] {
            // A partition of other data differs as well; the data come first.
            place.refused(line, 2, &[words, "not the data that the run began with"]);
        }
    }
    std::fs::write(place.path("elsewhere.npz"), graph).expect("written");
    place.json("resume run --set data.path=elsewhere.npz");
}

/// What the folder of the run holds, without the ledger: rows of killed workers are put into it before anything else.
fn files(place: &Place) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(place.path("run"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("a file")))
        .collect();
    files.retain(|(name, _)| !name.starts_with("ledger."));
    files.sort();
    files
}

/// A run that cannot go on stays as it is.
fn assert_same(after: &[(String, Vec<u8>)], before: &[(String, Vec<u8>)]) {
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(after), names(before));
    after.iter().zip(before).for_each(|(after, before)| assert!(after == before, "{} has changed", before.0));
}

/// A pipe in the place of a file of the run is no file, and nobody waits for it.
#[cfg(unix)]
#[test]
fn pipes_in_the_folder_of_a_run_are_refused() {
    let place = crashed();
    let names =
        ["checkpoint.safetensors", "state-1-2.safetensors", "metrics.jsonl", "summary.json", "model.safetensors"];
    for name in names {
        let path = place.path("run").join(name);
        let before = std::fs::read(&path).ok();
        let _ = std::fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
        place.refused("resume run", 5, &[name]);
        if name == "model.safetensors" {
            place.refused("predict run --out p.parquet", 5, &[name]);
            place.refused("export run --to pyg", 5, &[name]);
        }
        std::fs::remove_file(&path).expect("removed");
        before.iter().for_each(|bytes| std::fs::write(&path, bytes).expect("written"));
    }
    place.json("resume run");
}

#[test]
fn files_of_which_a_bit_is_another_are_refused_with_their_names() {
    let place = crashed();
    let flip_each = |name: &str, lines: &[&str]| {
        let path = place.path("run").join(name);
        let sound = std::fs::read(&path).expect("a file");
        for at in (0..sound.len()).step_by(sound.len() / 20 + 1) {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x10;
            std::fs::write(&path, &bytes).expect("written");
            lines.iter().for_each(|line| place.refused(line, 5, &[&format!("run/{name}")]));
        }
        std::fs::write(&path, &sound).expect("written");
    };
    flip_each("checkpoint.safetensors", &["resume run"]);
    let before = files(&place);
    flip_each("state-1-2.safetensors", &["resume run", "resume run --set train.lr=0.5 --set train.epochs=50"]);
    assert_same(&files(&place), &before);
    let state = std::fs::read(place.path("run/state-1-2.safetensors")).expect("a state");
    std::fs::remove_file(place.path("run/state-1-2.safetensors")).expect("removed");
    place.refused("resume run --set train.lr=0.5", 5, &["run/state-1-2.safetensors"]);
    std::fs::write(place.path("run/state-1-2.safetensors"), state).expect("written");
    assert_same(&files(&place), &before);
    place.json("resume run");
    flip_each("model.safetensors", &["predict run --out p.parquet", "export run --to pyg"]);
    place.json("predict run --out p.parquet");
    assert_eq!(place.run("export run --to pyg").code, 0);
    let model = std::fs::read(place.path("run/model.safetensors")).expect("a model");
    place.json("train run.toml --out other --set train.seed=9");
    std::fs::copy(place.path("other/model.safetensors"), place.path("run/model.safetensors")).expect("copied");
    for line in ["predict run --out q.parquet", "export run --to pyg"] {
        place.refused(line, 5, &["run/model.safetensors", "summary.json"]);
    }
    std::fs::write(place.path("run/model.safetensors"), model).expect("written");
    // A file for other programs has no checksum.
    std::fs::copy(place.path("run/pyg/model.safetensors"), place.path("run/model.safetensors")).expect("copied");
    place.refused("predict run --out q.parquet", 5, &["run/model.safetensors", "of another program"]);
}

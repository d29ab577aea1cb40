//! What other programs read: one JSON document on standard output, whatever happens, and numbers as they were typed.

mod program;

use program::Place;
use serde_json::Value;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 2\n[train]\nepochs = 2\nlr = 0.003\n";

fn place() -> Place {
    Place::with_run(RUN)
}

#[test]
fn an_error_is_one_document_too_with_code_kind_and_what_people_read() {
    let place = place();
    place.write("broken.npz", "PK");
    let crash = "train run.toml --out run --set transport.fault={rank=1,round=2,kind=\"crash\"}";
    for (line, code, kind, words) in [
        ("train", 2, "usage", "required arguments were not provided"),
        ("train run.toml --epochs 5", 2, "usage", "--set train.epochs=5"),
        ("partition graph.npz --parts 2 --method random --file x", 2, "usage", "--file belongs to"),
        ("train run.toml --set train.epocs=1", 2, "configuration", "unknown key \"train.epocs\""),
        ("train run.toml --set data.path=broken.npz", 3, "data", "broken.npz"),
        ("data info nosuch.npz", 3, "data", "nosuch.npz"),
        (crash, 4, "network", "worker 1 stopped in round 2"),
        ("train nosuch.toml", 5, "file", "nosuch.toml"),
        ("train run.toml --out div --set train.lr=1e30 --set model.norm=none", 6, "divergence", "diverged"),
    ] {
        let ran = place.run(&format!("{line} --json"));
        assert_eq!(ran.code, code, "{line}: {}", ran.err);
        let found: Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{line}: {e}: {}", ran.out));
        let error = found["error"].as_object().expect("an error");
        assert_eq!(found.as_object().map(|found| found.len()), Some(1), "{line}");
        assert_eq!((&error["code"], &error["kind"]), (&Value::from(code), &Value::from(kind)), "{line}");
        let message = error["message"].as_str().expect("text");
        assert!(message.contains(words), "{line}: {message}");
        // People read the same.
        assert!(ran.err.contains(message.lines().next().unwrap_or("?")), "{line}: {} {message}", ran.err);
        assert_eq!(place.run(line).out, "", "{line}: without --json nothing");
    }
}

#[test]
fn a_check_that_does_not_pass_is_a_result_and_no_error() {
    let place = place();
    let ran = place.run("verify run.toml --rounds 2 --set messages.forward=half --tolerance 1e-12 --json");
    assert_eq!(ran.code, 1, "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).expect("one document");
    assert!(found["worst"].is_number() && found["error"].is_null(), "{found}");
}

#[test]
fn numbers_have_the_digits_that_they_were_typed_with() {
    let place = place();
    let keys =
        "--set train.weight_decay=0.1 --set model.dropout=0.7 --set schedule.kind=lazy --set schedule.lr=[0.0007]";
    let summary = place.run(&format!("train run.toml --out run --json {keys}")).out;
    let log = std::fs::read_to_string(place.path("run/metrics.jsonl")).expect("a log");
    for digits in ["\"lr\": 0.003", "\"weight_decay\": 0.1", "\"dropout\": 0.7", "0.0007"] {
        assert!(summary.lines().any(|line| line.trim().trim_end_matches(',') == digits), "{digits}: {summary}");
    }
    assert!(log.contains("\"lr\":0.0007,") && log.contains("\"lr\":0.003,"), "{log}");
    let written = std::fs::read_to_string(place.path("run/summary.json")).expect("a summary");
    assert_eq!(written, summary);
}

#[test]
fn completions_and_manual_pages_name_every_command_and_option() {
    let place = Place::new();
    let commands = ["train", "resume", "partition", "compare", "keys", "convert"];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run(&format!("completions {shell}"));
        assert_eq!((script.code, script.err.as_str()), (0, ""), "{shell}");
        for word in commands.iter().chain(&["log-every", "symmetrise"]) {
            assert!(script.out.contains(word), "{shell}: {word}");
        }
    }
    let page = place.run("man").out;
    assert!(page.starts_with(".ie") || page.starts_with(".TH"), "{page}");
    assert!(page.contains(".TH laconic 1") && page.contains("laconic\\-train(1)"), "{page}");
    let written = place.json("man --out pages");
    assert_eq!(
        written["files"].as_array().map(Vec::len),
        std::fs::read_dir(place.path("pages")).ok().map(Iterator::count)
    );
    let page = std::fs::read_to_string(place.path("pages/laconic-data-convert.1")).expect("a page");
    assert!(page.contains("symmetrise") && page.contains(".TH laconic-data-convert 1"), "{page}");
    place.refused("completions csh", 2, &["csh"]);
}

/// In a checkout the version has the commit that git names, and elsewhere none.
#[test]
fn the_version_names_commit_and_features() {
    let said = Place::new().run("--version").out;
    let version = format!("laconic {}", env!("CARGO_PKG_VERSION"));
    assert!(said.starts_with(&version), "{said}");
    assert_eq!(said.contains("mpi"), cfg!(feature = "mpi"), "{said}");
    let mut git = std::process::Command::new("git");
    let head = git
        .args(["rev-parse", "HEAD"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .ok()
        .filter(|done| done.status.success());
    let commit = said.split('(').nth(1).and_then(|about| about.split([',', ')']).next()).unwrap_or_default();
    match head {
        Some(head) => assert!(String::from_utf8_lossy(&head.stdout).starts_with(commit) && commit.len() >= 7, "{said}"),
        None => assert!(commit.is_empty() || commit == "mpi", "{said}"),
    }
}

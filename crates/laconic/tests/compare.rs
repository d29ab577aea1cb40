//! Comparisons and reports from the command line.

mod program;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use program::Place;
use serde_json::Value;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[model]\nhidden = 16\n[train]\nepochs = 5\n";
const METHODS: &str = "seeds = [0, 1]\n\
    [[method]]\nname = \"standard\"\n\
    [[method]]\nname = \"Lazy, from scores\"\nset = [\"schedule.kind=lazy\", \"schedule.start=mlp\"]\n";
const COMPARE: &str = "compare run.toml --runs methods.toml --out both";
const FOLDERS: [&str; 4] = ["standard/seed-0", "standard/seed-1", "lazy-from-scores/seed-0", "lazy-from-scores/seed-1"];

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 400 --features 8 --out graph.npz");
    place.write("run.toml", RUN);
    place.write("methods.toml", METHODS);
    place
}

fn folder(place: &Place, name: &str) -> PathBuf {
    place.path("both/runs").join(name)
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
}

fn written(place: &Place) -> Vec<SystemTime> {
    let time = |name: &&str| std::fs::metadata(folder(place, name).join("summary.json"))?.modified();
    FOLDERS.iter().map(|name| time(name).expect("a summary")).collect()
}

/// Mean and sample standard deviation of two numbers.
fn of_two([a, b]: [f64; 2]) -> (f64, f64) {
    ((a + b) / 2.0, (a - b).abs() / 2f64.sqrt())
}

fn close(a: &Value, b: f64) -> bool {
    // Sums of two numbers, taken in another order and rounded once more or once less.
    (a.as_f64().expect("a number") - b).abs() <= 1e-12 * b.abs()
}

#[test]
fn the_table_says_what_the_summaries_say() {
    let place = place();
    let found = place.json(COMPARE);
    assert_eq!(found, json(&place.path("both/compare.json")));
    assert_eq!((&found["metric"], &found["link"]), (&Value::from("accuracy"), &Value::Null));
    let mut means = Vec::new();
    for (line, folders) in found["methods"].as_array().expect("a list").iter().zip(FOLDERS.chunks(2)) {
        let summaries = [folders[0], folders[1]].map(|name| json(&folder(&place, name).join("summary.json")));
        let number =
            |path: &str| summaries.each_ref().map(|s| s.pointer(path).and_then(Value::as_f64).expect("a number"));
        let (test, sd) = of_two(number("/metrics/test/accuracy"));
        let (bytes, seconds) = (of_two(number("/bytes/total")).0, of_two(number("/seconds/total")).0);
        let training = bytes - of_two(number("/bytes/by_kind/evaluation")).0;
        let purpose = |name: &str| of_two(number(&format!("/bytes/by_purpose/{name}"))).0;
        for name in ["boundary", "parameters", "evaluation", "start_up"] {
            assert!(close(&line[name], purpose(name)), "{name}: {line}");
            assert_eq!(line["runs"][1][name], summaries[1]["bytes"]["by_purpose"][name], "{name}");
        }
        assert!(close(&line["training"], training) && close(&line["skipped"], 0.0), "{line}");
        assert!(close(&line["memory"], of_two(number("/memory/peak_bytes")).0), "{line}");
        assert!(close(&line["test"]["mean"], test) && close(&line["test"]["sd"], sd), "{line}");
        assert!(close(&line["bytes"], bytes) && close(&line["seconds"], seconds), "{line}");
        assert_eq!(number("/seed"), [0.0, 1.0]);
        means.push((training, seconds, test));
    }
    let [standard, lazy] = means[..] else { panic!("two methods") };
    let lines = &found["methods"];
    assert!(close(&lines[0]["fewer"], 1.0) && close(&lines[1]["fewer"], standard.0 / lazy.0));
    // After so few rounds the lazy model is no better than a fixed answer, which is on no front and beats nothing.
    for key in ["front", "front_by_seconds"] {
        assert_eq!((&lines[0][key], &lines[1][key]), (&Value::from(true), &Value::from(false)), "{key}");
    }
    assert_eq!((&lines[0]["is_constant"], &lines[1]["is_constant"]), (&Value::from(false), &Value::from(true)));
    let text = place.run(&format!("{COMPARE} --quiet")).out;
    let row = text.lines().find(|line| line.starts_with("Lazy, from scores")).expect("a row");
    assert!(
        row.contains(&format!("{:.4} ± ", lazy.2)) && row.contains(&format!("{:.1}x", standard.0 / lazy.0)),
        "{text}"
    );
}

/// What is only measured is no cost of a method: two that differ in how often they are measured cost the same.
#[test]
fn fewer_counts_the_same_bytes_whatever_is_evaluated() {
    let place = place();
    let seldom = "[[method]]\nname = \"seldom\"\nset = [\"train.eval_every=5\"]\n";
    place.write("methods.toml", &format!("[[method]]\nname = \"often\"\n{seldom}"));
    let found = place.json(COMPARE);
    let [often, seldom] = [&found["methods"][0], &found["methods"][1]];
    let number = |line: &Value, name: &str| line[name].as_f64().expect("a number");
    assert!(number(often, "evaluation") > 4.0 * number(seldom, "evaluation"), "{found}");
    assert!(number(often, "bytes") > 1.2 * number(seldom, "bytes"), "{found}");
    assert_eq!((&often["training"], &seldom["fewer"]), (&seldom["training"], &Value::from(1.0)));
    let text = place.run(&format!("{COMPARE} --quiet")).out;
    assert!(text.contains("fewer: all but evaluation, against often"), "{text}");
}

#[test]
fn messages_that_were_left_out_are_counted_in_every_table() {
    let place = place();
    let skip = |name: &str, change: f64| {
        format!("[[method]]\nname = \"{name}\"\nset = [\"messages.skip={{change={change},staleness=3}}\"]\n")
    };
    place.write("methods.toml", &(skip("none", 0.0) + &skip("all that may be", 1000.0)));
    let found = place.json(COMPARE);
    // Two layers of which one crosses in every round, there and back, on six links; rounds 2, 3 and 5 are left out.
    assert_eq!((&found["methods"][0]["skipped"], &found["methods"][1]["skipped"]), (&0.0.into(), &36.0.into()));
    assert_eq!(found["methods"][1]["runs"][0]["skipped"], 36);
    let summary = json(&folder(&place, "all-that-may-be/seed-0").join("summary.json"));
    assert_eq!(summary["bytes"]["skipped"], 36);
    let text = place.run(&format!("{COMPARE} --quiet")).out;
    assert!(text.contains(" skipped ") && text.contains(" 36 "), "{text}");
    assert!(text.contains("note: none: messages.skip: no message was left out"), "{text}");
    assert!(!text.contains("note: all that may be"), "{text}");
}

#[test]
fn the_demo_compares_like_with_like_and_fits_a_screen() {
    let place = place();
    let said = place.run("demo --nodes 300 --epochs 3 --report demo.html");
    assert!(said.out.lines().all(|line| line.chars().count() <= 110), "{}", said.out);
    let lines = place.json("demo --nodes 300 --epochs 3 --report demo.html");
    let number = |line: &Value, name: &str| line[name].as_f64().expect("a number");
    for line in lines.as_array().expect("methods") {
        let training = number(line, "boundary") + number(line, "parameters") + number(line, "start_up");
        assert_eq!(training + number(line, "evaluation"), number(line, "bytes"), "{line}");
        assert!(close(&line["fewer"], number(&lines[0], "training") / training), "{line}");
    }
}

#[test]
fn a_second_call_runs_nothing_and_an_incomplete_comparison_is_completed() {
    let place = place();
    let first = place.json(COMPARE);
    let before = written(&place);
    assert_eq!(place.json(COMPARE), first);
    assert_eq!(written(&place), before);
    std::fs::remove_dir_all(folder(&place, FOLDERS[0])).expect("it is there");
    std::fs::write(folder(&place, FOLDERS[3]).join("summary.json"), "{\"version\": ").expect("it is there");
    let again = place.run(COMPARE);
    assert_eq!(again.code, 0, "{}", again.err);
    assert_eq!((again.err.matches(": kept").count(), again.err.matches(": done").count()), (2, 2), "{}", again.err);
    let after = written(&place);
    assert_eq!((after[1], after[2]), (before[1], before[2]));
    let figures =
        |found: &Value| [0, 1].map(|i| (found["methods"][i]["test"].clone(), found["methods"][i]["bytes"].clone()));
    assert_eq!(figures(&json(&place.path("both/compare.json"))), figures(&first));
    // Another configuration is another run; the earlier one is moved aside.
    place.json(&format!("{COMPARE} --set train.epochs=6 --seeds 1"));
    assert!(folder(&place, "standard/seed-0.1").is_dir() && written(&place)[1] == before[1]);
}

#[test]
fn every_run_is_the_run_that_train_would_do_on_the_links_clock_too() {
    let place = place();
    let found = place.json(&format!("{COMPARE} --seeds 1 --link wan-20mbit-80ms"));
    let keys = "--set schedule.kind=lazy --set schedule.start=mlp --set transport.shape=wan-20mbit-80ms";
    let summary = place.json(&format!("train run.toml --out one {keys}"));
    let compared = json(&folder(&place, FOLDERS[2]).join("summary.json"));
    assert_eq!(compared["parameters"], summary["parameters"]);
    assert_eq!(compared["bytes"], summary["bytes"]);
    assert_eq!(found["methods"][1]["seconds"], compared["seconds"]["simulated"]);
    assert_eq!(found["link"], "wan-20mbit-80ms");
    place.json("partition graph.npz --parts 3 --method random --out parts");
    let parts = place.json("compare run.toml --runs methods.toml --seeds 1 --out cut --set data.path=parts");
    assert_eq!(parts["methods"][1]["test"], found["methods"][1]["test"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_a_comparison_and_the_same_command_goes_on_with_the_same_bits() {
    use std::process::{Command, Stdio};
    let place = place();
    let line = format!("{COMPARE} --set train.epochs=1500");
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    let job = command.args(line.split(' ')).current_dir(place.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let job = job.spawn().expect("starts");
    let log = folder(&place, FOLDERS[0]).join("metrics.jsonl");
    while std::fs::metadata(&log).map_or(0, |m| m.len()) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &job.id().to_string()]).status().expect("kill is there").success());
    let done = job.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!((done.status.code(), done.stdout.as_slice()), (Some(130), &b""[..]), "{said}");
    assert!(said.contains("the same command goes on"), "{said}");
    assert!(!folder(&place, FOLDERS[3]).exists());
    place.json(&line);
    let straight = place.json("train run.toml --out straight --set train.epochs=1500");
    assert_eq!(json(&folder(&place, FOLDERS[0]).join("summary.json"))["parameters"], straight["parameters"]);
}

#[test]
fn files_of_methods_that_cannot_be_used_are_refused_before_anything_runs() {
    let place = place();
    let method = |name: &str, set: &str| format!("[[method]]\nname = \"{name}\"\nset = [{set}]\n");
    let cases: [(String, &[&str]); 14] = [
        ("".to_owned(), &["methods.toml", "[[method]]"]),
        ("seed = [0]\n".to_owned() + METHODS.split_once('\n').expect("two lines").1, &["seed"]),
        ("[[method]]\nname = \"a\"\nkeys = []\n".to_owned(), &["keys"]),
        ("[[method]]\nset = []\n".to_owned(), &["name"]),
        (method("", ""), &["letter or digit"]),
        (method("a b", "") + &method("a-b", ""), &["\"a b\"", "\"a-b\"", "folder"]),
        (method("twin", "") + &method("twin", ""), &["two methods", "twin"]),
        (method("x", "\"train.epocs=3\""), &["method \"x\"", "train.epocs", "did you mean \"train.epochs\"?"]),
        (method("x", "\"data.path=other.npz\""), &["method \"x\"", "data.path", "one graph"]),
        (method("x", "\" partition .seed=2\""), &["method \"x\"", "partition.seed", "seeds"]),
        (method("x", "\"train.seed=2\""), &["method \"x\"", "train.seed", "seeds"]),
        ("seeds = [1, 1]\n".to_owned() + &method("x", ""), &["seeds", "twice"]),
        ("link = \"nowhere\"\n".to_owned() + &method("x", ""), &["link", "nowhere"]),
        (method("x", "\"messages.layers.9.forward=half\""), &["method \"x\"", "messages.layers.9"]),
    ];
    for (text, words) in cases {
        place.write("methods.toml", &text);
        place.refused(COMPARE, 2, words);
    }
    place.write("methods.toml", METHODS);
    place.refused(&format!("{COMPARE} --seeds 0"), 2, &["no seeds"]);
    place.refused(&format!("{COMPARE} --seeds 501"), 2, &["1000 runs"]);
    place.refused("compare run.toml --runs nosuch.toml --out both", 5, &["nosuch.toml"]);
    assert!(!place.path("both").exists());
    place.json(&format!("{COMPARE} --seeds 1"));
    place.json("data synth sbm --nodes 300 --features 8 --out graph.npz --force");
    place.refused(&format!("{COMPARE} --seeds 1"), 2, &["both", "another with --out"]);
    place.refused("compare run.toml --runs methods.toml --out both/runs/standard/seed-0", 2, &["folder of a run"]);
}

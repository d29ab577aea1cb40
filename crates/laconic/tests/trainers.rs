//! Trainers on their own in processes: the bits of threads, and no end to the run when one of them is killed.

mod program;

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use program::Place;

const RUN: &str = "data = { path = \"graph.npz\" }\npartition = { parts = 3 }\nmodel = { hidden = 16 }\n\
    schedule = { kind = \"averaging\", interval = \"5 steps\", limit = \"20 steps\" }\n";

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 600 --features 8 --out graph.npz");
    place.write("run.toml", RUN);
    place
}

/// A run with means by time, after its first mean, with its processes in the order of their start, the aggregator's
/// first.
fn under_way(place: &Place, limit: &str) -> (Child, Vec<String>) {
    let line = "train run.toml --out run --set transport.kind=processes --set schedule.interval=300ms \
        --set train.threads=1 --set schedule.grace=2s";
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    command.args(line.split_whitespace()).args(["--set", &format!("schedule.limit={limit}")]);
    command.current_dir(place.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let job = command.spawn().expect("the program starts");
    let start = Instant::now();
    while !std::fs::read(place.path("run/metrics.jsonl")).is_ok_and(|means| !means.is_empty()) {
        assert!(start.elapsed() < Duration::from_secs(60), "no mean was taken");
        std::thread::sleep(Duration::from_millis(20));
    }
    let children = children(&job);
    (job, children)
}

fn children(job: &Child) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", job.id())).expect("it runs");
    let of = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.expect("a thread").path().join("children")).unwrap_or_default()
    };
    let all: String = tasks.map(of).collect::<Vec<_>>().join(" ");
    let mut children: Vec<u32> = all.split_whitespace().map(|id| id.parse().expect("a number")).collect();
    children.sort_unstable();
    children.into_iter().map(|id| id.to_string()).collect()
}

fn kill(process: &str) {
    assert!(Command::new("kill").args(["-9", process]).status().expect("kill is there").success());
}

fn said(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

fn summary(place: &Place) -> serde_json::Value {
    let text = std::fs::read_to_string(place.path("run/summary.json")).expect("a summary");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn trainers_in_processes_have_the_bits_and_bytes_of_threads_and_of_a_simulated_run() {
    let place = place();
    let coded = "--set messages.parameters={codec=\"quantised\",bits=4}";
    for keys in ["", "--set schedule.kind=llcg --set averaging.drop=[1]", "--set schedule.halo=frozen", coded] {
        let [threads, processes, simulated] = ["threads", "processes", "simulated"].map(|transport| {
            place.json(&format!("train run.toml --out {transport} --set transport.kind={transport} {keys}"))
        });
        for other in [&processes, &simulated] {
            assert_eq!(other["parameters"]["digest"], threads["parameters"]["digest"], "{keys}");
            for field in ["total", "predicted", "received"] {
                assert_eq!(other["bytes"][field], threads["bytes"][field], "{keys}: {field}");
            }
        }
        assert_eq!(processes["bytes"]["total"], processes["bytes"]["predicted"], "{keys}");
    }
}

#[test]
fn a_trainer_that_is_killed_is_missed_comes_back_and_the_run_ends_as_well_as_another() {
    let accuracy = |summary: &serde_json::Value| summary["metrics"]["test"]["accuracy"].as_f64().expect("a figure");
    let undisturbed = "--set transport.kind=processes --set schedule.interval=300ms --set schedule.limit=8s";
    let calm = place().json(&format!("train run.toml --out calm --set train.threads=1 {undisturbed}"));
    for victim in 1..4 {
        let place = place();
        let (job, processes) = under_way(&place, "8s");
        assert_eq!(processes.len(), 4, "an aggregator and three trainers");
        kill(&processes[victim]);
        let done = job.wait_with_output().expect("the run ends");
        assert_eq!(done.status.code(), Some(0), "{}", said(&done));
        let summary = summary(&place);
        let notes = summary["averaging"]["notes"].to_string();
        for what in [format!("trainer {} was lost", victim - 1), format!("trainer {} came", victim - 1)] {
            assert!(notes.contains(&what), "{what} in {notes}");
        }
        assert!(said(&done).contains(&format!("process {}", processes[victim])), "{}", said(&done));
        assert!(accuracy(&summary) > accuracy(&calm) - 0.15, "{} of {}", accuracy(&summary), accuracy(&calm));
        let all = summary["averaging"]["trainers"].as_array().expect("trainers").clone();
        assert!(all.iter().all(|trainer| trainer["means"].as_u64() > Some(0)), "{all:?}");
    }
}

#[test]
fn a_run_whose_aggregator_is_killed_goes_on_from_its_last_mean() {
    let place = place();
    let (job, processes) = under_way(&place, "4s");
    kill(&processes[0]);
    let done = job.wait_with_output().expect("the run ends");
    assert_eq!(done.status.code(), Some(4), "{}", said(&done));
    assert!(said(&done).contains("laconic resume"), "{}", said(&done));
    let start = Instant::now();
    let is_there = |process: &String| {
        std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    while processes.iter().any(is_there) {
        assert!(start.elapsed() < Duration::from_secs(30), "processes of the run are left");
        std::thread::sleep(Duration::from_millis(20));
    }
    let resumed = place.json("resume run");
    assert_eq!(resumed["averaging"]["ending"], "limit");
    let means = std::fs::read_to_string(place.path("run/metrics.jsonl")).expect("means");
    let number = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["round"].as_u64();
    let numbers: Vec<u64> = means.lines().filter_map(number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "no mean is lost, and none is there twice");
}

//! What a run does that is asked to end, by Ctrl-C or by a scheduler, on threads and on processes.

#![cfg(unix)]

mod program;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use program::Place;

/// Gradients leave an error behind that each worker alone remembers: only the end of a round can be resumed from.
const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 2\n[model]\nhidden = 16\n\
                   [messages]\nparameters = { codec = \"quantised\", bits = 8 }\n";

const TRANSPORTS: [&str; 2] = ["threads", "processes"];

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 300 --features 8 --out graph.npz");
    place.write("run.toml", RUN);
    place
}

/// A run without an end, once a round of it is over, whose messages take so many milliseconds.
fn endless(place: &Place, transport: &str, message: u32) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    let line = "train run.toml --out run --set train.epochs=1000000 --set transport.shape_sleeps=true";
    command.args(line.split_whitespace()).args(["--set", &format!("transport.kind={transport}")]);
    command.args(["--set", &format!("transport.shape=1gbit,{message}ms")]).current_dir(place.path(""));
    let job = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let (start, log) = (Instant::now(), place.path("run/metrics.jsonl"));
    while rounds(&log) == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "the run did not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    job
}

fn rounds(log: &Path) -> usize {
    std::fs::read_to_string(log).map_or(0, |log| log.lines().count())
}

/// Sends a signal to what has not ended yet.
fn signal(name: &str, job: &mut Child) {
    assert!(job.try_wait().expect("it can be asked").is_none(), "it has ended before {name}");
    assert!(Command::new("kill").args([name, &job.id().to_string()]).status().expect("kill is there").success());
}

#[test]
fn two_terms_at_once_end_the_round_with_a_checkpoint_from_which_the_run_goes_on() {
    for transport in TRANSPORTS {
        let place = place();
        let mut job = endless(&place, transport, 100);
        // As Slurm does at a time limit.
        signal("-TERM", &mut job);
        std::thread::sleep(Duration::from_millis(100));
        signal("-TERM", &mut job);
        let done = job.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(130), "{transport}: {said}");
        assert!(!said.contains("stopped at once"), "{transport}: {said}");
        let summary = std::fs::read_to_string(place.path("run/summary.json")).expect("a summary");
        let seconds = serde_json::from_str::<serde_json::Value>(&summary).expect("JSON")["seconds"].clone();
        let [total, compute, simulated] =
            ["total", "compute", "simulated"].map(|field| seconds[field].as_f64().expect("a number"));
        assert!(compute <= total && simulated == total, "a link that really waits has no clock of its own: {seconds}");
        let more = rounds(&place.path("run/metrics.jsonl")) + 2;
        let plain = format!("--set transport.shape_sleeps=false --set train.epochs={more}");
        let resumed = place.json(&format!("resume run {plain}"));
        let straight = place.json(&format!("train run.toml --out straight {plain}"));
        assert_eq!(resumed["parameters"]["digest"], straight["parameters"]["digest"], "{transport}");
    }
}

#[test]
fn a_third_term_or_one_after_two_seconds_ends_the_run_at_once() {
    for (transport, waits) in [("threads", &[100, 100][..]), ("threads", &[2300]), ("processes", &[100, 100])] {
        let place = place();
        let mut job = endless(&place, transport, 1000);
        signal("-TERM", &mut job);
        for wait in waits {
            std::thread::sleep(Duration::from_millis(*wait));
            signal("-TERM", &mut job);
        }
        let asked = Instant::now();
        let done = job.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(130), "{transport}: {said}");
        assert!(said.contains("stopped at once") && asked.elapsed() < Duration::from_secs(4), "{transport}: {said}");
        assert!(!place.path("run/checkpoint.safetensors").exists(), "{transport}");
    }
}

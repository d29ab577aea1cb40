//! The same run on workers that are processes: same bits, same bytes, and no hang when one is killed.

mod program;

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use program::Place;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[model]\nhidden = 16\n[train]\nepochs = 4\n";
const PROCESSES: &str = "--set transport.kind=processes";

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 400 --features 8 --out graph.npz");
    place.write("run.toml", RUN);
    place
}

/// A run that does not end by itself, once a round of it is over.
fn endless(place: &Place) -> Child {
    let line = "train run.toml --out run --quiet --set train.epochs=1000000 --set transport.deadline_s=20";
    std::fs::create_dir_all(place.path("tmp")).expect("made");
    let mut command = Command::new("sh");
    // By themselves new files would be open to everybody.
    let open = format!("umask 000; exec {} {line} {PROCESSES}", env!("CARGO_BIN_EXE_laconic"));
    command.args(["-c", &open]).env("TMPDIR", place.path("tmp")).current_dir(place.path(""));
    let job = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let start = Instant::now();
    let has_begun = || std::fs::read(place.path("run/metrics.jsonl")).is_ok_and(|figures| !figures.is_empty());
    while !has_begun() {
        assert!(start.elapsed() < Duration::from_secs(60), "the run did not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    job
}

/// The processes that it has started, in the order of their start.
fn children(job: &Child) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", job.id())).expect("it runs");
    let of_task = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.expect("a thread").path().join("children")).unwrap_or_default()
    };
    let mut children: Vec<u32> = tasks
        .flat_map(|task| of_task(task).split_whitespace().map(|id| id.parse().expect("a number")).collect::<Vec<u32>>())
        .collect();
    children.sort_unstable();
    children.into_iter().map(|id| id.to_string()).collect()
}

fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([name, process]).status().expect("kill is there").success());
}

fn is_there(process: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until none of these processes is there.
fn gone(processes: &[String]) {
    let start = Instant::now();
    while processes.iter().any(|process| is_there(process)) {
        assert!(start.elapsed() < Duration::from_secs(30), "processes of the run are left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn said(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[test]
fn processes_and_threads_train_the_same_bits_and_send_the_same_bytes() {
    let place = place();
    for keys in [
        "",
        "--set batch.size=20 --set train.epochs=2",
        "--set schedule.kind=lazy",
        "--set schedule.kind=pipelined --set messages.forward={codec=\"quantised\",bits=\"adaptive\",period=2} \
         --set messages.parameters={codec=\"quantised\",bits=8}",
    ] {
        let threads = place.json(&format!("train run.toml --out threads {keys}"));
        let processes = place.json(&format!("train run.toml --out processes {PROCESSES} {keys}"));
        assert_eq!(processes["parameters"]["digest"], threads["parameters"]["digest"], "{keys}");
        assert_eq!(processes["transport"], "processes");
        for field in ["total", "predicted", "received"] {
            assert_eq!(processes["bytes"][field], threads["bytes"][field], "{keys}: {field}");
        }
        let ledger = |run: &str| std::fs::read_to_string(place.path(run).join("ledger.csv")).expect("a ledger");
        assert_eq!(ledger("processes"), ledger("threads"), "{keys}");
    }
}

#[test]
fn a_worker_that_is_killed_is_named_and_the_others_end() {
    for victim in 0..3 {
        let place = place();
        let job = endless(&place);
        let workers = children(&job);
        assert_eq!(workers.len(), 3);
        signal("-9", &workers[victim]);
        let killed = Instant::now();
        let done = job.wait_with_output().expect("the run ends");
        assert!(killed.elapsed() < Duration::from_secs(15), "within the deadline");
        assert_eq!(done.status.code(), Some(4), "{}", said(&done));
        let name = format!("worker {victim}, process {}, ended without a word: signal: 9", workers[victim]);
        assert!(said(&done).contains(&name), "{}", said(&done));
        gone(&workers);
        if victim > 0 {
            // Worker 0 has written down what it had reached.
            assert!(place.path("run/checkpoint.safetensors").exists());
        }
    }
}

#[test]
fn a_run_on_processes_that_is_stopped_leaves_a_checkpoint_and_goes_on_to_the_same_bits() {
    let place = place();
    let mut job = endless(&place);
    let workers = children(&job);
    signal("-INT", &job.id().to_string());
    assert_eq!(job.wait().expect("it ends").code(), Some(130));
    gone(&workers);
    let done = std::fs::read_to_string(place.path("run/metrics.jsonl")).expect("figures").lines().count();
    let rounds = format!("--set train.epochs={}", done + 3);
    let resumed = place.json(&format!("resume run {rounds}"));
    let straight = place.json(&format!("train run.toml --out straight {PROCESSES} {rounds}"));
    assert_eq!(resumed["parameters"]["digest"], straight["parameters"]["digest"]);
}

#[test]
fn workers_whose_parent_is_killed_stop_with_a_checkpoint() {
    let place = place();
    let mut job = endless(&place);
    let workers = children(&job);
    signal("-9", &job.id().to_string());
    job.wait().expect("it is dead");
    gone(&workers);
    let mut said = String::new();
    job.stderr.take().expect("it was piped").read_to_string(&mut said).expect("text");
    assert!(!said.contains("panicked"), "{said}");
    let left = std::fs::read_dir(place.path("tmp")).expect("a folder").count();
    assert_eq!(left, 0, "the folder where they met is left behind");
    let checkpoint = place.path("run/checkpoint.safetensors");
    assert!(checkpoint.exists());
    std::fs::remove_file(checkpoint).expect("removed");
    place.refused("resume run", 5, &["checkpoint.safetensors", "begin anew: laconic train run/config.toml"]);
}

#[cfg(unix)]
#[test]
fn the_folder_where_workers_meet_is_open_to_nobody_else() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    let mut job = endless(&place);
    let folders = std::fs::read_dir(place.path("tmp")).expect("a folder");
    let modes: Vec<u32> =
        folders.map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o777).collect();
    signal("-INT", &job.id().to_string());
    job.wait().expect("it ends");
    assert_eq!(modes, [0o700]);
}

/// As on clusters, where it names job, user and node.
#[test]
fn workers_meet_where_the_folder_for_temporary_files_has_a_long_name() {
    let place = place();
    let long = place.path(&"x".repeat(120));
    std::fs::create_dir(&long).expect("made");
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    let line = format!("train run.toml --out run --quiet {PROCESSES}");
    command.args(line.split_whitespace()).env("TMPDIR", &long).current_dir(place.path(""));
    let done = command.output().expect("the program starts");
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
}

#[test]
fn what_refuses_a_run_is_said_once() {
    let place = place();
    place.refused(&format!("train run.toml {PROCESSES} --set data.path=missing.npz"), 3, &["missing.npz"]);
    place.refused(&format!("train run.toml {PROCESSES} --set partition.method=given"), 3, &["needs a file"]);
    place.refused(&format!("train run.toml {PROCESSES} --set partition.parts=100"), 2, &["at most 64"]);
    assert_eq!(place.names(), ["graph.npz", "run.toml"]);
}

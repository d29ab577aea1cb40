//! Independent trainers in processes: the bits of threads, and no end to the run when one of them is killed.

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
    under_way_with(place, limit, &[])
}

fn under_way_with(place: &Place, limit: &str, keys: &[&str]) -> (Child, Vec<String>) {
    let line = "train run.toml --out run --set transport.kind=processes --set schedule.interval=300ms \
        --set train.threads=1 --set schedule.grace=2s";
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    command.args(line.split_whitespace()).args(["--set", &format!("schedule.limit={limit}")]);
    for key in keys {
        command.args(["--set", key]);
    }
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
    signal("-KILL", process);
}

fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([name, process]).status().expect("kill is there").success());
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
    let shared = "--set schedule.aggregator=2 --set averaging.drop=[0] --set schedule.halo=frozen";
    for keys in ["", "--set schedule.kind=llcg --set averaging.drop=[1]", "--set schedule.halo=frozen", coded, shared] {
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

/// A folder of three parts, of which each process reads its own.
fn cut_place() -> Place {
    let place = place();
    place.json("partition graph.npz --parts 3 --out parts");
    place.write("run.toml", &RUN.replace("graph.npz", "parts"));
    place
}

#[test]
fn from_a_folder_of_parts_workers_evaluate_means_and_processes_have_the_bits_of_threads() {
    let place = cut_place();
    for keys in ["", "--set schedule.halo=frozen", "--set schedule.evaluate=local", "--set schedule.kind=psgd_pa"] {
        let [threads, processes, simulated] = ["threads", "processes", "simulated"].map(|transport| {
            place.json(&format!("train run.toml --out {transport} --set transport.kind={transport} {keys}"))
        });
        for other in [&processes, &simulated] {
            assert_eq!(other["parameters"]["digest"], threads["parameters"]["digest"], "{keys}");
            assert_eq!(other["metrics"], threads["metrics"], "{keys}");
            assert_eq!(other["averaging"]["evaluator"], "workers", "{keys}");
        }
        for run in [&threads, &processes, &simulated] {
            let bytes = &run["bytes"];
            assert_eq!((&bytes["total"], &bytes["total"]), (&bytes["predicted"], &bytes["received"]), "{keys}");
        }
    }
    for keys in ["", "--set schedule.halo=frozen", "--set schedule.evaluate=local"] {
        let plan = place.json(&format!("plan run.toml --set transport.kind=processes {keys}"));
        let run = place.json(&format!("train run.toml --out planned --set transport.kind=processes {keys}"));
        assert_eq!(plan["bytes"], run["bytes"]["total"], "{keys}");
    }
    let whole = place.json("train run.toml --out whole --set schedule.evaluator=aggregator");
    let workers = place.json("train run.toml --out workers");
    assert_eq!(whole["parameters"]["digest"], workers["parameters"]["digest"]);
    let evaluation = |run: &serde_json::Value| run["bytes"]["by_kind"]["evaluation"].as_u64().expect("bytes");
    assert_eq!(evaluation(&whole), 0, "whoever holds everything asks nobody");
    assert!(evaluation(&workers) > 0, "{workers}");
}

#[test]
fn where_workers_evaluate_and_one_is_killed_the_others_train_on_without_figures() {
    let place = cut_place();
    let (job, processes) = under_way(&place, "6s");
    assert_eq!(processes.len(), 4, "an aggregator and three trainers");
    kill(&processes[2]);
    let done = job.wait_with_output().expect("the run ends");
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    let summary = summary(&place);
    let notes = summary["averaging"]["notes"].to_string();
    for what in ["trainer 1 was lost", "have no figures", "trainer 1 has not said what it sent"] {
        assert!(notes.contains(what), "{what} in {notes}");
    }
    assert!(said(&done).contains(&format!("process {}", processes[2])), "{}", said(&done));
    // Means were taken every third of a second, and none waited for a verdict that did not come.
    let means = summary["averaging"]["means"].as_u64().expect("means");
    assert!(means > 10, "{means} means");
    let figures: Vec<bool> = std::fs::read_to_string(place.path("run/metrics.jsonl"))
        .expect("a log")
        .lines()
        .map(|line| line.contains("\"val\""))
        .collect();
    assert!(figures[0] && !figures[figures.len() - 1], "{figures:?}");
}

#[test]
fn a_run_of_single_parts_that_is_stopped_goes_on_from_its_last_mean() {
    let place = cut_place();
    let (job, _) = under_way(&place, "60s");
    signal("-INT", &job.id().to_string());
    let done = job.wait_with_output().expect("the run ends");
    assert!(summary(&place)["averaging"]["ending"] == "stopped", "{}", said(&done));
    let before = summary(&place)["rounds"].as_u64().expect("rounds");
    let resumed = place.json("resume run --set schedule.limit=3s");
    assert!(resumed["rounds"].as_u64() >= Some(before), "{resumed}");
    assert_eq!(resumed["parameters"]["count"], summary(&place)["parameters"]["count"]);
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

/// Its link stays open, and its trainers would wait for ever.
#[test]
fn an_aggregator_that_is_stopped_is_named_and_the_run_ends() {
    let place = place();
    let (job, processes) = under_way_with(&place, "200s", &["transport.deadline_s=1"]);
    signal("-STOP", &processes[0]);
    let done = job.wait_with_output().expect("the run ends");
    let text = said(&done);
    assert_eq!(done.status.code(), Some(4), "{text}");
    let who = format!("worker 0, process {}, the aggregator, has given no sign of life", processes[0]);
    assert!(text.matches(&who).count() == 2 && text.contains("transport.deadline_s"), "a line, then the end: {text}");
    let id = &processes[0];
    let stopped = format!("worker 0, process {id}, is stopped by a signal; `kill -CONT {id}` lets it go on");
    assert!(text.contains(&stopped), "{text}");
    are_gone(&processes);
    assert_eq!(place.json("resume run --set schedule.limit=1s")["averaging"]["ending"], "limit");
}

/// What trainers of a killed process have sent each other nobody has written down, and a file of rows may be lost.
#[test]
fn what_a_killed_run_of_trainers_no_longer_knows_of_its_bytes_is_said() {
    // A finished run that goes on without anything to do misses nothing.
    let finished = place();
    finished.json("train run.toml --out run");
    for resume in ["resume run", "resume run", "resume run --set schedule.limit=40"] {
        let summary = finished.json(&resume.replace("40", "\"40steps\"").replace('"', ""));
        assert!(summary["bytes"]["unlisted"] == 0 && !summary["notes"].to_string().contains("no row"), "{summary}");
    }
    for (keys, is_lost) in [(&["schedule.halo=stale"][..], false), (&[], true), (&[], false)] {
        let place = place();
        let keys = [&["transport.kind=threads"], keys].concat();
        let (job, _) = under_way_with(&place, "3s", &keys);
        let two = || means(&place).len() > 1;
        let start = Instant::now();
        while !two() && start.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        kill(&job.id().to_string());
        job.wait_with_output().expect("it is gone");
        if is_lost {
            std::fs::remove_file(place.path("run/ledger.1.csv")).expect("rows of a trainer");
        }
        let summary = place.json("resume run");
        let (bytes, notes) = (&summary["bytes"], summary["notes"].to_string());
        let is_known = keys.len() == 1 && !is_lost;
        assert_eq!(bytes["straight"].is_u64(), is_known, "{keys:?}: {bytes}");
        assert_eq!(bytes["unlisted"].as_u64() > Some(0), is_lost, "{keys:?}: {bytes}");
        assert_eq!(notes.contains("ledger.K.csv"), is_lost, "{keys:?}: {notes}");
        assert_eq!(notes.contains("this run was killed (start 0) before"), keys.len() > 1, "{keys:?}: {notes}");
    }
}

/// The others would wait for it until the start's deadline is over.
#[test]
fn a_trainer_that_is_killed_while_trainers_meet_is_named_and_the_run_ends() {
    let place = place();
    let line =
        "train run.toml --out run --set transport.kind=processes --set schedule.halo=frozen --set train.threads=1";
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    command.args(line.split_whitespace()).current_dir(place.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (job, start) = (command.spawn().expect("the program starts"), Instant::now());
    let mut processes = children(&job);
    while processes.len() < 4 {
        assert!(start.elapsed() < Duration::from_secs(30), "{processes:?}");
        processes = children(&job);
    }
    kill(&processes[3]);
    let done = job.wait_with_output().expect("the run ends");
    let text = said(&done);
    assert!(done.status.code() == Some(4) && start.elapsed() < Duration::from_secs(40), "{text}");
    assert!(text.contains(&format!("worker 3, process {}, ended without a word: signal", processes[3])), "{text}");
    are_gone(&processes);
}

/// Waits until none of these processes is there.
fn are_gone(processes: &[String]) {
    let start = Instant::now();
    let is_there = |process: &String| {
        std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    while processes.iter().any(is_there) {
        assert!(start.elapsed() < Duration::from_secs(30), "processes of the run are left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The numbers of the means that a run has written down.
fn means(place: &Place) -> Vec<u64> {
    let means = std::fs::read_to_string(place.path("run/metrics.jsonl")).expect("means");
    let number = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["round"].as_u64();
    means.lines().filter_map(number).collect()
}

#[test]
fn a_run_whose_aggregator_is_killed_goes_on_from_its_last_mean() {
    for (keys, count) in [(&[][..], 4), (&["schedule.aggregator=1"], 3)] {
        let place = place();
        let (job, processes) = under_way_with(&place, "4s", keys);
        assert_eq!(processes.len(), count, "{keys:?}");
        kill(&processes[0]);
        let done = job.wait_with_output().expect("the run ends");
        assert_eq!(done.status.code(), Some(4), "{keys:?}: {}", said(&done));
        assert!(said(&done).contains("laconic resume"), "{keys:?}: {}", said(&done));
        are_gone(&processes);
        let resumed = place.json("resume run");
        assert_eq!(resumed["averaging"]["ending"], "limit", "{keys:?}");
        let all = resumed["averaging"]["trainers"].as_array().expect("trainers").clone();
        assert!(all.iter().all(|trainer| trainer["means"].as_u64() > Some(0)), "{keys:?}: {all:?}");
        let numbers = means(&place);
        let all: Vec<u64> = (1..=numbers.len() as u64).collect();
        assert_eq!(numbers, all, "{keys:?}: no mean is lost, and none is there twice");
    }
}

#[test]
fn beside_a_trainer_that_lives_with_the_aggregator_another_that_is_killed_comes_back() {
    let place = place();
    let (job, processes) = under_way_with(&place, "6s", &["schedule.aggregator=1"]);
    assert_eq!(processes.len(), 3, "the aggregator with a trainer, and two others");
    // The last process is the trainer of part 2, whose number among workers is 3.
    kill(&processes[2]);
    let done = job.wait_with_output().expect("the run ends");
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    assert!(said(&done).contains(&format!("worker 3, process {}", processes[2])), "{}", said(&done));
    let summary = summary(&place);
    let notes = summary["averaging"]["notes"].to_string();
    for what in ["trainer 2 was lost", "trainer 2 came"] {
        assert!(notes.contains(what), "{what} in {notes}");
    }
    assert_eq!(summary["averaging"]["hosted_part"], 1);
    let shared = |link: &&serde_json::Value| link["from"] == 2 || link["to"] == 2;
    let links = summary["bytes"]["by_link"].as_array().expect("links").clone();
    let of_two: Vec<_> = links.iter().filter(shared).filter(|link| link["bytes"] != 0).collect();
    assert!(!links.is_empty() && of_two.is_empty(), "{of_two:?}");
}

/// A part without a node to learn from has no trainer, which nobody knows before the data are read.
#[test]
fn a_part_without_a_trainer_keeps_no_other_from_its_place() {
    let place = Place::new();
    // Two triangles and a pair; the pair, part 0, has no node to train on.
    place.write("edges.csv", "src,dst\na,b\nb,c\nc,a\nd,e\ne,f\nf,d\nx,y\nc,d\nx,a\n");
    let nodes = "id,w,label,split\nx,0.1,yes,val\ny,0.2,no,test\na,1,yes,train\nb,1.1,yes,val\nc,0.9,yes,test\n\
        d,-1,no,train\ne,-1.1,no,val\nf,-0.9,no,test\n";
    place.write("nodes.csv", nodes);
    place.write("parts.txt", "0\n0\n1\n1\n1\n2\n2\n2\n");
    let run = "data = { path = \"edges.csv\", nodes_path = \"nodes.csv\" }\nmodel = { hidden = 4 }\n\
        partition = { parts = 3, method = \"given\", file = \"parts.txt\" }\n\
        schedule = { kind = \"averaging\", interval = \"5 steps\", limit = \"20 steps\" }\n";
    place.write("few.toml", run);
    let none = place.run("train few.toml --out none --set transport.kind=processes --set schedule.aggregator=0");
    assert!(
        none.code == 2 && none.err.contains("schedule.aggregator = 0") && none.err.contains("to learn from"),
        "{}",
        none.err
    );
    for keys in ["", "--set schedule.halo=frozen"] {
        for aggregator in ["own", "1", "2"] {
            let set = format!("--set schedule.aggregator={aggregator} {keys}");
            let [threads, processes] = ["threads", "processes"].map(|transport| {
                place.json(&format!("train few.toml --out {transport} --set transport.kind={transport} {set}"))
            });
            let parts = processes["averaging"]["trainers"].as_array().expect("trainers").clone();
            assert_eq!(parts.iter().map(|of| of["part"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2)], "{set}");
            assert_eq!(processes["parameters"]["digest"], threads["parameters"]["digest"], "{set}");
            assert_eq!(processes["bytes"]["by_link"], threads["bytes"]["by_link"], "{set}");
            assert_eq!(processes["bytes"]["total"], processes["bytes"]["predicted"], "{set}");
        }
    }
}

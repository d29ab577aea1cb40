//! The same run under MPI: same bits, same bytes, and no hang when a process is killed.
#![cfg(feature = "mpi")]

mod program;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use program::Place;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[model]\nhidden = 16\n[train]\nepochs = 4\n";

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 400 --features 8 --out graph.npz");
    place.write("run.toml", RUN);
    place
}

/// Which `mpirun` starts them: that of the library that the program was built with. MPICH's knows no other words.
fn launcher() -> (String, bool) {
    let name = std::env::var("LACONIC_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
    let is_open = !name.contains("mpich");
    (name, is_open)
}

fn is_open_mpi_5() -> bool {
    let told = Command::new(launcher().0).arg("--version").output().expect("mpirun is installed");
    String::from_utf8_lossy(&told.stdout).contains("Open MPI) 5.")
}

/// A job of so many processes whose further words are to follow.
fn job(place: &Place, processes: &str) -> Command {
    let (name, is_open) = launcher();
    let mut command = Command::new(name);
    if is_open {
        // When a process dies, mpirun ends the others; on a busy machine they need more than its one second to say what
        // they saw.
        command.args(["--oversubscribe", "--mca", "odls_base_sigkill_timeout", "10"]);
    }
    // Open MPI asks root for confirmation; containers often run as root.
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.args(["-n", processes]).current_dir(place.path(""));
    command
}

fn mpirun(place: &Place, line: &str) -> Command {
    let mut command = job(place, "3");
    command.arg(env!("CARGO_BIN_EXE_laconic")).args(line.split_whitespace()).args(["--set", "transport.kind=mpi"]);
    command
}

fn said(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// The processes that a job has started itself.
fn children(job: u32) -> Vec<String> {
    let listed = std::fs::read_to_string(format!("/proc/{job}/task/{job}/children")).unwrap_or_default();
    listed.split_whitespace().map(str::to_owned).collect()
}

fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([name, process]).status().expect("kill is there").success());
}

/// Waits until the run's first rounds are over.
fn begun(log: &std::path::Path) {
    let start = Instant::now();
    while std::fs::metadata(log).map_or(0, |log| log.len()) == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "the job did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn summary(done: &Output) -> serde_json::Value {
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Ways to say less; those of the last line need what each worker alone remembers.
const FRUGAL: [&str; 3] = [
    "--set messages.forward={codec=\"masked\",ratio={from=8,slope=2},inner=\"quantised\"} \
     --set messages.selection=boundary_sample",
    "--set schedule.kind=lazy --set messages.forward={codec=\"quantised\",bits={from=2,to=8}} \
     --set messages.evaluation=half",
    "--set schedule.kind=pipelined --set messages.forward={codec=\"quantised\",bits=\"adaptive\",period=2} \
     --set messages.parameters={codec=\"quantised\",bits=8} --set schedule.smooth_features=0.5",
];

#[test]
fn processes_and_threads_train_the_same_bits_and_send_the_same_bytes() {
    let place = place();
    let plain = [
        "",
        "--set batch.size=20 --set train.epochs=2",
        "--set schedule.kind=lazy",
        "--set schedule.kind=lazy --set schedule.start=mlp",
        "--set model.arch=gat",
    ];
    for keys in plain.into_iter().chain(FRUGAL) {
        let threads = place.json(&format!("train run.toml --out threads {keys}"));
        let line = format!("train run.toml --out mpi --json --quiet {keys}");
        let mpi = summary(&mpirun(&place, &line).output().expect("mpirun is installed"));
        assert_eq!(mpi["parameters"]["digest"], threads["parameters"]["digest"], "{keys}");
        for field in ["total", "predicted", "received"] {
            assert_eq!(mpi["bytes"][field], threads["bytes"][field], "{keys}: {field}");
        }
        assert_eq!(mpi["bytes"]["received"], threads["bytes"]["total"], "{keys}");
        let ledger = |run: &str| std::fs::read_to_string(place.path(run).join("ledger.csv")).expect("a ledger");
        assert_eq!(ledger("mpi"), ledger("threads"), "{keys}");
    }
}

#[test]
fn independent_trainers_under_mpi_have_the_bits_of_threads_with_an_aggregator_that_holds_no_part() {
    let place = place();
    let averaging = "--set partition.parts=2 --set schedule.kind=averaging --set schedule.interval=1epoch";
    for keys in ["", "--set schedule.halo=frozen", "--set schedule.evaluate=local --set messages.parameters=half"] {
        let line = format!("{averaging} {keys}");
        let threads = place.json(&format!("train run.toml --out threads --set schedule.evaluator=workers {line}"));
        let line = format!("train run.toml --out mpi --json --quiet {line}");
        let mpi = summary(&mpirun(&place, &line).output().expect("mpirun is installed"));
        assert_eq!(mpi["parameters"]["digest"], threads["parameters"]["digest"], "{keys}");
        assert_eq!(mpi["metrics"], threads["metrics"], "{keys}");
        let bytes = &mpi["bytes"];
        assert_eq!((&bytes["total"], &bytes["total"]), (&bytes["predicted"], &bytes["received"]), "{keys}");
    }
    let wrong = mpirun(&place, "train run.toml --out wrong --set schedule.kind=averaging").output().expect("mpirun");
    assert!(said(&wrong).contains("start 4 processes, not 3"), "{}", said(&wrong));
}

#[test]
fn a_run_stopped_and_resumed_under_mpi_ends_with_the_bits_of_one_straight_through() {
    let place = place();
    for keys in ["", FRUGAL[2]] {
        let straight = place.json(&format!("train run.toml --out straight {keys}"));
        let fault = "--set out.checkpoint_every=1 --set transport.fault={rank=1,round=3,kind=\"crash\"}";
        let crash = format!("train run.toml --out part --json --quiet {fault} {keys}");
        assert!(!mpirun(&place, &crash).output().expect("mpirun is installed").status.success());
        let resumed = summary(&mpirun(&place, "resume part --json --quiet").output().expect("mpirun is installed"));
        assert_eq!(resumed["parameters"]["digest"], straight["parameters"]["digest"], "{keys}");
        // Processes that failed have left their rows; the resumed run puts them together.
        let ledger = std::fs::read_to_string(place.path("part/ledger.csv")).expect("a ledger");
        let rows: Vec<laconic_wire::Row> = ledger.lines().skip(1).map(|line| line.parse().expect("a row")).collect();
        let framed = |start: Option<u32>| -> u64 {
            let of = rows.iter().filter(|row| start.is_none_or(|start| row.start == start));
            of.map(|row| row.count.framed).sum()
        };
        let bytes = &resumed["bytes"];
        assert_eq!((&bytes["total"], &bytes["unlisted"]), (&framed(None).into(), &0.into()), "{keys}");
        for start in 0..2 {
            assert_eq!(bytes["starts"][start as usize]["bytes"], framed(Some(start)), "{keys}: start {start}");
        }
        assert_eq!(framed(Some(0)) + framed(Some(1)), framed(None), "{keys}");
        assert!(framed(Some(0)) > framed(Some(1)) / 4, "{keys}: two rounds of four, and start-up");
    }
}

#[test]
fn a_killed_process_ends_the_others_with_a_message_that_names_it() {
    let place = place();
    let line = "train run.toml --out killed --quiet --set train.epochs=1000000 --set transport.deadline_s=20";
    let mut job = mpirun(&place, line);
    let job = job.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mpirun is installed");
    begun(&place.path("killed/metrics.jsonl"));
    let victim = children(job.id()).last().cloned().expect("mpirun has started processes");
    signal("-9", &victim);
    let killed = Instant::now();
    let done = job.wait_with_output().expect("the job ends");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(killed.elapsed() < Duration::from_secs(20), "within the deadline");
    assert!(!done.status.success());
    // Open MPI's launcher ends the others at once from version 5 on, and names the process itself.
    let names = if is_open_mpi_5() { "process rank 2" } else { "waited for rank 2" };
    assert!(said.contains(names), "{said}");
}

#[test]
fn processes_of_a_job_without_the_transport_are_refused_before_anything_is_made() {
    let place = place();
    let mut job = Command::new("mpirun");
    job.args(["--oversubscribe", "-n", "2", env!("CARGO_BIN_EXE_laconic"), "train", "run.toml", "--out", "run"]);
    job.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    let done = job.current_dir(place.path("")).output().expect("mpirun is installed");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success() && said.contains("transport.kind=mpi"), "{said}");
    assert_eq!(place.names(), ["graph.npz", "run.toml"]);
}

#[test]
fn a_process_whose_peer_never_joins_the_job_ends_by_itself() {
    let place = place();
    let mut job = Command::new("mpirun");
    job.args(["--oversubscribe", "-n", "1", "sleep", "60", ":", "-n", "1", env!("CARGO_BIN_EXE_laconic")]);
    job.args(["train", "run.toml", "--out", "run", "--set", "transport.kind=mpi", "--set", "partition.parts=2"]);
    job.args(["--set", "transport.start_deadline_s=2"]).current_dir(place.path(""));
    job.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    let start = Instant::now();
    let done = job.output().expect("mpirun is installed");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("transport.start_deadline_s") && start.elapsed() < Duration::from_secs(40), "{said}");
    assert!(!done.status.success() && !place.path("run").exists());
}

#[test]
fn ctrl_c_under_mpi_leaves_a_checkpoint_from_which_the_run_goes_on() {
    let place = place();
    let mut job = mpirun(&place, "train run.toml --out run --quiet --set train.epochs=1000000");
    let mut job = job.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("mpirun is installed");
    let log = place.path("run/metrics.jsonl");
    begun(&log);
    signal("-INT", &job.id().to_string());
    assert!(!job.wait().expect("the job ends").success());
    let rounds = std::fs::read_to_string(&log).expect("a log").lines().count() + 3;
    let line = format!("resume run --json --quiet --set train.epochs={rounds}");
    let resumed = summary(&mpirun(&place, &line).output().expect("mpirun is installed"));
    let straight = place.json(&format!("train run.toml --out straight --set train.epochs={rounds}"));
    assert_eq!(resumed["parameters"]["digest"], straight["parameters"]["digest"]);
}

#[test]
fn processes_that_run_something_else_are_refused_with_the_key() {
    let place = place();
    for (key, values) in [("train.lr", ["0.01", "0.5"]), ("schedule.cache_inputs", ["true", "false"])] {
        let program = |value: &str| {
            let set = format!("train run.toml --out run --quiet --set transport.kind=mpi --set {key}={value}");
            set.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let mut command = Command::new("mpirun");
        command.args(["--oversubscribe", "-n", "2", env!("CARGO_BIN_EXE_laconic")]).args(program(values[0]));
        command.args([":", "-n", "1", env!("CARGO_BIN_EXE_laconic")]).args(program(values[1]));
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        let done = command.current_dir(place.path("")).output().expect("mpirun is installed");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("{key} is {} on worker 0, {} on worker 2", values[0], values[1])), "{said}");
    }
}

/// Rounds take longer than a `mpirun` waits, and no checkpoint but that of a round's end can be resumed from.
#[test]
fn under_a_scheduler_a_round_that_is_asked_to_end_has_its_time() {
    if !launcher().1 {
        return;
    }
    let place = place();
    let slow = "--set transport.shape=1gbit,100ms --set transport.shape_sleeps=true";
    let line = format!("train run.toml --out run --quiet --set train.epochs=1000000 {} {slow}", FRUGAL[2]);
    let mut job = mpirun(&place, &line);
    let job = job.env("SLURM_JOB_ID", "7").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    let log = place.path("run/metrics.jsonl");
    begun(&log);
    // As a scheduler does, each process by itself, and as at a time limit twice.
    for _ in 0..2 {
        children(job.id()).iter().for_each(|process| signal("-TERM", process));
        std::thread::sleep(Duration::from_millis(50));
    }
    let done = job.wait_with_output().expect("the job ends");
    assert!(place.path("run/summary.json").exists(), "{}", said(&done));
    let rounds = std::fs::read_to_string(&log).expect("a log").lines().count() + 3;
    let plain = format!("--json --quiet --set transport.shape_sleeps=false --set train.epochs={rounds}");
    let resumed = summary(&mpirun(&place, &format!("resume run {plain}")).output().expect("mpirun is installed"));
    let straight = place.json(&format!("train run.toml --out straight --set train.epochs={rounds} {}", FRUGAL[2]));
    assert_eq!(resumed["parameters"]["digest"], straight["parameters"]["digest"]);
}

#[test]
fn a_process_that_mpi_knows_alone_does_not_train_for_a_job_of_several() {
    let place = place();
    // Of another library than that of this program, which therefore finds nobody.
    let variable = if launcher().1 { "PMI_SIZE" } else { "OMPI_COMM_WORLD_SIZE" };
    let mut alone = Command::new(env!("CARGO_BIN_EXE_laconic"));
    let line = "train run.toml --out run --set transport.kind=mpi --set partition.parts=0";
    alone.args(line.split_whitespace()).env(variable, "3").current_dir(place.path(""));
    let done = alone.output().expect("the program starts");
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    let words = format!("3 processes were started together ({variable})");
    assert!(said(&done).contains(&words) && said(&done).contains("mpirun"), "{}", said(&done));
    assert_eq!(place.names(), ["graph.npz", "run.toml"]);
}

#[test]
fn what_a_process_has_of_its_machine_is_said() {
    let place = place();
    let run = |more: &[&str]| {
        let mut command = job(&place, "2");
        command.args(more).arg(env!("CARGO_BIN_EXE_laconic"));
        command.args("train run.toml --out run --set transport.kind=mpi --set partition.parts=2".split_whitespace());
        said(&command.output().expect("mpirun is installed"))
    };
    let words = "2 of 2 processes are on this machine";
    if !launcher().1 {
        assert!(run(&[]).contains(words));
        return;
    }
    let eager = "OMPI_MCA_btl_tcp_eager_limit=4194304";
    let unbound = run(&["--bind-to", "none"]);
    assert!(unbound.contains(words) && unbound.contains(eager) && !unbound.contains("has bound"), "{unbound}");
    let set = run(&["--mca", "btl_tcp_eager_limit", "70000"]);
    assert!(set.contains(words) && !set.contains(eager), "who has set it keeps it: {set}");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores >= 4 {
        let bound = run(&["--bind-to", "core"]);
        assert!(bound.contains("has bound") && bound.contains("mpirun --bind-to none"), "{bound}");
    }
}

//! The folder of a run: one run at a time, nothing changed by a run that cannot start, nothing left by one that was
//! killed.
#![cfg(unix)]

mod program;

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use laconic_graph::dataset::{Features, Ids, Labels, Split};
use laconic_graph::part::{GlobalCounts, Part, Provenance, write_part};
use program::Place;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 2\n[model]\nhidden = 8\n[train]\nepochs = 3\n";
/// Rounds that no test waits for.
const LONG: &str = "--quiet --set train.epochs=100000";
/// How long a test waits for something that a busy machine may do late.
const PATIENCE: Duration = Duration::from_secs(60);

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 1000 --features 16 --out graph.npz");
    place.write("run.toml", RUN);
    place
}

/// Every file below a folder with its content.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).expect("a file"));
        }
    }
    found
}

fn start(place: &Place, line: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    command.args(line.split_whitespace()).current_dir(place.path(""));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a run that does not end by itself and waits for its first round.
fn long_run(place: &Place, out: &str) -> Child {
    let job = start(place, &format!("train run.toml --out {out} {LONG}"));
    let log = place.path(out).join("metrics.jsonl");
    wait_until("the run did not start", || std::fs::metadata(&log).is_ok_and(|log| log.len() > 0));
    job
}

fn signal(job: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &job.id().to_string()]).status().expect("kill is there").success());
}

fn said(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// Two nodes of a graph of five, of which nobody has the last; there is an edge from node `source`.
fn part(index: u32, source: u64) -> Part {
    let global = GlobalCounts { nodes: 5, edges: 2, columns: 1, classes: 2, train: 4, ..GlobalCounts::default() };
    let first = u64::from(index) * 2;
    Part {
        index,
        parts: 2,
        nodes: vec![first, first + 1],
        edges: laconic_graph::edges::Edges::new(vec![0, 1, 1], vec![source]),
        owners: None,
        left_out: Vec::new(),
        negatives: None,
        features: Features::Dense { columns: 1, values: vec![1.0, 2.0].into() },
        labels: Labels::Single { classes: 2, values: vec![0, 1] },
        roles: vec![Split::TRAIN; 2],
        ids: Ids::Row,
        global,
    }
}

#[test]
fn a_run_that_cannot_start_changes_nothing() {
    let place = place();
    place.write("nan.csv", "src,dst\n0,1\n1,2\n");
    place.write("nan-nodes.csv", "id,x,label,split\n0,1.0,0,train\n1,nan,1,train\n2,3.0,1,train\n");
    place.write("unknown.csv", "src,dst\n0,1\n1,2\n2,3\n");
    let nodes = "id,x,label,split\n0,1.0,,train\n1,1.5,,train\n2,3.0,1,val\n3,2.0,0,test\n";
    place.write("unknown-nodes.csv", nodes);
    let provenance = Provenance { method: "given".to_owned(), seed: 0 };
    write_part(&place.path("orphan"), &part(0, 4), &provenance).expect("a part");
    write_part(&place.path("orphan"), &part(1, 0), &provenance).expect("a part");
    place.json("train run.toml --out run");
    let refusals: &[(&str, i32)] = &[
        ("--set messages.budget=1kB", 2),
        ("--set train.metrics=[\"roc_auc\"]", 2),
        ("--set train.lr=0", 2),
        ("--set model.heads=2", 2),
        ("--set no.such=key", 2),
        ("--set transport.shape=nosuch", 2),
        ("--set transport.fault={rank=7,round=1,kind=\"crash\"}", 2),
        ("--set partition.method=given --set partition.file=nosuch", 3),
        ("--set data.path=nosuch.npz", 3),
        ("--set data.path=nan.csv --set data.nodes_path=nan-nodes.csv", 3),
        ("--set data.path=orphan --set partition.method=given", 3),
        ("--set data.split_index=7", 2),
        ("--set data.path=unknown.csv --set data.nodes_path=unknown-nodes.csv", 2),
        ("--set transport.kind=mpi --set partition.parts=3", if cfg!(feature = "mpi") { 0 } else { 2 }),
    ];
    let before = contents(&place.path(""));
    for out in ["run", "fresh", "below/the/fresh"] {
        for (keys, code) in refusals.iter().filter(|(_, code)| *code > 0) {
            let ran = place.run(&format!("train run.toml --quiet --out {out} {keys}"));
            assert_eq!(ran.code, *code, "{keys}: {}", ran.err);
            assert_eq!(ran.err.lines().count(), 1, "{keys}: {}", ran.err);
            let after = contents(&place.path(""));
            assert!(after == before, "{keys}: {:?}", after.keys().collect::<Vec<_>>());
        }
    }
    for keys in ["--set train.seed=7", "--set model.hidden=9"] {
        assert_eq!(place.run(&format!("resume run --quiet {keys}")).code, 2);
        assert!(contents(&place.path("")) == before, "{keys}");
    }
}

#[test]
fn a_folder_has_one_run_at_a_time_and_a_kill_frees_it() {
    let place = place();
    let mut job = long_run(&place, "run");
    let busy = format!("run is being written by process {}", job.id());
    for line in ["train run.toml --out run", "resume run", "train run.toml --out ./nosuch/../run"] {
        place.refused(&format!("{line} --quiet"), 5, &[&busy]);
    }
    assert_eq!(place.names(), ["graph.npz", "run", "run.toml"], "nothing was moved");
    signal(&job, "-9");
    job.wait().expect("the run ends");
    place.json("train run.toml --out run");
    assert!(place.path("run.1/metrics.jsonl").is_file());
    assert!(!place.path("run/lock").exists(), "nothing is held any more");
}

#[test]
fn a_comparison_is_made_by_one_process_at_a_time() {
    let place = place();
    place.write("methods.toml", "[[method]]\nname = \"one\"\nset = [\"train.epochs=100000\"]\n");
    let mut job = start(&place, "compare run.toml --runs methods.toml --out all --quiet");
    let log = place.path("all/runs/one/seed-0/metrics.jsonl");
    wait_until("the run did not start", || std::fs::metadata(&log).is_ok_and(|log| log.len() > 0));
    let busy = format!("all is being written by process {}", job.id());
    place.refused("compare run.toml --runs methods.toml --out all --quiet", 5, &[&busy]);
    signal(&job, "-INT");
    assert_eq!(job.wait().expect("it ends").code(), Some(130));
}

#[test]
fn processes_that_were_started_together_are_not_each_a_run() {
    let place = place();
    let before = contents(&place.path(""));
    for (variable, line) in [
        ("OMPI_COMM_WORLD_SIZE", "train run.toml --out run"),
        ("PMI_SIZE", "compare run.toml --runs methods.toml --out all"),
        ("SLURM_STEP_NUM_TASKS", "train run.toml --out run"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
        command.args(line.split_whitespace()).current_dir(place.path("")).env(variable, "3");
        place.write("methods.toml", "[[method]]\nname = \"one\"\n");
        let done = command.output().expect("starts");
        assert_eq!(done.status.code(), Some(2), "{}", said(&done));
        assert!(said(&done).contains("transport.kind=mpi"), "{}", said(&done));
        std::fs::remove_file(place.path("methods.toml")).expect("it was written");
        assert!(contents(&place.path("")) == before, "{line}");
        command.env(variable, "1").args(["--set", "train.epochs=1"]);
    }
}

#[test]
fn a_folder_is_named_before_it_is_looked_into() {
    let place = place();
    place.json("train run.toml --out here");
    let inside = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
        command.args(["train", "../run.toml", "--quiet"]).args(line.split_whitespace());
        command.current_dir(place.path("here")).output().expect("starts")
    };
    let before = contents(&place.path(""));
    for out in [".", "nosuch/..", "..//here"] {
        let done = inside(&format!("--out {out}"));
        assert_eq!(done.status.code(), Some(2), "{out}: {}", said(&done));
        assert!(said(&done).contains("the current folder"), "{out}: {}", said(&done));
        assert!(contents(&place.path("")) == before, "{out}");
    }
    // A current folder without a run may become one's.
    std::fs::create_dir(place.path("empty")).expect("made");
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    command.args(["train", "../run.toml", "--quiet", "--out", "."]).current_dir(place.path("empty"));
    assert!(command.output().expect("starts").status.success());
    assert!(place.path("empty/summary.json").is_file());

    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    let done = command.args(["train", "run.toml", "--out", ""]).current_dir(place.path("")).output().expect("starts");
    assert_eq!(done.status.code(), Some(2));
    assert!(said(&done).contains("expected the name of a folder"), "{}", said(&done));

    let before = contents(&place.path(""));
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    command.args(["train", "run.toml", "--quiet", "--out"]).arg(std::ffi::OsStr::from_bytes(b"b\xff"));
    let done = command.current_dir(place.path("")).output().expect("starts");
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    assert!(contents(&place.path("")) == before, "a name that no configuration can hold");
}

#[test]
fn only_the_folder_of_a_run_is_moved_aside() {
    let place = place();
    for (folder, config) in [("theirs", "colour = \"blue\"\n"), ("broken", "no = toml = at all"), ("empty", "")] {
        std::fs::create_dir(place.path(folder)).expect("made");
        place.write(&format!("{folder}/config.toml"), config);
        place.write(&format!("{folder}/diary.txt"), "dear diary");
        let before = contents(&place.path(""));
        place.refused(&format!("train run.toml --quiet --out {folder}"), 2, &[folder, "not that of a run"]);
        assert!(contents(&place.path("")) == before, "{folder}");
    }
    // A run of which nothing but its configuration is left is one.
    std::fs::create_dir(place.path("begun")).expect("made");
    place.write("begun/config.toml", RUN);
    place.json("train run.toml --out begun");
    assert!(place.path("begun.1/config.toml").is_file());
}

#[test]
fn a_folder_that_goes_away_ends_its_run_and_does_not_come_back() {
    let place = place();
    for moved in [false, true] {
        let job = long_run(&place, "run");
        if moved {
            std::fs::rename(place.path("run"), place.path("elsewhere")).expect("moved");
        } else {
            std::fs::remove_dir_all(place.path("run")).expect("removed");
        }
        let done = job.wait_with_output().expect("the run ends");
        assert_eq!(done.status.code(), Some(5), "{}", said(&done));
        assert!(said(&done).contains("run: the folder of this run is no longer there"), "{}", said(&done));
        assert!(!place.path("run").exists());
    }
}

#[test]
fn what_a_killed_run_was_writing_is_gone_when_it_goes_on() {
    let place = place();
    let crash = "train run.toml --out run --quiet --set out.checkpoint_every=1 \
                 --set transport.fault={rank=1,round=2,kind=\"crash\"}";
    assert_eq!(place.run(crash).code, 4);
    for (name, text) in
        [(".checkpoint.safetensors.part", "half"), (".state-0-1.safetensors.part", "half"), ("lock", "123")]
    {
        place.write(&format!("run/{name}"), text);
    }
    place.json("resume run");
    let names: Vec<PathBuf> = contents(&place.path("run")).into_keys().collect();
    let names: Vec<_> = names.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    let expected = [
        "checkpoint.safetensors",
        "config.toml",
        "ledger.csv",
        "metrics.jsonl",
        "model.safetensors",
        "summary.json",
        "timeline.csv",
    ];
    assert_eq!(names, expected);
}

/// What is not a run's own stays as it is, whatever it is called.
#[test]
fn files_of_others_in_the_folder_are_left_alone() {
    let place = place();
    std::fs::create_dir(place.path("e")).expect("a folder");
    place.write("e/.movie.mkv.part", "precious");
    place.write("e/notes.txt", "precious");
    place.json("train run.toml --out e");
    assert_eq!(std::fs::read_to_string(place.path("e/.movie.mkv.part")).expect("it stays"), "precious");
    place.json("resume e --set train.epochs=4");
    assert_eq!(std::fs::read_to_string(place.path("e/.movie.mkv.part")).expect("it stays"), "precious");
    // Names that a run would write itself, in folders that are no run's.
    for (name, text) in [
        ("lock", "a key and a lock"),
        ("summary.json", "{}"),
        ("model.safetensors", "a model"),
        ("config.toml", "x = 1"),
        ("report.html", "a report"),
    ] {
        std::fs::create_dir(place.path("other")).expect("a folder");
        place.write(&format!("other/{name}"), text);
        let code = if name == "lock" { 5 } else { 2 };
        place.refused("train run.toml --out other", code, &["other", name]);
        assert_eq!(contents(&place.path("other")).len(), 1, "{name}");
        assert_eq!(std::fs::read_to_string(place.path("other").join(name)).expect("it stays"), text);
        std::fs::remove_dir_all(place.path("other")).expect("removed");
    }
    // A finished run whose configuration is lost is moved aside like any other.
    std::fs::remove_file(place.path("e/config.toml")).expect("removed");
    let before = std::fs::read(place.path("e/model.safetensors")).expect("a model");
    place.json("train run.toml --out e --set train.seed=3");
    assert_eq!(std::fs::read(place.path("e.1/model.safetensors")).expect("moved"), before);
}

#[test]
fn a_second_ctrl_c_stops_at_once_and_is_no_error() {
    let place = place();
    // Work beyond the end of a round, so that the second request finds the run.
    place.json("data synth sbm --nodes 20000 --features 64 --out large.npz");
    let keys = "--set data.path=large.npz --set model.hidden=64 --set transport.deadline_s=60";
    for pause in [0, 1, 5, 20] {
        let job = start(&place, &format!("train run.toml --out run {LONG} {keys}"));
        let log = place.path("run/metrics.jsonl");
        wait_until("the run did not start", || std::fs::metadata(&log).is_ok_and(|log| log.len() > 0));
        signal(&job, "-INT");
        std::thread::sleep(Duration::from_millis(pause));
        signal(&job, "-INT");
        let done = job.wait_with_output().expect("the run ends");
        assert_eq!((done.status.code(), said(&done).as_str()), (Some(130), ""), "{pause} ms apart");
        std::fs::remove_dir_all(place.path("run")).expect("removed");
    }
}

#[test]
fn a_table_of_predictions_has_the_rights_of_any_new_file() {
    let place = place();
    place.json("train run.toml --out run");
    place.json("predict run --out p.parquet");
    place.write("any", "");
    let mode = |name: &str| std::fs::metadata(place.path(name)).expect("it is there").permissions().mode();
    for name in ["p.parquet", "run/summary.json", "run/config.toml", "graph.npz"] {
        assert_eq!(mode(name), mode("any"), "{name}");
    }
}

/// Whoever has closed a run or parts to others finds them closed when they are written again.
#[test]
fn what_is_written_anew_is_as_closed_as_what_was_there() {
    let place = place();
    let mode = |name: &str| std::fs::metadata(place.path(name)).expect(name).permissions().mode() & 0o777;
    let close = |name: &str, mode: u32| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.path(name), mode).expect("ours");
    };
    place.json("train run.toml --out run");
    let files = ["config.toml", "checkpoint.safetensors", "summary.json", "metrics.jsonl", "model.safetensors"];
    files.iter().for_each(|name| close(&format!("run/{name}"), 0o600));
    place.json("resume run --set train.epochs=8");
    files.iter().for_each(|name| assert_eq!(mode(&format!("run/{name}")), 0o600, "{name}"));
    // Another run in the place of one whose files were closed; and of one whose folder was.
    place.json("train run.toml --out run");
    assert_eq!((mode("run"), mode("run.1/summary.json")), (0o700, 0o600));
    place.json("train run.toml --out run");
    assert_eq!(mode("run"), 0o700);
    place.json("partition graph.npz --parts 2 --out parts");
    close("parts", 0o750);
    place.json("partition graph.npz --parts 3 --out parts --force");
    assert_eq!(mode("parts"), 0o750);
    close("parts/meta.json", 0o600);
    place.json("partition graph.npz --parts 2 --out parts --force");
    assert_eq!(mode("parts"), 0o700);
    place.json("predict run --out p.csv");
    close("p.csv", 0o640);
    place.json("predict run --out p.csv --force");
    assert_eq!(mode("p.csv"), 0o640);
}

/// Runs the program where no file may grow beyond so many blocks of 512 bytes, as on a disk that is full.
fn without_room(place: &Place, blocks: usize, line: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_laconic");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {program} {line}");
    Command::new("sh").args(["-c", &script]).current_dir(place.path("")).output().expect("sh is there")
}

#[test]
fn a_full_disk_is_one_line_with_the_files_path_and_leaves_nothing() {
    let place = place();
    place.json("train run.toml --out run");
    std::fs::create_dir(place.path("tiny")).expect("made");
    for line in [
        "predict run --out tiny/x.parquet --quiet",
        "data convert graph.npz --out tiny/y.npz --quiet",
        "data synth sbm --nodes 500 --out tiny/z.npz --quiet",
        "report run --out tiny/r.html --quiet",
        "export run --to pyg --out tiny/e --quiet",
        "man --out tiny/m --quiet",
    ] {
        let done = without_room(&place, 2, line);
        let file = line.split_whitespace().find(|word| word.starts_with("tiny/")).expect("every line has one");
        assert_eq!(done.status.code(), Some(5), "{line}: {}", said(&done));
        assert_eq!(said(&done).lines().count(), 1, "{line}: {}", said(&done));
        assert!(said(&done).contains(file), "{line}: {}", said(&done));
        assert!(contents(&place.path("tiny")).is_empty(), "{line}");
    }
    // The configuration fits; the log of rounds grows until there is no more room.
    let done = without_room(&place, 8, &format!("train run.toml --out tiny/run {LONG}"));
    assert_eq!(done.status.code(), Some(5), "{}", said(&done));
    assert!(said(&done).contains("tiny/run/metrics.jsonl: "), "{}", said(&done));
}

#[test]
fn stopped_while_it_writes_a_command_leaves_nothing() {
    let place = place();
    place.json("data synth sbm --nodes 60000 --features 64 --out large.npz");
    let before = place.names();
    let job = start(&place, "data convert large.npz --out copy.npz --quiet");
    let part = place.path(".copy.npz.part");
    wait_until("nothing was written", || part.exists());
    signal(&job, "-INT");
    let done = job.wait_with_output().expect("it ends");
    assert_eq!((done.status.code(), said(&done).as_str()), (Some(130), ""));
    assert_eq!(place.names(), before);
}

#[test]
fn an_earlier_run_that_was_moved_aside_is_whole() {
    let place = place();
    place.json("train run.toml --out run");
    let (before, inode) = (contents(&place.path("run")), std::fs::metadata(place.path("run")).expect("there").ino());
    place.json("train run.toml --out run --set train.seed=5");
    assert_eq!(std::fs::metadata(place.path("run.1")).expect("there").ino(), inode);
    let after: Vec<Vec<u8>> = contents(&place.path("run.1")).into_values().collect();
    assert!(after.into_iter().eq(before.into_values()));
}

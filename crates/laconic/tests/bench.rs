//! `laconic bench` at small sizes: what it prints and refuses. How fast anything is, no test asks.

mod program;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use program::Place;
use serde_json::Value;

/// Measures that take no time to speak of.
const SHORT: &str = "--seconds 0 --array 2MB --threads 2";

const EPOCH: &str = "bench epoch --nodes 300 --edges 1500 --features 6 --classes 3 --hidden 8 --layers 2 --rounds 3";

fn number(value: &Value, path: &str) -> f64 {
    let pointer = format!("/{}", path.replace('.', "/"));
    value.pointer(&pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {path} in {value}"))
}

fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    let pointer = format!("/{}", path.replace('.', "/"));
    value.pointer(&pointer).and_then(Value::as_array).unwrap_or_else(|| panic!("no list {path} in {value}"))
}

/// Sums of few figures agree but for rounding.
fn agree(sum: f64, whole: f64) {
    assert!((sum - whole).abs() <= 1e-9 * whole.abs(), "{sum} is not {whole}");
}

/// The fields that others rely on, and what has to hold between them whatever the machine.
fn epoch(more: &str) -> Value {
    let found = Place::new().json(&format!("{EPOCH} {SHORT} {more}"));
    let parts = list(&found, "bound.parts");
    agree(parts.iter().map(|part| number(part, "seconds")).sum(), number(&found, "bound_seconds"));
    let kinds = ["dense", "gather", "stream", "link"].map(|kind| number(&found, &format!("bound.{kind}_seconds")));
    agree(kinds.iter().sum(), number(&found, "bound_seconds"));
    let stages = list(&found, "stages");
    agree(stages.iter().map(|stage| number(stage, "median_seconds")).sum(), number(&found, "epoch_seconds"));
    agree(stages.iter().map(|stage| number(stage, "bound_seconds")).sum(), number(&found, "bound_seconds"));
    agree(number(&found, "epoch_seconds") / number(&found, "bound_seconds"), number(&found, "ratio"));
    for stage in stages {
        assert_eq!(number(stage, "repetitions"), 3.0);
    }
    for path in ["epoch_seconds", "peak_bytes", "predicted_bytes", "rates.copy.bytes_per_second"] {
        assert!(number(&found, path) > 0.0, "{path}: {found}");
    }
    found
}

#[test]
fn an_epoch_has_a_bound_of_parts_that_add_up() {
    let found = epoch("");
    assert_eq!((number(&found, "nodes"), number(&found, "workers")), (300.0, 1.0));
    // Two layers: 6 → 8 with two matrices, forward, over the training nodes, 162 of 300, and what they read.
    let first = &list(&found, "bound.parts")[0];
    let rows = number(first, "amount") / (2.0 * 2.0 * 48.0);
    assert!(rows.fract() == 0.0 && rows > 162.0 && rows <= 300.0, "{rows} rows");
    assert_eq!(number(&found, "bound.link_seconds"), 0.0);
    let [memory] = ["peak_bytes"].map(|path| number(&found, path));
    assert!(memory > 1e6, "a process is larger than that: {memory}");
}

#[test]
fn two_workers_behind_a_link_have_it_in_their_bound() {
    let found = epoch("--arch gcn --workers 2 --link 100mbit,10ms");
    assert_eq!((number(&found, "workers"), found["link"].as_str()), (2.0, Some("100mbit,10ms")));
    let of_link: Vec<&Value> = list(&found, "bound.parts").iter().filter(|part| part["work"] == "link").collect();
    let [link] = of_link[..] else { panic!("one stage, one part: {of_link:?}") };
    // 12,500,000 bytes a second. Rows of the second layer go and their gradients come back, and the model's are added
    // up by one worker and told by it: four exchanges that wait for one another.
    let wire = number(link, "amount") / 12.5e6;
    assert!(number(link, "amount") > 0.0);
    agree(number(link, "seconds"), wire + 0.04);
    let more = epoch("--arch gcn --workers 3 --set transport.shape=100mbit,10ms --set train.threads=2");
    assert_eq!((number(&more, "threads"), more["link"].as_str()), (6.0, Some("100mbit,10ms")));
    let parts = list(&more, "bound.parts");
    let link = parts.iter().find(|part| part["work"] == "link").expect("a link");
    // Frames to two others travel side by side.
    agree(number(link, "seconds"), number(link, "amount") / 12.5e6 + 0.04);
    // Evaluations are no part of a round, and nor are they of its bytes.
    let amount = |more: &str| {
        let found = epoch(&format!("--arch gcn --workers 2 --link 100mbit,10ms {more}"));
        list(&found, "bound.parts")
            .iter()
            .filter(|part| part["work"] == "link")
            .map(|part| number(part, "amount"))
            .sum()
    };
    let [seldom, always]: [f64; 2] = ["", "--set train.eval_every=1"].map(amount);
    assert_eq!(seldom, always);
}

#[test]
fn what_training_does_not_see_is_in_no_bound() {
    let products = |more: &str| {
        let found = epoch(&format!("--workers 2 {more}"));
        let of = |work: &str| {
            let parts = list(&found, "bound.parts").iter().filter(|part| part["work"] == work);
            parts.map(|part| number(part, "amount")).sum::<f64>()
        };
        (of("dense"), of("gather"))
    };
    let whole = products("");
    let (inductive, alone) = (products("--set data.inductive=true"), products("--set messages.selection=none"));
    // 54 of 100 nodes train; they are all that either layer has where no other is seen, and else all that the last has.
    assert!((0.5..0.8).contains(&(inductive.0 / whole.0)) && inductive.1 < 0.6 * whole.1, "{inductive:?} {whole:?}");
    assert!(alone.0 <= whole.0 && alone.1 < 0.8 * whole.1, "{alone:?} {whole:?}");
    assert_eq!(products("--set messages.selection=boundary_sample"), alone);
}

#[test]
fn every_kind_of_layer_and_lazy_stages_have_a_bound() {
    for arch in ["gin", "gat", "rgcn", "mlp"] {
        epoch(&format!("--arch {arch}"));
    }
    let lazy = epoch("--schedule lazy --graph rmat");
    assert_eq!((list(&lazy, "stages").len(), lazy["graph"].as_str()), (2, Some("rmat")));
}

#[test]
fn a_machine_is_measured_on_one_core_and_on_all() {
    let found = Place::new().json(&format!("bench roofline {SHORT}"));
    let threads = |path: &str| -> Vec<f64> { list(&found, path).iter().map(|line| number(line, "threads")).collect() };
    assert_eq!(threads("copy"), [1.0, 2.0]);
    for (path, rate) in [("gather", "bytes_per_second"), ("dense", "flops_per_second")] {
        assert!(threads(path).contains(&1.0) && threads(path).contains(&2.0));
        for line in list(&found, path) {
            let amount = match path {
                "gather" => number(line, "bytes"),
                _ => 2.0 * number(line, "rows") * number(line, "inputs") * number(line, "outputs"),
            };
            agree(amount / number(line, "best_seconds"), number(line, rate));
            assert!(number(line, "median_seconds") >= number(line, "best_seconds"));
        }
    }
}

#[test]
fn kernels_have_a_share_of_what_the_machine_does() {
    let found = Place::new().json(&format!("bench kernels {SHORT} --nodes 200 --edges 900"));
    let kernels = list(&found, "kernels");
    for kernel in kernels {
        agree(number(kernel, "amount") / number(kernel, "best_seconds"), number(kernel, "rate"));
        agree(number(kernel, "rate") / number(kernel, "bound_rate"), number(kernel, "share"));
    }
    let amount = |name: &str, shape: &str| {
        let of = |kernel: &&Value| kernel["name"] == name && kernel["shape"] == shape;
        number(kernels.iter().find(of).unwrap_or_else(|| panic!("{name} at {shape}: {found}")), "amount")
    };
    let edges = number(&found, "edges");
    assert_eq!(amount("fold", "64"), 4.0 * (edges * 64.0 + 200.0 * 64.0 + edges));
    assert_eq!(amount("attention adjoint", "8x32"), 4.0 * (edges * 256.0 + 200.0 * 256.0 + edges));
    assert_eq!(amount("norm relu dropout", "256"), 2.0 * 4.0 * 200.0 * 256.0);
    assert_eq!(amount("norm relu dropout adjoint", "256"), 3.0 * 4.0 * 200.0 * 256.0);
    assert_eq!(amount("dense weight gradient", "100x256"), 2.0 * 200.0 * 100.0 * 256.0);
    // bfloat16: two bytes a value, and nothing else.
    assert_eq!(amount("half decode", "256"), 6.0 * 200.0 * 256.0);
    // Two bits a value and a scale for each row or so.
    let coded = amount("2 bits encode", "256") - 4.0 * 200.0 * 256.0;
    assert!((200.0 * 64.0..200.0 * 80.0).contains(&coded), "{coded}");
    let some = Place::new().json(&format!("bench kernels adjoint {SHORT} --nodes 200 --edges 900"));
    let is_adjoint = |kernel: &Value| kernel["name"].as_str().is_some_and(|name| name.contains("adjoint"));
    assert!(list(&some, "kernels").iter().all(is_adjoint) && list(&some, "kernels").len() > 3);
}

#[test]
fn sizes_double_for_each_generator() {
    let line = "bench scale --from 1000 --to 4000 --features 4 --hidden 4 --rounds 1";
    let found = Place::new().json(line);
    let rows = list(&found, "rows");
    let graphs: Vec<&str> = rows.iter().filter_map(|row| row["graph"].as_str()).collect();
    assert_eq!(graphs, ["sbm", "sbm", "sbm", "rmat", "rmat", "rmat"]);
    for pair in rows[..3].windows(2) {
        assert!(number(&pair[1], "edges") > 1.5 * number(&pair[0], "edges"), "{found}");
    }
    assert!(rows.iter().all(|row| number(row, "peak_bytes") > 0.0 && number(row, "prepare_peak_bytes") > 0.0));
    assert!(list(&found, "stopped").is_empty());
}

/// The smallest graph fits the byte budget and the next does not: its row is printed, and why there are no more.
#[test]
fn rows_that_are_finished_are_printed_before_an_error() {
    let place = Place::new();
    let line = "bench scale --graph sbm --from 500 --to 8000 --features 4 --hidden 4 --rounds 1 \
        --set messages.budget=BUDGET";
    let ran = place.run(&line.replace("BUDGET", "8kB"));
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("messages.budget"), "{}", ran.err);
    let rows = ran.out.lines().filter(|line| line.starts_with("sbm ") && !line.contains("ends before")).count();
    assert!((1..5).contains(&rows) && ran.out.contains("ends before"), "{}", ran.out);
    // Nothing is printed where nothing was finished.
    let ran = place.run(&line.replace("BUDGET", "1kB"));
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
}

/// Stopped in its third size or a later one, the command has printed the rows before, and why there are no more.
#[test]
fn rows_that_are_finished_are_printed_when_the_command_is_stopped() {
    for signal in ["-INT", "-TERM"] {
        let place = Place::new();
        let line = "bench scale --graph sbm --from 1000 --to 1000000000000 --features 4 --hidden 4 --rounds 1 --json";
        let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
        command.args(line.split(' ')).env("TMPDIR", place.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut job = command.spawn().expect("the program starts");
        let mut said = BufReader::new(job.stderr.take().expect("it is piped")).lines();
        let third = said.by_ref().map(|line| line.expect("text")).filter(|line| line.ends_with(" edges")).nth(2);
        assert!(third.is_some(), "it ended by itself");
        assert!(Command::new("kill").args([signal, &job.id().to_string()]).status().expect("kill is there").success());
        // What it says still is read, so that it does not wait for that.
        said.for_each(drop);
        let ran = job.wait_with_output().expect("it ends");
        assert_eq!(ran.status.code(), Some(130));
        let found: Value = serde_json::from_slice(&ran.stdout).expect("one document");
        assert!(list(&found, "rows").len() >= 2, "{found}");
        assert_eq!(list(&found, "stopped")[0]["reason"], "stopped");
        assert!(place.names().is_empty(), "{:?} stay", place.names());
    }
}

#[test]
fn mistakes_are_named() {
    let place = Place::new();
    place.refused(&format!("{EPOCH} --arch gnc"), 2, &["model.arch", "gnc", "gcn"]);
    place.refused(&format!("{EPOCH} --link nosuch --workers 2"), 2, &["nosuch"]);
    place.refused(&format!("{EPOCH} --workers 0"), 2, &["--workers 0"]);
    place.refused("bench epoch --rounds 0", 2, &["--rounds 0"]);
    place.refused("bench epoch --nodes 5000 --workers 2000", 2, &["--workers 2000", "1024"]);
    place.refused(&format!("{EPOCH} --set train.threads=1025"), 2, &["train.threads", "1024"]);
    place.refused(&format!("{EPOCH} --set batch.size=10"), 2, &["batch.size"]);
    place.refused(&format!("{EPOCH} --set task.kind=link_prediction"), 2, &["task.kind"]);
    place.refused(&format!("{EPOCH} --set transport.kind=processes"), 2, &["transport.kind"]);
    place.refused("bench epoch --nodes 0", 2, &["--nodes 0"]);
    place.refused("bench kernels nosuch --nodes 50 --edges 100 --seconds 0 --array 2MB", 2, &["nosuch"]);
    place.refused("bench scale --from 10 --to 5", 2, &["--from 10"]);
    place.refused("bench scale --from 100 --to 100 --arch gnc", 2, &["model.arch", "gcn"]);
    place.refused("bench roofline --array 1", 2, &["--array", "at least"]);
    place.refused("bench roofline --threads 1000000", 2, &["--threads", "1024"]);
    place.refused("bench roofline --array 100000GB", 2, &["would take", "there are"]);
}

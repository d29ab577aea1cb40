//! What a run is said to take before it starts, beside what it takes: the largest resident size of its process.

mod program;

use program::Place;
use program::needs::shared;
use serde_json::Value;

/// What the program itself takes, which is not in what is said.
const PROGRAM: f64 = (32u64 << 20) as f64;

/// A round with its evaluation takes no more than was said, and not far less.
fn takes_what_is_said(arguments: &str) {
    let line = format!("bench epoch --rounds 1 --seconds 0 --array 2MB --threads 2 {arguments}");
    compare(arguments, &Place::new().json(&line));
}

fn compare(arguments: &str, found: &Value) {
    let number = |name: &str| found.get(name).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {name}: {found}"));
    let (peak, said) = (number("peak_bytes"), number("predicted_bytes"));
    assert!(peak <= said + PROGRAM, "{arguments}: {peak} bytes, {said} said");
    assert!(said <= 2.0 * peak, "{arguments}: {peak} bytes, {said} said");
}

/// Rounds run over training rows that are kept apart, evaluations over all, and hidden rows go on to the next stage.
#[test]
fn a_lazy_run_takes_what_is_said() {
    let graph = "--schedule lazy --nodes 25000 --edges 150000 --features 64 --classes 10";
    for more in ["--arch sage", "--arch sage --set train.recompute=true", "--arch gcn --hidden 512", "--arch gin"] {
        takes_what_is_said(&format!("{graph} {more}"));
    }
    takes_what_is_said(&format!("{graph} --arch gat --hidden 128 --workers 3"));
}

/// Rows that are wider than the messages made of them cross once, and are kept and dropped out where they arrive.
#[test]
fn wide_features_of_several_workers_take_what_is_said() {
    let graph = "--nodes 20000 --edges 200000 --features 500 --hidden 16 --workers 3";
    for more in ["gat", "rgcn", "gat --set train.recompute=true", "sage --schedule lazy"] {
        takes_what_is_said(&format!("{graph} --arch {more}"));
    }
    takes_what_is_said(&format!("{graph} --arch sage --set schedule.cache_inputs=false"));
}

/// Messages and folds of averaged heads are wider than all rows between layers.
#[test]
fn averaged_heads_take_what_is_said() {
    let graph = "--arch gat --nodes 30000 --edges 150000 --set model.head_merge=mean";
    for more in ["--set train.recompute=true", "--layers 2 --hidden 64"] {
        takes_what_is_said(&format!("{graph} {more}"));
    }
}

/// The first layer leaves out rows that nobody reads, too, and its fold is kept for all rounds: it is there once.
#[test]
fn a_kept_fold_beside_fewer_rows_is_counted_once() {
    let line = "bench epoch --rounds 1 --seconds 0 --array 2MB --threads 2 --layers 2 --hidden 32 --graph rmat \
                --nodes 200000 --edges 1000000 --features 128 --classes 10 --arch sage";
    let found = Place::new().json(line);
    compare(line, &found);
    let [peak, said] = ["peak_bytes", "predicted_bytes"].map(|name| found[name].as_f64().expect("a number"));
    assert!(said <= 1.1 * peak, "{peak} bytes, {said} said: a fold more are 134 MB");
}

/// What is forgotten on the way forward is not held by what is narrow.
#[test]
fn rows_that_are_made_again_take_what_is_said() {
    let graph = "--nodes 40000 --edges 200000 --features 64 --classes 10 --hidden 256 --set train.recompute=true";
    for more in ["sage", "gat"] {
        takes_what_is_said(&format!("{graph} --arch {more}"));
    }
    // Inputs that are half as wide as all other rows have the room of these, and lend it.
    let graph = graph.replace("--features 64", "--features 128");
    for more in ["sage", "gcn", "gin"] {
        takes_what_is_said(&format!("{graph} --arch {more}"));
    }
}

/// Lazy stages in batches: rows that cross once, and what evaluations exchange.
#[test]
fn batches_over_several_workers_take_what_is_said() {
    let place = Place::new();
    place.json("data synth sbm --nodes 60000 --classes 10 --features 64 --degree-max 60 --out graph.npz");
    place.write("run.toml", "[data]\npath = \"graph.npz\"\n[batch]\nsize = 2000\n[partition]\nparts = 4\n");
    let told =
        "--set model.arch=sage --set schedule.kind=averaging --set schedule.halo=stale --set schedule.interval=20steps";
    for more in ["--set model.arch=gat --set schedule.kind=lazy", "--set model.arch=sage", told] {
        let line = format!("train run.toml --out run --set train.epochs=1 --set train.threads=1 {more}");
        compare(more, &place.json(&line)["memory"]);
    }
}

/// Models that have come are let go of once their mean is taken, however many means there are.
#[test]
fn trainers_take_what_is_said_over_many_means() {
    let place = Place::new();
    place.json("data synth sbm --nodes 1500 --classes 10 --features 500 --out graph.npz");
    let keys = "[schedule]\nkind = \"averaging\"\ninterval = \"1 step\"\nlimit = \"150 steps\"\n";
    let model = "[model]\narch = \"sage\"\nhidden = 512\n[partition]\nparts = 3\n";
    place.write("run.toml", &format!("[data]\npath = \"graph.npz\"\n[train]\neval_every = 0\n{model}{keys}"));
    for kind in ["threads", "processes"] {
        let line = format!("train run.toml --out {kind} --set train.threads=1 --set transport.kind={kind}");
        let found = place.json(&line);
        assert_eq!(found["averaging"]["means"], 150, "{kind}");
        compare(kind, &found["memory"]);
    }
}

/// A linear map reads bags of words as sparse as they are: in rounds, evaluations and batches, dropped out or not.
#[test]
fn maps_of_sparse_inputs_take_what_is_said_and_little_less() {
    let Some(data) = shared("data/oewn.npz") else { return };
    let place = Place::new();
    let keys = "[model]\nhidden = 16\ninput_width = 64\n[partition]\nparts = 1\n";
    place.write("run.toml", &format!("[data]\npath = {data:?}\n{keys}"));
    let links = "--set task.kind=link_prediction --set task.eval_negatives=1";
    for more in ["", "--set model.dropout=0", links, &format!("{links} --set batch.size=40000")] {
        let line = format!("train run.toml --out run --set train.epochs=1 --set train.threads=1 {more}");
        let found = place.json(&line)["memory"].clone();
        let [peak, said] = ["peak_bytes", "predicted_bytes"].map(|name| found[name].as_f64().expect("a number"));
        assert!(peak <= said + PROGRAM, "{more}: {peak} bytes, {said} said");
        assert!(said <= 1.5 * peak, "{more}: {peak} bytes, {said} said");
    }
}

/// Trainers learn from links in pieces that are no larger than what they have, and only their aggregator judges.
#[test]
fn trainers_with_links_take_what_is_said_and_little_less() {
    let place = Place::new();
    place.json("data synth sbm --nodes 3000 --classes 10 --features 100 --degree-max 30 --out graph.npz");
    let task = "[task]\nkind = \"link_prediction\"\nnegatives = \"local\"\n[partition]\nparts = 3\n";
    let keys = "[schedule]\nkind = \"averaging\"\ninterval = \"2 steps\"\nlimit = \"6 steps\"\n";
    place.write("run.toml", &format!("[data]\npath = \"graph.npz\"\n{task}{keys}"));
    for more in ["", "--set task.decoder=mlp", "--set schedule.kind=llcg"] {
        let line = format!("train run.toml --out run --set train.threads=1 {more}");
        let found = place.json(&line)["memory"].clone();
        let [peak, said] = ["peak_bytes", "predicted_bytes"].map(|name| found[name].as_f64().expect("a number"));
        assert!(peak <= said + PROGRAM, "{more}: {peak} bytes, {said} said");
        assert!(said <= 1.5 * peak, "{more}: {peak} bytes, {said} said");
    }
}

//! Features of a folder of parts that stay in their file: the same run to the last bit, and said beforehand.

mod program;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use program::Place;
use program::exported::lines;

/// A folder of parts whose features are large enough to stay where they are.
fn folder(parts: u32) -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 2000 --mean-degree 8 --classes 3 --features 40 --out a.npz");
    place.json(&format!("partition a.npz --parts {parts} --method random --seed 5 --out parts"));
    place
}

fn toml(more: &str) -> String {
    format!(
        "[data]\npath = \"parts\"\n{more}\n[model]\narch = \"sage\"\nlayers = 2\nhidden = 16\n\
         [train]\nepochs = 3\n[batch]\nsize = 200\nfanouts = [5, 5]\n"
    )
}

#[test]
fn a_run_on_features_in_their_file_is_the_run_on_features_in_memory() {
    for parts in [1, 2] {
        let place = folder(parts);
        let run = |features_in: &str, order: &str| {
            place.write("run.toml", &toml(&format!("features_in = \"{features_in}\"")));
            let out = format!("{features_in}-{order}");
            let ran = place.run(&format!("train run.toml --set partition.order={order} --out {out}"));
            assert_eq!(ran.code, 0, "{}", ran.err);
            let says = ran.err.contains("of features stay in their files");
            assert_eq!(says, features_in == "file", "{}", ran.err);
            let rounds = lines(&place.path(&out).join("metrics.jsonl"));
            rounds.iter().map(|round| round["loss"].as_f64().unwrap()).collect::<Vec<f64>>()
        };
        let held = run("memory", "given");
        assert!(
            held.len() > 2
                && run("file", "given") == held
                && run("file", "locality") == held
                && run("auto", "given") == held
        );
        // What is predicted of nodes is the same, too.
        let predict = |run: &str| {
            let found = place.run(&format!("predict {run} --out {run}.csv"));
            assert_eq!(found.code, 0, "{}", found.err);
            fs::read(place.path(&format!("{run}.csv"))).unwrap()
        };
        assert!(predict("file-given") == predict("memory-given"));
    }
}

#[test]
fn features_that_cannot_stay_in_a_file_are_refused_by_name() {
    let place = folder(1);
    place.write("run.toml", &toml("features_in = \"file\""));
    place.refused("train run.toml --set batch.size=0 --set batch.fanouts=[]", 2, &["data.features_in", "batch.size"]);
    place.write("run.toml", &toml("features_in = \"file\"").replace("\"parts\"", "\"a.npz\""));
    place.refused("train run.toml", 2, &["data.features_in", "laconic partition"]);
}

/// One batch an epoch; a checkpoint a round.
const LONG: &str = "--set batch.size=2000 --set out.checkpoint_every=1";

/// A run that would not end, in whose time the features of the second part are changed; how it ended.
fn disturbed(place: &Place, how: &str, disturb: &dyn Fn(&Path)) -> Output {
    let line = format!("train run.toml --out run --quiet {how}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    command.args(line.split_whitespace()).current_dir(place.path(""));
    let mut job = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let start = Instant::now();
    let rounds = || fs::read_to_string(place.path("run/metrics.jsonl")).map_or(0, |rounds| rounds.lines().count());
    while rounds() < 3 {
        assert!(start.elapsed() < Duration::from_secs(60), "the run did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    disturb(&place.path("parts/part-1/features.safetensors"));
    while job.try_wait().expect("it is ours").is_none() {
        if start.elapsed() > Duration::from_secs(90) {
            job.kill().expect("it is there");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    job.wait_with_output().expect("it has ended")
}

/// What is done to a file.
type Way<'a> = dyn Fn(&Path) + 'a;

/// Features that are read from a file which is cut or written to meanwhile end the run with the name of the file, and
/// nothing of them gets into a checkpoint.
#[cfg(unix)]
#[test]
fn a_file_that_changes_under_a_run_is_named_and_changes_nothing() {
    let place = folder(2);
    place.write("run.toml", &toml("features_in = \"file\""));
    let features = place.path("parts/part-1/features.safetensors");
    let sound = fs::read(&features).expect("features");
    let overwrite = |bytes: &[u8]| {
        use std::os::unix::fs::FileExt;
        fs::File::options().write(true).open(&features).and_then(|file| file.write_all_at(bytes, 0)).expect("written");
    };
    // The values behind the header, in the opposite order or none.
    let values = 8 + u64::from_le_bytes(sound[..8].try_into().expect("eight bytes")) as usize;
    let mut turned = sound.clone();
    turned[values..].as_chunks_mut::<4>().0.reverse();
    let mut none = sound.clone();
    none[values..].fill(0xff);
    let cut = |path: &Path| {
        fs::File::options().write(true).open(path).and_then(|file| file.set_len(values as u64 + 64)).expect("cut");
    };
    for transport in ["threads", "processes"] {
        let ways: [(&str, &Way); 3] =
            [("turned", &|_| overwrite(&turned)), ("none", &|_| overwrite(&none)), ("cut", &cut)];
        for (what, disturb) in ways {
            let how = format!("--set transport.kind={transport} --set train.epochs=1000000 {LONG}");
            let done = disturbed(&place, &how, disturb);
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(done.status.code(), Some(5), "{transport}, {what}: {said}");
            assert!(said.contains("part-1/features.safetensors") && said.contains("has changed"), "{said}");
            place.refused("resume run", 3, &["part-1/features.safetensors"]);
            overwrite(&sound);
            let rounds = fs::read_to_string(place.path("run/metrics.jsonl")).expect("rounds").lines().count();
            let to = format!("--set train.epochs={}", rounds + 2);
            let resumed = place.json(&format!("resume run {to}"));
            let straight = place.json(&format!("train run.toml --out straight {LONG} {to}"));
            assert_eq!(resumed["parameters"]["digest"], straight["parameters"]["digest"], "{transport}, {what}");
            ["run", "straight"].iter().for_each(|run| fs::remove_dir_all(place.path(run)).expect("removed"));
        }
    }
}

/// Trainers that are threads of one process read one set of files: one of these that changes ends the run with its
/// name, whether a trainer or who evaluates means is the first to see it.
#[cfg(unix)]
#[test]
fn a_file_that_changes_under_trainers_is_named_and_changes_nothing() {
    let place = folder(2);
    let schedule = "\n[schedule]\nkind = \"averaging\"\ninterval = \"1 step\"\nlimit = \"50000 steps\"\n";
    place.write("run.toml", &(toml("features_in = \"file\"") + schedule));
    let features = place.path("parts/part-1/features.safetensors");
    let sound = fs::read(&features).expect("features");
    let half = sound.len() as u64 / 2;
    let cut = |path: &Path| {
        fs::File::options().write(true).open(path).and_then(|file| file.set_len(half)).expect("cut");
    };
    for more in ["", "--set schedule.halo=frozen", "--set schedule.evaluator=aggregator"] {
        let done = disturbed(&place, &format!("{LONG} {more}"), &cut);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(5), "{more}: {said}");
        assert!(said.contains("part-1/features.safetensors") && said.contains("has changed"), "{more}: {said}");
        place.refused("resume run", 3, &["part-1/features.safetensors"]);
        fs::write(&features, &sound).expect("written");
        fs::remove_dir_all(place.path("run")).expect("removed");
    }
}

/// A file that takes the place of another leaves the map of that other as it is.
#[cfg(unix)]
#[test]
fn a_file_that_is_put_in_the_place_of_another_under_a_run_changes_nothing() {
    let place = folder(1);
    place.write("run.toml", &toml("features_in = \"file\""));
    let features = place.path("parts/part-0/features.safetensors");
    let to = "--set train.epochs=60";
    let straight = place.json(&format!("train run.toml --out straight {LONG} {to}"));
    let line = format!("train run.toml --out run --quiet {LONG} {to}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    command.args(line.split_whitespace()).current_dir(place.path(""));
    let mut job = command.stdout(Stdio::null()).spawn().expect("the program starts");
    let start = Instant::now();
    while !place.path("run/metrics.jsonl").exists() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let sound = fs::read(&features).expect("features");
    fs::write(place.path("other"), vec![7; sound.len()]).expect("written");
    fs::rename(place.path("other"), &features).expect("renamed");
    assert!(job.wait().expect("it ends").success());
    let digest = |run: &str| {
        let text = fs::read_to_string(place.path(run).join("summary.json")).expect("a summary");
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")["parameters"]["digest"].clone()
    };
    assert_eq!(digest("run"), straight["parameters"]["digest"]);
}

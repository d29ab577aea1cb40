//! A model that is there, used: its own data predicted again, and others.

mod program;

use std::collections::BTreeMap;
use std::path::Path;

use laconic_graph::about::{About, Scale};
use laconic_graph::dataset::{Dataset, Labels};
use laconic_graph::part::{Provenance, cut, write_parts};
use laconic_graph::read::{ReadOptions, read};
use program::Place;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[model]\nhidden = 16\n[train]\nepochs = 5\n";

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 400 --features 8 --classes 3 --out graph.npz");
    place.write("run.toml", RUN);
    place
}

/// The rows of a CSV file without quotes, by their id and the name of the column.
fn rows(path: &Path) -> BTreeMap<String, BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).expect("a table");
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let names = lines.next().expect("a line of names");
    assert_eq!(names[0], "id");
    lines.map(|cells| (cells[0].clone(), names.iter().cloned().zip(cells).collect())).collect()
}

/// Compares what two tables say of the nodes that both have; returns how many those are.
fn agree(a: &Path, b: &Path) -> usize {
    let (a, b) = (rows(a), rows(b));
    let both = a.iter().filter_map(|(id, row)| Some((row, b.get(id)?)));
    both.map(|(a, b)| {
        for (name, value) in a.iter().filter(|(name, _)| name.starts_with("prob_")) {
            let [a, b]: [f64; 2] = [value, &b[name]].map(|text| text.parse().expect("a probability"));
            assert!((a - b).abs() < 1e-5, "{name}: {a}, {b}");
        }
        assert_eq!((&a["pred"], &a["class"]), (&b["pred"], &b["class"]));
    })
    .count()
}

#[test]
fn predictions_of_the_runs_own_data_have_the_figures_that_its_summary_says() {
    let place = place();
    for keys in [
        "",
        "--set data.features=standardised",
        "--set schedule.kind=lazy",
        "--set partition.order=locality",
        "--set messages.evaluation=half --set train.metrics=[\"micro_f1\",\"accuracy\"]",
        "--set messages.evaluation=none --set messages.forward=half",
    ] {
        let summary = place.json(&format!("train run.toml --out run {keys}"));
        let predicted = place.json("predict run --out p.csv --force");
        for split in ["train", "val", "test"] {
            let accuracy = &predicted["figures"][split]["accuracy"];
            assert_eq!(*accuracy, summary["metrics"][split]["accuracy"], "{keys}, {split}");
            assert!(accuracy.is_number(), "{keys}");
        }
        assert_eq!(predicted["messages"], "as-trained");
        assert_eq!(predicted["model"], summary["parameters"]["digest"]);
        // Counted once more, from the table itself.
        let rows = rows(&place.path("p.csv"));
        let tested: Vec<_> = rows.values().filter(|row| row["split"] == "test").collect();
        let right = tested.iter().filter(|row| row["class"] == row["label"]).count();
        assert_eq!(predicted["figures"]["test"]["accuracy"], right as f64 / tested.len() as f64, "{keys}");
    }
    let said = place.run("predict run --out p.csv --force").out;
    assert!(said.contains("  test     accuracy 0.") && said.contains("messages as in the run's own"), "{said}");
}

const TABLES: &str = "[data]\npath = \"calls.csv\"\nnodes_path = \"people.csv\"\nsplit = { train = 0.5, val = 0.2 }\n\
    features = \"standardised\"\n[partition]\nparts = 2\n[model]\nhidden = 8\n[train]\nepochs = 3\n";

/// Sixty people, who call each other: of the first half their features are larger.
fn people(which: std::ops::Range<usize>, known: bool) -> String {
    let person = |i: usize| {
        let known = if known { format!(",{}", i % 2) } else { String::new() };
        format!("s{i},{},{}.5{known}\n", (i * 7) % 11 + if i < 30 { 100 } else { 0 }, i % 5)
    };
    let names = if known { "id,age,calls,label\n" } else { "id,age,calls\n" };
    names.to_owned() + &which.map(person).collect::<String>()
}

fn tables() -> Place {
    let place = Place::new();
    let calls: String = (0..180).map(|i| format!("s{},s{}\n", i % 60, (i * 7 + 1) % 60)).collect();
    place.write("calls.csv", &format!("from,to\n{calls}"));
    place.write("people.csv", &people(0..60, true));
    place.write("new.csv", &people(0..60, false));
    place.write("run.toml", TABLES);
    place
}

#[test]
fn nodes_without_labels_and_split_are_predicted_in_any_format_and_on_any_number_of_workers() {
    let place = tables();
    place.json("train run.toml --out run");
    place.json("predict run --out own.csv");
    let new = "--data calls.csv --nodes new.csv";
    let one = place.json(&format!("predict run {new} --out one.csv"));
    assert_eq!((&one["workers"], &one["messages"]), (&1.into(), &"exact".into()));
    assert!(one["figures"].as_object().is_some_and(|figures| figures.is_empty()), "{one}");
    assert_eq!(agree(&place.path("own.csv"), &place.path("one.csv")), 60);
    let names = rows(&place.path("one.csv"))["s7"].keys().cloned().collect::<Vec<_>>();
    assert_eq!(names, ["class", "id", "pred", "prob_0", "prob_1"]);
    place.json(&format!("predict run {new} --workers 3 --out three.csv"));
    place.json("data convert calls.csv --nodes new.csv --out new.npz");
    place.json("predict run --data new.npz --out npz.csv");
    place.json("partition new.npz --parts 4 --feature-preparation given --out new-4");
    place.json("predict run --data new-4 --out parts.csv");
    for table in ["three.csv", "npz.csv", "parts.csv"] {
        assert_eq!(agree(&place.path("own.csv"), &place.path(table)), 60, "{table}");
    }
    place.refused("predict run --data new-4 --workers 3 --out x.csv", 2, &["new-4", "4 parts", "not 3"]);
    place.refused("predict run --nodes new.csv --out x.csv", 2, &["--data"]);
    place.refused("predict run --data new.npz --nodes new.csv --out x.csv", 2, &["--nodes belongs to"]);
    // Where labels are known they are judged by, whatever else is.
    let labelled = place.json("predict run --data calls.csv --nodes people.csv --out known.csv");
    let rows = rows(&place.path("known.csv"));
    let right = rows.values().filter(|row| row["pred"] == row["label"]).count();
    assert_eq!(labelled["figures"]["labelled"]["accuracy"], right as f64 / 60.0);
}

/// The order of rows is the worker's own business: tables name nodes, and say the same with another.
#[test]
fn a_table_of_ordered_rows_says_the_same_of_each_node() {
    let place = tables();
    place.json("train run.toml --out run --set partition.order=locality");
    place.json("predict run --out ordered.csv");
    let config = std::fs::read_to_string(place.path("run/config.toml")).expect("a configuration");
    let given = config.replace("order = \"locality\"\n", "");
    assert_ne!(given, config);
    place.write("run/config.toml", &given);
    place.json("predict run --out given.csv");
    assert_eq!(agree(&place.path("ordered.csv"), &place.path("given.csv")), 60);
    assert!(rows(&place.path("given.csv")).values().any(|row| row["pred"] != row["label"]), "all are alike");
}

/// A perceptron reads nothing but a node's own features: it says the same of it whoever else is there, if these are
/// scaled as the run's were and not by what is there now.
#[test]
fn a_few_nodes_are_scaled_as_those_were_that_the_model_was_trained_on() {
    let place = tables();
    place.json("train run.toml --out run --set model.arch=mlp");
    place.json("predict run --out own.csv");
    place.write("few.csv", &people(3..8, false));
    place.write("links.csv", "from,to\ns3,s4\n");
    place.json("predict run --data links.csv --nodes few.csv --out few-out.csv");
    assert_eq!(agree(&place.path("own.csv"), &place.path("few-out.csv")), 5);
}

/// Writes the dataset of the place as a folder of parts, changed.
fn folder_of_parts(place: &Place, name: &str, change: impl Fn(&mut Dataset)) {
    let mut dataset = read(&place.path("graph.npz"), &ReadOptions::default()).expect("a dataset");
    change(&mut dataset);
    let assignment: Vec<u32> = (0..dataset.graph.nodes() as u32).map(|node| node % 2).collect();
    let provenance = Provenance { method: "given".to_owned(), seed: 0 };
    let parts = cut(&dataset, Some(0), &assignment, 2).expect("parts");
    write_parts(&place.path(name), parts, &provenance, false).expect("written");
}

fn call(dataset: &mut Dataset, classes: [&str; 3]) {
    dataset.about.classes = classes.map(str::to_owned).into();
    dataset.about.features = (0..8).map(|column| format!("f{column}")).collect();
}

#[test]
fn a_model_calls_classes_by_their_names_and_finds_labels_by_them() {
    let place = place();
    let names = ["a, \"b\"", "ok", "ß"];
    folder_of_parts(&place, "parts", |dataset| call(dataset, names));
    // The same labels under other numbers, one of them under another name.
    let turned = |dataset: &mut Dataset, names: [&str; 3]| {
        call(dataset, names);
        let Labels::Single { values, .. } = &mut dataset.labels else { panic!("classes") };
        values.iter_mut().for_each(|class| *class = [1, 2, 0][*class as usize]);
    };
    folder_of_parts(&place, "turned", |dataset| turned(dataset, ["ß", names[0], "ok"]));
    folder_of_parts(&place, "strange", |dataset| turned(dataset, ["ß", "else", "ok"]));
    folder_of_parts(&place, "foreign", |dataset| call(dataset, ["x", "y", "z"]));
    let keys = "--set data.path=parts --set partition.parts=2";
    let summary = place.json(&format!("train run.toml --out run {keys}"));
    assert_eq!(summary["class_names"], serde_json::json!(names));
    let own = place.json("predict run --out p.jsonl");
    assert_eq!(own["class_names"], serde_json::json!(names));
    let text = std::fs::read_to_string(place.path("p.jsonl")).expect("a table");
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(row["class"], names[row["pred"].as_u64().expect("a class") as usize]);
        assert!(names.iter().any(|name| row["label"] == *name), "{row}");
    }
    let csv = || place.json("predict run --out p.csv --force");
    assert_eq!(csv()["figures"], own["figures"]);
    let text = std::fs::read_to_string(place.path("p.csv")).expect("a table");
    assert!(text.contains(",0,\"a, \"\"b\"\"\","), "{text}");
    let other =
        |data: &str| place.json(&format!("predict run --data {data} --out q.csv --force --messages as-trained"));
    assert_eq!(other("turned")["figures"], own["figures"]);
    // Whose class the model does not know, of them nothing is known.
    place.json("predict run --data strange --out r.jsonl");
    let labels = |table: &str| {
        let text = std::fs::read_to_string(place.path(table)).expect("a table");
        let rows = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        rows.map(|row| (row["id"].as_i64(), row["label"].clone())).collect::<BTreeMap<_, _>>()
    };
    let (known, found) = (labels("p.jsonl"), labels("r.jsonl"));
    for (id, label) in known {
        assert_eq!(found[&id], if label == names[0] { serde_json::Value::Null } else { label });
    }
    place.refused("predict run --data foreign --out r.csv", 3, &["x, y, z", "a, \"b\", ok, ß"]);
}

#[test]
fn data_that_a_model_cannot_read_are_refused_with_what_it_reads() {
    let place = place();
    folder_of_parts(&place, "parts", |dataset| call(dataset, ["a", "b", "c"]));
    place.json("train run.toml --out run --set data.path=parts --set partition.parts=2");
    let scale = |mean: f64| Scale::Standardised {
        means: vec![mean; 8],
        deviations: vec![1.0; 8],
        rests: Vec::new(),
        by_type: false,
    };
    folder_of_parts(&place, "scaled", |dataset| dataset.about.scale = scale(0.5));
    folder_of_parts(&place, "renamed", |dataset| {
        call(dataset, ["a", "b", "c"]);
        dataset.about.features.swap(2, 3);
    });
    folder_of_parts(&place, "many", |dataset| {
        let Labels::Single { classes, .. } = &mut dataset.labels else { panic!("classes") };
        *classes = 5;
        dataset.about = About::default();
    });
    place.json("data synth sbm --nodes 50 --features 5 --classes 3 --out narrow.npz");
    for (data, words) in [
        ("scaled", &["standardised already"][..]),
        ("renamed", &["feature column 2 is \"f3\"", "\"f2\""]),
        ("many", &["0, 1, 2, 3, 4", "a, b, c"]),
        ("narrow.npz", &["8 feature columns (f0, f1,", "the data have 5"]),
    ] {
        place.refused(&format!("predict run --data {data} --out x.csv"), 3, &[&[data], words].concat());
    }
    place.refused("predict run --out x.txt", 2, &["x.txt", ".parquet, .csv or .jsonl"]);
}

#[test]
fn a_file_of_predictions_says_of_which_model_and_data_it_is() {
    let place = place();
    let summary = place.json("train run.toml --out run");
    place.json("predict run --out p.parquet");
    let file = std::fs::File::open(place.path("p.parquet")).expect("a file");
    let file = parquet::file::reader::SerializedFileReader::new(file).expect("Parquet");
    let about = parquet::file::reader::FileReader::metadata(&file).file_metadata().key_value_metadata();
    let pairs = about.expect("metadata").iter().map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default()));
    let pairs: BTreeMap<String, String> = pairs.filter(|(key, _)| key.starts_with("laconic.")).collect();
    assert_eq!(pairs["laconic.model"], summary["parameters"]["digest"].as_str().expect("a digest"));
    for data in ["laconic.data", "laconic.trained_on"] {
        assert_eq!(pairs[data], place.json("data info graph.npz")["digest"].as_str().expect("a digest"));
    }
    assert_eq!(
        (pairs["laconic.classes"].as_str(), pairs["laconic.messages"].as_str()),
        (r#"["0","1","2"]"#, "as-trained")
    );
    let names: Vec<String> =
        file.into_iter().next().expect("a row").expect("a row").get_column_iter().map(|(n, _)| n.clone()).collect();
    assert_eq!(names, ["id", "pred", "class", "label", "split", "prob_0", "prob_1", "prob_2"]);
}

#[cfg(unix)]
#[test]
fn a_run_that_was_stopped_before_its_last_stage_says_that_it_must_be_resumed() {
    use std::process::{Command, Stdio};
    let place = place();
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    let line = "train run.toml --out run --quiet --set schedule.kind=lazy --set train.epochs=1000000";
    command.args(line.split_whitespace()).current_dir(place.path("")).stdout(Stdio::null());
    let mut job = command.spawn().expect("starts");
    let log = place.path("run/metrics.jsonl");
    while std::fs::metadata(&log).map_or(0, |m| m.len()) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &job.id().to_string()]).status().expect("kill is there").success());
    job.wait().expect("it ends");
    for line in ["predict run --out p.csv", "export run --to pyg"] {
        place.refused(line, 5, &["stopped in stage 0 of 2", "laconic resume run"]);
    }
    // One that was killed before there was any model, but not before a checkpoint.
    std::fs::remove_file(place.path("run/model.safetensors")).expect("a model");
    place.refused("predict run --out p.csv", 5, &["has not ended", "laconic resume run"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_prediction_that_does_not_fit_into_memory_is_refused_before_it_starts() {
    let place = place();
    place.json("train run.toml --out run --set model.hidden=4096 --set train.epochs=1");
    place.json("data synth sbm --nodes 200000 --features 8 --classes 3 --mean-degree 2 --out large.npz");
    let line =
        format!("ulimit -v 6000000; exec {} predict run --data large.npz --out p.csv", env!("CARGO_BIN_EXE_laconic"));
    let done = std::process::Command::new("sh").args(["-c", &line]).current_dir(place.path("")).output().expect("sh");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("a worker needs about") && said.contains("--force"), "{said}");
    assert!(!place.path("p.csv").exists());
}

/// Columns are called as the run's were, and become the feature columns that the model knows: in any order, with
/// categories that it has seen, and with what it fills gaps with.
#[test]
fn new_tables_are_read_as_those_were_that_the_model_was_trained_on() {
    let place = Place::new();
    let calls: String = (0..180).map(|i| format!("s{},s{}\n", i % 60, (i * 7 + 1) % 60)).collect();
    place.write("calls.csv", &format!("from,to\n{calls}"));
    let age = |i: usize| if i % 9 == 4 { String::new() } else { ((i * 7) % 11 + 100 * (i / 30)).to_string() };
    let country = |i: usize| ["at", "ch", "li"][i % 3];
    let old = (0..60).map(|i| format!("s{i},{},{},{}\n", ["ok", "banned"][i % 2], age(i), country(i)));
    place.write("people.csv", &format!("user_id,status,age,country\n{}", old.collect::<String>()));
    let new = (3..15).map(|i| format!("{},s{i},{}\n", country(i), age(i))).chain(["xx,t1,5\n".to_owned()]);
    place.write("few.csv", &format!("country,user_id,age\n{}", new.collect::<String>()));
    place.write("links.csv", "from,to\ns3,s4\n");
    let keys = "id = \"user_id\"\nlabel = \"status\"\nmissing = \"mean\"\n";
    place.write("run.toml", &TABLES.replace("nodes_path", &format!("{keys}nodes_path")));
    let summary = place.json("train run.toml --out run --set model.arch=mlp");
    assert_eq!(summary["class_names"], serde_json::json!(["banned", "ok"]));
    place.json("predict run --out own.csv");
    place.json("predict run --data links.csv --nodes few.csv --out few-out.csv");
    assert_eq!(agree(&place.path("own.csv"), &place.path("few-out.csv")), 12);
    let rows = rows(&place.path("few-out.csv"));
    assert!(rows.contains_key("t1") && rows.values().all(|row| ["banned", "ok"].contains(&row["class"].as_str())));
    let said = place.run("predict run --data links.csv --nodes few.csv --out few-out.csv --force").err;
    assert!(said.contains("few.csv: ids user_id") && said.contains("country"), "{said}");
    let narrow = "country,user_id\nat,s1\n";
    place.write("narrow.csv", narrow);
    place.refused("predict run --data links.csv --nodes narrow.csv --out x.csv", 3, &["narrow.csv", "age"]);
}

#[test]
fn nodes_of_several_classes_are_predicted_without_labels_too_with_all_of_their_names() {
    let place = place();
    let sets = |dataset: &mut Dataset| {
        call(dataset, ["a", "b", "c"]);
        let Labels::Single { values, .. } = &dataset.labels else { panic!("classes") };
        let of_node = |class: i32| (0..3).map(move |other| u8::from(other == class || other == (class + 1) % 3));
        dataset.labels =
            Labels::Multi { classes: 3, values: values.iter().flat_map(|class| of_node(*class)).collect() };
    };
    folder_of_parts(&place, "parts", sets);
    folder_of_parts(&place, "bare", |dataset| dataset.labels = Labels::None);
    let keys = "--set data.path=parts --set partition.parts=2 --set train.epochs=40";
    let summary = place.json(&format!("train run.toml --out run {keys}"));
    let own = place.json("predict run --out own.csv");
    assert_eq!(own["figures"]["test"]["micro_f1"], summary["metrics"]["test"]["micro_f1"]);
    place.json("predict run --data bare --out bare.csv");
    let (own, bare) = (rows(&place.path("own.csv")), rows(&place.path("bare.csv")));
    assert_eq!((own.len(), bare.len()), (400, 400));
    for (id, row) in &own {
        assert!(["a;b", "b;c", "a;c"].contains(&row["label"].as_str()), "{row:?}");
        let has =
            |class: &&str| row[&format!("pred_{}", ["a", "b", "c"].iter().position(|c| c == class).unwrap())] == "1";
        let names: Vec<&str> = ["a", "b", "c"].into_iter().filter(has).collect();
        assert_eq!((row["class"].trim_matches('"'), &bare[id]["class"]), (names.join(";").as_str(), &row["class"]));
        assert!(!bare[id].contains_key("label"));
    }
}

#[test]
fn a_feature_stays_one_in_new_tables_whatever_it_is_called_and_other_weights_are_noted() {
    let place = Place::new();
    let node = |n: usize| format!("{n},{},{},{},{}\n", n % 7, n % 5, n % 3, ["train", "val", "test"][n / 3 % 3]);
    let nodes: String = (0..60).map(node).collect();
    place.write("nodes.csv", &format!("id,y,set,num,part\n{nodes}"));
    let edges = |weight: &str| (0..60).map(|n| format!("{n},{}{weight}\n", (n + 3) % 60)).collect::<String>();
    place.write("edges.csv", &format!("src,dst,weight\n{}", edges(",2.5")));
    place.write("light.csv", &format!("src,dst\n{}", edges("")));
    let run = "[data]\npath = \"edges.csv\"\nnodes_path = \"nodes.csv\"\nlabel = \"num\"\nsplit_column = \"part\"\n\
        features_columns = [\"y\", \"set\"]\nsymmetrise = true\n[partition]\nparts = 2\n[train]\nepochs = 3\n";
    place.write("run.toml", run);
    place.json("train run.toml --out run");
    // Neither labels nor a split, and two features under the names of such.
    place.write(
        "new.csv",
        &format!("id,y,set\n{}", (0..60).map(|n| format!("{n},{},{}\n", n % 7, n % 5)).collect::<String>()),
    );
    let found = place.json("predict run --data edges.csv --nodes new.csv --out new.csv.csv");
    assert!(found["figures"].as_object().is_none_or(serde_json::Map::is_empty), "{found}");
    place.json("predict run --out own.csv");
    assert_eq!(agree(&place.path("own.csv"), &place.path("new.csv.csv")), 60);
    let light = place.run("predict run --data light.csv --nodes new.csv --out light.out.csv");
    assert!(light.err.contains("these have none: each counts 1"), "{}", light.err);
    let line = "predict run --data light.csv --nodes new.csv --out t.csv --missing mean";
    place.refused(line, 2, &["--missing", "the model decides"]);
    place.write("twice.csv", "id,y,set,y\n1,2,3,4\n");
    place.refused("predict run --data light.csv --nodes twice.csv --out t.csv", 3, &["two columns are called 'y'"]);
}

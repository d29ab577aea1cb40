//! `laconic data`, run as users run it.

mod program;

use laconic_graph::dataset::{Features, Ids, Labels, Split};
use laconic_graph::read::{ReadOptions, read};
use program::Place;
use program::needs::shared;

const FRIENDS: &str = "src,dst,w\nann,bob,2\nbob,cem,1\ndan,ann,3\n";
const PEOPLE: &str = "name,age,party,role\ndan,30,red,train\nann,20,blue,val\ncem,50,red,test\nbob,40,blue,train\n";
const TABLE: &str = "--nodes people.csv --id name --label party --split role";

/// A folder with an edge list and a node table under other than the usual names.
fn friends() -> Place {
    let place = Place::new();
    place.write("friends.csv", FRIENDS);
    place.write("people.csv", PEOPLE);
    place
}

#[test]
fn what_is_generated_is_described_checked_and_converted() {
    let place = Place::new();
    let made = place.json("data synth sbm --nodes 400 --mean-degree 6 --classes 3 --features 5 --out a.npz");
    assert_eq!((&made["nodes"], &made["file"]), (&400.into(), &"a.npz".into()));
    let info = place.json("data info a.npz");
    let columns = info["features"]["columns"].as_u64();
    assert_eq!((info["classes"].as_u64(), columns, info["directed"].as_bool()), (Some(3), Some(5), Some(false)));
    assert_eq!((&info["edges"], &info["digest"]), (&made["edges"], &made["digest"]));
    let check = place.json("data check a.npz");
    assert_eq!(check["errors"], 0);
    assert_eq!(check["findings"].as_array().unwrap().len() as u64, check["warnings"].as_u64().unwrap());
    let copy = place.json("data convert a.npz --out b.npz");
    assert_eq!(copy["digest"], made["digest"]);
    assert_eq!(place.names(), ["a.npz", "b.npz"]);
}

#[test]
fn the_same_flags_generate_the_same_graph() {
    let place = Place::new();
    let digest = |line: &str| place.json(line)["digest"].clone();
    let first = digest("data synth rmat --scale 8 --edge-factor 4 --features 2 --seed 3 --out a.npz");
    assert_eq!(first, digest("data synth rmat --scale 8 --edge-factor 4 --features 2 --seed 3 --out b.npz"));
    assert_ne!(first, digest("data synth rmat --scale 8 --edge-factor 4 --features 2 --seed 4 --out c.npz"));
    digest("data synth rmat --scale 8 --symmetric false --classes 0 --features 0 --out d.npz");
    let info = place.json("data info d.npz");
    assert_eq!((info["directed"].as_bool(), info["classes"].as_u64()), (Some(true), Some(0)));
    assert!(info["features"].is_null());
}

#[test]
fn people_read_words_where_machines_read_json() {
    let place = Place::new();
    let made = place.run("data synth sbm --nodes 100 --degree-max 50 --out a.npz");
    assert!(made.err.contains("generating") && made.out.contains("digest     blake3:"), "{}{}", made.err, made.out);
    let info = place.run("data info a.npz");
    assert!(info.out.starts_with("a\nnodes      100, ") && info.out.contains("\nformat     interchange npz\n"));
    assert_eq!(place.run("data info a.npz --quiet").err, "");
}

#[test]
fn an_edge_list_with_text_ids_keeps_them() {
    let place = friends();
    assert_eq!(place.json(&format!("data convert friends.csv {TABLE} --out friends.npz"))["edges"], 3);
    let dataset = read(&place.path("friends.npz"), &ReadOptions::default()).unwrap();
    assert_eq!(dataset.ids, Ids::Strings(["dan", "ann", "cem", "bob"].map(str::to_owned).to_vec()));
    assert_eq!(dataset.labels, Labels::Single { classes: 2, values: vec![1, 0, 1, 0] });
    assert_eq!(dataset.features, Features::Dense { columns: 1, values: vec![30.0, 20.0, 50.0, 40.0].into() });
    assert_eq!(dataset.splits[0].roles, [Split::TRAIN, Split::VAL, Split::TEST, Split::TRAIN]);
    // dan → ann, bob → cem, ann → bob.
    assert_eq!(dataset.graph.sources, [0, 3, 1]);
    assert_eq!(dataset.graph.data.weights, Some(vec![3.0, 1.0, 2.0]));
}

#[test]
fn columns_and_directions_are_as_the_user_says() {
    let place = friends();
    let line = format!("data convert friends.csv {TABLE} --source dst --target src --symmetrise --out a.npz --to npz");
    assert_eq!(place.json(&line)["edges"], 6);
    place.refused(&format!("data info friends.csv {TABLE} --weight pounds"), 3, &["friends.csv", "pounds"]);
    place.write("loop.csv", "src,dst\n0,0\n0,1\n");
    assert_eq!(place.json("data info loop.csv")["self_loops"], 0);
    assert_eq!(place.json("data info loop.csv --keep-self-loops")["self_loops"], 1);
}

#[test]
fn a_dataset_that_cannot_be_learned_from_does_not_pass_the_check() {
    let place = friends();
    place.write("people.csv", &PEOPLE.replace("train", "test"));
    let ran = place.run(&format!("data check friends.csv {TABLE}"));
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("error: split 0: no node is for training"), "{}", ran.out);
    let ran = place.run(&format!("data check friends.csv {TABLE} --json"));
    let verdict: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &verdict["findings"][0]["severity"]), (1, &"error".into()));
}

#[test]
fn input_that_cannot_be_read_is_named() {
    let place = friends();
    for command in ["info", "check", "convert --out a.npz"] {
        place.refused(&format!("data {command} absent.npz"), 3, &["absent.npz", "No such file"]);
        place.refused(&format!("data {command} friends.csv --nodes absent.csv"), 3, &["absent.csv"]);
    }
    place.write("poem.txt.bak", "Not a graph.");
    place.refused("data info poem.txt.bak", 3, &["poem.txt.bak", "expected one of", "edge_index"]);
    place.write("broken.npz", "PK, but not for long");
    place.refused("data convert broken.npz --out a.npz", 3, &["broken.npz"]);
    place.write("graph.graph", "2 1\n2\n1\n");
    place.refused("data info graph.graph --label y", 2, &["--label", "graph.graph", "METIS"]);
    assert_eq!(place.names(), ["broken.npz", "friends.csv", "graph.graph", "people.csv", "poem.txt.bak"]);
}

#[test]
fn tables_are_written_by_the_ending_or_into_a_folder_and_read_as_the_same() {
    let place = friends();
    let digest = place.json(&format!("data convert friends.csv {TABLE} --out a.npz"))["digest"].clone();
    for out in ["--out edges.csv", "--to parquet --out both"] {
        let written = place.json(&format!("data convert a.npz {out}"));
        assert_eq!(written["digest"], digest);
        let read = place.json(&format!("data info {}", written["file"].as_str().unwrap()));
        assert_eq!(read["digest"], digest, "{out}");
    }
    place.refused("data convert a.npz --out edges.csv", 2, &["edges.csv is there already", "--force"]);
    place.refused("data convert a.npz --to parquet --out both", 2, &["both", "is there already"]);
    place.refused("data convert a.npz --out nodes.csv --force", 2, &["nodes.csv", "name that of edges otherwise"]);
    place.json("data convert a.npz --out edges.csv --force");
}

#[test]
fn nothing_is_replaced_unasked() {
    let place = friends();
    place.write("a.npz", "mine");
    std::fs::create_dir(place.path("folder.npz")).unwrap();
    for command in ["data synth sbm --nodes 50 --degree-max 20", "data convert friends.csv"] {
        place.refused(&format!("{command} --out a.npz"), 2, &["a.npz is there already", "--force"]);
        place.refused(&format!("{command} --force --out folder.npz"), 2, &["folder.npz"]);
        place.refused(&format!("{command} --out a.txt"), 2, &["a.txt", ".npz"]);
        place.refused(&format!("{command} --out absent/a.npz"), 5, &["absent"]);
    }
    assert_eq!(std::fs::read_to_string(place.path("a.npz")).unwrap(), "mine");
    place.json("data convert friends.csv --force --out a.npz");
    assert_eq!(place.json("data info a.npz")["nodes"], 4);
    place.json("data convert a.npz --symmetrise --force --out a.npz");
    assert_eq!(place.json("data info a.npz")["edges"], 6);
    assert_eq!(place.names(), ["a.npz", "folder.npz", "friends.csv", "people.csv"]);
}

#[test]
fn generators_refuse_what_makes_no_graph() {
    let place = Place::new();
    place.refused("data synth sbm --homophily 2 --out a.npz", 2, &["homophily", "found 2"]);
    place.refused("data synth rmat --scale 40 --out a.npz", 2, &["scale", "40"]);
    place.refused("data synth sbm --nodes many --out a.npz", 2, &["--nodes", "many"]);
    assert!(place.names().is_empty());
}

/// Columns of every kind, under names that nothing recognises.
const USERS: &str = "user,age,country,joined,note,role,status\n\
    dan,30,fr,2026-01-01,a,train,ok\nann,n/a,de,2026-01-02,b,val,banned\n\
    cem,50,fr,2026-01-03,c,test,ok\nbob,40,de,2026-01-04,d,train,banned\n";
const FLAGS: &str = "--nodes people.csv --id user --label status --split-column role --missing mean --ignore note";
const KEYS: &str = "[data]\npath = \"friends.csv\"\nnodes_path = \"people.csv\"\nid = \"user\"\nlabel = \"status\"\n\
    split_column = \"role\"\nmissing = \"mean\"\nignore = [\"note\"]\n[partition]\nparts = 2\n\
    [model]\nhidden = 4\n[train]\nepochs = 2\n";

#[test]
fn every_column_has_its_role_in_words_and_in_json() {
    let place = friends();
    place.write("people.csv", USERS);
    let lines = [
        "people.csv\n  ids        user (texts)\n",
        "  labels     status: banned=0 ok=1\n",
        "  split      role\n",
        "  features   age (1 missing, filled with the mean), country (one-hot 2)\n",
        "  ignored    joined (dates; data.dates = \"days\"",
        "  ignored    note (as asked)\n",
        "friends.csv\n  source     src\n  target     dst\n  weight     w\n",
    ];
    for command in ["info", "check", "convert --out a.npz"] {
        let ran = place.run(&format!("data {command} friends.csv {FLAGS}"));
        for line in lines {
            assert!(ran.out.contains(line), "{command}: expected '{line}' in: {}", ran.out);
        }
        let force = if command.starts_with("convert") { "--force" } else { "" };
        let found = place.json(&format!("data {command} friends.csv {FLAGS} {force}"));
        let roles = found["roles"].as_array().unwrap();
        assert_eq!(
            (&roles[0]["role"], &roles[0]["columns"]),
            (&"ids".into(), &serde_json::json!(["user"])),
            "{command}"
        );
        assert_eq!(roles.iter().filter(|line| line["role"] == "ignored").count(), 2, "{command}");
    }
    let check = place.run(&format!("data check friends.csv {FLAGS}"));
    assert!(check.out.contains("warning: people.csv: column 'joined' is ignored: dates"), "{}", check.out);
    assert!(!check.out.contains("column 'note'"), "what was asked for is no surprise: {}", check.out);
}

#[test]
fn keys_of_a_run_say_what_flags_say() {
    let place = friends();
    place.write("people.csv", USERS);
    place.write("run.toml", KEYS);
    place.json(&format!("data convert friends.csv {FLAGS} --out a.npz"));
    place.write(
        "npz.toml",
        "[data]\npath = \"a.npz\"\n[partition]\nparts = 2\n[model]\nhidden = 4\n[train]\nepochs = 2\n",
    );
    let digest =
        |file: &str, out: &str| place.json(&format!("train {file} --out {out}"))["parameters"]["digest"].clone();
    assert_eq!(digest("run.toml", "tables"), digest("npz.toml", "arrays"));
    let note = "people.csv: ids user (texts) | labels status: banned=0 ok=1 | split role | features age (1 missing";
    let notes = place.json("plan run.toml")["notes"].to_string();
    assert!(notes.contains(note), "{notes}");
    let notes = place.json("train run.toml --out noted")["notes"].to_string();
    assert!(notes.contains(note), "{notes}");
    let trained = place.run("train run.toml --out said");
    assert!(trained.err.contains(note), "{}", trained.err);
    let parts = place.json(&format!("partition friends.csv --parts 2 --method random {FLAGS} --out parts"));
    assert_eq!(parts["roles"][0]["text"], "user (texts)");
    place.write("parts.toml", "[data]\npath = \"parts\"\n[model]\nhidden = 4\n[train]\nepochs = 2\n");
    assert_eq!(digest("parts.toml", "of-parts"), digest("run.toml", "again"));
    // What other formats do not read is a mistake, under the name by which it was given.
    place.refused("data info a.npz --missing zero", 2, &["--missing belongs to an edge list", "interchange npz"]);
    place.refused("partition a.npz --parts 2 --id user", 2, &["--id belongs to an edge list", "interchange npz"]);
    place.refused("plan npz.toml --set data.ignore=[\"x\"]", 2, &["data.ignore belongs to an edge list"]);
}

#[test]
fn loops_stay_in_runs_and_parts_too_where_that_is_asked_for() {
    let place = Place::new();
    place.write("edges.csv", "src,dst\n0,0\n0,1\n1,2\n2,3\n3,3\n");
    place.write("nodes.csv", "id,x,y\n0,1,0\n1,2,1\n2,3,0\n3,4,1\n");
    let edges = |flag: &str| {
        let cut = place.json(&format!("partition edges.csv --parts 2 --split train=0.5,val=0.25 {flag}"));
        cut["parts"].as_array().unwrap().iter().map(|part| part["edges"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((edges(""), edges("--keep-self-loops")), (3, 5));
    let keys = "[data]\npath = \"edges.csv\"\nsplit = { train = 0.5, val = 0.25 }\n\
                [model]\narch = \"gin\"\nhidden = 4\n\
                [train]\nepochs = 2\n[partition]\nparts = 1\n";
    place.write("run.toml", keys);
    let digest = |set: &str| place.json(&format!("train run.toml --out run {set}"))["parameters"]["digest"].clone();
    assert_ne!(digest(""), digest("--set data.keep_self_loops=true"));
}

#[test]
fn gaps_in_numbers_of_classes_are_said_by_whoever_reads_them() {
    let place = Place::new();
    let (nodes, edges): (Vec<u32>, Vec<(u32, u32)>) = ((0..8).collect(), (0..8).map(|v| (v, (v + 1) % 8)).collect());
    let labels = Labels::Single { classes: 206, values: nodes.iter().map(|v| 100 + 105 * (v % 2) as i32).collect() };
    let features = Features::Dense { columns: 1, values: nodes.iter().map(|&v| v as f32).collect() };
    let split = Split { roles: nodes.iter().map(|&v| 1 << (v % 3)).collect() };
    let graph = laconic_graph::graph::Graph::from_edges(8, &edges).unwrap();
    let dataset = laconic_graph::dataset::Dataset::new("gaps", graph, features, labels, vec![split]).unwrap();
    laconic_graph::write::write_interchange(&place.path("gaps.npz"), &dataset).unwrap();
    place.write("run.toml", "[data]\npath = \"gaps.npz\"\n[model]\nhidden = 4\n[train]\nepochs = 1\n");
    for command in ["data check gaps.npz", "data convert gaps.npz --out copy.npz", "train run.toml", "plan run.toml"] {
        let ran = place.run(command);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == 0 && said.contains("204 of 206 classes have no nodes"), "{command}: {said}");
    }
}

#[test]
fn cora_is_described_as_the_literature_does() {
    let Some(cora) = shared("data/cora.npz") else { return };
    let place = Place::new();
    let info = place.json(&format!("data info {}", cora.display()));
    assert_eq!(
        (info["nodes"].as_u64(), info["edges"].as_u64(), info["classes"].as_u64()),
        (Some(2708), Some(10556), Some(7))
    );
    assert_eq!(info["splits"][0], serde_json::json!({"train": 140, "val": 500, "test": 1000, "none": 1068}));
    assert_eq!(place.json(&format!("data check {}", cora.display()))["errors"], 0);
    let copy = place.json(&format!("data convert {} --out cora.npz", cora.display()));
    assert_eq!(copy["digest"], info["digest"]);
    assert_eq!(place.json("data info cora.npz")["digest"], info["digest"]);
}

#[test]
fn labels_that_are_codes_or_truths_are_names_and_ignored_columns_have_no_role() {
    let place = Place::new();
    place.write("edges.csv", "src,dst\n1,2\n2,3\n3,1\n");
    let classes = |labels: [&str; 3], flags: &str| {
        let [a, b, c] = labels;
        place.write("nodes.csv", &format!("id,x,label,split\n1,0.5,{a},train\n2,0.1,{b},val\n3,0.3,{c},test\n"));
        place.json(&format!("data info edges.csv --nodes nodes.csv {flags}"))
    };
    let labels = |found: &serde_json::Value| {
        let role = |role: &&serde_json::Value| role["role"] == "labels";
        found["roles"].as_array().and_then(|roles| roles.iter().find(role)).expect("a line")["text"].clone()
    };
    for (given, expected) in [
        (["01", "1", "01"], "label: 01=0 1=1"),
        (["true", "false", "true"], "label: false=0 true=1"),
        (["1.0", "0.0", "1.0"], "label: classes 0..1"),
    ] {
        assert_eq!(labels(&classes(given, "")), expected);
    }
    // A second column of labels would give the first away.
    place.write("two.csv", "id,x,label,y\n1,0.5,a,1\n2,0.1,b,2\n3,0.3,a,1\n");
    let checked = place.json("data check edges.csv --nodes two.csv");
    let found = checked["findings"].to_string();
    assert!(found.contains("y: features that are called as labels are"), "{found}");
    assert!(
        !place.json("data check edges.csv --nodes two.csv --ignore y")["findings"].to_string().contains("called as")
    );
    // As pandas writes 0 and 1 where a cell is missing.
    place.write("sets.csv", "id,x,label_a,label_b\n1,0.5,1.0,0.0\n2,0.1,0.0,\n3,0.3,1.0,1.0\n");
    let sets = place.json("data info edges.csv --nodes sets.csv");
    assert_eq!((&sets["multi_label"], &sets["classes"]), (&true.into(), &2.into()), "{sets}");
    let left = classes(["a", "b", "a"], "--ignore label,split");
    assert_eq!((labels(&left).as_str(), left["splits"].as_array().map(Vec::len)), (Some("none"), Some(0)));
    place.refused("data info edges.csv --nodes nodes.csv --ignore label --label label", 3, &["data.ignore", "'label'"]);
    // Without a line of names a class called y is no header.
    place.write("bare.csv", "1.5,y\n2.5,n\n3.5,y\n");
    place.refused("data info edges.csv --nodes bare.csv --id row", 3, &["data.header"]);
}

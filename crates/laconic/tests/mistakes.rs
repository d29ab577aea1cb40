//! What somebody types by mistake in a first hour, and the answer: each names what is wrong and what to do.

mod program;

use program::Place;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 2\n[model]\nhidden = 4\n[train]\nepochs = 2\n";

fn place() -> Place {
    Place::with_run(RUN)
}

#[test]
fn paths_that_lead_nowhere_are_named_in_full() {
    let place = place();
    place.refused("train nosuch.toml", 5, &["nosuch.toml: No such file"]);
    let whole = place.path("nosuch.npz").canonicalize().unwrap_or_else(|_| place.path("nosuch.npz"));
    place.refused("train run.toml --set data.path=nosuch.npz", 3, &[&whole.display().to_string(), "No such file"]);
    place.refused("train run.toml --set data.path=", 2, &["data.path is not set: which graph?"]);
    place.write("empty.toml", "");
    place.refused("plan empty.toml", 2, &["data.path is not set: which graph?"]);
}

#[test]
fn data_in_place_of_a_configuration_are_told_with_the_configuration_that_names_them() {
    let place = place();
    place.write("edges.csv", "src,dst\n1,2\n2,3\n");
    place.json("partition graph.npz --parts 2 --out parts");
    for command in ["train", "plan", "verify", "compare --runs methods.toml"] {
        let file = [("graph.npz", "a dataset"), ("edges.csv", "a dataset"), ("parts", "a folder of parts")];
        for (path, what) in file {
            let found = format!("{path}: expected a configuration, found {what}");
            let named = format!("path = \"{path}\"");
            place.refused(&format!("{command} {path}"), 2, &[&found, "run.toml", &named, "laconic keys"]);
        }
    }
}

#[test]
fn the_folder_of_a_run_in_place_of_a_configuration_or_data_is_told_with_what_it_is_good_for() {
    let place = place();
    place.json("train run.toml --out run");
    let words = ["run: expected a file, found the folder of a run", "laconic resume run", "train run/config.toml"];
    place.refused("train run", 2, &words);
    place.refused("plan run", 2, &words);
    place.refused("data info run", 3, &["run", "expected a dataset, found the folder of a run"]);
    std::fs::create_dir(place.path("other")).expect("a folder");
    place.refused("train other", 2, &["other: expected a file, found a folder"]);
}

#[test]
fn a_configuration_in_place_of_data_is_told_with_the_data_that_it_names() {
    let place = place();
    let words =
        ["run.toml", "expected a dataset, found a configuration", "data.path names the data, here \"graph.npz\""];
    place.refused("partition run.toml --parts 2", 3, &words);
    place.refused("data info run.toml", 3, &words);
    place.refused("data check run.toml", 3, &words);
}

#[test]
fn other_languages_and_text_without_quotes_are_told_from_toml() {
    let place = place();
    let cases = [
        ("a.yaml", "# a run\ndata:\n  path: graph.npz\n", &["looks like YAML", "a run is TOML", "[data]"][..]),
        ("a.json", "{\"data\": {\"path\": \"graph.npz\"}}", &["looks like JSON", "a run is TOML"]),
        ("a.py", "import torch\nlr = 0.1\n", &["looks like Python", "a run is TOML"]),
        ("a.toml", "[data]\npath = graph.npz\n", &["line 2", "text stands in quotes: path = \"graph.npz\""]),
        ("b.toml", "[data]\npath = /data/graph.npz\n", &["line 2", "quotes: path = \"/data/graph.npz\""]),
        ("c.toml", "[data]\nsymmetrise = True\n", &["line 2", "TOML writes it true"]),
        ("d.toml", "[messages]\nskip = None\n", &["line 2", "TOML has no None: leave skip out"]),
        (
            "e.toml",
            "[messages]\nforward = { codec = quantised, bits = 4 }\n",
            &["text stands in quotes: forward = { codec = \"quantised\", bits = 4 }"],
        ),
    ];
    for (file, text, words) in cases {
        place.write(file, text);
        place.refused(&format!("plan {file}"), 2, words);
    }
}

#[test]
fn keys_are_suggested_from_every_section_and_only_where_they_are_near() {
    let place = place();
    for (set, words) in [
        ("train.epocs=3", "unknown key \"train.epocs\"; did you mean \"train.epochs\"?"),
        ("epochs=3", "unknown key \"epochs\"; did you mean \"train.epochs\"?"),
        ("lr=1", "did you mean \"train.lr\" or \"schedule.lr\"?"),
        ("train.learning_rate=1", "did you mean \"train.lr\"?"),
        ("model.num_layers=3", "did you mean \"model.layers\"?"),
        ("model.hidden_size=3", "did you mean \"model.hidden\"?"),
        ("hidden=3", "did you mean \"model.hidden\"?"),
        ("train.dropout=0.1", "did you mean \"model.dropout\"?"),
        ("training.epochs=3", "unknown key \"training\"; did you mean \"train\"?"),
        ("train.batch_size=3", "unknown key \"train.batch_size\"; did you mean \"batch.size\"?"),
        ("device=cuda", "unknown key \"device\": it computes on CPUs"),
    ] {
        place.refused(&format!("plan run.toml --set {set}"), 2, &[words]);
    }
    for set in ["train.colour=3", "publisher=3", "data.licence=3"] {
        let said = place.run(&format!("plan run.toml --set {set}")).err;
        assert!(said.contains("unknown key") && !said.contains("did you mean"), "{said}");
    }
    place.write("bare.toml", "epochs = 5\n[data]\npath = \"graph.npz\"\n");
    place.refused("plan bare.toml", 2, &["bare.toml: unknown key \"epochs\"; did you mean \"train.epochs\"?"]);
}

#[test]
fn names_of_other_programs_for_values_are_told_with_the_name_here() {
    let place = place();
    for (set, words) in [
        ("model.arch=graphsage", "did you mean \"sage\"?"),
        ("model.arch=graph_sage", "did you mean \"sage\"?"),
        ("model.arch=GCN", "did you mean \"gcn\"?"),
        ("model.arch=GIN", "did you mean \"gin\"?"),
        ("model.arch=gatv2", "GATv2 is another layer, which is not there"),
        ("partition.method=metis", "did you mean \"multilevel\"?"),
        ("train.metrics=auc", "did you mean \"roc_auc\"?"),
        ("train.metrics=accuracy,roc_auc", "a list stands in brackets: [\"accuracy\", \"roc_auc\"]"),
        ("messages.forward=quantized", "did you mean \"quantised\"?"),
        ("messages.forward=fp16", "did you mean \"half\"?"),
        ("schedule.kind=async", "did you mean \"pipelined\"?"),
        ("transport.kind=tcp", "expected one of threads, processes, mpi"),
        ("data.features=standardized", "did you mean \"standardised\"?"),
        ("messages.forward={codec=\"quantised\",bits=3}", "1, 2, 4, 8, 16"),
        ("transport.shape=wan", "wan-100mbit-40ms"),
        ("messages.budget=10", "budget"),
    ] {
        place.refused(&format!("plan run.toml --set {set}"), 2, &[words]);
    }
    let said = place.run("plan run.toml --set model.arch=transformer").err;
    assert!(said.contains("expected one of gcn, sage") && !said.contains("did you mean"), "{said}");
}

#[test]
fn a_value_of_another_kind_is_told_with_its_key_and_where_it_was_set() {
    let place = place();
    for (set, words) in [
        ("train.epochs=many", "--set train.epochs=many: train.epochs = \"many\": expected a whole number"),
        ("train.epochs=1.5", "train.epochs = 1.5: expected a whole number"),
        ("train.epochs=-1", "train.epochs = -1: expected a whole number, not below 0"),
        ("train.lr=fast", "--set train.lr=fast: train.lr = \"fast\": expected a number"),
        ("data.symmetrise=1", "data.symmetrise = 1: expected true or false"),
        ("data.path=3", "data.path = 3: expected text in quotes"),
        ("schedule.rounds=3", "schedule.rounds = 3: expected a list in brackets"),
        ("data.split={train=1}", "data.split = { train = 1 }: expected given, or { train = "),
        ("train.epochs=0", "train.epochs = 0: expected 1 or more"),
        ("messages.forward={codec=quantised,bits=4}", "--set 'messages.forward={codec=\"quantised\",bits=4}'"),
        ("train.metrics=[accuracy,roc_auc]", "--set 'train.metrics=[\"accuracy\",\"roc_auc\"]'"),
        ("messages.forward=codec=half", "a table stands in braces"),
    ] {
        let line = format!("plan run.toml --set {set}");
        place.refused(&line, 2, &[words]);
        let said = place.run(&line).err;
        assert!(!said.contains("u32") && !said.contains("f32"), "{said}");
        assert!(set.ends_with("=0") || !said.contains("run.toml"), "it came from --set: {said}");
    }
    place.write("many.toml", &RUN.replace("epochs = 2", "epochs = \"many\""));
    place.refused("plan many.toml", 2, &["many.toml: train.epochs = \"many\": expected a whole number"]);
    place.json("train run.toml --out run");
    place.refused("resume run --set train.epochs=0", 2, &["train.epochs = 0: expected 1 or more"]);
}

#[test]
fn one_metric_may_stand_without_a_list() {
    let place = place();
    let word = place.json("train run.toml --out word --set train.metrics=roc_auc");
    let list = place.json("train run.toml --out list --set train.metrics=[\"roc_auc\"]");
    assert_eq!(word["parameters"], list["parameters"]);
    assert!(word["metrics"]["test"]["roc_auc"].is_number(), "{word}");
}

#[test]
fn a_key_of_the_configuration_among_the_options_is_told_with_set() {
    let place = place();
    for (line, words) in [
        ("train run.toml --epochs 5", "--epochs is a key of the configuration and no option; say --set train.epochs=5"),
        ("train run.toml --epochs=5", "say --set train.epochs=5"),
        ("plan run.toml --train.lr 0.1", "say --set train.lr=0.1"),
        ("plan run.toml --hidden-size 64", "say --set model.hidden=64"),
        ("verify run.toml --arch gcn", "say --set model.arch=gcn"),
        ("train run.toml --batch-size 32", "say --set batch.size=32"),
        ("train run.toml train.epochs=5", "is set with --set train.epochs=5"),
        (
            "train run.toml --set messages.forward=codec=quantised messages.forward=bits=4",
            "in single quotes, as in --set 'messages.forward={codec=quantised,bits=4}'",
        ),
    ] {
        place.refused(line, 2, &[words]);
    }
    // What is no key, or belongs to a command without one, is the parser's own matter.
    for line in ["train run.toml --outt x", "data info graph.npz --epochs 5", "train run.toml --nonsense"] {
        place.refused(line, 2, &["unexpected argument"]);
    }
}

#[test]
fn a_graph_whose_edges_go_one_way_is_noted_by_whoever_reads_it() {
    let place = place();
    let rows: String = (0..12).map(|node| format!("{node},{}\n", (node + 1) % 12)).collect();
    place.write("edges.csv", &format!("src,dst\n{rows}"));
    let rows: String = (0..12).map(|node| format!("{node},{},{},train\n", node % 3, node % 2)).collect();
    place.write("nodes.csv", &format!("id,x,label,split\n{rows}"));
    place.write("run.toml", &RUN.replace("graph.npz", "edges.csv"));
    let note = "note: some edges have one direction only";
    for command in ["plan run.toml", "train run.toml --out run", "partition edges.csv --parts 2 --out parts"] {
        let ran = place.run(command);
        assert!(ran.code == 0 && ran.err.contains(note), "{command}: {}", ran.err);
        assert!(ran.err.contains("symmetrise adds the other"), "{command}: {}", ran.err);
    }
    let notes = place.json("plan run.toml")["notes"].clone();
    let found = |found: &serde_json::Value| {
        found.as_str().is_some_and(|found| note.ends_with(found.split(';').next().unwrap_or("?")))
    };
    assert!(notes.as_array().is_some_and(|notes| notes.iter().any(found)), "{notes}");
    for command in ["plan run.toml --set data.symmetrise=true", "partition edges.csv --parts 2 --symmetrise"] {
        let ran = place.run(command);
        assert!(ran.code == 0 && !ran.err.contains(note), "{command}: {}", ran.err);
    }
}

#[test]
fn more_workers_than_cores_are_noted_and_no_nodes_for_a_part_are_refused() {
    let place = place();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 60 {
        let said = place.run(&format!("train run.toml --out run --set partition.parts={}", cores + 1)).err;
        let note = format!("note: {} workers share {cores} cores", cores + 1);
        assert!(said.contains(&note), "{said}");
    }
    let said = place.run("train run.toml --out one --set partition.parts=1").err;
    assert!(!said.contains("share"), "{said}");
    place.refused("train run.toml --set partition.parts=5000", 2, &["partition.parts = 5000: expected"]);
}

#[test]
fn an_earlier_run_in_the_same_folder_is_moved_aside_and_it_is_said_where() {
    let place = place();
    place.json("train run.toml --out run");
    let said = place.run("train run.toml --out run").err;
    assert!(said.contains("an earlier run was moved to run.1"), "{said}");
    assert!(place.path("run.1/summary.json").is_file());
}

#[test]
fn data_that_cannot_be_learned_from_say_what_is_missing() {
    let place = place();
    place.write("edges.csv", "src,dst\na,b\nb,c\nc,a\n");
    place.write("run.toml", &RUN.replace("graph.npz", "edges.csv"));
    place.refused("train run.toml", 2, &["edges has no node features", "data.features_path"]);
    place.write("nodes.csv", "id,x\na,1\nb,2\nc,3\n");
    place.refused("train run.toml", 2, &["edges has no labels to learn"]);
    place.write("nodes.csv", "id,x,label\na,1,0\nb,2,1\nc,3,0\n");
    let said = place.run("train run.toml");
    assert!(said.code != 0 && said.err.contains("data.split"), "{}", said.err);
    place.refused("data info edges.csv --source from_here", 3, &["expected a column 'from_here' among"]);
    place.write("nodes.csv", "id,x,label\na,1,1.08\nb,2,1\nc,3,0\n");
    place.refused("train run.toml", 3, &["1.08", "expected"]);
    place.refused("data info edges.csv --label klass", 3, &["expected a column 'klass' among"]);
}

#[test]
fn nothing_is_replaced_that_was_there() {
    let place = place();
    place.json("partition graph.npz --parts 2 --out parts");
    place.refused("partition graph.npz --parts 2 --out parts", 2, &["parts", "--force"]);
    place.json("data convert graph.npz --out copy.npz");
    place.refused("data convert graph.npz --out copy.npz", 2, &["copy.npz", "--force"]);
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_program_without_mpi_says_how_to_build_one_with_it() {
    place().refused("train run.toml --set transport.kind=mpi", 2, &["build it with --features mpi"]);
}

#[test]
fn layers_that_tell_relations_apart_are_noted_where_the_data_do_not() {
    let place = place();
    let notes = |line: &str| place.json(line)["notes"].to_string();
    assert!(notes("plan run.toml --set model.arch=rgcn").contains("one kind of edges"));
    assert!(!notes("plan run.toml --set model.arch=gcn").contains("one kind of edges"));
}

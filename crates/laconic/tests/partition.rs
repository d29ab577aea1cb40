//! `laconic partition`, run as users run it.

mod program;

use laconic_graph::dataset::{Ids, Labels, Split};
use laconic_graph::part::{PartCounts, open_meta, open_part, write_counts};
use program::Place;
use program::needs::shared;

/// A folder with a generated graph of 300 nodes.
fn generated() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 300 --mean-degree 8 --degree-max 60 --classes 3 --features 4 --out a.npz");
    place
}

#[test]
fn parts_open_and_hold_every_node_and_edge_once() {
    let place = generated();
    let result = place.json("partition a.npz --parts 3 --method multilevel --seed 5 --out parts");
    let info = place.json("data info a.npz");
    let meta = open_meta(&place.path("parts")).unwrap();
    assert_eq!((meta.parts, meta.provenance.method.as_str(), meta.provenance.seed), (3, "multilevel", 5));
    assert_eq!(meta.global.data_digest, info["digest"].as_str().unwrap());
    assert_eq!(meta.global.train, info["splits"][0]["train"].as_u64().unwrap());
    let parts: Vec<_> = (0..3).map(|index| open_part(&place.path("parts"), index).unwrap()).collect();
    let mut nodes: Vec<u64> = parts.iter().flat_map(|part| part.nodes.iter().copied()).collect();
    nodes.sort_unstable();
    assert!(nodes.into_iter().eq(0..300));
    let edges: usize = parts.iter().map(|part| part.edges.edges()).sum();
    assert_eq!(edges as u64, result["edges"].as_u64().unwrap());
    for (part, figures) in parts.iter().zip(result["parts"].as_array().unwrap()) {
        assert_eq!(part.rows() as u64, figures["nodes"].as_u64().unwrap());
    }
    assert_eq!(place.names(), ["a.npz", "parts"]);
}

#[test]
fn without_out_there_are_only_figures() {
    let place = generated();
    let ran = place.run("partition a.npz --parts 4 --method random");
    assert!(ran.code == 0 && ran.out.contains("halo share") && ran.out.contains("edge cut"), "{}", ran.err);
    let random = place.json("partition a.npz --parts 4 --method random");
    assert!(random["out"].is_null() && random["replication"].as_f64().unwrap() > 1.0);
    // Three quarters of the edges join different ones of four random parts, give or take.
    assert!((random["cut_share"].as_f64().unwrap() - 0.75).abs() < 0.1, "{}", random["cut_share"]);
    let multilevel = place.json("partition a.npz --parts 4 --method multilevel --objective volume --balance-train");
    assert!(multilevel["halo_rows"].as_u64() < random["halo_rows"].as_u64());
    assert_eq!(place.names(), ["a.npz"]);
}

/// METIS prints where it cannot balance as asked.
#[test]
fn what_a_library_prints_does_not_stand_among_results() {
    let place = Place::new();
    let star: String = (1..200).map(|leaf| format!("{leaf},0\n")).collect();
    std::fs::write(place.path("star.csv"), format!("source,target\n{star}")).unwrap();
    for flags in ["--method multilevel --balance-edges", "--method super_node --balance-edges"] {
        let result = place.json(&format!("partition star.csv --parts 199 {flags}"));
        assert_eq!(result["parts"].as_array().unwrap().len(), 199, "{flags}");
    }
}

#[test]
fn an_assignment_written_is_an_assignment_given() {
    let place = generated();
    let first = place.json("partition a.npz --parts 3 --method multilevel --assignment of.txt");
    let again = place.json("partition a.npz --parts 3 --method given --file of.txt");
    assert_eq!((&first["parts"], &first["cut_edges"]), (&again["parts"], &again["cut_edges"]));
    assert_eq!(std::fs::read_to_string(place.path("of.txt")).unwrap().lines().count(), 300);
}

#[test]
fn a_bad_assignment_is_named_with_its_line() {
    let place = generated();
    place.write("of.txt", &"0\n".repeat(299));
    place.refused(
        "partition a.npz --parts 2 --method given --file of.txt",
        3,
        &["of.txt", "expected 300", "found 299"],
    );
    place.write("of.txt", &("0\n7\n".to_owned() + &"0\n".repeat(298)));
    place.refused(
        "partition a.npz --parts 2 --method given --file of.txt --out parts",
        3,
        &["of.txt: line 2", "below 2"],
    );
    place.refused("partition a.npz --parts 2 --method given --file absent.txt", 3, &["absent.txt"]);
    place.refused("partition a.npz --parts 2 --method given", 2, &["--file"]);
    place.refused("partition a.npz --parts 2 --method random --file of.txt", 2, &["--file", "--method given"]);
    assert_eq!(place.names(), ["a.npz", "of.txt"]);
}

#[test]
fn nothing_but_parts_is_replaced_and_that_only_when_asked() {
    let place = generated();
    place.json("partition a.npz --parts 2 --out parts --assignment of.txt");
    place.refused("partition a.npz --parts 3 --out parts", 2, &["parts", "--force"]);
    place.refused("partition a.npz --parts 3 --assignment of.txt", 2, &["of.txt", "--force"]);
    assert_eq!(open_meta(&place.path("parts")).unwrap().parts, 2);
    place.json("partition a.npz --parts 3 --out parts --assignment of.txt --force");
    assert_eq!(open_meta(&place.path("parts")).unwrap().parts, 3);
    std::fs::create_dir(place.path("mine")).unwrap();
    place.write("mine/letter", "dear");
    place.refused("partition a.npz --parts 2 --out mine --force", 2, &["mine", "other files"]);
    place.refused("partition a.npz --parts 2 --out a.npz --force", 2, &["a.npz", "not a folder"]);
    place.json("partition a.npz --parts 2 --out deep/er/parts");
    assert_eq!(place.names(), ["a.npz", "deep", "mine", "of.txt", "parts"]);
}

#[test]
fn input_that_cannot_be_cut_is_refused() {
    let place = generated();
    place.refused("partition absent.npz --parts 2", 3, &["absent.npz"]);
    for method in ["random", "streaming", "super_node", "multilevel"] {
        let line = format!("partition a.npz --parts 2000 --method {method}");
        place.refused(&line, 3, &["a.npz", "cannot make 2000 parts of"]);
    }
    place.write("poem", "Not a graph.");
    place.refused("partition poem --parts 2 --out parts", 3, &["poem", "expected one of"]);
    place.refused("partition a.npz --parts 301 --method multilevel", 3, &["a.npz", "301 parts of 300 nodes"]);
    place.refused("partition a.npz --parts 2 --method fine", 2, &["--method", "fine", "multilevel"]);
    place.refused("partition a.npz --parts 2 --imbalance 0.1", 2, &["--imbalance", "multilevel"]);
    let rule = "partition a.npz --parts 2 --method super_node --rule ldg";
    place.refused(rule, 2, &["--rule belongs to --clusterer streaming, not to multilevel"]);
    place.json(&format!("{rule} --clusterer streaming --passes 2"));
    place.refused("partition a.npz --parts 2 --split-index 1", 2, &["split_index"]);
    place.refused("partition a.npz --parts 2 --split train=0.5", 2, &["--split", "val"]);
    place.write("list.csv", "0,1\n1,2\n");
    place.refused("partition list.csv --parts 2 --method multilevel --balance-train", 2, &["list.csv", "--split"]);
    place.json("partition a.npz --parts 2 --out parts");
    place.refused("partition parts --parts 2", 3, &["parts", "a folder of parts"]);
    place.refused("data info parts", 3, &["parts", "a folder of parts"]);
}

#[test]
fn split_and_features_are_prepared_before_the_cut() {
    let place = generated();
    place.json(
        "partition a.npz --parts 2 --split train=20,val=30,seed=4 --feature-preparation standardised --out parts",
    );
    let global = open_meta(&place.path("parts")).unwrap().global;
    assert_eq!((global.train, global.val, global.test), (60, 30, 210));
    place.write("friends.csv", "src,dst\nann,bob\nbob,cem\n");
    place.write("people.csv", "id,age\ncem,1\nbob,2\nann,3\n");
    let result = place.json("partition friends.csv --nodes people.csv --symmetrise --parts 1 --out friends");
    assert_eq!(result["edges"], 4);
    let part = open_part(&place.path("friends"), 0).unwrap();
    assert_eq!(part.ids, Ids::Strings(["cem", "bob", "ann"].map(str::to_owned).to_vec()));
}

#[test]
fn cora_is_cut_with_few_edges_between_parts() {
    let Some(cora) = shared("data/cora.npz") else { return };
    let place = Place::new();
    let line = format!("partition {} --parts 4 --method multilevel --out parts", cora.display());
    let result = place.json(&line);
    assert_eq!((result["nodes"].as_u64(), result["edges"].as_u64()), (Some(2708), Some(10556)));
    // METIS cuts 4 to 6 % of Cora's edges into four parts; random parts cut 75 %.
    assert!(result["cut_share"].as_f64().unwrap() < 0.1, "{}", result["cut_share"]);
    assert_eq!(open_part(&place.path("parts"), 3).unwrap().global.train, 140);
}

/// The number of each node's class, as an assignment: parts are the classes.
fn by_class(place: &Place) {
    place.json("partition a.npz --parts 1 --out whole");
    let whole = open_part(&place.path("whole"), 0).unwrap();
    let Labels::Single { values, .. } = whole.labels else { panic!("one class a node") };
    place.write("class.txt", &values.iter().map(|class| format!("{class}\n")).collect::<String>());
}

#[test]
fn label_skew_is_what_the_training_labels_of_the_parts_say() {
    let place = generated();
    by_class(&place);
    for (how, apart) in [("random", Some(false)), ("multilevel", None), ("given --file class.txt", Some(true))] {
        let result = place.json(&format!("partition a.npz --parts 3 --method {how} --out parts --force"));
        let of = |index| {
            let part = open_part(&place.path("parts"), index).unwrap();
            let Labels::Single { values, .. } = part.labels else { panic!("one class a node") };
            let mut counts = [0.0; 3];
            let train = values.iter().zip(&part.roles).filter(|(class, role)| **class >= 0 && **role == Split::TRAIN);
            train.for_each(|(class, _)| counts[*class as usize] += 1.0);
            counts
        };
        let counts: Vec<[f64; 3]> = (0..3).map(of).collect();
        let all: f64 = counts.iter().flatten().sum();
        let share = |class: usize| counts.iter().map(|part| part[class]).sum::<f64>() / all;
        let mut mean = 0.0;
        for (part, found) in counts.iter().zip(result["labels"]["parts"].as_array().unwrap()) {
            let own: f64 = part.iter().sum();
            let distance = (0..3).map(|class| (part[class] / own - share(class)).abs()).sum::<f64>() / 2.0;
            mean += own / all * distance;
            let top = part.iter().copied().fold(0.0, f64::max) / own;
            assert!((found["share"].as_f64().unwrap() - top).abs() < 1e-9, "{how}: {found}");
            assert!((found["distance"].as_f64().unwrap() - distance).abs() < 1e-9, "{how}: {found}");
        }
        let skew = result["labels"]["skew"].as_f64().unwrap();
        assert!((skew - mean).abs() <= 0.005 + 1e-9, "{how}: {skew} against {mean}");
        assert!(apart.is_none_or(|apart| apart == (skew > 0.3)), "{how}: {skew}");
        // One number about all parts, and no part's labels, are for everybody to read.
        let meta: serde_json::Value =
            serde_json::from_slice(&std::fs::read(place.path("parts/meta.json")).unwrap()).unwrap();
        assert_eq!(meta["label_skew"], skew);
        assert!(!meta["files"].to_string().contains("share"));
        let text = place.run(&format!("partition a.npz --parts 3 --method {how}")).out;
        assert!(text.contains("top label") && text.contains(&format!("label skew  {skew:.2}")), "{text}");
    }
}

#[test]
fn averaging_over_parts_of_other_labels_is_noted_and_over_random_parts_is_not() {
    let place = generated();
    by_class(&place);
    place.json("partition a.npz --parts 3 --method given --file class.txt --out apart");
    place.json("partition a.npz --parts 3 --method random --out alike");
    place.write("run.toml", "[model]\nhidden = 8\n[train]\nepochs = 2\n");
    for (data, keys, words) in [
        ("apart", "--set train.sync_every=2", "train.sync_every = 2"),
        ("apart", "--set messages.selection=none", "messages.selection"),
        ("alike", "--set train.sync_every=2", ""),
        ("apart", "", ""),
    ] {
        for command in ["plan", "train"] {
            let ran = place.run(&format!("{command} run.toml --set data.path={data} {keys}"));
            assert_eq!(ran.code, 0, "{}", ran.err);
            let noted = ran.err.lines().find(|line| line.contains("labels differ between parts"));
            assert_eq!(noted.is_some(), !words.is_empty(), "{command} {data} {keys}: {}", ran.err);
            assert!(noted.is_none_or(|line| line.contains("note: ") && line.contains(words)), "{}", ran.err);
        }
    }
    let given = "--set partition.method=given --set partition.file=class.txt --set partition.parts=3";
    let cut = place.json(&format!("plan run.toml --set data.path=a.npz {given}"));
    assert_eq!(cut["label_skew"], place.json("plan run.toml --set data.path=apart")["label_skew"]);
}

#[test]
fn counts_that_are_not_the_parts_are_refused_when_a_part_is_opened_to_train() {
    let place = generated();
    place.json("partition a.npz --parts 3 --method random --out parts");
    place.write("run.toml", "[data]\npath = \"parts\"\n[model]\nhidden = 8\n[train]\nepochs = 1\n");
    let meta = open_meta(&place.path("parts")).unwrap();
    let counts = || meta.files.iter().map(|(part, entry)| (*part, entry.counts.clone().unwrap()));
    type Change = fn(&mut PartCounts);
    let changes: [(&str, Change); 5] = [
        ("own_edges", |counts| counts.own_edges += 1),
        ("labelled training nodes", |counts| counts.labelled[0] -= 1),
        ("feature_values", |counts| counts.feature_values *= 2),
        ("asked_bytes", |counts| counts.asked_bytes += 3),
        ("needs in all", |counts| counts.needs.values_mut().for_each(|needs| needs.rows += 1)),
    ];
    for (name, change) in changes {
        let changed = counts().map(|(part, mut counts)| {
            if part == 1 {
                change(&mut counts);
            }
            (part, counts)
        });
        write_counts(&place.path("parts"), changed.collect(), None).unwrap();
        place.refused("train run.toml --out run --quiet", 3, &["part 1", "counts", name]);
    }
    write_counts(&place.path("parts"), counts().collect(), None).unwrap();
    place.json("train run.toml --out run");
}

/// The others' files are not there: a worker that meets nobody reads nothing of them.
#[test]
fn a_part_alone_needs_no_other_part_and_everything_says_which_it_is() {
    let place = Place::with_run("[data]\npath = \"parts\"\npart = 1\n[train]\nepochs = 2\n[batch]\nsize = 8\n");
    place.json("partition graph.npz --parts 3 --out parts");
    let meta: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.path("parts/meta.json")).unwrap()).unwrap();
    let rows = meta["files"]["1"]["nodes"].as_u64().expect("a number");
    for other in ["part-0", "part-2"] {
        std::fs::rename(place.path(&format!("parts/{other}")), place.path(other)).unwrap();
    }
    let plan = place.json("plan run.toml");
    assert_eq!((&plan["workers"], &plan["rows"], &plan["bytes"]), (&1.into(), &vec![rows].into(), &0.into()));
    let summary = place.json("train run.toml --out run");
    for (notes, what) in [(&plan["notes"], "plan"), (&summary["notes"], "train")] {
        assert!(notes[0].as_str().is_some_and(|note| note.contains("(part 1 of 3): ")), "{what}: {notes}");
    }
    let said = place.run("predict run --out of_run.csv");
    assert!(said.code == 0 && said.err.contains("(part 1 of 3): "), "{}", said.err);
    assert_eq!(place.json("predict run --data parts --part 1 --out asked.csv")["nodes"], rows);
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(read("of_run.csv"), read("asked.csv"));
    let model = std::fs::read(place.path("run/model.safetensors")).unwrap();
    assert!(String::from_utf8_lossy(&model).contains("(part 1 of 3)"), "the model's file");

    std::fs::rename(place.path("part-0"), place.path("parts/part-0")).unwrap();
    place.refused("resume run --set data.part=0 --set train.epochs=3", 2, &["data.part is 0, and was 1"]);
    let ran = place.run("resume run --set train.epochs=3");
    assert_eq!(ran.code, 0, "{}", ran.err);
    for (keys, code, words) in [
        ("data.part=2", 3, &["part-2"][..]),
        ("data.part=3", 2, &["data.part = 3", "parts has parts 0 to 2"]),
        ("data.path=graph.npz", 2, &["data.part = 1", "no folder of parts"]),
        ("partition.parts=3", 2, &["one worker", "partition.parts = 3"]),
        ("data.symmetrise=true", 2, &["the command that cut it"]),
        (
            "data.inductive=true --set messages.selection={kind=\"none\",degrees=\"global\"}",
            2,
            &["data.part = 1", "degrees", "data.inductive"],
        ),
    ] {
        place.refused(&format!("train run.toml --quiet --out fresh --set {keys}"), code, words);
    }
    place.refused("predict run --part 1 --out more.csv", 2, &["--data"]);
}

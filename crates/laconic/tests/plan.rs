//! What will leave a site: the ledger before the run, contents in words, and plans of somebody who has one part.

mod program;

use std::path::Path;

use laconic_graph::part::{Provenance, open_meta, open_part, write_part};
use program::Place;
use serde_json::Value;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[model]\nhidden = 16\n[train]\nepochs = 5\n";

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 400 --features 8 --classes 4 --out graph.npz");
    place.json("partition graph.npz --parts 3 --out parts");
    place.write("run.toml", RUN);
    place
}

/// Keeps one part and the meta data.
fn keep_alone(folder: &Path, part: u32) {
    for other in (0..3).filter(|other| *other != part) {
        std::fs::remove_dir_all(folder.join(format!("part-{other}"))).expect("it was written");
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a number"))
}

#[test]
fn the_ledger_of_a_plan_is_that_of_the_run_byte_for_byte() {
    let place = place();
    for (case, keys) in [
        "",
        "--set train.sync_every=2 --set out.checkpoint_every=2 --set train.epochs=7",
        "--set schedule.kind=pipelined --set model.arch=gcn --set train.eval_every=2",
        "--set schedule.kind=lazy --set model.layers=3 --set out.checkpoint_every=3",
        "--set schedule.kind=lazy --set schedule.start=mlp --set messages.parameters=half",
        "--set schedule.cache_inputs=false --set model.arch=gat --set messages.selection=boundary_sample",
        "--set messages.forward={codec=\"masked\",ratio={law=\"linear\",from=8,to=1,slope=2}}",
        "--set data.inductive=true",
        "--set messages.selection=none",
    ]
    .into_iter()
    .enumerate()
    {
        let planned = place.json(&format!("plan run.toml {keys} --ledger {case}.csv"));
        place.json(&format!("train run.toml --out run {keys}"));
        let read = |file: &str| std::fs::read_to_string(place.path(file)).expect("a ledger");
        assert!(read(&format!("{case}.csv")) == read("run/ledger.csv"), "{keys}");
        assert_eq!(planned["is_bound"], false, "{keys}");
        assert_eq!(planned["ledger"], format!("{case}.csv"));
    }
    place.refused("plan run.toml --ledger 0.csv", 2, &["0.csv is there already"]);
    place.json("plan run.toml --ledger 0.csv --force");
}

/// The text about worker 1 says so of its link to worker 2, which needs `out` of its nodes and has `back` for it.
fn assert_said(place: &Place, keys: &str, (rows, out, back): (&[(&str, u64, u32)], u64, u64)) {
    let text = place.run(&format!("plan run.toml --set data.path=parts {keys} --worker 1")).out;
    for (what, numbers, times) in rows {
        let often = if *times == 1 { ", once".to_owned() } else { format!(", {times} times") };
        let words = match *what {
            "gradients_of_rows" => {
                format!("gradients of the loss by rows of {} of the other's nodes", back)
            }
            what => {
                let weights = if *times > 1 { ", times the layer's weights" } else { "" };
                let rows = what.replace('_', " ");
                format!("{rows} of {} of its nodes{weights}, {numbers} numbers each", out)
            }
        };
        let line = |line: &&str| line.contains("to 2 ") && line.contains(&words) && line.ends_with(&often);
        assert!(text.lines().any(|l| line(&l)), "{words}{often}: {text}");
    }
}

#[test]
fn what_leaves_a_worker_is_said_link_by_link_and_nothing_is_left_out() {
    let place = place();
    let meta: Value =
        serde_json::from_slice(&std::fs::read(place.path("parts/meta.json")).expect("meta data")).expect("JSON");
    // How many nodes of one part another needs.
    let needed =
        |owner: u64, by: u64| number(&meta["files"][by.to_string()]["counts"]["needs"][owner.to_string()]["rows"]);
    for (keys, rows) in [
        // The last of two layers takes 16 numbers to 4 before they cross.
        ("", [("features", 8, 1), ("hidden_rows", 4, 5), ("gradients_of_rows", 4, 5)].as_slice()),
        ("--set schedule.kind=lazy", &[("features", 8, 1), ("hidden_rows", 16, 1)]),
        ("--set schedule.kind=lazy --set schedule.start=mlp", &[("class_scores", 4, 1)]),
        (
            "--set schedule.kind=lazy --set schedule.hand_on={columns=3}",
            &[("features", 8, 1), ("learned_columns", 3, 1)],
        ),
    ] {
        let plan = place.json(&format!("plan run.toml --set data.path=parts {keys}"));
        let leaves = plan["leaves"].as_array().expect("a list");
        for link in plan["by_link"].as_array().expect("links") {
            let of = |leaves: &&Value| leaves["worker"] == link["from"] && leaves["to"] == link["to"];
            let said = |field: &str| leaves.iter().filter(of).map(|leaves| number(&leaves[field])).sum::<u64>();
            assert_eq!((said("bytes"), said("frames")), (number(&link["bytes"]), number(&link["frames"])), "{keys}");
            let (from, to) = (number(&link["from"]), number(&link["to"]));
            for (what, numbers, _) in rows {
                let found = leaves.iter().filter(of).filter(|leaves| leaves["what"] == *what);
                let found: Vec<&Value> = found.filter(|leaves| leaves["for_evaluations"] == false).collect();
                assert!(!found.is_empty(), "{keys}: {what}");
                for leaves in found {
                    let expected = if *what == "gradients_of_rows" { needed(to, from) } else { needed(from, to) };
                    assert_eq!(number(&leaves["nodes"]), expected, "{keys}: {what} from {from} to {to}");
                    assert_eq!(number(&leaves["row"]["numbers"]), *numbers, "{keys}: {what}");
                }
            }
            let ids = leaves.iter().filter(of).find(|leaves| leaves["what"] == "digests_of_ids").expect("ids");
            assert_eq!(number(&ids["nodes"]), needed(to, from));
            assert!(ids["words"].as_str().is_some_and(|words| words.contains("ids of the")), "{ids}");
        }
        let named = |what: &str| leaves.iter().any(|leaves| leaves["what"] == what);
        for what in ["features", "hidden_rows", "class_scores", "learned_columns", "gradients_of_rows"] {
            assert_eq!(named(what), rows.iter().any(|(known, ..)| *known == what), "{keys}: {what}");
        }
        assert_said(&place, keys, (rows, needed(1, 2), needed(2, 1)));
    }
    place.refused("plan run.toml --worker 3", 2, &["--worker 3", "0, 1, 2"]);
}

#[test]
fn a_plan_says_which_metric_sends_scores_and_labels() {
    let place = Place::new();
    place.json("data synth sbm --nodes 300 --features 8 --classes 2 --out graph.npz");
    place.write("run.toml", RUN);
    for (metric, shows) in [("roc_auc", false), ("roc_auc_exact", true)] {
        let text = place.run(&format!("plan run.toml --set train.metrics=[\"{metric}\"]")).out;
        assert_eq!(text.contains("class scores and labels of all its"), shows, "{text}");
        assert_eq!(text.contains("how many of its scores lie in each bin"), !shows, "{text}");
    }
}

#[test]
fn the_configured_link_is_among_the_times() {
    let place = place();
    let times = |shape: &str| {
        let plan = place.json(&format!("plan run.toml --set transport.shape={shape}"));
        plan["seconds_on_links"].as_array().expect("links").clone()
    };
    let own = times("50mbit,25ms");
    assert_eq!((own.len(), &own[0]["link"], &own[0]["configured"]), (10, &"50mbit,25ms".into(), &true.into()));
    // Half the bits a second of the 100 Mbit/s link, and less latency: of two unknowns, bytes and exchanges.
    let seconds = |times: &[Value], link: &str| {
        times.iter().find(|time| time["link"] == link).and_then(|time| time["seconds"].as_f64()).expect("a time")
    };
    let (a, b) = (seconds(&own, "wan-100mbit-40ms"), seconds(&own, "metro-1gbit-5ms"));
    let exchanges = (a - 10.0 * b) / (0.040 - 10.0 * 0.005);
    let bytes = (a - exchanges * 0.040) * 100e6;
    let expected = bytes / 50e6 + exchanges * 0.025;
    assert!((seconds(&own, "50mbit,25ms") - expected).abs() < 1e-6 * expected, "{expected}");
    let named = times("wan-20mbit-80ms");
    let marked: Vec<&Value> = named.iter().filter(|time| time["configured"] == true).collect();
    assert_eq!((named.len(), marked.len(), &marked[0]["link"]), (9, 1, &"wan-20mbit-80ms".into()));
    let text = place.run("plan run.toml --set transport.shape=50mbit,25ms").out;
    assert!(text.contains("(transport.shape)"), "{text}");
}

/// By hand from what the plan says of bytes and frames; how the figures were measured is with the model.
#[test]
fn a_plan_under_mpi_adds_what_connections_headers_and_first_messages_cost() {
    let place = place();
    let plan = place.json("plan run.toml --link 50mbit,25ms");
    let links = plan["by_link"].as_array().expect("links");
    let of =
        |field: &'static str| links.iter().map(move |link| (&link["from"], link[field].as_u64().expect("a number")));
    let sent =
        |from: &Value| of("bytes").filter(|(other, _)| *other == from).map(|(_, bytes)| bytes).sum::<u64>() as f64;
    let bytes = links.iter().map(|link| sent(&link["from"])).fold(0.0, f64::max);
    let exchanges = of("frames").map(|(_, frames)| frames).max().expect("a link") as f64;
    let time = &plan["seconds_on_links"][0];
    let [seconds, start] = ["seconds", "start_seconds"].map(|field| time[field].as_f64().expect("a number"));
    assert!((seconds - start - 1.058 * bytes / 6.25e6 - exchanges * 0.025).abs() < 1e-6 * seconds, "{time}");
    // 0.3 s, 15 latencies, and two more for each time that a connection doubles what it has under way.
    let doubled = ((start - 0.3) / 0.025 - 15.0) / 2.0;
    assert!((doubled - doubled.round()).abs() < 1e-6 && (0.0..=6.0).contains(&doubled.round()), "{time}");
    let under_mpi = place.json("plan run.toml --set transport.kind=mpi --set transport.shape=50mbit,25ms");
    assert_eq!(&under_mpi["seconds_on_links"][0], time);
    let alone = place.json("plan run.toml --set transport.shape=50mbit,25ms");
    assert_eq!(alone["seconds_on_links"][0]["start_seconds"], 0.0);
    assert!(place.run("plan run.toml --link 50mbit,25ms").out.contains("under MPI over TCP"));
    place.refused("plan run.toml --link nowhere", 2, &["nowhere", "wan-100mbit-40ms"]);
}

#[test]
fn an_owner_of_one_part_plans_as_exactly_where_the_folder_counts_the_others() {
    let place = place();
    let line = "plan run.toml --set data.path=parts --ledger";
    let all = place.json(&format!("{line} all.csv"));
    let inductive = place.json(&format!("{line} inductive.csv --set data.inductive=true"));
    keep_alone(&place.path("parts"), 1);
    let mut alone = place.json(&format!("{line} alone.csv"));
    alone["ledger"] = all["ledger"].clone();
    assert_eq!(alone, all);
    let read = |file: &str| std::fs::read_to_string(place.path(file)).expect("a ledger");
    assert!(read("alone.csv") == read("all.csv"));
    // What training nodes alone need is in the parts, so it is a bound then, and says so.
    let bound = place.json("plan run.toml --set data.path=parts --set data.inductive=true");
    assert_eq!((&bound["is_bound"], &inductive["is_bound"]), (&true.into(), &false.into()));
    assert!(number(&bound["bytes"]) >= number(&inductive["bytes"]));
    assert!(bound["notes"].to_string().contains("data.inductive"), "{}", bound["notes"]);
}

#[test]
fn an_owner_of_one_part_that_nobody_has_counted_gets_a_bound_and_what_is_not_known() {
    let place = place();
    let keys = "--set data.path=alone";
    let provenance: Provenance = open_meta(&place.path("parts")).expect("meta data").provenance;
    for part in [0, 2] {
        let own = open_part(&place.path("parts"), part).expect("a part");
        write_part(&place.path("alone"), &own, &provenance).expect("written");
        for more in ["", "--set schedule.kind=lazy --set schedule.start=mlp", "--set data.inductive=true"] {
            let bound = place.json(&format!("plan run.toml {keys} {more}"));
            let exact = place.json(&format!("plan run.toml --set data.path=parts {more}"));
            assert_eq!(
                (&bound["workers"], &bound["ranks"], &bound["is_bound"]),
                (&3.into(), &vec![part].into(), &true.into())
            );
            assert!(bound["notes"].to_string().contains("is asked when the run starts"), "{}", bound["notes"]);
            let of = |plan: &Value, what: &str| {
                let leaves = plan["leaves"].as_array().expect("a list").clone();
                let mine = leaves.into_iter().filter(|l| l["worker"] == part && l["what"] == what);
                mine.map(|leaves| (number(&leaves["to"]), number(&leaves["bytes"]))).collect::<Vec<_>>()
            };
            for what in ["gradients_of_parameters", "figures", "agreement"] {
                assert_eq!(of(&bound, what), of(&exact, what), "{what} depends on no other part");
            }
            for what in ["features", "hidden_rows", "class_scores", "gradients_of_rows", "digests_of_ids"] {
                for (most, found) in of(&bound, what).iter().zip(of(&exact, what)) {
                    assert!(most.0 == found.0 && most.1 >= found.1, "{what}: {most:?} against {found:?}");
                }
                assert_eq!(of(&bound, what).len(), of(&exact, what).len(), "{what}");
            }
            // Where edges lead both ways no list crosses.
            for (to, bytes) in of(&exact, "rows_needed") {
                assert!(of(&bound, "rows_needed").iter().any(|most| most.0 == to && most.1 >= bytes), "{to}: {bytes}");
            }
        }
        let text = place.run(&format!("plan run.toml {keys}"));
        assert!(text.out.starts_with("1 of 3 workers will send at most"), "{}", text.out);
        place.refused(&format!("plan run.toml {keys} --set messages.budget=9GB"), 2, &["messages.budget", "counts"]);
        std::fs::remove_dir_all(place.path("alone")).expect("written");
    }
}

/// Where a time decides how many means there are, nobody knows their bytes, and 0 would be wrong.
#[test]
fn what_nobody_can_know_is_null_and_no_number() {
    let place = place();
    let plan = |limit: &str| {
        let schedule = format!("[schedule]\nkind = \"averaging\"\ninterval = \"4 steps\"\nlimit = \"{limit}\"\n");
        place.write("run.toml", &(RUN.to_owned() + &schedule));
        place.json("plan run.toml")
    };
    let (known, unknown) = (plan("20 steps"), plan("2s"));
    for field in ["bytes", "payload", "frames"] {
        assert!(number(&known[field]) > 0 && unknown[field].is_null(), "{field}: {} {}", known[field], unknown[field]);
    }
    let links = |plan: &Value| plan["seconds_on_links"].as_array().expect("a list").len();
    assert!(links(&known) > 0 && links(&unknown) == 0);
}

/// All scores are there when a model is run, so the area that a run asks for is given with the other figures.
#[test]
fn predictions_have_the_area_that_the_run_asks_for() {
    let place = Place::new();
    place.json("data synth sbm --nodes 400 --features 8 --classes 2 --out graph.npz");
    place.write("run.toml", &(RUN.to_owned() + "metrics = [\"roc_auc_exact\", \"macro_f1\"]\n"));
    place.json("train run.toml --out run");
    let summary: Value =
        serde_json::from_slice(&std::fs::read(place.path("run/summary.json")).expect("a file")).expect("JSON");
    let said = place.json("predict run --out p.csv");
    let (found, trained) = (&said["figures"]["test"]["roc_auc_exact"], &summary["metrics"]["test"]["roc_auc_exact"]);
    let (found, trained) = (found.as_f64().expect("an area"), trained.as_f64().expect("an area"));
    assert!((found - trained).abs() < 1e-6, "{found} {trained}");
    assert!(said["figures"]["test"]["macro_f1"].is_number());
}

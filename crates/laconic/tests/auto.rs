//! `messages = "auto"` from the command line: what is tried, in which order, what is kept, and what it sent.

mod program;

use std::path::Path;

use program::Place;
use serde_json::Value;

const RUN: &str = "messages = \"auto\"\n[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[model]\narch = \"gcn\"\n\
    hidden = 8\n[train]\nepochs = 20\n[policy]\nallow = [\"labels\"]\n";

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 300 --features 8 --classes 4 --train 0.5 --val 0.25 --out graph.npz");
    place.write("run.toml", RUN);
    place
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_else(|| panic!("{key}: {value}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number: {value}"))
}

/// Framed bytes of all accounts in the folder of a run.
fn ledger(folder: &Path) -> u64 {
    let text = std::fs::read_to_string(folder.join("ledger.csv")).expect("a ledger");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let column = head.iter().position(|name| *name == "framed_bytes").unwrap_or_else(|| panic!("{head:?}"));
    lines.map(|line| line[column].parse::<u64>().expect("bytes")).sum()
}

#[test]
fn what_is_tried_sends_what_the_ladder_predicts_and_all_of_it_is_counted() {
    let place = place();
    let planned = place.json("plan run.toml");
    let summary = place.json("train run.toml --out kept");
    let ladder = json(&place.path("kept/auto.json"));
    let tried: Vec<&Value> = list(&ladder, "rungs").iter().filter(|rung| !rung["sent"].is_null()).collect();
    assert!(tried.len() >= 2, "{ladder}");
    let mut before = 0;
    for (rung, said) in list(&ladder, "rungs").iter().zip(list(&planned, "rungs")) {
        assert_eq!((&rung["name"], &rung["predicted"]), (&said["name"], &said["predicted"]));
        assert!(number(&rung["predicted"]) >= before, "from the cheapest up: {ladder}");
        before = number(&rung["predicted"]);
    }
    let mut total = 0;
    for rung in &tried {
        let (sent, most) = (number(&rung["sent"]), number(&rung["predicted"]));
        assert!(sent == most || (rung["is_bound"] == true && sent < most), "{rung}");
        let folder = place.path("kept").join(rung["folder"].as_str().expect("a folder"));
        assert_eq!(number(&rung["sent"]), ledger(&folder), "{rung}");
        assert_eq!(rung["validation"], json(&folder.join("summary.json"))["metrics"]["val"]["accuracy"]);
        total += ledger(&folder);
    }
    assert_eq!(number(&summary["auto"]["bytes"]), total);
    assert_eq!(number(&summary["auto"]["tries"]), tried.len() as u64);
    assert_eq!(summary["auto"], ladder["outcome"]);
    assert_eq!(summary, json(&place.path("kept/summary.json")));
    let kept: Vec<&&Value> = tried.iter().filter(|rung| rung["folder"] == ".").collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0]["name"], summary["auto"]["chosen"]);
    assert_eq!(place.names(), ["graph.npz", "kept", "run.toml"], "nothing stays beside it");
    // What is kept is a run like any other.
    assert_eq!(place.run("predict kept --out nodes.csv").code, 0);
    assert_eq!(place.run("report kept --out page.html").code, 0);
}

/// Rows go as sums where these take fewer bytes, but not past a layer that needs each row.
#[test]
fn ways_take_the_cheaper_of_rows_and_sums() {
    let place = place();
    let of_sums = |line: &str| -> Vec<Value> {
        let said = place.json(line);
        let is_of_sums = |rung: &&Value| list(rung, "set").iter().any(|key| *key == "messages.selection=vertex_cover");
        list(&said, "rungs").iter().filter(is_of_sums).cloned().collect()
    };
    let rungs = of_sums("plan run.toml");
    assert!(rungs.len() > 2, "{rungs:?}");
    let without = RUN.replace("messages = \"auto\"\n", "");
    place.write("plain.toml", &without);
    for rung in rungs {
        let keys = list(&rung, "set").iter().map(|key| key.as_str().expect("a key"));
        // No value of these has a space that matters.
        let keys: String = keys.map(|key| format!(" --set {}", key.replace(' ', ""))).collect();
        let [with, without] = ["vertex_cover", "all"].map(|selection| {
            let keys = keys.replace("selection=vertex_cover", &format!("selection={selection}"));
            number(&place.json(&format!("plan plain.toml{keys}"))["bytes"])
        });
        assert_eq!(with, number(&rung["predicted"]), "{rung}");
        assert!(with < without, "{rung}: {without}");
    }
    assert_eq!(of_sums("plan run.toml --set model.arch=gat"), [Value::Null; 0]);
}

#[test]
fn ways_with_one_mean_take_four_where_classes_differ_between_parts() {
    let place = place();
    let means = |said: &Value| -> Vec<String> {
        let keys = list(said, "rungs").iter().flat_map(|rung| list(rung, "set"));
        let keys = keys.filter_map(Value::as_str).filter(|key| key.starts_with("train.sync_every"));
        keys.map(str::to_owned).collect()
    };
    let alike = place.json("plan run.toml");
    assert!(means(&alike).contains(&"train.sync_every=100".to_owned()), "{alike}");
    // Its classes are its communities.
    let unlike = place.json("plan run.toml --set partition.method=multilevel");
    assert!(!means(&unlike).contains(&"train.sync_every=100".to_owned()), "{unlike}");
    let mut names: Vec<&str> = list(&unlike, "rungs").iter().filter_map(|rung| rung["name"].as_str()).collect();
    assert!(names.contains(&"features alone, mlp, four means"), "{names:?}");
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "none is tried twice");
}

/// What stages hand on is chosen beside the messages that are asked for.
#[test]
fn what_is_handed_on_is_chosen_by_what_it_sends_and_gains() {
    let place = place();
    let lazy = "[schedule]\nkind = \"lazy\"\nhand_on = \"auto\"\n[messages.parameters]\ncodec = \"half\"\n";
    place.write(
        "lazy.toml",
        &format!("{}{lazy}", RUN.replacen("messages = \"auto\"\n", "", 1)).replace("hidden = 8", "hidden = 16"),
    );
    let planned = place.json("plan lazy.toml");
    assert!(list(&planned, "rungs").len() >= 5 && list(&planned, "left_out").is_empty(), "{planned}");
    let summary = place.json("train lazy.toml --out kept");
    let ladder = json(&place.path("kept/auto.json"));
    let tried = list(&ladder, "rungs").iter().filter(|rung| !rung["sent"].is_null());
    let sent: u64 = tried.map(|rung| number(&rung["sent"])).sum();
    assert_eq!(number(&summary["auto"]["bytes"]), sent);
    let config = std::fs::read_to_string(place.path("kept/config.toml")).expect("a configuration");
    assert!(config.contains("\"half\"") && !config.contains("hand_on = \"auto\""), "{config}");
    for (line, words) in [
        ("train lazy.toml --set messages=auto", &["schedule.hand_on = \"auto\"", "leave one out"][..]),
        ("verify lazy.toml", &["schedule.hand_on = \"auto\"", "several runs"]),
        ("plan lazy.toml --set partition.parts=1", &["schedule.hand_on = \"auto\"", "one worker sends nothing"]),
    ] {
        place.refused(line, 2, words);
    }
}

#[test]
fn it_ends_by_budget_and_target_and_processes_do_the_same_as_threads() {
    let place = place();
    let planned = place.json("plan run.toml");
    let first = number(&list(&planned, "rungs")[0]["predicted"]);
    let budget = |bytes: u64| format!("--set messages.budget=\"{bytes}B\"");
    place.refused(&format!("train run.toml {}", budget(first - 1)), 2, &["messages.budget", &first.to_string()]);
    let one = place.json(&format!("train run.toml {} --out one", budget(first)));
    assert_eq!((&one["auto"]["stopped"], &one["auto"]["tries"]), (&Value::from("budget"), &Value::from(1)));
    assert!(number(&one["auto"]["bytes"]) <= first);
    assert!(!place.path("one/tries").exists());
    let apart = place.json(&format!("train run.toml {} --set transport.kind=processes --out apart", budget(first)));
    assert_eq!((&apart["auto"], &apart["parameters"]), (&one["auto"], &one["parameters"]));
    let early = place.json("train run.toml --set messages.target=0.01 --out early");
    assert_eq!((&early["auto"]["stopped"], &early["auto"]["tries"]), (&Value::from("target"), &Value::from(1)));
    // Another run in the same folder moves all of it aside.
    place.json("train run.toml --set messages.target=0.01 --out early");
    assert!(place.path("early.1/auto.json").exists() && place.path("early/auto.json").exists());
}

#[test]
fn ways_that_the_policy_or_the_data_do_not_allow_are_left_out_with_the_reason() {
    let place = place();
    let left = |line: &str| {
        let planned = place.json(&format!("plan run.toml {line}"));
        let left: Vec<String> = list(&planned, "left_out").iter().map(|left| left["why"].to_string()).collect();
        (list(&planned, "rungs").len(), left)
    };
    let (all, none) = left("");
    assert!(none.is_empty(), "{none:?}");
    let (some, why) = left("--unset policy.allow");
    assert!(some < all && some + why.len() == all && why.iter().all(|why| why.contains("policy.allow")), "{why:?}");
    let (some, why) = left("--set policy.deny=[\"class_scores\"]");
    assert!(some < all && why.iter().any(|why| why.contains("policy.deny has class_scores")), "{why:?}");
    let (some, why) = left("--set data.inductive=true");
    assert!(some < all && why.iter().any(|why| why.contains("data.inductive")), "{why:?}");
    place.refused("plan run.toml --set partition.parts=1", 2, &["one worker sends nothing", "partition.parts"]);
    place.refused("plan run.toml --set task.kind=link_prediction --unset policy.allow", 2, &["links"]);
    place.refused("plan run.toml --ledger accounts.csv", 2, &["--ledger", "several"]);
}

#[test]
fn the_table_and_the_word_say_the_same_and_mistakes_are_named() {
    let place = place();
    let word = place.json("plan run.toml");
    let rest = RUN.replacen("messages = \"auto\"\n", "", 1);
    place.write("table.toml", &format!("messages = {{ auto = true }}\n{rest}"));
    place.write("plain.toml", &rest);
    assert_eq!(place.json("plan table.toml"), word);
    assert_eq!(place.json("plan plain.toml --set messages=auto"), word);
    assert_eq!(place.json("plan plain.toml --set messages.auto=true --set messages.target=0.5")["target"], 0.5);
    for (line, words) in [
        ("plan plain.toml --set messages=fast", &["messages", "\"auto\"", "fast"][..]),
        ("plan plain.toml --set messages.target=0.5", &["messages.target", "messages.auto"]),
        ("plan run.toml --set messages.target=7", &["messages.target = 7", "0.66"]),
        ("plan run.toml --set messages.forward=half", &["messages.auto", "leave the other keys"]),
        ("plan run.toml --set messages.budget=much", &["messages.budget", "200 MB"]),
        ("verify run.toml", &["messages = \"auto\"", "several runs"]),
        ("train run.toml --set transport.kind=mpi", &["messages = \"auto\"", "MPI"]),
    ] {
        place.refused(line, 2, words);
    }
}

#[test]
fn the_explanation_comes_to_all_bytes_and_its_changes_to_their_own_plans() {
    let place = place();
    place.write("plain.toml", &RUN.replacen("messages = \"auto\"\n", "", 1));
    let plan = place.json("plan plain.toml --explain");
    let explained = &plan["explained"];
    let goes: u64 = list(explained, "goes").iter().map(|goes| number(&goes["bytes"])).sum();
    assert_eq!(goes, number(&plan["bytes"]));
    let purposes = ["start_up", "rows", "parameters", "evaluation"];
    let has = |purpose: &&str| list(explained, "goes").iter().any(|goes| goes["purpose"] == **purpose);
    assert!(purposes.iter().all(has), "{explained}");
    let possible = list(explained, "changes").iter().filter(|change| !change["bytes"].is_null());
    let mut looked_at = 0;
    for change in possible {
        let sets: Vec<&str> = list(change, "set").iter().map(|set| set.as_str().expect("a key")).collect();
        // Words of a line are separated by spaces.
        let sets: Vec<String> = sets.iter().map(|set| format!("--set {}", set.replace(' ', ""))).collect();
        let alone = place.json(&format!("plan plain.toml {}", sets.join(" ")));
        assert_eq!(alone["bytes"], change["bytes"], "{change}");
        looked_at += 1;
    }
    assert!(looked_at >= 5, "{explained}");
    let text = place.run("plan plain.toml --explain");
    assert!(text.out.contains("where bytes go") && text.out.contains("fewer"), "{}", text.out);
}

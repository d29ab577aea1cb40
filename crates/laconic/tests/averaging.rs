//! Independent trainers, as a user sees them: planned, trained, resumed, reported, compared.

mod program;

use std::collections::{BTreeMap, BTreeSet};

use program::Place;
use serde_json::Value;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[model]\nhidden = 8\n[schedule]\n\
    kind = \"averaging\"\ninterval = \"5 steps\"\nlimit = \"40 steps\"\n[transport]\nkind = \"simulated\"\n\
    speeds = [10.0, 10.0, 5.0]\n";

/// Part 1 is killed after two seconds and comes back three later.
const KILLED: &str = "faults = [{ who = 1, at = \"2 s\", kind = \"killed\", back = \"3 s\" }]\n";

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 240 --features 6 --classes 3 --out graph.npz");
    place.write("run.toml", RUN);
    place.write("killed.toml", &(RUN.to_owned() + KILLED));
    place
}

fn text(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().expect("a list").iter().map(|number| number.as_u64().expect("a number")).collect()
}

/// Frames, payload and framed bytes by account: by the clock on the wall a round's may be written down piece by piece.
fn accounts(place: &Place, name: &str) -> BTreeMap<String, [u64; 3]> {
    let mut sums = BTreeMap::new();
    for line in text(place, name).lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let sum: &mut [u64; 3] = sums.entry(fields[..6].join(",")).or_default();
        for (sum, field) in sum.iter_mut().zip(&fields[6..9]) {
            *sum += field.parse::<u64>().expect("a number");
        }
    }
    sums
}

#[test]
fn a_plan_says_what_trainers_send_to_the_byte_and_account_by_account() {
    let place = place();
    place.json("partition graph.npz --parts 3 --method multilevel --out parts");
    let cases = [
        ("", 8, 3),
        ("--set schedule.kind=psgd_pa", 8, 3),
        ("--set schedule.halo=frozen", 16, 3),
        ("--set schedule.halo=frozen --set averaging.drop=[1]", 16, 2),
        ("--set averaging.drop=[0]", 8, 2),
        ("--set batch.size=9 --set batch.fanouts=[3,2]", 8, 3),
        ("--set data.path=parts --set schedule.halo=frozen", 16, 3),
        ("--set schedule.aggregator=1", 8, 3),
        ("--set schedule.aggregator=2 --set averaging.drop=[0] --set schedule.halo=frozen", 16, 2),
        ("--set transport.kind=threads --set transport.speeds=[]", 8, 3),
    ];
    for (set, means, trainers) in cases {
        let plan = place.json(&format!("plan run.toml {set} --ledger planned.csv --force"));
        let ran = place.json(&format!("train run.toml {set} --out run"));
        assert_eq!(plan["bytes"], ran["bytes"]["total"], "{set}");
        assert_eq!((&plan["bytes"], &plan["is_bound"]), (&ran["bytes"]["predicted"], &Value::Bool(false)), "{set}");
        assert_eq!((plan["averaging"]["means"].as_u64(), ran["rounds"].as_u64()), (Some(means), Some(means)), "{set}");
        assert_eq!(plan["averaging"]["means"], ran["averaging"]["means_predicted"], "{set}");
        assert_eq!(numbers(&plan["averaging"]["parts"]).len(), trainers, "{set}");
        assert_eq!(accounts(&place, "planned.csv"), accounts(&place, "run/ledger.csv"), "{set}");
        if !set.contains("threads") {
            assert_eq!(text(&place, "planned.csv"), text(&place, "run/ledger.csv"), "{set}");
        }
        let [each, all] = [&plan["memory"], &ran["memory"]["predicted_bytes"]];
        let (each, all) = (numbers(each), all.as_u64().expect("bytes"));
        // The summary has it from equal shares.
        assert!(each.iter().sum::<u64>().abs_diff(all) < each.len() as u64, "{set}: {each:?} and {all}");
    }
}

#[test]
fn a_mean_takes_a_model_there_and_back_for_each_trainer_whatever_the_graph() {
    let place = place();
    let plan = place.json("plan run.toml");
    let parameters = place.json("train run.toml --out run")["parameters"]["count"].as_u64().expect("a number");
    // Two frames there, of a model and of 16 bytes, and two back, of a model and of 17; 24 bytes go with a frame.
    let of_mean = 3 * (2 * (4 * parameters + 24) + 16 + 24 + 17 + 24);
    assert_eq!(plan["averaging"]["bytes_of_mean"].as_u64(), Some(of_mean));
    assert!(plan["averaging"].get("hosted_part").is_none());
    // Nothing crosses between the aggregator and a trainer that lives in its process.
    let shared = place.json("plan run.toml --set schedule.aggregator=2");
    let averaging = &shared["averaging"];
    assert_eq!(
        [&averaging["bytes_of_mean"], &averaging["hosted_part"]],
        [&Value::from(of_mean / 3 * 2), &Value::from(2)]
    );
    assert_eq!(shared["bytes"].as_u64().map(|bytes| 3 * bytes), plan["bytes"].as_u64().map(|bytes| 2 * bytes));
    let said = place.run("plan run.toml --set schedule.aggregator=2").out;
    for words in ["the trainer of part 2 lives in the aggregator's process", "nothing leaves the trainer of part 2"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    place.json("data synth sbm --nodes 900 --features 6 --classes 3 --out larger.npz");
    let larger = place.json("plan run.toml --set data.path=larger.npz");
    assert_eq!((&plan["bytes"], &plan["averaging"]), (&larger["bytes"], &larger["averaging"]));
    let what = |plan: &Value| -> BTreeSet<String> {
        plan["leaves"].as_array().expect("a list").iter().map(|of| of["what"].to_string()).collect()
    };
    let models = ["\"agreement\"", "\"models\""].map(str::to_owned);
    assert_eq!(what(&plan), BTreeSet::from(models));
    let frozen = what(&place.json("plan run.toml --set schedule.halo=frozen"));
    assert!(frozen.contains("\"features\"") && frozen.contains("\"hidden_rows\""), "{frozen:?}");
    assert!(!frozen.iter().any(|what| what.contains("gradients")), "{frozen:?}");
}

#[test]
fn time_gives_a_bound_and_time_beside_steps_gives_none() {
    let place = place();
    place.write("time.toml", &RUN.replace("\"5 steps\"", "\"2 s\"").replace("\"40 steps\"", "\"15 s\""));
    let (plan, ran) = (place.json("plan time.toml"), place.json("train time.toml --out run"));
    assert_eq!((&plan["is_bound"], &ran["bytes"]["is_bound"]), (&Value::Bool(true), &Value::Bool(true)));
    let [most, sent] = [&plan["bytes"], &ran["bytes"]["total"]].map(|bytes| bytes.as_u64().expect("bytes"));
    assert!(sent <= most && 2 * sent > most, "{sent} of {most}");
    assert_eq!(plan["averaging"]["means"], 8, "15 seconds, a mean every two");
    place.write("mixed.toml", &RUN.replace("\"5 steps\"", "\"2 s\""));
    let plan = place.json("plan mixed.toml");
    assert!(plan["averaging"]["means"].is_null() && plan["averaging"]["bytes_of_mean"].as_u64() > Some(0));
    assert!(plan["notes"][0].as_str().is_some_and(|note| note.contains("not known")), "{plan}");
    assert!(!place.run("plan mixed.toml").out.contains("nothing leaves"));
    let said = place.run("train mixed.toml --out mixed");
    assert!(said.code == 0 && said.out.contains("nobody could predict") && !said.err.contains("of 0"), "{}", said.err);
}

/// The curve of the mean is drawn over what was sent, stage after stage.
#[test]
fn bytes_of_means_never_fall_and_end_with_what_was_sent() {
    let place = place();
    for set in ["", "--set schedule.halo=frozen", "--set transport.kind=threads --set transport.speeds=[]"] {
        let ran = place.json(&format!("train run.toml --out run {set}"));
        let lines: Vec<Value> =
            text(&place, "run/metrics.jsonl").lines().map(|line| serde_json::from_str(line).expect("a mean")).collect();
        let bytes: Vec<u64> = lines.iter().filter_map(|line| line["bytes"].as_u64()).collect();
        let total = ran["bytes"]["total"].as_u64().expect("bytes");
        assert!(bytes.len() == lines.len() && bytes.is_sorted(), "{set}: {bytes:?}");
        // Behind the last mean come a chosen model for nobody and leave-takings.
        let last = bytes[bytes.len() - 1];
        assert!(last <= total && total - last < total / 10, "{set}: {last} of {total}");
    }
}

#[test]
fn the_end_of_a_run_says_what_each_trainer_did() {
    let place = place();
    let said = place.run("train killed.toml --out run");
    assert_eq!(said.code, 0, "{}", said.err);
    for words in ["best mean", "part 0", "part 2", "was lost after 2.0 s", "ended at schedule.limit, with 8 means"] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    assert!(said.out.contains("within 1 % of the best") && said.out.contains("on the simulated clock"), "{}", said.out);
    assert!(!said.out.contains("waiting") && !said.out.contains("codec"), "{}", said.out);
    assert!(said.err.contains("3 trainers and their aggregator") && said.err.contains("mean 1 of 8"), "{}", said.err);
    assert!(!said.err.contains("workers") && !said.err.contains("round"), "{}", said.err);
}

#[test]
fn who_lives_with_the_aggregator_is_said_and_a_run_of_the_two_alone_sends_nothing() {
    let place = place();
    let said = place.run("train run.toml --out run --set schedule.aggregator=1");
    assert_eq!(said.code, 0, "{}", said.err);
    let words = "the trainer of part 1 lived in the aggregator's process";
    assert!(said.out.contains(words), "{}", said.out);
    place.json("report run");
    assert!(text(&place, "run/report.html").to_lowercase().contains(&words.replace('\'', "&#39;")));
    place.write("methods.toml", "[[method]]\nname = \"shared\"\nset = [\"schedule.aggregator=0\"]\n");
    for kind in ["simulated", "threads", "processes"] {
        let alone = format!("run.toml --set partition.parts=1 --set transport.speeds=[] --set transport.kind={kind}");
        let shared = format!("{alone} --set schedule.aggregator=0");
        let [plan, ran] = [format!("plan {shared}"), format!("train {shared} --out {kind}")].map(|l| place.json(&l));
        assert_eq!([&plan["bytes"], &plan["averaging"]["bytes_of_mean"]], [0, 0], "{kind}");
        assert_eq!([&ran["bytes"]["total"], &ran["bytes"]["predicted"], &ran["averaging"]["means"]], [0, 0, 8]);
        assert!(place.run(&format!("plan {shared}")).out.contains("8 means"), "{kind}");
        place.json(&format!("report {kind}"));
        if kind == "processes" {
            // Runs are compared in one process each.
            continue;
        }
        let compared = place.json(&format!("compare {alone} --runs methods.toml --out compared-{kind}"));
        assert_eq!(compared["methods"][0]["bytes"], 0.0, "{kind}");
    }
}

/// Seconds of `lanes.csv` by part and doing; every lane goes from the start to the end without a gap.
fn lanes(place: &Place, folder: &str) -> BTreeMap<(u64, String), f64> {
    let (mut sums, mut ends) = (BTreeMap::new(), BTreeMap::new());
    for line in text(place, &format!("{folder}/lanes.csv")).lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [from, to] = [fields[2], fields[3]].map(|text| text.parse::<f64>().expect("seconds"));
        let part: u64 = fields[0].parse().expect("a part");
        let end = ends.insert(part, to).unwrap_or(0.0);
        assert!((from - end).abs() < 1e-5, "{line} after {end}");
        *sums.entry((part, fields[1].to_owned())).or_insert(0.0) += to - from;
    }
    sums
}

#[test]
fn lanes_say_what_each_trainer_did_when() {
    let place = place();
    let ran = place.json("train killed.toml --out run");
    let lanes = lanes(&place, "run");
    // By the clock of the simulation: so many steps at so many a second, and away for three seconds.
    for (part, speed) in [(0, 10.0), (2, 5.0)] {
        let steps = ran["averaging"]["trainers"][part]["steps"].as_f64().expect("steps");
        assert!((lanes[&(part as u64, "working".to_owned())] - steps / speed).abs() < 1e-4, "{lanes:?}");
    }
    assert!((lanes[&(1, "absent".to_owned())] - 3.0).abs() < 1e-4, "{lanes:?}");
    for trainer in ran["averaging"]["trainers"].as_array().expect("trainers") {
        for doing in ["working", "averaging", "absent"] {
            let there = lanes.get(&(trainer["part"].as_u64().expect("a part"), doing.to_owned())).copied();
            let said = trainer[format!("{doing}_seconds")].as_f64().expect("seconds");
            assert!((there.unwrap_or(0.0) - said).abs() < 1e-3, "{doing}: {there:?} and {said}");
        }
    }
    let real = place.json("train run.toml --out real --set transport.kind=threads --set transport.speeds=[]");
    let of_real = self::lanes(&place, "real");
    for part in 0..3 {
        assert!(of_real[&(part, "working".to_owned())] > 0.0, "{of_real:?}");
        assert_eq!(real["averaging"]["trainers"][part as usize]["steps"], 40, "{real}");
    }
}

#[test]
fn a_page_about_trainers_shows_lanes_members_and_notes_and_stays_small() {
    let place = place();
    place.json("train killed.toml --out run");
    place.json("report run");
    let page = text(&place, "run/report.html");
    let shown = ["Trainers", "What trainers did", "Members of each mean", "The mean against time", "part 1, absent"];
    for words in shown.iter().chain(&["The mean against bytes", "was lost after 2.0 s", "No row of any node crossed"]) {
        assert!(page.contains(words), "{words}");
    }
    assert!(page.contains("in 3 parts") || page.contains("3 parts by"), "the aggregator has no part");
    let thousand = "--set schedule.limit=1000epochs --set schedule.interval=1epoch --set train.eval_every=10";
    let ran = place.json(&format!("train killed.toml --out long {thousand}"));
    assert!(ran["rounds"].as_u64() >= Some(900), "{ran}");
    place.json("report long");
    let (small, long) = (page.len(), text(&place, "long/report.html").len());
    assert!(long < 4 * small + 150_000, "{small} bytes for 8 means, {long} for 1000");
    place.json("report run long --out both.html");
    std::fs::write(place.path("run/lanes.csv"), "part,doing,start_s,end_s\n0,sleeping,0,1\n").expect("writable");
    place.refused("report run", 5, &["lanes.csv", "line 2", "working, averaging, stalled, absent"]);
}

#[test]
fn a_comparison_shows_the_clock_of_trainers_beside_others() {
    let place = place();
    let keys = ["schedule.kind=averaging", "transport.kind=simulated", "transport.speeds=[4.0]"];
    let set: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
    let steps = "\"schedule.interval=5 steps\", \"schedule.limit=20 steps\"";
    let of_trainers = format!("[[method]]\nname = \"ours\"\nset = [{}, {steps}]\n", set.join(", "));
    place.write("methods.toml", &format!("[[method]]\nname = \"standard\"\n{of_trainers}"));
    place.write("plain.toml", "[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[train]\nepochs = 5\n");
    let planned = place.json("compare plain.toml --runs methods.toml --plan");
    let compared = place.json("compare plain.toml --runs methods.toml --out compared");
    let [standard, ours] = [&compared["methods"][0], &compared["methods"][1]];
    assert!(standard["simulated_seconds"].is_null() && standard["convergence_seconds"].is_null());
    assert_eq!(planned["methods"][1]["bytes"], ours["bytes"].as_f64().map(|bytes| bytes as u64).expect("bytes"));
    // Twenty steps at four a second, and nothing else takes time.
    assert!((ours["simulated_seconds"].as_f64().expect("seconds") - 5.0).abs() < 1e-6, "{ours}");
    assert!(ours["convergence_seconds"].as_f64() <= ours["simulated_seconds"].as_f64(), "{ours}");
    let again = place.run("compare plain.toml --runs methods.toml --out compared");
    assert!(again.out.contains("simulated") && again.out.contains("5.00"), "{}", again.out);
    place.json("report compared");
    let page = text(&place, "compared/report.html");
    assert!(page.contains("ours"), "the page");
}

#[test]
fn predictions_of_means_are_what_the_summary_reports() {
    let place = place();
    for set in ["", "--set schedule.halo=frozen", "--set schedule.kind=llcg --set schedule.corrections=2"] {
        let ran = place.json(&format!("train run.toml --out run {set}"));
        let predicted = place.json("predict run --out predicted.csv --force");
        for split in ["val", "test"] {
            let [said, found] = [&ran["metrics"][split]["accuracy"], &predicted["figures"][split]["accuracy"]];
            assert!((said.as_f64().expect("said") - found.as_f64().expect("found")).abs() < 1e-9, "{set}: {split}");
        }
        let _ = std::fs::remove_dir_all(place.path("exported"));
        place.json("export run --to pyg --out exported");
    }
}

#[test]
fn resume_goes_on_where_the_aggregator_was_lost_or_too_few_were_left() {
    let place = place();
    let lost = "faults = [{ who = \"aggregator\", at = \"3 s\", kind = \"killed\" }]\n";
    let two = "{ who = 0, at = \"3 s\", kind = \"killed\" }, { who = 1, at = \"3 s\", kind = \"killed\" }";
    for (name, faults) in [("lost", lost.to_owned()), ("few", format!("faults = [{two}]\n"))] {
        place.write("faulty.toml", &(RUN.to_owned() + &faults));
        let ended = place.run(&format!("train faulty.toml --out {name} --quiet"));
        assert!(ended.code == 4 && ended.err.contains("laconic resume"), "{}: {}", ended.code, ended.err);
        let resumed = place.json(&format!("resume {name}"));
        assert_eq!(resumed["rounds"], 8, "{name}");
        assert_eq!(resumed["bytes"]["starts"].as_array().map(Vec::len), Some(2), "{name}");
        assert_eq!(resumed["averaging"]["means"], 8, "{name}: those before it was resumed count");
        assert_eq!(resumed["averaging"]["curve"].as_array().map(Vec::len), Some(8), "{name}");
        assert_eq!(text(&place, &format!("{name}/metrics.jsonl")).lines().count(), 8, "{name}");
        place.json(&format!("report {name}"));
    }
}

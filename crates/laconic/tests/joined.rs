//! Three sites, each a process with a key, a part, a policy and a log of its own: the run that threads make, and
//! nothing leaves but what was agreed.

mod program;

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use program::Place;

const SITES: [&str; 3] = ["north", "south", "west"];

/// Class scores cross once, parameters are averaged: no row of features, no label, no row's gradient.
const RUN: &str = "
[data]
path = \"graph.npz\"
[partition]
parts = 3
[model]
hidden = 16
[train]
epochs = 6
sync_every = 3
eval_every = 3
[schedule]
kind = \"lazy\"
start = \"mlp\"
";

/// What such a run takes, and nothing else.
const POLICY: &str = "version = 1
[[allow]]
to = \"*\"
content = [\"ids\", \"counts\", \"models\", \"gradients\", \"class_scores\"]
[[accept]]
from = \"*\"
content = [\"ids\", \"counts\", \"models\", \"gradients\", \"class_scores\"]
";

/// A port of this machine that nobody uses now.
fn free() -> u16 {
    UdpSocket::bind("127.0.0.1:0").expect("a free port").local_addr().expect("its address").port()
}

/// A folder with a graph, a part and a key for each site, and a policy for all.
fn place(run: &str) -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 300 --features 8 --classes 3 --out graph.npz");
    place.json("partition graph.npz --parts 3 --out parts");
    place.write("run.toml", run);
    place.write("policy.toml", POLICY);
    for (rank, site) in SITES.iter().enumerate() {
        let part = place.path(&format!("part-{site}"));
        std::fs::create_dir(&part).expect("a folder");
        std::fs::copy(place.path("parts/meta.json"), part.join("meta.json")).expect("copied");
        std::fs::rename(place.path(&format!("parts/part-{rank}")), part.join(format!("part-{rank}"))).expect("moved");
        let address = format!("127.0.0.1:{}", free());
        place.json(&format!("site init {site} --address {address} --keys keys-{site}"));
    }
    agree(&place, "");
    place
}

/// Writes the contract anew; its digest.
fn agree(place: &Place, more: &str) -> String {
    let cards: Vec<String> = SITES.iter().map(|site| format!("--site {site}.site.toml")).collect();
    let agreed = place.json(&format!("agree run.toml {} {more}", cards.join(" ")));
    agreed["digest"].as_str().expect("a digest").to_owned()
}

/// A site that joins.
fn start(place: &Place, site: &str, digest: &str, more: &str) -> Child {
    let line = format!(
        "join run.contract.json --data part-{site} --keys keys-{site} --out run-{site} --approve {digest} --threads 1 \
         --json {more}"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_laconic"));
    command.args(line.split_whitespace()).current_dir(place.path(""));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// All join, each with more words.
fn join(place: &Place, digest: &str, more: &str) -> Vec<Output> {
    let sites: Vec<Child> = SITES.iter().map(|site| start(place, site, digest, more)).collect();
    sites.into_iter().map(|site| site.wait_with_output().expect("it ends")).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn joined(outputs: &[Output]) -> Vec<serde_json::Value> {
    let of = |output: &Output| {
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("a result")
    };
    outputs.iter().map(of).collect()
}

#[test]
fn three_sites_train_the_model_that_threads_train_and_their_logs_agree_to_the_byte() {
    let place = place(RUN);
    let digest = agree(&place, "");
    let ended = joined(&join(&place, &digest, "--policy policy.toml"));
    let threads = place.json("train run.toml --out run-threads");
    for (site, ended) in SITES.iter().zip(&ended) {
        assert_eq!(ended["parameters"], threads["parameters"]["digest"], "{site}");
        assert_eq!(ended["sent"], ended["predicted"], "{site}");
        let weights =
            |run: &str| std::fs::read(place.path(&format!("{run}/model.safetensors"))).expect("a model").len();
        assert_eq!(weights(&format!("run-{site}")), weights("run-threads"), "{site}");
    }
    let sent: u64 = ended.iter().map(|ended| ended["sent"].as_u64().expect("bytes")).sum();
    assert_eq!(sent, threads["bytes"]["total"].as_u64().expect("bytes"));
    let logs: Vec<String> = SITES.iter().map(|site| format!("run-{site}/audit.jsonl")).collect();
    let audit = place.json(&format!("audit run.contract.json {}", logs.join(" ")));
    assert_eq!(audit["clean"], true, "{audit}");
    let crossings = audit["crossings"].as_array().expect("rows");
    let of = |way: &str| {
        let rows = crossings.iter().filter(|row| row["way"] == way);
        rows.map(|row| row["framed"].as_u64().expect("bytes")).sum::<u64>()
    };
    assert_eq!([of("out"), of("in")], [sent, sent]);
    let contents: Vec<&str> = crossings.iter().map(|row| row["content"].as_str().expect("a name")).collect();
    assert!(contents.contains(&"class_scores") && contents.contains(&"models"), "{contents:?}");
    for kept in ["features", "training_labels", "hidden_rows", "gradients_of_rows", "scores_and_labels"] {
        assert!(!contents.contains(&kept), "{contents:?}");
    }
    // The whole contract is signed by all, beside the log.
    let signatures = std::fs::read_to_string(place.path("run-west/run.contract.json.signatures")).expect("signatures");
    assert!(SITES.iter().all(|site| signatures.contains(&format!("— {site} "))), "{signatures}");
    // A byte of one log that is another one is found, with its line.
    let path = place.path("run-south/audit.jsonl");
    let log = std::fs::read_to_string(&path).expect("a log");
    let line = log.lines().position(|line| line.contains("\"class_scores\"")).expect("scores crossed");
    let changed: Vec<String> = log
        .lines()
        .enumerate()
        .map(|(at, text)| if at == line { text.replacen("\"round\":", "\"round\":1", 1) } else { text.to_owned() })
        .collect();
    std::fs::write(&path, changed.join("\n") + "\n").expect("written");
    let ran = place.run(&format!("audit run.contract.json {}", logs.join(" ")));
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("run-south/audit.jsonl:"), "{}", ran.out);
}

#[test]
fn what_a_policy_does_not_allow_is_refused_before_anybody_is_met() {
    let place = place(&RUN.replace("start = \"mlp\"", "start = \"features\""));
    let digest = agree(&place, "");
    let line = format!(
        "join run.contract.json --data part-north --keys keys-north --policy policy.toml --approve {digest} \
         --out run-north"
    );
    place.refused(&line, 7, &["features", "no rule allows it"]);
    assert!(!place.path("run-north").exists());
    // Without a policy of its own a site lets models leave, and nothing of single nodes.
    place.refused(&line.replace("--policy policy.toml ", ""), 7, &["no rule allows it"]);
}

#[test]
fn a_site_that_takes_nothing_in_ends_the_run_with_its_reason() {
    let place = place(RUN);
    let digest = agree(&place, "");
    let accepts = POLICY.rfind("\"class_scores\"").expect("the last rule");
    place.write("narrow.toml", &format!("{}\"features\"]\n", &POLICY[..accepts]));
    let policies = ["policy.toml", "narrow.toml", "policy.toml"].map(|policy| format!("--policy {policy}"));
    let sites: Vec<Child> =
        SITES.iter().zip(&policies).map(|(site, policy)| start(&place, site, &digest, policy)).collect();
    let ended: Vec<Output> = sites.into_iter().map(|site| site.wait_with_output().expect("it ends")).collect();
    let south = text(&ended[1].stdout) + &text(&ended[1].stderr);
    assert_eq!(ended[1].status.code(), Some(7), "{south}");
    assert!(south.contains("class_scores") && south.contains("no rule allows it"), "{south}");
    for (site, ended) in SITES.iter().zip(&ended) {
        assert!(!ended.status.success(), "{site}: {}", text(&ended.stdout));
        let log = std::fs::read_to_string(place.path(&format!("run-{site}/audit.jsonl"))).expect("a log");
        assert!(log.trim_end().lines().last().is_some_and(|line| line.contains("checkpoint")), "{site}");
    }
}

#[test]
fn who_joins_another_contract_or_approves_another_digest_is_turned_away() {
    let place = place(RUN);
    let first = agree(&place, "");
    std::fs::copy(place.path("run.contract.json"), place.path("first.json")).expect("copied");
    let second = agree(&place, "");
    assert_ne!(first, second, "each contract has an id of its own");
    place.refused(
        &format!("join run.contract.json --data part-north --keys keys-north --approve {first}"),
        2,
        &["--approve", &second],
    );
    place.refused("join run.contract.json --data part-north --keys keys-north", 2, &["--approve", &second]);
    place.refused(
        &format!("join run.contract.json --data part-south --keys keys-north --approve {second}"),
        2,
        &["part 0", "north"],
    );
    place.refused(
        &format!("join run.contract.json --data part-north --keys keys --approve {second}"),
        2,
        &["north, south, west", "site init"],
    );
    let mut late = start(&place, "south", &second, "--policy policy.toml");
    let mut heard = BufReader::new(late.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(heard.any(|line| line.contains("south waits for")), "it waits for the others");
    let said = thread::spawn(move || heard.collect::<Vec<String>>().join("\n"));
    let again = format!("join run.contract.json --data part-south --keys keys-south --approve {second}");
    place.refused(&format!("{again} --policy policy.toml"), 2, &["another process of this machine is south now"]);
    let early = {
        let line = format!(
            "join first.json --data part-north --keys keys-north --out run-north --approve {first} --policy policy.toml"
        );
        place.run(&line)
    };
    let late = late.wait_with_output().expect("it ends");
    let said = [early.err, text(&late.stdout) + &said.join().expect("no panic")];
    assert!(early.code == 4 && late.status.code() == Some(4), "{said:?}");
    assert!(said.iter().any(|said| said.contains("another contract")), "{said:?}");
}

/// As [`RUN`], but for many rounds.
fn long() -> String {
    RUN.replace("epochs = 6", "epochs = 1500").replace("[schedule]", "[out]\ncheckpoint_every = 30\n[schedule]")
}

#[test]
fn a_site_that_is_killed_ends_the_others_with_a_checkpoint_and_all_go_on_to_the_same_bits() {
    let place = place(&long());
    let digest = agree(&place, "");
    let more = "--policy policy.toml --reconnect 1";
    let mut sites: Vec<Child> = SITES.iter().map(|site| start(&place, site, &digest, more)).collect();
    let began = Instant::now();
    while !place.path("run-north/checkpoint.safetensors").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "no round was over");
        thread::sleep(Duration::from_millis(20));
    }
    sites[1].kill().expect("it runs");
    let ended: Vec<Output> = sites.into_iter().map(|site| site.wait_with_output().expect("it ends")).collect();
    for at in [0, 2] {
        let said = text(&ended[at].stderr);
        assert_eq!(ended[at].status.code(), Some(4), "{said}");
        assert!(said.contains("south"), "{said}");
    }
    let resumed = joined(&join(&place, &digest, &format!("{more} --resume")));
    let threads = place.json("train run.toml --out run-threads");
    for (site, resumed) in SITES.iter().zip(&resumed) {
        assert_eq!(resumed["parameters"], threads["parameters"]["digest"], "{site}");
    }
    let logs: Vec<String> = SITES.iter().map(|site| format!("run-{site}/audit.jsonl")).collect();
    let audit = place.json(&format!("audit run.contract.json {}", logs.join(" ")));
    assert_eq!(audit["clean"], true, "{audit}");
}

/// A laptop that sleeps for a while.
#[test]
#[cfg(unix)]
fn a_site_that_stands_still_for_a_while_is_waited_for_and_nothing_is_lost() {
    let place = place(&long());
    let digest = agree(&place, "");
    let sites: Vec<Child> = SITES.iter().map(|site| start(&place, site, &digest, "--policy policy.toml")).collect();
    let began = Instant::now();
    while !place.path("run-north/checkpoint.safetensors").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "no round was over");
        thread::sleep(Duration::from_millis(20));
    }
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &sites[2].id().to_string()]).status();
        assert!(sent.expect("kill is there").success());
    };
    signal("-STOP");
    thread::sleep(Duration::from_secs(20));
    signal("-CONT");
    let ended: Vec<Output> = sites.into_iter().map(|site| site.wait_with_output().expect("it ends")).collect();
    let ended = joined(&ended);
    let threads = place.json("train run.toml --out run-threads");
    for (site, ended) in SITES.iter().zip(&ended) {
        assert_eq!(ended["parameters"], threads["parameters"]["digest"], "{site}");
        assert_eq!(ended["sent"], ended["predicted"], "{site}: what is sent again counts once");
    }
}

//! What `laconic keys` says of keys that only some members read.

mod program;

use laconic_train::Members;
use laconic_train::config::KEYS;
use program::Place;

#[test]
fn the_line_of_a_key_begins_with_the_members_that_read_it() {
    let printed = Place::new().json("keys");
    let mut found = 0;
    for key in KEYS.iter().map(|key| key.key) {
        let line = printed[key].as_str().expect("a line for each key");
        let mut readers = Members::default().readers(key);
        let Some((named, _)) = line.split_once(": ").filter(|_| !readers.is_empty()) else {
            assert!(readers.is_empty(), "{key}: {line}: read by {readers:?}");
            continue;
        };
        let mut named: Vec<&str> = named.split(", ").collect();
        named.sort_unstable();
        readers.sort_unstable();
        assert_eq!(named, readers, "{key}: {line}");
        found += 1;
    }
    assert!(found > 0);
}

#[test]
fn a_key_that_its_member_does_not_read_is_refused_with_the_one_that_does() {
    let place = Place::new();
    place.write("run.toml", "[data]\npath = \"graph.npz\"\n");
    for (set, words) in [
        ("model.heads=4", ["model.heads", "gat"]),
        ("schedule.start=mlp", ["schedule.start", "lazy"]),
        ("partition.objective=cut", ["partition.objective", "multilevel"]),
        ("partition.method=super_node --set partition.rule=ldg", ["partition.rule", "\"streaming\" does"]),
        ("partition.method=super_node --set partition.passes=4", ["partition.passes", "\"streaming\" does"]),
        ("train.lr_step=5", ["train.lr_step", "step"]),
    ] {
        place.refused(&format!("plan run.toml --set {set}"), 2, &words);
    }
    // Who clusters in passes, or cuts in passes whatever the clusterer, reads them.
    place.json("data synth sbm --nodes 60 --features 4 --out graph.npz");
    for set in ["partition.method=streaming", "partition.method=super_node --set partition.clusterer=streaming"] {
        place.json(&format!("plan run.toml --set partition.parts=2 --set {set} --set partition.passes=4"));
    }
}

/// An alternative to what the file says is tried without editing the file.
#[test]
fn a_key_of_the_file_can_be_left_out_and_an_error_about_it_says_how() {
    let place = Place::new();
    place.json("data synth sbm --nodes 60 --features 4 --out graph.npz");
    let file = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 2\n[schedule]\nkind = \"lazy\"\nstart = \"mlp\"\n";
    place.write("run.toml", file);
    let other = "plan run.toml --set schedule.kind=synchronous";
    place.refused(other, 2, &["schedule.start", "does not read it", "--unset schedule.start"]);
    // What the command line itself has set cannot be left out of the file.
    let set = place.run("plan run.toml --unset schedule --set schedule.start=mlp");
    assert!(set.err.contains("does not read it") && !set.err.contains("--unset schedule.start"), "{}", set.err);
    let left_out = place.json(&format!("{other} --unset schedule.start"));
    let plain = place.json("plan run.toml --unset schedule");
    assert_eq!(left_out["bytes"], plain["bytes"]);
    // What is set again counts.
    let again = place.json("plan run.toml --unset schedule.start --set schedule.start=mlp");
    assert_eq!(again["bytes"], place.json("plan run.toml")["bytes"]);
    for key in ["schedule.strat", "schedule.kind.x", "model", ""] {
        place.refused(&format!("plan run.toml --unset={key}"), 2, &["--unset", "no such key"]);
    }
    place.write("methods.toml", "[[method]]\nname = \"x\"\nset = [\"!data.path\"]\n");
    place.refused("compare run.toml --runs methods.toml --plan", 2, &["data", "one graph"]);
}

#[test]
fn methods_of_papers_are_found_by_their_names_and_named_in_errors() {
    let place = Place::new();
    place.json("data synth sbm --nodes 60 --features 4 --out graph.npz");
    place.write("run.toml", "[data]\npath = \"graph.npz\"\n[partition]\nparts = 2\n");
    for (word, name, key) in [
        ("adaqp", "AdaQP", "messages.forward="),
        ("RETEXO", "RETEXO", "schedule.kind=lazy"),
        ("super_tma", "SuperTMA", "partition.method=super_node"),
        ("bns-gcn", "BNS-GCN", "boundary_sample"),
        ("llcg", "LLCG", "schedule.kind=llcg"),
    ] {
        let found = place.json(&format!("keys {word}"));
        let method = &found["papers"][0];
        let set: Vec<&str> = method["set"].as_array().expect("keys").iter().filter_map(|set| set.as_str()).collect();
        assert!(method["name"] == name && set.iter().any(|set| set.contains(key)), "{word}: {found}");
        assert!(place.run(&format!("keys {word}")).out.contains("--methods NAME"), "{word}");
    }
    for name in ["adaqp", "varco", "sancus", "bns-gcn", "SuperTMA", "random_tma"] {
        place.refused(&format!("plan run.toml --set schedule.kind={name}"), 2, &["schedule.kind", "laconic keys"]);
    }
}

/// Bits that would be assigned after the last round are said to stay as they began; a share goes with the rounds.
#[test]
fn a_period_is_rounds_or_a_share_of_them() {
    let place = Place::new();
    place.json("data synth sbm --nodes 200 --features 8 --out graph.npz");
    place.write("run.toml", "[data]\npath = \"graph.npz\"\n[partition]\nparts = 2\n[train]\nepochs = 10\n");
    let run = |command: &str, period: &str| {
        format!("{command} --set messages.forward={{codec=\"quantised\",bits=\"adaptive\",period={period}}}")
    };
    let train = |period: &str, out: &str| place.json(&run(&format!("train run.toml --out {out}"), period));
    let (share, rounds) = (train("0.2", "share"), train("2", "rounds"));
    assert_eq!((&share["parameters"], &share["bytes"]["total"]), (&rounds["parameters"], &rounds["bytes"]["total"]));
    let said =
        |period: &str| place.json(&run("plan run.toml", period))["notes"].to_string().contains("first assigned after");
    assert!(said("10") && !said("9") && !said("0.5") && said("1.0"));
    for period in ["0.0", "1.5", "-1", "\"a\""] {
        place.refused(&run("plan run.toml", period), 2, &["period", "share"]);
    }
}

/// A key that nothing reads would hide a mistake, whatever decides that nothing does.
#[test]
fn keys_that_would_do_nothing_are_refused_by_name() {
    let place = Place::new();
    place.json("data synth sbm --nodes 60 --features 4 --out graph.npz");
    place.write("run.toml", "[data]\npath = \"graph.npz\"\n[partition]\nparts = 2\n[train]\nepochs = 1\n");
    for key in [
        "model.heads=7",
        "model.head_merge=mean",
        "model.learn_epsilon=false",
        "train.momentum=0.5",
        "train.lr_step=3",
        "train.lr_factor=0.3",
        "schedule.start=mlp",
        "schedule.hand_on=hidden",
        "schedule.smooth_features=0.3",
        "schedule.smooth_gradients=0.3",
        "schedule.rounds=[3]",
        "schedule.lr=[0.1]",
        "schedule.cache_inputs=false --set schedule.kind=lazy",
        "partition.file=/etc/passwd",
        "partition.imbalance=0.2",
        "partition.objective=cut",
        "data.nodes_path=run.toml",
        "data.id=name",
        "data.missing=mean",
        "data.categories=3",
        "data.split_index=1 --set data.split={train=5,val=5}",
    ] {
        let name = key.split('=').next().expect("a key");
        place.refused(&format!("train run.toml --quiet --out run --set {key}"), 2, &[name]);
        assert!(!place.path("run").exists(), "{key}");
    }
}

#[test]
fn a_word_lists_the_keys_members_and_links_that_have_it_and_no_other() {
    let place = Place::new();
    let all = place.json("keys");
    assert_eq!(all.as_object().map(|all| all.len()), Some(KEYS.len() + 3));
    let found = place.json("keys LR");
    for key in KEYS.iter() {
        let has = (key.key.to_owned() + key.doc).to_lowercase().contains("lr");
        assert_eq!(found.get(key.key).is_some(), has, "{}", key.key);
    }
    assert_eq!(found["members"]["train.lr_schedule"].as_array().map(Vec::len), Some(4), "{found}");
    let text = place.run("keys smooth").out;
    assert!(text.contains("schedule.smooth_features") && !text.contains("train.lr"), "{text}");
    assert!(text.contains("pipelined (") && !text.contains("lazy ("), "{text}");
    let links = place.json("keys satellite")["links"].clone();
    assert_eq!(links.as_array().map(Vec::len), Some(1), "{links}");
    assert_eq!((links[0]["bits_per_second"].as_f64(), links[0]["latency_seconds"].as_f64()), (Some(2e7), Some(0.3)));
    place.refused("keys nosuchword", 2, &["nosuchword"]);
    assert!(place.run("train --help").out.contains("laconic keys"));
}

/// Every name under which a member is registered is listed with the key that takes it, and is taken.
#[test]
fn every_member_is_listed_with_what_it_reads() {
    let listed = Place::new().json("keys")["members"].clone();
    let mut count = 0;
    for (key, name, options) in Members::default().all() {
        let named = listed[key].as_array().into_iter().flatten().find(|member| member["name"] == name);
        let named = named.unwrap_or_else(|| panic!("{key} = {name}"));
        assert_eq!(named["options"], serde_json::json!(options), "{key} = {name}");
        let error = laconic_train::Config::parse("", &[format!("{key}=\"{name}\"")]).err().map(|e| e.to_string());
        assert!(!error.clone().unwrap_or_default().contains("expected one of"), "{key} = {name}: {error:?}");
        count += 1;
    }
    assert_eq!(
        listed.as_object().map(|keys| keys.values().filter_map(|v| v.as_array()).map(Vec::len).sum()),
        Some(count)
    );
}

/// One source: the fields of the configuration.
#[test]
fn the_page_of_the_configuration_is_what_the_program_prints() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/configuration.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let printed = Place::new().run("keys --markdown").out;
    assert!(page == printed, "laconic keys --markdown > docs/reference/configuration.md");
}

#[test]
fn the_schema_has_every_key_and_the_names_that_it_takes() {
    let schema = Place::new().json("keys --schema");
    let about = |key: &str| {
        let (section, key) = key.split_once('.').expect("a section");
        let section = schema["properties"][section]["$ref"].as_str().expect("a section").trim_start_matches('#');
        schema.pointer(&format!("{section}/properties/{key}")).cloned().unwrap_or_default()
    };
    for key in KEYS.iter() {
        assert!(about(key.key)["description"].is_string(), "{}", key.key);
    }
    let of_layers = about("model.arch")["enum"].as_array().cloned().unwrap_or_default();
    assert!(of_layers.contains(&"gat".into()) && of_layers.len() == 6, "{of_layers:?}");
    // A name, or a table of options: no list of names alone.
    assert!(about("messages.forward")["enum"].is_null());
}

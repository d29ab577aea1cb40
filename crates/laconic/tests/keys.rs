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
        ("train.lr_step=5", ["train.lr_step", "step"]),
    ] {
        place.refused(&format!("plan run.toml --set {set}"), 2, &words);
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
